//! The context: recovered, compacted, forked.

use super::*;

/// An answer of some size: what is removed must be larger than its summary.
pub(super) fn long_answer() -> Vec<claw_tests::turn::Part> {
    static LONG: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| "All of this is done. ".repeat(200));
    vec![text(LONG.as_str())]
}

fn too_long() -> Answer {
    failure(ApiError::ContextWindowExceeded { message: "too long".into() })
}

#[tokio::test]
async fn the_context_window_is_recovered_in_rounds_with_the_prompt_in_each_request_once() {
    let mut answers: Vec<Answer> = (0..5).map(|_| answer(long_answer())).collect();
    answers.extend([too_long(), too_long(), too_long()]);
    answers.push(answer(vec![text("It fits.")]));
    let mut stage = Stage::new(answers, vec![]);
    for n in 0..5 {
        stage.turn(["a", "b", "c", "d", "e"][n]).await.unwrap();
    }
    let before = stage.sink.lines().len();
    stage.turn("the long one").await.unwrap();
    let rounds: Vec<String> = stage.sink.lines()[before..]
        .iter()
        .filter(|line| line.starts_with("compacting"))
        .cloned()
        .collect();
    assert_eq!(
        rounds,
        [
            "compacting: ContextWindow, round 1 of 4",
            "compacting: ContextWindow, round 2 of 4",
            "compacting: ContextWindow, round 3 of 4",
        ]
    );
    let requests = stage.requests.lock().unwrap().clone();
    let sizes: Vec<u64> = requests[5..]
        .iter()
        .map(|request| request.messages.iter().map(|message| message.estimated_tokens()).sum())
        .collect();
    assert!(sizes.windows(2).all(|pair| pair[1] < pair[0]), "each request is smaller: {sizes:?}");
    for request in 5..requests.len() {
        let prompts = stage.prompts_in_request(request);
        let count = prompts.iter().filter(|prompt| *prompt == "the long one").count();
        assert_eq!(count, 1, "request {request}: {prompts:?}");
    }
}

#[tokio::test]
async fn the_last_round_leaves_only_the_prompt_and_a_summary() {
    let mut stage = Stage::new(
        vec![
            answer(long_answer()),
            answer(vec![tool("t", "glob_search", json!({"pattern": "*"})), text("x")]),
            too_long(),
            too_long(),
            answer(vec![text("It fits.")]),
        ],
        vec![],
    );
    for n in 0..300 {
        std::fs::write(stage.folder.path().join(format!("a-file-with-a-name-{n}.txt")), "")
            .unwrap();
    }
    stage.turn("before").await.unwrap();
    stage.turn("now").await.unwrap();
    let requests = stage.requests.lock().unwrap();
    let last: Vec<MessageRole> =
        requests.last().unwrap().messages.iter().map(|message| message.role).collect();
    assert_eq!(last, [MessageRole::System, MessageRole::User]);
    drop(requests);
    assert!(stage.sink.lines().contains(&"compacting: ContextWindow, round 4 of 4".to_owned()));
    assert_every_tool_use_has_a_result(&stage.conversation);
}

#[tokio::test]
async fn recovery_that_does_not_help_leaves_the_conversation_as_it_was() {
    let mut answers: Vec<Answer> = (0..4).map(|_| answer(long_answer())).collect();
    answers.extend((0..5).map(|_| too_long()));
    let mut stage = Stage::new(answers, vec![]);
    for prompt in ["a", "b", "c", "d"] {
        stage.turn(prompt).await.unwrap();
    }
    let mut expected = stage.conversation.session().messages.clone();
    let error = stage.turn("never fits").await.unwrap_err();
    assert!(matches!(*error, RuntimeError::ContextExhausted));
    assert!(error.to_string().contains("left as it was"), "{error}");
    assert!(stage.sink.lines().iter().any(|line| line.starts_with("compacted")));
    expected.push(Arc::new(claw_runtime::session::ConversationMessage::user("never fits")));
    assert_eq!(stage.conversation.session().messages, expected);
    assert_eq!(stage.conversation.session().compaction, None);
    let texts: Vec<String> = expected.iter().map(|message| message.text()).collect();
    let saved: Vec<String> = stage.reloaded().into_iter().map(|(_, text)| text).collect();
    assert_eq!(saved, texts, "on disk, too");
}

#[tokio::test]
async fn rounds_that_would_not_shrink_a_tiny_conversation_are_not_sent() {
    let mut answers: Vec<Answer> = (0..4).map(|_| answer(vec![text("ok")])).collect();
    answers.push(too_long());
    let mut stage = Stage::new(answers, vec![]);
    for prompt in ["a", "b", "c", "d"] {
        stage.turn(prompt).await.unwrap();
    }
    let error = stage.turn("e").await.unwrap_err();
    assert!(matches!(*error, RuntimeError::ContextExhausted));
    assert_eq!(stage.requests.lock().unwrap().len(), 5);
    assert_eq!(stage.reloaded().len(), 9, "every message is still there");
    assert!(!stage.sink.lines().iter().any(|line| line.starts_with("compact")));
}

#[tokio::test]
async fn recovery_stops_when_nothing_more_can_be_removed() {
    let mut stage = Stage::new(vec![too_long()], vec![]);
    let error = stage.turn("alone and too long").await.unwrap_err();
    assert!(matches!(*error, RuntimeError::ContextExhausted));
    assert_eq!(stage.requests.lock().unwrap().len(), 1, "the same request is not sent again");
    assert_eq!(stage.reloaded(), [(MessageRole::User, "alone and too long".into())]);
}

#[tokio::test]
async fn words_about_a_context_window_do_not_discard_history() {
    let mut stage = Stage::new(
        vec![failure(ApiError::Transport {
            endpoint: "http://localhost".into(),
            message: "error decoding response body: context window exceeded".into(),
        })],
        vec![],
    );
    stage.turn("hello").await.unwrap_err();
    assert!(!stage.sink.lines().iter().any(|line| line.starts_with("compacting")));
}

#[tokio::test]
async fn auto_compaction_follows_the_current_context_and_fires_once_per_crossing() {
    let usage =
        |tokens| TokenUsage { input_tokens: tokens, output_tokens: 1, ..Default::default() };
    let mut stage = Stage::new(
        (0..8)
            .map(|n| answer_with_usage(vec![text("ok")], usage(if n == 5 { 900 } else { 400 })))
            .collect(),
        vec![],
    )
    .with(|conversation| conversation.with_auto_compaction_input_tokens_threshold(800));
    let mut compactions = Vec::new();
    for n in 0..8 {
        stage.turn(["a", "b", "c", "d", "e", "f", "g", "h"][n]).await.unwrap();
        let count = stage.sink.lines().iter().filter(|line| line.starts_with("compacted")).count();
        compactions.push(count);
    }
    // 400 tokens in each of five calls is 2,000 in sum and no reason at all.
    assert_eq!(compactions, [0, 0, 0, 0, 0, 1, 1, 1]);
}

#[tokio::test]
async fn compacting_on_request_tells_both_numbers_and_keeps_the_original() {
    let mut stage = Stage::new((0..6).map(|_| answer(long_answer())).collect(), vec![]);
    let cx = stage.context();
    let config = claw_runtime::compact::CompactionConfig::requested();
    let nothing = stage.conversation.compact(&config, &cx);
    assert_eq!(nothing.removed, 0);
    assert!(stage.sink.lines().contains(&"compacted: Requested, 0 removed".to_owned()));
    for n in 0..6 {
        stage.turn(["a", "b", "c", "d", "e", "f"][n]).await.unwrap();
    }
    let report = stage.conversation.compact(&config, &cx);
    assert!(report.removed > 0);
    let saved = stage.reloaded();
    assert_eq!(saved.len(), stage.conversation.session().messages.len());
    assert_eq!(saved[0].0, MessageRole::System);
}

#[tokio::test]
async fn compacting_shortens_the_huge_result_that_it_keeps_and_never_grows_the_context() {
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("t", "bash", json!({"command": "seq 1 200000"}))]),
            answer(vec![text("Counted.")]),
            answer(vec![text("Yes.")]),
        ],
        vec![Decision::AllowOnce],
    );
    stage.turn("count").await.unwrap();
    let cx = stage.context();
    let config = claw_runtime::compact::CompactionConfig::requested();
    let mut messages = stage.conversation.session().messages.clone();
    for round in 0..3 {
        stage.conversation.compact(&config, &cx);
        let size = |all: &[Arc<claw_runtime::session::ConversationMessage>]| {
            all.iter().map(|message| message.estimated_tokens()).sum::<u64>()
        };
        let after = stage.conversation.session().messages.clone();
        if round == 0 {
            assert!(size(&after) < size(&messages) / 2);
        } else {
            assert_eq!(after, messages, "a second time changes nothing");
        }
        messages = after;
    }
    stage.turn("sure?").await.unwrap();
    let requests = stage.requests.lock().unwrap();
    let sent = &requests.last().unwrap().messages;
    let output = sent.iter().flat_map(|message| &message.blocks).find_map(|block| match block {
        ContentBlock::ToolResult { output, .. } => Some(output.clone()),
        _ => None,
    });
    let output = output.expect("the result is still there");
    assert!(output.len() < 9_000 && output.contains("left out by compaction"), "{}", output.len());
}

#[tokio::test]
async fn a_failed_attempt_at_the_threshold_is_told_on_the_scale_of_the_report_and_repeated_later() {
    let large = TokenUsage { input_tokens: 150_000, ..TokenUsage::default() };
    let mut answers = vec![answer_with_usage(vec![text("ok")], large)];
    answers.extend((0..5).map(|_| answer_with_usage(long_answer(), large)));
    let mut stage = Stage::new(answers, vec![]);
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    stage.sink.on_event(move |event| {
        if let TuiEvent::Compacted { removed, before_tokens, after_tokens, .. } = event {
            seen.lock().unwrap().push((*removed, *before_tokens, *after_tokens));
        }
    });
    for prompt in ["a", "b", "c", "d", "e", "f"] {
        stage.turn(prompt).await.unwrap();
    }
    let told = told.lock().unwrap().clone();
    assert_eq!(told[0], (0, 150_000, 150_000), "nothing yet, in the numbers of the status line");
    assert_eq!(told.len(), 2, "once there was more to remove, and not for every message: {told:?}");
    let (removed, before, after) = told[1];
    assert!(removed > 0 && before == 150_000 && after < before && after > 100_000, "{told:?}");
}

#[tokio::test]
async fn a_fork_goes_on_by_itself() {
    let mut stage =
        Stage::new(vec![answer(vec![text("Shared.")]), answer(vec![text("Main.")])], vec![]);
    stage.turn("first").await.unwrap();
    let fork = stage
        .conversation
        .fork_session(&SessionStore::open(stage.folder.path()).unwrap(), Some("experiment"))
        .unwrap();
    let parent = stage.conversation.session().id.clone();
    let origin = fork.session().fork.clone().unwrap();
    assert_ne!(fork.session().id, parent);
    assert_eq!(origin.parent_session_id, parent);
    assert_eq!(origin.branch_name.as_deref(), Some("experiment"));
    stage.turn("second").await.unwrap();
    assert_eq!(fork.session().messages.len(), 2);
    assert_eq!(stage.reloaded().len(), 4);
}
