//! Every slash command, as one table: name, aliases, arguments, help, when it may run, and the
//! function from its arguments to a [`CommandAction`].
//!
//! Completion, `/help` and the README's table all read [`COMMANDS`]; adding a command is adding a
//! row. This room decides what a line *means*; it refuses to do anything about it: the application
//! carries the action out.

mod parse;
mod table;

use std::fmt::Write as _;
use std::path::PathBuf;

use claw_runtime::permissions::PermissionMode;

pub use parse::{Parsed, nearest, parse};
pub use table::COMMANDS;

/// What a command line asks for. The application executes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandAction {
    /// Keys and commands.
    Help,
    Status,
    Cost,
    Context,
    Config,
    Version,
    /// Switch the model, or choose one from a list.
    Model(Option<String>),
    /// Switch the permission mode, or choose one from a list.
    Permissions(Option<PermissionMode>),
    /// Switch the backend; none means the next one that is configured.
    Backend(Option<String>),
    /// Switch the theme, or choose one from a list.
    Theme(Option<String>),
    Compact,
    /// Start a fresh session; the old one stays on disk.
    Clear,
    SessionList,
    /// Fork the current session, with this branch name, and open the fork.
    SessionFork(Option<String>),
    /// Open a session by id, unique prefix, path or `latest`.
    SessionSwitch(String),
    /// As [`Self::SessionSwitch`]; without a reference, choose from a list.
    Resume(Option<String>),
    /// Write the conversation as markdown.
    Export(Option<PathBuf>),
    /// Show the last so many prompts.
    History(usize),
    Retry,
    /// Interrupt what is running.
    Stop,
    /// Put the last answer on the clipboard.
    Copy,
    /// Show or hide thinking.
    Thinking,
    /// Show or fold the details of tool calls.
    Details,
    /// Look at the worker's own screen and type into it.
    Worker,
    Exit,
}

/// When a command may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Always,
    /// Only between turns: it changes what a running turn stands on.
    Idle,
}

/// What kind of value an argument is, for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Anything; nothing can be offered.
    Free,
    Models,
    PermissionModes,
    Themes,
    Backends,
    Sessions,
}

/// What a command takes after its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    None,
    /// `[label]`
    Optional(&'static str, Values),
    /// `<label>`
    Required(&'static str, Values),
}

/// One row of the table.
#[derive(Debug)]
pub struct CommandSpec {
    /// Without the slash; may have two words ("session fork").
    pub name: &'static str,
    /// Other names that mean the same.
    pub aliases: &'static [&'static str],
    pub argument: Argument,
    /// One line, no full stop.
    pub help: &'static str,
    pub when: When,
    /// From the argument (trimmed, none when absent) to the action, or to what is wrong with it.
    pub build: fn(Option<&str>) -> Result<CommandAction, String>,
}

impl CommandSpec {
    /// `/session fork [branch]`
    #[must_use]
    pub fn usage(&self) -> String {
        match self.argument {
            Argument::None => format!("/{}", self.name),
            Argument::Optional(label, _) => format!("/{} [{label}]", self.name),
            Argument::Required(label, _) => format!("/{} <{label}>", self.name),
        }
    }

    /// What can be offered for its argument.
    #[must_use]
    pub fn values(&self) -> Option<Values> {
        match self.argument {
            Argument::None => None,
            Argument::Optional(_, values) | Argument::Required(_, values) => Some(values),
        }
    }
}

/// Values that only the running program knows, for completion and pickers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary {
    pub models: Vec<String>,
    pub themes: Vec<String>,
    pub backends: Vec<String>,
    /// Session id and title.
    pub sessions: Vec<(String, String)>,
}

impl Vocabulary {
    /// The candidates of one kind, each with a word of explanation (which may be empty).
    #[must_use]
    pub fn candidates(&self, values: Values) -> Vec<(String, String)> {
        let plain = |list: &[String]| list.iter().map(|v| (v.clone(), String::new())).collect();
        match values {
            Values::Free => Vec::new(),
            Values::Models => plain(&self.models),
            Values::Themes => plain(&self.themes),
            Values::Backends => plain(&self.backends),
            Values::Sessions => self.sessions.clone(),
            Values::PermissionModes => PermissionMode::ALL
                .iter()
                .map(|mode| (mode.as_str().to_owned(), mode.describe().to_owned()))
                .collect(),
        }
    }
}

/// The table as markdown, for `/help` and the README.
#[must_use]
pub fn help_markdown() -> String {
    let mut out = String::from("| Command | What it does |\n| --- | --- |\n");
    for spec in COMMANDS {
        let mut names = format!("`{}`", spec.usage());
        for alias in spec.aliases {
            // Writing to a string cannot fail.
            let _ = write!(names, ", `/{alias}`");
        }
        let when = if spec.when == When::Idle { " (between turns)" } else { "" };
        let _ = writeln!(out, "| {names} | {}{when} |", spec.help);
    }
    out
}

#[cfg(test)]
mod tests;
