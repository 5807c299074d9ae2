//! What tests need around a Claude Code CLI, the real one or its stand-in: its files, its
//! housekeeping requests, and what the stand-in wrote down about its input.

#![expect(clippy::expect_used, reason = "support code fails the test that uses it by panicking")]
#![expect(clippy::missing_panics_doc, reason = "panicking is how a test fails")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mock_api::{MessagesStream, RecordedRequest, Reply};

/// The key that the CLI is given; its end is known to `.claude.json`.
pub const KEY: &str = "sk-ant-planted-claude-key";

/// All hook events that both versions know and that the stand-in fires.
pub const EVENTS: [&str; 15] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "Notification",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "MessageDisplay",
];

/// A root for workers' private folders: ours alone, with a path that leaves room for a socket's.
pub fn private_root() -> TempDir {
    let folder = tempfile::Builder::new().prefix("cw").tempdir_in("/tmp").expect("a folder");
    let ours_alone = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(folder.path(), ours_alone).expect("our own folder");
    folder
}

/// Processes of workers that carry this in their environment, as `NAME=value`.
pub fn worker_processes(carries: &str) -> Vec<i32> {
    let is_one = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut entries = environ.split(|byte| *byte == 0);
        let marker = format!("{}=", claw_workers::process::MARKER_VARIABLE);
        entries.clone().any(|entry| entry == carries.as_bytes())
            && entries.any(|entry| entry.starts_with(marker.as_bytes()))
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_one).collect()
}

/// `.claude.json` of someone who has used the CLI here before: no dialog stands in its way.
pub fn settled(folder: &Path) -> Value {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    json!({
        "hasCompletedOnboarding": true,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": {folder.to_string_lossy(): {"hasTrustDialogAccepted": true}},
    })
}

/// Requests that the CLI makes for itself and no script means: 2.1.197 knocks at the server and asks
/// for a title of the session. Give it to [`MockApi::answer`](crate::mock_api::MockApi::answer).
pub fn housekeeping(request: &RecordedRequest) -> Option<Reply> {
    if request.method == "HEAD" {
        return Some(Reply::body(200, "text/plain", ""));
    }
    let tools = request.body["tools"].as_array().is_none_or(Vec::is_empty);
    let system = request.body["system"].to_string();
    (tools && system.contains("title"))
        .then(|| MessagesStream::say("{\"title\": \"Scripted title\"}"))
}

/// True for a request of the conversation itself.
pub fn is_of_the_story(request: &RecordedRequest) -> bool {
    housekeeping(request).is_none()
}

/// Where the transcript of a session lies.
pub fn transcript(home: &Path, folder: &Path, session: &str) -> PathBuf {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let slug: String = folder
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    home.join(".claude/projects").join(slug).join(format!("{session}.jsonl"))
}

/// The records of a transcript.
pub fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last line may be on its way.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).expect("whole lines of JSON")).collect()
}

/// Every byte that the stand-in read, from the file of its quirk `log-input`.
pub fn typed(log: &Path) -> Vec<u8> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let hex = text.lines().filter_map(|line| line.split_once(' ')).flat_map(|(_, hex)| {
        let digits = hex.as_bytes().chunks(2);
        digits.map(|two| std::str::from_utf8(two).expect("hex digits").to_owned())
    });
    hex.map(|two| u8::from_str_radix(&two, 16).expect("hex digits")).collect()
}
