//! What is sent: the body and the headers as the server saw them.

use std::sync::Arc;

use claw_runtime::api::ApiRequest;
use claw_runtime::session::{ContentBlock, ConversationMessage, MessageRole, PartialReason};
use claw_runtime::tools::ToolSpec;
use claw_tests::mock_api::{MessagesStream, RecordedRequest};
use serde_json::{Value, json};

use super::stage::{KEY, Stage, request, text, tool_use};

/// Sends a request and returns what the server got.
fn sent(request: ApiRequest) -> RecordedRequest {
    let mut stage = Stage::with([MessagesStream::say("ok")]);
    stage.request = request;
    stage.ask().unwrap();
    stage.api.requests().remove(0)
}

fn message(role: MessageRole, blocks: Vec<ContentBlock>) -> Arc<ConversationMessage> {
    Arc::new(ConversationMessage::new(role, blocks))
}

fn result(id: &str, output: &str, is_error: bool) -> ContentBlock {
    ContentBlock::ToolResult {
        tool_use_id: id.to_owned(),
        tool_name: "bash".to_owned(),
        output: output.to_owned(),
        is_error,
        facts: None,
    }
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("does {name}"),
        input_schema: json!({"type": "object"}),
    }
}

/// How many cache breakpoints a body has.
fn breakpoints(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| usize::from(key == "cache_control") + breakpoints(value))
            .sum(),
        Value::Array(items) => items.iter().map(breakpoints).sum(),
        _ => 0,
    }
}

#[test]
fn the_smallest_request_is_the_question_once_and_nothing_else() {
    let request = sent(request());
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        request.body,
        json!({
            "model": "claude-opus-4-7", "max_tokens": 128_000, "stream": true,
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "hi", "cache_control": cached},
            ]}],
        })
    );
}

#[test]
fn a_whole_conversation_keeps_its_order_its_results_and_four_cache_breakpoints() {
    use MessageRole::{Assistant, System, Tool, User};
    let thinking = |signature: Option<&str>| ContentBlock::Thinking {
        thinking: "hm".to_owned(),
        signature: signature.map(str::to_owned),
    };
    let mut request = request();
    request.system = Arc::from(["stable".to_owned(), " ".to_owned(), "changing".to_owned()]);
    request.tools = Arc::from([tool("bash"), tool("read_file")]);
    request.messages = vec![
        message(System, vec![text("summary")]),
        message(User, vec![text("go")]),
        message(
            Assistant,
            vec![
                thinking(Some("sig")),
                thinking(None),
                ContentBlock::RedactedThinking { data: "opaque==".to_owned() },
                text(""),
                tool_use("t1", "bash", r#"{"b": 1, "a": 2}"#),
                tool_use("functions.bash:2", "bash", r#"{"cut"#),
            ],
        ),
        message(Tool, vec![result("t1", "", false), result("functions.bash:2", "no", true)]),
        message(Assistant, vec![text("done")]),
        message(User, vec![text("thanks")]),
    ];
    let cached = json!({"type": "ephemeral"});
    let body = sent(request).body;
    assert_eq!(breakpoints(&body), 4);
    assert_eq!(
        body["system"],
        json!([
            {"type": "text", "text": "stable"},
            {"type": "text", "text": "changing", "cache_control": cached},
        ])
    );
    assert_eq!(
        body["tools"],
        json!([
            {"name": "bash", "description": "does bash", "input_schema": {"type": "object"}},
            {"name": "read_file", "description": "does read_file",
             "input_schema": {"type": "object"}, "cache_control": cached},
        ])
    );
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [
                {"type": "text", "text": "summary"}, {"type": "text", "text": "go"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "opaque=="},
                {"type": "tool_use", "id": "t1", "name": "bash", "input": {"b": 1, "a": 2}},
                {"type": "tool_use", "id": "functions_bash_2", "name": "bash",
                 "input": {"malformed_input": "{\"cut"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "(no output)"},
                {"type": "tool_result", "tool_use_id": "functions_bash_2", "content": "no",
                 "is_error": true, "cache_control": cached}]},
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
            {"role": "user", "content": [
                {"type": "text", "text": "thanks", "cache_control": cached}]},
        ])
    );
}

#[test]
fn a_call_without_a_result_gets_one_that_says_interrupted() {
    let mut partial = ConversationMessage::new(
        MessageRole::Assistant,
        vec![text("I will"), tool_use("t1", "bash", "{}")],
    );
    partial.partial = Some(PartialReason::Cancelled);
    let mut request = request();
    request.messages.push(Arc::new(partial));
    request.messages.push(Arc::new(ConversationMessage::user("go on")));
    let body = sent(request).body;
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        body["messages"][2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "t1", "content": "interrupted", "is_error": true},
            {"type": "text", "text": "go on", "cache_control": cached},
        ])
    );
}

#[test]
fn thinking_is_asked_for_as_the_model_wants_it() {
    let check = |model: &str, thinking: bool, expected: Value| {
        let mut request = request();
        model.clone_into(&mut request.model);
        request.thinking = thinking;
        assert_eq!(sent(request).body["thinking"], expected, "{model}");
    };
    check("opus", true, json!({"type": "adaptive", "display": "summarized"}));
    check(
        "anthropic/claude-sonnet-4-6",
        true,
        json!({"type": "adaptive", "display": "summarized"}),
    );
    check("haiku", true, json!({"type": "enabled", "budget_tokens": 16_000}));
    check("claude-unheard-of", true, Value::Null);
    check("opus", false, Value::Null);
}

#[test]
fn models_that_bind_thinking_to_the_conversation_are_told_to_drop_what_no_longer_fits() {
    let mut request = request();
    "claude-opus-5-5".clone_into(&mut request.model);
    request.thinking = true;
    let bound = sent(request.clone());
    assert_eq!(
        bound.body["thinking"]["block_binding"],
        json!({"prefix_mismatch_behavior": "drop_block"})
    );
    assert_eq!(bound.header("anthropic-beta"), Some("thinking-binding-controls-2026-08-01"));
    "claude-opus-4-7".clone_into(&mut request.model);
    assert_eq!(sent(request).header("anthropic-beta"), None);
}

#[test]
fn thinking_of_another_model_stays_at_home_and_a_budget_is_not_begun_inside_a_tool_loop() {
    let mut by_opus = ConversationMessage::new(
        MessageRole::Assistant,
        vec![
            ContentBlock::Thinking { thinking: "hm".to_owned(), signature: Some("s".to_owned()) },
            tool_use("t1", "bash", "{}"),
        ],
    );
    by_opus.model = Some("claude-opus-4-7".to_owned());
    let mut request = request();
    request.model = "haiku".to_owned();
    request.thinking = true;
    request.messages.push(Arc::new(by_opus));
    request.messages.push(message(MessageRole::Tool, vec![result("t1", "out", false)]));
    let body = sent(request.clone()).body;
    assert_eq!(body["model"], "claude-haiku-4-5");
    assert_eq!(body["thinking"], Value::Null);
    assert_eq!(
        body["messages"][1]["content"],
        json!([{"type": "tool_use", "id": "t1", "name": "bash", "input": {}}])
    );
    // The same model gets its own thinking back.
    request.model = "claude-opus-4-7".to_owned();
    assert_eq!(sent(request).body["messages"][1]["content"][0]["signature"], "s");
}

#[test]
fn an_answer_goes_back_as_it_came() {
    let mut stage = Stage::with([
        MessagesStream::new()
            .thinking(&["hm"], "sig+/=")
            .redacted_thinking("opaque")
            .tool_use("t1", "bash", r#"{"command":"ls"}"#)
            .stop("tool_use", 9)
            .reply(),
        MessagesStream::say("ok"),
    ]);
    let turn = stage.ask().unwrap();
    stage.request.messages.extend(turn.messages.into_iter().map(Arc::new));
    stage.request.messages.push(message(MessageRole::Tool, vec![result("t1", "out", false)]));
    stage.ask().unwrap();
    assert_eq!(
        stage.api.requests()[1].body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "sig+/="},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}},
        ])
    );
}
