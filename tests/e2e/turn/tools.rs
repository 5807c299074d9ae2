//! Tools in a turn: order, permission, hooks.

use super::*;

#[tokio::test]
async fn reads_run_in_parallel_and_each_start_precedes_its_own_result() {
    let mut stage = Stage::new(
        vec![
            answer(vec![
                tool("a", "read_file", json!({"path": "a.txt"})),
                tool("b", "read_file", json!({"path": "b.txt"})),
                tool("c", "glob_search", json!({"pattern": "*.txt"})),
            ]),
            answer(vec![text("ok")]),
        ],
        vec![],
    );
    for name in ["a.txt", "b.txt"] {
        std::fs::write(stage.folder.path().join(name), name).unwrap();
    }
    stage.turn("read").await.unwrap();
    let lines = stage.sink.lines();
    let at = |wanted: &str| lines.iter().position(|line| line.starts_with(wanted)).unwrap();
    for id in ["a", "b", "c"] {
        assert!(at(&format!("tool started: {id} ")) < at(&format!("tool result: {id} ")));
    }
    let results: Vec<&String> =
        lines.iter().filter(|line| line.starts_with("tool result")).collect();
    assert!(results[0].contains(" a ") && results[1].contains(" b ") && results[2].contains(" c "));
}

#[tokio::test]
async fn a_denied_tool_has_no_start_and_its_result_holds_the_reason() {
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("t", "bash", json!({"command": "touch marker"}))]),
            answer(vec![text("ok")]),
        ],
        vec![Decision::Deny { reason: Some("too risky".into()) }],
    );
    stage.turn("go").await.unwrap();
    let lines = stage.sink.lines();
    assert!(!lines.iter().any(|line| line.starts_with("tool started")));
    assert!(lines.contains(&"tool result: t bash denied: permission denied: too risky".to_owned()));
    assert!(!stage.folder.path().join("marker").exists());
    let question = &stage.person.asked()[0];
    assert_eq!(question.input, r#"{"command":"touch marker"}"#);
    assert_eq!(question.current_mode, PermissionMode::WorkspaceWrite);
}

/// A hook that replaces the input, as a settings hook may.
struct RewritingHook;

impl HookRunner for RewritingHook {
    fn before_tool<'a>(
        &'a mut self,
        _call: &'a ToolCall,
        _cx: &'a TurnContext,
    ) -> BoxFuture<'a, PreToolOutcome> {
        Box::pin(async {
            PreToolOutcome {
                updated_input: Some(json!({"path": "b.txt"}).to_string()),
                ..PreToolOutcome::default()
            }
        })
    }
}

#[tokio::test]
async fn the_result_carries_the_input_as_hooks_left_it() {
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("t", "read_file", json!({"path": "a.txt"}))]),
            answer(vec![text("ok")]),
        ],
        vec![],
    )
    .with(|conversation| conversation.with_hooks(Box::new(RewritingHook)));
    std::fs::write(stage.folder.path().join("b.txt"), "from b\n").unwrap();
    let inputs = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&inputs);
    stage.sink.on_event(move |event| {
        if let TuiEvent::ToolResult { input, outcome, .. } = event {
            seen.lock().unwrap().push((input.clone(), outcome.output.contains("from b")));
        }
    });
    stage.turn("read").await.unwrap();
    assert_eq!(*inputs.lock().unwrap(), [(r#"{"path":"b.txt"}"#.to_owned(), true)]);
}

#[tokio::test]
async fn an_answer_for_this_session_to_a_protected_file_covers_nothing_else() {
    let write = |path: &str| json!({"path": path, "content": "x"});
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("1", "write_file", write(".gitmodules"))]),
            answer(vec![tool("2", "write_file", write("plain.txt"))]),
            answer(vec![text("ok")]),
        ],
        vec![Decision::AllowForSession, Decision::Deny { reason: None }],
    );
    stage.conversation.set_permission_mode(PermissionMode::Prompt);
    stage.turn("go").await.unwrap();
    let asked = stage.person.asked();
    assert_eq!(asked.len(), 2);
    assert!(!asked[0].can_be_granted() && asked[1].can_be_granted());
    assert!(!stage.folder.path().join("plain.txt").exists());
}

#[tokio::test]
async fn an_answer_for_this_session_covers_the_same_command_only() {
    let command = json!({"command": "true"});
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("1", "bash", command.clone())]),
            answer(vec![tool("2", "bash", command)]),
            answer(vec![tool("3", "bash", json!({"command": "true; touch marker"}))]),
            answer(vec![text("ok")]),
        ],
        vec![Decision::AllowForSession, Decision::Deny { reason: None }],
    );
    stage.turn("go").await.unwrap();
    assert_eq!(stage.person.asked().len(), 2);
    assert!(!stage.folder.path().join("marker").exists());
}

#[tokio::test]
async fn a_call_whose_id_repeats_in_one_answer_runs_once_and_is_sent_once() {
    let write = |content: &str| json!({"command": format!("echo {content} >> log.txt")});
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("t", "bash", write("one")), tool("t", "bash", write("two"))]),
            answer(vec![text("ok")]),
        ],
        vec![Decision::AllowOnce],
    );
    stage.turn("go").await.unwrap();
    let log = std::fs::read_to_string(stage.folder.path().join("log.txt")).unwrap();
    assert_eq!(log, "one\n");
    assert_every_tool_use_has_a_result(&stage.conversation);
    let requests = stage.requests.lock().unwrap();
    let sent: Vec<&ContentBlock> =
        requests[1].messages.iter().flat_map(|message| &message.blocks).collect();
    let calls = sent.iter().filter(|block| matches!(block, ContentBlock::ToolUse { .. })).count();
    let results =
        sent.iter().filter(|block| matches!(block, ContentBlock::ToolResult { .. })).count();
    assert_eq!((calls, results), (1, 1));
    let warned = |line: &String| line.starts_with("notice Warning") && line.contains("repeated");
    assert_eq!(stage.sink.lines().iter().filter(|line| warned(line)).count(), 1);
}
