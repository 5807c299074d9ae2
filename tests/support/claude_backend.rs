//! `claw tui --backend claude` with the stand-in for the Claude Code CLI behind it, in a home and a
//! workspace of its own, and what is left of its workers.

#![expect(clippy::expect_used, reason = "support code fails the test that uses it by panicking")]
#![expect(clippy::missing_panics_doc, reason = "panicking is how a test fails")]

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::claude::{self, KEY, housekeeping, is_of_the_story};
use crate::harness::{Harness, Running, fake_claude_binary};
use crate::mock_api::{MessagesStream, MockApi, PATIENCE, RecordedRequest};
use crate::story::files_below;

/// Between two looks at files and processes, of which nothing tells.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

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
            workers: json!({}),
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
        if workers["program"].is_null() {
            workers["program"] = json!(harness.script("claude", &self.program()));
        }
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

    /// The stand-in, so that each start leaves a line and may have faults of its own.
    fn program(&self) -> String {
        format!(
            "#!/bin/bash\n\
             [ \"$1\" = --version ] && exec '{fake}' --version\n\
             echo \"$*\" >> '{folder}/starts'\n\
             [ -e '{folder}/quirks' ] && export FAKE_CLAUDE_QUIRKS=$(cat '{folder}/quirks')\n\
             mv -f '{folder}/next' '{folder}/once' 2> /dev/null &&\n\
             export FAKE_CLAUDE_QUIRKS=$(cat '{folder}/once')\n\
             exec '{fake}' \"$@\"\n",
            folder = self.runtime.path().display(),
            fake = fake_claude_binary().display(),
        )
    }

    /// Faults of every start from now on.
    pub fn set_quirks(&self, quirks: &str) {
        self.control("quirks", quirks);
    }

    /// Faults of the next start alone.
    pub fn quirks_of_next_start(&self, quirks: &str) {
        self.control("next", quirks);
    }

    fn control(&self, name: &str, quirks: &str) {
        std::fs::write(self.runtime.path().join(name), quirks).expect("a file of our own");
    }

    /// The arguments of each start of the CLI so far.
    pub fn starts(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.runtime.path().join("starts")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The id of the Claude session that the first start of the CLI began.
    #[track_caller]
    pub fn first_session(&self) -> String {
        let starts = self.starts();
        let id = starts.first().and_then(|line| line.split("--session-id ").nth(1));
        let id = id.and_then(|rest| rest.split(' ').next());
        id.unwrap_or_else(|| panic!("no session begins in {starts:?}")).to_owned()
    }

    /// How often the model was asked this as the last thing.
    pub fn asked(&self, prompt: &str) -> usize {
        let questions = self.questions();
        questions.iter().filter(|request| request.last_user_text().ends_with(prompt)).count()
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
        claude::worker_processes(&format!("XDG_RUNTIME_DIR={}", self.runtime.path().display()))
    }

    /// The CLI itself.
    #[track_caller]
    pub fn cli(&self) -> Pid {
        let fake = fake_claude_binary().canonicalize().expect("it was built");
        let is_cli = |pid: &i32| {
            let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            program == fake && !arguments(*pid).contains("run-in-own-session")
        };
        let pid = self.worker_processes().into_iter().find(is_cli);
        pid.and_then(Pid::from_raw).expect("the CLI runs")
    }

    /// Kills the CLI and waits for its last thread: until then something may still be read from us.
    #[track_caller]
    pub fn kill_cli(&self) {
        let cli = self.cli();
        let process = pidfd_open(cli, PidfdFlags::empty()).expect("it runs");
        kill_process(cli, Signal::KILL).expect("it is ours");
        assert!(ends_within(&process, PATIENCE), "it outlives SIGKILL");
    }

    /// Waits until this many processes of a worker are this command.
    #[track_caller]
    pub fn wait_for_commands(&self, command: &str, count: usize) {
        eventually(&format!("{count} of {command}"), || {
            let all = self.worker_processes();
            all.into_iter().filter(|pid| arguments(*pid).trim_end() == command).count() == count
        });
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

/// Waits until this holds, which no screen shows.
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "waited for: {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn ends_within(process: &OwnedFd, limit: Duration) -> bool {
    let limit = limit.try_into().expect("a short limit");
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)).expect("poll works") == 1
}

/// The command line of a process.
fn arguments(pid: i32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Plays the same story in several variants beside each other. A story waits most of the time, so
/// this costs little more than one.
pub fn at_once<T: Send>(variants: impl IntoIterator<Item = T>, story: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        let story = &story;
        let played: Vec<_> =
            variants.into_iter().map(|variant| scope.spawn(move || story(variant))).collect();
        for one in played {
            if let Err(panic) = one.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}
