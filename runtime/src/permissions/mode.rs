//! Modes and levels. A mode is a policy the person chose; a level is what a call needs.
//!
//! Neither is a ladder of the other, so modes have no order: what each mode does with each level is
//! one table in [`PermissionMode::verdict`](super::PermissionPolicy).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// How permission is decided. Names as in claw-code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermissionMode {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
    /// Ask for every tool that needs more than nothing.
    Prompt,
    /// Allow everything without asking, except what always asks.
    Allow,
}

/// What a tool call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermissionLevel {
    /// Touches nothing outside the conversation (the todo list).
    None,
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

impl PermissionMode {
    pub const ALL: [PermissionMode; 5] =
        [Self::ReadOnly, Self::WorkspaceWrite, Self::DangerFullAccess, Self::Prompt, Self::Allow];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
            Self::Prompt => "prompt",
            Self::Allow => "allow",
        }
    }

    /// One line for help texts and pickers.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::ReadOnly => "reads run, everything else is denied",
            Self::WorkspaceWrite => "reads and edits inside the workspace run, the rest asks",
            Self::DangerFullAccess => "everything runs, protected files still ask",
            Self::Prompt => "every tool that touches anything asks",
            Self::Allow => "everything runs unasked, protected files still ask",
        }
    }
}

impl PermissionLevel {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for PermissionLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown permission mode \"{0}\"; one of read-only, workspace-write, danger-full-access, prompt, allow"
)]
pub struct ParseModeError(String);

impl FromStr for PermissionMode {
    type Err = ParseModeError;

    /// Also takes the aliases of claw-code's and Claude Code's settings.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Ok(match s {
            "read-only" | "default" | "plan" => Self::ReadOnly,
            "workspace-write" | "acceptEdits" | "auto" => Self::WorkspaceWrite,
            "danger-full-access" | "dontAsk" => Self::DangerFullAccess,
            "prompt" => Self::Prompt,
            "allow" => Self::Allow,
            other => return Err(ParseModeError(other.to_owned())),
        })
    }
}
