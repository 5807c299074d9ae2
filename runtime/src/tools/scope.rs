//! What the built-in tools share: the workspace, the redactor, what was read, background output.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use tempfile::TempDir;

use super::bash::BackgroundJobs;
use super::workspace::{PathError, Resolved, Workspace};
use crate::redact::Redactor;

/// How a file looked when it was last read or written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: Option<SystemTime>,
    len: u64,
}

impl Stamp {
    pub fn of(metadata: &Metadata) -> Self {
        Self { modified: metadata.modified().ok(), len: metadata.len() }
    }
}

/// Shared by all calls of one registry. The lock is held for a map access only; parallel reads
/// each note their stamp.
pub(super) struct Scope {
    pub workspace: Workspace,
    pub redactor: Redactor,
    pub background: BackgroundJobs,
    stamps: Mutex<HashMap<PathBuf, Stamp>>,
    /// Made with the first background command, removed with the registry.
    output_dir: OnceLock<TempDir>,
}

impl Scope {
    pub fn new(workspace: Workspace, redactor: Redactor) -> Self {
        Self {
            workspace,
            redactor,
            background: BackgroundJobs::default(),
            stamps: Mutex::default(),
            output_dir: OnceLock::new(),
        }
    }

    /// The folder for the output of background commands.
    pub fn output_dir(&self) -> std::io::Result<&Path> {
        if let Some(dir) = self.output_dir.get() {
            return Ok(dir.path());
        }
        let made = tempfile::Builder::new().prefix("claw-output-").tempdir()?;
        Ok(self.output_dir.get_or_init(|| made).path())
    }

    /// A path to read: inside the workspace, or output of a background command.
    pub fn resolve_readable(&self, given: &str) -> Result<Resolved, PathError> {
        let output = self.output_dir.get().and_then(|dir| dir.path().canonicalize().ok());
        self.workspace.resolve_or_below(given, output.as_deref())
    }

    /// Notes how the file looks now.
    pub fn note_stamp(&self, path: &Path, stamp: Stamp) {
        let mut stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        stamps.insert(path.to_owned(), stamp);
    }

    /// How the file looked when it was last read or written here.
    pub fn stamp(&self, path: &Path) -> Option<Stamp> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied()
    }
}
