//! The stand-in for the Claude Code CLI keeps to what was observed of the real one.

mod turns;

use std::path::PathBuf;

use claw_tests::claude::{self, EVENTS, KEY};
use claw_tests::harness::{Harness, Running, fake_claude_binary};
use claw_tests::hook_log::HookLog;
use claw_tests::mock_api::MockApi;

const SESSION: &str = "0f7a1d8e-3c9b-4f43-9d5e-2a6b7c8d9e0f";
const VERSIONS: [&str; 2] = ["197", "332"];

/// One stand-in on a terminal.
struct Fake {
    running: Running,
    hooks: HookLog,
    transcript: PathBuf,
}

/// What a stand-in is started with.
struct Setup {
    version: &'static str,
    quirks: String,
    arguments: Vec<String>,
    verdict: &'static str,
    settled: bool,
}

impl Setup {
    fn new(version: &'static str) -> Self {
        Self {
            version,
            quirks: String::new(),
            arguments: vec!["--session-id".to_owned(), SESSION.to_owned()],
            verdict: "",
            settled: true,
        }
    }

    fn quirks(mut self, quirks: &str) -> Self {
        quirks.clone_into(&mut self.quirks);
        self
    }

    fn verdict(mut self, verdict: &'static str) -> Self {
        self.verdict = verdict;
        self
    }

    fn start(self, api: &MockApi) -> Fake {
        api.answer(claude::housekeeping);
        let harness = Harness::without_arguments();
        let hooks = HookLog::new(harness.home());
        let mut settings = hooks.settings(&EVENTS);
        settings["hooks"]["PermissionRequest"][0]["hooks"][0]["command"] =
            hooks.command(self.verdict).into();
        let file = harness.home().join("settings.json");
        std::fs::write(&file, settings.to_string()).unwrap();
        if self.settled {
            let known = claude::settled(harness.workspace());
            std::fs::write(harness.home().join(".claude.json"), known.to_string()).unwrap();
        }
        let transcript = claude::transcript(harness.home(), harness.workspace(), SESSION);
        let mut harness = harness
            .env("ANTHROPIC_API_KEY", KEY)
            .env("ANTHROPIC_BASE_URL", api.base_url())
            .env("CLAUDE_CODE_MAX_RETRIES", "1")
            .env("FAKE_CLAUDE_VERSION", self.version)
            .env("FAKE_CLAUDE_QUIRKS", format!("retry-delay=20,{}", self.quirks))
            .arg("--settings")
            .arg(file.to_string_lossy())
            .arg("--permission-mode")
            .arg("default");
        for argument in self.arguments {
            harness = harness.arg(argument);
        }
        let program = std::env::var_os("CLAUDE_UNDER_TEST")
            .map_or_else(|| fake_claude_binary().to_owned(), PathBuf::from);
        Fake { running: harness.start_program(&program, ":"), hooks, transcript }
    }

    fn ready(self, api: &MockApi) -> Fake {
        let fake = self.start(api);
        fake.hooks.wait("SessionStart", 1);
        fake
    }
}

impl Fake {
    fn submit(&mut self, text: &str) {
        self.running.paste(text);
        self.running.send("\r");
    }

    /// Leaves as a person does, so that everything is written.
    fn leave(&mut self) -> Vec<serde_json::Value> {
        self.submit("/exit");
        assert_eq!(self.running.wait_back(), 0);
        claude::records(&self.transcript)
    }
}
