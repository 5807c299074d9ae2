//! A small model of the CLI beside the machine: turns of ours and of others, whose hooks and records
//! arrive in any order between each other.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::super::{AskedBy, HookSeen, Seen};
use super::rig::*;
use crate::fact::{Fact, FailureKind, PromptSource};
use crate::timings::Timings;

/// What a CLI would do with the keys, and what it would tell.
#[derive(Default)]
struct Cli {
    input_box: String,
    running: Option<Running>,
    queue: VecDeque<(String, Asker)>,
    hooks: VecDeque<HookSeen>,
    records: VecDeque<Fact>,
    turns: usize,
    crs: usize,
    absorbed: usize,
    /// 2.1.332 fires the hook of a queued prompt at once.
    hooks_the_queue: bool,
}

struct Running {
    id: String,
    asker: Asker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    Us(usize),
    Notification(usize),
}

impl Asker {
    fn reply(self) -> String {
        match self {
            Self::Us(n) => format!("reply {n}"),
            Self::Notification(n) => format!("noted {n}"),
        }
    }
}

impl Cli {
    fn keys(&mut self, keys: &str, us: usize) {
        if keys == "\r" {
            self.crs += 1;
            let text = std::mem::take(&mut self.input_box);
            if !text.is_empty() {
                self.take(text, Asker::Us(us));
            }
        } else if let Some(text) = keys.strip_prefix("\x1b[200~") {
            self.input_box += text.strip_suffix("\x1b[201~").unwrap();
        } else {
            panic!("unexpected keys {keys:?}");
        }
    }

    fn take(&mut self, text: String, asker: Asker) {
        if let Some(running) = &self.running {
            self.records.push_back(enqueued(&text));
            if self.hooks_the_queue {
                self.hooks.push_back(submitted(&running.id, &text));
            }
            self.queue.push_back((text, asker));
        } else {
            self.begin(&text, asker, false);
        }
    }

    fn begin(&mut self, text: &str, asker: Asker, from_queue: bool) {
        self.turns += 1;
        let id = format!("id{}", self.turns);
        if !from_queue || !self.hooks_the_queue {
            self.hooks.push_back(submitted(&id, text));
        }
        self.records.push_back(match asker {
            Asker::Us(_) if from_queue => queued(&id, text),
            Asker::Us(_) => typed(&id, text),
            Asker::Notification(_) => notification(&id, text),
        });
        self.running = Some(Running { id, asker });
    }

    /// A tool call has ended: what is queued goes into the turn, when it is ours like the turn.
    fn absorb(&mut self) {
        let ours = |asker: &Asker| matches!(asker, Asker::Us(_));
        let running = self.running.as_ref().is_some_and(|running| ours(&running.asker));
        if running
            && self.queue.front().is_some_and(|(_, asker)| ours(asker))
            && let Some((text, _)) = self.queue.pop_front()
        {
            self.absorbed += 1;
            self.records.push_back(absorbed(&text));
            self.records.push_back(Fact::Prompt {
                prompt_id: None,
                text,
                source: PromptSource::Queued,
            });
        }
    }

    fn notify(&mut self, n: usize) {
        // It holds the words of our prompts, and means none of them.
        self.take(
            format!("<task-notification>ok 1 {n}</task-notification>"),
            Asker::Notification(n),
        );
    }

    /// The turn that runs ends in one of the ways. Without one that runs nothing happens.
    fn end(&mut self, way: u8) {
        let Some(Running { id, asker }) = self.running.take() else { return };
        let reply = asker.reply();
        self.records.push_back(says("ok"));
        self.records.push_back(uses_tool("t"));
        self.records.push_back(tool_result("t"));
        self.records.push_back(says(&reply));
        match way % 4 {
            0 | 1 => {
                self.hooks.push_back(stop(&id, &reply));
                self.records.push_back(duration());
            }
            2 => {
                self.hooks.push_back(stop_failure(&id, "server_error"));
                self.records.push_back(failure(FailureKind::Server, None));
            }
            _ => self.records.push_back(Fact::Interrupted { in_tool: false }),
        }
        if let Some((text, asker)) = self.queue.pop_front() {
            self.records.push_back(Fact::Dequeued);
            self.begin(&text, asker, true);
        }
    }
}

struct World {
    rig: Rig,
    cli: Cli,
    seen: usize,
    submits: usize,
    notes: usize,
    steers: u64,
}

impl World {
    fn new(hooks_the_queue: bool) -> Self {
        let timings = Timings { paste_to_cr: ms(5), settle: ms(0), ..Timings::default() };
        let mut rig = Rig::with(timings);
        rig.see(Seen::Spawned);
        rig.hook(start(SESSION));
        rig.did.clear();
        Self {
            rig,
            cli: Cli { hooks_the_queue, ..Cli::default() },
            seen: 0,
            submits: 0,
            notes: 0,
            steers: 0,
        }
    }

    /// Hands the keys of the machine to the CLI.
    fn carry_keys(&mut self) {
        while let Some((_, did)) = self.rig.did.get(self.seen) {
            if let Did::Wrote(keys) = did {
                self.cli.keys(keys, self.submits);
            }
            self.seen += 1;
        }
    }

    fn our_ends(&self) -> Vec<String> {
        self.rig.ends().into_iter().filter(|end| !end.contains("unasked")).collect()
    }

    fn act(&mut self, action: u8, way: u8) {
        match action % 8 {
            0 | 1 => self.deliver_hook(),
            2 | 3 => self.deliver_record(),
            4 => self.rig.pass(ms(u64::from(way % 8))),
            5 if self.notes < 6 => {
                self.notes += 1;
                self.cli.notify(self.notes);
            }
            6 => self.cli.end(way),
            7 if self.our_ends().len() == self.submits && self.submits < 6 => {
                self.submits += 1;
                let text = if way.is_multiple_of(2) { "ok" } else { "1" };
                self.rig.see(Seen::Submit { ticket: self.submits as u64, text: text.to_owned() });
            }
            _ => {}
        }
        self.carry_keys();
    }

    /// Like `act`, with words into the running turn, where turns of ours end well.
    fn act_and_steer(&mut self, action: u8, way: u8) {
        match action % 11 {
            6 => self.cli.end(0),
            8 | 9 if self.steers < 8 => {
                self.steers += 1;
                let text = format!("steer {}", self.steers);
                self.rig.see(Seen::Steer { ticket: self.steers, text });
            }
            10 => self.cli.absorb(),
            other => self.act(other, way),
        }
        self.carry_keys();
    }

    fn steered(&self) -> Vec<(u64, bool)> {
        let steered = |did| {
            if let Did::Steered(ticket, result) = did {
                Some((ticket, result.is_ok()))
            } else {
                None
            }
        };
        self.rig.did().into_iter().filter_map(steered).collect()
    }

    fn deliver_hook(&mut self) {
        if let Some(hook) = self.cli.hooks.pop_front() {
            self.rig.hook(hook);
        }
    }

    fn deliver_record(&mut self) {
        if let Some(fact) = self.cli.records.pop_front() {
            self.rig.record(fact);
        }
    }

    /// Everything that is under way comes to its end, as it does when nothing more is asked.
    fn drain(&mut self) {
        for _ in 0..40 {
            self.rig.pass(ms(10));
            self.carry_keys();
            while !(self.cli.hooks.is_empty() && self.cli.records.is_empty()) {
                self.deliver_hook();
                self.deliver_record();
            }
            self.cli.end(0);
        }
        self.rig.pass(ms(60_000));
        self.carry_keys();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Reply, end and mark of every turn are its own, however hooks and records interleave.
    #[test]
    fn the_reply_is_ours_in_a_thousand_interleavings(
        actions in prop::collection::vec((any::<u8>(), any::<u8>()), 0..120),
        hooks_the_queue in any::<bool>(),
    ) {
        let mut world = World::new(hooks_the_queue);
        for (action, way) in actions {
            world.act(action, way);
        }
        world.drain();
        let ends = world.our_ends();
        prop_assert_eq!(ends.len(), world.submits, "{:?}", world.rig.told());
        for (n, end) in ends.iter().enumerate() {
            let reply = format!("end completed reply {}", n + 1);
            let own = *end == reply || end.starts_with("end failed Server") || end == "end Interrupted";
            prop_assert!(own, "{:?}", world.rig.told());
        }
        // Executed once each: one CR for each prompt, and as many turns as were asked for.
        prop_assert_eq!(world.cli.crs, world.submits);
        prop_assert_eq!(world.cli.turns, world.submits + world.notes);
        let told = world.rig.told();
        let unasked = told.iter().filter(|told| told.starts_with("end unasked")).count();
        prop_assert_eq!(unasked, world.notes, "{:?}", told);
        let began = told.iter().filter(|told| told.starts_with("unasked <task")).count();
        prop_assert_eq!(began, world.notes, "{:?}", told);
        let delivered = told.iter().filter(|told| told.starts_with("delivered")).count();
        prop_assert_eq!(delivered, world.submits, "{:?}", told);
        for told in &told {
            prop_assert!(!told.starts_with("says noted") && !told.starts_with("unasked says reply"), "{}", told);
        }
    }

    /// Words into running turns are answered once each, are handed over once each, and never part a
    /// prompt from its reply.
    #[test]
    fn steering_never_parts_a_prompt_from_its_reply(
        actions in prop::collection::vec((any::<u8>(), any::<u8>()), 0..120),
        hooks_the_queue in any::<bool>(),
    ) {
        let mut world = World::new(hooks_the_queue);
        for (action, way) in actions {
            world.act_and_steer(action, way);
        }
        world.drain();
        let told = world.rig.told();
        let replies: Vec<String> = (1..=world.submits).map(|n| format!("end completed reply {n}")).collect();
        prop_assert_eq!(world.our_ends(), replies, "{:?}", world.rig.did());
        let steered = world.steered();
        let mut tickets: Vec<u64> = steered.iter().map(|(ticket, _)| *ticket).collect();
        tickets.sort_unstable();
        prop_assert_eq!(tickets, (1..=world.steers).collect::<Vec<_>>(), "{:?}", world.rig.did());
        // Said to be taken exactly when it was handed over.
        let taken = steered.iter().filter(|(_, taken)| *taken).count();
        prop_assert_eq!(world.cli.crs, world.submits + taken, "{:?}", world.rig.did());
        prop_assert_eq!(world.cli.turns + world.cli.absorbed, world.submits + world.notes + taken);
        let unasked = told.iter().filter(|told| told.starts_with("end unasked")).count();
        prop_assert_eq!(unasked, world.notes, "{:?}", told);
        for told in &told {
            prop_assert!(!told.starts_with("says noted") && !told.starts_with("unasked says reply"), "{}", told);
        }
    }

    /// Whatever comes, no key but Esc is written while the screen shows a dialog or one may be open.
    #[test]
    fn no_key_meets_a_dialog_whatever_comes(
        seen in prop::collection::vec((0..32_u8, 0..4_u8, 0..4000_u64), 0..80),
    ) {
        let mut rig = Rig::new();
        rig.see(Seen::Spawned);
        rig.hook(start(SESSION));
        let mut written = 0;
        for (what, id, wait) in seen {
            match what {
                26..29 => rig.screen = plain(),
                29..32 => rig.screen = dialog("Do you want to proceed?"),
                _ => rig.see(anything(what, id)),
            }
            for pass in [0, wait] {
                rig.pass(ms(pass));
                let keys = rig.wrote().into_iter().skip(written).filter(|keys| keys != "\x1b").count();
                let open = rig.screen != plain() || rig.machine.permissions.any();
                prop_assert!(!open || keys == 0, "{:?}", rig.did());
                written = rig.wrote().len();
            }
        }
    }

    /// Whatever comes, nothing panics, nothing is told twice, and no deadline spins.
    #[test]
    fn anything_at_all_may_come_in_any_order(
        seen in prop::collection::vec((0..26_u8, 0..4_u8, 0..4000_u64), 0..80),
    ) {
        let mut rig = Rig::new();
        rig.see(Seen::Spawned);
        for (what, id, wait) in seen {
            rig.see(anything(what, id));
            if wait > 2000 {
                rig.pass(ms(wait));
            }
        }
        rig.pass(ms(100_000));
        let gave_up = rig.did().iter().filter(|did| matches!(did, Did::GaveUp(_))).count();
        prop_assert!(gave_up <= 1);
        let told = rig.told();
        let began = told.iter().filter(|told| told.starts_with("unasked text")).count();
        let ended = told.iter().filter(|told| told.starts_with("end unasked")).count();
        prop_assert!(ended <= began + told.iter().filter(|told| *told == "unasked ").count());
    }
}

fn anything(what: u8, id: u8) -> Seen {
    let name = format!("p{id}");
    let text = format!("text {id}");
    match what {
        0 => Seen::Hook(start(SESSION)),
        1 => Seen::Submit { ticket: 1, text },
        2 => Seen::Steer { ticket: 2, text },
        3 => Seen::Interrupt,
        4 => Seen::Compact,
        5 => Seen::Typed(vec![0x1b]),
        6 => Seen::Hook(submitted(&name, &text)),
        7 => Seen::Hook(stop(&name, &text)),
        8 => Seen::Hook(stop_failure(&name, "server_error")),
        9 => Seen::Hook(HookSeen::PermissionAsked { by: AskedBy::Turn }),
        10 => Seen::Hook(HookSeen::PermissionSettled { by: AskedBy::Turn }),
        11 => Seen::Hook(HookSeen::PreCompact { prompt_id: Some(name), automatic: id == 0 }),
        12 => Seen::Hook(HookSeen::PostCompact { prompt_id: Some(name), automatic: id == 0 }),
        13 => Seen::Record(typed(&name, &text)),
        14 => Seen::Record(queued(&name, &text)),
        15 => Seen::Record(notification(&name, &text)),
        16 => Seen::Record(says(&text)),
        17 => Seen::Record(duration()),
        18 => Seen::Record(failure(FailureKind::UsageLimit, Some("rejected"))),
        19 => Seen::Record(Fact::Interrupted { in_tool: true }),
        20 => Seen::Record(enqueued(&text)),
        21 => Seen::Record(Fact::Removed { content: (id > 0).then_some(text), absorbed: id > 1 }),
        22 => {
            Seen::Record(Fact::Compacted { automatic: id == 0, before_tokens: 2, after_tokens: 1 })
        }
        23 => Seen::Live {
            fact: Fact::TextDelta { message: "m".to_owned(), block: 0, text },
            prompt_id: (id > 0).then_some(name),
        },
        24 if id == 0 => Seen::Exited { status: "exit 0".to_owned(), screen: String::new() },
        24 => Seen::Record(Fact::CommandOutput { text }),
        _ => Seen::WriteFailed { accepted: 1, total: 2 },
    }
}
