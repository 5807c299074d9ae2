//! More than one provider: each speaks its own protocol, and switching keeps the conversation.

use claw_tests::harness::Harness;
use claw_tests::mock_api::{ChatStream, MessagesStream, MockApi};
use claw_tests::story::{KEY, beside};
use serde_json::Value;

fn contents(body: &Value, role: &str) -> Vec<String> {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_role = messages.iter().filter(|message| message["role"] == role);
    of_role
        .map(|message| match &message["content"] {
            Value::String(text) => text.clone(),
            parts => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
        })
        .collect()
}

#[test]
fn chat_completions_stream_think_and_call_tools() {
    let api = MockApi::start();
    let call = ChatStream::new()
        .reasoning(&["Consider ", "the file."])
        .text(&["Reading."])
        .tool_call(0, "call_1", "read_file", r#"{"path":"notes.txt"}"#)
        .finish("tool_calls");
    api.push(call.usage(100, 20, 0).done());
    api.push(ChatStream::say("It says: remember."));
    let claw = Harness::new()
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", format!("{}/v1", api.base_url()))
        .file("notes.txt", "remember\n");
    let mut claw = claw.arg("--model").arg("some-model").start();
    claw.wait_ready();
    claw.say("read my notes");
    claw.wait_for("It says: remember.");
    claw.wait_ready();
    claw.wait_for("▸ Thinking (18 chars)");
    claw.wait_for("read_file notes.txt");
    let requests = api.requests();
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert_eq!(requests[0].body["model"], "some-model");
    let results = contents(&requests[1].body, "tool");
    assert!(results[0].contains("remember"), "{results:?}");
}

#[test]
fn switching_the_backend_keeps_the_conversation() {
    let api = MockApi::start();
    let claw = beside(&api)
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", format!("{}/v1", api.base_url()));
    let mut claw = claw.start();
    claw.wait_ready();
    api.push(MessagesStream::say("Answer one."));
    claw.say("one");
    claw.wait_for("Answer one.");
    claw.wait_ready();
    claw.send("\x10");
    claw.wait_until("the other backend in the status line", |seen| {
        let text = seen.screen.text();
        text.lines().last().is_some_and(|line| line.contains("openai"))
    });
    api.push(ChatStream::say("Answer two."));
    claw.say("two");
    claw.wait_for("Answer two.");
    claw.wait_ready();
    let requests = api.requests();
    assert_eq!(requests[1].path, "/v1/chat/completions");
    assert_eq!(contents(&requests[1].body, "user"), ["one", "two"]);
    assert_eq!(contents(&requests[1].body, "assistant"), ["Answer one."]);
}
