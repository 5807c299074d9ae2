//! The transcript that the interactive CLI writes, as our reader understands it.

use claw_runtime::session::ContentBlock;
use claw_tests::mock_api::{MessagesStream, PATIENCE, Reply};
use claw_workers::transcript::{ReaderEvent, TranscriptReader, transcript_path};
use claw_workers::{Fact, FailureKind, PromptSource, Timings};
use serde_json::json;

use crate::cli::{Room, on_both_versions};
use crate::terminal::{Terminal, at_input_box};

on_both_versions!(
    a_turn_with_thinking_and_a_tool_is_written_block_by_block,
    an_interrupt_is_a_record,
    a_failure_of_the_api_is_a_record_with_its_kind,
    a_compaction_is_a_record,
);

/// The CLI, and the file that it writes.
struct Written {
    terminal: Terminal,
    reader: TranscriptReader,
}

impl Written {
    async fn start(room: &Room) -> Self {
        room.trust_workspace();
        let id = uuid::Uuid::new_v4().to_string();
        let mut environment = room.environment(room.api.base_url());
        environment.push(("CLAUDE_CODE_MAX_RETRIES".into(), "1".into()));
        let arguments = ["--permission-mode", "default", "--allowedTools", "Bash(touch:*)"];
        let mut arguments = arguments.to_vec();
        arguments.extend(["--session-id", &id]);
        let mut terminal = room.interactive(&arguments, &environment);
        terminal.until("input box", at_input_box).await;
        let path = transcript_path(&room.config_dir(), &room.workspace(), &id);
        Self { terminal, reader: TranscriptReader::new(&path, &Timings::default()) }
    }

    /// The facts of the records up to one that is looked for.
    async fn until(&mut self, what: &str, is_it: impl Fn(&Fact) -> bool) -> Vec<Fact> {
        let mut facts = Vec::new();
        let read = async {
            loop {
                match self.reader.next().await {
                    ReaderEvent::Record(record) => {
                        let found = record.facts.iter().any(&is_it);
                        facts.extend(record.facts);
                        if found {
                            return;
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        };
        let read = tokio::time::timeout(PATIENCE, read).await;
        assert!(read.is_ok(), "no {what} after {facts:?}:\n{}", self.terminal.text());
        for fact in &facts {
            assert!(!matches!(fact, Fact::Unknown { .. }), "{fact:?}");
        }
        facts
    }
}

fn typed(text: &str) -> impl Fn(&Fact) -> bool + use<'_> {
    move |fact| match fact {
        Fact::Prompt { text: said, source: PromptSource::Typed, prompt_id } => {
            said == text && prompt_id.is_some()
        }
        _ => false,
    }
}

/// The place of a fact among the others.
fn place(facts: &[Fact], what: &str, is_it: impl Fn(&Fact) -> bool) -> usize {
    facts.iter().position(is_it).unwrap_or_else(|| panic!("no {what} in {facts:?}"))
}

async fn a_turn_with_thinking_and_a_tool_is_written_block_by_block(room: &Room) {
    let input = json!({"command": "touch made-by-tool", "description": "make it"}).to_string();
    let first = MessagesStream::new().thinking(&["let me see"], "signed").text(&["I make it."]);
    room.api.push(first.tool_use("toolu_1", "Bash", &input).stop("tool_use", 9).reply());
    room.api.push(MessagesStream::say("It is made."));
    let mut written = Written::start(room).await;
    written.terminal.submit("make it").await;
    let facts = written.until("end", |fact| matches!(fact, Fact::TurnDuration { .. })).await;
    let content = |wanted: fn(&ContentBlock) -> bool| move |fact: &Fact| matches!(fact, Fact::Block { content, .. } if wanted(content));
    // On a busy machine 2.1.197 writes the prompt behind what it was answered with.
    place(&facts, "prompt", typed("make it"));
    let places = [
        place(&facts, "thinking", content(|block| matches!(block, ContentBlock::Thinking { .. }))),
        place(
            &facts,
            "text",
            content(|block| matches!(block, ContentBlock::Text { text } if text == "I make it.")),
        ),
        place(&facts, "call", content(|block| matches!(block, ContentBlock::ToolUse { .. }))),
        place(
            &facts,
            "result",
            |fact| matches!(fact, Fact::ToolResult { id, is_error: false, .. } if id == "toolu_1"),
        ),
        place(
            &facts,
            "answer",
            content(|block| matches!(block, ContentBlock::Text { text } if text == "It is made.")),
        ),
        facts.len() - 1,
    ];
    assert!(places.is_sorted(), "{places:?} in {facts:?}");
    assert!(room.workspace().join("made-by-tool").exists());
}

async fn an_interrupt_is_a_record(room: &Room) {
    room.api
        .push(MessagesStream::new().open_text(&["half of it.\n\n", "and more"]).reply().stall());
    let mut written = Written::start(room).await;
    written.terminal.submit("begin").await;
    written.terminal.until_shows("half of it.").await;
    written.terminal.write(b"\x1b").await;
    let facts = written
        .until("interrupt", |fact| matches!(fact, Fact::Interrupted { in_tool: false }))
        .await;
    place(&facts, "prompt", typed("begin"));
    place(
        &facts,
        "half a block",
        |fact| matches!(fact, Fact::Block { content: ContentBlock::Text { text }, .. } if text.starts_with("half of it.")),
    );
    room.on_model(|api| api.wait_for_hang_ups(1)).await;
}

async fn a_failure_of_the_api_is_a_record_with_its_kind(room: &Room) {
    for _ in 0..2 {
        let busy = Reply::error(529, "overloaded_error", "Overloaded");
        room.api.push(busy.header("retry-after", "0"));
    }
    let mut written = Written::start(room).await;
    written.terminal.submit("go").await;
    let facts = written.until("failure", |fact| matches!(fact, Fact::ApiFailure { .. })).await;
    let failed = |fact: &Fact| {
        matches!(fact, Fact::ApiFailure { kind: FailureKind::Server, status: Some(529), .. })
    };
    place(&facts, "overload", failed);
}

async fn a_compaction_is_a_record(room: &Room) {
    let mut written = Written::start(room).await;
    for number in 0..2 {
        let answer = format!("answer number {number}");
        room.api.push(MessagesStream::say(&answer));
        written.terminal.submit(&format!("prompt number {number}")).await;
        written.until("end", |fact| matches!(fact, Fact::TurnDuration { .. })).await;
    }
    room.api.push(MessagesStream::say("<summary>What was said so far.</summary>"));
    written.terminal.submit("/compact").await;
    let facts = written.until("compaction", |fact| matches!(fact, Fact::Compacted { .. })).await;
    place(&facts, "manual one", |fact| matches!(fact, Fact::Compacted { automatic: false, .. }));
    written
        .until("summary", |fact| matches!(fact, Fact::Prompt { source: PromptSource::Summary, .. }))
        .await;
}
