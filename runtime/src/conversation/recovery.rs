//! Making room: compaction on request, at the threshold, and when the provider says that the request
//! does not fit.

use std::sync::Arc;
use std::time::Duration;

use super::draft::Draft;
use super::{ConversationRuntime, TurnSummary};
use crate::api::{ApiClient, ApiError, ApiRequest, AssistantTurn, ContextCompaction};
use crate::compact::{CompactionConfig, CompactionResult, compact_session};
use crate::context::TurnContext;
use crate::error::RuntimeError;
use crate::event::{CompactionCause, TuiEvent};
use crate::session::BeforeCompaction;
use crate::tools::ToolExecutor;

/// Recent messages that each round of context-window recovery leaves.
const RECOVERY_ROUNDS: [usize; 4] = [4, 2, 1, 0];

/// How long a backend may take to stop a compaction of its own.
const COMPACTION_STOPS_WITHIN: Duration = Duration::from_secs(3);

/// Numbers of one compaction. Nothing changed when the two sizes are equal; only tool payloads were
/// shortened when they differ and `removed` is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionReport {
    pub removed: usize,
    pub before_tokens: u64,
    pub after_tokens: u64,
}

/// What recovery began with, to be put back when no round helped.
struct Untouched {
    session: BeforeCompaction,
    context_tokens: u64,
    auto_compaction: Option<usize>,
}

impl<C: ApiClient, T: ToolExecutor> ConversationRuntime<C, T> {
    /// One call to the model; compacts and asks again while the context window is exceeded. The
    /// prompt of the turn stays in every request, exactly once. When no round helps, the
    /// conversation is left as it was before the first of them.
    pub(super) async fn request_with_recovery(
        &mut self,
        summary: &mut TurnSummary,
        cx: &TurnContext,
    ) -> Result<AssistantTurn, RuntimeError> {
        let mut rounds = (1_u32..).zip(RECOVERY_ROUNDS);
        let mut untouched: Option<Untouched> = None;
        loop {
            let request = self.request();
            match self.stream_and_keep(request, cx).await {
                Ok(turn) => return Ok(turn),
                // What we would leave out of the request is still in the backend's own session.
                Err(ApiError::ContextWindowExceeded { message }) if self.client.owns_context() => {
                    return Err(RuntimeError::BackendContextFull { message });
                }
                Err(ApiError::ContextWindowExceeded { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            if cx.cancel.is_cancelled() {
                return Ok(cancelled());
            }
            // A round that does not shrink would send the same request: go on to the next.
            let smaller = rounds.find_map(|(round, preserve)| {
                let result = compact_session(self.session(), &recovery_config(preserve));
                result.changed.then_some((round, result))
            });
            let Some((round, result)) = smaller else {
                self.put_back(untouched, summary, cx);
                return Err(RuntimeError::ContextExhausted);
            };
            untouched.get_or_insert_with(|| Untouched {
                session: self.session.before_compaction(),
                context_tokens: self.usage.context_tokens(),
                auto_compaction: summary.auto_compaction,
            });
            let cause = CompactionCause::ContextWindow;
            let max_rounds = RECOVERY_ROUNDS.len() as u32;
            cx.sink.emit(TuiEvent::Compacting { cause, round, max_rounds });
            let report = self.take(result, cause, cx);
            summary.auto_compaction = Some(summary.auto_compaction.unwrap_or(0) + report.removed);
        }
    }

    /// One call to the model. What has come of the answer is kept on disk until it is recorded.
    async fn stream_and_keep(
        &mut self,
        request: ApiRequest,
        cx: &TurnContext,
    ) -> Result<AssistantTurn, ApiError> {
        let file = self.session.unfinished_file();
        let draft = Arc::new(Draft::new(Arc::clone(&cx.sink), file));
        let cx = TurnContext { sink: draft.clone(), ..cx.clone() };
        tokio::select! {
            biased;
            turn = self.client.stream(request, &cx) => turn,
            never = draft.keep() => match never {},
        }
    }

    fn put_back(
        &mut self,
        untouched: Option<Untouched>,
        summary: &mut TurnSummary,
        cx: &TurnContext,
    ) {
        let Some(untouched) = untouched else { return };
        let saved = self.session.put_back(untouched.session);
        self.told_whether_saved(saved, cx);
        self.usage.reset_context(untouched.context_tokens);
        summary.auto_compaction = untouched.auto_compaction;
    }

    /// Compacts when the *current* context has crossed the threshold, once per crossing. When there
    /// was nothing to remove, tries again, silently, once there is more.
    pub(super) fn compact_if_due(&mut self, summary: &mut TurnSummary, cx: &TurnContext) {
        let messages = self.session().messages.len();
        let is_retry = self.auto_compaction.has_found_nothing();
        if cx.cancel.is_cancelled()
            || self.client.owns_context()
            || !self.auto_compaction.should_compact(self.context_tokens(), messages)
        {
            return;
        }
        let config = CompactionConfig { max_estimated_tokens: 0, ..CompactionConfig::default() };
        let result = compact_session(self.session(), &config);
        if !result.changed {
            self.auto_compaction.found_nothing(messages);
            if is_retry {
                return;
            }
        }
        let cause = CompactionCause::Automatic;
        cx.sink.emit(TuiEvent::Compacting { cause, round: 1, max_rounds: 1 });
        let report = self.take(result, cause, cx);
        if report.removed > 0 {
            summary.auto_compaction = Some(summary.auto_compaction.unwrap_or(0) + report.removed);
        }
    }

    /// Compacts on request: a backend with a context of its own compacts that, and the session stays
    /// whole, because it is the record and the history for other backends. Told by `Compacted` or
    /// `CompactionFailed`, one of them, at the end.
    pub async fn compact_on_request(&mut self, config: &CompactionConfig, cx: &TurnContext) {
        let cx = &self.without_secrets(cx);
        let cause = CompactionCause::Requested;
        cx.sink.emit(TuiEvent::Compacting { cause, round: 1, max_rounds: 1 });
        let request = self.request();
        let outcome = tokio::select! {
            biased;
            outcome = self.client.compact(request, cx) => outcome,
            () = given_up(cx) => Ok(None),
        };
        let event = match outcome {
            Ok(Some(ContextCompaction { before_tokens, after_tokens })) => {
                self.usage.reset_context(after_tokens);
                let original = None;
                TuiEvent::Compacted { cause, removed: 0, before_tokens, after_tokens, original }
            }
            Ok(None) | Err(_) if cx.cancel.is_cancelled() => {
                TuiEvent::CompactionFailed { error: None }
            }
            Ok(None) => {
                let result = compact_session(self.session(), config);
                self.take(result, cause, cx);
                return;
            }
            Err(error) => TuiEvent::CompactionFailed { error: Some(Arc::new(error.into())) },
        };
        cx.sink.emit(event);
    }

    /// Compacts our own conversation. Nothing happens silently: both numbers are told also when nothing was
    /// removed.
    pub fn compact(&mut self, config: &CompactionConfig, cx: &TurnContext) -> CompactionReport {
        let cause = CompactionCause::Requested;
        cx.sink.emit(TuiEvent::Compacting { cause, round: 1, max_rounds: 1 });
        let result = compact_session(self.session(), config);
        self.take(result, cause, cx)
    }

    /// Takes a compacted conversation, stores it and tells both numbers, on the scale of the size
    /// that the status line shows.
    fn take(
        &mut self,
        result: CompactionResult,
        cause: CompactionCause,
        cx: &TurnContext,
    ) -> CompactionReport {
        let before_tokens = self.context_tokens();
        let after_tokens = size_after(before_tokens, result.before_tokens, result.after_tokens);
        let removed = result.removed_message_count;
        let mut original = None;
        if result.changed {
            match self.session.replace_after_compaction(result.messages, result.compaction) {
                Ok(path) => original = Some(path),
                Err(error) => {
                    cx.sink.emit(TuiEvent::error(error.to_string()));
                }
            }
            self.usage.reset_context(after_tokens);
        }
        cx.sink.emit(TuiEvent::Compacted { cause, removed, before_tokens, after_tokens, original });
        CompactionReport { removed, before_tokens, after_tokens }
    }

    /// Size of the context as it is now: what the provider reported for the last call, and an
    /// estimate of what came since.
    fn context_tokens(&self) -> u64 {
        let messages = &self.session().messages;
        let reported = self.usage.context_tokens();
        match messages.iter().rposition(|message| message.usage.is_some()) {
            Some(last) if reported > 0 => {
                let since = messages[last + 1..].iter().map(|m| m.estimated_tokens());
                since.fold(reported, u64::saturating_add)
            }
            _ => reported.max(self.estimated_tokens()),
        }
    }
}

/// The size after a compaction on the scale of a reported size. What was reported above the estimate
/// (the system prompt, the tools) stays; a report below it scales the estimate.
fn size_after(reported: u64, estimated_before: u64, estimated_after: u64) -> u64 {
    if reported >= estimated_before {
        return reported - (estimated_before - estimated_after.min(estimated_before));
    }
    let scaled =
        u128::from(estimated_after) * u128::from(reported) / u128::from(estimated_before.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn recovery_config(preserve: usize) -> CompactionConfig {
    CompactionConfig {
        preserve_recent_messages: preserve,
        max_estimated_tokens: 0,
        ..CompactionConfig::default()
    }
}

/// The person stopped it, and the backend has had time to end it in good order.
async fn given_up(cx: &TurnContext) {
    cx.cancel.cancelled().await;
    tokio::time::sleep(COMPACTION_STOPS_WITHIN).await;
}

fn cancelled() -> AssistantTurn {
    AssistantTurn { messages: Vec::new(), stop_reason: crate::api::StopReason::Cancelled }
}

#[cfg(test)]
mod tests {
    use super::size_after;

    #[test]
    fn the_size_after_a_compaction_is_told_on_the_scale_of_the_report() {
        for (reported, before, after, expected) in [
            (100, 100, 40, 40),
            // A system prompt of 50 stays.
            (150, 100, 40, 90),
            // The estimate was twice too high.
            (50, 100, 40, 20),
            (0, 0, 0, 0),
            (150_000, 16, 16, 150_000),
            (u64::MAX, 10, 5, u64::MAX - 5),
        ] {
            assert_eq!(
                size_after(reported, before, after),
                expected,
                "{reported} {before} {after}"
            );
        }
    }
}
