//! One living CLI process on a pty, for an async owner: its output becomes a screen, its input is
//! written without ever blocking, its end is seen, and everything that it started ends with it.
//!
//! It does not know what the CLI says or means.

mod exit;
mod input;
mod output;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::sync::oneshot;

pub use exit::Exit;
pub use input::Input;
pub use output::LiveScreen;

use crate::config::WindowSize;
use crate::error::WorkerError;
use crate::process::{self, Marker, Patience, ProcessId};
use crate::pty::{self, Leader, PtyCommand};
use crate::timings::Timings;
use output::Output;

/// A process on a pty. Dropping it ends it, with all that it started, in the background.
pub struct PtyChild {
    id: ProcessId,
    marker: Marker,
    timings: Timings,
    input: Input,
    screen: LiveScreen,
    /// Until its end has begun.
    living: Option<Living>,
}

/// What is given up when the process has ended.
struct Living {
    leader: Leader,
    output: Output,
    master: Arc<OwnedFd>,
}

impl PtyChild {
    /// Starts a command on a new pty. `marker` is put into its environment; by it everything is found
    /// that it leaves behind. Needs a tokio runtime with I/O and time.
    pub fn spawn(
        command: &PtyCommand,
        size: WindowSize,
        marker: &Marker,
        timings: &Timings,
    ) -> Result<Self, WorkerError> {
        let mut command = command.clone();
        command.environment.retain(|(name, _)| name != process::MARKER_VARIABLE);
        command.environment.push((process::MARKER_VARIABLE.into(), marker.as_str().into()));
        let (master, leader) = pty::spawn(&command, size)?;
        let master = Arc::new(master);
        let started = Started { leader, marker, timings, size };
        started.attach(master)
    }

    /// The process that was started; the leader of its session.
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// What its terminal shows. Outlives the process.
    pub fn screen(&self) -> &LiveScreen {
        &self.screen
    }

    /// Where bytes for it go; may be kept by others.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// [`Input::write`].
    pub async fn write(&self, bytes: &[u8]) -> Result<(), WorkerError> {
        self.input.write(bytes).await
    }

    pub fn resize(&self, size: WindowSize) {
        // The screen first: what is drawn for the new size must not be read on one of the old.
        self.screen.resize(size);
        if let Some(living) = &self.living {
            // Fails only where the terminal is gone, and with it whoever could look at it.
            let _ = pty::resize(&living.master, size);
        }
    }

    /// Waits for the end of the process, and until what it wrote is on the screen. It is not reaped
    /// before [`end`](Self::end), so that its id stays its own. May be called again and dropped.
    pub async fn exited(&self) -> Exit {
        match &self.living {
            Some(living) => living.output.exited().await,
            None => Exit::default(),
        }
    }

    /// Ends it and everything that it started: SIGTERM, `Timings.terminate`, SIGKILL,
    /// `Timings.kill`. Returns what lives even then. A dropped future changes nothing.
    pub async fn end(self) -> Vec<ProcessId> {
        let patience = Patience::from(&self.timings);
        self.end_within(patience).await
    }

    /// [`end`](Self::end) for those who have other plans with the time.
    pub async fn end_within(mut self, patience: Patience) -> Vec<ProcessId> {
        match self.begin_end(patience) {
            Some(ended) => ended.await.unwrap_or_default(),
            None => Vec::new(),
        }
    }

    fn begin_end(&mut self, patience: Patience) -> Option<oneshot::Receiver<Vec<ProcessId>>> {
        let mut living = self.living.take()?;
        self.input.close();
        let (id, marker) = (self.id, self.marker.clone());
        Some(process::on_a_thread(move || {
            // Its output is read meanwhile: one that cannot write its last words does not end.
            let left = process::end_tree_now(Some(id), &marker, patience);
            living.leader.reap();
            living.output.stop();
            left
        }))
    }
}

impl Drop for PtyChild {
    fn drop(&mut self) {
        // Nobody waits for it.
        let _ = self.begin_end(Patience::abandoned(&self.timings));
    }
}

/// A process that nobody watches yet.
struct Started<'a> {
    leader: Leader,
    marker: &'a Marker,
    timings: &'a Timings,
    size: WindowSize,
}

impl Started<'_> {
    /// Gives it an owner, or ends it.
    fn attach(self, master: Arc<OwnedFd>) -> Result<PtyChild, WorkerError> {
        let pid = self.leader.pid();
        let screen = LiveScreen::new(self.size);
        let attached = ProcessId::read(pid)
            .ok_or_else(|| std::io::Error::other("it is not in the table of processes"))
            .and_then(|id| {
                let output = Output::start(master.clone(), screen.clone(), pid)?;
                let input = Input::new(&master, output.exit(), self.timings.write)?;
                Ok((id, input, output))
            });
        match attached {
            Ok((id, input, output)) => Ok(PtyChild {
                id,
                marker: self.marker.clone(),
                timings: self.timings.clone(),
                input,
                screen,
                living: Some(Living { leader: self.leader, output, master }),
            }),
            Err(error) => {
                self.abandon();
                Err(WorkerError::Spawn { message: error.to_string() })
            }
        }
    }

    fn abandon(mut self) {
        let (marker, patience) = (self.marker.clone(), Patience::abandoned(self.timings));
        // Not waited for: the caller has its error already.
        drop(process::on_a_thread(move || {
            process::end_tree_now(ProcessId::read(self.leader.pid()), &marker, patience);
            self.leader.reap();
        }));
    }
}

#[cfg(test)]
mod tests;
