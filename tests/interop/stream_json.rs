//! The lines of `-p` with JSON in both directions, as our reader of them understands the real ones.

use std::collections::VecDeque;
use std::process::Stdio;

use claw_runtime::session::ContentBlock;
use claw_tests::mock_api::{Gate, MessagesStream, PATIENCE, Reply};
use claw_workers::Fact;
use claw_workers::stream::codec::{Decoder, Outcome, StreamMessage};
use claw_workers::stream::write;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::cli::{Room, on_both_versions};

on_both_versions!(
    text_and_thinking_come_as_deltas_and_as_records,
    a_tool_asks_and_runs_when_it_is_allowed,
    a_denied_tool_does_not_run_and_the_model_hears_why,
    an_interrupt_ends_the_turn_and_the_next_prompt_is_answered,
    a_prompt_during_a_turn_is_taken_into_it,
    a_failure_of_the_api_is_told_with_its_kind,
);

/// The CLI and what it has said.
struct Stream {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    decoder: Decoder,
    /// Facts of the line that was read last.
    facts: VecDeque<Fact>,
    /// Kinds of lines that nobody understood.
    unknown: Vec<String>,
}

/// What a test waits for.
#[derive(Debug)]
enum Said {
    Fact(Fact),
    Other(StreamMessage),
}

impl Stream {
    fn start(room: &Room) -> Self {
        let mut child = tokio::process::Command::new(&room.program)
            .args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"])
            .args(["--verbose", "--include-partial-messages", "--permission-prompt-tool", "stdio"])
            .args(["--replay-user-messages", "--permission-mode", "default"])
            .env_clear()
            .envs(room.environment(room.api.base_url()))
            .env("CLAUDE_CODE_MAX_RETRIES", "1")
            .current_dir(room.workspace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .expect("the CLI starts");
        Self {
            stdin: child.stdin.take().expect("its input"),
            lines: BufReader::new(child.stdout.take().expect("its output")).lines(),
            decoder: Decoder::default(),
            facts: VecDeque::new(),
            unknown: Vec::new(),
            _child: child,
        }
    }

    async fn write(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
    }

    async fn next(&mut self) -> Said {
        loop {
            if let Some(fact) = self.facts.pop_front() {
                return Said::Fact(fact);
            }
            let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.expect("it says something").expect("text").expect("it lives");
            match self.decoder.decode(&line).unwrap_or_else(|error| panic!("{error}: {line}")) {
                StreamMessage::Facts(facts) => self.facts.extend(facts),
                StreamMessage::Unknown { kind } => self.unknown.push(kind),
                other => return Said::Other(other),
            }
        }
    }

    /// Reads on until something is found.
    async fn until<T>(&mut self, find: impl Fn(&Said) -> Option<T>) -> T {
        loop {
            if let Some(found) = find(&self.next().await) {
                return found;
            }
        }
    }

    /// The facts until the end of the turn, and how it ended.
    async fn turn(&mut self) -> (Vec<Fact>, Outcome) {
        let mut facts = Vec::new();
        loop {
            match self.next().await {
                Said::Fact(fact) => facts.push(fact),
                Said::Other(StreamMessage::Result(outcome)) => {
                    // How many tokens of thinking there are is told again with the usage.
                    self.unknown.retain(|kind| kind != "system/thinking_tokens");
                    assert_eq!(self.unknown, Vec::<String>::new());
                    facts.iter().for_each(|fact| {
                        assert!(!matches!(fact, Fact::Unknown { .. }), "{fact:?}");
                    });
                    return (facts, outcome);
                }
                Said::Other(_) => {}
            }
        }
    }

    /// Waits for the question about this tool.
    async fn question(&mut self) -> (String, String) {
        self.until(|said| match said {
            Said::Other(StreamMessage::Question { request_id, tool_use_id, input, .. }) => {
                assert_eq!(tool_use_id.as_deref(), Some("toolu_1"));
                Some((request_id.clone(), input.clone()))
            }
            _ => None,
        })
        .await
    }
}

fn texts(facts: &[Fact]) -> String {
    let delta = |fact: &Fact| match fact {
        Fact::TextDelta { text, .. } => Some(text.clone()),
        _ => None,
    };
    facts.iter().filter_map(delta).collect()
}

/// Texts and thoughts of the records.
fn records(facts: &[Fact]) -> Vec<String> {
    let record = |fact: &Fact| match fact {
        Fact::Block { content: ContentBlock::Text { text }, .. } => Some(text.clone()),
        Fact::Block { content: ContentBlock::Thinking { thinking, .. }, .. } => {
            Some(format!("({thinking})"))
        }
        _ => None,
    };
    facts.iter().filter_map(record).collect()
}

fn bash(command: &str) -> Reply {
    let input = json!({"command": command, "description": "a command"}).to_string();
    MessagesStream::new().tool_use("toolu_1", "Bash", &input).stop("tool_use", 9).reply()
}

async fn text_and_thinking_come_as_deltas_and_as_records(room: &Room) {
    let answer =
        MessagesStream::new().thinking(&["let me ", "see"], "signed").text(&["Hel", "lo 🎉"]);
    room.api.push(answer.stop("end_turn", 5).reply());
    let mut stream = Stream::start(room);
    let prompt = "several\nlines\n\nand a backslash \\";
    stream.write(&write::user(prompt)).await;
    let (facts, outcome) = stream.turn().await;
    assert_eq!(texts(&facts), "Hello 🎉");
    assert_eq!(records(&facts), ["(let me see)", "Hello 🎉"]);
    assert_eq!((outcome.text.as_deref(), outcome.broken), (Some("Hello 🎉"), false));
    assert!(room.questions()[0].last_user_text().ends_with(prompt));
}

async fn a_tool_asks_and_runs_when_it_is_allowed(room: &Room) {
    room.api.push(bash("touch made-by-tool && echo done"));
    room.api.push(MessagesStream::say("it is made"));
    let mut stream = Stream::start(room);
    stream.write(&write::user("make it")).await;
    let (request, input) = stream.question().await;
    assert!(!room.workspace().join("made-by-tool").exists());
    stream.write(&write::allow(&request, &input)).await;
    let (facts, outcome) = stream.turn().await;
    let result = facts.iter().find_map(|fact| match fact {
        Fact::ToolResult { id, output, is_error, .. } => {
            Some((id.as_str(), output.as_str(), *is_error))
        }
        _ => None,
    });
    assert_eq!(result, Some(("toolu_1", "done", false)));
    assert!(room.workspace().join("made-by-tool").exists());
    assert_eq!(outcome.text.as_deref(), Some("it is made"));
}

async fn a_denied_tool_does_not_run_and_the_model_hears_why(room: &Room) {
    room.api.push(bash("touch made-by-tool"));
    room.api.push(MessagesStream::say("as you wish"));
    let mut stream = Stream::start(room);
    stream.write(&write::user("make it")).await;
    let (request, _) = stream.question().await;
    stream.write(&write::deny(&request, "rather not today", false)).await;
    let (facts, outcome) = stream.turn().await;
    let denied = facts.iter().any(|fact| {
        matches!(fact, Fact::ToolResult { is_error: true, output, .. } if output.contains("rather not"))
    });
    assert!(denied, "{facts:?}");
    assert!(!room.workspace().join("made-by-tool").exists());
    assert_eq!(outcome.text.as_deref(), Some("as you wish"));
    assert!(room.questions()[1].body.to_string().contains("rather not today"));
}

async fn an_interrupt_ends_the_turn_and_the_next_prompt_is_answered(room: &Room) {
    let gate = Gate::new();
    room.api.push(MessagesStream::new().open_text(&["half "]).wait(&gate).reply());
    room.api.push(MessagesStream::say("whole"));
    let mut stream = Stream::start(room);
    stream.write(&write::user("begin")).await;
    stream.until(|said| matches!(said, Said::Fact(Fact::TextDelta { .. })).then_some(())).await;
    stream.write(&write::interrupt("stop-1")).await;
    let (facts, outcome) = stream.turn().await;
    let interrupted = |fact: &Fact| matches!(fact, Fact::Interrupted { in_tool: false });
    assert!(facts.iter().any(interrupted), "{facts:?}");
    assert!(outcome.broken && outcome.failure.is_none(), "{outcome:?}");
    room.on_model(|api| api.wait_for_hang_ups(1)).await;
    stream.write(&write::user("again")).await;
    assert_eq!(stream.turn().await.1.text.as_deref(), Some("whole"));
}

async fn a_prompt_during_a_turn_is_taken_into_it(room: &Room) {
    room.api.push(bash("touch made-by-tool"));
    room.api.push(MessagesStream::say("both"));
    let mut stream = Stream::start(room);
    stream.write(&write::user("make it")).await;
    let (request, input) = stream.question().await;
    stream.write(&write::user("and one thing more")).await;
    stream.write(&write::allow(&request, &input)).await;
    stream
        .until(|said| match said {
            Said::Other(StreamMessage::Replayed { text }) if text == "and one thing more" => {
                Some(())
            }
            Said::Other(StreamMessage::Result(outcome)) => panic!("too early: {outcome:?}"),
            _ => None,
        })
        .await;
    assert_eq!(stream.turn().await.1.text.as_deref(), Some("both"));
    assert!(room.questions()[1].body.to_string().contains("and one thing more"));
}

async fn a_failure_of_the_api_is_told_with_its_kind(room: &Room) {
    let busy = || Reply::error(529, "overloaded_error", "Overloaded").header("retry-after", "0");
    (0..4).for_each(|_| room.api.push(busy()));
    let mut stream = Stream::start(room);
    stream.write(&write::user("go")).await;
    let (facts, outcome) = stream.turn().await;
    let retried = |fact: &Fact| matches!(fact, Fact::Retry { attempt: 1, max_attempts: 1, .. });
    assert!(facts.iter().any(retried), "{facts:?}");
    let failure = outcome.failure.as_deref();
    assert!(matches!(failure, Some(Fact::ApiFailure { status: Some(529), .. })), "{outcome:?}");
}
