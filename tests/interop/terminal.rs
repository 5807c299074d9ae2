//! The interactive CLI on a terminal, without a worker around it: keys in, the screen out.

use std::ffi::OsString;
use std::path::Path;

use claw_tests::mock_api::PATIENCE;
use claw_workers::process::{Marker, ProcessId, collect};
use claw_workers::{Exit, PtyChild, PtyCommand, Timings, WindowSize};
use tokio::sync::watch;

/// Drop it to end the CLI.
pub struct Terminal {
    child: PtyChild,
    marker: Marker,
    /// Counts what was drawn; its end is the end of the output.
    changed: watch::Receiver<u64>,
}

impl Terminal {
    pub fn start(argv: &[OsString], environment: &[(OsString, OsString)], cwd: &Path) -> Self {
        let command = PtyCommand {
            argv: argv.to_vec(),
            cwd: cwd.to_owned(),
            environment: environment.to_vec(),
        };
        let marker = Marker::new();
        let timings = Timings::default();
        let child = PtyChild::spawn(&command, WindowSize::default(), &marker, &timings);
        let child = child.expect("the CLI starts");
        let changed = child.screen().changes();
        Self { child, marker, changed }
    }

    pub fn text(&self) -> String {
        self.child.screen().text()
    }

    /// Waits until the screen shows what is looked for, and gives what was found.
    pub async fn until<T>(&mut self, what: &str, look: impl Fn(&str) -> Option<T>) -> T {
        let found = async {
            loop {
                if let Some(found) = look(&self.text()) {
                    return Some(found);
                }
                self.changed.changed().await.ok()?;
            }
        };
        match tokio::time::timeout(PATIENCE, found).await {
            Ok(Some(found)) => found,
            Ok(None) => panic!("the CLI ended before {what}:\n{}", self.text()),
            Err(_) => panic!("no {what}:\n{}", self.text()),
        }
    }

    /// Waits until something more was drawn.
    pub async fn change(&mut self) {
        self.changed.changed().await.expect("the CLI lives");
    }

    pub async fn until_shows(&mut self, text: &str) {
        self.until(text, |screen| screen.contains(text).then_some(())).await;
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.child.write(bytes).await.expect("the CLI reads");
    }

    /// Pastes a prompt and sends it off.
    pub async fn submit(&mut self, prompt: &str) {
        self.write(format!("\x1b[200~{prompt}\x1b[201~").as_bytes()).await;
        self.until_shows(prompt).await;
        self.write(b"\r").await;
    }

    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> Exit {
        let exited = tokio::time::timeout(PATIENCE, self.child.exited()).await;
        exited.unwrap_or_else(|_| panic!("the CLI does not end:\n{}", self.text()))
    }

    /// It, and everything that it has started.
    pub fn processes(&self) -> Vec<ProcessId> {
        collect(Some(self.child.id()), &self.marker)
    }

    /// Ends it as a worker is ended; gives what lives even then.
    pub async fn end(self) -> Vec<ProcessId> {
        let marker = self.marker.clone();
        let mut left = self.child.end().await;
        left.extend(collect(None, &marker));
        left
    }
}

/// The input box: a mark between two rules.
pub fn at_input_box(screen: &str) -> Option<()> {
    let lines: Vec<&str> = screen.lines().collect();
    let boxed = |three: &[&str]| {
        three[0].starts_with("──") && three[1].starts_with('❯') && three[2].starts_with("──")
    };
    lines.windows(3).any(boxed).then_some(())
}
