//! A stand-in for the Claude Code CLI: the terminal program and the `-p` stream-json mode, in the
//! two versions that were observed. It is a real client of the Messages API, runs the tools that
//! the model asks for, fires the person's hooks and writes the transcript, so one script of an API
//! drives it and the real program alike.
//!
//! `FAKE_CLAUDE_VERSION` chooses the version, `FAKE_CLAUDE_QUIRKS` the faults (see `quirks`).
//! It refuses to be complete: what no worker touches is missing.

mod agent;
mod api;
mod app;
mod app_front;
mod app_keys;
mod argv;
mod commands;
mod conversation;
mod dialog;
mod exchange;
mod failure;
mod front;
mod home;
mod hooks;
mod input_box;
mod keys;
mod message;
mod open;
mod permission;
mod quirks;
mod record;
mod screen;
mod session;
mod start;
mod stream;
mod stream_front;
mod terminal;
mod tool_use;
mod tools;
mod transcript;
mod turn;
mod version;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use argv::Options;
use quirks::Quirks;
use version::Version;

/// The first argument of the copy of this program that becomes a tool's command.
const RUN_IN_OWN_SESSION: &str = "run-in-own-session";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.peek().is_some_and(|first| first == RUN_IN_OWN_SESSION) {
        return run_in_own_session(&arguments.nth(1).unwrap_or_default());
    }
    let version = Version::from_environment();
    let options = match Options::parse(arguments, version) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(1);
        }
    };
    if options.version {
        println!("{} (Claude Code)", version.number());
        return ExitCode::SUCCESS;
    }
    let quirks = Quirks::from_environment();
    if let Some(path) = quirks.path("print-env") {
        let lines = std::env::vars_os().map(|(name, value)| {
            format!("{}={}\n", name.to_string_lossy(), value.to_string_lossy())
        });
        let _ = std::fs::write(path, lines.collect::<String>());
    }
    if let Some(text) = quirks.text("exit-at-start") {
        println!("{text}");
        return ExitCode::from(1);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a tokio runtime");
    let local = tokio::task::LocalSet::new();
    let code = local.block_on(&runtime, async {
        if options.print {
            stream::run(version, options, quirks).await
        } else {
            app::run(version, options, quirks).await
        }
    });
    // Reading threads must not hold it back.
    std::process::exit(code);
}

/// A command of a tool runs in a session of its own, like the CLI's.
fn run_in_own_session(command: &str) -> ExitCode {
    // Fails only for a leader of a group, which a child of ours is not.
    let _ = rustix::process::setsid();
    let script = format!("exec 2>&1\n{command}");
    let error = Command::new("bash").arg("-c").arg(script).exec();
    eprintln!("{error}");
    ExitCode::from(127)
}
