//! The Claude Code CLI: where it is, which version, whether it has a login, as far as that can be
//! seen without reading one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use claw_workers::trust::ClaudeFile;
use claw_workers::{WorkerConfig, WorkerError, transcript, version};
use serde_json::Value;

use super::report::State;
use super::{Cause, Check, Report};
use crate::claude;
use crate::wiring::{self, Workspace};

const GROUP: &str = "Claude Code";

/// How long its `--version` may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Variables that are a login, or lead to one.
const LOGINS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

/// `wanted`: it is the backend that would answer, so what it lacks is a problem.
pub fn all(report: &mut Report, workspace: &Workspace, wanted: bool) {
    let settings = workspace.settings.workers();
    let mut config = claude::config(&settings, &workspace.root);
    config.timings.version = PATIENCE;
    let problem = |cause| if wanted { State::Problem(cause) } else { State::Note };
    match find(&config) {
        Ok(cli) => {
            let program = Path::new(&cli.program).display().to_string();
            let text = format!("version {} in {program}", cli.version);
            report.add(GROUP, Check::new("claude.program", State::Ok, text));
            if cli.version < version::OBSERVED {
                let text = format!(
                    "older than {}, the oldest version that claw was tried with",
                    version::OBSERVED
                );
                let check = Check::new("claude.version", State::Note, text);
                report.add(GROUP, check.next("npm install -g @anthropic-ai/claude-code"));
            } else if cli.version > version::NEWEST {
                let text = format!(
                    "newer than {}, the newest version that claw was tried with",
                    version::NEWEST
                );
                let check = Check::new("claude.version", State::Note, text);
                report.add(GROUP, check.next("if something is amiss, try that version"));
            }
        }
        Err(error) => {
            let cause = match error {
                WorkerError::ProgramMissing { .. } => Cause::ProgramMissing,
                _ => Cause::VersionUnknown,
            };
            let check = Check::new("claude.program", problem(cause), error.to_string());
            report.add(
                GROUP,
                check.next(match cause {
                    Cause::ProgramMissing => {
                        "npm install -g @anthropic-ai/claude-code, or set workers.program"
                    }
                    _ => "run it with --version yourself, or set workers.program to another one",
                }),
            );
            // The rest says nothing without it.
            return;
        }
    }
    report.add(GROUP, login(&config, problem(Cause::NoLogin)));
    let trusted = ClaudeFile::of(&config).is_trusted(&workspace.root);
    let text = if trusted {
        "this folder is trusted"
    } else {
        "this folder is not trusted yet; claw asks at the first prompt"
    };
    report.add(GROUP, Check::new("claude.trust", State::Ok, text));
    report.add(GROUP, Check::new("claude.settings", State::Ok, how(&config)));
}

fn find(config: &WorkerConfig) -> Result<version::Cli, WorkerError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| WorkerError::Spawn { message: error.to_string() })?;
    runtime.block_on(version::find_cli(config))
}

fn how(config: &WorkerConfig) -> String {
    let transport = match config.transport {
        claw_workers::Transport::Pty => "on a pty",
        claw_workers::Transport::Stream => "with JSON lines",
    };
    let tap = match (config.transport, config.tap) {
        (claw_workers::Transport::Stream, _) => "",
        (_, true) => ", live text through a local pass-through",
        (_, false) => ", text in whole blocks (tap is off)",
    };
    let prefix = match config.prefix.first() {
        Some(first) => format!(", started by {}", first.to_string_lossy()),
        None => String::new(),
    };
    format!("run {transport}{tap}, permission mode {}{prefix}", config.permission_mode)
}

/// Seen from outside: names of variables, whether files and keys are there. No content.
fn login(config: &WorkerConfig, missing: State) -> Check {
    const ID: &str = "claude.login";
    if !config.prefix.is_empty() {
        let text = "its login is on another machine and cannot be seen from here";
        return Check::new(ID, State::Note, text);
    }
    let reaches = |name: &&str| {
        let passes = !name.starts_with("CLAUDE") || config.pass.iter().any(|passed| passed == name);
        passes && wiring::environment(name).is_some()
    };
    if let Some(name) = LOGINS.iter().find(|name| reaches(name)) {
        return Check::new(ID, State::Ok, format!("logged in by {name}"));
    }
    let folder = transcript::config_dir(config);
    if folder.join(".credentials.json").is_file() {
        return Check::new(
            ID,
            State::Ok,
            "logged in by a file of its own; its content was not read",
        );
    }
    if has_key(&folder.join("settings.json"), "apiKeyHelper") {
        return Check::new(ID, State::Ok, "a program of the person gives it a key (apiKeyHelper)");
    }
    let account = has_key(&account_file(config), "oauthAccount");
    if account && cfg!(target_os = "macos") {
        let text = "an account is known; its login is in the keychain, which is not looked into";
        return Check::new(ID, State::Ok, text);
    }
    let text = if account {
        "an account is known, and no login of it can be seen"
    } else {
        "no login can be seen"
    };
    Check::new(ID, missing, text).next("run `claude` and /login, or set ANTHROPIC_API_KEY")
}

fn account_file(config: &WorkerConfig) -> PathBuf {
    config.config_dir.as_ref().unwrap_or(&config.home).join(".claude.json")
}

/// Whether a JSON file has this key. What it holds is not looked at.
fn has_key(path: &Path, key: &str) -> bool {
    let text = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice::<Value>(&text).is_ok_and(|file| file.get(key).is_some())
}
