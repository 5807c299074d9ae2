//! `claw hook`: what Claude Code runs for each event of a worker. The work is done by the workers'
//! relay; here it gets this process's own input and output.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

/// The subcommand. Its arguments are a worker's private folder and the event's name.
pub const SUBCOMMAND: &str = "hook";

/// Is the hook, when the arguments say so.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != SUBCOMMAND {
        return None;
    }
    let mut arguments = arguments.peekable();
    arguments.peek()?;
    Some(claw_workers::hooks::relay::relay(arguments, io::stdin(), io::stdout()))
}
