//! How a turn can fail, by what the caller does next.

use thiserror::Error;

use crate::api::ApiError;

/// Failure of a turn. Display gives a message for a person that says what happened and what to do
/// next.
#[derive(Debug, Error)]
pub enum RuntimeError {
    #[error(transparent)]
    Api(#[from] ApiError),
    /// Compaction removed nothing more and the request still does not fit. The conversation is as it
    /// was before.
    #[error(
        "the conversation does not fit the model's context window even after compaction, so it was left as it was; start a new one with /clear, or switch to a model with a larger window with /model"
    )]
    ContextExhausted,
    /// The backend's own context is full, and only it can make room.
    #[error(
        "the conversation does not fit the context window of this backend any more: {message}. /compact asks it to make room, /clear starts a new conversation"
    )]
    BackendContextFull { message: String },
}
