//! Records what hooks are told. The hook's command writes its payload into a named pipe, so a test
//! waits for it and does not poll.

#![expect(clippy::expect_used, reason = "support code fails the test that uses it by panicking")]
#![expect(clippy::missing_panics_doc, reason = "panicking is how a test fails")]

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::mock_api::PATIENCE;

/// The payloads so far, in the order they came.
#[derive(Clone)]
pub struct HookLog {
    pipe: PathBuf,
    shared: Arc<(Mutex<Vec<Value>>, Condvar)>,
}

impl HookLog {
    /// Makes the pipe in this folder.
    pub fn new(folder: &Path) -> Self {
        let pipe = folder.join("hooks.pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
        let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        // For both directions, so that it never ends between two writers.
        let file = OpenOptions::new().read(true).write(true).open(&pipe).expect("the pipe opens");
        let log = Self { pipe, shared };
        let follower = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(file).lines().map_while(Result::ok) {
                if let Ok(payload) = serde_json::from_str(&line) {
                    let (all, changed) = &*follower.shared;
                    all.lock().unwrap_or_else(PoisonError::into_inner).push(payload);
                    changed.notify_all();
                }
            }
        });
        log
    }

    /// The command that records, and prints this as its verdict.
    pub fn command(&self, verdict: &str) -> String {
        format!("{{ cat; echo; }} > '{}'; printf %s '{verdict}'", self.pipe.display())
    }

    /// Settings in which each of these events is recorded.
    pub fn settings(&self, events: &[&str]) -> Value {
        let mut hooks = json!({});
        for event in events {
            hooks[event] = json!([{"hooks": [{"type": "command", "command": self.command("")}]}]);
        }
        json!({"hooks": hooks})
    }

    pub fn all(&self) -> Vec<Value> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the payload number `count` (from 1) of this event.
    #[track_caller]
    pub fn wait(&self, event: &str, count: usize) -> Value {
        let (all, changed) = &*self.shared;
        let of_event = |all: &[Value]| -> Vec<Value> {
            all.iter().filter(|one| one["hook_event_name"] == event).cloned().collect()
        };
        let all = all.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, timeout) = changed
            .wait_timeout_while(all, PATIENCE, |all| of_event(all).len() < count)
            .unwrap_or_else(PoisonError::into_inner);
        let names: Vec<_> = all.iter().map(|one| one["hook_event_name"].clone()).collect();
        assert!(!timeout.timed_out(), "waited for {event} number {count}; came: {names:?}");
        of_event(&all)[count - 1].clone()
    }

    /// Names of the events so far.
    pub fn names(&self) -> Vec<String> {
        let all = self.all();
        all.iter().filter_map(|one| one["hook_event_name"].as_str().map(str::to_owned)).collect()
    }
}
