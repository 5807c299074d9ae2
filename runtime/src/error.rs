//! How a turn or a command can fail, by what the caller does next.

use thiserror::Error;

use crate::api::ApiError;
use crate::session::SessionError;

/// Failure of a turn or of a command to the runtime. Display gives a message for a person that
/// says what happened and what to do next.
#[derive(Debug, Error)]
pub enum RuntimeError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Compaction removed nothing more and the request still does not fit.
    #[error(
        "the conversation does not fit the model's context window even after compaction; start a new one with /clear, or switch to a model with a larger window with /model"
    )]
    ContextExhausted,
}
