//! How a worker can fail, by what the caller does next. No failure is recognised by the words of a
//! reply, a tool result or a screen.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Failure of a worker.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// Install the CLI, or name it in the settings.
    #[error(
        "the program {program} was not found; install Claude Code, put it on PATH, or name it in the settings (workers.program)"
    )]
    ProgramMissing { program: String },
    /// The program is there, and is not one that we know how to drive.
    #[error(
        "{program} does not say that it is Claude Code: {said}. Name another program in the settings (workers.program)"
    )]
    VersionUnknown { program: String, said: String },
    /// The process could not be made (pty, fork, working folder).
    #[error("Claude Code could not be started: {message}")]
    Spawn { message: String },
    /// The person has not said that this folder may be trusted.
    #[error("{folder} is not trusted, and Claude Code works only in folders that you trust. Say yes when claw tui --backend claude asks, or start `claude` there once", folder = .0.display())]
    NotTrusted(PathBuf),
    /// The CLI has no valid login. Known from structured evidence only.
    #[error("Claude Code is not logged in: {message}. Run `claude` and /login, or set its key")]
    Auth { message: String },
    /// It stands at a dialog that is not ours to answer. `screen` is its text.
    #[error(
        "Claude Code waits at a dialog: {title}. Answer it with /worker, or start `claude` in this folder once and answer it there"
    )]
    Dialog { title: String, screen: String },
    /// Not ready in time. `screen` is the last that was seen of it.
    #[error("Claude Code was not ready after {} s{}", .after.as_secs(), tail(.screen))]
    NotReady { after: Duration, screen: String },
    /// It ended before it was ready.
    #[error("Claude Code ended at its start ({status}){}", tail(.screen))]
    StartFailed { status: String, screen: String },
    /// It ended, or its pty broke, while it was in use. `may_have_run`: the prompt had been handed
    /// over, so it must not be sent again unasked.
    #[error("Claude Code ended ({status}){}", tail(.screen))]
    Crashed { status: String, screen: String, may_have_run: bool },
    /// The prompt was not taken in time; whether it will be is unknown, so it is not sent again.
    #[error("Claude Code did not confirm the prompt within {} s; look at it with /worker before you send it again", .0.as_secs())]
    Unconfirmed(Duration),
    /// It does not read what is written to it.
    #[error("Claude Code takes no input: {accepted} of {total} bytes were accepted within {} s", .after.as_secs())]
    NotReading { accepted: usize, total: usize, after: Duration },
    /// Nothing at all happened for this long during a turn.
    #[error("Claude Code showed no sign of life for {} s; the turn was given up", .0.as_secs())]
    Inactive(Duration),
    /// A prompt that the CLI would take for an order of its own.
    #[error("{0}")]
    RefusedPrompt(String),
    /// A line of the transcript or a hook record is larger than the limit.
    #[error("{what} of {bytes} bytes is over the limit of {limit} bytes")]
    TooLarge { what: &'static str, bytes: u64, limit: u64 },
    /// What came is not the protocol that we know.
    #[error("unexpected from Claude Code: {0}")]
    Protocol(String),
    /// A file of ours or of the CLI could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// It was told to stop meanwhile.
    #[error("the worker was stopped")]
    Stopped,
}

/// The end of what was on the screen, for a message.
fn tail(screen: &str) -> String {
    // Lines and corners of boxes say nothing.
    let says = |line: &&str| line.contains(char::is_alphanumeric);
    let last: Vec<&str> = screen.lines().map(str::trim).filter(says).collect();
    match last.as_slice() {
        [] => String::new(),
        lines => format!(": {}", lines[lines.len().saturating_sub(3)..].join(" · ")),
    }
}
