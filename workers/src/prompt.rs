//! What a prompt looks like on its way into the CLI's input box, and how it is known again when the
//! CLI says what it took.
//!
//! Everything here is text to text. It refuses to pass anything that the input box would take for a
//! key or for an order of its own.

mod images;

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;
use unicode_segmentation::UnicodeSegmentation;

use crate::error::WorkerError;

/// A paste of more than 800 units or more than 3 lines reaches the model wrapped in a tag; below
/// that it arrives as it is. The CLI counts in UTF-16 units.
pub const PIECE_UNITS: usize = 600;
/// LFs in one piece.
pub const PIECE_NEWLINES: usize = 2;

const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// Submits what is in the input box.
pub const CR: &[u8] = b"\r";
/// Interrupts a turn.
pub const ESC: &[u8] = b"\x1b";
/// Empties one line of the input box.
const CTRL_U: u8 = 0x15;

/// The text as it can be typed without side effects: LF line ends, no control characters, spaces
/// for tabs, and no backslash as its last character (the CR after it would only continue the line).
pub fn sanitise(text: &str) -> String {
    let mut clean = String::with_capacity(text.len() + 1);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                // The LF of a CRLF follows by itself.
                if chars.peek() != Some(&'\n') {
                    clean.push('\n');
                }
            }
            '\n' => clean.push('\n'),
            '\t' => clean.push_str("    "),
            // C0, DEL and C1. Without ESC and CSI no paste end can survive.
            c if c.is_control() => {}
            c => clean.push(c),
        }
    }
    // Trailing white space is trimmed by the CLI, and the backslash would be the last one again.
    if clean.trim_end().ends_with('\\') {
        clean.truncate(clean.trim_end().len());
        clean.push(' ');
    }
    clean
}

/// The text of a prompt, ready to be pasted. Refused when the CLI would take it for a command of its
/// own, or when nothing of it is left.
pub fn prepare(text: &str) -> Result<String, WorkerError> {
    let mut clean = sanitise(text);
    let words = visible_start(&clean);
    if words.is_empty() {
        return Err(WorkerError::RefusedPrompt(
            "the prompt is empty; write what is to be done".to_owned(),
        ));
    }
    if is_command(words) {
        let name = words.split_whitespace().next().unwrap_or("/");
        return Err(WorkerError::RefusedPrompt(format!(
            "{name} would be a command of Claude Code, not a prompt; use it with /worker in its own screen, or put a word before it"
        )));
    }
    if words.starts_with('!') {
        // The shell mode needs the first column; with a space before it, it is text.
        clean.insert(0, ' ');
    }
    Ok(clean)
}

/// A command of the CLI that was asked for as such: one line that begins with a slash.
pub fn command(text: &str) -> Result<String, WorkerError> {
    let clean = sanitise(text);
    let line = clean.trim();
    if line.starts_with('/') && !line.contains('\n') {
        return Ok(line.to_owned());
    }
    Err(WorkerError::RefusedPrompt(format!(
        "{line} is not a command of Claude Code; a command is one line with / at its start"
    )))
}

/// Like [`prepare`], and stricter: what goes into a running turn is refused with any control
/// character in it, since nobody means one there.
pub fn prepare_steer(text: &str) -> Result<String, WorkerError> {
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(WorkerError::RefusedPrompt(
            "it holds control characters; remove them and send it again".to_owned(),
        ));
    }
    prepare(text)
}

/// Without what the CLI trims away before it looks at the first character.
fn visible_start(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{200b}')
}

/// A slash and no second one in the first word: with another slash it is a path. A lone slash is a
/// command as well: nothing would be submitted.
fn is_command(words: &str) -> bool {
    words.strip_prefix('/').is_some_and(|rest| {
        let name = rest.split(char::is_whitespace).next().unwrap_or_default();
        !name.contains('/')
    })
}

/// The bytes that put a sanitised text into the input box: consecutive bracketed pastes, each small
/// enough to arrive verbatim. The CR is not among them.
pub fn paste(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + text.len() / 32 + 16);
    for piece in pieces(text) {
        bytes.extend_from_slice(PASTE_BEGIN);
        bytes.extend_from_slice(piece.as_bytes());
        bytes.extend_from_slice(PASTE_END);
    }
    bytes
}

/// Cuts a text into pieces within both limits, between graphemes. Only a grapheme that is over the
/// limit by itself is cut, between its characters.
pub fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    let mut size = Size::default();
    for (at, part) in parts(text) {
        let more = Size::of(part);
        if !size.with(more).fits() {
            pieces.push(&text[begin..at]);
            begin = at;
            size = Size::default();
        }
        size = size.with(more);
    }
    if begin < text.len() {
        pieces.push(&text[begin..]);
    }
    pieces
}

/// Graphemes, and the characters of those that are too large.
fn parts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.grapheme_indices(true).flat_map(|(at, grapheme)| {
        let whole = Size::of(grapheme).fits();
        let single = whole.then_some((at, grapheme)).into_iter();
        let cut = (!whole).then(|| {
            grapheme
                .char_indices()
                .map(move |(offset, c)| (at + offset, &grapheme[offset..offset + c.len_utf8()]))
        });
        single.chain(cut.into_iter().flatten())
    })
}

#[derive(Debug, Clone, Copy, Default)]
struct Size {
    units: usize,
    newlines: usize,
}

impl Size {
    fn of(text: &str) -> Self {
        Self { units: text.encode_utf16().count(), newlines: text.matches('\n').count() }
    }

    fn with(self, more: Self) -> Self {
        Self { units: self.units + more.units, newlines: self.newlines + more.newlines }
    }

    fn fits(self) -> bool {
        self.units <= PIECE_UNITS && self.newlines <= PIECE_NEWLINES
    }
}

/// The bytes that empty an input box which holds so many lines. `unclosed`: a paste was cut in its
/// middle, and the box waits for its end.
pub fn clear(lines: usize, unclosed: bool) -> Vec<u8> {
    let mut bytes = if unclosed { PASTE_END.to_vec() } else { Vec::new() };
    bytes.resize(bytes.len() + lines.max(1), CTRL_U);
    bytes
}

/// Whether the prompt that the CLI says it took is the one that was sent, but for the rewriting that
/// the CLI is known to do: white space at both ends trimmed, tabs expanded, line ends made LF,
/// characters composed, zero-width spaces removed, large pastes wrapped, image files attached. Never
/// by containment.
pub fn receipt_matches(sent: &str, seen: &str) -> bool {
    let sent = canonical(sent);
    if sent.is_empty() {
        return false;
    }
    let (seen, unwrapped) = (canonical(seen), canonical(&unwrap_pastes(seen)));
    seen == sent || unwrapped == sent || images::matches(&sent, &unwrapped)
}

fn canonical(text: &str) -> String {
    let clean: String = sanitise(text).chars().filter(|&c| c != '\u{200b}').collect();
    ComposingNormalizerBorrowed::new_nfc().normalize(clean.trim()).into_owned()
}

/// Removes the tags around pasted content, each with the line ends that came with it.
fn unwrap_pastes(text: &str) -> Cow<'_, str> {
    const OPEN: &str = "<pasted_content id=\"";
    const CLOSE: &str = "</pasted_content id=\"";
    if !text.contains(OPEN) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(OPEN) {
        let unwrapped = inside.split_once("\">\n").and_then(|(id, body)| {
            let (content, after) = body.split_once(&format!("\n{CLOSE}{id}\">"))?;
            Some((content, after.strip_prefix('\n').unwrap_or(after)))
        });
        let Some((content, after)) = unwrapped else { break };
        plain.push_str(before.strip_suffix("\n\n").unwrap_or(before));
        plain.push_str(content);
        rest = after;
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests;
