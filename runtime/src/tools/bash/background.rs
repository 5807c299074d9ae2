//! Commands that keep running: their output goes to a file, their end is written below it, and all
//! of them end with the registry that started them.

use std::io::Write;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use super::process::{self, ProcessTree};
use crate::tools::scope::Scope;
use crate::tools::{ToolFacts, ToolOutcome};

/// The background commands of one registry. Dropping it kills those that still run.
#[derive(Default)]
pub(in crate::tools) struct BackgroundJobs {
    running: Arc<Mutex<Vec<Option<ProcessTree>>>>,
}

impl BackgroundJobs {
    fn add(&self, tree: ProcessTree) -> usize {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.push(Some(tree));
        running.len() - 1
    }
}

impl Drop for BackgroundJobs {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        for mut tree in running.drain(..).flatten() {
            tree.kill();
        }
    }
}

/// Starts the command and returns at once.
pub(super) fn start(scope: &Scope, command: &str) -> ToolOutcome {
    let failed = |error: std::io::Error| {
        ToolOutcome::error(format!("the command could not be started in the background: {error}"))
    };
    let opened = scope.output_dir().and_then(|dir| {
        let (file, path) = tempfile::Builder::new()
            .prefix("command-")
            .suffix(".log")
            .tempfile_in(dir)?
            .keep()
            .map_err(|error| error.error)?;
        // Both streams and the closing note append, whoever writes last.
        drop(file);
        let file = std::fs::OpenOptions::new().append(true).open(&path)?;
        Ok((file, path))
    });
    let (mut file, path) = match opened {
        Ok(opened) => opened,
        Err(error) => return failed(error),
    };
    let streams =
        file.try_clone().and_then(|out| Ok((Stdio::from(out), Stdio::from(file.try_clone()?))));
    let spawned =
        streams.and_then(|streams| process::spawn(command, scope.workspace.root(), streams));
    let (mut child, tree) = match spawned {
        Ok(spawned) => spawned,
        Err(error) => return failed(error),
    };
    let pid = child.id().unwrap_or_default();
    let running = Arc::clone(&scope.background.running);
    let place = scope.background.add(tree);
    tokio::spawn(async move {
        let Ok(status) = child.wait().await else { return };
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut tree) = running.get_mut(place).and_then(Option::take) {
            tree.disarm();
        }
        drop(running);
        let _ = writeln!(file, "\n[the command ended: {status}]");
    });
    let facts = ToolFacts::Command {
        exit_code: None,
        signal: None,
        timed_out: false,
        cancelled: false,
        omitted_bytes: 0,
        lines: Some(0),
    };
    ToolOutcome {
        facts: Some(facts),
        ..ToolOutcome::ok(format!(
            "Started in the background with process id {pid}. Output goes to {}; read it with read_file. To end it and what it started: kill -- -{pid}. It is ended when this program is left; if this program is killed, it goes on.",
            path.display()
        ))
    }
}
