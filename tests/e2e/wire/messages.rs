//! What a stream of the Messages API becomes: events in order, and the turn that is kept.

use claw_runtime::api::{ApiClient, StopReason};
use claw_runtime::session::ContentBlock;
use claw_runtime::usage::TokenUsage;
use claw_tests::mock_api::{Gate, MessagesStream, Reply};
use serde_json::json;

use super::stage::{Stage, blocks, text, tool_use};

#[test]
fn every_delta_is_told_when_it_arrives() {
    let gate = Gate::new();
    let stage = Stage::with([MessagesStream::new()
        .open_text(&["Hel"])
        .wait(&gate)
        .text_delta(0, "lo")
        .wait(&gate)
        .block_stop(0)
        .stop("end_turn", 5)
        .reply()]);
    let answer = stage.start(stage.anthropic());
    stage.sink.wait_for("text", 1);
    stage.check_events(&["text Hel"]);
    gate.release();
    stage.sink.wait_for("text", 2);
    gate.release();
    let turn = answer.join().unwrap().unwrap();
    stage.check_events(&["text Hel", "text lo", "stop EndTurn"]);
    assert_eq!(blocks(&turn), [text("Hello")]);
    assert_eq!(turn.stop_reason, StopReason::EndTurn);
}

#[test]
fn thinking_text_and_parallel_calls_come_in_order_and_whole() {
    let stage = Stage::with([MessagesStream::new()
        .thinking(&["Let ", "me sée"], "c2ln")
        .text(&["I'll ", "look."])
        .tool_use("t1", "read_file", r#"{"path":"a"}"#)
        .tool_use("t2", "bash", r#"{"command":"ls"}"#)
        .stop("tool_use", 40)
        .reply()]);
    let turn = stage.ask().unwrap();
    stage.check_events(&[
        "thinking",
        "think Let ",
        "think me sée",
        "thought 10",
        "text I'll ",
        "text look.",
        "call t1 read_file",
        r#"called t1 read_file {"path":"a"}"#,
        "call t2 bash",
        r#"called t2 bash {"command":"ls"}"#,
        "stop ToolUse",
    ]);
    let thinking = ContentBlock::Thinking {
        thinking: "Let me sée".to_owned(),
        signature: Some("c2ln".to_owned()),
    };
    assert_eq!(
        blocks(&turn),
        [
            thinking,
            text("I'll look."),
            tool_use("t1", "read_file", r#"{"path":"a"}"#),
            tool_use("t2", "bash", r#"{"command":"ls"}"#),
        ]
    );
    assert_eq!(turn.stop_reason, StopReason::ToolUse);
}

#[test]
fn interleaved_blocks_are_told_apart_by_their_index() {
    let stage = Stage::with([MessagesStream::new()
        .open_tool_use("t1", "a")
        .open_tool_use("t2", "b")
        .input_delta(1, r#"{"y":"#)
        .input_delta(0, r#"{"x":"#)
        .input_delta(1, "2}")
        .block_stop(1)
        .input_delta(0, "1}")
        .block_stop(0)
        .stop("tool_use", 9)
        .reply()]);
    let turn = stage.ask().unwrap();
    assert_eq!(
        blocks(&turn),
        [tool_use("t1", "a", r#"{"x":1}"#), tool_use("t2", "b", r#"{"y":2}"#)]
    );
}

#[test]
fn a_call_without_input_has_an_empty_object() {
    let stage =
        Stage::with([MessagesStream::new().tool_use("t1", "todo", "").stop("tool_use", 3).reply()]);
    assert_eq!(blocks(&stage.ask().unwrap()), [tool_use("t1", "todo", "{}")]);
}

#[test]
fn hidden_thinking_is_told_as_hidden_and_kept_verbatim() {
    let stage = Stage::with([MessagesStream::new()
        .redacted_thinking("b3BhcXVl+/==")
        .thinking(&[], "only-a-signature")
        .text(&["ok"])
        .stop("end_turn", 5)
        .reply()]);
    let turn = stage.ask().unwrap();
    stage.check_events(&[
        "thinking",
        "thought hidden",
        "thinking",
        "thought hidden",
        "text ok",
        "stop EndTurn",
    ]);
    let hidden = ContentBlock::RedactedThinking { data: "b3BhcXVl+/==".to_owned() };
    let signed = ContentBlock::Thinking {
        thinking: String::new(),
        signature: Some("only-a-signature".to_owned()),
    };
    assert_eq!(blocks(&turn), [hidden, signed, text("ok")]);
}

#[test]
fn unknown_events_blocks_and_deltas_are_skipped() {
    let stage = Stage::with([MessagesStream::new()
        .early_event("from_the_future", &json!({"type": "from_the_future", "index": 0}))
        .bytes(": a comment\n\nevent: other\ndata: not json\n\nunknown-field: x\nretry: soon\n\n")
        .block_start(0, &json!({"type": "hologram", "beam": 1}))
        .block_delta(0, &json!({"type": "hologram_delta", "beam": 2}))
        .block_stop(0)
        .open_text(&["o"])
        .block_delta(1, &json!({"type": "citations_delta", "citation": {}}))
        .text_delta(1, "k")
        .text_delta(7, "a delta for a block that was never opened")
        .block_stop(1)
        .ping()
        .stop("end_turn", 5)
        .reply()]);
    let turn = stage.ask().unwrap();
    stage.check_events(&["text o", "text k", "stop EndTurn"]);
    assert_eq!(blocks(&turn), [text("ok")]);
}

#[test]
fn usage_is_merged_from_the_start_and_the_end() {
    let check = |reply: Reply, expected: TokenUsage| {
        let stage = Stage::with([reply]);
        let turn = stage.ask().unwrap();
        assert_eq!(turn.messages[0].usage, Some(expected));
        assert_eq!(turn.messages[0].model.as_deref(), Some("claude-opus-4-7-20260401"));
    };
    let start = || MessagesStream::new().model("claude-opus-4-7-20260401");
    let expected = TokenUsage {
        input_tokens: 100,
        output_tokens: 42,
        cache_creation_input_tokens: 2_000,
        cache_read_input_tokens: 50_000,
    };
    check(
        start().usage_start(100, 2_000, 50_000).text(&["x"]).stop("end_turn", 42).reply(),
        expected,
    );
    // A later value wins when there is one.
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"input_tokens": 100, "output_tokens": 42, "cache_read_input_tokens": 50_000}});
    check(
        start()
            .usage_start(1, 2_000, 3)
            .text(&["x"])
            .event("message_delta", &delta)
            .event("message_stop", &json!({"type": "message_stop"}))
            .reply(),
        expected,
    );
}

#[test]
fn every_stop_reason_is_told_as_what_it_is() {
    let check = |wire: &str, expected: StopReason| {
        let stage = Stage::with([MessagesStream::new().text(&["x"]).stop(wire, 1).reply()]);
        let turn = stage.ask().unwrap();
        assert_eq!(turn.stop_reason, expected);
        stage.check_events(&["text x", &format!("stop {expected:?}")]);
    };
    check("end_turn", StopReason::EndTurn);
    check("max_tokens", StopReason::MaxTokens);
    check("stop_sequence", StopReason::StopSequence);
    check("refusal", StopReason::Refusal);
    check("pause_turn", StopReason::PauseTurn);
    check("tool_use", StopReason::ToolUse);
    check("something_new", StopReason::Other("something_new".to_owned()));
}

#[test]
fn a_call_cut_by_the_output_limit_is_incomplete_and_a_wrong_one_is_handed_on_as_valid_json() {
    let half = || {
        MessagesStream::new()
            .open_tool_use("t1", "write_file")
            .input_delta(0, r#"{"path":"a","con"#)
            .block_stop(0)
    };
    let stage = Stage::with([half().stop("max_tokens", 9).reply()]);
    let turn = stage.ask().unwrap();
    stage.check_events(&["call t1 write_file", "incomplete t1 write_file", "stop MaxTokens"]);
    assert_eq!(blocks(&turn), []);

    let stage = Stage::with([half().stop("tool_use", 9).reply()]);
    let turn = stage.ask().unwrap();
    let input = r#"{"malformed_input":"{\"path\":\"a\",\"con"}"#;
    assert_eq!(blocks(&turn), [tool_use("t1", "write_file", input)]);
}

#[test]
fn an_answer_is_whole_at_its_stop_event_although_the_connection_stays_open() {
    let stage = Stage::with([MessagesStream::say("ok").stall()]);
    assert_eq!(blocks(&stage.ask().unwrap()), [text("ok")]);
}

#[test]
fn connections_are_used_again_although_the_end_of_the_body_comes_late() {
    let turns = 10;
    let gate = Gate::new();
    let stage = Stage::with((0..turns).map(|_| MessagesStream::say("ok").wait(&gate)));
    let mut client = stage.anthropic();
    let cx = stage.context();
    super::stage::runtime().block_on(async {
        for _ in 0..turns {
            client.stream(stage.request.clone(), &cx).await.unwrap();
            gate.release();
        }
    });
    assert_eq!(stage.api.requests().len(), turns);
    // The rest of an answer is read in the background, so the very next turn may be too early.
    assert!(stage.api.connections() <= turns / 2, "{} connections", stage.api.connections());
}
