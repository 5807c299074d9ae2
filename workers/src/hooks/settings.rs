//! The settings that register our program as the hook of each event. Pure.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::config::WorkerConfig;
use crate::error::WorkerError;
use crate::hooks::PERMISSION_REQUEST;

/// The content of the settings file for these events. Each command is the configured program, the
/// private folder and the event's name, quoted for the shell that runs it.
pub fn settings(
    config: &WorkerConfig,
    private_dir: &Path,
    events: &[&str],
) -> Result<String, WorkerError> {
    let words = config.hook.iter().map(OsString::as_os_str).chain([private_dir.as_os_str()]);
    let words = words.map(quoted).collect::<Option<Vec<_>>>();
    let command = words.filter(|words| words.len() > 1).ok_or_else(|| WorkerError::Spawn {
        message: "the hook's program or folder has a path that is not valid UTF-8".to_owned(),
    })?;
    let command = command.join(" ");
    let timings = &config.timings;
    let hooks: Map<String, Value> = events
        .iter()
        .map(|event| {
            let timeout = if *event == PERMISSION_REQUEST {
                timings.permission + timings.hook_margin
            } else {
                timings.hook
            };
            let hook = json!({
                "type": "command",
                // In the shell's place, so that whoever ends the hook ends our program.
                "command": format!("exec {command} {event}"),
                "timeout": whole_seconds(timeout),
            });
            ((*event).to_owned(), json!([{ "hooks": [hook] }]))
        })
        .collect();
    Ok(json!({ "hooks": hooks }).to_string())
}

/// The CLI takes whole seconds; less than asked for would cut a wait of ours short.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// A word that a POSIX shell takes as it is; `None` when it is not text.
fn quoted(word: &OsStr) -> Option<String> {
    let word = word.to_str().filter(|word| !word.contains('\0'))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Some(word.to_owned());
    }
    Some(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests;
