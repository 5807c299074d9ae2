//! Facts of a turn in, the runtime's events and the messages for the session out.
//!
//! What is live may be missing, late or absent; what the records say is the truth. Each block is
//! told once: as it streams, and then only what its record has beyond that. The session is made
//! from records alone, so it does not depend on what was live. Pure: no clock, no waits. Refuses to
//! decide when a turn is over, and to know where facts come from.

mod block;
mod calls;
mod ledger;
mod notices;
mod telling;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use claw_runtime::StreamSink;
use claw_runtime::TuiEvent;
use claw_runtime::api::{AssistantTurn, StopReason};
use claw_runtime::session::{ContentBlock, PartialReason};
use claw_runtime::tools::ToolFacts;
use jiff::tz::TimeZone;

use crate::fact::{DeniedBy, Fact, PromptSource};
use calls::Calls;
use ledger::Ledger;
use notices::Notices;
use telling::Telling;

/// Live facts that wait for earlier records. With more of them waiting the records count as lost,
/// and what is live is told as it came.
const MOST_HELD: usize = 256;

/// How the turn of a story ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Normally. `last_message`: the CLI's own copy of its last message, for the case that its
    /// record never came.
    Completed { last_message: Option<String> },
    /// The person stopped it.
    Interrupted,
    /// The API failed, or the process ended.
    Failed,
}

/// The story of a worker's turns, one after the other.
pub struct Story {
    notices: Notices,
    telling: Telling,
    ledger: Ledger,
    calls: Calls,
    held: VecDeque<Fact>,
    /// The turn that is told was asked for here, so its typed prompt is known already.
    asked: bool,
    /// Its compaction was ordered here, so the runtime tells the numbers.
    compacting: bool,
    compacted: bool,
}

impl Default for Story {
    fn default() -> Self {
        Self::new()
    }
}

impl Story {
    /// A story that says times in the local zone.
    pub fn new() -> Self {
        Self::in_zone(TimeZone::system())
    }

    pub(crate) fn in_zone(zone: TimeZone) -> Self {
        Self {
            notices: Notices::new(zone),
            telling: Telling::default(),
            ledger: Ledger::default(),
            calls: Calls::default(),
            held: VecDeque::new(),
            asked: true,
            compacting: false,
            compacted: false,
        }
    }

    /// The turn that begins was not asked for here: words that were typed elsewhere belong into the
    /// session too. Holds until the next [`Story::finish`].
    pub fn begin_unasked(&mut self) {
        self.asked = false;
    }

    /// What comes is a compaction that was ordered here: who ordered it tells its numbers. Holds until
    /// the next [`Story::finish`].
    pub fn begin_compaction(&mut self) {
        self.compacting = true;
    }

    /// Whether anything of the turn is in the session's part of the story already.
    pub fn has_messages(&self) -> bool {
        !self.ledger.is_empty()
    }

    /// Takes in one fact and tells what follows from it.
    pub fn tell(&mut self, fact: Fact, sink: &dyn StreamSink) {
        match fact {
            Fact::MessageBegan { .. }
            | Fact::ThinkingBegan { .. }
            | Fact::ThinkingDelta { .. }
            | Fact::TextDelta { .. }
            | Fact::ToolUseBegan { .. }
            | Fact::BlockEnded { .. }
            | Fact::MessageEnded { .. }
            | Fact::Lines { .. } => self.live(fact, sink),
            Fact::Retry { attempt, max_attempts, wait, reason } => {
                self.telling.broke_off(sink);
                sink.emit(TuiEvent::Retrying { attempt, max_attempts, wait, reason });
                self.catch_up(sink);
            }
            Fact::ToolStarted { id, input } => self.calls.started(&id, input, sink),
            Fact::ToolEnded { id, is_error, elapsed } => {
                self.calls.ended(&id, is_error, elapsed, sink);
            }
            record => self.record(record, sink),
        }
    }

    fn live(&mut self, fact: Fact, sink: &dyn StreamSink) {
        let waits = !self.held.is_empty() || !self.telling.may_tell(&fact, &self.calls);
        if !waits {
            self.telling.live(fact, &mut self.calls, sink);
            return;
        }
        self.held.push_back(fact);
        if self.held.len() > MOST_HELD {
            self.tell_all_held(sink);
        }
    }

    /// Tells what waited and need not wait any more.
    fn catch_up(&mut self, sink: &dyn StreamSink) {
        while let Some(fact) = self.held.pop_front() {
            if !self.telling.may_tell(&fact, &self.calls) {
                self.held.push_front(fact);
                return;
            }
            self.telling.live(fact, &mut self.calls, sink);
        }
    }

    fn tell_all_held(&mut self, sink: &dyn StreamSink) {
        for fact in std::mem::take(&mut self.held) {
            self.telling.live(fact, &mut self.calls, sink);
        }
    }

    fn record(&mut self, fact: Fact, sink: &dyn StreamSink) {
        match fact {
            Fact::Block { message, block, content, model, usage, stop_reason, aborted } => {
                // What the CLI makes up itself has no model.
                let made_up = model.is_none();
                let cut_off = if made_up { self.telling.cut_off(&message, &content) } else { None };
                if !self.ledger.block(&message, block, &content, model, usage, aborted) {
                    return;
                }
                let reason = if aborted || cut_off.is_some() {
                    Some(StopReason::Cancelled)
                } else {
                    stop_reason.map(telling::stop_reason_of)
                };
                let (message, block) =
                    cut_off.map_or((message, block), |(message, block)| (message, Some(block)));
                self.telling.record(&message, block, &content, reason, &mut self.calls, sink);
            }
            Fact::Usage { message, usage } => self.ledger.usage(&message, usage),
            Fact::ToolResult { id, output, is_error, facts, denied } => {
                // A call that ran was not denied: the person stopped it, and the CLI has the same words
                // for both.
                let stopped = denied == Some(DeniedBy::Person) && self.calls.ran(&id);
                let denied = denied.filter(|_| !stopped);
                let facts = facts
                    .or(denied.map(|_| ToolFacts::Denied))
                    .or_else(|| stopped.then(calls::stopped_command));
                let Some(name) = self.ledger.result(&id, &output, is_error, facts.clone()) else {
                    return;
                };
                self.telling.stop_messages(sink);
                let result = calls::Given { name, output, is_error, facts, denied };
                self.calls.result(&id, result, sink);
            }
            Fact::Prompt { text, source, .. } => self.prompt(text, source, sink),
            Fact::Compacted { automatic, before_tokens, after_tokens } => {
                self.compacted = true;
                self.telling.stop_messages(sink);
                if automatic || !self.compacting {
                    notices::compacted(automatic, before_tokens, after_tokens, sink);
                }
            }
            Fact::Quota(quota) | Fact::ApiFailure { quota: Some(quota), .. } => {
                self.notices.quota(quota, sink);
            }
            Fact::Notice { text } => notices::words(&text, sink),
            // The words of a compaction say what its numbers say better.
            Fact::CommandOutput { text } if !self.compacted => notices::words(&text, sink),
            Fact::AgentSpawned { agent, tool_use_id, kind, background } => {
                let call = tool_use_id.as_deref();
                self.calls.agent_spawned(call, kind.as_deref(), background, &agent, sink);
            }
            Fact::AgentProgress { tool_use_id: Some(id), text, .. } => {
                sink.emit(TuiEvent::ToolOutput { id, text: notices::line(&text) });
            }
            Fact::AgentDone { status, summary, .. } => {
                notices::agent_done(status, &summary, sink);
            }
            // What else is recorded moves the protocol, not the story.
            _ => {}
        }
        self.catch_up(sink);
    }

    fn prompt(&mut self, text: String, source: PromptSource, sink: &dyn StreamSink) {
        match source {
            PromptSource::Queued => self.ledger.prompt(text),
            PromptSource::Typed if !self.asked => self.ledger.prompt(text),
            PromptSource::Typed
            | PromptSource::Notification
            | PromptSource::Hidden
            | PromptSource::Summary
            | PromptSource::Command => {}
        }
        self.telling.stop_messages(sink);
        self.telling.settle();
    }

    /// Ends the turn: tells what is left, gives every tool use a result, and returns what belongs
    /// into the session. The story then waits for the next turn.
    pub fn finish(&mut self, ending: &Ending, sink: &dyn StreamSink) -> AssistantTurn {
        self.tell_all_held(sink);
        if let Ending::Completed { last_message: Some(text) } = ending {
            self.add_unrecorded_end(text, sink);
        }
        for (message, text) in self.telling.unrecorded() {
            self.ledger.block(&message, None, &ContentBlock::Text { text }, None, None, false);
        }
        let partial = match ending {
            Ending::Completed { .. } => None,
            Ending::Interrupted => Some(PartialReason::Cancelled),
            Ending::Failed => Some(PartialReason::Cut),
        };
        self.answer_open_calls(partial, sink);
        let reason = match ending {
            Ending::Interrupted => Some(StopReason::Cancelled),
            Ending::Completed { .. } | Ending::Failed => None,
        };
        let last = self.telling.finish(reason, sink);
        self.ledger.mark(partial);
        let turn = AssistantTurn {
            messages: self.ledger.take(),
            stop_reason: match last {
                // Every call has its result here: nothing is left to be run.
                StopReason::ToolUse => StopReason::EndTurn,
                reason => reason,
            },
        };
        self.telling = Telling::default();
        self.calls = Calls::default();
        self.asked = true;
        self.compacting = false;
        self.compacted = false;
        turn
    }

    /// The CLI's copy of its last message, when no record of it came.
    fn add_unrecorded_end(&mut self, text: &str, sink: &dyn StreamSink) {
        let wanted = text.trim();
        if wanted.is_empty() || self.ledger.ends_with(wanted) {
            return;
        }
        let (message, told) = self.telling.unrecorded().pop().unwrap_or_default();
        if !told.is_empty() && !wanted.starts_with(told.trim()) {
            return;
        }
        let message = if message.is_empty() { "last message".to_owned() } else { message };
        let content = ContentBlock::Text { text: wanted.to_owned() };
        if self.ledger.block(&message, None, &content, None, None, false) {
            self.telling.record(&message, None, &content, None, &mut self.calls, sink);
        }
    }

    fn answer_open_calls(&mut self, partial: Option<PartialReason>, sink: &dyn StreamSink) {
        let words = match partial {
            Some(PartialReason::Cancelled) => "interrupted before it was done",
            Some(PartialReason::Cut) => "the turn failed before a result came",
            None => "Claude Code recorded no result",
        };
        for id in self.ledger.unanswered() {
            if let Some(name) = self.ledger.result(&id, words, true, None) {
                self.telling.stop_messages(sink);
                let output = words.to_owned();
                let given =
                    calls::Given { name, output, is_error: true, facts: None, denied: None };
                self.calls.result(&id, given, sink);
            }
        }
        self.calls.incomplete(sink);
    }
}
