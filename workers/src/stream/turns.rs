//! What the lines of the CLI mean for orders and turns: a pure machine. What was seen and ordered
//! goes in, [`Step`]s come out. It knows no process and no task, and time only as it is told.
//!
//! The CLI begins a turn by itself when a task in the background has ended. A turn that begins while
//! such a task may have ended is ours only once our own prompt was echoed in it.

mod clock;
mod orders;
mod questions;

use std::collections::HashSet;
use std::time::Instant;

use tokio::sync::oneshot;

use questions::Question;

use super::codec::{Outcome, StreamMessage};
use super::process::NotTaken;
use super::write;
use crate::error::WorkerError;
use crate::event::{SteerError, TurnEnd, WorkerEvent};
use crate::fact::{DeniedBy, Fact, FailureKind, PromptSource};
use crate::timings::Timings;

/// The request that opens the conversation.
const OPENING: &str = "open";
/// The CLI's own order for a compaction.
const COMPACT: &str = "/compact";

/// What is to be done.
#[derive(Debug)]
pub(super) enum Step {
    Write {
        line: String,
        why: Why,
    },
    Tell(WorkerEvent),
    Ask {
        request_id: String,
        tool_use_id: Option<String>,
        tool_name: String,
        input: String,
        agent: Option<String>,
    },
    /// Nobody waits for this answer any more.
    Forget {
        request_id: String,
    },
    /// The process is of no use any more.
    GiveUp(WorkerError),
}

/// What a line was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Opening,
    Prompt,
    /// The number of the steered prompt.
    Steer(u64),
    Answer,
    Interrupt,
    Compact,
}

/// A prompt that waits for its turn.
struct Submission {
    text: String,
    taken: oneshot::Sender<Result<(), WorkerError>>,
    since: Instant,
    /// When its line was written; none while another turn runs.
    written: Option<Instant>,
    /// The CLI had closed its input: it cannot have taken it.
    refused: bool,
}

/// A prompt that was written into the running turn.
struct Steered {
    number: u64,
    text: String,
    taken: oneshot::Sender<Result<(), SteerError>>,
}

struct Turn {
    kind: Kind,
    /// Whether it is known whose turn this is.
    identified: bool,
    /// When it was told to stop.
    interrupted_at: Option<Instant>,
    /// Its records say that it was stopped.
    saw_interrupt: bool,
    compacted: bool,
    last_sign: Instant,
    /// It is over, but a prompt that was sent into it becomes the next one: since when that is
    /// waited for, and how it ended.
    over: Option<(Instant, TurnEnd)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Prompt,
    Compaction,
    Unasked,
}

/// How far a compaction that was ordered is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compaction {
    None,
    /// It waits for the end of another turn.
    Ordered,
    Written(Instant),
}

/// Orders, turns and questions of one process.
pub(super) struct Turns {
    timings: Timings,
    session_id: String,
    version: String,
    started: Instant,
    ready: bool,
    turn: Option<Turn>,
    submission: Option<Submission>,
    compaction: Compaction,
    steers: Vec<Steered>,
    questions: Vec<Question>,
    denied: HashSet<String>,
    /// Sub-agents that go on when the turn is over.
    agents: HashSet<String>,
    /// A background task runs or has ended: the CLI may go on by itself.
    background: bool,
    /// What the last background task said at its end.
    last_done: String,
    /// A turn was given up; its late end is not one of the next.
    swallow: bool,
    /// Interrupts and steered prompts so far.
    count: u64,
    input_broken: Option<NotTaken>,
    steps: Vec<Step>,
}

impl Turns {
    pub fn new(timings: Timings, session_id: String, version: String, now: Instant) -> Self {
        let line = write::initialize(OPENING);
        Self {
            timings,
            session_id,
            version,
            started: now,
            ready: false,
            turn: None,
            submission: None,
            compaction: Compaction::None,
            steers: Vec::new(),
            questions: Vec::new(),
            denied: HashSet::new(),
            agents: HashSet::new(),
            background: false,
            last_done: String::new(),
            swallow: false,
            count: 0,
            input_broken: None,
            steps: vec![Step::Write { line, why: Why::Opening }],
        }
    }

    /// What is to be done now.
    pub fn steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    fn event(&mut self, event: WorkerEvent) {
        self.steps.push(Step::Tell(event));
    }

    fn write(&mut self, line: String, why: Why) {
        self.steps.push(Step::Write { line, why });
    }

    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether a prompt was handed over that has no end yet.
    pub fn may_have_run(&self) -> bool {
        let taken = |known: &Submission| known.written.is_some() && !known.refused;
        self.turn.is_some() || self.submission.as_ref().is_some_and(taken)
    }

    /// Takes what the CLI said.
    pub fn message(&mut self, now: Instant, message: StreamMessage) {
        if let Some(turn) = self.turn.as_mut() {
            turn.last_sign = now;
        }
        match message {
            StreamMessage::Init { session_id, version } => self.init(now, session_id, version),
            StreamMessage::Replayed { text } => self.replayed(now, text),
            StreamMessage::Facts(facts) => {
                for fact in facts {
                    self.fact(now, fact);
                }
            }
            StreamMessage::Question { request_id, tool_use_id, tool_name, input, agent } => {
                let (id, call) = (request_id.clone(), tool_use_id.clone());
                let question = Question {
                    request_id: id,
                    tool_use_id: call,
                    input: input.clone(),
                    agent: agent.clone(),
                    asked: now,
                };
                self.questions.push(question);
                self.steps.push(Step::Ask { request_id, tool_use_id, tool_name, input, agent });
            }
            StreamMessage::QuestionWithdrawn { request_id } => {
                self.retire(|question| question.request_id == request_id);
            }
            StreamMessage::OtherRequest { request_id, kind } => {
                let line = write::refuse(&request_id, &format!("{kind} is not supported here"));
                self.write(line, Why::Answer);
            }
            StreamMessage::Answer { request_id, error } if request_id == OPENING => {
                self.opened(now, error);
            }
            StreamMessage::Result(outcome) => self.result(now, outcome),
            StreamMessage::Answer { .. }
            | StreamMessage::Status { .. }
            | StreamMessage::Unknown { .. } => {}
        }
    }

    fn opened(&mut self, now: Instant, error: Option<String>) {
        if let Some(message) = error {
            self.steps.push(Step::GiveUp(WorkerError::Protocol(message)));
            return;
        }
        if !self.ready {
            self.ready = true;
            let (session_id, version) = (self.session_id.clone(), self.version.clone());
            self.event(WorkerEvent::Ready { session_id, version });
            self.go_on(now);
        }
    }

    /// A turn begins.
    fn init(&mut self, now: Instant, session_id: String, version: String) {
        if !version.is_empty() {
            self.version = version;
        }
        if !session_id.is_empty() && session_id != self.session_id {
            self.session_id.clone_from(&session_id);
            self.event(WorkerEvent::SessionChanged { session_id });
        }
        self.begin(now);
    }

    fn begin(&mut self, now: Instant) {
        if let Some(turn) = self.turn.as_mut() {
            // The prompt that was sent into the turn goes on as a part of it.
            turn.over = None;
            return;
        }
        if self.swallow {
            return;
        }
        let written = self.submission.as_ref().is_some_and(|known| known.written.is_some());
        let kind = match self.compaction {
            Compaction::Written(_) => Kind::Compaction,
            _ if written => Kind::Prompt,
            _ => Kind::Unasked,
        };
        self.turn = Some(Turn {
            kind,
            identified: kind != Kind::Prompt || !self.background,
            interrupted_at: None,
            saw_interrupt: false,
            compacted: false,
            last_sign: now,
            over: None,
        });
        match kind {
            Kind::Prompt if !self.background => self.delivered(),
            Kind::Unasked => self.unasked(),
            Kind::Prompt | Kind::Compaction => {}
        }
    }

    fn unasked(&mut self) {
        self.background = false;
        let text = std::mem::take(&mut self.last_done);
        self.event(WorkerEvent::UnaskedBegan { text });
    }

    fn delivered(&mut self) {
        if let Some(known) = self.submission.take() {
            let _ = known.taken.send(Ok(()));
            self.event(WorkerEvent::Delivered { prompt_id: None });
        }
    }

    /// One of our prompts went to the model.
    fn replayed(&mut self, now: Instant, text: String) {
        if let Some(at) = self.steers.iter().position(|known| known.text == text) {
            let steered = self.steers.remove(at);
            let _ = steered.taken.send(Ok(()));
            let source = PromptSource::Queued;
            self.begin(now);
            self.tell(Fact::Prompt { prompt_id: None, text, source });
            return;
        }
        if self.submission.as_ref().is_some_and(|known| known.text == text) {
            self.begin(now);
            if let Some(turn) = self.turn.as_mut().filter(|turn| turn.kind == Kind::Prompt) {
                turn.identified = true;
                self.delivered();
            }
        }
    }

    fn fact(&mut self, now: Instant, mut fact: Fact) {
        match &mut fact {
            Fact::AgentSpawned { agent, background, .. } => {
                self.background = true;
                if *background {
                    self.agents.insert(agent.clone());
                }
            }
            Fact::AgentDone { agent, summary, .. } => {
                self.agents.remove(agent);
                let agent = Some(agent.clone());
                self.retire(|question| question.agent == agent);
                self.background = true;
                self.last_done.clone_from(summary);
            }
            Fact::Interrupted { .. } => {
                if let Some(turn) = self.turn.as_mut() {
                    turn.saw_interrupt = true;
                }
            }
            Fact::Compacted { .. } => {
                if matches!(self.compaction, Compaction::Written(_)) {
                    self.begin(now);
                }
                if let Some(turn) = self.turn.as_mut() {
                    turn.compacted = true;
                }
            }
            Fact::ToolResult { id, denied, .. } => {
                if self.denied.remove(id) {
                    *denied = Some(DeniedBy::Person);
                }
                let id = id.clone();
                self.retire(|question| question.tool_use_id.as_ref() == Some(&id));
            }
            Fact::MessageBegan { .. } | Fact::Block { .. } => {
                self.begin(now);
                self.identify();
            }
            _ => {}
        }
        self.tell(fact);
    }

    /// The model speaks, and our prompt was not echoed before: this turn is not ours.
    fn identify(&mut self) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.identified) {
            turn.identified = true;
            turn.kind = Kind::Unasked;
            self.unasked();
        }
    }

    fn tell(&mut self, fact: Fact) {
        let unasked = self.turn.as_ref().is_none_or(|turn| turn.kind == Kind::Unasked);
        self.event(WorkerEvent::Fact { fact, unasked });
    }

    /// The CLI says that the turn is over.
    fn result(&mut self, now: Instant, outcome: Outcome) {
        if self.swallow {
            self.swallow = false;
            self.go_on(now);
            return;
        }
        // Some ends come without a beginning.
        self.begin(now);
        self.identify();
        let Some(turn) = self.turn.as_mut() else { return };
        let stopped = turn.interrupted_at.is_some() || turn.saw_interrupt;
        let end = match outcome {
            Outcome { broken: true, .. } if stopped => TurnEnd::Interrupted,
            Outcome { failure: Some(failure), .. } => TurnEnd::Failed(failure),
            Outcome { broken: true, text, .. } => {
                TurnEnd::Failed(Box::new(failed("error_during_execution", text)))
            }
            _ if turn.kind == Kind::Compaction && turn.compacted => TurnEnd::Compacted,
            Outcome { text, .. } if turn.kind == Kind::Compaction => {
                TurnEnd::Failed(Box::new(failed("not_compacted", text)))
            }
            Outcome { text, .. } => TurnEnd::Completed { last_message: text },
        };
        let follows = !self.steers.is_empty()
            && turn.kind == Kind::Prompt
            && matches!(end, TurnEnd::Completed { .. });
        if follows {
            turn.over = Some((now, end));
        } else {
            self.end(now, end);
        }
    }

    fn end(&mut self, now: Instant, end: TurnEnd) {
        let Some(turn) = self.turn.take() else { return };
        // What of a completed turn still asks goes on after it.
        let completed = matches!(end, TurnEnd::Completed { .. });
        let agents = std::mem::take(&mut self.agents);
        let goes_on = |agent: &String| completed || agents.contains(agent);
        self.retire(|question| !question.agent.as_ref().is_some_and(goes_on));
        self.agents = agents;
        self.denied.clear();
        for steered in self.steers.drain(..) {
            let _ = steered.taken.send(Err(SteerError::Uncertain));
        }
        if turn.kind == Kind::Compaction {
            self.compaction = Compaction::None;
        }
        if let Some(known) = self.submission.as_mut().filter(|known| known.written.is_some()) {
            // It waited behind this turn.
            known.written = Some(now);
        }
        let unasked = turn.kind == Kind::Unasked;
        self.event(WorkerEvent::TurnEnded { end, unasked });
        if let Some(line) = self.input_broken {
            self.steps.push(Step::GiveUp(self.not_reading(line)));
        }
        self.go_on(now);
    }

    /// The process is gone: every open order is answered.
    pub fn ended(&mut self, error: impl Fn() -> WorkerError) {
        self.retire(|_| true);
        if let Some(known) = self.submission.take() {
            let _ = known.taken.send(Err(error()));
        }
        for steered in self.steers.drain(..) {
            let _ = steered.taken.send(Err(SteerError::Uncertain));
        }
    }
}

fn failed(class: &str, text: Option<String>) -> Fact {
    Fact::ApiFailure {
        kind: FailureKind::Unknown(class.to_owned()),
        status: None,
        text: text.unwrap_or_else(|| class.replace('_', " ")),
        details: None,
        quota: None,
    }
}
