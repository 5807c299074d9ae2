//! The turn loop.

use crate::api::StopReason;
use crate::usage::TokenUsage;

/// Why a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnStop {
    /// The model was done; the reason says whether normally.
    Finished(StopReason),
    /// The person stopped it.
    Cancelled,
    /// The iteration cap was reached.
    IterationLimit(usize),
    /// See the error of `TurnFailed`.
    Failed,
}

/// What a turn was. Equals what was streamed.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnSummary {
    pub stop: TurnStop,
    /// All text of the assistant in this turn, messages joined by a blank line.
    pub text: String,
    /// Tool calls with results in this turn, denied ones included.
    pub tool_calls: usize,
    pub iterations: usize,
    /// Sum over the calls of this turn.
    pub usage: TokenUsage,
    /// Messages removed by automatic compaction in this turn, if it happened.
    pub auto_compaction: Option<usize>,
}
