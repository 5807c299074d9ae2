//! The transcript as the person sees it: events in, screens out.

mod cost;
mod keyboard;
mod loaded;
mod random;
mod safety;
mod scrolling;
mod tools;
mod turn;

use std::sync::Arc;

use claw_runtime::api::{ApiError, AssistantTurn, CutCause, StopReason};
use claw_runtime::permissions::{PermissionReply, PermissionRequest, RetiredReason};
use claw_runtime::session::{ContentBlock, ConversationMessage, MessageRole, PartialReason};
use claw_runtime::tools::{TodoItem, TodoStatus, ToolFacts, ToolOutcome};
use claw_runtime::{CompactionCause, RuntimeError, TuiEvent, TurnStop};

use super::*;
use crate::testing::{request, shown, summary};

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
        shown(&self.buffer(width, height), None).trim_end().to_owned()
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
        lines: None,
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

const EDIT: &str = r#"{"path":"src/main.rs","old_string":"b","new_string":"c"}"#;

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
