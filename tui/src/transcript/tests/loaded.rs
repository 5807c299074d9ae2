//! A session that was loaded, and what a session leaves behind in the scrollback.

use super::*;

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
#[test]
fn what_stays_in_the_scrollback_is_the_end_of_the_conversation() {
    let mut stage = long_stage(100);
    let lines = stage.transcript.farewell_lines(stage.now, 40, 5);
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(text, ["line 97", "", "line 98", "", "line 99"]);
    assert!(Stage::new().transcript.farewell_lines(stage.now, 0, 5).is_empty());
}
