//! What compaction keeps, removes and says.

use super::*;
use crate::usage::TokenUsage;

/// A text of some size that says nothing: what is removed must be larger than its summary.
fn filler() -> String {
    " and so on".repeat(400)
}

fn has_orphans(messages: &[Arc<ConversationMessage>]) -> bool {
    let mut calls: Vec<&str> = Vec::new();
    messages.iter().flat_map(|message| &message.blocks).any(|block| match block {
        ContentBlock::ToolUse { id, .. } => {
            calls.push(id);
            false
        }
        ContentBlock::ToolResult { tool_use_id, .. } => !calls.contains(&tool_use_id.as_str()),
        _ => false,
    })
}

fn user(text: &str) -> Arc<ConversationMessage> {
    Arc::new(ConversationMessage::user(text))
}

fn assistant(text: &str) -> Arc<ConversationMessage> {
    let block = ContentBlock::Text { text: text.into() };
    Arc::new(ConversationMessage::new(MessageRole::Assistant, vec![block]))
}

fn calls(ids: &[&str]) -> Arc<ConversationMessage> {
    let blocks = ids
        .iter()
        .map(|id| ContentBlock::ToolUse {
            id: (*id).into(),
            name: "read_file".into(),
            input: r#"{"path":"src/cart.rs"}"#.into(),
        })
        .collect();
    Arc::new(ConversationMessage::new(MessageRole::Assistant, blocks))
}

fn result(id: &str, output: &str) -> Arc<ConversationMessage> {
    let block = ContentBlock::ToolResult {
        tool_use_id: id.into(),
        tool_name: "read_file".into(),
        output: output.into(),
        is_error: false,
        facts: None,
    };
    Arc::new(ConversationMessage::new(MessageRole::Tool, vec![block]))
}

fn session(messages: Vec<Arc<ConversationMessage>>) -> Session {
    let mut session = Session::new("s", 0);
    session.messages = messages;
    session
}

fn keep(preserve: usize) -> CompactionConfig {
    CompactionConfig { preserve_recent_messages: preserve, ..CompactionConfig::requested() }
}

fn apply(session: &mut Session, result: &CompactionResult) {
    session.messages.clone_from(&result.messages);
    session.compaction = Some(result.compaction.clone());
}

#[test]
fn old_messages_become_one_summary_and_the_last_four_stay() {
    let session = session(vec![
        user("fix the cart"),
        calls(&["a"]),
        result("a", &filler()),
        assistant("Next: write the cookie back."),
        user("two"),
        assistant("2"),
        user("three"),
        assistant("3"),
    ]);
    let compacted = compact_session(&session, &CompactionConfig::requested());
    assert_eq!(compacted.removed_message_count, 4);
    assert_eq!(compacted.messages.len(), 5);
    assert_eq!(compacted.messages[0].role, MessageRole::System);
    assert_eq!(compacted.messages[1..], session.messages[4..]);
    assert_eq!(compacted.compaction.count, 1);
    let text = &compacted.formatted_summary;
    for part in
        ["4 earlier messages", "read_file (1)", "fix the cart", "Next: write", "src/cart.rs"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("<summary>") && compacted.summary.starts_with("<summary>"));
    assert!(compacted.messages[0].text().contains(&compacted.summary));
}

#[test]
fn nothing_removed_means_nothing_changed() {
    for (messages, config) in [
        (vec![], CompactionConfig::requested()),
        (vec![user("a"), assistant("b")], CompactionConfig::requested()),
        (vec![user("only the prompt")], keep(0)),
        (vec![user("a"); 10], CompactionConfig::default()),
    ] {
        let session = session(messages);
        let compacted = compact_session(&session, &config);
        assert!(!compacted.changed);
        assert_eq!(compacted.messages, session.messages);
        assert_eq!(compacted.removed_message_count, 0);
        assert_eq!(compacted.before_tokens, compacted.after_tokens);
    }
}

#[test]
fn a_summary_alone_is_not_compacted_again() {
    let mut session =
        session((0..10).map(|n| user(&format!("question {n}{}", filler()))).collect());
    let first = compact_session(&session, &keep(2));
    apply(&mut session, &first);
    let again = compact_session(&session, &keep(2));
    assert!(!again.changed);
    assert_eq!(again.messages, session.messages);
}

#[test]
fn a_tool_call_and_its_result_stay_together_wherever_the_cut_falls() {
    let messages = vec![
        user("go"),
        calls(&["a", "b"]),
        result("a", &filler()),
        result("b", "2"),
        calls(&["c"]),
        result("c", &filler()),
        assistant("done"),
        user("and now?"),
        calls(&["d"]),
        result("d", "4"),
    ];
    for len in 0..=messages.len() {
        for preserve in 0..=len + 1 {
            let session = session(messages[..len].to_vec());
            let compacted = compact_session(&session, &keep(preserve));
            let kept = &compacted.messages;
            assert!(!has_orphans(kept), "{len} messages, keeping {preserve}");
            assert_eq!(
                crate::session::unanswered_tool_uses(kept),
                crate::session::unanswered_tool_uses(&session.messages),
                "{len} messages, keeping {preserve}: no call loses its result"
            );
            let prompts = |all: &[Arc<ConversationMessage>], text: &str| {
                all.iter().filter(|m| m.role == MessageRole::User && m.text() == text).count()
            };
            let last = if len > 7 { "and now?" } else { "go" };
            assert_eq!(prompts(kept, last), usize::from(len > 0), "the latest prompt stays once");
        }
    }
}

#[test]
fn summaries_merge_and_do_not_grow_without_bound() {
    let mut session = session(Vec::new());
    let mut sizes = Vec::new();
    for round in 0..12_u32 {
        for n in 0..100 {
            session.messages.push(user(&format!("request {round}.{n} about file{n}.rs")));
            session.messages.push(assistant("pending: more of the same"));
        }
        let compacted = compact_session(&session, &keep(4));
        assert_eq!(compacted.compaction.count, round + 1);
        assert_eq!(compacted.removed_message_count, if round == 0 { 196 } else { 200 });
        if round == 1 {
            assert!(compacted.summary.contains("396 earlier"), "{}", compacted.summary);
            assert!(compacted.summary.contains("request 0."), "{}", compacted.summary);
        }
        sizes.push(compacted.summary.len());
        apply(&mut session, &compacted);
    }
    assert!(sizes.iter().all(|size| *size < 20_000), "{sizes:?}");
}

#[test]
fn a_compaction_that_would_not_be_smaller_changes_nothing() {
    let tiny = (0..6).flat_map(|n| [user(&format!("q{n}")), assistant("a")]).collect();
    let mut session = session(tiny);
    for preserve in [4, 2, 1, 0] {
        let compacted = compact_session(&session, &keep(preserve));
        assert!(!compacted.changed, "keeping {preserve}");
        assert_eq!(compacted.messages, session.messages);
    }
    // The same behind an earlier summary: a few words more do not make a new one.
    session.messages.insert(0, user(&filler()));
    let first = compact_session(&session, &keep(4));
    assert!(first.changed);
    apply(&mut session, &first);
    session.messages.push(user("one more"));
    let again = compact_session(&session, &keep(4));
    assert!(again.after_tokens < again.before_tokens || !again.changed);
}

#[test]
fn a_large_result_that_was_read_is_shortened_where_nothing_can_be_removed() {
    let output = "x".repeat(30_918);
    let session = session(vec![user("go"), calls(&["a"]), result("a", &output), assistant("ok")]);
    let compacted = compact_session(&session, &CompactionConfig::requested());
    assert_eq!((compacted.removed_message_count, compacted.trimmed_payloads), (0, 1));
    assert_eq!(compacted.messages.len(), 4);
    assert!(compacted.after_tokens < 2_200, "{}", compacted.after_tokens);
    let mut session = session;
    apply(&mut session, &compacted);
    assert!(!compact_session(&session, &CompactionConfig::requested()).changed, "once is enough");
    // What the model has not read yet stays whole while it fits.
    session.messages = vec![user("go"), calls(&["a"]), result("a", &output)];
    assert!(!compact_session(&session, &CompactionConfig::requested()).changed);
}

#[test]
fn a_merged_summary_holds_no_summary() {
    let mut session = session(Vec::new());
    for round in 0..6 {
        session.messages.push(user(&format!("request {round} {}", filler())));
        session.messages.push(calls(&[&format!("id{round}")]));
        session.messages.push(result(&format!("id{round}"), &filler()));
        session.messages.push(assistant(&format!("todo: point {round}")));
        let compacted = compact_session(&session, &keep(0));
        assert!(compacted.changed, "round {round}");
        for once in ["earlier messages:", "Tools used:", "Open points:", "Files:", "Last state:"] {
            assert_eq!(compacted.summary.matches(once).count(), 1, "{}", compacted.summary);
        }
        apply(&mut session, &compacted);
    }
    let text = &session.compaction.as_ref().unwrap().summary;
    for part in ["23 earlier messages", "read_file (6)", "request 0", "point 5", "point 1"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("Before that"), "{text}");
}

#[test]
fn a_summary_of_another_program_is_carried_over_once() {
    let mut session = session(Vec::new());
    let summary = "<summary>\nThe user builds a ship.\n- It floats.\n</summary>".to_owned();
    session.messages.push(Arc::new(summary::message(&summary)));
    session.compaction = Some(SessionCompaction { count: 1, removed_message_count: 9, summary });
    for round in 0..3 {
        session.messages.push(user(&format!("request {round} {}", filler())));
        session.messages.push(assistant(&filler()));
        let compacted = compact_session(&session, &keep(0));
        assert!(compacted.changed, "round {round}");
        apply(&mut session, &compacted);
    }
    let text = &session.compaction.as_ref().unwrap().summary;
    for once in ["Before that:", "builds a ship", "It floats"] {
        assert_eq!(text.matches(once).count(), 1, "{text}");
    }
}

#[test]
fn a_long_conversation_is_compacted_in_one_pass() {
    // A result without a call used to move the cut back message by message, each time over all.
    let mut messages = vec![result("lost", "x")];
    for n in 0..60_000 {
        messages.push(calls(&[&format!("id{n}")]));
        messages.push(result(&format!("id{n}"), "x"));
    }
    messages.push(result("lost", "x"));
    let session = session(messages);
    let begun = std::time::Instant::now();
    compact_session(&session, &keep(4));
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn huge_tool_payloads_of_kept_messages_are_shortened_head_and_tail() {
    let output = format!("HEAD{}TAIL", "x".repeat(1_000_000));
    let input = serde_json::json!({ "path": "a", "content": output }).to_string();
    let write = ContentBlock::ToolUse { id: "w".into(), name: "write_file".into(), input };
    let session = session(vec![
        user("old"),
        assistant("old"),
        user("read it"),
        calls(&["a"]),
        result("a", &output),
        Arc::new(ConversationMessage::new(MessageRole::Assistant, vec![write])),
        result("w", "ok"),
    ]);
    let compacted = compact_session(&session, &CompactionConfig::requested());
    assert_eq!(compacted.trimmed_payloads, 2);
    assert!(compacted.after_tokens < 15_000, "{}", compacted.after_tokens);
    assert!(compacted.before_tokens > 400_000);
    let kept = compacted.messages.iter().flat_map(|message| &message.blocks);
    let mut seen = 0;
    for block in kept {
        match block {
            ContentBlock::ToolResult { tool_use_id, output, .. } if tool_use_id == "a" => {
                seen += 1;
                assert!(output.starts_with("HEAD") && output.ends_with("TAIL"));
                assert!(output.contains("bytes left out by compaction"));
            }
            ContentBlock::ToolUse { id, input, .. } if id == "w" => {
                seen += 1;
                let value: serde_json::Value = serde_json::from_str(input).unwrap();
                assert_eq!(value["path"], "a");
            }
            _ => {}
        }
    }
    assert_eq!(seen, 2);
    let small = session_of_small_results();
    assert_eq!(compact_session(&small, &keep(4)).trimmed_payloads, 0);
}

fn session_of_small_results() -> Session {
    session(vec![user("a"), assistant("b"), user("c"), calls(&["a"]), result("a", "small")])
}

#[test]
fn shortening_alone_counts_as_a_change() {
    let session = session(vec![user("go"), calls(&["a"]), result("a", &"x".repeat(900_000))]);
    let compacted = compact_session(&session, &keep(4));
    assert!(compacted.changed);
    assert_eq!(compacted.removed_message_count, 0);
    assert!(compacted.after_tokens < compacted.before_tokens);
    assert_eq!(compacted.messages.len(), 3);
}

#[test]
fn usage_of_the_kept_messages_is_not_taken_for_the_size_of_the_new_context() {
    let mut answer = (*assistant("b")).clone();
    answer.usage = Some(TokenUsage { input_tokens: 150_000, ..TokenUsage::default() });
    let session = session(vec![user("a"), assistant(&filler()), user("c"), Arc::new(answer)]);
    let compacted = compact_session(&session, &keep(2));
    assert!(compacted.messages.iter().all(|message| message.usage.is_none()));
}

#[test]
fn automatic_compaction_looks_at_the_current_context_once_per_crossing() {
    for (threshold, steps) in [
        // Ten calls of 30,000 tokens each sum up to more, and that is no reason.
        (100_000, vec![(30_000, false); 10]),
        (100_000, vec![(99_999, false), (100_000, true), (20_000, false), (100_000, true)]),
        // Compaction could not get below: not again until it has grown.
        (100, vec![(400, true), (300, false), (310, false), (324, false), (325, true)]),
        (100, vec![(100, true), (100, false), (124, false), (125, true), (126, false)]),
        (0, vec![(0, false), (1, true), (1, false), (2, true)]),
        (100, vec![(u64::MAX, true), (u64::MAX, true)]),
    ] {
        let mut auto = AutoCompaction::new(threshold);
        for (step, (context, expected)) in steps.iter().enumerate() {
            assert_eq!(auto.should_compact(*context, 10), *expected, "{threshold}: step {step}");
        }
    }
}

#[test]
fn an_attempt_that_found_nothing_is_repeated_once_there_is_more_to_remove() {
    let mut auto = AutoCompaction::new(100);
    assert!(auto.should_compact(150, 4));
    auto.found_nothing(4);
    assert!(!auto.should_compact(150, 4), "not with the same messages");
    assert!(!auto.should_compact(150, 7), "not for every message");
    assert!(auto.should_compact(150, 8));
    assert!(!auto.should_compact(150, 40), "it had an effect: only growth counts");
    assert!(auto.should_compact(175, 40));
    auto.found_nothing(40);
    assert!(!auto.should_compact(50, 60), "below the threshold nothing is due");
    assert!(auto.should_compact(100, 60));
}

#[test]
fn the_threshold_comes_from_the_environment() {
    for (value, expected) in [
        (None, 100_000),
        (Some("5000"), 5_000),
        (Some(" 7 "), 7),
        (Some("0"), 100_000),
        (Some("-3"), 100_000),
        (Some("many"), 100_000),
    ] {
        let environment =
            |name: &str| value.filter(|_| name == AUTO_COMPACTION_VARIABLE).map(str::to_owned);
        assert_eq!(auto_compaction_threshold(&environment), expected, "{value:?}");
    }
}

#[test]
fn a_summary_holds_no_half_of_a_key() {
    let key = format!("sk-ant-{}", "k".repeat(40));
    let session = session(vec![
        user(&format!("{} {key}", "x".repeat(110))),
        assistant(&format!("next: {} {key}\n{}", "y".repeat(110), filler())),
        user("go on"),
    ]);
    let summary = compact_session(&session, &keep(1)).summary;
    assert!(!summary.contains("kkk"), "{summary}");
    assert!(summary.contains("xxx"));
}

#[test]
fn signed_thinking_does_not_outlive_the_messages_that_it_followed() {
    let text = ContentBlock::Text { text: "b".into() };
    let signed = ContentBlock::Thinking { thinking: "hm".into(), signature: Some("s".into()) };
    let unsigned = ContentBlock::Thinking { thinking: "hm".into(), signature: None };
    let hidden = ContentBlock::RedactedThinking { data: "d".into() };
    let message = |blocks: &[&ContentBlock]| {
        let blocks = blocks.iter().map(|block| (*block).clone()).collect();
        Arc::new(ConversationMessage::new(MessageRole::Assistant, blocks))
    };
    let session = session(vec![
        user("a"),
        assistant(&filler()),
        user("c"),
        message(&[&signed, &hidden, &unsigned, &text]),
        message(&[&signed]),
    ]);
    let compacted = compact_session(&session, &keep(3));
    assert_eq!(compacted.messages[1..], [user("c"), message(&[&unsigned, &text])]);
    let unchanged = compact_session(&session, &keep(5));
    assert_eq!(unchanged.messages, session.messages, "it stays where nothing was removed");
}
