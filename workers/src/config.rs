//! What a worker is started with.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::timings::Timings;

/// How we talk to the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// The interactive CLI on a pty.
    #[default]
    Pty,
    /// `-p` with JSON lines in both directions.
    Stream,
}

impl Transport {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pty => "pty",
            Self::Stream => "stream",
        }
    }
}

/// Size of a worker's terminal, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSize {
    pub columns: u16,
    pub rows: u16,
}

impl Default for WindowSize {
    fn default() -> Self {
        Self { columns: 120, rows: 40 }
    }
}

/// Everything that is fixed for the workers of one workspace.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// The CLI: a name on PATH or a path.
    pub program: OsString,
    /// What comes before the program, e.g. `ssh host`. Usually empty.
    pub prefix: Vec<OsString>,
    /// The person's own arguments, before ours.
    pub arguments: Vec<OsString>,
    /// Where it works. Absolute.
    pub cwd: PathBuf,
    /// The person trusts this folder, whatever the CLI has on file.
    pub trusted: bool,
    /// `CLAUDE_CONFIG_DIR`, when it is not the default.
    pub config_dir: Option<PathBuf>,
    /// The home folder, for the default config dir.
    pub home: PathBuf,
    /// The environment of our own process, from which the worker's is made.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of `CLAUDE*` and `AI_AGENT*` variables that may reach the worker.
    pub pass: Vec<String>,
    pub model: Option<String>,
    /// Replaces the CLI's own system prompt; never appended.
    pub system_prompt: Option<String>,
    pub allowed_tools: Vec<String>,
    pub disallowed_tools: Vec<String>,
    /// The CLI's own mode; `default` asks us.
    pub permission_mode: String,
    pub transport: Transport,
    /// The local pass-through proxy for live text.
    pub tap: bool,
    /// Whether the CLI may compact by itself.
    pub auto_compaction: bool,
    /// Without use for this long it is ended; none: never.
    pub idle: Option<Duration>,
    pub size: WindowSize,
    /// The program that the CLI runs as its hooks, with the arguments before the private folder.
    pub hook: Vec<OsString>,
    /// The program that ends our workers when we are killed, with its arguments; empty for none.
    pub guard: Vec<OsString>,
    /// Where private folders are made: short, ours alone.
    pub private_root: PathBuf,
    pub timings: Timings,
}
