//! Reading a session file: everything that is whole is kept, everything else is counted and told.
//! Reading never changes the file.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::blob::BlobDir;
use super::identity::fnv1a;
use super::pairs::mend_pairs;
use super::record::{Decoder, Meta, RawMessage, RawRecord, Record, is_foreign_record};
use super::{ConversationMessage, Session, SessionError, unfinished};
use crate::usage::SpentUsage;

/// A longer line is read over, not into memory.
const LARGEST_RECORD_BYTES: u64 = 16 * 1024 * 1024;
/// A session that is one JSON object (an old form) must be read as a whole.
const LARGEST_OBJECT_BYTES: u64 = 256 * 1024 * 1024;
const READ_BUFFER_BYTES: usize = 256 * 1024;
/// A smaller file is read whole in no time.
const LONG_FILE_BYTES: u64 = 1024 * 1024;
/// The end of a long file: more than a screen of any conversation.
const END_BYTES: i64 = 192 * 1024;

/// How the file holds the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileForm {
    /// One record a line: can be appended to.
    Lines,
    /// One JSON object: an old form that is only read.
    WholeObject,
}

pub(super) struct Loaded {
    pub session: Session,
    pub prompts: Vec<String>,
    pub title: Option<String>,
    /// Number of the next message record.
    pub next_seq: u64,
    pub form: FileForm,
    /// The file does not end with a line end, so the next record must bring one.
    pub torn_end: bool,
    /// Records of known types that were read.
    pub records: usize,
    /// For the person.
    pub warnings: Vec<String>,
    /// The last message is in no record yet: it was being written when the program ended.
    pub last_is_unfinished: bool,
}

/// Lines that were read over, by reason.
#[derive(Debug, Default)]
struct Skipped {
    unreadable: usize,
    torn_end: usize,
    padding: usize,
    oversized: usize,
    unknown: usize,
    duplicated: usize,
}

impl Skipped {
    fn describe(&self, path: &Path) -> Option<String> {
        let parts = [
            (self.torn_end, "torn at the end of the file"),
            (self.unreadable, "damaged"),
            (self.padding, "filled with zero bytes"),
            (self.oversized, "larger than 16 MiB"),
            (self.unknown, "of an unknown kind"),
            (self.duplicated, "written twice"),
        ];
        let total: usize = parts.iter().map(|(count, _)| count).sum();
        if total == 0 {
            return None;
        }
        let why: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, reason)| format!("{count} {reason}"))
            .collect();
        let lines = if total == 1 { "line" } else { "lines" };
        Some(format!(
            "{total} {lines} of {} skipped ({}); the file itself is unchanged",
            path.display(),
            why.join(", ")
        ))
    }
}

pub(super) fn load(path: &Path) -> Result<Loaded, SessionError> {
    let failed =
        |source| SessionError::Io { action: "read session", path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, file);
    let blobs = BlobDir::beside(path);
    if let Some(loaded) = load_object(path, &mut reader, &blobs).map_err(failed)? {
        return Ok(loaded);
    }
    let mut lines = LineLoader::new(path, &blobs);
    let mut line = Vec::new();
    while let Some(end) = next_line(&mut reader, &mut line).map_err(failed)? {
        lines.take(&line, end);
    }
    let mut loaded = lines.finish();
    if let Some(message) = unfinished::read(blobs.path(), loaded.next_seq) {
        loaded.session.messages.push(message);
        loaded.last_is_unfinished = true;
        loaded.warnings.push(
            "The last answer was cut off when the program ended; what had come of it is kept. /retry asks for it again."
                .to_owned(),
        );
    }
    Ok(loaded)
}

/// The messages at the end of a long file, to be looked at while the whole file is read. None for a
/// short file, and when no whole record stands there.
pub(super) fn load_end(path: &Path) -> io::Result<Option<Vec<Arc<ConversationMessage>>>> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() < LONG_FILE_BYTES {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-END_BYTES))?;
    let mut reader = BufReader::new(file);
    // The first line is cut anywhere.
    reader.skip_until(b'\n')?;
    let blobs = BlobDir::beside(path);
    let mut lines = LineLoader::new(path, &blobs);
    let mut line = Vec::new();
    while let Some(end) = next_line(&mut reader, &mut line)? {
        lines.take(&line, end);
    }
    let messages = lines.finish().session.messages;
    Ok((!messages.is_empty()).then_some(messages))
}

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Newline,
    EndOfFile,
    /// It was too long: `line` is empty, the rest of it was read over.
    Oversized,
}

fn next_line<R: BufRead>(reader: &mut R, line: &mut Vec<u8>) -> io::Result<Option<LineEnd>> {
    line.clear();
    let read = reader.by_ref().take(LARGEST_RECORD_BYTES + 1).read_until(b'\n', line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(LineEnd::Newline));
    }
    if read as u64 > LARGEST_RECORD_BYTES {
        *line = Vec::new();
        reader.skip_until(b'\n')?;
        return Ok(Some(LineEnd::Oversized));
    }
    Ok(Some(LineEnd::EndOfFile))
}

struct LineLoader<'a> {
    path: &'a Path,
    decoder: Decoder<'a>,
    messages: Vec<Arc<ConversationMessage>>,
    meta: Meta,
    compaction: Option<super::SessionCompaction>,
    spent: Vec<SpentUsage>,
    prompts: Vec<String>,
    skipped: Skipped,
    /// Numbered records seen, with their content: the same number alone proves nothing, because
    /// another program may have numbered too.
    seen: HashSet<(u64, u64)>,
    /// The last record without a number: repeated word for word it counts once.
    previous_line: Vec<u8>,
    next_seq: u64,
    last_timestamp_ms: u64,
    torn_end: bool,
    records: usize,
}

impl<'a> LineLoader<'a> {
    fn new(path: &'a Path, blobs: &'a BlobDir) -> Self {
        Self {
            path,
            decoder: Decoder::new(blobs),
            messages: Vec::new(),
            meta: Meta::default(),
            compaction: None,
            spent: Vec::new(),
            prompts: Vec::new(),
            skipped: Skipped::default(),
            seen: HashSet::new(),
            previous_line: Vec::new(),
            next_seq: 0,
            last_timestamp_ms: 0,
            torn_end: false,
            records: 0,
        }
    }

    fn take(&mut self, line: &[u8], end: LineEnd) {
        self.torn_end = end == LineEnd::EndOfFile;
        if end == LineEnd::Oversized {
            self.skipped.oversized += 1;
            return;
        }
        // A power cut can leave zero bytes where data was promised; a record may follow them.
        let text = trim_padding(line);
        if text.is_empty() {
            self.skipped.padding += usize::from(line.contains(&0));
            return;
        }
        match serde_json::from_slice::<RawRecord<'_>>(text) {
            Ok(raw) => self.record(raw, text),
            Err(_) if end == LineEnd::EndOfFile => self.skipped.torn_end += 1,
            Err(_) if is_foreign_record(text) => self.skipped.unknown += 1,
            Err(_) => self.skipped.unreadable += 1,
        }
    }

    fn record(&mut self, raw: RawRecord<'_>, text: &[u8]) {
        let (seq, timestamp_ms) = (raw.seq, raw.timestamp_ms);
        if raw.r#type == "message" {
            let is_repeated = match seq {
                Some(seq) => !self.seen.insert((seq, line_hash(text))),
                None => self.previous_line == text,
            };
            if seq.is_none() {
                self.previous_line.clear();
                self.previous_line.extend_from_slice(text);
            }
            if is_repeated {
                self.skipped.duplicated += 1;
                return;
            }
        }
        match self.decoder.record(raw) {
            Record::Meta(meta) => self.meta.update(meta),
            Record::Message(message) => {
                self.messages.push(Arc::new(message));
                let number = seq.unwrap_or(self.next_seq);
                self.next_seq = self.next_seq.max(number.saturating_add(1));
            }
            Record::Compaction(compaction, spent) => {
                self.compaction = Some(compaction);
                self.spent = spent;
            }
            Record::Prompt(text) => self.prompts.push(text),
            Record::Unknown => {
                self.skipped.unknown += 1;
                return;
            }
        }
        self.records += 1;
        self.last_timestamp_ms = self.last_timestamp_ms.max(timestamp_ms.unwrap_or(0));
    }

    fn finish(mut self) -> Loaded {
        let mut warnings: Vec<String> = self.skipped.describe(self.path).into_iter().collect();
        warnings.extend(decoder_warnings(&self.decoder));
        let mended = mend_pairs(&mut self.messages);
        if mended.results_added + mended.results_dropped > 0 {
            warnings.push(format!(
                "tool calls made whole after lost lines: {} results were missing, {} had no call",
                mended.results_added, mended.results_dropped
            ));
        }
        let mut session = self.meta.session(self.path);
        session.updated_at_ms = session.updated_at_ms.max(self.last_timestamp_ms);
        session.messages = self.messages;
        session.compaction = self.compaction;
        session.spent = self.spent;
        Loaded {
            session,
            prompts: self.prompts,
            title: self.meta.title,
            next_seq: self.next_seq,
            form: FileForm::Lines,
            torn_end: self.torn_end,
            records: self.records,
            warnings,
            last_is_unfinished: false,
        }
    }
}

impl Meta {
    /// A later record wins where it says something.
    pub(super) fn update(&mut self, later: Self) {
        self.session_id = later.session_id.or(self.session_id.take());
        self.created_at_ms = later.created_at_ms.or(self.created_at_ms);
        self.updated_at_ms = later.updated_at_ms.or(self.updated_at_ms);
        self.fork = later.fork.or(self.fork.take());
        self.workspace_root = later.workspace_root.or(self.workspace_root.take());
        self.model = later.model.or(self.model.take());
        self.title = later.title.or(self.title.take());
    }

    fn session(&self, path: &Path) -> Session {
        let id = self.session_id.clone().unwrap_or_else(|| id_of(path));
        let created = self.created_at_ms.unwrap_or(0);
        let mut session = Session::new(id, created);
        session.updated_at_ms = self.updated_at_ms.unwrap_or(created);
        session.fork.clone_from(&self.fork);
        session.workspace_root = self.workspace_root.as_ref().map(PathBuf::from);
        session.model.clone_from(&self.model);
        session
    }
}

/// The id that a file's name gives.
pub(super) fn id_of(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

pub(super) fn trim_padding(line: &[u8]) -> &[u8] {
    let is_padding = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
    let start = line.iter().position(|byte| !is_padding(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !is_padding(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

/// Enough to tell records of one number apart: their ends and their length. Hashing every byte of ten
/// megabytes would cost as much as parsing them.
fn line_hash(text: &[u8]) -> u64 {
    const EDGE: usize = 512;
    let head = &text[..text.len().min(EDGE)];
    let tail = &text[text.len().saturating_sub(EDGE)..];
    fnv1a(head) ^ fnv1a(tail).rotate_left(17) ^ (text.len() as u64).rotate_left(40)
}

fn decoder_warnings(decoder: &Decoder<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    if decoder.missing_blobs > 0 {
        warnings.push(format!(
            "{} long texts are shown cut: their files in {} are missing",
            decoder.missing_blobs,
            decoder.blobs.path().display()
        ));
    }
    if decoder.unknown_blocks > 0 {
        warnings.push(format!(
            "{} parts of messages are of an unknown kind and are not shown",
            decoder.unknown_blocks
        ));
    }
    warnings
}

#[derive(Deserialize)]
struct RawObject<'a> {
    session_id: Option<String>,
    #[serde(borrow)]
    messages: Vec<RawMessage<'a>>,
    created_at_ms: Option<u64>,
    updated_at_ms: Option<u64>,
    model: Option<String>,
    workspace_root: Option<String>,
}

/// The old form: the whole session as one JSON object. None when the file is not that; the reader
/// then stands at the beginning again.
fn load_object(
    path: &Path,
    reader: &mut BufReader<File>,
    blobs: &BlobDir,
) -> io::Result<Option<Loaded>> {
    // The head of the first line decides: a record says its type at once.
    let head = reader.fill_buf()?;
    let first_line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let starts_object = trim_padding(head).starts_with(b"{");
    let is_record = contains(&first_line[..first_line.len().min(4096)], b"\"type\"")
        && !contains(&first_line[..first_line.len().min(4096)], b"\"messages\"");
    if !starts_object || is_record || reader.get_ref().metadata()?.len() > LARGEST_OBJECT_BYTES {
        return Ok(None);
    }
    let bytes = std::fs::read(path)?;
    let Ok(raw) = serde_json::from_slice::<RawObject<'_>>(&bytes) else { return Ok(None) };
    let mut decoder = Decoder::new(blobs);
    let total = raw.messages.len();
    let mut messages: Vec<_> =
        raw.messages.into_iter().filter_map(|m| decoder.message(m)).map(Arc::new).collect();
    let mut warnings = decoder_warnings(&decoder);
    if messages.len() < total {
        warnings.push(format!(
            "{} messages of {} are of an unknown kind and were skipped",
            total - messages.len(),
            path.display()
        ));
    }
    mend_pairs(&mut messages);
    let meta = Meta {
        session_id: raw.session_id,
        created_at_ms: raw.created_at_ms,
        updated_at_ms: raw.updated_at_ms,
        workspace_root: raw.workspace_root,
        model: raw.model,
        ..Meta::default()
    };
    let mut session = meta.session(path);
    session.messages = messages;
    Ok(Some(Loaded {
        next_seq: session.messages.len() as u64,
        records: session.messages.len(),
        session,
        prompts: Vec::new(),
        title: None,
        form: FileForm::WholeObject,
        torn_end: false,
        warnings,
        last_is_unfinished: false,
    }))
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}
