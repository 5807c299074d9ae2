//! `read_file`: numbered lines of a text file, in portions that fit a model's attention.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::row::{CallContext, Tool, blocking};
use super::scope::Scope;
use super::text_file::{self, FileError};
use super::{Grant, ToolFacts, ToolOutcome, input};
use crate::permissions::PermissionLevel;

/// Lines without `limit`.
const DEFAULT_LINES: u64 = 2_000;
/// Characters of one line.
const MAX_LINE_CHARS: usize = 2_000;
/// Bytes of one result; long before that a model reads in parts.
const MAX_RESULT_BYTES: usize = 100_000;

pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The file, relative to the workspace or absolute inside it.
    #[serde(alias = "file_path")]
    path: String,
    /// First line to read, counted from 1.
    #[serde(default, deserialize_with = "input::lenient")]
    offset: Option<u64>,
    /// How many lines to read; 2000 if left out.
    #[serde(default, deserialize_with = "input::lenient")]
    limit: Option<u64>,
}

impl Tool for ReadFile {
    type Input = Input;
    const NAME: &'static str = "read_file";
    const ALIASES: &'static [&'static str] = &["Read"];
    const DESCRIPTION: &'static str = "Reads a text file of the workspace. Every line comes with its number and a tab, which are not part of the file. Reads up to 2000 lines from the start unless offset and limit say otherwise; lines are cut at 2000 characters. Binary files, directories and files over 10 MiB are refused. Read a file before you edit it. Several files can be read in parallel.";
    const LEVEL: PermissionLevel = PermissionLevel::ReadOnly;

    fn grant(_input: &Input) -> Grant {
        Grant { key: "read_file".into(), words: "reading files inside the workspace".into() }
    }

    async fn run(scope: Arc<Scope>, input: Input, call: CallContext) -> ToolOutcome {
        blocking(&call, move || {
            read(&scope, &input).unwrap_or_else(|error| ToolOutcome::error(error.to_string()))
        })
        .await
    }
}

fn read(scope: &Scope, input: &Input) -> Result<ToolOutcome, FileError> {
    let path = scope.resolve_readable(&input.path)?;
    let loaded = text_file::load(&path)?;
    scope.note_stamp(&path.absolute, loaded.stamp);
    let (text, lossy) = match String::from_utf8(loaded.bytes) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let total = text.lines().count() as u64;
    let first = input.offset.unwrap_or(1).max(1);
    if total == 0 {
        let facts = ToolFacts::Read { path: path.shown, first_line: 1, lines: 0, total_lines: 0 };
        return Ok(ToolOutcome { facts: Some(facts), ..ToolOutcome::ok("(the file is empty)") });
    }
    if first > total {
        return Ok(ToolOutcome::error(format!(
            "{} has {total} lines; offset {first} is past its end",
            path.shown
        )));
    }
    let (mut output, lines) = numbered(text, first, input.limit.unwrap_or(DEFAULT_LINES).max(1));
    let next = first + lines;
    if next <= total {
        let _ =
            writeln!(output, "[lines {first}-{} of {total}; read on with offset {next}]", next - 1);
    }
    if lossy {
        output
            .push_str("[the file is not UTF-8; what could not be decoded is shown as \u{fffd}]\n");
    }
    let facts = ToolFacts::Read { path: path.shown, first_line: first, lines, total_lines: total };
    Ok(ToolOutcome { facts: Some(facts), ..ToolOutcome::ok(output) })
}

/// The lines from `first` with their numbers, and how many they are.
fn numbered(text: &str, first: u64, limit: u64) -> (String, u64) {
    let (mut output, mut count) = (String::new(), 0);
    for (number, line) in (1_u64..).zip(text.lines()).skip((first - 1) as usize) {
        if count == limit || output.len() > MAX_RESULT_BYTES {
            break;
        }
        count += 1;
        let _ = match line.char_indices().nth(MAX_LINE_CHARS) {
            None => writeln!(output, "{number:>6}\t{line}"),
            Some((cut, _)) => writeln!(
                output,
                "{number:>6}\t{} [{} more characters of this line]",
                &line[..cut],
                line[cut..].chars().count()
            ),
        };
    }
    (output, count)
}
