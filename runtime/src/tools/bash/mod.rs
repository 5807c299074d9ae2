//! `bash`: a command in a shell, apart from the terminal, bounded in time and output, ended whole.
//!
//! No sandbox: what a command may do is decided before it runs. It does not keep a shell between
//! calls.

mod background;
mod danger;
mod output;
mod process;

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::Child;

use super::row::{CallContext, Tool};
use super::scope::Scope;
use super::{Grant, ToolFacts, ToolOutcome, input};
use crate::event::TuiEvent;
use crate::permissions::PermissionLevel;
pub(super) use background::BackgroundJobs;
use output::{Output, Written};
use process::ProcessTree;

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
const MAX_TIMEOUT: Duration = Duration::from_mins(10);
/// How long output is still read once the command is over: something that it left behind may hold
/// the pipe open for ever.
const DRAIN: Duration = Duration::from_millis(250);
/// The same after an interrupt, where the person waits.
const DRAIN_INTERRUPTED: Duration = Duration::from_millis(20);
const READ_BYTES: usize = 64 * 1024;

pub(super) struct Bash;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The command line, run by bash in the workspace folder.
    command: String,
    /// Time limit in milliseconds; 120000 if left out, at most 600000.
    #[serde(default, deserialize_with = "input::lenient")]
    timeout: Option<u64>,
    /// What the command does, in five to ten words, for the person.
    #[serde(default)]
    #[expect(dead_code, reason = "read by people, from the call's input")]
    description: Option<String>,
    /// Start it and return at once; its output goes to a file.
    #[serde(default, deserialize_with = "input::lenient")]
    run_in_background: Option<bool>,
}

impl Tool for Bash {
    type Input = Input;
    const NAME: &'static str = "bash";
    const ALIASES: &'static [&'static str] = &["Bash"];
    const DESCRIPTION: &'static str = "Runs a command with bash in the workspace folder and returns its output (stdout and stderr together) and exit code. Every call starts a new shell in the workspace folder: directories and variables do not carry over, so chain with && where they must. There is no input and no terminal; pass flags that keep programs from asking. Of long output the start and the end are kept. The command and everything it started is ended after the timeout. For servers and other programs that keep running set run_in_background and read the output file with read_file. To read, change or search files prefer the file and search tools.";
    const LEVEL: PermissionLevel = PermissionLevel::DangerFullAccess;

    fn grant(input: &Input) -> Grant {
        Grant { key: format!("bash:{}", input.command), words: format!("`{}`", input.command) }
    }

    fn always_ask(scope: &Scope, input: &Input) -> Option<String> {
        danger::why_destructive(&input.command)
            .or_else(|| danger::why_protected(scope.workspace.root(), &input.command))
    }

    async fn run(scope: Arc<Scope>, input: Input, call: CallContext) -> ToolOutcome {
        if input.command.trim().is_empty() {
            return ToolOutcome::error("the command is empty; give a command line");
        }
        if input.command.contains('\0') {
            return ToolOutcome::error("the command holds a NUL character; remove it");
        }
        if input.run_in_background.unwrap_or(false) {
            return background::start(&scope, &input.command);
        }
        let limit = match input.timeout {
            None | Some(0) => DEFAULT_TIMEOUT,
            Some(millis) => Duration::from_millis(millis).min(MAX_TIMEOUT),
        };
        foreground(&scope, &input.command, limit, &call).await
    }
}

/// How a command came to its end.
enum End {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
    /// Waiting for it failed.
    Lost(std::io::Error),
}

async fn foreground(
    scope: &Scope,
    command: &str,
    limit: Duration,
    call: &CallContext,
) -> ToolOutcome {
    let started = Instant::now();
    let (child, mut tree, mut reader) = match start(scope, command) {
        Ok(parts) => parts,
        Err(error) => {
            return ToolOutcome::error(format!(
                "the command could not be started: {error}; is bash installed and the workspace folder still there?"
            ));
        }
    };
    let mut child = child;
    let mut output = Output::new(&scope.redactor, started);
    let mut screen = Screen { call, output: &mut output };
    let end = screen.follow(&mut child, &mut reader, limit).await;
    let drain = if matches!(end, End::Exited(_)) { DRAIN } else { DRAIN_INTERRUPTED };
    if matches!(end, End::Exited(_)) {
        tree.disarm();
    } else {
        // Escalation goes on after the call returned; if the runtime ends first, the drop kills.
        tokio::spawn(tree.end(child));
    }
    let closed = screen.drain(&mut reader, drain).await;
    if !closed && matches!(end, End::Exited(_)) {
        // What was left behind must not die of a closed pipe when it writes next.
        tokio::spawn(async move { tokio::io::copy(&mut reader, &mut tokio::io::sink()).await });
    }
    let (last, written) = output.finish(Instant::now());
    if let Some(text) = last {
        call.sink.emit(TuiEvent::ToolOutput { id: call.id.clone(), text });
    }
    report(&end, written, closed, started.elapsed())
}

fn start(scope: &Scope, command: &str) -> std::io::Result<(Child, ProcessTree, pipe::Receiver)> {
    // One pipe for both streams keeps the order in which they were written.
    let (reader, writer) = std::io::pipe()?;
    let reader = pipe::Receiver::from_owned_fd(reader.into())?;
    let second = writer.try_clone()?;
    let output = (Stdio::from(writer), Stdio::from(second));
    let (child, tree) = process::spawn(command, scope.workspace.root(), output)?;
    Ok((child, tree, reader))
}

/// The running output of one call.
struct Screen<'a> {
    call: &'a CallContext,
    output: &'a mut Output,
}

impl Screen<'_> {
    /// Reads and shows output until the command is over, out of time or cancelled.
    async fn follow(
        &mut self,
        child: &mut Child,
        reader: &mut pipe::Receiver,
        limit: Duration,
    ) -> End {
        let deadline = tokio::time::Instant::now() + limit;
        let mut buffer = vec![0; READ_BYTES];
        let mut open = true;
        loop {
            let due = self.output.due();
            tokio::select! {
                biased;
                () = self.call.cancel.cancelled() => return End::Cancelled,
                () = tokio::time::sleep_until(deadline) => return End::TimedOut,
                status = child.wait() => {
                    return match status {
                        Ok(status) => End::Exited(status),
                        Err(error) => End::Lost(error),
                    };
                }
                () = until(due) => self.show(),
                read = reader.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => self.output.push(Instant::now(), &buffer[..count]),
                },
            }
        }
    }

    /// Reads what is still in the pipe, for at most `limit`. True if the pipe was closed.
    async fn drain(&mut self, reader: &mut pipe::Receiver, limit: Duration) -> bool {
        let deadline = tokio::time::Instant::now() + limit;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match tokio::time::timeout_at(deadline, reader.read(&mut buffer)).await {
                Ok(Ok(0) | Err(_)) => return true,
                Ok(Ok(count)) => self.output.push(Instant::now(), &buffer[..count]),
                Err(_) => return false,
            }
        }
    }

    fn show(&mut self) {
        if let Some(text) = self.output.take_live(Instant::now()) {
            self.call.sink.emit(TuiEvent::ToolOutput { id: self.call.id.clone(), text });
        }
    }
}

/// Waits until then; for ever when there is nothing to wait for.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

fn report(end: &End, written: Written, closed: bool, elapsed: Duration) -> ToolOutcome {
    let Written { mut text, omitted_bytes, lines } = written;
    let status = if let End::Exited(status) = end { Some(*status) } else { None };
    let seconds = elapsed.as_secs_f64();
    let note = match end {
        End::Exited(status) if status.success() && !text.is_empty() => None,
        End::Exited(status) if status.success() => Some("(succeeded without output)".to_owned()),
        End::Exited(status) => Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("[exit code {code}]"),
            (None, Some(signal)) => format!("[ended by signal {signal}]"),
            (None, None) => "[ended abnormally]".to_owned(),
        }),
        End::TimedOut => Some(format!(
            "[timed out after {seconds:.1} s; the command and everything it started was ended. Pass a longer timeout, or run_in_background for what keeps running]"
        )),
        End::Cancelled => Some(format!(
            "[interrupted by the person after {seconds:.1} s; the command and everything it started was ended]"
        )),
        End::Lost(error) => Some(format!("[waiting for the command failed: {error}]")),
    };
    let left_behind = (status.is_some() && !closed).then_some(
        "[a process that the command started is still running; its further output is not shown. Use run_in_background for such programs]",
    );
    for line in [note.as_deref(), left_behind].into_iter().flatten() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(line);
    }
    ToolOutcome {
        output: text,
        is_error: !status.is_some_and(|status| status.success()),
        facts: Some(ToolFacts::Command {
            exit_code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            timed_out: matches!(end, End::TimedOut),
            cancelled: matches!(end, End::Cancelled),
            omitted_bytes,
            lines: Some(lines),
        }),
        elapsed,
    }
}
