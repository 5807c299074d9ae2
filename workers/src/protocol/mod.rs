//! The protocol of the interactive CLI as a pure machine: what was seen goes in, what is to be done
//! comes out.
//!
//! It knows no clock, no io and no task. It decides when a key may be written, which prompt was
//! taken, whose turn runs and how each turn ended. It refuses to recognise anything by the words of
//! a screen or of a reply.

mod ending;
mod hooks;
mod orders;
mod records;
mod seen;
mod start;
mod steering;
mod turns;
mod typing;

use std::time::Instant;

pub use seen::{AskedBy, HookSeen, Reading, Seen, Step, Ticket};

use crate::error::WorkerError;
use crate::event::WorkerEvent;
use crate::fact::Fact;
use crate::timings::Timings;
use ending::{Following, Interrupting, Resume};
use start::Start;
use steering::{By, Steering};
use turns::{Known, Ledger, Owner};
use typing::Keyboard;

/// Where the worker is in its life.
#[derive(Debug)]
enum Phase {
    Starting(Start),
    Up,
    /// The process is gone; the transcript is read to its end.
    Leaving {
        status: String,
        screen: String,
        caught_up: u64,
        until: Instant,
    },
    Gone,
}

/// The machine of one worker.
#[derive(Debug)]
pub struct Machine {
    timings: Timings,
    session_id: String,
    version: String,
    phase: Phase,
    /// It was told to stop: nothing is written any more.
    stopped: bool,
    keyboard: Keyboard,
    ledger: Ledger,
    steering: Steering,
    interrupting: Option<Interrupting>,
    /// The person stopped a prompt whose turn had not been seen to begin.
    interrupt_wanted: bool,
    following: Option<Following>,
    resume: Resume,
    permissions: OpenPermissions,
    /// The dialog that was told already.
    dialog_told: Option<String>,
    last_sign: Option<Instant>,
    /// Something of the session was read from its transcript.
    transcript_seen: bool,
    /// The time of what was seen last: whatever was due by then has had its chance.
    seen_at: Option<Instant>,
    /// Live facts of a turn that has to wait until the one before it was told as ended.
    held: Vec<(Fact, Option<String>)>,
    /// Questions to the screen and the transcript, counted, so that an old answer is known as one.
    asked: Asked,
    steps: Vec<Step>,
}

/// Permission and question dialogs that may be open.
#[derive(Debug, Default)]
struct OpenPermissions {
    of_turn: usize,
    of_agents: usize,
}

impl OpenPermissions {
    fn of(&mut self, asker: AskedBy) -> &mut usize {
        match asker {
            AskedBy::Turn => &mut self.of_turn,
            AskedBy::Agent => &mut self.of_agents,
        }
    }

    fn asked(&mut self, asker: AskedBy) {
        *self.of(asker) += 1;
    }

    fn settled(&mut self, asker: AskedBy) {
        let open = self.of(asker);
        *open = open.saturating_sub(1);
    }

    fn turn_over(&mut self) {
        self.of_turn = 0;
    }

    fn any(&self) -> bool {
        self.of_turn + self.of_agents > 0
    }
}

#[derive(Debug, Default)]
struct Asked {
    screen: u64,
    screen_seen: u64,
    transcript: u64,
    transcript_seen: u64,
    /// The last reading, and whether it showed that keys may be written.
    reading: Option<Reading>,
}

impl Machine {
    /// A machine for a worker that will open the session `session_id` on a CLI of this version.
    pub fn new(timings: Timings, session_id: String, version: String) -> Self {
        Self {
            timings,
            session_id,
            version,
            phase: Phase::Starting(Start::default()),
            stopped: false,
            keyboard: Keyboard::default(),
            ledger: Ledger::new(),
            steering: Steering::default(),
            interrupting: None,
            interrupt_wanted: false,
            following: None,
            resume: Resume::No,
            permissions: OpenPermissions::default(),
            dialog_told: None,
            last_sign: None,
            transcript_seen: false,
            seen_at: None,
            held: Vec::new(),
            asked: Asked::default(),
            steps: Vec::new(),
        }
    }

    /// Takes in what happened and says what is to be done now.
    pub fn see(&mut self, now: Instant, seen: Seen) -> Vec<Step> {
        if matches!(self.phase, Phase::Gone) {
            self.refuse_after_end(&seen);
            return std::mem::take(&mut self.steps);
        }
        self.seen_at = Some(now);
        self.count_signs(now, &seen);
        match seen {
            Seen::Submit { ticket, text } => self.submit(now, ticket, &text),
            Seen::Steer { ticket, text } => self.steer(now, ticket, &text),
            Seen::Interrupt => self.interrupt(now),
            Seen::Compact => self.compact(now),
            Seen::Typed(bytes) => self.typed(now, bytes),
            Seen::Stop => self.stop(),
            Seen::Spawned => self.spawned(now),
            Seen::Hook(hook) => self.hook(now, hook),
            Seen::Record(fact) => {
                self.found_transcript(now);
                self.record(now, fact);
            }
            Seen::Live { fact, prompt_id } => self.live(fact, prompt_id),
            Seen::Screen(reading) => self.read_screen(now, reading),
            Seen::ScreenChanged => self.screen_changed(now),
            Seen::Traffic | Seen::Tick => {}
            Seen::Written => self.written(now),
            Seen::WriteFailed { accepted, total } => self.write_failed(accepted, total),
            Seen::CaughtUp => self.asked.transcript_seen += 1,
            Seen::Exited { status, screen } => self.exited(now, status, screen),
        }
        // One thing that follows may be what another waited for.
        loop {
            let before = self.steps.len();
            self.go_on(now);
            if self.steps.len() == before {
                break;
            }
        }
        std::mem::take(&mut self.steps)
    }

    /// When [`Seen::Tick`] is wanted at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        let phase = match &self.phase {
            Phase::Starting(start) => start.deadline(),
            Phase::Up => None,
            Phase::Leaving { until, .. } => Some(*until),
            Phase::Gone => return None,
        };
        let turns = self.ledger.iter().flat_map(|turn| {
            [
                turn.ending.as_ref().map(|ending| ending.until),
                turn.compaction.filter(|_| turn.ending.is_none()),
            ]
        });
        [
            phase,
            self.keyboard.deadline(matches!(self.phase, Phase::Up)),
            self.steering.deadline(),
            self.interrupting.as_ref().map(|interrupting| interrupting.until),
            self.following.as_ref().map(|following| following.until),
            self.resume.deadline(),
            self.inactive_at(),
        ]
        .into_iter()
        .chain(turns)
        .flatten()
        // What is over waits for something else by now.
        .filter(|at| self.seen_at.is_none_or(|seen_at| *at > seen_at))
        .min()
    }

    /// What follows from the state and the time. Does nothing when it is repeated at the same time.
    fn go_on(&mut self, now: Instant) {
        self.go_on_starting(now);
        self.go_on_interrupting(now);
        self.tell_ends(now);
        self.go_on_steering(now);
        self.cancel_resume(now);
        self.go_on_typing(now);
        self.flush_held();
        self.go_on_leaving(now);
        if self.inactive_at().is_some_and(|at| at <= now) {
            self.give_up(WorkerError::Inactive(self.timings.inactivity));
        }
    }

    fn count_signs(&mut self, now: Instant, seen: &Seen) {
        let life = matches!(
            seen,
            Seen::Hook(_)
                | Seen::Record(_)
                | Seen::Live { .. }
                | Seen::ScreenChanged
                | Seen::Traffic
                | Seen::Typed(_)
        );
        if life {
            self.last_sign = Some(now);
            if let Some(interrupting) = &mut self.interrupting {
                interrupting.sign(now, self.timings.interrupt);
            }
        }
        // A changed screen shows no turn: the paste itself changes it.
        if matches!(seen, Seen::Hook(_) | Seen::Record(_) | Seen::Live { .. } | Seen::Traffic) {
            self.keyboard.sign();
        }
    }

    /// From now on the ends of turns wait for their records.
    fn found_transcript(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.transcript_seen, true) {
            let until = now + self.timings.transcript_lag;
            self.ledger.wait_longer(until);
        }
    }

    /// When a running turn is given up for its silence. A person who is asked may take longer.
    fn inactive_at(&self) -> Option<Instant> {
        let runs = self.ledger.running().is_some_and(|turn| turn.compaction.is_none());
        (matches!(self.phase, Phase::Up) && runs && !self.permissions.any())
            .then(|| self.last_sign.map(|sign| sign + self.timings.inactivity))
            .flatten()
    }

    fn tell(&mut self, event: WorkerEvent) {
        self.steps.push(Step::Tell(Box::new(event)));
    }

    /// Asks for the screen; the number of the answer that will be fresh enough.
    fn ask_screen(&mut self) -> u64 {
        self.asked.screen += 1;
        self.steps.push(Step::ReadScreen);
        self.asked.screen
    }

    fn ask_transcript(&mut self) -> u64 {
        self.asked.transcript += 1;
        self.steps.push(Step::CatchUp);
        self.asked.transcript
    }

    /// Whether a key may be written, by the reading with this number.
    fn may_press(&self, wanted: u64) -> Option<bool> {
        if self.asked.screen_seen < wanted {
            return None;
        }
        let plain = matches!(self.asked.reading, Some(Reading::Plain { .. }));
        Some(plain && !self.permissions.any())
    }

    fn read_screen(&mut self, now: Instant, reading: Reading) {
        self.asked.screen_seen += 1;
        if matches!(self.phase, Phase::Starting(_)) {
            self.read_start(now, &reading);
        } else {
            self.tell_dialog(&reading);
        }
        self.asked.reading = Some(reading);
    }

    /// Tells a dialog once, until it is gone. One that a permission question has drawn is known
    /// already.
    fn tell_dialog(&mut self, reading: &Reading) {
        match reading {
            Reading::Plain { .. } => self.dialog_told = None,
            Reading::Ours { title, screen, .. }
            | Reading::Theirs { title, screen }
            | Reading::Login { title, screen } => {
                if !self.permissions.any() && self.dialog_told.as_ref() != Some(title) {
                    self.dialog_told = Some(title.clone());
                    self.tell(WorkerEvent::AtDialog {
                        title: title.clone(),
                        screen: screen.clone(),
                    });
                }
            }
        }
    }

    fn screen_changed(&mut self, now: Instant) {
        if let Phase::Starting(start) = &mut self.phase {
            start.look_soon(now + self.timings.dialog_redraw);
        } else {
            self.look_again();
        }
    }

    /// A live fact: marked with its turn, or kept back while the turn before is not told as ended.
    fn live(&mut self, fact: Fact, prompt_id: Option<String>) {
        self.held.push((fact, prompt_id));
    }

    /// Lets live facts go as far as their turns have been reached.
    fn flush_held(&mut self) {
        let mut kept = Vec::new();
        for (fact, prompt_id) in std::mem::take(&mut self.held) {
            let front =
                self.ledger.iter().next().map(|turn| (turn.key, turn.owner, turn.began_told));
            let known = self.ledger.known(prompt_id.as_deref());
            match (front, known) {
                (Some((key, owner, began)), Known::Turn(of))
                    if of == key && (owner == Owner::Ours || began) =>
                {
                    if let Some(turn) = self.ledger.get(key) {
                        turn.output |= shows_output(&fact);
                    }
                    self.tell(WorkerEvent::Fact { fact, unasked: owner == Owner::Unasked });
                }
                // Its prompt has just been written: whose it is will be known with the receipt.
                _ if self.keyboard.awaits_receipt()
                    || (front.is_some() && known != Known::Finished) =>
                {
                    kept.push((fact, prompt_id));
                }
                _ if matches!(fact, Fact::Quota(_)) => {
                    self.tell(WorkerEvent::Fact { fact, unasked: true });
                }
                // Live facts are for eyes; of a turn that is over nothing more is shown.
                _ => {}
            }
        }
        self.held = kept;
    }

    fn exited(&mut self, now: Instant, status: String, screen: String) {
        if self.stopped {
            self.give_up(WorkerError::Stopped);
        } else if matches!(self.phase, Phase::Starting(_)) {
            self.give_up(WorkerError::StartFailed { status, screen });
        } else {
            let caught_up = self.ask_transcript();
            self.phase = Phase::Leaving {
                status,
                screen,
                caught_up,
                until: now + self.timings.transcript_lag,
            };
        }
    }

    fn go_on_leaving(&mut self, now: Instant) {
        let Phase::Leaving { status, screen, caught_up, until } = &self.phase else { return };
        if self.asked.transcript_seen < *caught_up && now < *until {
            return;
        }
        let (status, screen) = (status.clone(), screen.clone());
        self.tell_known_ends(now);
        let may_have_run = self.may_have_run();
        self.give_up(WorkerError::Crashed { status, screen, may_have_run });
    }

    /// Whether the CLI had words of ours that it may have begun to work on.
    fn may_have_run(&self) -> bool {
        self.keyboard.cr_written()
            || self.following.is_some()
            || self.steering.has_own()
            || self.ledger.iter().any(|turn| turn.owner != Owner::Unasked)
    }

    /// The end of the worker: everything open is answered, and nothing follows.
    fn give_up(&mut self, error: WorkerError) {
        if matches!(self.phase, Phase::Gone) {
            return;
        }
        self.answer_all(&error);
        self.phase = Phase::Gone;
        self.steps.push(Step::GiveUp(error));
    }
}

/// Whether a live fact shows that the turn has begun to do something.
fn shows_output(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::ThinkingDelta { .. }
            | Fact::TextDelta { .. }
            | Fact::ToolUseBegan { .. }
            | Fact::Lines { .. }
            | Fact::ToolStarted { .. }
            | Fact::ToolEnded { .. }
    )
}

#[cfg(test)]
mod tests;
