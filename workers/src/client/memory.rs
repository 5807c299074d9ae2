//! Which Claude session belongs to which of ours, and how much of ours it has seen: one small file
//! beside the session, `<session>.d/claude.json`.
//!
//! A file that cannot be read is no error: the worker then begins a new Claude session and is given
//! the history.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_runtime::session::{ContentBlock, ConversationMessage};
use serde::{Deserialize, Serialize};

const FILE: &str = "claude.json";

/// What is remembered of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remembered {
    pub claude_session_id: String,
    /// The folder the worker worked in: another one is another Claude session.
    pub cwd: PathBuf,
    /// The account's folder; none for the default.
    pub config_dir: Option<PathBuf>,
    /// Messages of our session that the Claude session knows.
    pub seen: usize,
    /// Fingerprint of the last message that was sent to it, and its place: another one there means
    /// that our session was rewritten.
    pub anchor: usize,
    pub anchor_fingerprint: String,
}

impl Remembered {
    /// Whether what the worker has seen is still the beginning of this conversation.
    pub fn still_fits(&self, messages: &[Arc<ConversationMessage>]) -> bool {
        self.seen <= messages.len()
            && messages
                .get(self.anchor)
                .is_some_and(|message| fingerprint(message) == self.anchor_fingerprint)
    }
}

/// Where what is remembered lies.
#[derive(Debug, Clone)]
pub struct Memory {
    sessions: PathBuf,
}

impl Memory {
    /// `sessions`: the folder of the workspace's session files.
    pub fn new(sessions: PathBuf) -> Self {
        Self { sessions }
    }

    pub fn load(&self, session_id: &str) -> Option<Remembered> {
        serde_json::from_slice(&fs::read(self.file(session_id)?).ok()?).ok()
    }

    /// True when a worker had the last word in this conversation: its Claude session knows all of it,
    /// but for a prompt that never reached it.
    pub fn has_last_word(&self, session_id: &str, messages: &[Arc<ConversationMessage>]) -> bool {
        let known = self.load(session_id);
        known.is_some_and(|known| known.still_fits(messages) && known.seen + 1 >= messages.len())
    }

    /// Replaces the file in one step.
    pub fn save(&self, session_id: &str, remembered: &Remembered) -> std::io::Result<()> {
        let Some(file) = self.file(session_id) else { return Ok(()) };
        let folder = file.parent().unwrap_or(&self.sessions);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut next = tempfile::NamedTempFile::new_in(folder)?;
        next.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
        next.write_all(&serde_json::to_vec(remembered)?)?;
        next.persist(&file).map_err(|error| error.error)?;
        Ok(())
    }

    /// None for an id that is no plain file name.
    fn file(&self, session_id: &str) -> Option<PathBuf> {
        let plain = Path::new(session_id).file_name()?.to_str()? == session_id;
        plain.then(|| self.sessions.join(format!("{session_id}.d")).join(FILE))
    }
}

/// A short name for a message by what it says (FNV-1a, 64 bits, hexadecimal).
pub fn fingerprint(message: &ConversationMessage) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |bytes: &[u8]| {
        for byte in bytes.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    take(message.role.as_str().as_bytes());
    for block in &message.blocks {
        match block {
            ContentBlock::Text { text } => take(text.as_bytes()),
            ContentBlock::ToolUse { id, .. } => take(id.as_bytes()),
            ContentBlock::ToolResult { tool_use_id, .. } => take(tool_use_id.as_bytes()),
            ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. } => {}
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(messages: &[Arc<ConversationMessage>], seen: usize) -> Remembered {
        Remembered {
            claude_session_id: "a".into(),
            cwd: "/project".into(),
            config_dir: None,
            seen,
            anchor: 0,
            anchor_fingerprint: fingerprint(&messages[0]),
        }
    }

    #[test]
    fn a_worker_has_the_last_word_until_another_backend_speaks() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::new(folder.path().to_owned());
        let all =
            ["hi", "hello", "more", "yes"].map(|said| Arc::new(ConversationMessage::user(said)));
        assert!(!memory.has_last_word("s", &all[..2]));
        memory.save("s", &remembered(&all, 2)).unwrap();
        for (count, expected) in [(1, false), (2, true), (3, true), (4, false)] {
            assert_eq!(memory.has_last_word("s", &all[..count]), expected, "{count}");
        }
        // Rewritten by a compaction of ours.
        assert!(!memory.has_last_word("s", &all[1..3]));
    }

    #[test]
    fn what_is_remembered_comes_back_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::new(folder.path().to_owned());
        let messages = [Arc::new(ConversationMessage::user("hi"))];
        assert_eq!(memory.load("session-1"), None);
        memory.save("session-1", &remembered(&messages, 1)).unwrap();
        assert_eq!(memory.load("session-1"), Some(remembered(&messages, 1)));
        let file = folder.path().join("session-1.d/claude.json");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(file, b"{torn").unwrap();
        assert_eq!(memory.load("session-1"), None);
    }

    #[test]
    fn an_id_with_a_path_in_it_is_never_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::new(folder.path().join("sessions"));
        let messages = [Arc::new(ConversationMessage::user("hi"))];
        for id in ["../x", "a/b", "", ".."] {
            memory.save(id, &remembered(&messages, 1)).unwrap();
            assert_eq!(memory.load(id), None, "{id}");
        }
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    }

    #[test]
    fn a_rewritten_conversation_does_not_fit_any_more() {
        let messages = [
            Arc::new(ConversationMessage::user("one")),
            Arc::new(ConversationMessage::user("two")),
        ];
        let known = remembered(&messages, 2);
        assert!(known.still_fits(&messages));
        assert!(!known.still_fits(&messages[..1]), "shorter than what was seen");
        let other = [Arc::new(ConversationMessage::user("other")), Arc::clone(&messages[1])];
        assert!(!known.still_fits(&other));
    }
}
