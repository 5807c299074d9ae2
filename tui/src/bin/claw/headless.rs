//! `claw -p`: one turn without a screen. Text goes to standard output as it comes; what needs
//! permission is denied, because nobody is there to be asked.

use std::io::{IsTerminal, Read, Write, stdin, stdout};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use claw_runtime::api::StopReason;
use claw_runtime::permissions::DenyAll;
use claw_runtime::{StreamSink, TuiEvent, TurnStop};
use claw_tui::sanitise::Sanitiser;
use claw_workers::Host;
use tokio_util::sync::CancellationToken;

use crate::args::Options;
use crate::wiring::{self, Failing, Workspace};

/// The reason a denied call gets.
const NOBODY: &str = "nobody can be asked in a run without a screen; --permission-mode decides";

pub fn run(options: Options) -> Result<ExitCode> {
    let prompt = prompt(options.prompt)?;
    let workspace = Workspace::enter(&options.common)?;
    let sink = Arc::new(PlainSink::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut driver = wiring::driver(
            workspace,
            &options.common,
            sink.clone(),
            Arc::new(DenyAll { reason: NOBODY.to_owned() }),
            Failing::Ends,
            Arc::new(Host::default()),
        )?;
        for warning in driver.take_warnings() {
            note(&warning);
        }
        let cancel = CancellationToken::new();
        let stopper = cancel.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                stopper.cancel();
            }
        });
        let outcome = driver.run_one(&prompt, cancel).await;
        driver.close().await;
        outcome.map_err(|error| anyhow::anyhow!("{error}"))
    });
    runtime.shutdown_background();
    sink.finish()?;
    Ok(match outcome?.stop {
        TurnStop::Finished(StopReason::EndTurn | StopReason::StopSequence) => {
            if !sink.wrote() {
                note("the model ended its turn without a text");
            }
            ExitCode::SUCCESS
        }
        TurnStop::Cancelled => ExitCode::from(130),
        stop => {
            note(&early(&stop));
            ExitCode::from(3)
        }
    })
}

/// Words for a turn that did not end as the model wanted it.
fn early(stop: &TurnStop) -> String {
    match stop {
        TurnStop::Finished(StopReason::MaxTokens) => {
            "the answer reached the output limit and is cut off".to_owned()
        }
        TurnStop::Finished(StopReason::Refusal) => "the model refused to answer".to_owned(),
        TurnStop::Finished(StopReason::PauseTurn) => {
            "the model paused before it was done".to_owned()
        }
        TurnStop::Finished(StopReason::Other(reason)) => {
            format!("the model stopped for a reason that is not known here: {reason}")
        }
        TurnStop::IterationLimit(limit) => format!("stopped after {limit} rounds of tool calls"),
        TurnStop::Finished(_) | TurnStop::Cancelled | TurnStop::Failed => {
            "the turn ended early".to_owned()
        }
    }
}

/// The prompt from the command line, or all of standard input.
fn prompt(argument: Option<String>) -> Result<String> {
    let text = match argument.filter(|text| text != "-") {
        Some(text) => text,
        None if stdin().is_terminal() => {
            bail!("no prompt: claw -p \"what you want\", or pipe it in")
        }
        None => {
            let mut text = String::new();
            stdin().read_to_string(&mut text).context("cannot read the prompt")?;
            text
        }
    };
    if text.trim().is_empty() {
        bail!("the prompt is empty");
    }
    Ok(text)
}

/// Something the person should see beside the answer.
#[expect(clippy::print_stderr, reason = "there is no screen in this form")]
fn note(text: &str) {
    eprintln!("claw: {}", claw_tui::sanitise::single_line(text));
}

/// Writes the text of the answer to standard output, sanitised: what is piped is shown sooner or
/// later, and a sequence may come in two pieces.
struct PlainSink {
    state: Mutex<PlainState>,
}

struct PlainState {
    sanitiser: Sanitiser,
    /// The line that is being written: the sanitiser needs it, nothing else.
    line: String,
    wrote: bool,
    /// A message ended; a next one is set off by a blank line.
    between: bool,
    failed: Option<std::io::Error>,
}

impl PlainState {
    fn new() -> Self {
        Self {
            sanitiser: Sanitiser::stream(),
            line: String::new(),
            wrote: false,
            between: false,
            failed: None,
        }
    }

    fn add(&mut self, delta: &str) {
        let before = self.line.len();
        self.sanitiser.push(delta, &mut self.line);
        if self.line.len() == before {
            return;
        }
        let set_off = if std::mem::take(&mut self.between) { "\n\n" } else { "" };
        let text = [set_off, &self.line[before..]].concat();
        self.wrote = true;
        self.write(&text);
        let line_start = self.line.rfind('\n').map_or(0, |at| at + 1);
        self.line.drain(..line_start);
    }

    fn end_message(&mut self) {
        // A sequence that was left open ends with its message.
        self.sanitiser = Sanitiser::stream();
        self.line.clear();
        self.between = self.wrote;
    }

    fn write(&mut self, text: &str) {
        if self.failed.is_some() {
            return;
        }
        let mut out = stdout().lock();
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            self.failed = Some(error);
        }
    }
}

impl PlainSink {
    fn new() -> Self {
        Self { state: Mutex::new(PlainState::new()) }
    }

    fn state(&self) -> MutexGuard<'_, PlainState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrote(&self) -> bool {
        self.state().wrote
    }

    /// Ends the last line; a pipe that was closed early is not an error of ours.
    fn finish(&self) -> Result<()> {
        let mut state = self.state();
        if state.wrote {
            state.write("\n");
        }
        match state.failed.take() {
            Some(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl StreamSink for PlainSink {
    fn emit(&self, event: TuiEvent) {
        match event {
            TuiEvent::TextDelta { text } => self.state().add(&text),
            TuiEvent::MessageStop { .. } => self.state().end_message(),
            TuiEvent::ToolResult { name, outcome, denied: true, .. } => {
                note(&format!("{name} was denied: {}", outcome.output));
            }
            TuiEvent::Retrying { attempt, max_attempts, wait, reason } => note(&format!(
                "retry {attempt} of {max_attempts} in {} s: {reason}",
                wait.as_secs_f32().ceil()
            )),
            TuiEvent::Notice { text, .. } => note(&text),
            _ => {}
        }
    }
}
