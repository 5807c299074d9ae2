//! `glob_search`: files by name.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::row::{CallContext, Tool, blocking};
use super::scope::Scope;
use super::walk::{self, NamePattern, Search, Stopped};
use super::{Grant, ToolFacts, ToolOutcome};
use crate::permissions::PermissionLevel;

/// Files of one result.
const MAX_FILES: usize = 100;

pub(super) struct GlobSearch;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Glob such as **/*.rs or src/**/*.{ts,tsx}. Without a slash it matches names in any folder.
    pattern: String,
    /// Folder to search in; the workspace if left out.
    #[serde(default)]
    path: Option<String>,
}

impl Tool for GlobSearch {
    type Input = Input;
    const NAME: &'static str = "glob_search";
    const ALIASES: &'static [&'static str] = &["Glob"];
    const DESCRIPTION: &'static str = "Finds files of the workspace by a glob on their path, the newest first, at most 100. Files that .gitignore names are left out, hidden ones too unless the pattern names them. Paths come relative to the workspace.";
    const LEVEL: PermissionLevel = PermissionLevel::ReadOnly;

    fn grant(_input: &Input) -> Grant {
        Grant { key: Self::NAME.into(), words: "finding files inside the workspace".into() }
    }

    async fn run(scope: Arc<Scope>, input: Input, call: CallContext) -> ToolOutcome {
        let cancel = call.cancel.clone();
        blocking(&call, move || find(&scope, &input, cancel).unwrap_or_else(ToolOutcome::error))
            .await
    }
}

fn find(scope: &Scope, input: &Input, cancel: CancellationToken) -> Result<ToolOutcome, String> {
    // Models also write the whole path as the pattern.
    let root = format!("{}/", scope.workspace.root().display());
    let pattern = NamePattern::new(input.pattern.strip_prefix(&root).unwrap_or(&input.pattern))?;
    let search = Search::new(scope, input.path.as_deref(), cancel)?;
    if !search.base.absolute.is_dir() {
        return Err(format!("{} is a file; give a folder to search in", search.base.shown));
    }
    let hidden = pattern.names_hidden() || walk::names_hidden(&search.base.shown);
    let mut found: Vec<(Reverse<SystemTime>, PathBuf)> = Vec::new();
    let mut stopped = None;
    for path in search.files(hidden, None) {
        stopped = search.stopped();
        if stopped.is_some() {
            break;
        }
        if pattern.matches(search.below_base(&path)) {
            let modified = path.metadata().and_then(|m| m.modified());
            found.push((Reverse(modified.unwrap_or(SystemTime::UNIX_EPOCH)), path));
        }
    }
    if stopped == Some(Stopped::Cancelled) {
        return Err("interrupted".to_owned());
    }
    found.sort();
    let total = found.len();
    let mut output = String::new();
    for (_, path) in found.iter().take(MAX_FILES) {
        let _ = writeln!(output, "{}", scope.workspace.shown(path));
    }
    let truncated = total > MAX_FILES || stopped.is_some();
    if total == 0 {
        output.push_str("No files match (hidden and ignored files were not looked at).\n");
    }
    if total > MAX_FILES {
        let _ = writeln!(
            output,
            "[truncated: the {MAX_FILES} newest of {total} files; use a narrower pattern]"
        );
    }
    if stopped.is_some() {
        output.push_str("[truncated: the search took too long; give a path to search in]\n");
    }
    let facts = ToolFacts::Matches { matches: total as u64, files: total as u64, truncated };
    Ok(ToolOutcome { facts: Some(facts), ..ToolOutcome::ok(output) })
}
