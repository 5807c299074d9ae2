//! The system prompt: a fixed text, the instruction files, the surroundings. Stable parts first, so
//! that the provider's prompt cache holds.
//!
//! Never in it: settings, environment values, keys, git status or diffs. It starts no process.

mod instructions;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

pub use instructions::InstructionFile;

use crate::redact::{CREDENTIAL_VARIABLES, Redactor};
use crate::settings::config_home;

const MANNER: &str = include_str!("prompt/manner.md");
/// Longest branch name that is told.
const BRANCH_CHARS: usize = 120;

/// The system prompt and what to tell the person about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPrompt {
    /// Most stable first: the fixed text, the instruction files (if any), the surroundings.
    pub blocks: Vec<String>,
    /// Files that were cut, left out or not clean text.
    pub warnings: Vec<String>,
    /// The instruction files that are in it, in order.
    pub files: Vec<InstructionFile>,
}

/// Builds the prompt for work in `workspace`. `environment` looks up one variable: it serves to
/// find the person's own instruction file and to know what must not be in any file.
pub fn system_prompt(
    workspace: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> SystemPrompt {
    let today = jiff::ZonedDateTime::now().date().to_string();
    let credentials = CREDENTIAL_VARIABLES.iter().filter_map(|name| environment(name));
    let redactor = Redactor::new(credentials);
    let found = instructions::read_all(workspace, &user_files(environment), redactor);
    let mut blocks = vec![MANNER.trim_end().to_owned()];
    if let Some(block) = instructions::block(&found.files) {
        blocks.push(block);
    }
    blocks.push(surroundings(workspace, &today));
    SystemPrompt { blocks, warnings: found.warnings, files: found.files }
}

/// Where the person's own instructions may be; the first that exists counts.
fn user_files(environment: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let claude_home = environment("CLAUDE_CONFIG_DIR")
        .map(PathBuf::from)
        .or_else(|| environment("HOME").map(|home| Path::new(&home).join(".claude")));
    config_home(environment)
        .into_iter()
        .flat_map(|home| [home.join("CLAUDE.md"), home.join("AGENTS.md")])
        .chain(claude_home.map(|home| home.join("CLAUDE.md")))
        .collect()
}

/// Facts that may differ from day to day and place to place. The day only: a time would break the
/// cache with every start.
fn surroundings(workspace: &Path, today: &str) -> String {
    let mut text = String::from("# Surroundings\n\n");
    let _infallible =
        writeln!(text, "- Working directory: {}", plain(&workspace.to_string_lossy()));
    let git = git_dir(workspace);
    let _infallible =
        writeln!(text, "- Git repository: {}", if git.is_some() { "yes" } else { "no" });
    if let Some(branch) = git.as_deref().and_then(branch) {
        let _infallible = writeln!(text, "- Branch at the start: {}", plain(&branch));
    }
    let _infallible =
        writeln!(text, "- Platform: {} ({})", std::env::consts::OS, std::env::consts::ARCH);
    let _infallible = write!(text, "- Today: {today}");
    text
}

/// Names can hold anything; a line break in one must not begin a new line of the prompt.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The git folder of the repository around `workspace`, also for worktrees and submodules.
fn git_dir(workspace: &Path) -> Option<PathBuf> {
    let entry = workspace.ancestors().map(|dir| dir.join(".git")).find(|entry| entry.exists())?;
    if entry.is_dir() {
        return Some(entry);
    }
    let text = fs::read_to_string(&entry).ok()?;
    let target = text.lines().next()?.strip_prefix("gitdir:")?.trim();
    Some(entry.parent()?.join(target))
}

/// The branch, or the beginning of the commit when none is checked out.
fn branch(git: &Path) -> Option<String> {
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.lines().next()?.trim();
    match head.strip_prefix("ref:") {
        Some(reference) => {
            let name = reference.trim();
            let name = name.strip_prefix("refs/heads/").unwrap_or(name);
            (!name.is_empty()).then(|| name.chars().take(BRANCH_CHARS).collect())
        }
        None if head.len() >= 12 && head.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Some(format!("none (at commit {})", &head[..12]))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests;
