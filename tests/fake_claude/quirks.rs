//! Faults on demand: `FAKE_CLAUDE_QUIRKS` is a comma list of `name` or `name=value`.
//!
//! | quirk | effect |
//! |---|---|
//! | `slow-ready=<ms>` | SessionStart comes this much later |
//! | `never-ready` | SessionStart never comes, and nothing is drawn |
//! | `stall-at-start` | an empty screen, no hook, no reading |
//! | `exit-at-start=<text>` | prints the text and ends with status 1 |
//! | `auth-at-start` | a login chooser instead of the input box |
//! | `trust-twice` | the trust question comes again after it was answered |
//! | `swallow-first-cr` | the first CR of an idle session does nothing |
//! | `dialog-after-paste=<s>` | a dialog opens this long (seconds) after the first paste |
//! | `transcript-lag=<ms>` | instead of 100 ms |
//! | `no-transcript` | nothing is written |
//! | `truncate-transcript`, `replace-transcript` | before the second turn |
//! | `die-in-turn` | ends with SIGKILL when the first text has come |
//! | `die-at-paste`, `die-at-prompt` | ends with SIGKILL when something is pasted, or when a prompt is taken |
//! | `ignore-sigterm` | as it says |
//! | `not-reading` | the terminal's input is never read |
//! | `unasked-before`, `unasked-during`, `unasked-between` | a turn that nobody asked for: before the first prompt, queued while the first one runs, or some time after it |
//! | `limit-continue` | after a usage limit it goes on by itself one second later |
//! | `no-enqueue-record` | a prompt during a turn leaves no queue record |
//! | `extra-stop` | each Stop hook comes twice |
//! | `clear-session` | after the first turn the session is another one, as after /clear |
//! | `orphan-tool` | a tool's command outlives a SIGTERM |
//! | `retry-delay=<ms>` | the first delay between two tries of a request, instead of 500 |
//! | `banner=<text>` | this text is drawn as part of the conversation |
//! | `print-env=<file>` | writes the environment there |
//! | `log-input=<file>` | every read of input: Unix time in ms and the bytes in hex |

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

#[derive(Debug, Default)]
pub struct Quirks(Vec<(String, String)>);

impl Quirks {
    pub fn from_environment() -> Self {
        Self::parse(&std::env::var("FAKE_CLAUDE_QUIRKS").unwrap_or_default())
    }

    fn parse(list: &str) -> Self {
        let items = list.split(',').filter(|item| !item.is_empty());
        let pairs = items.map(|item| item.split_once('=').unwrap_or((item, "")));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    pub fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Ends the process, as a crash does, when the list has this name.
    pub fn die(&self, name: &str) {
        if self.has(name) {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    pub fn millis(&self, name: &str) -> Option<Duration> {
        self.text(name)?.parse().ok().map(Duration::from_millis)
    }

    pub fn seconds(&self, name: &str) -> Option<Duration> {
        self.text(name)?.parse().ok().map(Duration::from_secs_f64)
    }
}
