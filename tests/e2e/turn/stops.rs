//! Turns that end before their end: stopped, cut, failed, limited. The session stays valid.

use super::*;

#[tokio::test]
async fn stopping_a_turn_leaves_a_valid_session_with_the_prompt_once() {
    let cancel_text: Answer = Box::new(|_, cx| {
        let blocks = stream_parts(&[text("Half an ans")], cx);
        cx.cancel.cancel();
        Ok(assistant_turn(blocks, TokenUsage::default(), StopReason::Cancelled))
    });
    let mut stage = Stage::new(vec![cancel_text], vec![]);
    let summary = stage.turn("tell me").await.unwrap();
    assert_eq!(summary.stop, TurnStop::Cancelled);
    assert_eq!(
        stage.reloaded(),
        [(MessageRole::User, "tell me".into()), (MessageRole::Assistant, "Half an ans".into())]
    );
    assert_eq!(
        stage.sink.lines().last().unwrap(),
        "turn completed: Cancelled, 0 calls, 1 iterations"
    );
}

#[tokio::test]
async fn stopping_while_a_tool_runs_ends_it_and_gives_every_call_a_result() {
    let mut stage = Stage::new(
        vec![answer(vec![
            tool("1", "bash", json!({"command": "echo begun; sleep 30"})),
            tool("2", "bash", json!({"command": "touch marker"})),
        ])],
        vec![Decision::AllowOnce, Decision::AllowOnce],
    );
    let cancel = stage.cancel.clone();
    stage.sink.on_event(move |event| {
        if matches!(event, TuiEvent::ToolOutput { .. }) {
            cancel.cancel();
        }
    });
    let begun = std::time::Instant::now();
    let summary = stage.turn("go").await.unwrap();
    assert_eq!(summary.stop, TurnStop::Cancelled);
    assert!(begun.elapsed().as_secs() < 20, "the command was waited for");
    assert!(!stage.folder.path().join("marker").exists());
    assert_every_tool_use_has_a_result(&stage.conversation);
}

#[tokio::test]
async fn a_cut_answer_is_a_failed_visibly_partial_message_and_its_call_never_runs() {
    let cut: Answer = Box::new(|_, cx| {
        let blocks = stream_parts(
            &[text("I will"), tool("t", "bash", json!({"command": "touch marker"}))],
            cx,
        );
        Err(ApiError::StreamCut {
            cause: CutCause::ConnectionClosed,
            partial: Box::new(assistant_turn(blocks, TokenUsage::default(), StopReason::ToolUse)),
        })
    });
    let mut stage = Stage::new(vec![cut, answer(vec![text("Whole.")])], vec![]);
    stage.turn("go").await.unwrap_err();
    assert!(!stage.folder.path().join("marker").exists());
    assert!(stage.sink.lines().last().unwrap().starts_with("turn failed: the answer was cut off"));
    assert_every_tool_use_has_a_result(&stage.conversation);

    // The retry sends the prompt once and not the half answer.
    let cx = stage.context();
    stage.conversation.retry_turn(&cx).await.unwrap();
    assert_eq!(stage.prompts_in_request(1), ["go"]);
    assert_eq!(stage.requests.lock().unwrap()[1].messages.len(), 1);
    assert_eq!(stage.reloaded().last().unwrap().1, "Whole.");
}

#[tokio::test]
async fn a_failed_turn_leaves_the_session_usable_and_the_prompt_is_not_repeated_on_resend() {
    let refused = || ApiError::Rejected { status: 400, message: "no".into() };
    let mut stage = Stage::new(
        vec![failure(refused()), failure(refused()), answer(vec![text("There.")])],
        vec![],
    );
    stage.turn("hello").await.unwrap_err();
    stage.turn("hello").await.unwrap_err();
    stage.turn("hello").await.unwrap();
    assert_eq!(stage.prompts_in_request(2), ["hello"]);
    assert_eq!(stage.reloaded().len(), 2);
}

#[tokio::test]
async fn results_whose_effects_are_on_disk_survive_a_failure_after_them() {
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("t", "write_file", json!({"path": "side.txt", "content": "x"}))]),
            failure(ApiError::Rejected { status: 400, message: "no".into() }),
            answer(vec![text("I see the file.")]),
        ],
        vec![],
    );
    stage.turn("write").await.unwrap_err();
    assert!(stage.folder.path().join("side.txt").exists());
    assert_every_tool_use_has_a_result(&stage.conversation);
    stage.turn("go on").await.unwrap();
    let requests = stage.requests.lock().unwrap();
    assert!(requests[2].messages.iter().any(|message| message.role == MessageRole::Tool));
}

#[tokio::test]
async fn the_iteration_cap_is_a_visible_stop() {
    let look = || answer(vec![tool("t", "glob_search", json!({"pattern": "*"}))]);
    let mut stage = Stage::new(vec![look(), look(), look()], vec![])
        .with(|conversation| conversation.with_max_iterations(3));
    let summary = stage.turn("loop").await.unwrap();
    assert_eq!(summary.stop, TurnStop::IterationLimit(3));
    assert_every_tool_use_has_a_result(&stage.conversation);
}

#[tokio::test]
async fn a_stop_at_the_output_limit_is_told_and_its_calls_do_not_run() {
    let cut: Answer = Box::new(|_, cx| {
        let blocks = stream_parts(&[tool("t", "bash", json!({"command": "touch marker"}))], cx);
        Ok(assistant_turn(blocks, TokenUsage::default(), StopReason::MaxTokens))
    });
    let mut stage = Stage::new(vec![cut], vec![]);
    let summary = stage.turn("go").await.unwrap();
    assert_eq!(summary.stop, TurnStop::Finished(StopReason::MaxTokens));
    assert!(!stage.folder.path().join("marker").exists());
    assert_every_tool_use_has_a_result(&stage.conversation);
}

/// Streams half an answer and then nothing, until it is stopped.
struct StalledClient;

impl claw_runtime::api::ApiClient for StalledClient {
    fn stream<'a>(
        &'a mut self,
        _request: claw_runtime::api::ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<claw_runtime::api::AssistantTurn, ApiError>> {
        Box::pin(async move {
            let key = "the key is sk-ant-api03-AbCd";
            let blocks = stream_parts(&[thinking("Hm."), text("Half of"), text(key)], cx);
            cx.cancel.cancelled().await;
            Ok(assistant_turn(blocks, TokenUsage::default(), StopReason::Cancelled))
        })
    }
}

#[tokio::test]
async fn what_has_come_of_an_answer_is_on_disk_while_it_streams() {
    let folder = tempfile::tempdir().unwrap();
    let store = SessionStore::open(folder.path()).unwrap();
    let session = store.create("scripted");
    let id = session.id().to_owned();
    let side = session.path().with_extension("d");
    let tools =
        ToolRegistry::new(folder.path(), claw_runtime::redact::Redactor::default()).unwrap();
    let mut conversation = ConversationRuntime::new(session, StalledClient, tools, "scripted");
    let sink = RecordingSink::new();
    let cx = TurnContext {
        sink: sink.clone(),
        prompter: ScriptedPerson::new(sink, vec![]),
        cancel: CancellationToken::new(),
    };
    let turn = conversation.run_turn("go", &cx);
    let look = async {
        // Another process would see this after a kill.
        let found = loop {
            let seen = store.fork_of(&id, None).ok().map(|fork| fork.session().messages.clone());
            match seen.as_deref() {
                Some([.., last]) if last.role == MessageRole::Assistant => break last.clone(),
                _ => tokio::task::yield_now().await,
            }
        };
        cx.cancel.cancel();
        found
    };
    let (ended, found) = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        tokio::join!(turn, look)
    })
    .await
    .expect("the answer is written");
    ended.unwrap();
    assert_eq!(found.partial, Some(claw_runtime::session::PartialReason::Cut));
    assert_eq!(found.text(), "Half ofthe key is ", "half a key is held back");
    assert!(
        matches!(&found.blocks[0], ContentBlock::Thinking { thinking, .. } if thinking == "Hm.")
    );
    assert!(!side.exists(), "the answer is recorded: nothing is left beside the session");
}
