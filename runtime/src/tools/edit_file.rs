//! `edit_file`: an exact replacement in a file, or a clear word why not.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::row::{CallContext, Tool, blocking_to_the_end};
use super::scope::Scope;
use super::text_file::{self, FileError};
use super::workspace::Resolved;
use super::{Grant, ToolOutcome, input, protected};
use crate::permissions::PermissionLevel;

pub(super) struct EditFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The file, relative to the workspace or absolute inside it.
    #[serde(alias = "file_path")]
    path: String,
    /// The exact text to replace, with its indentation and without line numbers.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence instead of exactly one.
    #[serde(default, deserialize_with = "input::lenient")]
    replace_all: Option<bool>,
}

impl Tool for EditFile {
    type Input = Input;
    const NAME: &'static str = "edit_file";
    const ALIASES: &'static [&'static str] = &["Edit"];
    const DESCRIPTION: &'static str = "Replaces exact text in a file of the workspace. old_string must occur exactly once (take enough lines around it to make it unique), or set replace_all to replace every occurrence. Read the file first. The edit is refused if the file changed since it was read.";
    const LEVEL: PermissionLevel = PermissionLevel::WorkspaceWrite;

    fn grant(_input: &Input) -> Grant {
        edits_grant()
    }

    fn always_ask(scope: &Scope, input: &Input) -> Option<String> {
        protected::why_protected(&scope.workspace, &input.path)
    }

    fn preview(scope: &Scope, input: &Input) -> Option<String> {
        let plan = plan(scope, input).ok()?;
        Some(text_file::unified_diff(&plan.old, &plan.new).0)
    }

    async fn run(scope: Arc<Scope>, input: Input, _call: CallContext) -> ToolOutcome {
        blocking_to_the_end(move || edit(&scope, &input).unwrap_or_else(ToolOutcome::error)).await
    }
}

/// One grant for all that changes files: a person who trusts edits trusts whole files too.
pub(super) fn edits_grant() -> Grant {
    Grant { key: "edits:workspace".into(), words: "edits inside the workspace".into() }
}

struct Plan {
    path: Resolved,
    old: String,
    new: String,
    replaced: usize,
}

fn plan(scope: &Scope, input: &Input) -> Result<Plan, String> {
    let text = |error: FileError| error.to_string();
    if input.old_string.is_empty() {
        return Err(
            "old_string is empty; give the text to replace, or create a file with write_file"
                .into(),
        );
    }
    if input.old_string == input.new_string {
        return Err("old_string and new_string are equal; there is nothing to change".into());
    }
    let path = scope.workspace.resolve(&input.path).map_err(|error| error.to_string())?;
    let loaded = text_file::load(&path).map_err(text)?;
    let known = scope.stamp(&path.absolute);
    if known.is_some_and(|known| known != loaded.stamp) {
        return Err(text(FileError::Changed(path.shown)));
    }
    let Ok(old) = String::from_utf8(loaded.bytes) else {
        return Err(text(FileError::NotUtf8(path.shown)));
    };
    let replace_all = input.replace_all.unwrap_or(false);
    let (wanted, put, found) = in_line_ends_of(&old, &input.old_string, &input.new_string);
    match found {
        0 => return Err(not_found(&path.shown, &old, &input.old_string)),
        1 => {}
        _ if known.is_none() => {
            return Err(format!(
                "old_string occurs {found} times in {}, which was not read yet; read it first",
                path.shown
            ));
        }
        _ if replace_all => {}
        _ => {
            return Err(format!(
                "old_string occurs {found} times in {}; take more lines around it to make it unique, or set replace_all to replace all of them",
                path.shown
            ));
        }
    }
    let new = old.replace(&wanted, &put);
    Ok(Plan { path, old, new, replaced: found })
}

fn edit(scope: &Scope, input: &Input) -> Result<ToolOutcome, String> {
    let Plan { path, old, new, replaced } = plan(scope, input)?;
    let stamp = text_file::save(&path, &new).map_err(|error| error.to_string())?;
    scope.note_stamp(&path.absolute, stamp);
    let places = if replaced == 1 { "place" } else { "places" };
    let facts = text_file::diff_facts(&path.shown, Some(&old), &new);
    Ok(ToolOutcome {
        facts: Some(facts),
        ..ToolOutcome::ok(format!("Edited {} in {replaced} {places}.", path.shown))
    })
}

/// The old and the new string with the line ends of the file, and how often the old one occurs.
/// Models write LF; a CRLF file keeps CRLF.
fn in_line_ends_of(text: &str, old: &str, new: &str) -> (String, String, usize) {
    let crlf = text.matches("\r\n").count();
    if crlf > 0 {
        let wanted = text_file::to_crlf(old);
        let found = text.matches(&wanted).count();
        // In a file of mixed line ends a single-line match follows the majority.
        if found > 0 && (old.contains('\n') || crlf * 2 >= text.matches('\n').count()) {
            return (wanted, text_file::to_crlf(new), found);
        }
    }
    (old.to_owned(), new.to_owned(), text.matches(old).count())
}

fn not_found(path: &str, text: &str, old: &str) -> String {
    let hint = if old.lines().all(has_line_number) {
        "; the line numbers that read_file shows are not part of the file"
    } else if matches_but_for_space(text, old) {
        "; it would match if white space were ignored: copy the indentation exactly"
    } else {
        "; read the file again and copy the text exactly"
    };
    format!("old_string was not found in {path}{hint}")
}

fn has_line_number(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(number, _)| {
        !number.trim().is_empty() && number.trim().chars().all(|c| c.is_ascii_digit())
    })
}

fn matches_but_for_space(text: &str, old: &str) -> bool {
    let squeeze = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
    let old = squeeze(old);
    !old.is_empty() && squeeze(text).contains(&old)
}
