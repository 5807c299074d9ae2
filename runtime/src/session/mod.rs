//! Conversations: the model in memory, the JSONL file, the list of sessions, forks.

mod blob;
mod disk;
mod identity;
mod list;
mod load;
mod lock;
mod model;
mod open;
mod pairs;
mod prompts;
mod record;
pub mod store;
mod unfinished;

pub(crate) use identity::now_ms;
pub use model::{
    ContentBlock, ConversationMessage, MessageRole, PartialReason, Session, SessionCompaction,
    SessionFork, estimate_tokens,
};
pub use open::{BeforeCompaction, OpenSession};
pub use pairs::unanswered_tool_uses;
pub use store::{SessionEntry, SessionError, SessionStore, SessionView};
pub(crate) use unfinished::{Piece, PieceKind, UnfinishedFile};
