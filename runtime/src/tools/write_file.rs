//! `write_file`: a whole file at once.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::row::{CallContext, Tool, blocking_to_the_end};
use super::scope::{Scope, Stamp};
use super::text_file::{self, FileError};
use super::workspace::Resolved;
use super::{Grant, ToolOutcome, edit_file, protected};
use crate::permissions::PermissionLevel;

pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The file, relative to the workspace or absolute inside it.
    #[serde(alias = "file_path")]
    path: String,
    /// The complete new content.
    content: String,
}

impl Tool for WriteFile {
    type Input = Input;
    const NAME: &'static str = "write_file";
    const ALIASES: &'static [&'static str] = &["Write"];
    const DESCRIPTION: &'static str = "Creates a text file of the workspace or replaces its whole content; missing folders are made. To change a part of a file use edit_file. Read an existing file before you replace it. Up to 10 MiB.";
    const LEVEL: PermissionLevel = PermissionLevel::WorkspaceWrite;

    fn grant(_input: &Input) -> Grant {
        edit_file::edits_grant()
    }

    fn always_ask(scope: &Scope, input: &Input) -> Option<String> {
        protected::why_protected(&scope.workspace, &input.path)
    }

    fn preview(scope: &Scope, input: &Input) -> Option<String> {
        let plan = plan(scope, input).ok()?;
        Some(text_file::unified_diff(plan.old.as_deref().unwrap_or(""), &plan.content).0)
    }

    async fn run(scope: Arc<Scope>, input: Input, _call: CallContext) -> ToolOutcome {
        blocking_to_the_end(move || {
            write(&scope, &input).unwrap_or_else(|error| ToolOutcome::error(error.to_string()))
        })
        .await
    }
}

/// What will be written over what.
struct Plan {
    path: Resolved,
    /// None for a new file; empty text for one that cannot be shown.
    old: Option<String>,
    content: String,
}

fn plan(scope: &Scope, input: &Input) -> Result<Plan, FileError> {
    let path = scope.workspace.resolve(&input.path)?;
    let old = match text_file::load(&path) {
        Ok(loaded) => {
            if scope.stamp(&path.absolute).is_some_and(|known| known != loaded.stamp) {
                return Err(FileError::Changed(path.shown));
            }
            Some(String::from_utf8_lossy(&loaded.bytes).into_owned())
        }
        Err(FileError::Missing(_)) => None,
        // Replacing such a file is fine; only its old content is not shown.
        Err(FileError::Binary(_) | FileError::TooLarge { .. }) => Some(String::new()),
        Err(error) => return Err(error),
    };
    let keep_crlf = old.as_deref().is_some_and(text_file::is_crlf);
    let content =
        if keep_crlf { text_file::to_crlf(&input.content) } else { input.content.clone() };
    Ok(Plan { path, old, content })
}

fn write(scope: &Scope, input: &Input) -> Result<ToolOutcome, FileError> {
    let Plan { path, old, content } = plan(scope, input)?;
    let stamp: Stamp = text_file::save(&path, &content)?;
    scope.note_stamp(&path.absolute, stamp);
    let lines = content.lines().count();
    let verb = if old.is_some() { "Replaced" } else { "Created" };
    let facts = text_file::diff_facts(&path.shown, old.as_deref(), &content);
    Ok(ToolOutcome {
        facts: Some(facts),
        ..ToolOutcome::ok(format!("{verb} {}: {lines} lines, {} bytes.", path.shown, content.len()))
    })
}
