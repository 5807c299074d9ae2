//! How an ask can fail. Every kind has one name, the same in the library, on the socket and in the
//! program's output.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::error::WorkerError;
use crate::fact::Fact;

/// What was being done when the time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Queued,
    Starting,
    Running,
}

impl Stage {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Running => "running",
        }
    }
}

/// Failure of an ask or of the pool.
#[derive(Debug, Error)]
pub enum PoolError {
    #[error("the pool is closed")]
    Closed,
    #[error("{0} asks wait already; try again later")]
    Busy(usize),
    #[error("no answer within {} s (it was {})", .after.as_secs_f32(), .stage.as_str())]
    Timeout { stage: Stage, after: Duration },
    #[error("session {session} works in {}, not in {}", .works_in.display(), .wanted.display())]
    OtherFolder { session: String, works_in: PathBuf, wanted: PathBuf },
    #[error("{0}")]
    BadRequest(String),
    /// The API refused or failed.
    #[error("{message}")]
    Api { message: String },
    /// Somebody stopped the turn.
    #[error("the turn was stopped before it had an answer")]
    Interrupted,
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

impl PoolError {
    /// The stable name of its kind.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Busy(_) => "busy",
            Self::Timeout { .. } => "timeout",
            Self::OtherFolder { .. } => "other_folder",
            Self::BadRequest(_) => "bad_request",
            Self::Api { .. } => "api",
            Self::Interrupted => "interrupted",
            Self::Worker(error) => match error {
                WorkerError::ProgramMissing { .. } => "program_missing",
                WorkerError::VersionUnknown { .. } => "version_unknown",
                WorkerError::Spawn { .. } => "spawn",
                WorkerError::NotTrusted(_) => "not_trusted",
                WorkerError::Auth { .. } => "auth",
                WorkerError::Dialog { .. } => "dialog",
                WorkerError::NotReady { .. } => "not_ready",
                WorkerError::StartFailed { .. } => "start_failed",
                WorkerError::Crashed { .. } => "crashed",
                WorkerError::Unconfirmed(_) => "unconfirmed",
                WorkerError::NotReading { .. } => "not_reading",
                WorkerError::Inactive(_) => "inactive",
                WorkerError::RefusedPrompt(_) => "refused_prompt",
                WorkerError::TooLarge { .. } => "too_large",
                WorkerError::Protocol(_) => "protocol",
                WorkerError::File { .. } => "file",
                WorkerError::Stopped => "stopped",
            },
        }
    }

    /// The status with which the program ends when this is all it has to say. Each cause that a
    /// script may want to tell apart has its own.
    pub fn exit_code(&self) -> u8 {
        Self::exit_code_of(self.name())
    }

    /// The same by the name alone.
    pub fn exit_code_of(name: &str) -> u8 {
        match name {
            "bad_request" | "refused_prompt" | "other_folder" | "too_large" | "line_too_long" => 2,
            "program_missing" => 3,
            "version_unknown" => 4,
            "auth" => 5,
            "not_trusted" => 6,
            "dialog" => 7,
            "timeout" | "not_ready" | "inactive" | "unconfirmed" | "not_reading" => 8,
            "busy" | "closed" | "too_many_connections" => 9,
            "api" => 10,
            _ => 1,
        }
    }

    pub(super) fn of_api(fact: &Fact) -> Self {
        let message = match fact {
            Fact::ApiFailure { text, details: Some(details), .. } if text.trim().is_empty() => {
                details.clone()
            }
            Fact::ApiFailure { text, .. } => text.clone(),
            _ => "the API failed".to_owned(),
        };
        Self::Api { message }
    }
}
