//! Conversations: the model in memory, the JSONL file, the list of sessions, forks.

mod model;
pub mod store;

pub use model::{
    ContentBlock, ConversationMessage, MessageRole, PartialReason, Session, SessionCompaction,
    SessionFork,
};
pub use store::{SessionEntry, SessionError, SessionStore, SessionView};
