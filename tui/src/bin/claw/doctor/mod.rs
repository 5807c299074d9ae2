//! `claw doctor`: looks at the machine and says in plain words what claw finds there, and what to do
//! about what is missing.
//!
//! It changes nothing, connects to nothing, and reads no secret: of keys it knows the names of their
//! variables, of a login whether its file is there. The only program that it runs is the CLI, with
//! `--version`.

mod backends;
mod claude_code;
mod report;
mod surroundings;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Result;
use claw_tui::terminal::capabilities::Capabilities;
use claw_tui::theme::ColourDepth;

use crate::args::{Common, DoctorOptions};
use crate::wiring::{self, Workspace};
use report::{Cause, Check, Report};

/// Prints the report. Fails only when there is no folder to look from.
pub fn run(options: DoctorOptions) -> Result<ExitCode> {
    let common = Common { backend: options.backend, cwd: options.cwd, ..Common::default() };
    let workspace = Workspace::enter(&common)?;
    let capabilities = Capabilities::from_environment(wiring::environment);
    let mut report = Report::default();
    surroundings::program(&mut report);
    surroundings::settings(&mut report, &workspace);
    surroundings::sessions(&mut report, &workspace);
    backends::all(&mut report, &workspace, &common);
    claude_code::all(&mut report, &workspace, backends::wants_claude(&workspace, &common));
    surroundings::terminal(&mut report, capabilities);
    surroundings::helpers(&mut report, capabilities);
    let colours = io::stdout().is_terminal() && capabilities.colours != ColourDepth::None;
    let text = if options.json { report.json() } else { report.text(colours) };
    // Whoever closed the pipe has seen enough.
    let _ = io::stdout().lock().write_all(text.as_bytes());
    Ok(ExitCode::from(report.exit_code()))
}
