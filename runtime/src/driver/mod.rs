//! The driver owns the conversation on the runtime thread and turns commands into calls.
//!
//! The front-end holds only the sending end of [`Command`]s and a turn's cancel token; everything
//! comes back as events. Commands are taken one after another: one that arrives during a turn waits
//! until the turn has ended.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::permissions::PermissionMode;
use crate::session::SessionFork;
use crate::usage::UsageReport;

/// What a front-end may order.
#[derive(Debug)]
pub enum Command {
    /// Runs a turn. The token stops it.
    Submit {
        input: String,
        cancel: CancellationToken,
    },
    /// Runs the last, unanswered or partial, turn again without repeating the prompt.
    Retry {
        cancel: CancellationToken,
    },
    Compact {
        cancel: CancellationToken,
    },
    /// A fresh session; the old one stays on disk.
    Clear,
    ListSessions,
    /// Forks the current session and opens the fork.
    Fork {
        branch: Option<String>,
    },
    /// Opens a session by id, unique prefix, path or `latest`.
    Open {
        reference: String,
    },
    /// Writes the conversation as markdown; without a path beside the workspace's files.
    Export {
        path: Option<PathBuf>,
    },
    SetModel {
        model: String,
    },
    SetMode {
        mode: PermissionMode,
    },
    /// Switches the back-end by name; none means the next one that is configured.
    SetBackend {
        name: Option<String>,
    },
    /// Text for `/status`, `/cost`, `/context`, `/config`.
    Report {
        topic: ReportTopic,
    },
    /// Ends the thread after what is running was cancelled.
    Shutdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportTopic {
    Status,
    Cost,
    Context,
    Config,
    Models,
}

/// Facts for the status line.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeStatus {
    /// "anthropic", "openai", "claude", "demo".
    pub backend: String,
    /// One line about the backend that must stay visible (the demo says that it is a demo).
    pub backend_note: Option<String>,
    pub model: String,
    pub mode: PermissionMode,
    pub session_id: String,
    pub fork: Option<SessionFork>,
    pub usage: UsageReport,
    /// All back-ends that could be switched to, in order.
    pub backends: Vec<String>,
}
