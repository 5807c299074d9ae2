//! Chat completions: the same promises as the Messages API, on the other wire.

use std::sync::Arc;
use std::time::Duration;

use claw_runtime::api::{ApiError, CutCause, StopReason};
use claw_runtime::session::{ContentBlock, ConversationMessage, MessageRole, PartialReason};
use claw_runtime::tools::ToolSpec;
use claw_runtime::usage::TokenUsage;
use claw_tests::mock_api::{ChatStream, Gate, Reply};
use serde_json::{Value, json};

use super::stage::{KEY, Stage, blocks, text, tool_use};

fn thinking(text: &str) -> ContentBlock {
    ContentBlock::Thinking { thinking: text.to_owned(), signature: None }
}

#[test]
fn every_delta_is_told_when_it_arrives() {
    let gate = Gate::new();
    let stage = Stage::with([ChatStream::new()
        .text(&["Hel"])
        .wait(&gate)
        .text(&["lo"])
        .finish("stop")
        .usage(10, 5, 0)
        .done()]);
    let answer = stage.start(stage.openai());
    stage.sink.wait_for("text", 1);
    stage.check_events(&["text Hel"]);
    gate.release();
    let turn = answer.join().unwrap().unwrap();
    stage.check_events(&["text Hel", "text lo", "stop EndTurn"]);
    assert_eq!(blocks(&turn), [text("Hello")]);
}

#[test]
fn reasoning_text_and_parallel_calls_come_in_order_and_whole() {
    let stage = Stage::with([ChatStream::new()
        .model("mock-1")
        .reasoning(&["let ", "me"])
        .text(&["I'll look."])
        .tool_call_start(0, "c1", "read_file")
        .tool_call_start(1, "c2", "bash")
        .tool_call_delta(1, r#"{"command":"#)
        .tool_call_delta(0, r#"{"path":"a"}"#)
        .tool_call_delta(1, r#""ls"}"#)
        .finish("tool_calls")
        .usage(100, 40, 64)
        .done()]);
    let turn = stage.ask_chat().unwrap();
    stage.check_events(&[
        "thinking",
        "think let ",
        "think me",
        "thought 6",
        "text I'll look.",
        "call c1 read_file",
        "call c2 bash",
        r#"called c1 read_file {"path":"a"}"#,
        r#"called c2 bash {"command":"ls"}"#,
        "stop ToolUse",
    ]);
    assert_eq!(
        blocks(&turn),
        [
            thinking("let me"),
            text("I'll look."),
            tool_use("c1", "read_file", r#"{"path":"a"}"#),
            tool_use("c2", "bash", r#"{"command":"ls"}"#),
        ]
    );
    assert_eq!(turn.messages[0].model.as_deref(), Some("mock-1"));
    let usage = TokenUsage {
        input_tokens: 36,
        output_tokens: 40,
        cache_read_input_tokens: 64,
        cache_creation_input_tokens: 0,
    };
    assert_eq!(turn.messages[0].usage, Some(usage));
}

#[test]
fn servers_that_bend_the_wire_are_understood() {
    let call = |call: Value| json!({"tool_calls": [call]});
    let stage = Stage::with([ChatStream::new()
        .data(r#"{"choices":[]}"#)
        .chunk(&json!({"role": "assistant", "content": null}), None)
        .chunk(&json!({"reasoning": "hm"}), None)
        // Whole calls without an index, all "at" the same index, with arguments as an object.
        .chunk(&call(json!({"id": "a", "function": {"name": "x", "arguments": "{\"n\":1}"}})), None)
        .chunk(&call(json!({"id": "b", "function": {"name": "x", "arguments": {"n": 2}}})), None)
        .chunk(&call(json!({"index": 0, "id": "c", "function": {"name": "y"}})), None)
        .chunk(
            &call(json!({"index": 0, "id": "d", "function": {"name": "z", "arguments": ""}})),
            None,
        )
        .finish("stop")
        .reply()]);
    let turn = stage.ask_chat().unwrap();
    assert_eq!(
        blocks(&turn),
        [
            thinking("hm"),
            tool_use("a", "x", r#"{"n":1}"#),
            tool_use("b", "x", r#"{"n":2}"#),
            tool_use("c", "y", "{}"),
            tool_use("d", "z", "{}"),
        ]
    );
    assert_eq!(turn.stop_reason, StopReason::ToolUse, "stopped normally, after calls");
}

#[test]
fn a_call_never_takes_an_id_that_the_conversation_has() {
    let mut stage = Stage::with([ChatStream::new()
        .tool_call(0, "call_0", "bash", "{}")
        .tool_call(1, "", "bash", "{}")
        .finish("tool_calls")
        .done()]);
    let earlier =
        ConversationMessage::new(MessageRole::Assistant, vec![tool_use("call_0", "bash", "{}")]);
    stage.request.messages.push(Arc::new(earlier));
    let turn = stage.ask_chat().unwrap();
    let ids: Vec<&str> = turn.messages[0].tool_uses().map(|(id, _, _)| id).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids[0] != "call_0" && ids[0] != ids[1], "{ids:?}");
    assert!(ids.iter().all(|id| id.starts_with("call_")), "{ids:?}");
}

#[test]
fn every_finish_reason_is_told_as_what_it_is() {
    let check = |wire: &str, expected: StopReason| {
        let stage = Stage::with([ChatStream::new().text(&["x"]).finish(wire).done()]);
        assert_eq!(stage.ask_chat().unwrap().stop_reason, expected);
        stage.check_events(&["text x", &format!("stop {expected:?}")]);
    };
    check("stop", StopReason::EndTurn);
    check("length", StopReason::MaxTokens);
    check("content_filter", StopReason::Refusal);
    check("eos", StopReason::Other("eos".to_owned()));
}

#[test]
fn a_call_cut_by_the_output_limit_is_incomplete_and_a_wrong_one_is_handed_on_as_valid_json() {
    let half = || ChatStream::new().tool_call(0, "c1", "a", "{}").tool_call(1, "c2", "b", r#"{"p"#);
    let stage = Stage::with([half().finish("length").done()]);
    assert_eq!(blocks(&stage.ask_chat().unwrap()), [tool_use("c1", "a", "{}")]);
    stage.check_events(&[
        "call c1 a",
        "call c2 b",
        "called c1 a {}",
        "incomplete c2 b",
        "stop MaxTokens",
    ]);
    let stage = Stage::with([half().finish("tool_calls").done()]);
    let wrong = tool_use("c2", "b", r#"{"malformed_input":"{\"p"}"#);
    assert_eq!(blocks(&stage.ask_chat().unwrap()), [tool_use("c1", "a", "{}"), wrong]);
}

#[test]
fn an_answer_without_its_end_is_a_cut_and_one_that_said_that_it_is_whole_is_whole() {
    let stage = Stage::with([ChatStream::new()
        .text(&["half"])
        .tool_call(0, "c1", "bash", "{}")
        .reply()
        .close()]);
    let Err(ApiError::StreamCut { cause, partial }) = stage.ask_chat() else { panic!("no cut") };
    assert_eq!(cause, CutCause::ConnectionClosed);
    assert_eq!(blocks(&partial), [text("half")]);
    assert_eq!(partial.messages[0].partial, Some(PartialReason::Cut));
    stage.check_events(&["text half", "call c1 bash", "incomplete c1 bash"]);
    // No [DONE], but a finish reason.
    for reply in [
        ChatStream::new().text(&["ok"]).finish("stop").reply(),
        ChatStream::new().text(&["ok"]).finish("stop").reply().close(),
    ] {
        let stage = Stage::with([reply]);
        assert_eq!(blocks(&stage.ask_chat().unwrap()), [text("ok")]);
    }
}

#[test]
fn silence_ends_as_an_idle_cut_and_cancelling_ends_at_once() {
    let half = || ChatStream::new().text(&["half"]).reply().stall();
    let mut stage = Stage::with([half()]);
    stage.timing.idle_timeout = Duration::from_millis(100);
    let Err(ApiError::StreamCut { cause, .. }) = stage.ask_chat() else { panic!("no cut") };
    assert_eq!(cause, CutCause::Idle(Duration::from_millis(100)));

    let stage = Stage::with([half()]);
    let answer = stage.start(stage.openai());
    stage.sink.wait_for("text", 1);
    stage.cancel.cancel();
    let turn = answer.join().unwrap().unwrap();
    assert_eq!(turn.stop_reason, StopReason::Cancelled);
    assert_eq!(blocks(&turn), [text("half")]);
    stage.api.wait_for_hang_ups(1);
}

#[test]
fn refusals_are_typed_and_what_may_pass_is_retried() {
    let error = |reply: Reply, requests: usize| {
        let stage = Stage::new();
        stage.api.answer(move |_| Some(reply.clone()));
        let error = stage.ask_chat().unwrap_err();
        assert_eq!(stage.api.requests().len(), requests, "{error:?}");
        error
    };
    let full = Reply::chat_error(400, "context_length_exceeded", "too many tokens");
    assert!(matches!(error(full, 1), ApiError::ContextWindowExceeded { .. }));
    let broke = Reply::chat_error(429, "insufficient_quota", "pay first");
    assert!(matches!(error(broke, 1), ApiError::RateLimited { .. }));
    let busy = Reply::chat_error(429, "rate_limit_exceeded", "slow down");
    assert!(matches!(error(busy, 3), ApiError::RateLimited { .. }));
    let auth = error(Reply::chat_error(401, "invalid_api_key", "wrong key"), 1);
    assert!(auth.to_string().contains("Check OPENAI_API_KEY"), "{auth}");

    let overloaded = r#"{"error":{"message":"busy","type":"server_error","code":503}}"#;
    let stage = Stage::with([ChatStream::new().data(overloaded).reply(), ChatStream::say("ok")]);
    assert_eq!(blocks(&stage.ask_chat().unwrap()), [text("ok")]);
    let shown = ChatStream::new().text(&["half"]).data(overloaded).reply();
    let Err(ApiError::StreamCut { cause, .. }) = Stage::with([shown]).ask_chat() else {
        panic!("no cut")
    };
    assert!(cause.to_string().contains("busy"), "{cause}");
}

#[test]
fn the_request_has_the_conversation_once_in_the_form_of_this_wire() {
    let mut stage = Stage::with([ChatStream::say("ok"), ChatStream::say("ok")]);
    stage.request.model = "deepseek-v4-pro".to_owned();
    stage.request.system = Arc::from(["be brief".to_owned(), "cwd: x".to_owned()]);
    stage.request.tools = Arc::from([ToolSpec {
        name: "bash".to_owned(),
        description: "runs".to_owned(),
        input_schema: json!({"type": "object"}),
    }]);
    let result = ContentBlock::ToolResult {
        tool_use_id: "c1".to_owned(),
        tool_name: "bash".to_owned(),
        output: "out".to_owned(),
        is_error: false,
        facts: None,
    };
    let messages = [
        ConversationMessage::new(MessageRole::System, vec![text("summary")]),
        ConversationMessage::user("go"),
        ConversationMessage::new(
            MessageRole::Assistant,
            vec![
                thinking("hm"),
                tool_use("c1", "bash", r#"{"command": "ls"}"#),
                tool_use("c2", "bash", "{}"),
            ],
        ),
        ConversationMessage::new(MessageRole::Tool, vec![result]),
        ConversationMessage::new(MessageRole::Assistant, vec![thinking("so"), text("done")]),
        ConversationMessage::user("thanks"),
    ];
    stage.request.messages = messages.into_iter().map(Arc::new).collect();
    stage.ask_chat().unwrap();
    let request = stage.api.requests().remove(0);
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}});
    assert_eq!(
        request.body,
        json!({
            "model": "deepseek-v4-pro", "stream": true, "stream_options": {"include_usage": true},
            "messages": [
                {"role": "system", "content": "be brief\n\ncwd: x"},
                {"role": "user", "content": "summary\n\ngo"},
                {"role": "assistant", "content": null, "reasoning_content": "hm",
                 "tool_calls": [call("c1", r#"{"command": "ls"}"#), call("c2", "{}")]},
                {"role": "tool", "tool_call_id": "c1", "content": "out"},
                {"role": "tool", "tool_call_id": "c2", "content": "interrupted"},
                {"role": "assistant", "content": "done"},
                {"role": "user", "content": "thanks"},
            ],
            "tools": [{"type": "function", "function": {"name": "bash", "description": "runs",
                "parameters": {"type": "object"}}}],
        })
    );
    // Families that do not want their reasoning back do not get it.
    stage.request.model = "gpt-5.4".to_owned();
    stage.ask_chat().unwrap();
    let body = stage.api.requests().remove(1).body;
    assert_eq!(body["messages"][2]["reasoning_content"], Value::Null);
}
