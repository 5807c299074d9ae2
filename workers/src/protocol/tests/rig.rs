//! Stands for the driver: executes steps at once, keeps what was written and told.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use claw_runtime::session::ContentBlock;

use super::super::{HookSeen, Machine, Reading, Seen, Step};
use crate::error::WorkerError;
use crate::event::{SteerError, TurnEnd, WorkerEvent};
use crate::fact::{Fact, FailureKind, PromptSource, Quota};
use crate::timings::Timings;

pub const SESSION: &str = "11111111-1111-4111-8111-111111111111";

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// One thing that the machine did, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Did {
    Wrote(String),
    Told(String),
    Submitted(Result<(), String>),
    Steered(u64, Result<(), SteerError>),
    GaveUp(String),
}

pub struct Rig {
    pub machine: Machine,
    pub now: Instant,
    pub begun: Instant,
    pub screen: Reading,
    /// Records that the next reading of the transcript will find.
    pub file: VecDeque<Fact>,
    /// With the milliseconds since the beginning.
    pub did: Vec<(u64, Did)>,
    pub facts: Vec<(Fact, bool)>,
    /// Writes are accepted at once.
    pub reads_stdin: bool,
    pub timings: Timings,
}

impl Rig {
    pub fn new() -> Self {
        Self::with(Timings::default())
    }

    pub fn with(timings: Timings) -> Self {
        let now = Instant::now();
        Self {
            machine: Machine::new(timings.clone(), SESSION.to_owned(), "2.1.332".to_owned()),
            now,
            begun: now,
            screen: plain(),
            file: VecDeque::new(),
            did: Vec::new(),
            facts: Vec::new(),
            reads_stdin: true,
            timings,
        }
    }

    /// One that is ready and settled.
    pub fn ready() -> Self {
        let mut rig = Self::new();
        rig.see(Seen::Spawned);
        rig.hook(start(SESSION));
        rig.pass(ms(1000));
        rig.did.clear();
        rig
    }

    /// One in whose own turn `prompt` runs under the id `p1`.
    pub fn running(prompt: &str) -> Self {
        let mut rig = Self::running_unrecorded(prompt);
        rig.see(Seen::Record(typed("p1", prompt)));
        rig.did.clear();
        rig.facts.clear();
        rig
    }

    /// The same before anything was read of it.
    pub fn running_unrecorded(prompt: &str) -> Self {
        let mut rig = Self::ready();
        rig.submit(prompt);
        rig.hook(submitted("p1", prompt));
        rig.did.clear();
        rig.facts.clear();
        rig
    }

    pub fn see(&mut self, seen: Seen) {
        let mut todo = VecDeque::from([seen]);
        while let Some(seen) = todo.pop_front() {
            for step in self.machine.see(self.now, seen) {
                self.execute(step, &mut todo);
            }
        }
    }

    fn execute(&mut self, step: Step, todo: &mut VecDeque<Seen>) {
        let did = match step {
            Step::Write(bytes) => {
                if self.reads_stdin {
                    todo.push_back(Seen::Written);
                }
                Did::Wrote(String::from_utf8(bytes).unwrap())
            }
            Step::ReadScreen => {
                todo.push_back(Seen::Screen(self.screen.clone()));
                return;
            }
            Step::CatchUp => {
                todo.extend(self.file.drain(..).map(Seen::Record));
                todo.push_back(Seen::CaughtUp);
                return;
            }
            Step::Tell(event) => match *event {
                WorkerEvent::Fact { fact, unasked } => {
                    let name = format!("{}{}", if unasked { "unasked " } else { "" }, brief(&fact));
                    self.facts.push((fact, unasked));
                    Did::Told(name)
                }
                other => Did::Told(said(&other)),
            },
            Step::SubmitAnswered { result, .. } => {
                Did::Submitted(result.map_err(|error| kind(&error)))
            }
            Step::SteerAnswered { ticket, result } => Did::Steered(ticket, result),
            Step::GiveUp(error) => Did::GaveUp(kind(&error)),
        };
        self.did.push((self.age(), did));
    }

    /// Milliseconds since the beginning.
    pub fn age(&self) -> u64 {
        u64::try_from((self.now - self.begun).as_millis()).unwrap()
    }

    pub fn hook(&mut self, hook: HookSeen) {
        self.see(Seen::Hook(hook));
    }

    pub fn record(&mut self, fact: Fact) {
        self.see(Seen::Record(fact));
    }

    /// Lets time pass, with a tick at every deadline on the way.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut ticks = 0;
        while let Some(at) = self.machine.deadline().filter(|at| *at <= end) {
            self.now = at.max(self.now);
            self.see(Seen::Tick);
            ticks += 1;
            assert!(ticks < 10_000, "a deadline that never goes away: {:?}", self.machine);
        }
        self.now = end;
    }

    pub fn submit(&mut self, text: &str) {
        self.see(Seen::Submit { ticket: 1, text: text.to_owned() });
        self.pass(self.timings.paste_to_cr);
    }

    pub fn steer(&mut self, ticket: u64, text: &str) {
        self.see(Seen::Steer { ticket, text: text.to_owned() });
        self.pass(self.timings.paste_to_cr);
    }

    pub fn did(&self) -> Vec<Did> {
        self.did.iter().map(|(_, did)| did.clone()).collect()
    }

    pub fn wrote(&self) -> Vec<String> {
        let wrote = |did| if let Did::Wrote(text) = did { Some(text) } else { None };
        self.did().into_iter().filter_map(wrote).collect()
    }

    pub fn told(&self) -> Vec<String> {
        let told = |did| if let Did::Told(text) = did { Some(text) } else { None };
        self.did().into_iter().filter_map(told).collect()
    }

    /// What was told, without the facts.
    pub fn ends(&self) -> Vec<String> {
        self.told().into_iter().filter(|told| told.starts_with("end ")).collect()
    }

    pub fn take(&mut self) -> Vec<Did> {
        let did = self.did();
        self.did.clear();
        did
    }
}

pub fn plain() -> Reading {
    Reading::Plain { screen: "> ".to_owned() }
}

pub fn dialog(title: &str) -> Reading {
    Reading::Theirs { title: title.to_owned(), screen: format!("{title}\n> 1. Yes") }
}

pub fn pasted(text: &str) -> String {
    format!("\x1b[200~{text}\x1b[201~")
}

pub fn start(session_id: &str) -> HookSeen {
    HookSeen::SessionStart { session_id: session_id.to_owned(), source: "startup".to_owned() }
}

pub fn submitted(id: &str, prompt: &str) -> HookSeen {
    HookSeen::UserPromptSubmit { prompt_id: Some(id.to_owned()), prompt: prompt.to_owned() }
}

pub fn stop(id: &str, last: &str) -> HookSeen {
    HookSeen::Stop { prompt_id: Some(id.to_owned()), last_message: Some(last.to_owned()) }
}

pub fn stop_failure(id: &str, class: &str) -> HookSeen {
    HookSeen::StopFailure {
        prompt_id: Some(id.to_owned()),
        class: class.to_owned(),
        text: "the hook's words".to_owned(),
        details: None,
    }
}

fn prompt(id: &str, text: &str, source: PromptSource) -> Fact {
    Fact::Prompt { prompt_id: Some(id.to_owned()), text: text.to_owned(), source }
}

pub fn typed(id: &str, text: &str) -> Fact {
    prompt(id, text, PromptSource::Typed)
}

pub fn queued(id: &str, text: &str) -> Fact {
    prompt(id, text, PromptSource::Queued)
}

pub fn notification(id: &str, text: &str) -> Fact {
    prompt(id, text, PromptSource::Notification)
}

pub fn says(text: &str) -> Fact {
    block(ContentBlock::Text { text: text.to_owned() })
}

pub fn uses_tool(id: &str) -> Fact {
    block(ContentBlock::ToolUse {
        id: id.to_owned(),
        name: "Bash".to_owned(),
        input: "{}".to_owned(),
    })
}

fn block(content: ContentBlock) -> Fact {
    Fact::Block {
        message: "m".to_owned(),
        block: None,
        content,
        model: None,
        usage: None,
        stop_reason: None,
        aborted: false,
    }
}

pub fn tool_result(id: &str) -> Fact {
    Fact::ToolResult {
        id: id.to_owned(),
        output: "done".to_owned(),
        is_error: false,
        facts: None,
        denied: None,
    }
}

pub fn duration() -> Fact {
    Fact::TurnDuration { duration: ms(5), pending_agents: 0 }
}

pub fn enqueued(text: &str) -> Fact {
    Fact::Enqueued { content: text.to_owned() }
}

pub fn absorbed(text: &str) -> Fact {
    Fact::Removed { content: Some(text.to_owned()), absorbed: true }
}

pub fn failure(kind: FailureKind, quota: Option<&str>) -> Fact {
    let quota =
        quota.map(|status| Quota { status: status.to_owned(), resets_at: Some(1), kind: None });
    Fact::ApiFailure {
        kind,
        status: Some(429),
        text: "the record's words".to_owned(),
        details: None,
        quota,
    }
}

/// A short name of a fact.
fn brief(fact: &Fact) -> String {
    match fact {
        Fact::Prompt { text, .. } => format!("prompt {text}"),
        Fact::Block { content: ContentBlock::Text { text }, .. } => format!("says {text}"),
        Fact::TextDelta { text, .. } => format!("delta {text}"),
        other => {
            let name = format!("{other:?}");
            name.split([' ', '(', '{']).next().unwrap().to_owned()
        }
    }
}

fn said(event: &WorkerEvent) -> String {
    match event {
        WorkerEvent::Ready { session_id, version } => format!("ready {session_id} {version}"),
        WorkerEvent::Delivered { prompt_id } => {
            format!("delivered {}", prompt_id.as_deref().unwrap_or("queued"))
        }
        WorkerEvent::UnaskedBegan { text } => format!("unasked {text}"),
        WorkerEvent::TurnEnded { end, unasked } => {
            let end = match end {
                TurnEnd::Completed { last_message } => {
                    format!("completed {}", last_message.as_deref().unwrap_or("nothing"))
                }
                TurnEnd::Failed(fact) => match fact.as_ref() {
                    Fact::ApiFailure { kind, text, .. } => format!("failed {kind:?} {text}"),
                    other => panic!("{other:?}"),
                },
                other => format!("{other:?}"),
            };
            format!("end {}{end}", if *unasked { "unasked " } else { "" })
        }
        WorkerEvent::SessionChanged { session_id } => format!("session {session_id}"),
        WorkerEvent::AtDialog { title, .. } => format!("dialog {title}"),
        other => panic!("{other:?}"),
    }
}

fn kind(error: &WorkerError) -> String {
    let name = format!("{error:?}");
    match error {
        WorkerError::Crashed { may_have_run, .. } => format!("Crashed may_have_run={may_have_run}"),
        WorkerError::NotReading { accepted, total, .. } => format!("NotReading {accepted}/{total}"),
        WorkerError::Dialog { title, .. } => format!("Dialog {title}"),
        _ => name.split([' ', '(', '{']).next().unwrap().to_owned(),
    }
}
