//! A tool call in a few words: its main argument and the facts of its outcome.

use std::time::Duration;

use claw_runtime::tools::{TodoStatus, ToolFacts};
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

use crate::numbers::grouped;
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

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

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
    if let Some(Value::Array(questions)) = fields.get("questions") {
        let asked = questions.iter().filter_map(|question| question["question"].as_str());
        return Argument::Text(one_line(&asked.collect::<Vec<_>>().join(" · ")));
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

/// Facts that a good result must have had, read from the input: for results that came without, from
/// workers and from sessions that another program wrote.
pub fn implied_facts(input: &str) -> Option<ToolFacts> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(input) else {
        return None;
    };
    if let Some(todos) = fields.remove("todos") {
        let items = serde_json::from_value(todos).ok()?;
        return Some(ToolFacts::Todo { items });
    }
    let text = |field: &str| fields.get(field).and_then(Value::as_str);
    let (old, new) = (text("old_string")?, text("new_string")?);
    let path = text("file_path").or_else(|| text("path")).unwrap_or_default().to_owned();
    Some(replacement(path, old, new))
}

/// The replacement of a text as a diff: what both have at their ends is context.
fn replacement(path: String, old: &str, new: &str) -> ToolFacts {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let shorter = old.len().min(new.len());
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let after = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let after = after.min(shorter - before);
    let removed = &old[before..old.len() - after];
    let added = &new[before..new.len() - after];
    let mut diff = String::new();
    let mut push = |mark: char, lines: &[&str]| {
        for line in lines {
            diff.push(mark);
            diff.push_str(line);
            diff.push('\n');
        }
    };
    push(' ', &old[before.saturating_sub(CONTEXT_LINES)..before]);
    push('-', removed);
    push('+', added);
    let end = old.len() - after;
    push(' ', &old[end..(end + CONTEXT_LINES).min(old.len())]);
    let (added, removed) = (added.len() as u64, removed.len() as u64);
    ToolFacts::Diff { path, diff, added, removed, created: false }
}

/// Facts of an outcome, in a few words each.
pub fn facts(name: &str, facts: Option<&ToolFacts>, output: &str, is_error: bool) -> Vec<String> {
    let mut words = Vec::new();
    match facts {
        Some(ToolFacts::Command { exit_code, signal, timed_out, cancelled, lines, .. }) => {
            if *timed_out {
                words.push("timed out".to_owned());
            } else if *cancelled {
                words.push("stopped".to_owned());
            } else if let Some(signal) = signal {
                words.push(format!("killed by signal {signal}"));
            } else if let Some(code) = exit_code {
                words.push(format!("exit {code}"));
            }
            words.extend(match lines {
                // What the tool itself says in place of an output, or below it, is none.
                Some(lines) => (*lines > 0).then(|| counted(*lines, "line")),
                None => line_count(output),
            });
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
            let matched =
                if *matches == 1 { "1 match".to_owned() } else { format!("{matches} matches") };
            words.push(match matches {
                0 => "no matches".to_owned(),
                _ if name.to_ascii_lowercase().contains("glob") => {
                    format!("{}{more}", counted(*files, "file"))
                }
                _ => format!("{matched} in {}{more}", counted(*files, "file")),
            });
        }
        Some(ToolFacts::Todo { items }) => {
            let done = items.iter().filter(|item| item.status == TodoStatus::Completed).count();
            words.push(format!("{done} of {} done", items.len()));
        }
        Some(ToolFacts::Denied) => words.push("denied".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, input: &str, expected: &Argument) {
        assert_eq!(&argument(name, input), expected, "{name} {input}");
    }

    #[test]
    fn the_main_argument_is_what_a_person_would_name() {
        let text = |text: &str| Argument::Text(text.to_owned());
        let path = |path: &str| Argument::Path(path.to_owned());
        check("bash", r#"{"timeout":5,"command":"ls -l\ncd x"}"#, &text("ls -l cd x"));
        check("Edit", r#"{"old_string":"a","file_path":"src/a.rs"}"#, &path("src/a.rs"));
        let asked = r#"{"questions":[{"question":"Which?"},{"question":"How?"}]}"#;
        check("AskUserQuestion", asked, &Argument::Text("Which? · How?".into()));
        check("grep_search", r#"{"pattern":"x y","path":"src"}"#, &text("\"x y\" in src"));
        check("Glob", r#"{"pattern":"*.rs"}"#, &text("\"*.rs\""));
        check("mcp__a__b", r#"{"count":3,"city":"Rome"}"#, &text("Rome"));
        check("x", r#"{"count":3}"#, &text(""));
        check("x", "not json\x1b[2J", &text("not json"));
        check("x", "", &text(""));
    }

    #[test]
    fn an_edit_without_facts_is_still_a_diff() {
        let input =
            r#"{"file_path":"a","old_string":"one\ntwo\nthree","new_string":"one\n2\n2b\nthree"}"#;
        let Some(ToolFacts::Diff { diff, added, removed, .. }) = implied_facts(input) else {
            panic!("no diff");
        };
        assert_eq!((diff.as_str(), added, removed), (" one\n-two\n+2\n+2b\n three\n", 2, 1));
        for (old, new) in [("", "a"), ("a", ""), ("a\na", "a"), ("a", "a\na"), ("", ""), ("a", "a")]
        {
            let ToolFacts::Diff { added, removed, .. } = replacement(String::new(), old, new)
            else {
                panic!("no diff");
            };
            let grown = new.lines().count() as u64 + removed;
            assert_eq!(grown, old.lines().count() as u64 + added, "{old:?} {new:?}");
        }
    }

    #[test]
    fn todos_are_read_from_the_input() {
        let input = r#"{"todos":[{"content":"a","activeForm":"b","status":"in_progress"}]}"#;
        assert!(
            matches!(implied_facts(input), Some(ToolFacts::Todo { items }) if items.len() == 1)
        );
        assert_eq!(implied_facts(r#"{"todos":[{"content":1}]}"#), None);
        assert_eq!(implied_facts(r#"{"command":"ls"}"#), None);
    }

    #[test]
    fn durations_are_short() {
        for (millis, expected) in [
            (40, ""),
            (340, "0.3s"),
            (9_900, "9.9s"),
            (12_400, "12s"),
            (61_000, "1m 01s"),
            (3_700_000, "1h 01m"),
        ] {
            assert_eq!(elapsed(Duration::from_millis(millis)), expected);
        }
    }
}
