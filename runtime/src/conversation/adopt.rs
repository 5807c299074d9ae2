//! What a backend returned goes into the session: assistant messages, results of tools that it ran
//! itself, and prompts that were said into the turn.

use super::redacted::redact_words;
use super::repeats::Repeats;
use super::{ConversationRuntime, TurnSummary};
use crate::api::{ApiClient, AssistantTurn};
use crate::context::TurnContext;
use crate::event::TuiEvent;
use crate::session::{ContentBlock, ConversationMessage, MessageRole, PartialReason};
use crate::tools::ToolExecutor;

/// A call without a result so far: id, name, input.
pub(super) type OpenCall = (String, String, String);

impl<C: ApiClient, T: ToolExecutor> ConversationRuntime<C, T> {
    /// Takes what a backend returned into the session. Returns the tool uses that are ours to run.
    ///
    /// A prompt that was said while a tool ran stands behind the tool's result: providers refuse a
    /// conversation in which something comes between a call and its result.
    pub(super) fn adopt(
        &mut self,
        turn: AssistantTurn,
        partial: Option<PartialReason>,
        summary: &mut TurnSummary,
        cx: &TurnContext,
    ) -> Vec<OpenCall> {
        let mut pending: Vec<OpenCall> = Vec::new();
        let mut said_meanwhile: Vec<ConversationMessage> = Vec::new();
        let last = turn.messages.iter().rposition(|message| message.role != MessageRole::User);
        let mut repeats = Repeats::default();
        for (index, mut message) in turn.messages.into_iter().enumerate() {
            repeats.drop_from(&mut message);
            if message.role == MessageRole::Assistant {
                if Some(index) == last && message.partial.is_none() {
                    message.partial = partial;
                }
                self.count(&mut message, summary, cx);
                pending.extend(
                    message.tool_uses().map(|(id, name, input)| {
                        (id.to_owned(), name.to_owned(), input.to_owned())
                    }),
                );
            }
            let mut answers = false;
            for block in &message.blocks {
                if let ContentBlock::ToolResult { tool_use_id, .. } = block {
                    pending.retain(|(id, ..)| id != tool_use_id);
                    summary.tool_calls += 1;
                    answers = true;
                }
            }
            if message.blocks.is_empty() {
                continue;
            }
            if message.role == MessageRole::User && !answers && !pending.is_empty() {
                said_meanwhile.push(message);
                continue;
            }
            self.push(message, cx);
            if pending.is_empty() {
                said_meanwhile.drain(..).for_each(|said| self.push(said, cx));
            }
        }
        if !said_meanwhile.is_empty() {
            // Nobody will run these: the backend has gone on without their results.
            self.answer_dangling_tool_uses("the result of this call did not come", cx);
            pending.clear();
            said_meanwhile.drain(..).for_each(|said| self.push(said, cx));
        }
        if repeats.dropped_calls > 0 {
            cx.sink.emit(TuiEvent::warning(format!(
                "The answer repeated the id of a tool call ({} times); each id was taken once, and the repeats were not run.",
                repeats.dropped_calls
            )));
        }
        pending
    }

    /// Counts the words and tokens of an assistant message, and takes known credentials out of it.
    fn count(
        &mut self,
        message: &mut ConversationMessage,
        summary: &mut TurnSummary,
        cx: &TurnContext,
    ) {
        let model = message.model.get_or_insert_with(|| self.model.clone()).clone();
        redact_words(&self.redactor, message);
        summary.add_text(&message.text());
        if let Some(usage) = message.usage {
            self.usage.record(&model, &usage);
            summary.usage.add(&usage);
            cx.sink.emit(TuiEvent::UsageUpdate { usage, report: self.usage_report() });
        }
    }
}
