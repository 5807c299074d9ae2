//! Whole event sequences, compared line by line.

use super::*;

/// A hook that tells what real ones tell, and leaves feedback on reads.
struct TellingHook;

impl HookRunner for TellingHook {
    fn before_tool<'a>(
        &'a mut self,
        call: &'a ToolCall,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, PreToolOutcome> {
        Box::pin(async move {
            let tool_name = call.name.clone();
            let command = "check".to_owned();
            let event = HookEvent::PreToolUse;
            cx.sink.emit(TuiEvent::HookStarted {
                event,
                tool_name: tool_name.clone(),
                command: command.clone(),
            });
            cx.sink.emit(TuiEvent::HookCompleted { event, tool_name, command });
            PreToolOutcome::default()
        })
    }

    fn after_tool<'a>(
        &'a mut self,
        _call: &'a ToolCall,
        _outcome: &'a ToolOutcome,
        _cx: &'a TurnContext,
    ) -> BoxFuture<'a, PostToolOutcome> {
        Box::pin(async { PostToolOutcome { feedback: vec!["noted".to_owned()] } })
    }
}

#[tokio::test]
async fn golden_sequence_of_a_turn_with_thinking_text_two_tools_a_hook_a_denial_and_a_compaction() {
    let large = TokenUsage { input_tokens: 50_000, output_tokens: 5, ..TokenUsage::default() };
    let mut stage = Stage::new(
        vec![
            answer(context::long_answer()),
            answer(context::long_answer()),
            answer(context::long_answer()),
            answer(vec![
                thinking("Look first."),
                text("I will look."),
                tool("t1", "write_file", json!({"path": "a.txt", "content": "one\n"})),
                tool("t2", "bash", json!({"command": "echo never"})),
            ]),
            answer_with_usage(vec![text("Done.")], large),
        ],
        vec![Decision::Deny { reason: Some("not now".into()) }],
    )
    .with(|conversation| {
        conversation
            .with_hooks(Box::new(TellingHook))
            .with_auto_compaction_input_tokens_threshold(40_000)
    });
    for prompt in ["one", "two", "three"] {
        stage.turn(prompt).await.unwrap();
    }
    let before = stage.sink.lines().len();
    let summary = stage.turn("four").await.unwrap();
    assert_eq!(
        stage.sink.lines()[before..],
        [
            "turn started: four",
            "thinking started",
            "thinking \"Look \"",
            "thinking \"first.\"",
            "thinking ended: 11 chars",
            "text \"I \"",
            "text \"will \"",
            "text \"look.\"",
            "tool use: t1 write_file",
            "tool use: t2 bash",
            "message stop: ToolUse",
            "usage: 10 in, 5 out",
            "hook started: PreToolUse write_file check",
            "hook completed: PreToolUse write_file check",
            "hook started: PreToolUse bash check",
            "hook completed: PreToolUse bash check",
            "permission required: bash needs danger-full-access",
            "permission retired: Answered",
            "tool started: t1 write_file in iteration 1",
            "tool ended: t1 well",
            "tool result: t1 write_file good",
            "tool result: t2 bash denied: permission denied: not now",
            "text \"Done.\"",
            "message stop: EndTurn",
            "usage: 50000 in, 5 out",
            "compacting: Automatic, round 1 of 1",
            "compacted: Automatic, 6 removed",
            "turn completed: Finished(EndTurn), 2 calls, 2 iterations",
        ]
    );
    assert_eq!(summary.tool_calls, 2);
    assert_eq!(summary.auto_compaction, Some(6));
    assert_every_tool_use_has_a_result(&stage.conversation);
}

#[tokio::test]
async fn the_summary_equals_what_was_streamed() {
    let mut stage = Stage::new(
        vec![
            answer(vec![text("First part."), tool("t", "read_file", json!({"path": "a.txt"}))]),
            answer(vec![text("Second part.")]),
        ],
        vec![],
    );
    std::fs::write(stage.folder.path().join("a.txt"), "hello\n").unwrap();
    let summary = stage.turn("go").await.unwrap();
    assert_eq!(summary.text, "First part.\n\nSecond part.");
    assert_eq!(summary.text.replace("\n\n", ""), stage.sink.text());
    assert_eq!(summary.usage.input_tokens, 20);
    assert_eq!(summary.usage.output_tokens, 10);
    assert_eq!(summary.tool_calls, 1);
    let saved = stage.reloaded();
    assert_eq!(saved[1], (MessageRole::Assistant, "First part.".into()));
    assert_eq!(saved[3], (MessageRole::Assistant, "Second part.".into()));
}
