//! What a permission request shows of its input: everything, in the order in which a person reads.
//!
//! The command of a shell call comes first and as it is; an edit shows its diff; all other fields
//! follow as JSON, texts of several lines as they are. Every control and format character is made visible.

use claw_runtime::permissions::{Question, RequestKind};
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::frame;
use super::permission::Waiting;
use crate::sanitise;

/// Fields whose text the diff shows already.
const IN_DIFF: [&str; 5] = ["content", "old_string", "new_string", "replace_all", "new_source"];

/// Fields that say in one line what a call is about, the first that is there.
const SUBJECT: [&str; 8] =
    ["command", "file_path", "path", "notebook_path", "url", "pattern", "query", "code"];

/// A subject is not kept longer than a wide screen.
const SUBJECT_COLUMNS: usize = 300;

/// What a line of the body is, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Command,
    Data,
    Added,
    Removed,
    Hunk,
    Context,
}

/// One line of the body before wrapping, safe to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyLine {
    pub kind: Kind,
    pub text: String,
}

/// The body, and its rows at the width it was last asked for.
#[derive(Debug, Default)]
pub struct Body {
    /// What the call is about, in one line of at most [`SUBJECT_COLUMNS`].
    pub subject: String,
    lines: Vec<BodyLine>,
    /// It is prose, so lines break between words. What will run breaks anywhere: nothing is moved or
    /// dropped in it.
    prose: bool,
    rows: Vec<(usize, std::ops::Range<usize>)>,
    width: Option<usize>,
}

impl Body {
    pub(super) fn of(waiting: &Waiting) -> Self {
        let request = &waiting.request;
        let (subject, lines) = match (&request.kind, &waiting.edited) {
            (RequestKind::Questions(_), _) => match waiting.question() {
                Some(question) => (one_line(&question.question), question_lines(question)),
                None => (String::new(), Vec::new()),
            },
            (RequestKind::Plan { text }, edited) => {
                let text = edited.as_ref().unwrap_or(text);
                let first = text.lines().find(|line| !line.trim().is_empty());
                (one_line(first.unwrap_or_default()), text_lines(text))
            }
            (_, Some(input)) => (subject(input), lines(input, None)),
            (_, None) => {
                (subject(&request.input), lines(&request.input, request.preview.as_deref()))
            }
        };
        let prose = matches!(request.kind, RequestKind::Questions(_) | RequestKind::Plan { .. });
        Self { subject, lines, prose, rows: Vec::new(), width: None }
    }

    /// How many rows it has at this width.
    pub fn rows(&mut self, width: usize) -> usize {
        let width = width.max(2);
        if self.width != Some(width) {
            self.rows = self
                .lines
                .iter()
                .enumerate()
                .flat_map(|(index, line)| {
                    wrap(&line.text, width, self.prose).into_iter().map(move |range| (index, range))
                })
                .collect();
            self.width = Some(width);
        }
        self.rows.len()
    }

    /// A row of the last width asked for.
    pub fn row(&self, index: usize) -> Option<(Kind, &str)> {
        let (line, range) = self.rows.get(index)?;
        let line = &self.lines[*line];
        Some((line.kind, &line.text[range.clone()]))
    }
}

/// Cuts a line into stretches of at most `width` columns, behind a space if that is wanted and there
/// is one.
fn wrap(text: &str, width: usize, words: bool) -> Vec<std::ops::Range<usize>> {
    let mut rows = Vec::new();
    let mut start = 0;
    let mut used = 0;
    // Behind the last space of the row.
    let mut gap = None;
    for (byte, grapheme) in text.grapheme_indices(true) {
        let columns = grapheme.width();
        if used + columns > width && byte > start {
            // A space at the end may stand beyond the edge, where nothing is seen of it.
            if words && grapheme == " " {
                continue;
            }
            let end = gap.take().filter(|gap| words && *gap > start).unwrap_or(byte);
            rows.push(start..end);
            start = end;
            used = text[start..byte].width();
        }
        used += columns;
        if grapheme == " " {
            gap = Some(byte + 1);
        }
    }
    rows.push(start..text.len());
    rows
}

/// The question with everything that its answers mean.
fn question_lines(question: &Question) -> Vec<BodyLine> {
    let mut out = Vec::new();
    push(&mut out, Kind::Command, &question.question);
    for option in question.options.iter().filter(|option| !option.description.is_empty()) {
        push(&mut out, Kind::Context, &format!("{}: {}", option.label, option.description));
    }
    out
}

fn text_lines(text: &str) -> Vec<BodyLine> {
    let mut out = Vec::new();
    push(&mut out, Kind::Context, text.trim_end());
    out
}

/// An input, and the diff of what it would do.
fn lines(input: &str, preview: Option<&str>) -> Vec<BodyLine> {
    let mut out = Vec::new();
    let Ok(Value::Object(mut fields)) = serde_json::from_str(input) else {
        push(&mut out, Kind::Data, input);
        return out;
    };
    if let Some(Value::String(command)) = fields.get("command") {
        push(&mut out, Kind::Command, command);
        fields.shift_remove("command");
    }
    if preview.is_some() {
        fields.retain(|name, _| !IN_DIFF.contains(&name.as_str()));
    }
    // Text of several lines is read as lines, not as one string full of `\n`.
    let mut texts = Vec::new();
    fields.retain(|name, value| match value {
        Value::String(text) if text.contains('\n') => {
            texts.push((name.clone(), std::mem::take(text)));
            false
        }
        _ => true,
    });
    if !fields.is_empty() {
        match serde_json::to_string_pretty(&Value::Object(fields)) {
            Ok(json) => push(&mut out, Kind::Data, &json),
            Err(_) => push(&mut out, Kind::Data, input),
        }
    }
    for (name, text) in texts {
        push(&mut out, Kind::Hunk, &format!("{name}:"));
        push(&mut out, Kind::Context, &text);
    }
    if let Some(diff) = preview {
        for line in diff.lines() {
            let kind = match line.as_bytes().first() {
                Some(b'+') => Kind::Added,
                Some(b'-') => Kind::Removed,
                Some(b'@') => Kind::Hunk,
                _ => Kind::Context,
            };
            push(&mut out, kind, line);
        }
    }
    if out.is_empty() {
        push(&mut out, Kind::Data, "(no input)");
    }
    out
}

fn push(out: &mut Vec<BodyLine>, kind: Kind, text: &str) {
    let safe = sanitise::reveal(text);
    out.extend(safe.split('\n').map(|line| BodyLine { kind, text: line.to_owned() }));
}

fn subject(input: &str) -> String {
    let text = match serde_json::from_str(input) {
        Ok(Value::Object(fields)) => SUBJECT
            .iter()
            .find_map(|name| fields.get(*name)?.as_str().map(str::to_owned))
            .unwrap_or_else(|| input.to_owned()),
        _ => input.to_owned(),
    };
    one_line(&text)
}

fn one_line(text: &str) -> String {
    let safe = sanitise::reveal(text);
    frame::cut(&sanitise::single_line(&safe), SUBJECT_COLUMNS)
}
