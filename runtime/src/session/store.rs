//! The session file: JSONL in claw-code's record format and place. (Contract; to be built.)

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use super::{ConversationMessage, SessionFork};

/// One row of the session list.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEntry {
    pub id: String,
    pub path: PathBuf,
    /// First user message, one line, at most 80 characters.
    pub title: String,
    pub updated_at_ms: u64,
    pub bytes: u64,
    pub message_count: usize,
    pub fork: Option<SessionFork>,
    pub model: Option<String>,
    /// It is the session that is open now.
    pub current: bool,
    /// Another process has it open.
    pub locked: bool,
}

/// What the front-end needs in order to show a session that was opened.
#[derive(Debug, Clone)]
pub struct SessionView {
    pub id: String,
    pub path: PathBuf,
    pub fork: Option<SessionFork>,
    pub messages: Vec<Arc<ConversationMessage>>,
    /// Text of earlier prompts, oldest first, for the composer's history.
    pub prompt_history: Vec<String>,
    /// Told to the person: skipped lines, repaired tail, missing blobs.
    pub warnings: Vec<String>,
    /// True when it was loaded from disk rather than begun.
    pub resumed: bool,
}

#[derive(Debug, Error)]
pub enum SessionError {
    #[error("no session matches \"{0}\"; /session list shows them")]
    NotFound(String),
    #[error(
        "session {id} is open in another process; close it there, or start a fork with /session fork"
    )]
    Locked { id: String },
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// The sessions of one workspace, on disk.
pub struct SessionStore;
