//! The transcript as the person sees it: events in, screens out.

use std::sync::Arc;

use claw_runtime::api::{ApiError, AssistantTurn, CutCause, StopReason};
use claw_runtime::permissions::{
    PermissionLevel, PermissionMode, PermissionReply, PermissionRequest, RetiredReason,
};
use claw_runtime::session::{ContentBlock, ConversationMessage, MessageRole, PartialReason};
use claw_runtime::tools::{Grant, TodoItem, TodoStatus, ToolFacts, ToolOutcome};
use claw_runtime::usage::TokenUsage;
use claw_runtime::{CompactionCause, RuntimeError, TuiEvent, TurnStop, TurnSummary};
use proptest::prelude::*;

use super::*;

/// A transcript with a clock of its own.
struct Stage {
    transcript: Transcript,
    now: Instant,
}

impl Stage {
    fn new() -> Self {
        Self { transcript: Transcript::new(Theme::plain()), now: Instant::now() }
    }

    fn apply(&mut self, event: &TuiEvent) {
        self.transcript.apply(self.now, event);
    }

    fn text(&mut self, text: &str) {
        self.apply(&TuiEvent::TextDelta { text: text.to_owned() });
    }

    fn use_tool(&mut self, id: &str, name: &str, input: &str) {
        self.apply(&TuiEvent::ToolUseStarted { id: id.into(), name: name.into() });
        self.apply(&TuiEvent::ToolUse { id: id.into(), name: name.into(), input: input.into() });
    }

    fn start_tool(&mut self, id: &str, name: &str, input: &str) {
        self.apply(&TuiEvent::ToolStarted {
            iteration: 1,
            id: id.into(),
            name: name.into(),
            input: input.into(),
        });
    }

    fn result(&mut self, id: &str, name: &str, input: &str, outcome: ToolOutcome, denied: bool) {
        self.apply(&TuiEvent::ToolResult {
            iteration: 1,
            max_iterations: 50,
            id: id.into(),
            name: name.into(),
            input: input.into(),
            outcome,
            denied,
        });
    }

    fn end(&mut self, stop: TurnStop) {
        self.apply(&TuiEvent::TurnCompleted { summary: summary(stop) });
    }

    fn later(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn buffer(&mut self, width: u16, height: u16) -> Buffer {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        self.transcript.draw(self.now, area, &mut buffer);
        buffer
    }

    fn screen(&mut self, width: u16, height: u16) -> String {
        let buffer = self.buffer(width, height);
        let rows = (0..height).map(|y| {
            let row: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            row.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }
}

fn summary(stop: TurnStop) -> TurnSummary {
    TurnSummary {
        stop,
        text: String::new(),
        tool_calls: 0,
        iterations: 1,
        usage: TokenUsage::default(),
        auto_compaction: None,
    }
}

fn outcome(output: &str, facts: Option<ToolFacts>) -> ToolOutcome {
    ToolOutcome {
        output: output.to_owned(),
        is_error: false,
        facts,
        elapsed: Duration::from_millis(1240),
    }
}

fn command(exit_code: i32) -> ToolFacts {
    ToolFacts::Command {
        exit_code: Some(exit_code),
        signal: None,
        timed_out: false,
        cancelled: false,
        omitted_bytes: 0,
    }
}

/// Numbered paragraphs, each a cell of its own.
fn long_stage(cells: usize) -> Stage {
    let mut stage = Stage::new();
    for index in 0..cells {
        stage.text(&format!("line {index}"));
        stage.apply(&TuiEvent::MessageStop { stop_reason: StopReason::EndTurn });
    }
    stage
}

// The look of a turn

#[test]
fn a_turn_is_a_prompt_a_line_of_thinking_and_an_answer() {
    let mut stage = Stage::new();
    stage.transcript.push_user("Why?", false);
    stage.apply(&TuiEvent::TurnStarted { input: "Why?".into(), retry: false });
    stage.apply(&TuiEvent::ThinkingDelta { text: "Hm.".into() });
    stage.apply(&TuiEvent::ThinkingEnded { char_count: 3, redacted: false });
    stage.text("Because **it is**.\n\nReally.");
    stage.end(TurnStop::Finished(StopReason::EndTurn));
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    > Why?

    ▸ Thinking (3 chars)

    Because it is.

    Really.
    ");
}

#[test]
fn text_is_visible_while_it_streams_and_the_same_when_it_ended() {
    let mut stage = Stage::new();
    for delta in ["One", " par", "agraph.\n", "\nAno", "ther **bo", "ld** one.\n\n", "- item\n"] {
        stage.text(delta);
    }
    let streamed = stage.screen(80, 24);
    insta::assert_snapshot!(streamed, @r"
    One paragraph.

    Another bold one.

    • item
    ");
    stage.apply(&TuiEvent::MessageStop { stop_reason: StopReason::EndTurn });
    stage.end(TurnStop::Finished(StopReason::EndTurn));
    assert_eq!(stage.screen(80, 24), streamed, "shown once, with its paragraphs");
}

#[test]
fn thinking_is_live_then_one_line_and_opens_by_key() {
    let mut stage = Stage::new();
    stage.apply(&TuiEvent::ThinkingStarted);
    stage.apply(&TuiEvent::ThinkingDelta { text: "one\ntwo\nthree\nfour\nfi".into() });
    stage.apply(&TuiEvent::ThinkingDelta { text: "ve".into() });
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    ▸ Thinking…
      two
      three
      four
      five
    ");
    stage.apply(&TuiEvent::ThinkingEnded { char_count: 23, redacted: false });
    assert_eq!(stage.screen(80, 24), "▸ Thinking (23 chars)");
    assert!(stage.transcript.toggle_all_thinking());
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    ▾ Thinking (23 chars)
      one
      two
      three
      four
      five
    ");
    assert!(!stage.transcript.toggle_all_thinking());
    assert_eq!(stage.screen(80, 24), "▸ Thinking (23 chars)");
    assert!(stage.transcript.toggle_at(3, 0), "a click opens it");
    assert!(stage.screen(80, 24).contains("three"));
}

#[test]
fn redacted_thinking_says_who_hides_it() {
    let mut stage = Stage::new();
    stage.apply(&TuiEvent::ThinkingStarted);
    stage.apply(&TuiEvent::ThinkingEnded { char_count: 0, redacted: true });
    assert_eq!(stage.screen(80, 5), "▸ Thinking (hidden by the provider)");
    assert!(!stage.transcript.focus_prev(), "there is nothing to open");
}

// Tools

const EDIT: &str = r#"{"path":"src/main.rs","old_string":"b","new_string":"c"}"#;

#[test]
fn a_tool_call_is_shown_from_its_first_word_to_its_outcome() {
    let mut stage = Stage::new();
    let input = r#"{"command":"cargo test -p claw-tui"}"#;
    stage.apply(&TuiEvent::ToolUseStarted { id: "1".into(), name: "bash".into() });
    assert_eq!(stage.screen(80, 9), "○ bash  writing its input…");
    stage.apply(&TuiEvent::ToolUse { id: "1".into(), name: "bash".into(), input: input.into() });
    assert_eq!(stage.screen(80, 9), "○ bash cargo test -p claw-tui");
    stage.start_tool("1", "bash", input);
    assert_eq!(stage.screen(80, 9), "● bash cargo test -p claw-tui  running");
    stage.later(3100);
    stage.apply(&TuiEvent::ToolOutput {
        id: "1".into(),
        text: "1\n2\n3\n4\n5\n6\n10%\r50%\r99%".into(),
    });
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ● bash cargo test -p claw-tui  running 3s
      3
      4
      5
      6
      99%
    ");
    stage.apply(&TuiEvent::ToolEnded {
        id: "1".into(),
        is_error: false,
        elapsed: Duration::from_millis(4200),
    });
    stage.result("1", "bash", input, outcome("a\nb\n", Some(command(0))), false);
    assert_eq!(stage.screen(80, 9), "✓ bash cargo test -p claw-tui  exit 0 · 2 lines · 4.2s");
    assert!(stage.transcript.focus_prev() && stage.transcript.toggle_focused());
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ✓ bash cargo test -p claw-tui  exit 0 · 2 lines · 4.2s
      cargo test -p claw-tui
      a
      b
    ");
}

#[test]
fn the_one_line_form_always_names_the_file() {
    let mut stage = Stage::new();
    let input = r#"{"path":"/home/someone/project/with/a/long/way/down/to/the/file.rs"}"#;
    let facts =
        ToolFacts::Read { path: String::new(), first_line: 1, lines: 200, total_lines: 340 };
    stage.use_tool("1", "read_file", input);
    stage.result("1", "read_file", input, outcome("x", Some(facts)), false);
    let facts = ToolFacts::Matches { matches: 12, files: 3, truncated: true };
    let input = r#"{"pattern":"fn main","path":"src"}"#;
    stage.result("2", "grep_search", input, outcome("x", Some(facts)), false);
    insta::assert_snapshot!(stage.screen(60, 9), @r#"
    ✓ read_file …/down/to/the/file.rs  lines 1-200 of 340 · 1.2s
    ✓ grep_search "fn main" in src
      12 matches in 3 files (there are more) · 1.2s
    "#);
    insta::assert_snapshot!(stage.screen(24, 9), @r#"
    ✓ read_file …the/file.rs
      lines 1-200 of 340 ·
      1.2s
    ✓ grep_search "fn main"…
      12 matches in 3 files
      (there are more) ·
      1.2s
    "#);
}

#[test]
fn diffs_stand_open_up_to_a_bound() {
    let mut stage = Stage::new();
    let facts = |diff: &str| ToolFacts::Diff {
        path: "src/main.rs".into(),
        diff: diff.into(),
        added: 1,
        removed: 1,
        created: false,
    };
    stage.use_tool("1", "edit_file", EDIT);
    let small = facts("@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    stage.result("1", "edit_file", EDIT, outcome("ok", Some(small)), false);
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ✓ edit_file src/main.rs  +1 -1 · 1.2s
      @@ -1,2 +1,2 @@
       a
      -b
      +c
    ");
    let theme = Theme::dark();
    stage.transcript.set_theme(theme.clone());
    let buffer = stage.buffer(80, 9);
    assert_eq!(Some(buffer[(2, 3)].fg), theme.diff_removed.fg);
    assert_eq!(Some(buffer[(2, 4)].fg), theme.diff_added.fg);

    let mut stage = Stage::new();
    let long = facts(&"+new\n".repeat(50));
    stage.result("1", "edit_file", EDIT, outcome("ok", Some(long)), false);
    let screen = stage.screen(80, 60);
    assert_eq!(screen.matches("+new").count(), 20);
    assert!(screen.ends_with("  … 30 more lines"), "{screen}");
    stage.transcript.set_tool_details(true);
    assert_eq!(stage.screen(80, 60).matches("+new").count(), 50);
}

#[test]
fn failures_and_denials_stand_open_with_their_reason() {
    let mut stage = Stage::new();
    let input = r#"{"command":"make"}"#;
    stage.use_tool("1", "bash", input);
    let lines = (1..=14).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    let failed = ToolOutcome { facts: Some(command(2)), ..ToolOutcome::error(lines) };
    stage.result("1", "bash", input, failed, false);
    stage.use_tool("2", "bash", input);
    stage.result("2", "bash", input, ToolOutcome::error("not now, says the person"), true);
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    ✗ bash make  exit 2 · 14 lines
      … 4 lines above
      line 5
      line 6
      line 7
      line 8
      line 9
      line 10
      line 11
      line 12
      line 13
      line 14
    ✗ bash make  denied
      not now, says the person
    ");
}

#[test]
fn a_call_that_waits_for_permission_says_so() {
    let mut stage = Stage::new();
    let input = r#"{"command":"rm x"}"#;
    stage.use_tool("1", "bash", input);
    let request = PermissionRequest {
        id: RequestId::next(),
        tool_use_id: "1".into(),
        tool_name: "bash".into(),
        input: input.into(),
        current_mode: PermissionMode::WorkspaceWrite,
        required: PermissionLevel::DangerFullAccess,
        reason: None,
        preview: None,
        grant: Grant { key: String::new(), words: String::new() },
    };
    let id = request.id;
    let (reply, _answer) = PermissionReply::channel();
    stage.apply(&TuiEvent::PermissionRequired { request, reply });
    assert_eq!(stage.screen(80, 5), "? bash rm x  waits for permission");
    stage.apply(&TuiEvent::PermissionRetired { id, reason: RetiredReason::Answered });
    assert_eq!(stage.screen(80, 5), "○ bash rm x");
}

#[test]
fn a_todo_list_is_drawn_as_checkboxes() {
    let item = |content: &str, active_form: &str, status| TodoItem {
        content: content.into(),
        active_form: active_form.into(),
        status,
    };
    let items = vec![
        item("Read the code", "Reading the code", TodoStatus::Completed),
        item("Fix the bug", "Fixing the bug", TodoStatus::InProgress),
        item("Run the tests", "Running the tests", TodoStatus::Pending),
    ];
    let mut stage = Stage::new();
    let facts = Some(ToolFacts::Todo { items });
    stage.result("1", "TodoWrite", "{}", outcome("ok", facts), false);
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ✓ TodoWrite  1 of 3 done · 1.2s
      ☑ Read the code
      ▶ Fixing the bug
      ☐ Run the tests
    ");
}

#[test]
fn running_tools_wake_the_screen_once_a_second_and_nothing_else_does() {
    let mut stage = Stage::new();
    assert_eq!(stage.transcript.next_deadline(stage.now), None);
    stage.use_tool("1", "bash", "{}");
    assert_eq!(stage.transcript.next_deadline(stage.now), None);
    let begun = stage.now;
    stage.start_tool("1", "bash", "{}");
    stage.later(2300);
    assert_eq!(stage.transcript.next_deadline(stage.now), Some(begun + Duration::from_secs(3)));
    assert_eq!(stage.screen(80, 5), "● bash  running 2s");
    stage.later(700);
    assert_eq!(stage.screen(80, 5), "● bash  running 3s");
    stage.result("1", "bash", "{}", outcome("", None), false);
    assert_eq!(stage.transcript.next_deadline(stage.now), None);
}

// How a turn ends

#[test]
fn what_was_stopped_is_kept_and_marked() {
    let mut stage = Stage::new();
    stage.text("Half an ans");
    stage.end(TurnStop::Cancelled);
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    Half an ans
    — interrupted
    ");

    let mut stage = Stage::new();
    stage.start_tool("1", "bash", r#"{"command":"sleep 9"}"#);
    stage.end(TurnStop::Cancelled);
    assert_eq!(stage.screen(80, 9), "✗ bash sleep 9  interrupted");

    let mut stage = Stage::new();
    stage.end(TurnStop::Cancelled);
    assert_eq!(stage.screen(80, 9), "! Interrupted");
}

#[test]
fn a_cut_stream_is_marked_with_its_reason_and_the_way_on() {
    let mut stage = Stage::new();
    stage.text("Half an ans");
    stage.apply(&TuiEvent::ToolUseIncomplete { id: "1".into(), name: "bash".into() });
    stage.text("More");
    let partial = AssistantTurn { messages: vec![], stop_reason: StopReason::EndTurn };
    let error = RuntimeError::Api(ApiError::StreamCut {
        cause: CutCause::ConnectionClosed,
        partial: Box::new(partial),
    });
    stage.apply(&TuiEvent::TurnFailed { error: error.into(), summary: summary(TurnStop::Failed) });
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    Half an ans

    ✗ bash  cut off inside the call; it was not run

    More
    — cut off: the connection closed before the end of the message; /retry sends it
    again
    ");
}

#[test]
fn a_failed_turn_says_what_happened_and_what_to_do() {
    let mut stage = Stage::new();
    let error = RuntimeError::Api(ApiError::Server { status: 500, message: "oh\x1b[2J no".into() });
    stage.apply(&TuiEvent::TurnFailed { error: error.into(), summary: summary(TurnStop::Failed) });
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ✗ the provider failed (500): oh no
      The conversation is kept; /retry sends it again.
    ");
}

#[test]
fn limits_and_refusals_are_said() {
    for (stop, words) in [
        (TurnStop::Finished(StopReason::MaxTokens), "output limit"),
        (TurnStop::Finished(StopReason::Refusal), "refused"),
        (TurnStop::Finished(StopReason::Other("odd\x07".into())), "odd"),
        (TurnStop::IterationLimit(50), "50 rounds"),
    ] {
        let mut stage = Stage::new();
        stage.end(stop);
        let screen = stage.screen(80, 9);
        assert!(screen.contains(words), "{screen}");
    }
    let mut stage = Stage::new();
    stage.end(TurnStop::Finished(StopReason::EndTurn));
    assert!(stage.transcript.is_empty());
}

#[test]
fn compaction_replies_and_notices_are_cells() {
    let mut stage = Stage::new();
    for removed in [0, 42] {
        stage.apply(&TuiEvent::Compacted {
            cause: CompactionCause::Automatic,
            removed,
            before_tokens: 120_000,
            after_tokens: if removed == 0 { 120_000 } else { 9_500 },
            original: None,
        });
    }
    stage.apply(&TuiEvent::Reply {
        title: "Cost".into(),
        markdown: "| a | b |\n|-|-|\n|1|2|".into(),
    });
    stage.apply(&TuiEvent::warning("look out"));
    stage.apply(&TuiEvent::Exported { path: "notes.md".into() });
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    ─ Nothing to compact: the context has about 120,000 tokens

    ─ Compacted (the context was getting full): 42 messages became a summary, about
      120,000 tokens are now 9,500

    Cost
    a │ b
    ──┼──
    1 │ 2

    ! look out

    · Conversation written to notes.md
    ");
}

// Prompts

#[test]
fn queued_prompts_wait_at_the_end_and_are_delivered_in_order() {
    let mut stage = Stage::new();
    stage.transcript.push_user("first", false);
    stage.apply(&TuiEvent::TurnStarted { input: "first".into(), retry: false });
    stage.text("Answ");
    stage.transcript.push_user("second", true);
    stage.transcript.push_user("third", true);
    stage.text("er.");
    stage.use_tool("1", "bash", r#"{"command":"ls"}"#);
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    > first

    Answer.

    ○ bash ls

    > second
      queued

    > third
      queued
    ");
    assert_eq!(stage.transcript.take_queued().as_deref(), Some("third"));
    stage.end(TurnStop::Finished(StopReason::EndTurn));
    stage.apply(&TuiEvent::TurnStarted { input: "second".into(), retry: false });
    stage.text("Again.");
    assert_eq!(stage.transcript.queued(), 0);
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    > first

    Answer.

    ✗ bash ls  interrupted

    > second

    Again.
    ");
}

#[test]
fn a_prompt_is_shown_once_also_when_it_is_tried_again() {
    let mut stage = Stage::new();
    stage.apply(&TuiEvent::TurnStarted { input: "from the command line".into(), retry: false });
    stage.apply(&TuiEvent::TurnStarted { input: "from the command line".into(), retry: true });
    assert_eq!(stage.screen(80, 9), "> from the command line");
}

#[test]
fn a_long_prompt_is_folded() {
    let mut stage = Stage::new();
    stage.transcript.push_user(&"x\n".repeat(100), false);
    assert!(stage.screen(80, 60).ends_with("  … 80 more lines"));
    assert!(stage.transcript.focus_prev() && stage.transcript.toggle_focused());
    assert_eq!(stage.screen(80, 120).lines().count(), 100);
}

// Safety

#[test]
fn no_escape_sequence_reaches_a_cell() {
    let hostile = "a\x1b]0;owned\x07b\x1b[2Jc\u{202e}d&#27;[2J&#x202e;[x](&#27;&#7;y) \n\n\
                   ```a&#27;b\nx\n```\n\n[^&#27;]: n\n\n\x1b[31";
    let mut stage = Stage::new();
    stage.transcript.push_user(hostile, false);
    stage.transcript.push_user(hostile, true);
    stage.apply(&TuiEvent::ThinkingDelta { text: hostile.into() });
    stage.text(hostile);
    stage.text("m");
    stage.use_tool("1", hostile, r#"{"command":"a\u001b]0;owned\u0007b"}"#);
    stage.start_tool("1", hostile, hostile);
    stage.apply(&TuiEvent::ToolOutput { id: "1".into(), text: hostile.into() });
    stage.apply(&TuiEvent::info(hostile));
    stage.apply(&TuiEvent::Reply { title: hostile.into(), markdown: hostile.into() });
    stage.apply(&TuiEvent::Exported { path: hostile.into() });
    let mut stages = vec![stage];
    let mut stage = Stage::new();
    let diff = ToolFacts::Diff {
        path: hostile.into(),
        diff: format!("+{hostile}\n"),
        added: 1,
        removed: 0,
        created: true,
    };
    stage.result("1", hostile, hostile, outcome(hostile, Some(diff)), false);
    stage.result("2", "x", hostile, ToolOutcome::error(hostile), true);
    let item = TodoItem {
        content: hostile.into(),
        active_form: String::new(),
        status: TodoStatus::Pending,
    };
    let todo = ToolFacts::Todo { items: vec![item] };
    stage.result("3", "x", hostile, outcome(hostile, Some(todo)), false);
    stage.transcript.set_tool_details(true);
    stages.push(stage);
    let mut stage = Stage::new();
    stage.transcript.load(&hostile_session(hostile));
    stages.push(stage);
    for mut stage in stages {
        let screen = stage.screen(80, 60);
        assert!(screen.contains('a'), "{screen}");
        assert!(!screen.contains(|c: char| c.is_control() && c != '\n'), "{screen:?}");
        assert!(!screen.contains("owned") && !screen.contains('\u{202e}'), "{screen:?}");
        for line in stage.transcript.farewell_lines(stage.now, 80, 100) {
            let line = line.to_string();
            assert!(!line.contains(char::is_control) && !line.contains('\u{202e}'), "{line:?}");
        }
    }
}

fn view(messages: Vec<ConversationMessage>) -> SessionView {
    SessionView {
        id: "session-1".into(),
        path: "session.jsonl".into(),
        fork: None,
        messages: messages.into_iter().map(Arc::new).collect(),
        prompt_history: Vec::new(),
        warnings: vec!["1 line was skipped".into()],
        resumed: true,
    }
}

fn hostile_session(hostile: &str) -> SessionView {
    let text = || ContentBlock::Text { text: hostile.into() };
    view(vec![
        ConversationMessage::new(MessageRole::System, vec![text()]),
        ConversationMessage::user(hostile),
        ConversationMessage::new(
            MessageRole::Assistant,
            vec![
                ContentBlock::Thinking { thinking: hostile.into(), signature: None },
                text(),
                ContentBlock::ToolUse {
                    id: "1".into(),
                    name: hostile.into(),
                    input: hostile.into(),
                },
            ],
        ),
        ConversationMessage::new(
            MessageRole::Tool,
            vec![ContentBlock::ToolResult {
                tool_use_id: "1".into(),
                tool_name: hostile.into(),
                output: hostile.into(),
                is_error: true,
                facts: None,
            }],
        ),
    ])
}

// Loaded sessions

#[test]
fn a_loaded_session_looks_like_the_one_that_was_left() {
    let result = |id: &str, output: &str, facts| ContentBlock::ToolResult {
        tool_use_id: id.into(),
        tool_name: "bash".into(),
        output: output.into(),
        is_error: false,
        facts,
    };
    let call = |id: &str, command: &str| ContentBlock::ToolUse {
        id: id.into(),
        name: "bash".into(),
        input: format!("{{\"command\":\"{command}\"}}"),
    };
    let mut partial = ConversationMessage::new(
        MessageRole::Assistant,
        vec![ContentBlock::Text { text: "Half".into() }],
    );
    partial.partial = Some(PartialReason::Cut);
    let mut stage = Stage::new();
    stage.transcript.load(&view(vec![
        ConversationMessage::new(
            MessageRole::System,
            vec![ContentBlock::Text { text: "What went before.".into() }],
        ),
        ConversationMessage::user("Do it"),
        ConversationMessage::new(
            MessageRole::Assistant,
            vec![
                ContentBlock::Thinking { thinking: "hmm".into(), signature: Some("s".into()) },
                ContentBlock::RedactedThinking { data: "x".into() },
                ContentBlock::Text { text: "I **will**.".into() },
                call("1", "ls"),
                call("2", "never ran"),
            ],
        ),
        ConversationMessage::new(MessageRole::Tool, vec![result("1", "a\nb\n", Some(command(0)))]),
        partial,
    ]));
    assert_eq!(stage.transcript.layouts(), 0, "loading lays nothing out");
    insta::assert_snapshot!(stage.screen(80, 30), @r"
    ▸ Earlier messages were replaced by a summary

    > Do it

    ▸ Thinking (3 chars)
    ▸ Thinking (hidden by the provider)

    I will.

    ✓ bash ls  exit 0 · 2 lines
    ✗ bash never ran  interrupted

    Half
    — cut off; /retry sends it again

    ! 1 line was skipped
    ");
    assert_eq!(stage.transcript.last_answer().as_deref(), Some("Half"));
    assert_eq!(stage.transcript.text_at(0, 2).as_deref(), Some("Do it"));
}

// Scrolling

#[test]
fn the_end_is_followed_until_the_person_scrolls_away() {
    let mut stage = long_stage(30);
    assert!(stage.transcript.following());
    assert!(stage.screen(40, 5).ends_with("line 29"));
    stage.transcript.scroll_lines(-10);
    let before = stage.screen(40, 5);
    assert!(!stage.transcript.following());
    assert_eq!(stage.transcript.new_lines_below(), 0);
    stage.text("more\n\nand more\n");
    stage.apply(&TuiEvent::warning("one"));
    assert_eq!(stage.screen(40, 5), before, "the view stays where the person put it");
    assert!((4..=6).contains(&stage.transcript.new_lines_below()));
    stage.transcript.to_end();
    assert!(stage.transcript.following());
    assert_eq!(stage.transcript.new_lines_below(), 0);
    assert!(stage.screen(40, 5).ends_with("! one"));
}

#[test]
fn scrolling_down_to_the_end_follows_again() {
    let mut stage = long_stage(30);
    stage.screen(40, 10);
    for _ in 0..3 {
        stage.transcript.page_up();
        stage.screen(40, 10);
    }
    assert!(!stage.transcript.following());
    stage.transcript.page_down();
    stage.screen(40, 10);
    assert!(!stage.transcript.following());
    stage.transcript.page_down();
    stage.transcript.page_down();
    assert!(stage.transcript.following());
    stage.transcript.to_start();
    assert!(stage.screen(40, 10).starts_with("line 0"));
    stage.transcript.page_up();
    assert!(stage.screen(40, 10).starts_with("line 0"));
    stage.transcript.scroll_lines(3);
    assert!(stage.screen(40, 10).starts_with("\nline 2"));
    stage.transcript.scroll_lines(10_000);
    assert!(stage.transcript.following());
}

#[test]
fn a_transcript_that_fits_does_not_scroll() {
    let mut stage = long_stage(3);
    let before = stage.screen(40, 20);
    stage.transcript.scroll_lines(-5);
    stage.transcript.page_up();
    assert!(stage.transcript.following());
    stage.transcript.to_start();
    assert_eq!(stage.screen(40, 20), before);
    assert!(stage.transcript.following());
}

#[test]
fn the_text_at_the_top_stays_through_resizes() {
    let mut stage = Stage::new();
    let words: Vec<String> = (0..2000).map(|word| format!("word{word}")).collect();
    stage.text(&words.join(" "));
    stage.screen(80, 10);
    stage.transcript.scroll_lines(-60);
    let before = stage.screen(80, 10);
    let first = before.split_whitespace().next().unwrap().to_owned();
    for width in [20, 200, 33, 61, 12, 120] {
        let screen = stage.screen(width, 10);
        let row = screen.lines().next().unwrap();
        assert!(row.contains(&first), "{first} at {width}: {row}");
        assert!(!stage.transcript.following());
    }
    assert_eq!(stage.screen(80, 10), before, "and back again");
}

#[test]
fn after_a_storm_of_resizes_the_screen_is_that_of_a_fresh_start() {
    let table = "| name | value |\n|---|---|\n| some words | and some more of them |\n\n";
    let part =
        format!("# Head\n\nprose that is long enough to wrap somewhere\n\n{table}- a\n- b\n\n");
    let source = format!("{}```sh\n{}\n```\n", part.repeat(30), "cargo test ".repeat(20));
    let mut stage = Stage::new();
    let mut fresh = Stage::new();
    for stage in [&mut stage, &mut fresh] {
        let facts = ToolFacts::Diff {
            path: "a".into(),
            diff: "@@ -1 +1 @@\n-old\n+new\n".into(),
            added: 1,
            removed: 1,
            created: false,
        };
        stage.result("1", "edit_file", EDIT, outcome("ok", Some(facts)), false);
    }
    for (index, delta) in source.as_bytes().chunks(40).enumerate() {
        let step = u16::try_from(index).unwrap();
        stage.text(std::str::from_utf8(delta).unwrap());
        stage.screen(20 + step * 37 % 220, 8 + step * 11 % 72);
    }
    fresh.text(&source);
    for (width, height) in [(1, 1), (20, 5), (80, 24), (120, 200)] {
        assert_eq!(stage.screen(width, height), fresh.screen(width, height), "{width}x{height}");
    }
}

#[test]
fn a_delta_changes_the_cells_of_its_words_only() {
    let mut stage = long_stage(30);
    stage.text("Some words");
    let before = stage.buffer(80, 24);
    stage.text(" more");
    let after = stage.buffer(80, 24);
    let changed: Vec<(u16, u16)> =
        before.diff(&after).into_iter().map(|(x, y, _)| (x, y)).collect();
    let row = changed.first().unwrap().1;
    assert!(changed.len() <= 5 && changed.iter().all(|&(_, y)| y == row), "{changed:?}");
}

#[test]
fn blank_text_between_tools_takes_no_room() {
    let mut stage = Stage::new();
    for id in ["1", "2"] {
        stage.text("\n\n");
        stage.use_tool(id, "bash", r#"{"command":"ls"}"#);
    }
    assert_eq!(stage.screen(80, 9), "○ bash ls\n○ bash ls");
}

#[test]
fn the_keyboard_goes_from_one_cell_that_opens_to_the_next() {
    let mut stage = Stage::new();
    for id in ["1", "2"] {
        let input = format!("{{\"command\":\"run {id}\"}}");
        stage.result(id, "bash", &input, outcome("out\n", Some(command(0))), false);
        stage.text(&"filler\n\n".repeat(30));
    }
    stage.screen(40, 10);
    assert!(!stage.transcript.focus_next());
    assert!(stage.transcript.focus_prev());
    assert!(stage.screen(40, 10).contains("run 2"), "it comes into view");
    assert!(stage.transcript.focus_prev());
    assert!(stage.screen(40, 10).contains("run 1"));
    assert!(!stage.transcript.focus_prev());
    let buffer = stage.buffer(40, 10);
    let marked = ratatui::style::Modifier::REVERSED;
    assert!(buffer[(2, 0)].modifier.contains(marked));
    assert!(stage.transcript.focus_next() && stage.transcript.toggle_focused());
    assert!(stage.screen(40, 12).contains("out"));
    stage.transcript.clear_focus();
    assert!(!stage.transcript.toggle_focused());
}

#[test]
fn opening_a_cell_leaves_its_first_line_where_it_is() {
    let mut stage = long_stage(10);
    let input = r#"{"command":"seq 100"}"#;
    let output = (1..=100).map(|line| line.to_string()).collect::<Vec<_>>().join("\n");
    stage.result("1", "bash", input, outcome(&output, Some(command(0))), false);
    stage.text("after");
    let closed = stage.screen(40, 10);
    let row = |screen: &str| screen.lines().position(|line| line.contains("bash"));
    assert!(stage.transcript.focus_prev() && stage.transcript.toggle_focused());
    let open = stage.screen(40, 10);
    assert_eq!(row(&open), row(&closed));
    assert!(open.contains("seq 100\n  1"), "{open}");
    assert!(stage.transcript.toggle_focused());
    assert_eq!(stage.screen(40, 10), closed);
    assert!(stage.transcript.following(), "closed again, the end is followed again");
}

#[test]
fn the_keyboard_begins_with_what_is_on_the_screen() {
    let mut stage = Stage::new();
    for id in 0..40 {
        let input = format!("{{\"command\":\"run {id}\"}}");
        stage.result(&id.to_string(), "bash", &input, outcome("out\n", Some(command(0))), false);
    }
    stage.screen(40, 10);
    assert!(stage.transcript.focus_prev() && stage.transcript.focus_prev());
    assert!(stage.transcript.focused_text().unwrap().starts_with("run 38"));
    stage.transcript.scroll_lines(-20);
    stage.screen(40, 10);
    assert!(stage.transcript.focus_prev());
    assert!(stage.transcript.focused_text().unwrap().starts_with("run 19"));
}

// What a frame costs

#[test]
fn a_frame_and_a_scroll_cost_the_screen_whatever_the_history() {
    let cost = |cells: usize| {
        let mut stage = long_stage(cells);
        stage.screen(80, 24);
        let first = stage.transcript.layouts();
        for _ in 0..10 {
            stage.screen(80, 24);
        }
        assert_eq!(stage.transcript.layouts(), first, "an unchanged frame lays nothing out");
        stage.transcript.page_up();
        stage.screen(80, 24);
        stage.transcript.scroll_lines(-3);
        stage.screen(80, 24);
        let scrolled = stage.transcript.layouts() - first;
        stage.transcript.to_start();
        stage.screen(80, 24);
        stage.screen(60, 24);
        stage.transcript.to_end();
        stage.screen(60, 24);
        (first, scrolled, stage.transcript.layouts() - first - scrolled)
    };
    let (first, scrolled, jumps) = cost(100);
    assert_eq!(cost(100_000), (first, scrolled, jumps));
    assert!(first <= 24 && scrolled <= 60 && jumps <= 100, "{first} {scrolled} {jumps}");
}

#[test]
fn ten_thousand_deltas_are_laid_out_once_a_frame() {
    let mut stage = long_stage(10);
    stage.screen(80, 24);
    let before = stage.transcript.layouts();
    for index in 0..10_000 {
        stage.text(if index % 50 == 0 { "word\n\n" } else { "word " });
    }
    assert_eq!(stage.transcript.layouts(), before);
    stage.screen(80, 24);
    assert_eq!(stage.transcript.layouts(), before + 1);
}

#[test]
fn lines_of_cells_long_off_the_screen_are_dropped() {
    let mut stage = long_stage(20_000);
    stage.screen(80, 50);
    for _ in 0..400 {
        stage.transcript.page_up();
        stage.screen(80, 50);
    }
    assert!(stage.transcript.cached_lines() < 4_200, "{}", stage.transcript.cached_lines());
}

#[test]
fn the_output_of_a_running_tool_is_bounded() {
    let mut stage = Stage::new();
    stage.start_tool("1", "bash", r#"{"command":"yes"}"#);
    for _ in 0..1000 {
        stage.apply(&TuiEvent::ToolOutput { id: "1".into(), text: "y\n".repeat(1000) });
    }
    stage.apply(&TuiEvent::ToolOutput { id: "1".into(), text: "the end".into() });
    let screen = stage.screen(80, 24);
    assert_eq!(screen.lines().count(), 6);
    assert!(screen.ends_with("the end"));
}

#[test]
fn colours_that_come_later_are_drawn_in_the_next_frame() {
    use crate::markdown::{CodeColours, ColouredCode, Colours};
    use crate::theme::CodeRole;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Later(Arc<AtomicBool>);
    impl CodeColours for Later {
        fn colours(&mut self, _: &str, code: &str, _: bool) -> Colours {
            if !self.0.load(Ordering::Relaxed) {
                return Colours::Pending(None);
            }
            let lines = code.lines().map(|_| vec![(2, CodeRole::Keyword)]).collect();
            Colours::Ready(Arc::new(ColouredCode { lines }))
        }
        fn poll(&mut self) -> u64 {
            u64::from(self.0.load(Ordering::Relaxed))
        }
    }

    let ready = Arc::new(AtomicBool::new(false));
    let theme = Theme::dark();
    let mut stage = Stage::new();
    stage.transcript.set_theme(theme.clone());
    stage.transcript.set_highlighter(Box::new(Later(Arc::clone(&ready))));
    stage.text("```rust\nfn x() {}\n```\n\nafter\n\nmore\n");
    let plain = stage.buffer(40, 9);
    assert_eq!(plain[(0, 1)].fg, ratatui::style::Color::Reset);
    ready.store(true, Ordering::Relaxed);
    let coloured = stage.buffer(40, 9);
    assert_eq!(Some(coloured[(0, 1)].fg), theme.code_role(CodeRole::Keyword).fg);
    let symbols = |buffer: &Buffer| {
        buffer.content().iter().map(|cell| cell.symbol().to_owned()).collect::<String>()
    };
    assert_eq!(symbols(&plain), symbols(&coloured));
}

// Any size, any content

#[test]
fn what_stays_in_the_scrollback_is_the_end_of_the_conversation() {
    let mut stage = long_stage(100);
    let lines = stage.transcript.farewell_lines(stage.now, 40, 5);
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(text, ["line 97", "", "line 98", "", "line 99"]);
    assert!(Stage::new().transcript.farewell_lines(stage.now, 0, 5).is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Text(String),
    Think(String),
    Tool(String),
    Prompt(bool),
    End,
    Scroll(i32),
    Toggle(u16, u16),
    Focus,
    Details(bool),
    Start,
    Draw(u16, u16),
}

fn step() -> impl Strategy<Value = Step> {
    let text = prop::sample::select(vec![
        "plain words ",
        "\n\n",
        "漢字漢字",
        "👩‍👩‍👧",
        "```rust\nfn x() {}\n",
        "```\n",
        "- a\n  - b\n",
        "| a | b |\n|-|-|\n| 1 | 2 |\n",
        "> quote\n",
        "\x1b[31m",
        "\r",
        "a-very-long-word-without-any-place-to-break-it-at-all",
    ]);
    prop_oneof![
        text.clone().prop_map(|text| Step::Text(text.to_owned())),
        text.clone().prop_map(|text| Step::Think(text.to_owned())),
        text.prop_map(|text| Step::Tool(text.to_owned())),
        any::<bool>().prop_map(Step::Prompt),
        Just(Step::End),
        (-40..40i32).prop_map(Step::Scroll),
        (0..80u16, 0..24u16).prop_map(|(x, y)| Step::Toggle(x, y)),
        Just(Step::Focus),
        any::<bool>().prop_map(Step::Details),
        Just(Step::Start),
        (0..30u16, 0..12u16).prop_map(|(width, height)| Step::Draw(width, height)),
        prop::sample::select(vec![(0, 0), (1, 1), (20, 5), (80, 24), (2, 40)])
            .prop_map(|(width, height)| Step::Draw(width, height)),
    ]
}

fn play(stage: &mut Stage, step: Step, index: usize) {
    match step {
        Step::Text(text) => stage.text(&text),
        Step::Think(text) => stage.apply(&TuiEvent::ThinkingDelta { text }),
        Step::Tool(text) => {
            let id = (index / 3).to_string();
            stage.start_tool(&id, "bash", &format!("{{\"command\":{text:?}}}"));
            stage.apply(&TuiEvent::ToolOutput { id: id.clone(), text: text.clone() });
            if index.is_multiple_of(2) {
                stage.result(&id, "bash", &text, ToolOutcome::error(text.clone()), false);
            }
        }
        Step::Prompt(queued) => stage.transcript.push_user("prompt", queued),
        Step::End => {
            stage.end(TurnStop::Cancelled);
            stage.apply(&TuiEvent::TurnStarted { input: "prompt".into(), retry: false });
        }
        Step::Scroll(lines) => stage.transcript.scroll_lines(lines),
        Step::Toggle(x, y) => {
            stage.transcript.toggle_at(x, y);
        }
        Step::Focus => {
            stage.transcript.focus_prev();
        }
        Step::Details(open) => stage.transcript.set_tool_details(open),
        Step::Start => stage.transcript.to_start(),
        Step::Draw(width, height) => {
            stage.screen(width, height);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_sequence_at_any_size_draws_within_its_area(steps in prop::collection::vec(step(), 0..40)) {
        let mut stage = Stage::new();
        for (index, step) in steps.into_iter().enumerate() {
            play(&mut stage, step, index);
        }
        // Drawn into a part of a larger screen, nothing outside of it is touched.
        for (width, height) in [(0, 0), (1, 1), (20, 5), (37, 11)] {
            let whole = Rect::new(0, 0, width + 4, height + 4);
            let mut buffer = Buffer::filled(whole, ratatui::buffer::Cell::new("·"));
            let area = Rect::new(2, 2, width, height);
            stage.transcript.draw(stage.now, area, &mut buffer);
            for y in 0..whole.height {
                for x in 0..whole.width {
                    if !area.contains((x, y).into()) {
                        prop_assert_eq!(buffer[(x, y)].symbol(), "·");
                    }
                }
            }
        }
        // The same frame as one that was drawn at this size from the start of following on.
        stage.transcript.to_end();
        let screen = stage.screen(40, 10);
        prop_assert_eq!(stage.screen(40, 10), screen);
    }
}
