//! The person's hooks: which are registered, and how one is run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::version::Version;

#[derive(Debug, Clone)]
struct Hook {
    command: String,
    /// Empty for every tool.
    matcher: String,
    timeout: Duration,
}

/// What one hook said.
#[derive(Debug, Clone)]
pub struct Said {
    pub status: Option<i32>,
    pub stdout: String,
    pub command: String,
    pub elapsed: Duration,
}

impl Said {
    /// Its words as JSON, if it ended well.
    pub fn json(&self) -> Option<Value> {
        (self.status == Some(0)).then(|| serde_json::from_str(self.stdout.trim()).ok()).flatten()
    }
}

#[derive(Debug, Default)]
pub struct Hooks {
    by_event: BTreeMap<String, Vec<Hook>>,
    /// Events that this version does not know.
    pub unknown: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Hooks {
    pub fn from_settings(settings: &[Value], version: Version, cwd: &Path) -> Self {
        let mut hooks = Self::default();
        let events = settings.iter().filter_map(|one| one["hooks"].as_object()).flatten();
        for (event, groups) in events {
            if !version.knows_event(event) {
                hooks.unknown.push(event.clone());
                continue;
            }
            for group in groups.as_array().into_iter().flatten() {
                let matcher = group["matcher"].as_str().unwrap_or_default();
                for hook in group["hooks"].as_array().into_iter().flatten() {
                    let Some(command) = hook["command"].as_str() else { continue };
                    let timeout = hook["timeout"].as_f64().unwrap_or(600.0);
                    hooks.by_event.entry(event.clone()).or_default().push(Hook {
                        command: command.to_owned(),
                        matcher: matcher.to_owned(),
                        timeout: Duration::from_secs_f64(timeout),
                    });
                }
            }
        }
        hooks.environment = vec![
            ("CLAUDECODE".to_owned(), "1".to_owned()),
            ("CLAUDE_PROJECT_DIR".to_owned(), cwd.to_string_lossy().into_owned()),
            ("CLAUDE_PID".to_owned(), std::process::id().to_string()),
            ("CLAUDE_CODE_CHILD_SESSION".to_owned(), "1".to_owned()),
            ("CLAUDE_EFFORT".to_owned(), "medium".to_owned()),
        ];
        hooks
    }

    pub fn has(&self, event: &str) -> bool {
        self.by_event.contains_key(event)
    }

    /// Runs every hook of the payload's event, one after the other, and returns what they said.
    /// `kill` ends the one that runs, with its whole process group.
    pub async fn run(
        self: Rc<Self>,
        payload: Value,
        entrypoint: &'static str,
        kill: CancellationToken,
    ) -> Vec<Said> {
        let event = payload["hook_event_name"].as_str().unwrap_or_default();
        let tool = payload["tool_name"].as_str().unwrap_or_default();
        let session = payload["session_id"].as_str().unwrap_or_default();
        let mut all = Vec::new();
        for hook in self.by_event.get(event).into_iter().flatten() {
            if !matches(&hook.matcher, tool) {
                continue;
            }
            let mut command = Command::new("sh");
            command.arg("-c").arg(&hook.command).process_group(0);
            command.envs(self.environment.iter().map(|(name, value)| (name, value)));
            command.env("CLAUDE_CODE_SESSION_ID", session);
            command.env("CLAUDE_CODE_ENTRYPOINT", entrypoint);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            all.extend(run_one(command, &payload, hook, &kill).await);
            if kill.is_cancelled() {
                break;
            }
        }
        all
    }
}

async fn run_one(
    mut command: Command,
    payload: &Value,
    hook: &Hook,
    kill: &CancellationToken,
) -> Option<Said> {
    let began = std::time::Instant::now();
    let mut child = command.spawn().ok()?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let input = format!("{payload}\n");
    let mut stdin = child.stdin.take()?;
    let mut output = child.stdout.take()?;
    let work = async {
        // One that does not read its payload is as good.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let mut stdout = String::new();
        let _ = output.read_to_string(&mut stdout).await;
        let status = child.wait().await.ok().and_then(|status| status.code());
        (status, stdout)
    };
    tokio::select! {
        (status, stdout) = work => Some(Said {
            status, stdout, command: hook.command.clone(), elapsed: began.elapsed(),
        }),
        () = async { tokio::select! {
            () = kill.cancelled() => {},
            () = tokio::time::sleep(hook.timeout) => {},
        } } => {
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            None
        }
    }
}

fn matches(matcher: &str, tool: &str) -> bool {
    matcher.is_empty()
        || matcher == "*"
        || tool.is_empty()
        || matcher.split('|').any(|name| name == tool)
}
