//! Making room: compaction on request, at the threshold, and when the provider says that the request
//! does not fit.

use std::sync::Arc;

use super::{ConversationRuntime, TurnSummary};
use crate::api::{ApiClient, ApiError, AssistantTurn};
use crate::compact::{CompactionConfig, compact_session};
use crate::context::TurnContext;
use crate::error::RuntimeError;
use crate::event::{CompactionCause, TuiEvent};
use crate::session::ConversationMessage;
use crate::tools::ToolExecutor;

/// Recent messages that each round of context-window recovery leaves.
const RECOVERY_ROUNDS: [usize; 4] = [4, 2, 1, 0];

/// Numbers of one compaction. `removed == 0` means that nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionReport {
    pub removed: usize,
    pub before_tokens: u64,
    pub after_tokens: u64,
}

impl<C: ApiClient, T: ToolExecutor> ConversationRuntime<C, T> {
    /// One call to the model; compacts and asks again while the context window is exceeded. The
    /// prompt of the turn stays in every request, exactly once.
    pub(super) async fn request_with_recovery(
        &mut self,
        summary: &mut TurnSummary,
        cx: &TurnContext,
    ) -> Result<AssistantTurn, RuntimeError> {
        let rounds = RECOVERY_ROUNDS.len() as u32;
        let mut next = 0;
        loop {
            let request = self.request();
            match self.client.stream(request, cx).await {
                Ok(turn) => return Ok(turn),
                Err(ApiError::ContextWindowExceeded { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            // A round that removes nothing would send the same request: go on to the next.
            loop {
                let Some(preserve) = RECOVERY_ROUNDS.get(next) else {
                    return Err(RuntimeError::ContextExhausted);
                };
                next += 1;
                if cx.cancel.is_cancelled() {
                    return Ok(cancelled());
                }
                let config = CompactionConfig {
                    preserve_recent_messages: *preserve,
                    max_estimated_tokens: 0,
                    ..CompactionConfig::default()
                };
                let round = (next as u32, rounds);
                let prompt = self.last_prompt().cloned();
                let cause = CompactionCause::ContextWindow;
                let report = self.compact_now(&config, cause, round, prompt.as_ref(), cx);
                if report.removed > 0 || report.after_tokens < report.before_tokens {
                    summary.auto_compaction =
                        Some(summary.auto_compaction.unwrap_or(0) + report.removed);
                    break;
                }
            }
        }
    }

    /// Compacts when the *current* context has crossed the threshold, once per crossing.
    pub(super) fn compact_if_due(&mut self, summary: &mut TurnSummary, cx: &TurnContext) {
        if cx.cancel.is_cancelled()
            || !self.auto_compaction.should_compact(self.usage.context_tokens())
        {
            return;
        }
        let config = CompactionConfig { max_estimated_tokens: 0, ..CompactionConfig::default() };
        let prompt = self.last_prompt().cloned();
        let report =
            self.compact_now(&config, CompactionCause::Automatic, (1, 1), prompt.as_ref(), cx);
        if report.removed > 0 {
            summary.auto_compaction = Some(summary.auto_compaction.unwrap_or(0) + report.removed);
        }
    }

    /// Compacts, stores the result and tells both numbers. `keep` is a prompt that must survive as
    /// itself, because the turn that it began is not over.
    pub(super) fn compact_now(
        &mut self,
        config: &CompactionConfig,
        cause: CompactionCause,
        (round, max_rounds): (u32, u32),
        keep: Option<&Arc<ConversationMessage>>,
        cx: &TurnContext,
    ) -> CompactionReport {
        cx.sink.emit(TuiEvent::Compacting { cause, round, max_rounds });
        let before_tokens = self.estimated_tokens();
        let result = compact_session(self.session(), config);
        let mut removed = result.removed_message_count;
        let mut original = None;
        if result.changed {
            let mut messages = result.messages;
            if let Some(keep) = keep
                && !messages.iter().any(|message| Arc::ptr_eq(message, keep))
            {
                messages.insert(1.min(messages.len()), Arc::clone(keep));
                removed = removed.saturating_sub(1);
            }
            match self.session.replace_after_compaction(messages, result.compaction) {
                Ok(path) => original = Some(path),
                Err(error) => {
                    cx.sink.emit(TuiEvent::error(error.to_string()));
                }
            }
            self.usage.reset_context(self.session.session().estimated_tokens());
        }
        let report =
            CompactionReport { removed, before_tokens, after_tokens: self.estimated_tokens() };
        cx.sink.emit(TuiEvent::Compacted {
            cause,
            removed: report.removed,
            before_tokens: report.before_tokens,
            after_tokens: report.after_tokens,
            original,
        });
        report
    }
}

fn cancelled() -> AssistantTurn {
    AssistantTurn { messages: Vec::new(), stop_reason: crate::api::StopReason::Cancelled }
}
