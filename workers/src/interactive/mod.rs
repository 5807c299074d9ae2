//! The `pty` transport: the interactive CLI on a pty of ours, driven by the protocol machine.
//!
//! This room only carries: what happens goes into the machine in the order in which it was learnt,
//! and what the machine wants is done in the order in which it was wanted. It decides nothing.

mod asks;
mod heard;
mod order;
mod setup;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::{BoxFuture, OptionFuture};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender};
use tokio::sync::oneshot;

use crate::config::WorkerConfig;
use crate::error::WorkerError;
use crate::event::{AskingAgent, SteerError, TurnEnd, WorkerEvent};
use crate::fact::Fact;
use crate::hooks::record::HookEvent;
use crate::hooks::server::HookArrival;
use crate::host::Host;
use crate::process::Patience;
use crate::protocol::{AskedBy, HookSeen, Machine, Seen, Step, Ticket};
use crate::tap::Tapped;
use crate::timings::Timings;
use crate::transcript::ReaderEvent;
use crate::worker::{OpenAs, Order, Parts};

use asks::{Moved, Questions};
use heard::heard;
use order::InOrder;
use setup::{Running, Told};

/// Runs one worker from its start to the end of its last process. `orders` is the sending end of its
/// own orders, for a person who types into its screen; it does not keep the worker alive.
pub(crate) async fn run(
    config: WorkerConfig,
    parts: Parts,
    orders: WeakUnboundedSender<Order>,
    host: Arc<Host>,
) {
    let Parts { open, orders: mut ordered, events } = parts;
    let mut early = VecDeque::new();
    let started = tokio::select! {
        started = Running::start(&config, &open, &host) => started,
        done = stop_ordered(&mut ordered, &mut early) => {
            tell(&events, WorkerEvent::Ended(WorkerError::Stopped));
            return confirm(done);
        }
    };
    let running = match started {
        Ok(running) => running,
        Err(error) => return tell(&events, WorkerEvent::Ended(error)),
    };
    let screen = running.child.screen().clone();
    host.screens().show(screen.clone(), orders);
    let session_id = open.session_id().to_owned();
    let machine = Machine::new(config.timings.clone(), session_id.clone(), running.version.clone());
    let mut worker = Interactive {
        machine,
        running,
        events,
        host: Arc::clone(&host),
        session_id,
        parent: match open {
            OpenAs::Fork { from, .. } => Some(from),
            OpenAs::New(_) | OpenAs::Resume(_) => None,
        },
        in_order: InOrder::default(),
        starting: VecDeque::new(),
        timings: config.timings,
        questions: Questions::default(),
        submits: HashMap::new(),
        steers: HashMap::new(),
        next_ticket: 0,
        unwritten: VecDeque::new(),
        writing: None,
        has_exited: false,
        answered_untapped: false,
        given_up: None,
    };
    let done = worker.run(early, &mut ordered).await;
    host.screens().clear(&screen);
    worker.end().await;
    confirm(done);
}

/// Waits for the order to stop, and keeps the others until they can be carried out.
async fn stop_ordered(
    orders: &mut UnboundedReceiver<Order>,
    early: &mut VecDeque<Order>,
) -> Option<oneshot::Sender<()>> {
    loop {
        match orders.recv().await {
            Some(Order::Stop { done }) => return Some(done),
            Some(order) => early.push_back(order),
            None => return None,
        }
    }
}

fn tell(events: &UnboundedSender<WorkerEvent>, event: WorkerEvent) {
    // Whoever does not listen any more does not want to know.
    let _ = events.send(event);
}

fn confirm(done: Option<oneshot::Sender<()>>) {
    if let Some(done) = done {
        let _ = done.send(());
    }
}

/// The answer to a prompt that was handed over.
type Taken<E> = oneshot::Sender<Result<(), E>>;

/// A tool that was announced.
struct Starting {
    id: String,
    /// Without a question until then it runs.
    at: Instant,
    fact: Fact,
    prompt_id: Option<String>,
}

struct Interactive {
    machine: Machine,
    running: Running,
    events: UnboundedSender<WorkerEvent>,
    host: Arc<Host>,
    session_id: String,
    /// The session that this one is a copy of.
    parent: Option<String>,
    in_order: InOrder,
    /// Tools that are about to run, unless they are asked about first.
    starting: VecDeque<Starting>,
    timings: Timings,
    questions: Questions,
    submits: HashMap<Ticket, Taken<WorkerError>>,
    steers: HashMap<Ticket, Taken<SteerError>>,
    next_ticket: Ticket,
    /// What waits to be written, in order.
    unwritten: VecDeque<Vec<u8>>,
    writing: Option<BoxFuture<'static, Result<(), WorkerError>>>,
    has_exited: bool,
    /// An answer was recorded of which the tap saw nothing.
    answered_untapped: bool,
    given_up: Option<WorkerError>,
}

impl Interactive {
    /// Carries until it is given up or told to stop; then returns whom to tell that it has ended.
    async fn run(
        &mut self,
        early: VecDeque<Order>,
        orders: &mut UnboundedReceiver<Order>,
    ) -> Option<oneshot::Sender<()>> {
        let mut changes = self.running.child.screen().changes();
        self.see(Seen::Spawned).await;
        for order in early {
            self.order(order).await;
        }
        while self.given_up.is_none() {
            self.write_next();
            let deadline = self.machine.deadline().map(tokio::time::Instant::from_std);
            let tick = OptionFuture::from(deadline.map(tokio::time::sleep_until));
            let open = self.questions.ids();
            let start = self.starting.iter().filter(|start| !open.contains(&start.id));
            let start = start.map(|start| start.at).min().map(tokio::time::Instant::from_std);
            let starts = OptionFuture::from(start.map(tokio::time::sleep_until));
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Stop { done }) => {
                        self.see(Seen::Stop).await;
                        return Some(done);
                    }
                    None => {
                        self.see(Seen::Stop).await;
                        return None;
                    }
                    Some(order) => self.order(order).await,
                },
                Some(arrival) = self.running.hooks.recv() => self.hook(arrival).await,
                told = self.running.transcript.next() => self.told(told).await,
                tapped = self.running.live.next() => self.tapped(tapped).await,
                moved = self.questions.next() => self.moved(vec![moved]).await,
                Some(written) = OptionFuture::from(self.writing.as_mut()) => {
                    self.writing = None;
                    self.written(written).await;
                }
                Ok(()) = changes.changed() => self.see(Seen::ScreenChanged).await,
                exit = self.running.child.exited(), if !self.has_exited => {
                    self.has_exited = true;
                    let screen = if exit.was_killed() { String::new() } else { self.words() };
                    self.see(Seen::Exited { status: exit.to_string(), screen }).await;
                }
                Some(()) = starts => {
                    let now = Instant::now();
                    let open = self.questions.ids();
                    self.started(|start| start.at <= now && !open.contains(&start.id)).await;
                }
                Some(()) = tick => self.see(Seen::Tick).await,
            }
        }
        None
    }

    /// Ends the processes, and says why it ended.
    async fn end(self) {
        let error = self.given_up.unwrap_or(WorkerError::Stopped);
        let child = self.running.child;
        let left = match error {
            WorkerError::Stopped => child.end().await,
            _ => child.end_within(Patience::abandoned(&self.timings)).await,
        };
        if !left.is_empty() {
            tracing::warn!(?left, "processes of a worker could not be ended");
        }
        tell(&self.events, WorkerEvent::Ended(error));
    }

    async fn order(&mut self, order: Order) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        match order {
            Order::Submit { text, taken } => {
                self.submits.insert(ticket, taken);
                self.see(Seen::Submit { ticket, text }).await;
            }
            Order::Steer { text, taken } => {
                self.steers.insert(ticket, taken);
                self.see(Seen::Steer { ticket, text }).await;
            }
            Order::Interrupt => self.see(Seen::Interrupt).await,
            Order::Compact => self.see(Seen::Compact).await,
            Order::Type(bytes) => {
                // Before its first byte: what a person answers in the terminal is answered there.
                let moved = self.questions.yield_to_terminal();
                self.moved(moved).await;
                tell(&self.events, WorkerEvent::Typed);
                self.see(Seen::Typed(bytes)).await;
            }
            Order::Resize(size) => self.running.child.resize(size),
            Order::Stop { .. } => {}
        }
    }

    async fn hook(&mut self, arrival: Result<HookArrival, WorkerError>) {
        let HookArrival { mut record, reply } = match arrival {
            Ok(arrival) => arrival,
            Err(error) => return self.note(error.to_string()),
        };
        // An older CLI names the parent at the start of a fork, and itself only later.
        if self.parent.as_ref() == Some(&record.session_id) {
            record.session_id.clone_from(&self.session_id);
            record.transcript_path = None;
        }
        let (seen, fact) = heard(&record);
        match &record.event {
            HookEvent::SessionStart { .. } => {
                self.running.dialogs.leave_to_the_person();
                if self.session_id != record.session_id {
                    self.session_id.clone_from(&record.session_id);
                    self.running.live.follow(&record.session_id);
                }
                if let Some(path) = &record.transcript_path {
                    self.running.transcript.follow(path);
                }
            }
            HookEvent::PreToolUse { tool, tool_use_id } => {
                self.questions.announce(tool_use_id, tool);
            }
            HookEvent::PermissionRequest { tool, .. } => {
                let moved = self.questions.asker_moved_on(record.agent_id.as_deref());
                self.moved(moved).await;
                let by = if record.agent_id.is_some() { AskedBy::Agent } else { AskedBy::Turn };
                self.see(Seen::Hook(HookSeen::PermissionAsked { by })).await;
                if let Some(reply) = reply {
                    let kind = record.agent_type.filter(|kind| !kind.is_empty());
                    let agent = record.agent_id.map(|id| AskingAgent { id, kind });
                    let asked = self.questions.hold(tool, agent, reply);
                    tell(&self.events, WorkerEvent::Asked(asked));
                }
                return;
            }
            HookEvent::PostToolUse { tool_use_id, .. }
            | HookEvent::PostToolUseFailure { tool_use_id, .. } => {
                let moved = self.questions.settled(tool_use_id);
                self.moved(moved).await;
            }
            HookEvent::SubagentStop { .. } if record.agent_id.is_some() => {
                let moved = self.questions.asker_moved_on(record.agent_id.as_deref());
                self.moved(moved).await;
            }
            // Nobody submits anything while a dialog stands.
            HookEvent::UserPromptSubmit { .. } => {
                let moved = self.questions.all_settled();
                self.moved(moved).await;
            }
            _ => {}
        }
        self.see(Seen::Hook(seen)).await;
        match fact {
            Some(Fact::ToolStarted { id, input }) => {
                let at = Instant::now() + self.timings.ask_lag;
                let fact = Fact::ToolStarted { id: id.clone(), input };
                self.starting.push_back(Starting { id, at, fact, prompt_id: record.prompt_id });
            }
            Some(fact) => {
                if let Fact::ToolEnded { id, .. } = &fact {
                    self.started(|start| start.id == *id).await;
                }
                self.see(Seen::Live { fact, prompt_id: record.prompt_id }).await;
            }
            None => {}
        }
    }

    /// Tells that those tools run that meet the condition.
    async fn started(&mut self, runs: impl Fn(&Starting) -> bool) {
        let (told, kept) = std::mem::take(&mut self.starting).into_iter().partition(runs);
        self.starting = kept;
        let told: VecDeque<Starting> = told;
        for Starting { fact, prompt_id, .. } in told {
            self.see(Seen::Live { fact, prompt_id }).await;
        }
    }

    async fn moved(&mut self, moved: Vec<Moved>) {
        for moved in moved {
            match moved {
                Moved::Settled(by) => {
                    self.see(Seen::Hook(HookSeen::PermissionSettled { by })).await;
                }
                Moved::Changed { by, tool_use_id, input } => {
                    self.runs_with(tool_use_id.as_deref(), &input);
                    self.see(Seen::Hook(HookSeen::PermissionSettled { by })).await;
                }
                Moved::Retired(tool_use_id) => {
                    tell(&self.events, WorkerEvent::AskedRetired { tool_use_id });
                }
            }
        }
    }

    /// A call that was announced runs with another input.
    fn runs_with(&mut self, id: Option<&str>, changed: &str) {
        for start in self.starting.iter_mut().filter(|start| Some(start.id.as_str()) == id) {
            if let Fact::ToolStarted { input, .. } = &mut start.fact {
                changed.clone_into(input);
            }
        }
    }

    async fn told(&mut self, told: Told) {
        let mut seen = Vec::new();
        match told {
            Told::Read(event) => self.read(event, &mut seen),
            Told::Agent(fact) => seen.push(Seen::Record(fact)),
        }
        for seen in seen {
            self.see(seen).await;
        }
    }

    /// What the machine is shown of something that was read.
    fn read(&mut self, event: ReaderEvent, seen: &mut Vec<Seen>) {
        match event {
            // The story of a sub-agent is told by its own follower.
            ReaderEvent::Record(record)
                if self.running.transcript.is_copy(&record)
                    || record.sidechain
                    || record.facts.is_empty() =>
            {
                seen.push(Seen::Traffic);
            }
            ReaderEvent::Record(record) => {
                for fact in record.facts {
                    self.note_result(&fact, seen);
                    let in_order = self.in_order.pass(fact);
                    self.pass(in_order, seen);
                }
            }
            ReaderEvent::Broken { offset, message } => self.note(format!(
                "A line of Claude Code's transcript at byte {offset} cannot be read: {message}"
            )),
            ReaderEvent::Refused { offset, error } => {
                self.note(format!(
                    "{error}; the line at byte {offset} of the transcript is left out"
                ));
            }
            ReaderEvent::Restarted => tell(&self.events, WorkerEvent::TranscriptRestarted),
            ReaderEvent::Unreadable(error) => self.note(error.to_string()),
        }
    }

    fn pass(&mut self, facts: Vec<Fact>, seen: &mut Vec<Seen>) {
        for fact in facts {
            seen.extend(self.running.transcript.pass(fact).into_iter().map(Seen::Record));
        }
    }

    /// A result settles its question, and an answer shows whether the tap sees anything.
    fn note_result(&mut self, fact: &Fact, seen: &mut Vec<Seen>) {
        let moved = match fact {
            Fact::ToolResult { id, .. } => self.questions.settled(id),
            Fact::AgentDone { agent, .. } => self.questions.asker_moved_on(Some(agent)),
            Fact::Block { .. } => {
                self.answered_untapped |=
                    self.running.live.is_tapped() && !self.running.live.has_seen;
                return;
            }
            _ => return,
        };
        for moved in moved {
            match moved {
                Moved::Settled(by) | Moved::Changed { by, .. } => {
                    seen.push(Seen::Hook(HookSeen::PermissionSettled { by }));
                }
                Moved::Retired(tool_use_id) => {
                    tell(&self.events, WorkerEvent::AskedRetired { tool_use_id });
                }
            }
        }
    }

    async fn tapped(&mut self, tapped: Tapped) {
        match tapped {
            Tapped::Fact { agent: None, fact } => {
                self.see(Seen::Live { fact: *fact, prompt_id: None }).await;
            }
            Tapped::Fact { .. } | Tapped::RequestBegan { .. } | Tapped::RequestEnded { .. } => {
                self.see(Seen::Traffic).await;
            }
        }
    }

    fn write_next(&mut self) {
        if self.writing.is_none()
            && let Some(bytes) = self.unwritten.pop_front()
        {
            let input = self.running.child.input().clone();
            self.writing = Some(Box::pin(async move { input.write(&bytes).await }));
        }
    }

    async fn written(&mut self, written: Result<(), WorkerError>) {
        let seen = match written {
            Ok(()) => Seen::Written,
            Err(WorkerError::NotReading { accepted, total, .. }) => {
                Seen::WriteFailed { accepted, total }
            }
            // It has ended: its exit comes next and answers whoever waits, with the reason.
            Err(_) => return,
        };
        self.see(seen).await;
    }

    /// Shows something to the machine and does what it wants, and what follows from that.
    async fn see(&mut self, seen: Seen) {
        let mut waiting = VecDeque::from([seen]);
        while let Some(seen) = waiting.pop_front() {
            let steps = self.machine.see(Instant::now(), seen);
            for step in steps {
                self.perform(step, &mut waiting).await;
            }
        }
    }

    async fn perform(&mut self, step: Step, waiting: &mut VecDeque<Seen>) {
        match step {
            Step::Write(bytes) => self.unwritten.push_back(bytes),
            Step::ReadScreen => {
                let screen = self.running.child.screen().text();
                waiting.push_back(Seen::Screen(self.running.dialogs.read(screen)));
            }
            Step::CatchUp => {
                let mut seen = Vec::new();
                for event in self.running.transcript.catch_up().await {
                    self.read(event, &mut seen);
                }
                let left = self.in_order.flush();
                self.pass(left, &mut seen);
                waiting.extend(seen);
                waiting.push_back(Seen::CaughtUp);
            }
            Step::Tell(event) => self.tell(*event, waiting),
            Step::SubmitAnswered { ticket, result } => {
                if let Some(taken) = self.submits.remove(&ticket) {
                    let _ = taken.send(result);
                }
            }
            Step::SteerAnswered { ticket, result } => {
                if let Some(taken) = self.steers.remove(&ticket) {
                    let _ = taken.send(result);
                }
            }
            Step::GiveUp(error) => self.given_up = Some(error),
        }
    }

    fn tell(&mut self, event: WorkerEvent, waiting: &mut VecDeque<Seen>) {
        let transcript = &self.running.transcript;
        let moved = match &event {
            WorkerEvent::TurnEnded { end: TurnEnd::Completed { .. }, .. } => {
                // What of it still asks goes on after it.
                Some(self.questions.turn_over(|_| true))
            }
            WorkerEvent::TurnEnded { .. } => {
                Some(self.questions.turn_over(|agent| transcript.is_in_background(agent)))
            }
            WorkerEvent::SessionChanged { .. } => Some(self.questions.all_settled()),
            _ => None,
        };
        if let Some(moved) = moved {
            self.starting.clear();
            for moved in moved {
                match moved {
                    Moved::Settled(by) | Moved::Changed { by, .. } => {
                        waiting.push_back(Seen::Hook(HookSeen::PermissionSettled { by }));
                    }
                    Moved::Retired(tool_use_id) => {
                        tell(&self.events, WorkerEvent::AskedRetired { tool_use_id });
                    }
                }
            }
            if std::mem::take(&mut self.answered_untapped) && self.host.tap_saw_nothing() {
                self.note(
                    "Claude Code does not go through the tap (its own settings name another address), so its text comes in whole blocks; workers.tap = false silences this".to_owned(),
                );
            }
        }
        tell(&self.events, event);
    }

    fn note(&self, text: String) {
        let fact = Fact::Notice { text };
        tell(&self.events, WorkerEvent::Fact { fact, unasked: false });
    }

    /// The last that was seen of it.
    fn words(&self) -> String {
        let screen = self.running.child.screen();
        let text = screen.text();
        if text.trim().is_empty() { screen.tail() } else { text }
    }
}
