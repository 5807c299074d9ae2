//! The binary `claw`: arguments and wiring. Each subcommand has a file of its own beside this one.

mod args;
mod claude;
mod clipboard;
mod doctor;
mod editor;
mod guard;
mod headless;
mod hook;
mod interactive;
mod logging;
mod pool;
mod way_back;
mod wiring;
mod worker_pane;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Task};

fn main() -> ExitCode {
    // The guard is this program too, and must cost nothing: it is looked for before anything else.
    if let Some(code) = guard::stand(std::env::args_os().skip(1)) {
        return code;
    }
    if let Some(code) = claw_workers::guard::stand(std::env::args_os().skip(1)) {
        return code;
    }
    // So is a worker's hook, which runs several times in each of its turns.
    if let Some(code) = hook::run(std::env::args_os().skip(1)) {
        return code;
    }
    let cli = Cli::parse();
    let outcome = match cli.task() {
        Task::Interactive(options) => interactive::run(options),
        Task::Headless(options) => headless::run(options),
        Task::Doctor(options) => doctor::run(options),
        Task::Pool(form) => pool::run(form),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            report(&error);
            ExitCode::from(1)
        }
    }
}

/// The one place that writes a failure of the program itself to stderr.
#[expect(clippy::print_stderr, reason = "the terminal is in its normal state here")]
fn report(error: &anyhow::Error) {
    eprintln!("claw: {error:#}");
}
