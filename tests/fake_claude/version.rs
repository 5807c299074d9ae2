//! The two versions whose behaviour is imitated, and where they differ in names.

/// Which CLI is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V197,
    V332,
}

/// Hook events that both versions know.
const COMMON_EVENTS: [&str; 30] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PermissionRequest",
    "PermissionDenied",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "MessageDisplay",
];
const NEWER_EVENTS: [&str; 4] =
    ["PreModelSwitch", "PostModelSwitch", "DirectoryAdded", "PreSkillShellCommand"];

impl Version {
    /// From `FAKE_CLAUDE_VERSION`: `332` (the default) or `197`.
    pub fn from_environment() -> Self {
        match std::env::var("FAKE_CLAUDE_VERSION").as_deref() {
            Ok("197" | "2.1.197") => Self::V197,
            _ => Self::V332,
        }
    }

    pub fn is_332(self) -> bool {
        self == Self::V332
    }

    pub fn number(self) -> &'static str {
        match self {
            Self::V197 => "2.1.197",
            Self::V332 => "2.1.332",
        }
    }

    /// The model of a session that names none.
    pub fn model(self) -> &'static str {
        match self {
            Self::V197 => "claude-opus-4-8[1m]",
            Self::V332 => "claude-opus-5-5",
        }
    }

    pub fn knows_event(self, event: &str) -> bool {
        COMMON_EVENTS.contains(&event) || (self.is_332() && NEWER_EVENTS.contains(&event))
    }

    /// Values of `--permission-mode`.
    pub fn permission_modes(self) -> &'static [&'static str] {
        match self {
            Self::V197 => {
                &["acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan"]
            }
            Self::V332 => &[
                "acceptEdits",
                "auto",
                "bypassPermissions",
                "default",
                "manual",
                "dontAsk",
                "plan",
            ],
        }
    }
}
