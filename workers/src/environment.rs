//! The environment of a worker, made from ours: what belongs to another run of the CLI stays behind,
//! what a worker needs is set. Pure; it looks nothing up.

use std::ffi::{OsStr, OsString};

use crate::config::WorkerConfig;
use crate::process::MARKER_VARIABLE;

/// The `CLAUDE*` variables that a person sets for every run of the CLI: its login, its provider, its
/// limits. All the others were left by a run of the CLI that we were started from, and would make a
/// worker take itself for a part of that one.
pub const DEFAULT_PASS: &[&str] = &[
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
    "CLAUDE_CODE_CLIENT_CERT",
    "CLAUDE_CODE_CLIENT_KEY",
    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_SHELL",
];

/// Variables that describe the terminal that *we* run in. A worker has another one.
const OF_OUR_TERMINAL: &[&str] =
    &["COLUMNS", "LINES", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERMCAP"];

/// The environment that a worker is started with, for both transports. `marker` is the value of
/// [`MARKER_VARIABLE`], and no secret: tool commands see it. `tap` is the address that stands for the API.
pub fn child_environment(
    config: &WorkerConfig,
    marker: &str,
    tap: Option<&str>,
) -> Vec<(OsString, OsString)> {
    let mut child = Variables(Vec::new());
    for (name, value) in &config.environment {
        if is_inherited(name, &config.pass) {
            child.set(name, value);
        }
    }
    child.set("HOME", &config.home);
    child.set("TERM", "xterm-256color");
    if !["LANG", "LC_ALL", "LC_CTYPE"].iter().any(|name| child.holds(name)) {
        child.set("LANG", "C.UTF-8");
    }
    if let Some(folder) = &config.config_dir {
        child.set("CLAUDE_CONFIG_DIR", folder);
    }
    if !config.auto_compaction {
        child.set("DISABLE_AUTO_COMPACT", "1");
    }
    // A program that replaces itself while it works for us would be another version than we know.
    child.set("DISABLE_AUTOUPDATER", "1");
    child.set(MARKER_VARIABLE, marker);
    if let Some(address) = tap {
        child.set("ANTHROPIC_BASE_URL", address);
        // The CLI goes through a proxy even to this machine, unless it is told not to.
        for name in ["NO_PROXY", "no_proxy"] {
            let mut hosts = variable(&child.0, name).unwrap_or_default().to_owned();
            if !hosts.is_empty() {
                hosts.push(",");
            }
            hosts.push("127.0.0.1");
            child.set(name, hosts);
        }
    }
    child.0
}

/// The last value of a variable in an environment that is not empty.
pub fn variable<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let found = environment.iter().rev().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
}

/// Whether a variable of ours reaches the worker.
fn is_inherited(name: &OsStr, pass: &[String]) -> bool {
    let upper = name.to_string_lossy().to_uppercase();
    // The config folder is decided by the configuration alone.
    if upper == "CLAUDE_CONFIG_DIR" || OF_OUR_TERMINAL.contains(&upper.as_str()) {
        return false;
    }
    let foreign = ["CLAUDE", "AI_AGENT", "CLAW_"].iter().any(|start| upper.starts_with(start));
    // Our own variables are never passed: they may say how we answer.
    !foreign || (!upper.starts_with("CLAW_") && pass.iter().any(|passed| name == passed.as_str()))
}

/// Variables in order, each name once.
struct Variables(Vec<(OsString, OsString)>);

impl Variables {
    /// Sets a variable. What no process can be given (an empty name, a NUL) is left out.
    fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        let (name, value) = (name.as_ref(), value.as_ref());
        let bytes = name.as_encoded_bytes();
        if bytes.is_empty() || bytes.iter().any(|byte| matches!(byte, b'=' | 0)) {
            return;
        }
        if value.as_encoded_bytes().contains(&0) {
            return;
        }
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, before)) => value.clone_into(before),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    fn holds(&self, name: &str) -> bool {
        variable(&self.0, name).is_some()
    }
}

#[cfg(test)]
mod tests;
