//! The command line of a worker. Pure.
//!
//! The system prompt replaces the CLI's own and is never appended, `-p` is only for the stream, and
//! what a worker must decide itself is refused among the person's own arguments.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::config::{Transport, WorkerConfig};
use crate::error::WorkerError;
use crate::worker::OpenAs;

/// Options that a worker sets itself, or that would make the program something else than a worker.
const OURS: &[&str] = &[
    "-p",
    "--print",
    "-c",
    "--continue",
    "-r",
    "--resume",
    "--session-id",
    "--fork-session",
    "--settings",
    "--append-system-prompt",
    "--append-system-prompt-file",
    "--input-format",
    "--output-format",
    "--permission-prompt-tool",
    "--bg",
    "--background",
    "-v",
    "--version",
    "-h",
    "--help",
    "--",
];

/// The whole command, the prefix first. `program` is the CLI as it was found; `settings` the file
/// that registers our hooks.
pub fn argv(
    program: &OsStr,
    config: &WorkerConfig,
    open: &OpenAs,
    settings: Option<&Path>,
) -> Result<Vec<OsString>, WorkerError> {
    if let Some(refused) = config.arguments.iter().find(|argument| is_ours(argument)) {
        return Err(WorkerError::Spawn {
            message: format!(
                "the argument {} is decided by the worker itself; take it out of the settings (workers.arguments)",
                refused.to_string_lossy()
            ),
        });
    }
    let mut line = config.prefix.clone();
    line.push(program.to_owned());
    line.extend(config.arguments.iter().cloned());
    let mut add = |words: &[&OsStr]| line.extend(words.iter().map(|word| (*word).to_owned()));
    if config.transport == Transport::Stream {
        add(&STREAM.map(OsStr::new));
    }
    // These two take any number of words, so an option must follow them.
    for (option, tools) in
        [("--allowedTools", &config.allowed_tools), ("--disallowedTools", &config.disallowed_tools)]
    {
        if !tools.is_empty() {
            add(&[option.as_ref()]);
            for tool in tools {
                add(&[tool.as_ref()]);
            }
        }
    }
    if let Some(model) = &config.model {
        add(&["--model".as_ref(), model.as_ref()]);
    }
    if let Some(prompt) = &config.system_prompt {
        add(&["--system-prompt".as_ref(), prompt.as_ref()]);
    }
    // Always said: newer versions start in a mode that decides by itself.
    let mode = Some(config.permission_mode.trim()).filter(|mode| !mode.is_empty());
    add(&["--permission-mode".as_ref(), mode.unwrap_or("default").as_ref()]);
    if let Some(file) = settings {
        add(&["--settings".as_ref(), file.as_os_str()]);
    }
    match open {
        OpenAs::New(id) => add(&["--session-id".as_ref(), id.as_ref()]),
        OpenAs::Resume(id) => add(&["--resume".as_ref(), id.as_ref()]),
        OpenAs::Fork { from, into } => {
            add(&["--resume".as_ref(), from.as_ref(), "--fork-session".as_ref()]);
            add(&["--session-id".as_ref(), into.as_ref()]);
        }
    }
    Ok(line)
}

/// What makes the CLI speak JSON lines in both directions and ask us for permission.
const STREAM: [&str; 10] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
    "--replay-user-messages",
];

/// Also in the form `--option=value`.
fn is_ours(argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    OURS.contains(&text.split('=').next().unwrap_or_default())
}

#[cfg(test)]
mod tests;
