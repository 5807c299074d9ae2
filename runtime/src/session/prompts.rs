//! Earlier prompts of a workspace, for the composer's history: from the ends of its newest files.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

/// Files looked into, newest first.
const FILES: usize = 8;
/// How far back each file is read.
const TAIL_BYTES: u64 = 256 * 1024;

#[derive(Deserialize)]
struct PromptRecord {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    timestamp_ms: u64,
    #[serde(default)]
    text: String,
}

/// The last `limit` prompts in these files, oldest first, each once. What cannot be read is left out:
/// this is a convenience.
pub(super) fn recent(mut files: Vec<PathBuf>, limit: usize) -> Vec<String> {
    files.sort_by_cached_key(|path| (modified(path), path.clone()));
    let newest = &files[files.len().saturating_sub(FILES)..];
    let mut found: Vec<(u64, String)> = newest
        .iter()
        .filter_map(|path| tail(path).ok())
        .flat_map(|bytes| prompts_in(&bytes))
        .collect();
    found.sort_by_key(|(timestamp, _)| *timestamp);
    let mut prompts: Vec<String> = Vec::new();
    for (_, text) in found.into_iter().rev() {
        if prompts.len() == limit {
            break;
        }
        if !prompts.contains(&text) {
            prompts.push(text);
        }
    }
    prompts.reverse();
    prompts
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    // Room for all of it at once: growing step by step would leave the steps behind in the heap.
    let mut bytes = Vec::with_capacity(length.min(TAIL_BYTES) as usize);
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first line may be half a record: it does not parse, and is left out.
fn prompts_in(bytes: &[u8]) -> Vec<(u64, String)> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| line.starts_with(b"{\"type\":\"prompt_history\""))
        .filter_map(|line| serde_json::from_slice::<PromptRecord>(line).ok())
        .filter(|record| record.kind == "prompt_history" && !record.text.is_empty())
        .map(|record| (record.timestamp_ms, record.text))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::session::SessionStore;

    #[test]
    fn prompts_of_earlier_sessions_are_recalled_newest_last_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::open(folder.path()).unwrap();
        for prompts in [["one", "two"], ["two", "three"]] {
            let mut session = store.create("m");
            for prompt in prompts {
                session.record_prompt(prompt).unwrap();
                let message = crate::session::ConversationMessage::user(prompt);
                session.push(message.into()).unwrap();
            }
        }
        assert_eq!(store.recent_prompts(10), ["one", "two", "three"]);
        assert_eq!(store.recent_prompts(2), ["two", "three"]);
    }

    #[test]
    fn an_empty_workspace_has_no_earlier_prompts() {
        let folder = tempfile::tempdir().unwrap();
        assert!(SessionStore::open(folder.path()).unwrap().recent_prompts(10).is_empty());
    }
}
