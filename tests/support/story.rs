//! Whole stories: the real program on its terminal, talking to a [`MockApi`], driven as a person
//! would.

#![expect(clippy::expect_used, reason = "support code fails the test that uses it by panicking")]
#![expect(clippy::missing_panics_doc, reason = "panicking is how a test fails")]

use std::path::{Path, PathBuf};

use crate::harness::{Harness, Running};
use crate::mock_api::{MockApi, RecordedRequest};

/// The key that every story plants; it must never come out anywhere but in a request.
pub const KEY: &str = "sk-ant-planted-marker-4711";

pub const ENTER: &str = "\r";
pub const ESC: &str = "\x1b";
pub const TAB: &str = "\t";
pub const UP: &str = "\x1b[A";
pub const DOWN: &str = "\x1b[B";
pub const CTRL_C: &str = "\x03";
pub const CTRL_D: &str = "\x04";
pub const CTRL_O: &str = "\x0f";

/// `claw tui` with this server as its provider, before it runs.
pub fn beside(api: &MockApi) -> Harness {
    Harness::new().env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", api.base_url())
}

/// `claw tui` with this server as its provider, ready for a prompt.
pub fn open(api: &MockApi) -> Running {
    let claw = beside(api).start();
    claw.wait_ready();
    claw
}

impl Running {
    /// Waits until no turn runs and the runtime has told what it is.
    #[track_caller]
    pub fn wait_ready(&self) {
        self.wait_until("the word ready in the status line", |seen| {
            last_line(&seen.screen.text()).trim_end().ends_with("ready")
        });
    }

    /// Types a line and sends it.
    pub fn say(&mut self, line: &str) {
        self.send(format!("{line}{ENTER}"));
    }

    /// Runs a slash command and waits for what it shows.
    #[track_caller]
    pub fn command(&mut self, line: &str, shows: &str) {
        // The space closes the list of completions, so that Enter means the line.
        self.send(format!("{line} {ENTER}"));
        self.wait_for(shows);
        assert!(self.look(|seen| seen.screen.modes.has(1049)), "{line} left the full screen");
    }

    /// Waits until the permission dialog has the focus and everything of it is on the screen.
    #[track_caller]
    pub fn wait_for_dialog(&self) {
        self.wait_until("a focused permission dialog", |seen| {
            let text = seen.screen.text();
            text.contains("Enter confirms") && text.contains("› Deny")
        });
    }

    /// Denies the request that waits, as the dialog offers it.
    #[track_caller]
    pub fn deny(&mut self) {
        self.wait_for_dialog();
        self.send(ENTER);
    }

    /// Walks to "Allow once" and confirms.
    #[track_caller]
    pub fn allow_once(&mut self) {
        self.wait_for_dialog();
        self.send([DOWN, DOWN].concat());
        self.wait_for("› Allow once");
        self.send(ENTER);
    }

    /// Walks down to a choice of the dialog and confirms it.
    #[track_caller]
    pub fn choose(&mut self, label: &str) {
        let wanted = format!("› {label}");
        for _ in 0..12 {
            if self.text().contains(&wanted) {
                return self.send(ENTER);
            }
            let before = self.text();
            self.send(DOWN);
            self.wait_until("the next choice", |seen| seen.screen.text() != before);
        }
        panic!("no {label}:\n{}", self.text());
    }

    /// Walks to the yes of the question about a folder and confirms.
    #[track_caller]
    pub fn trust_folder(&mut self) {
        self.wait_for_dialog();
        self.send(DOWN);
        self.wait_for("› Trust this folder");
        self.send(ENTER);
    }

    /// The last row of the screen.
    pub fn status_line(&self) -> String {
        last_line(&self.text()).to_owned()
    }

    /// Row (from 0) and column of a text on the screen.
    #[track_caller]
    pub fn find(&self, text: &str) -> (usize, usize) {
        let screen = self.text();
        let found = screen.lines().enumerate().find_map(|(row, line)| {
            let at = line.find(text)?;
            Some((row, line[..at].chars().count()))
        });
        found.unwrap_or_else(|| panic!("no {text:?} on the screen:\n{screen}"))
    }

    /// Clicks with the left button on a text.
    #[track_caller]
    pub fn click(&mut self, text: &str) {
        let (row, column) = self.find(text);
        let at = format!("{};{}", column + 1, row + 1);
        self.send(format!("\x1b[<0;{at}M\x1b[<0;{at}m"));
    }

    /// The session files of the workspace, with their text.
    pub fn session_files(&self) -> Vec<(PathBuf, String)> {
        let files = files_below(&self.workspace().join(".claw"));
        let is_session = |path: &Path| path.extension().is_some_and(|end| end == "jsonl");
        files.into_iter().filter(|(path, _)| is_session(path)).collect()
    }
}

fn last_line(screen: &str) -> &str {
    screen.lines().last().unwrap_or_default()
}

/// Every file below a folder, with its text.
pub fn files_below(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry of a folder").path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            // A lock or a temporary file may go away between the listing and the reading.
            let bytes = std::fs::read(&path).unwrap_or_default();
            found.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found.sort();
    found
}

/// The texts of all user messages in a request, in order.
pub fn prompts(request: &RecordedRequest) -> Vec<String> {
    texts(request, "user")
}

/// The texts of all assistant messages in a request, in order.
pub fn answers(request: &RecordedRequest) -> Vec<String> {
    texts(request, "assistant")
}

fn texts(request: &RecordedRequest, role: &str) -> Vec<String> {
    let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut texts = Vec::new();
    for message in messages.iter().filter(|message| message["role"] == role) {
        match &message["content"] {
            serde_json::Value::String(text) => texts.push(text.clone()),
            content => texts.extend(
                content
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|block| block["text"].as_str().map(str::to_owned)),
            ),
        }
    }
    texts
}

/// The result of a tool call in a request: its text and whether it is an error.
pub fn tool_result(request: &RecordedRequest, id: &str) -> Option<(String, bool)> {
    let messages = request.body["messages"].as_array()?;
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let result = blocks.into_iter().find(|block| block["tool_use_id"] == id)?;
    let text = match &result["content"] {
        serde_json::Value::String(text) => text.clone(),
        content => content
            .as_array()?
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect::<String>(),
    };
    Some((text, result["is_error"].as_bool().unwrap_or(false)))
}
