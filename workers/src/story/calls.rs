//! Tool calls as they are told: started only after the model's call, ended before the result.

use std::time::Duration;

use claw_runtime::tools::{ToolFacts, ToolOutcome};
use claw_runtime::{StreamSink, TuiEvent};
use serde_json::Value;

use crate::fact::DeniedBy;

/// The calls of one turn.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// Sub-agents whose start was told: the call says it, and its receipt says it again.
    spawned: Vec<String>,
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    /// Number of the message that made it, from 1.
    iteration: usize,
    /// As the model wrote it; none before its record.
    input: Option<String>,
    /// As it ran, when that was told.
    ran_with: Option<String>,
    ended: Option<(bool, Option<Duration>)>,
    told: Told,
}

/// How far a call was told.
#[derive(Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    #[default]
    Nothing,
    Begun,
    Use,
    Started,
    Ended,
    Result,
}

/// A result as it was recorded.
pub(super) struct Given {
    pub name: String,
    pub output: String,
    pub is_error: bool,
    pub facts: Option<ToolFacts>,
    pub denied: Option<DeniedBy>,
}

/// What is known of a command that was stopped while it ran.
pub(super) fn stopped_command() -> ToolFacts {
    ToolFacts::Command {
        exit_code: None,
        signal: None,
        timed_out: false,
        cancelled: true,
        omitted_bytes: 0,
        lines: None,
    }
}

impl Calls {
    /// Whether it was told that this call runs.
    pub fn ran(&self, id: &str) -> bool {
        self.calls.iter().any(|call| call.id == id && call.ran_with.is_some())
    }

    fn call(&mut self, id: &str) -> &mut Call {
        let known = self.calls.iter().rposition(|call| call.id == id);
        let at = known.unwrap_or_else(|| {
            self.calls.push(Call { id: id.to_owned(), ..Call::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    /// The model began to write a call.
    pub fn begun(&mut self, id: &str, name: &str, iteration: usize, sink: &dyn StreamSink) {
        let call = self.call(id);
        if call.told == Told::Nothing {
            call.told = Told::Begun;
            name.clone_into(&mut call.name);
            call.iteration = iteration;
            sink.emit(TuiEvent::ToolUseStarted { id: id.to_owned(), name: name.to_owned() });
        }
    }

    /// The model's call is complete.
    pub fn made(
        &mut self,
        id: &str,
        name: &str,
        input: &str,
        iteration: usize,
        sink: &dyn StreamSink,
    ) {
        self.begun(id, name, iteration, sink);
        let call = self.call(id);
        if call.told == Told::Begun {
            call.told = Told::Use;
            call.input = Some(input.to_owned());
            let (id, name, input) = (id.to_owned(), name.to_owned(), input.to_owned());
            sink.emit(TuiEvent::ToolUse { id, name, input });
        }
        call.tell_run(sink);
    }

    pub fn started(&mut self, id: &str, input: String, sink: &dyn StreamSink) {
        let call = self.call(id);
        if call.told < Told::Result {
            call.ran_with = Some(input);
            call.tell_run(sink);
        }
    }

    pub fn ended(
        &mut self,
        id: &str,
        is_error: bool,
        elapsed: Option<Duration>,
        sink: &dyn StreamSink,
    ) {
        let call = self.call(id);
        call.ended.get_or_insert((is_error, elapsed));
        call.tell_run(sink);
    }

    /// The result as it was recorded: the end of the call.
    pub fn result(&mut self, id: &str, given: Given, sink: &dyn StreamSink) {
        let call = self.call(id);
        if call.told == Told::Result {
            return;
        }
        if call.told == Told::Started && call.ended.is_none() {
            call.ended = Some((given.is_error, None));
        }
        call.tell_run(sink);
        call.told = Told::Result;
        let elapsed = call.ended.and_then(|(_, elapsed)| elapsed).unwrap_or_default();
        sink.emit(TuiEvent::ToolResult {
            iteration: call.iteration,
            // The CLI has no limit of ours.
            max_iterations: call.iteration,
            id: id.to_owned(),
            name: given.name,
            input: call.ran_with.take().or_else(|| call.input.take()).unwrap_or_default(),
            outcome: ToolOutcome {
                output: given.output,
                is_error: given.is_error,
                facts: given.facts,
                elapsed,
            },
            denied: given.denied.is_some(),
        });
    }

    /// Whether a call that was told waits for its result.
    pub fn any_open(&self) -> bool {
        self.calls.iter().any(|call| call.told > Told::Nothing && call.told < Told::Result)
    }

    /// Whether the call waits for its result.
    pub fn is_open(&self, id: &str) -> bool {
        self.calls.iter().rfind(|call| call.id == id).is_none_or(|call| call.told < Told::Result)
    }

    /// Calls that were begun and never became whole.
    pub fn incomplete(&mut self, sink: &dyn StreamSink) {
        for call in self.calls.iter_mut().filter(|call| call.told == Told::Begun) {
            call.told = Told::Result;
            let (id, name) = (call.id.clone(), call.name.clone());
            sink.emit(TuiEvent::ToolUseIncomplete { id, name });
        }
    }

    /// A sub-agent was launched: shown at its call where there is one.
    pub fn agent_spawned(
        &mut self,
        id: Option<&str>,
        kind: Option<&str>,
        background: bool,
        agent: &str,
        sink: &dyn StreamSink,
    ) {
        let key = id.unwrap_or(agent);
        if self.spawned.iter().any(|known| known == key) {
            return;
        }
        self.spawned.push(key.to_owned());
        let input =
            id.and_then(|id| self.calls.iter().find(|call| call.id == id)?.input.as_deref());
        let input: Value =
            input.and_then(|input| serde_json::from_str(input).ok()).unwrap_or_default();
        let kind = kind.or_else(|| input["subagent_type"].as_str()).unwrap_or(agent);
        let how = if background { "in the background" } else { "and waited for" };
        let text = format!("sub-agent {kind} started {how}");
        match id.filter(|id| self.is_open(id)) {
            Some(id) => sink.emit(TuiEvent::ToolOutput { id: id.to_owned(), text: text + "\n" }),
            None => sink.emit(TuiEvent::info(text)),
        }
    }
}

impl Call {
    /// Tells that it ran and that it is over, as far as both are known and its use was told.
    fn tell_run(&mut self, sink: &dyn StreamSink) {
        if self.told == Told::Use && (self.ran_with.is_some() || self.ended.is_some()) {
            self.told = Told::Started;
            let input = self.ran_with.as_ref().or(self.input.as_ref());
            sink.emit(TuiEvent::ToolStarted {
                iteration: self.iteration,
                id: self.id.clone(),
                name: self.name.clone(),
                input: input.cloned().unwrap_or_default(),
            });
        }
        if self.told == Told::Started
            && let Some((is_error, elapsed)) = self.ended
        {
            self.told = Told::Ended;
            let (id, elapsed) = (self.id.clone(), elapsed.unwrap_or_default());
            sink.emit(TuiEvent::ToolEnded { id, is_error, elapsed });
        }
    }
}
