//! The stand-in without a terminal: stream-json in both directions, and what its start refuses.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc;

use claw_tests::claude::{self, KEY};
use claw_tests::harness::{Harness, fake_claude_binary};
use claw_tests::mock_api::{Gate, MessagesStream, MockApi, PATIENCE};
use serde_json::{Value, json};

use super::{SESSION, VERSIONS};

const STREAM: [&str; 10] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
    "--permission-mode=default",
];

fn command(harness: &Harness, api: &MockApi, version: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(fake_claude_binary());
    command
        .env_clear()
        .env("HOME", harness.home())
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", api.base_url());
    command.env("FAKE_CLAUDE_VERSION", version).current_dir(harness.workspace());
    command.args(arguments);
    command
}

fn output(harness: &Harness, version: &str, arguments: &[&str]) -> Output {
    command(harness, &MockApi::start(), version, arguments).output().unwrap()
}

/// A stand-in with its lines.
struct Stream {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
    seen: Vec<Value>,
}

impl Stream {
    fn start(harness: &Harness, api: &MockApi, version: &str, more: &[&str]) -> Self {
        let mut command = command(harness, api, version, &STREAM);
        command.args(more).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self { input: child.stdin.take(), child, lines, seen: Vec::new() }
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn say(&mut self, text: &str) {
        self.send(&json!({"type": "user", "message": {"role": "user",
            "content": [{"type": "text", "text": text}]}}));
    }

    /// Waits for the next line that is so.
    #[track_caller]
    fn wait(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("waited for {what}; came: {:#?}", self.seen)
            };
            self.seen.push(line.clone());
            if is_it(&line) {
                return line;
            }
        }
    }

    /// Ends the input; the status.
    fn end(mut self) -> i32 {
        self.input = None;
        self.child.wait().unwrap().code().unwrap()
    }

    fn kinds(&self) -> Vec<String> {
        let name = |line: &Value| {
            let event = line["event"]["type"].as_str().or(line["subtype"].as_str());
            event.or(line["type"].as_str()).unwrap_or_default().to_owned()
        };
        self.seen.iter().map(name).collect()
    }
}

#[test]
fn a_text_turn_comes_as_deltas_a_block_and_a_result() {
    for version in VERSIONS {
        let (harness, api) = (Harness::without_arguments(), MockApi::start());
        api.push(MessagesStream::new().text(&["Hel", "lo."]).stop("end_turn", 5).reply());
        let mut stream = Stream::start(&harness, &api, version, &["--session-id", SESSION]);
        stream.send(&json!({"type": "control_request", "request_id": "1",
            "request": {"subtype": "initialize", "hooks": null}}));
        stream.say("please greet me");
        let result = stream.wait("the result", |line| line["type"] == "result");
        assert_eq!(result["result"], "Hello.");
        assert_eq!(
            stream.kinds(),
            [
                "control_response",
                "init",
                "status",
                "message_start",
                "content_block_start",
                "content_block_delta",
                "content_block_delta",
                "assistant",
                "content_block_stop",
                "message_delta",
                "message_stop",
                "success",
            ]
        );
        assert_eq!(stream.end(), 0);
        let path = claude::transcript(harness.home(), harness.workspace(), SESSION);
        assert!(claude::records(&path).iter().any(|record| record["type"] == "assistant"));
    }
}

#[test]
fn the_host_is_asked_and_its_no_goes_to_the_model() {
    for version in VERSIONS {
        let (harness, api) = (Harness::without_arguments(), MockApi::start());
        for _ in 0..2 {
            api.push(
                MessagesStream::new()
                    .tool_use("toolu_1", "Bash", r#"{"command":"touch made.txt"}"#)
                    .stop("tool_use", 3)
                    .reply(),
            );
            api.push(MessagesStream::say("So be it."));
        }
        let mut stream = Stream::start(&harness, &api, version, &[]);
        let made = harness.workspace().join("made.txt");
        for (answer, there) in [
            (json!({"behavior": "deny", "message": "no by host"}), false),
            (json!({"behavior": "allow", "updatedInput": {"command": "touch made.txt"}}), true),
        ] {
            stream.say("make a file");
            let asked = stream.wait("a question", |line| line["type"] == "control_request");
            assert_eq!(asked["request"]["tool_use_id"], "toolu_1");
            stream.send(&json!({"type": "control_response", "response": {"subtype": "success",
                "request_id": asked["request_id"], "response": answer}}));
            let result = stream.wait("a tool's result", |line| line["type"] == "user");
            let is_error = result["message"]["content"][0]["is_error"] == true;
            assert_eq!(is_error, !there);
            stream.wait("the result", |line| line["type"] == "result");
            assert_eq!(made.exists(), there);
        }
        assert_eq!(stream.end(), 0);
    }
}

#[test]
fn an_interrupt_is_answered_and_ends_the_turn() {
    for version in VERSIONS {
        let (harness, api) = (Harness::without_arguments(), MockApi::start());
        let gate = Gate::new();
        api.push(MessagesStream::new().open_text(&["Half"]).wait(&gate).reply());
        let mut stream = Stream::start(&harness, &api, version, &[]);
        stream.say("talk");
        stream.wait("a delta", |line| line["event"]["delta"]["text"] == "Half");
        stream.send(&json!({"type": "control_request", "request_id": "2",
            "request": {"subtype": "interrupt"}}));
        stream.wait("the answer", |line| line["type"] == "control_response");
        let result = stream.wait("the result", |line| line["type"] == "result");
        assert_eq!(result["subtype"], "error_during_execution");
        assert_eq!(stream.end(), 1);
    }
}

#[test]
fn a_session_is_resumed_forked_and_refused_when_it_is_in_use() {
    for version in VERSIONS {
        let (harness, api) = (Harness::without_arguments(), MockApi::start());
        let other = "1f7a1d8e-3c9b-4f43-9d5e-2a6b7c8d9e0f";
        let ways: [&[&str]; 3] = [
            &["--session-id", SESSION],
            &["--resume", SESSION],
            &["--resume", SESSION, "--fork-session", "--session-id", other],
        ];
        for (index, way) in ways.iter().enumerate() {
            api.push(MessagesStream::say("Heard."));
            let mut stream = Stream::start(&harness, &api, version, way);
            stream.say(&format!("prompt {index}"));
            stream.wait("the result", |line| line["type"] == "result");
            assert_eq!(stream.end(), 0);
        }
        let prompts = claw_tests::story::prompts(api.requests().last().unwrap());
        assert_eq!(prompts, ["prompt 0", "prompt 1", "prompt 2"]);
        let refused = output(&harness, version, &["--session-id", SESSION]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("is already in use"));
        let unknown = output(&harness, version, &["--resume", "unknown"]);
        assert_eq!(unknown.status.code(), Some(1));
    }
}

#[test]
fn options_are_those_of_the_version() {
    let harness = Harness::without_arguments();
    for version in VERSIONS {
        let said = output(&harness, version, &["--version"]);
        let expected = format!("2.1.{version} (Claude Code)\n");
        assert_eq!(String::from_utf8_lossy(&said.stdout), expected);
        let unknown = output(&harness, version, &["--no-such-option"]);
        assert_eq!(unknown.status.code(), Some(1));
        let manual = output(&harness, version, &["--version", "--permission-mode", "manual"]);
        assert_eq!(manual.status.success(), version == "332");
    }
}
