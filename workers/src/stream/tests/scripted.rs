//! A program that says prepared lines when it reads expected ones, and a worker that drives it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::config::{Transport, WindowSize, WorkerConfig};
use crate::event::WorkerEvent;
use crate::process::Marker;
use crate::stream::{Launch, start};
use crate::timings::Timings;
use crate::worker::{OpenAs, Worker};

pub const SESSION: &str = "6f3c8a52-7f1d-4c0b-9d0e-1a2b3c4d5e6f";

/// A shell script, step by step.
pub struct Script {
    folder: tempfile::TempDir,
    text: String,
    files: usize,
}

impl Script {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, text: "#!/bin/sh\n".to_owned(), files: 0 }
    }

    /// One that has answered the opening line.
    pub fn opened() -> Self {
        Self::new().expect("\"initialize\"").say(&[OPENED.to_owned()])
    }

    /// Waits for a line that holds this; another line ends it with status 9.
    pub fn expect(mut self, part: &str) -> Self {
        let part = part.replace('\'', "'\\''");
        self.text += "IFS= read -r line || exit 8\n";
        self.text += &format!(
            "case \"$line\" in *'{part}'*) ;; *) echo \"unexpected: $line\" >&2; exit 9 ;; esac\n"
        );
        self
    }

    pub fn say(mut self, lines: &[String]) -> Self {
        if lines.is_empty() {
            return self;
        }
        let file = self.folder.path().join(format!("{}.jsonl", self.files));
        self.files += 1;
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        self.text += &format!("cat '{}'\n", file.display());
        self
    }

    /// Any shell commands.
    pub fn run(mut self, commands: &str) -> Self {
        self.text += commands;
        self.text += "\n";
        self
    }

    /// Reads until its input ends.
    pub fn wait(self) -> Self {
        self.run("while IFS= read -r line; do echo \"unexpected: $line\" >&2; exit 9; done")
    }

    pub fn start(self) -> Driven {
        self.start_with_ready(Timings::brisk().ready)
    }

    pub fn start_with_ready(self, ready: Duration) -> Driven {
        let program = self.folder.path().join("cli.sh");
        std::fs::write(&program, &self.text).unwrap();
        let mut config = config(self.folder.path().to_owned());
        config.timings.ready = ready;
        let open = OpenAs::New(SESSION.to_owned());
        let environment = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
        let launch = Launch {
            argv: vec!["sh".into(), program.into()],
            environment,
            version: "2.1.332".to_owned(),
            marker: Marker::new(),
        };
        let (worker, events) = start(config, launch, open);
        Driven { worker, events, folder: self.folder }
    }
}

/// The answer to the opening line.
pub const OPENED: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"open","response":{}}}"#;

fn config(folder: PathBuf) -> WorkerConfig {
    WorkerConfig {
        program: OsString::from("claude"),
        prefix: Vec::new(),
        arguments: Vec::new(),
        cwd: folder.clone(),
        trusted: false,
        config_dir: None,
        home: folder.clone(),
        environment: Vec::new(),
        pass: Vec::new(),
        model: None,
        system_prompt: None,
        allowed_tools: Vec::new(),
        disallowed_tools: Vec::new(),
        permission_mode: "default".to_owned(),
        transport: Transport::Stream,
        tap: false,
        auto_compaction: true,
        idle: None,
        size: WindowSize::default(),
        hook: Vec::new(),
        guard: Vec::new(),
        private_root: folder,
        timings: Timings { write: Duration::from_millis(300), ..Timings::brisk() },
    }
}

/// A worker and what it tells.
pub struct Driven {
    pub worker: Worker,
    pub events: mpsc::UnboundedReceiver<WorkerEvent>,
    folder: tempfile::TempDir,
}

impl Driven {
    /// Where it works.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The next event; a hang fails the test.
    pub async fn next(&mut self) -> WorkerEvent {
        let next = tokio::time::timeout(Duration::from_secs(20), self.events.recv());
        next.await.expect("no event in time").expect("no event after the last")
    }

    /// The next event that this picks.
    pub async fn find<T>(&mut self, pick: impl Fn(WorkerEvent) -> Option<T>) -> T {
        loop {
            if let Some(found) = pick(self.next().await) {
                return found;
            }
        }
    }

    pub async fn ready(&mut self) {
        self.find(|event| matches!(event, WorkerEvent::Ready { .. }).then_some(())).await;
    }

    /// Everything up to and with the last event.
    pub async fn rest(&mut self) -> Vec<WorkerEvent> {
        let mut seen = Vec::new();
        loop {
            let event = self.next().await;
            let last = matches!(event, WorkerEvent::Ended(_));
            seen.push(event);
            if last {
                return seen;
            }
        }
    }
}

/// A capture as pieces: what the CLI said, then what was written to it, and so on. Ids of the
/// opening request are ours.
pub fn pieces(path: &str) -> Vec<(Vec<String>, Option<Value>)> {
    let path =
        format!("{}/../tests/fixtures/claude/stream-json/{path}", env!("CARGO_MANIFEST_DIR"));
    let mut pieces = vec![(Vec::new(), None)];
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let said =
            line["msg"].to_string().replace("init-1", "open").replace("int-1", "interrupt-1");
        if line["dir"] == "in" {
            pieces.last_mut().unwrap().1 = Some(serde_json::from_str(&said).unwrap());
            pieces.push((Vec::new(), None));
        } else {
            pieces.last_mut().unwrap().0.push(said);
        }
    }
    pieces
}

/// Plain lines of a turn, for stories that no capture has.
pub mod said {
    use serde_json::json;

    pub fn init() -> String {
        json!({"type": "system", "subtype": "init", "session_id": super::SESSION, "claude_code_version": "2.1.332"}).to_string()
    }

    pub fn replay(text: &str) -> String {
        json!({"type": "user", "isReplay": true, "parent_tool_use_id": null, "message": {"role": "user", "content": [{"type": "text", "text": text}]}}).to_string()
    }

    pub fn text(message: &str, text: &str) -> String {
        json!({"type": "assistant", "parent_tool_use_id": null, "message": {"id": message, "model": "claude-opus-5-5", "content": [{"type": "text", "text": text}]}}).to_string()
    }

    pub fn result(text: &str) -> String {
        json!({"type": "result", "subtype": "success", "is_error": false, "result": text})
            .to_string()
    }

    pub fn broken() -> String {
        json!({"type": "result", "subtype": "error_during_execution", "is_error": true}).to_string()
    }

    pub fn question(request_id: &str, call: &str) -> String {
        json!({"type": "control_request", "request_id": request_id, "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": call}}).to_string()
    }

    pub fn agent_done() -> String {
        json!({"type": "system", "subtype": "task_notification", "task_id": "a1", "tool_use_id": "t1", "status": "completed", "summary": "Agent \"Small job\" finished"}).to_string()
    }

    pub fn agent_started() -> String {
        json!({"type": "system", "subtype": "task_started", "task_id": "a1", "tool_use_id": "t1", "task_type": "local_agent", "is_backgrounded": true}).to_string()
    }
}
