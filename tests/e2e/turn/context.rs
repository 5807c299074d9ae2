//! The context: recovered, compacted, forked.

use super::*;

#[tokio::test]
async fn the_context_window_is_recovered_in_rounds_with_the_prompt_in_each_request_once() {
    let too_long = || failure(ApiError::ContextWindowExceeded { message: "too long".into() });
    let mut answers: Vec<Answer> = (0..5).map(|_| answer(vec![text("Earlier.")])).collect();
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
    let sent = stage.requests.lock().unwrap().len();
    for request in 5..sent {
        let prompts = stage.prompts_in_request(request);
        let count = prompts.iter().filter(|prompt| *prompt == "the long one").count();
        assert_eq!(count, 1, "request {request}: {prompts:?}");
    }
}

#[tokio::test]
async fn the_last_round_leaves_only_the_prompt_and_a_summary() {
    let too_long = || failure(ApiError::ContextWindowExceeded { message: "too long".into() });
    let mut stage = Stage::new(
        vec![
            answer(vec![text("Earlier.")]),
            answer(vec![tool("t", "glob_search", json!({"pattern": "*"}))]),
            too_long(),
            too_long(),
            too_long(),
            answer(vec![text("It fits.")]),
        ],
        vec![],
    );
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
async fn recovery_stops_when_nothing_more_can_be_removed() {
    let too_long = || failure(ApiError::ContextWindowExceeded { message: "too long".into() });
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
    let mut stage = Stage::new((0..6).map(|_| answer(vec![text("An answer.")])).collect(), vec![]);
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
