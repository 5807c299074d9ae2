//! Lists that wait for a choice: how they look, which entry is selected, what a key does to them.

use crate::keys::Key;
use crate::version::Version;

/// What a key made of a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Open,
    Entry(usize),
    Cancelled,
}

#[derive(Debug, Clone)]
pub struct Dialog {
    pub heading: Vec<String>,
    pub entries: Vec<String>,
    pub selected: usize,
    /// Entries have numbers, and digits pick them.
    pub numbered: bool,
    pub footer: &'static str,
}

const CONFIRM: &str = "Enter to confirm · Esc to cancel";

impl Dialog {
    fn new(heading: &[&str], entries: &[&str], selected: usize, numbered: bool) -> Self {
        Self {
            heading: heading.iter().map(|line| (*line).to_owned()).collect(),
            entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
            selected,
            numbered,
            footer: CONFIRM,
        }
    }

    /// May this folder be trusted? 332 begins with the refusal.
    pub fn trust(version: Version, cwd: &str) -> Self {
        let heading = [
            "Accessing workspace:",
            "",
            cwd,
            "",
            "Quick safety check: Is this a project you created or one you trust?",
            "",
            "Claude Code'll be able to read, edit, and execute files here.",
            "",
            "Security guide",
        ];
        match version {
            Version::V332 => {
                Self::new(&heading, &["No, exit", "Yes, I trust this folder"], 0, false)
            }
            Version::V197 => {
                Self::new(&heading, &["Yes, I trust this folder", "No, exit"], 0, true)
            }
        }
    }

    pub fn api_key(version: Version, tail: &str) -> Self {
        let line = format!("ANTHROPIC_API_KEY: sk-ant-...{tail}");
        let heading = [
            "Detected a custom API key in your environment",
            "",
            &line,
            "",
            "Do you want to use this API key?",
        ];
        Self::new(&heading, &["Yes", "No (recommended)"], 1, !version.is_332())
    }

    pub fn bypass(version: Version) -> Self {
        let heading = [
            "WARNING: Claude Code running in Bypass Permissions mode",
            "",
            "In Bypass Permissions mode, Claude Code will not ask for your approval before running \
             potentially dangerous commands.",
        ];
        Self::new(&heading, &["No, exit", "Yes, I accept"], 0, !version.is_332())
    }

    pub fn unknown_hooks(events: &[String]) -> Self {
        let line = format!("hooks: unknown event {}", events.join(", "));
        let heading = ["Settings Warning", "", &line];
        let entries = ["Continue", "Fix with Claude", "Exit and fix manually"];
        Self::new(&heading, &entries, 0, true)
    }

    pub fn login() -> Self {
        let entries = [
            "Claude account with subscription · Pro, Max, Team, or Enterprise",
            "Anthropic Console account · API usage billing",
            "3rd-party platform · Amazon Bedrock, Microsoft Foundry, or Vertex AI",
        ];
        Self::new(&["Select login method:"], &entries, 0, true)
    }

    pub fn rewind() -> Self {
        let heading = ["Rewind", "", "Restore the code and/or conversation to the point before…"];
        Self::new(&heading, &["(current)"], 0, false)
    }

    pub fn cost() -> Self {
        Self::new(&["Settings:  Status   Config   Usage", "", "Session"], &["Close"], 0, false)
    }

    pub fn surprise() -> Self {
        Self::new(&["A word before you go on", "", "Proceed?"], &["Yes", "No"], 0, true)
    }

    /// The question about a tool.
    pub fn permission(version: Version, title: &str, lines: &[String]) -> Self {
        let mut heading = vec![title.to_owned()];
        heading.extend(lines.iter().cloned());
        heading.push("Do you want to proceed?".to_owned());
        let entries: &[&str] = match version {
            Version::V332 => &[
                "Yes",
                "Yes, and always allow access to this folder from this project",
                "Yes, and switch to auto mode · auto mode handles these prompts for you",
                "No",
            ],
            Version::V197 => &[
                "Yes",
                "Yes, and don't ask again for this project",
                "No, and tell Claude what to do differently (esc)",
            ],
        };
        Self {
            footer: "Esc to cancel · Tab to amend", heading, ..Self::new(&[], entries, 0, true)
        }
    }

    pub fn press(&mut self, key: &Key) -> Choice {
        let count = self.entries.len();
        match key {
            Key::Up => self.selected = (self.selected + count - 1) % count,
            Key::Down => self.selected = (self.selected + 1) % count,
            Key::Enter => return Choice::Entry(self.selected),
            Key::Escape | Key::CtrlC => return Choice::Cancelled,
            Key::Text(text) if self.numbered => {
                let digit = text.parse::<usize>().ok().filter(|n| (1..=count).contains(n));
                if let Some(digit) = digit {
                    return Choice::Entry(digit - 1);
                }
            }
            // A paste into a dialog is dropped.
            _ => {}
        }
        Choice::Open
    }

    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.heading.iter().map(|line| format!(" {line}")).collect();
        lines.push(String::new());
        for (index, entry) in self.entries.iter().enumerate() {
            let mark = if index == self.selected { '❯' } else { ' ' };
            let number = if self.numbered { format!("{}. ", index + 1) } else { String::new() };
            lines.push(format!(" {mark} {number}{entry}"));
        }
        lines.push(String::new());
        lines.push(format!(" {}", self.footer));
        lines
    }
}
