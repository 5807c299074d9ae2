//! `claw tui --backend claude` with the stand-in for the Claude Code CLI behind it, in a home and a
//! workspace of its own, and what is left of its workers.

#![expect(clippy::expect_used, reason = "support code fails the test that uses it by panicking")]
#![expect(clippy::missing_panics_doc, reason = "panicking is how a test fails")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::claude::{self, KEY, housekeeping, is_of_the_story};
use crate::harness::{Harness, Running, fake_claude_binary};
use crate::mock_api::{MessagesStream, MockApi, RecordedRequest};
use crate::story::files_below;

/// The surroundings; they outlive the programs that run in them.
pub struct ClaudeBackend {
    pub api: MockApi,
    /// Where private folders are made.
    runtime: TempDir,
    /// The value of `workers` in the settings.
    workers: Value,
    trusted: bool,
    quirks: String,
    version: &'static str,
    /// What it logs in with: the name of a variable and its value.
    login: (&'static str, &'static str),
}

impl Default for ClaudeBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl ClaudeBackend {
    /// A trusted workspace and the CLI on a pty.
    pub fn new() -> Self {
        let api = MockApi::start();
        api.answer(housekeeping);
        Self {
            api,
            runtime: claude::private_root(),
            workers: json!({"program": fake_claude_binary()}),
            trusted: true,
            quirks: String::new(),
            version: "332",
            login: ("ANTHROPIC_API_KEY", KEY),
        }
    }

    /// Nobody has said yet that the workspace may be trusted.
    #[must_use]
    pub fn untrusted(mut self) -> Self {
        self.trusted = false;
        self
    }

    /// One of the `workers` settings.
    #[must_use]
    pub fn setting(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.workers[name] = value.into();
        self
    }

    /// The CLI has an account instead of a key.
    #[must_use]
    pub fn with_account(mut self) -> Self {
        self.login = ("CLAUDE_CODE_OAUTH_TOKEN", KEY);
        self
    }

    /// Faults of the stand-in.
    #[must_use]
    pub fn quirks(mut self, quirks: &str) -> Self {
        quirks.clone_into(&mut self.quirks);
        self
    }

    #[must_use]
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// The program, before it runs.
    pub fn harness(&self) -> Harness {
        let harness = Harness::new()
            .arg("--backend")
            .arg("claude")
            .env(self.login.0, self.login.1)
            .env("ANTHROPIC_BASE_URL", self.api.base_url())
            .env("XDG_RUNTIME_DIR", self.runtime.path().to_string_lossy())
            .env("CLAUDE_CODE_MAX_RETRIES", "1")
            .env("FAKE_CLAUDE_VERSION", self.version)
            .env("FAKE_CLAUDE_QUIRKS", &self.quirks);
        let mut workers = self.workers.clone();
        workers["environment"] = json!(["CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_OAUTH_TOKEN"]);
        let settings = json!({"workers": workers}).to_string();
        let mut known = claude::settled(harness.workspace());
        if !self.trusted {
            known["projects"] =
                json!({"/elsewhere": {"hasTrustDialogAccepted": true, "kept": [1]}});
        }
        std::fs::create_dir_all(harness.home().join(".claw")).expect("a folder in the home");
        std::fs::write(harness.home().join(".claw/settings.json"), settings).expect("settings");
        std::fs::write(harness.home().join(".claude.json"), known.to_string()).expect("a file");
        harness
    }

    /// The program, ready for a prompt.
    #[track_caller]
    pub fn start(&self) -> Running {
        let claw = self.harness().start();
        claw.wait_ready();
        claw
    }

    /// A prompt and its answer, seen to the end.
    #[track_caller]
    pub fn talk(&self, claw: &mut Running, prompt: &str, answer: &str) {
        self.api.push(MessagesStream::say(answer));
        claw.say(prompt);
        claw.wait_for(answer);
        claw.wait_ready();
    }

    /// What the CLI asked the model in the conversation.
    pub fn questions(&self) -> Vec<RecordedRequest> {
        let mut all = self.api.requests();
        all.retain(is_of_the_story);
        all
    }

    /// Every private folder that is there.
    pub fn private_folders(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.runtime.path().join("claw"));
        folders.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    /// Processes of workers of this program: those that carry this run's runtime folder and a marker.
    pub fn worker_processes(&self) -> Vec<i32> {
        let ours = format!("XDG_RUNTIME_DIR={}", self.runtime.path().display());
        let carries = |pid: &i32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let has = |start: &str| {
                environ.split(|byte| *byte == 0).any(|entry| entry.starts_with(start.as_bytes()))
            };
            has(&ours) && has("CLAW_WORKER=")
        };
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(carries).collect()
    }

    /// The CLI's transcripts: session ids and their text.
    pub fn transcripts(home: &Path) -> Vec<(String, String)> {
        let files = files_below(&home.join(".claude/projects"));
        let of_session = |(path, text): (PathBuf, String)| {
            let own = path.extension()? == "jsonl" && path.parent()?.file_name()? != "subagents";
            own.then_some((path.file_stem()?.to_str()?.to_owned(), text))
        };
        files.into_iter().filter_map(of_session).collect()
    }
}
