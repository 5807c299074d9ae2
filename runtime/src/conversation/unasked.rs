//! Turns that nobody here asked for: a backend with a session of its own may go on by itself, for
//! example when a task in the background has ended.

use super::{ConversationRuntime, TurnStop, TurnSummary};
use crate::api::{ApiClient, AssistantTurn, StopReason};
use crate::context::TurnContext;
use crate::session::PartialReason;
use crate::tools::ToolExecutor;

impl<C: ApiClient, T: ToolExecutor> ConversationRuntime<C, T> {
    /// Stops such a turn, if one runs; [`take_unasked`](Self::take_unasked) returns its end.
    pub fn stop_unasked(&mut self) {
        self.client.stop_unasked();
    }

    /// Waits for such a turn and takes it into the session; never returns for most backends. May be
    /// dropped at any moment: what the backend has not returned yet comes with the next turn.
    pub async fn take_unasked(&mut self, cx: &TurnContext) -> TurnSummary {
        let cx = &self.without_secrets(cx);
        let turn = self.client.unasked(cx).await;
        self.take_turn(turn, cx)
    }

    /// Takes what the backend has told and not returned, and ends what it keeps running, in bounded
    /// time: the session or the program is about to become another one.
    pub async fn settle(&mut self, cx: &TurnContext) {
        let cx = &self.without_secrets(cx);
        if let Some(turn) = self.client.unfinished(cx) {
            self.take_turn(turn, cx);
        }
        self.client.close().await;
    }

    fn take_turn(&mut self, turn: AssistantTurn, cx: &TurnContext) -> TurnSummary {
        let mut summary = TurnSummary::new();
        let stop = turn.stop_reason.clone();
        let partial = (stop == StopReason::Cancelled).then_some(PartialReason::Cancelled);
        summary.iterations = 1;
        self.adopt(turn, partial, &mut summary, cx);
        // Who went on by itself has run its tools itself: nothing of it is ours to run.
        self.answer_dangling_tool_uses("the result of this call did not come", cx);
        self.sync(cx);
        summary.stop = match stop {
            StopReason::Cancelled => TurnStop::Cancelled,
            reason => TurnStop::Finished(reason),
        };
        summary
    }
}
