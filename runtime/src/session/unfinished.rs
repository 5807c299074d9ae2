//! What a message has brought while it still streams, beside the session file: a killed program
//! must not take with it what was already shown.
//!
//! The file is `<id>.d/unfinished.json`. It counts only while the session has no message in its
//! place, and it goes away when that message is recorded.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ContentBlock, ConversationMessage, MessageRole, PartialReason, disk};
use crate::redact::Redactor;

const NAME: &str = "unfinished.json";
/// A file above this is not read back.
const LARGEST_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PieceKind {
    Text,
    Thinking,
}

/// Text of one kind, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub kind: PieceKind,
    pub text: String,
}

#[derive(Serialize, Deserialize)]
struct Body<P> {
    /// Number that the message will have.
    seq: u64,
    model: Option<String>,
    pieces: P,
}

/// Where the message that streams is kept.
#[derive(Debug, Clone)]
pub(crate) struct UnfinishedFile {
    pub path: PathBuf,
    pub seq: u64,
    pub model: Option<String>,
    pub redactor: Redactor,
}

impl UnfinishedFile {
    /// Replaces what was kept. A reader sees the old text or the new one, never a part.
    pub(crate) fn write(&self, pieces: &[Piece]) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        disk::create_private_dir(dir)?;
        let body = Body { seq: self.seq, model: self.model.clone(), pieces };
        // Readable by its owner alone, as every temporary file.
        let mut file = tempfile::Builder::new().prefix(".unfinished-").tempfile_in(dir)?;
        file.write_all(&serde_json::to_vec(&body)?)?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Its place in the side folder of a session.
pub(super) fn path_in(side: &Path) -> PathBuf {
    side.join(NAME)
}

/// Forgets what was kept: the message is recorded.
pub(super) fn forget(side: &Path) {
    if fs::remove_file(path_in(side)).is_ok() {
        // Refused while there is anything else in it.
        let _ = fs::remove_dir(side);
    }
}

/// The message that was being written when the program ended, marked as cut. None when there is
/// none, or when the session went on after it.
pub(super) fn read(side: &Path, next_seq: u64) -> Option<Arc<ConversationMessage>> {
    let path = path_in(side);
    if fs::metadata(&path).ok()?.len() > LARGEST_BYTES {
        return None;
    }
    let body: Body<Vec<Piece>> = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    if body.seq < next_seq {
        return None;
    }
    let blocks: Vec<ContentBlock> = body
        .pieces
        .into_iter()
        .filter(|piece| !piece.text.is_empty())
        .map(|piece| match piece.kind {
            PieceKind::Text => ContentBlock::Text { text: piece.text },
            PieceKind::Thinking => ContentBlock::Thinking { thinking: piece.text, signature: None },
        })
        .collect();
    if blocks.is_empty() {
        return None;
    }
    let mut message = ConversationMessage::new(MessageRole::Assistant, blocks);
    message.model = body.model;
    message.partial = Some(PartialReason::Cut);
    Some(Arc::new(message))
}
