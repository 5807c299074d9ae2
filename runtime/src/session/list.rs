//! The session list, derived from the files: their heads and tails, never whole large files.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::blob::BlobDir;
use super::load::{id_of, load, trim_padding};
use super::lock::SessionLock;
use super::open::lock_path;
use super::record::{Decoder, Meta, RawRecord, Record};
use super::{ContentBlock, ConversationMessage, MessageRole, SessionEntry};
use crate::redact::Redactor;

/// Longest title, in characters.
const TITLE_CHARS: usize = 80;
/// How far the first prompt is looked for.
const HEAD_BYTES: u64 = 512 * 1024;
/// How far back the last record is looked for.
const FIRST_TAIL_BYTES: u64 = 16 * 1024;
const LARGEST_TAIL_BYTES: u64 = 4 * 1024 * 1024;
/// An old whole-object file above this is listed by its name alone.
const LARGEST_OBJECT_BYTES: u64 = 8 * 1024 * 1024;

/// The first thing the person said, on one line; none before that.
pub(super) fn title_of(
    messages: &[Arc<ConversationMessage>],
    redactor: &Redactor,
) -> Option<String> {
    messages.iter().find_map(|message| title_from(message, redactor))
}

fn title_from(message: &ConversationMessage, redactor: &Redactor) -> Option<String> {
    if message.role != MessageRole::User {
        return None;
    }
    let text = message.blocks.iter().find_map(|block| match block {
        ContentBlock::Text { text } if !text.trim().is_empty() => Some(text),
        _ => None,
    })?;
    Some(one_line(text, redactor))
}

/// White space folded, cut to the length of a title.
fn one_line(text: &str, redactor: &Redactor) -> String {
    // A pasted megabyte need not be folded for eighty characters.
    let start: String = text.trim_start().chars().take(TITLE_CHARS * 8).collect();
    // Before the cut: half a secret is no longer recognised.
    let start = redactor.redact(&start);
    let folded = start.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.chars().count() <= TITLE_CHARS {
        return folded;
    }
    let mut cut: String = folded.chars().take(TITLE_CHARS - 1).collect();
    cut.push('…');
    cut
}

/// Files in `dir` that hold a session of their own: no rotated or kept copies, nothing hidden.
pub(super) fn session_files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_session_file(path) && path.is_file())
        .collect()
}

fn is_session_file(path: &Path) -> bool {
    let has_extension = path.extension().is_some_and(|ext| ext == "jsonl" || ext == "json");
    has_extension && !id_of(path).starts_with('.') && !is_copy(path)
}

/// Whether the name is that of a copy: rotated by claw-code, or kept before a compaction.
pub(super) fn is_copy(path: &Path) -> bool {
    let stem = id_of(path);
    stem.contains(".rot-") || stem.starts_with("before-compaction-")
}

/// One row, or none when the file went away meanwhile.
pub(super) fn entry(path: &Path, current: Option<&str>) -> Option<SessionEntry> {
    let metadata = fs::metadata(path).ok()?;
    let facts = if path.extension().is_some_and(|ext| ext == "json") {
        (metadata.len() <= LARGEST_OBJECT_BYTES).then(|| facts_of_object(path)).flatten()
    } else {
        facts_of_lines(path, metadata.len()).ok()
    };
    let facts = facts.unwrap_or_default();
    let modified = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
    // The name of the file, not what is written in it: that is what finds it again.
    let id = id_of(path);
    let current = current == Some(id.as_str());
    Some(SessionEntry {
        title: facts.meta.title.or(facts.title).unwrap_or_else(|| "(no prompt yet)".to_owned()),
        updated_at_ms: facts.last_timestamp_ms.unwrap_or(modified),
        bytes: metadata.len(),
        message_count: facts.message_count,
        fork: facts.meta.fork,
        model: facts.meta.model,
        locked: !current && SessionLock::is_held(&lock_path(path)),
        current,
        path: path.to_owned(),
        id,
    })
}

#[derive(Default)]
struct Facts {
    meta: Meta,
    title: Option<String>,
    message_count: usize,
    last_timestamp_ms: Option<u64>,
}

/// Old whole-object files were small: they were rewritten with every turn.
fn facts_of_object(path: &Path) -> Option<Facts> {
    let loaded = load(path).ok()?;
    Some(Facts {
        title: title_of(&loaded.session.messages, &Redactor::default()),
        message_count: loaded.session.messages.len(),
        last_timestamp_ms: (loaded.session.updated_at_ms > 0)
            .then_some(loaded.session.updated_at_ms),
        meta: Meta { model: loaded.session.model, ..Meta::default() },
    })
}

fn facts_of_lines(path: &Path, bytes: u64) -> io::Result<Facts> {
    let mut facts = Facts::default();
    let mut file = File::open(path)?;
    let head = read_head(&file, path, &mut facts)?;
    let tail = read_tail(&mut file, bytes)?;
    if let Some(meta) = tail.meta {
        facts.meta.update(meta);
    }
    facts.last_timestamp_ms = tail.timestamp_ms;
    facts.message_count = match tail.seq {
        Some(seq) => usize::try_from(seq.saturating_add(1)).unwrap_or(usize::MAX),
        // Files of claw-code have no numbers: counted when they were read to the end, else
        // estimated from the lines that were read.
        None if head.bytes >= bytes || head.bytes == 0 => head.messages,
        // Numbered, yet no whole record near the end: something huge is there. Rare enough to read.
        None if head.numbered => load(path).map_or(0, |loaded| loaded.session.messages.len()),
        None => {
            let share = u128::from(bytes) * head.messages as u128 / u128::from(head.bytes);
            usize::try_from(share).unwrap_or(usize::MAX)
        }
    };
    Ok(facts)
}

struct Head {
    bytes: u64,
    messages: usize,
    /// Records have numbers: the file is ours.
    numbered: bool,
}

fn read_head(file: &File, path: &Path, facts: &mut Facts) -> io::Result<Head> {
    let blobs = BlobDir::beside(path);
    let mut decoder = Decoder::new(&blobs);
    let mut reader = BufReader::new(file.take(HEAD_BYTES));
    let mut head = Head { bytes: 0, messages: 0, numbered: false };
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        // Numbered records let the tail tell the count, so the first prompt is all we want here.
        if read == 0 || (head.numbered && facts.title.is_some()) {
            return Ok(head);
        }
        head.bytes += read as u64;
        let Ok(raw) = serde_json::from_slice::<RawRecord<'_>>(trim_padding(&line)) else {
            continue;
        };
        if raw.r#type == "message" {
            head.numbered |= raw.seq.is_some();
            head.messages += 1;
            if facts.title.is_some() {
                continue;
            }
        }
        match decoder.record(raw) {
            Record::Meta(meta) => facts.meta.update(meta),
            Record::Message(message) => {
                facts.title = facts.title.take().or(title_from(&message, &Redactor::default()));
            }
            _ => {}
        }
    }
}

#[derive(Default)]
struct Tail {
    seq: Option<u64>,
    timestamp_ms: Option<u64>,
    meta: Option<Meta>,
}

/// Facts of the last whole records; looks further back while there is no whole message.
fn read_tail(file: &mut File, bytes: u64) -> io::Result<Tail> {
    let mut wanted = FIRST_TAIL_BYTES;
    loop {
        let start = bytes.saturating_sub(wanted);
        file.seek(SeekFrom::Start(start))?;
        let mut end = Vec::new();
        file.by_ref().take(wanted).read_to_end(&mut end)?;
        let tail = scan_tail(&end);
        if tail.timestamp_ms.is_some() || start == 0 || wanted >= LARGEST_TAIL_BYTES {
            return Ok(tail);
        }
        wanted *= 16;
    }
}

fn scan_tail(end: &[u8]) -> Tail {
    let nowhere = PathBuf::new();
    let blobs = BlobDir::beside(&nowhere);
    let mut decoder = Decoder::new(&blobs);
    let mut tail = Tail::default();
    for line in end.rsplit(|byte| *byte == b'\n') {
        let Ok(raw) = serde_json::from_slice::<RawRecord<'_>>(trim_padding(line)) else {
            continue;
        };
        match raw.r#type.as_str() {
            "message" => {
                tail.seq = raw.seq;
                tail.timestamp_ms = raw.timestamp_ms;
                return tail;
            }
            "session_meta" if tail.meta.is_none() => {
                if let Record::Meta(meta) = decoder.record(raw) {
                    tail.meta = Some(meta);
                }
            }
            _ => {}
        }
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_line_of_at_most_eighty_characters() {
        for (text, expected) in [
            ("fix\n  the\tbug ", "fix the bug".to_owned()),
            (&"ä".repeat(80), "ä".repeat(80)),
            (&"ä".repeat(81), format!("{}…", "ä".repeat(79))),
        ] {
            assert_eq!(one_line(text, &Redactor::default()), expected);
        }
    }

    #[test]
    fn copies_and_hidden_files_are_no_sessions() {
        for (name, expected) in [
            ("session-1-2.jsonl", true),
            ("session-1-2.json", true),
            ("session-1-2.rot-99.jsonl", false),
            ("before-compaction-1.jsonl", false),
            (".compacting-x.jsonl", false),
            ("session-1-2.lock", false),
        ] {
            assert_eq!(is_session_file(Path::new(name)), expected, "{name}");
        }
    }
}
