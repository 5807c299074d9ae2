//! The stand-in for the Claude Code CLI keeps to what was observed of the real one.

mod dialogs;
mod shapes;
mod stops;
mod streams;
mod turns;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use claw_tests::claude::{self, EVENTS, KEY};
use claw_tests::harness::{Harness, Running, fake_claude_binary};
use claw_tests::hook_log::HookLog;
use claw_tests::mock_api::{MockApi, PATIENCE};
use serde_json::Value;

const SESSION: &str = "0f7a1d8e-3c9b-4f43-9d5e-2a6b7c8d9e0f";
const VERSIONS: [&str; 2] = ["197", "332"];

/// One stand-in on a terminal.
struct Fake {
    version: &'static str,
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
    event: Option<&'static str>,
}

impl Setup {
    fn new(version: &'static str) -> Self {
        Self {
            version,
            quirks: String::new(),
            arguments: vec!["--session-id".to_owned(), SESSION.to_owned()],
            verdict: "",
            settled: true,
            event: None,
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

    /// Nobody has used the CLI in this folder or with this key.
    fn unknown_folder(mut self) -> Self {
        self.settled = false;
        self
    }

    /// The settings name this event as well.
    fn event(mut self, event: &'static str) -> Self {
        self.event = Some(event);
        self
    }

    fn start(self, api: &MockApi) -> Fake {
        api.answer(claude::housekeeping);
        let harness = Harness::without_arguments();
        let hooks = HookLog::new(harness.home());
        let mut events = EVENTS.to_vec();
        events.extend(self.event);
        let mut settings = hooks.settings(&events);
        settings["hooks"]["PermissionRequest"][0]["hooks"][0]["command"] =
            hooks.command(self.verdict).into();
        let file = harness.home().join("settings.json");
        std::fs::write(&file, settings.to_string()).unwrap();
        let mut known = claude::settled(harness.workspace());
        if !self.settled {
            known = serde_json::json!({"hasCompletedOnboarding": true});
        }
        std::fs::write(harness.home().join(".claude.json"), known.to_string()).unwrap();
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
        let program = fake_claude_binary();
        Fake {
            version: self.version,
            running: harness.start_program(program, ":"),
            hooks,
            transcript,
        }
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

    /// The end of the turn number `count`, with its last words.
    #[track_caller]
    fn wait_stop(&self, count: usize) -> String {
        self.hooks.wait("Stop", count)["last_assistant_message"].as_str().unwrap().to_owned()
    }

    /// Leaves as a person does, so that everything is written; what was told looks like the real
    /// thing.
    #[track_caller]
    fn leave(&mut self) -> Vec<Value> {
        self.submit("/exit");
        assert_eq!(self.running.wait_back(), 0, "{}", self.running.text());
        self.hooks.wait("SessionEnd", 1);
        let records = claude::records(&self.transcript);
        shapes::assert_shapes(self.version, &self.hooks.all(), &records);
        records
    }

    /// Waits until the transcript has such a record.
    #[track_caller]
    fn wait_record(&self, what: &str, is_it: impl Fn(&Value) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !claude::records(&self.transcript).iter().any(&is_it) {
            assert!(Instant::now() < until, "no record: {what}\n{}", self.running.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a tool has written this file.
    #[track_caller]
    fn wait_for_file(&self, path: &std::path::Path) {
        let until = Instant::now() + PATIENCE;
        while std::fs::read_to_string(path).unwrap_or_default().is_empty() {
            assert!(Instant::now() < until, "no {}\n{}", path.display(), self.running.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How often this event was fired.
    fn fired(&self, event: &str) -> usize {
        self.hooks.names().iter().filter(|name| *name == event).count()
    }
}

/// Texts that a person or the CLI said to the model, in order.
fn said(records: &[Value]) -> Vec<String> {
    let users = records.iter().filter(|record| record["type"] == "user");
    let texts = users.filter_map(|record| {
        let content = &record["message"]["content"];
        content.as_str().or(content[0]["text"].as_str()).map(str::to_owned)
    });
    texts.collect()
}

/// The results of tools, with whether each is an error.
fn results(records: &[Value]) -> Vec<(String, bool)> {
    let blocks = records.iter().map(|record| &record["message"]["content"][0]);
    let results = blocks.filter(|block| block["type"] == "tool_result");
    let told = results.map(|result| {
        (result["content"].as_str().unwrap_or_default().to_owned(), result["is_error"] == true)
    });
    told.collect()
}
