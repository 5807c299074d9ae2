//! `claw -p`: one turn without a screen. Text goes to standard output as it comes; what needs
//! permission is denied, because nobody is there to be asked.

use std::io::{IsTerminal, Read, Write, stdin, stdout};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail};
use claw_runtime::api::StopReason;
use claw_runtime::permissions::DenyAll;
use claw_runtime::{StreamSink, TuiEvent, TurnStop};
use tokio_util::sync::CancellationToken;

use crate::args::Options;
use crate::wiring::{self, Failing, Workspace};

/// The reason a denied call gets.
const NOBODY: &str = "nobody can be asked in a run without a screen; --permission-mode decides";

pub fn run(options: Options) -> Result<ExitCode> {
    let prompt = prompt(options.prompt)?;
    let workspace = Workspace::enter(&options.common)?;
    let sink = Arc::new(PlainSink::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut driver = wiring::driver(
            workspace,
            &options.common,
            sink.clone(),
            Arc::new(DenyAll { reason: NOBODY.to_owned() }),
            Failing::Ends,
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
        driver.run_one(&prompt, cancel).await.map_err(|error| anyhow::anyhow!("{error}"))
    });
    runtime.shutdown_background();
    sink.finish()?;
    Ok(match outcome?.stop {
        TurnStop::Finished(StopReason::EndTurn | StopReason::StopSequence) => ExitCode::SUCCESS,
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

/// Writes text deltas to standard output, sanitised when that is a terminal.
#[derive(Default)]
struct PlainSink {
    state: Mutex<PlainState>,
}

#[derive(Default)]
struct PlainState {
    wrote: bool,
    failed: Option<std::io::Error>,
}

impl PlainSink {
    fn write(&self, text: &str) {
        let Ok(mut state) = self.state.lock() else { return };
        if state.failed.is_some() {
            return;
        }
        let mut out = stdout().lock();
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            state.failed = Some(error);
        }
        state.wrote = true;
    }

    /// Ends the last line; a pipe that was closed early is not an error of ours.
    fn finish(&self) -> Result<()> {
        if self.state.lock().is_ok_and(|state| state.wrote) {
            self.write("\n");
        }
        match self.state.lock().ok().and_then(|mut state| state.failed.take()) {
            Some(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl StreamSink for PlainSink {
    fn emit(&self, event: TuiEvent) {
        match event {
            TuiEvent::TextDelta { text } if stdout().is_terminal() => {
                self.write(&claw_tui::sanitise::text(&text));
            }
            TuiEvent::TextDelta { text } => self.write(&text),
            TuiEvent::MessageStop { stop_reason: StopReason::ToolUse } => self.write("\n\n"),
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
