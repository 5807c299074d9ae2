//! Foreign text: whatever it holds, no escape sequence reaches a cell.

use super::*;

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
