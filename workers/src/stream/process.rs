//! The process of a stream worker and its three pipes. Lines come out, lines go in; each write is
//! bounded, and nothing is written after one that was not accepted whole.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::turns::Why;
use crate::error::WorkerError;
use crate::process::{self, Marker, Patience, ProcessId};
use crate::timings::Timings;

/// The longest line that is read.
pub(super) const LINE_LIMIT: usize = 16 * 1024 * 1024;
/// What is kept of the end of standard error.
const STDERR_KEPT: usize = 64 * 1024;
/// Lines that wait to be looked at; reading pauses at that.
const LINES_AHEAD: usize = 256;

/// One line of output, or why no more come.
pub(super) enum Line {
    Text(String),
    Failed(WorkerError),
}

/// What became of a line that was written.
pub(super) type Written = (Why, Result<(), NotTaken>);

/// A line that was not taken whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotTaken {
    pub accepted: usize,
    pub total: usize,
    /// Its input is closed: the end of the process follows as a rule, and says more.
    pub closed: bool,
}

/// A running CLI.
pub(super) struct Process {
    pub child: Child,
    id: Option<ProcessId>,
    marker: Marker,
    pub lines: mpsc::Receiver<Line>,
    pub written: mpsc::UnboundedReceiver<Written>,
    /// Dropping it ends the CLI's input once what waits was written.
    input: Option<mpsc::UnboundedSender<(String, Why)>>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts the command. `write` bounds each write.
    pub fn start(
        mut command: Command,
        marker: Marker,
        write: Duration,
    ) -> Result<Self, WorkerError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawn = |source: std::io::Error| WorkerError::Spawn { message: source.to_string() };
        let mut child = command.kill_on_drop(true).spawn().map_err(spawn)?;
        let pipe = || WorkerError::Spawn { message: "it has no pipes".to_owned() };
        let stdin = child.stdin.take().ok_or_else(pipe)?;
        let stdout = child.stdout.take().ok_or_else(pipe)?;
        let errors = child.stderr.take().ok_or_else(pipe)?;
        let id = child.id().and_then(ProcessId::of);
        let stderr = Arc::default();
        let (lines_in, lines) = mpsc::channel(LINES_AHEAD);
        let (input, input_out) = mpsc::unbounded_channel();
        let (written_in, written) = mpsc::unbounded_channel();
        let tasks = vec![
            tokio::spawn(read_lines(stdout, lines_in)),
            tokio::spawn(keep_tail(errors, Arc::clone(&stderr))),
            tokio::spawn(write_lines(stdin, input_out, written_in, write)),
        ];
        Ok(Self { child, id, marker, lines, written, input: Some(input), stderr, tasks })
    }

    /// Puts a line behind those that wait to be written.
    pub fn write(&self, line: String, why: Why) {
        if let Some(input) = &self.input {
            // A writer that is gone has told why.
            let _ = input.send((line, why));
        }
    }

    /// Ends the CLI's input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// The end of its standard error, for a message.
    pub fn stderr_tail(&self) -> String {
        let mut kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).into_owned()
    }

    /// Waits, at most that long, until its standard error was read to the end.
    pub async fn drain_errors(&mut self, wait: Duration) {
        if let Some(reader) = self.tasks.get_mut(1) {
            let _ = tokio::time::timeout(wait, reader).await;
        }
    }
}

impl Process {
    /// All that the CLI has started so far and that lives. To be asked before its end: afterwards
    /// what has dropped the marker belongs to nobody any more.
    pub async fn started(&self) -> Vec<ProcessId> {
        let (id, marker) = (self.id, self.marker.clone());
        process::on_a_thread(move || process::collect(id, &marker)).await.unwrap_or_default()
    }

    /// Ends what is left of the CLI and of what it started, in bounded time.
    pub async fn end_tree(&mut self, started: Vec<ProcessId>, timings: &Timings) {
        // The CLI had its time before: this is for what is left.
        let patience = Patience::abandoned(timings);
        process::end_tree(self.id, &self.marker, patience).await;
        let _ = tokio::time::timeout(timings.kill, self.child.wait()).await;
        let left: Vec<ProcessId> = started.into_iter().filter(|one| one.lives()).collect();
        let ends = left.into_iter().map(|one| process::end_tree(Some(one), &self.marker, patience));
        futures_util::future::join_all(ends).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn read_lines(stdout: impl AsyncRead + Unpin, lines: mpsc::Sender<Line>) {
    let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        // One byte more than allowed, so that a line that is too long is seen to be.
        let read = (&mut stdout).take(LINE_LIMIT as u64 + 1).read_until(b'\n', &mut line).await;
        let told = match read {
            Ok(0) => return,
            Ok(read) if read > LINE_LIMIT && line.last() != Some(&b'\n') => {
                Line::Failed(WorkerError::TooLarge {
                    what: "a line of Claude Code's output",
                    bytes: read as u64,
                    limit: LINE_LIMIT as u64,
                })
            }
            Ok(_) => Line::Text(String::from_utf8_lossy(&line).trim_end().to_owned()),
            Err(error) => Line::Failed(WorkerError::Protocol(format!("reading failed: {error}"))),
        };
        let over = matches!(told, Line::Failed(_));
        if lines.send(told).await.is_err() || over {
            return;
        }
    }
}

async fn keep_tail(mut errors: impl AsyncRead + Unpin, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = errors.read(&mut piece).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&piece[..read]);
        let over = kept.len().saturating_sub(STDERR_KEPT);
        kept.drain(..over);
    }
}

async fn write_lines(
    mut stdin: ChildStdin,
    mut input: mpsc::UnboundedReceiver<(String, Why)>,
    written: mpsc::UnboundedSender<Written>,
    wait: Duration,
) {
    let mut broken = false;
    while let Some((mut line, why)) = input.recv().await {
        line.push('\n');
        let outcome = if broken {
            Err(NotTaken { accepted: 0, total: line.len(), closed: false })
        } else {
            write_line(&mut stdin, line.as_bytes(), wait).await
        };
        broken |= outcome.is_err();
        if written.send((why, outcome)).is_err() {
            return;
        }
    }
}

async fn write_line(stdin: &mut ChildStdin, line: &[u8], wait: Duration) -> Result<(), NotTaken> {
    let deadline = Instant::now() + wait;
    let mut accepted = 0;
    while accepted < line.len() {
        match tokio::time::timeout_at(deadline, stdin.write(&line[accepted..])).await {
            Ok(Ok(bytes @ 1..)) => accepted += bytes,
            other => {
                let closed = matches!(other, Ok(Err(_)));
                return Err(NotTaken { accepted, total: line.len(), closed });
            }
        }
    }
    Ok(())
}
