//! How a worker can fail, by what the caller does next.

use thiserror::Error;

/// Failure of a worker.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// Install the CLI, or name it in the settings.
    #[error("the program {program} was not found; install Claude Code, or put it on PATH")]
    ProgramMissing { program: String },
}
