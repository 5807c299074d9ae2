//! A tool call in a few words: its main argument and the facts of its outcome.

use std::time::Duration;

use claw_runtime::tools::{TodoStatus, ToolFacts};
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

use super::thinking::grouped;
use crate::sanitise;

/// Input fields that say best what a call is about, best first.
const SUBJECTS: &[&str] = &[
    "command",
    "file_path",
    "path",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "skill",
    "description",
    "prompt",
    "question",
    "message",
    "code",
    "name",
    "action",
];

/// Outputs longer than this are not counted in lines on the one-line form.
const COUNTED_BYTES: usize = 1024 * 1024;

/// The main argument of a call, in one line.
#[derive(Debug, PartialEq, Eq)]
pub enum Argument {
    /// Cut in front when it is too long: the name comes last.
    Path(String),
    /// Cut at its end when it is too long.
    Text(String),
}

impl Argument {
    pub fn width(&self) -> usize {
        match self {
            Self::Path(text) | Self::Text(text) => text.width(),
        }
    }
}

/// What the call is about.
pub fn argument(name: &str, input: &str) -> Argument {
    let Ok(Value::Object(fields)) = serde_json::from_str(input) else {
        return Argument::Text(sanitise::single_line(input).into_owned());
    };
    let text = |field: &str| fields.get(field).and_then(Value::as_str).map(one_line);
    if let (Some(pattern), true) = (text("pattern"), is_search(name)) {
        return Argument::Text(match text("path").or_else(|| text("glob")) {
            Some(path) if !path.is_empty() => format!("\"{pattern}\" in {path}"),
            _ => format!("\"{pattern}\""),
        });
    }
    for subject in SUBJECTS {
        if let Some(value) = text(subject).filter(|value| !value.is_empty()) {
            return if subject.ends_with("path") {
                Argument::Path(value)
            } else {
                Argument::Text(value)
            };
        }
    }
    let first = fields.values().find_map(Value::as_str).map(one_line);
    Argument::Text(first.unwrap_or_default())
}

fn one_line(value: &str) -> String {
    // Only the first screenful of a long argument can be seen in one line.
    let mut end = value.len().min(2048);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    sanitise::single_line(&value[..end]).into_owned()
}

fn is_search(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("grep") || name.contains("glob")
}

/// The whole input for a person: the command itself, or `field: value` lines.
pub fn input_text(_name: &str, input: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(input) else {
        return input.to_owned();
    };
    let mut out = String::new();
    if let Some(command) = fields.get("command").and_then(Value::as_str) {
        out.push_str(&sanitise::text(command));
        let mut rest = fields.clone();
        rest.remove("command");
        push_fields(&rest, &mut out);
    } else {
        push_fields(&fields, &mut out);
    }
    out
}

fn push_fields(fields: &Map<String, Value>, out: &mut String) {
    for (field, value) in fields {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&sanitise::single_line(field));
        out.push(':');
        match value {
            Value::String(text) if text.contains('\n') => {
                out.push('\n');
                out.push_str(sanitise::text(text).trim_end_matches('\n'));
            }
            Value::String(text) => {
                out.push(' ');
                out.push_str(&sanitise::text(text));
            }
            other => {
                out.push(' ');
                out.push_str(&sanitise::text(&other.to_string()));
            }
        }
    }
}

/// Facts of an outcome, in a few words each.
pub fn facts(facts: Option<&ToolFacts>, output: &str, is_error: bool) -> Vec<String> {
    let mut words = Vec::new();
    match facts {
        Some(ToolFacts::Command { exit_code, signal, timed_out, cancelled, .. }) => {
            if *timed_out {
                words.push("timed out".to_owned());
            } else if *cancelled {
                words.push("stopped".to_owned());
            } else if let Some(signal) = signal {
                words.push(format!("killed by signal {signal}"));
            } else if let Some(code) = exit_code {
                words.push(format!("exit {code}"));
            }
            words.extend(line_count(output));
        }
        Some(ToolFacts::Read { first_line, lines, total_lines, .. }) => {
            words.push(if lines == total_lines {
                counted(*lines, "line")
            } else {
                let last = first_line.saturating_add(*lines).saturating_sub(1);
                format!("lines {first_line}-{last} of {total_lines}")
            });
        }
        Some(ToolFacts::Diff { added, removed, created, .. }) => {
            if *created {
                words.push("new file".to_owned());
            }
            words.push(format!("+{added} -{removed}"));
        }
        Some(ToolFacts::Matches { matches, files, truncated }) => {
            let more = if *truncated { " (there are more)" } else { "" };
            words.push(format!(
                "{} in {}{more}",
                if *matches == 1 { "1 match".to_owned() } else { format!("{matches} matches") },
                counted(*files, "file"),
            ));
        }
        Some(ToolFacts::Todo { items }) => {
            let done = items.iter().filter(|item| item.status == TodoStatus::Completed).count();
            words.push(format!("{done} of {} done", items.len()));
        }
        None if is_error => words.push("failed".to_owned()),
        None => words.extend(line_count(output)),
    }
    words
}

fn line_count(output: &str) -> Option<String> {
    let output = output.trim_end_matches('\n');
    if output.is_empty() {
        return None;
    }
    if output.len() > COUNTED_BYTES {
        return Some(format!("{} kB", grouped(output.len() / 1024)));
    }
    Some(counted(output.lines().count() as u64, "line"))
}

fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// How long something took; nothing when it is too short to matter.
pub fn elapsed(elapsed: Duration) -> String {
    match elapsed.as_millis() {
        0..100 => String::new(),
        100..10_000 => format!("{:.1}s", elapsed.as_secs_f32()),
        _ => seconds(elapsed.as_secs()),
    }
}

/// Whole seconds as people read them.
pub fn seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}
