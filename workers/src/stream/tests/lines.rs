//! Lines as facts: what each kind says, and that nothing breaks the reader.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::scripted::said;
use crate::fact::{AgentEnd, DeniedBy, Fact, FailureKind, PromptSource, Quota};
use crate::stream::codec::{Decoder, Outcome, StreamMessage};

fn decode(line: &str) -> StreamMessage {
    Decoder::default().decode(line).unwrap()
}

fn facts(line: &serde_json::Value) -> Vec<Fact> {
    match decode(&line.to_string()) {
        StreamMessage::Facts(facts) => facts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_retry_a_quota_and_a_compaction_are_facts() {
    let retry = json!({"type": "system", "subtype": "api_retry", "attempt": 2, "max_retries": 10, "retry_delay_ms": 1197, "error_status": 529, "error": "server_error"});
    let wait = Duration::from_millis(1197);
    let reason = "server error (529)".to_owned();
    assert_eq!(facts(&retry), [Fact::Retry { attempt: 2, max_attempts: 10, wait, reason }]);

    let quota = json!({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning", "resetsAt": 1_796_090_408, "rateLimitType": "five_hour"}});
    let expected = Quota {
        status: "allowed_warning".to_owned(),
        resets_at: Some(1_796_090_408),
        kind: Some("five_hour".to_owned()),
    };
    assert_eq!(facts(&quota), [Fact::Quota(expected)]);

    let snake = json!({"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "manual", "pre_tokens": 2080, "post_tokens": 918}});
    let camel = json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 2080, "postTokens": 918}});
    let compacted =
        |automatic| Fact::Compacted { automatic, before_tokens: 2080, after_tokens: 918 };
    assert_eq!(facts(&snake), [compacted(false)]);
    assert_eq!(facts(&camel), [compacted(true)]);
}

#[test]
fn words_of_the_cli_in_the_users_place_are_not_prompts() {
    let user = |text: &str| json!({"type": "user", "parent_tool_use_id": null, "message": {"content": [{"type": "text", "text": text}]}});
    assert_eq!(
        facts(&user("[Request interrupted by user]")),
        [Fact::Interrupted { in_tool: false }]
    );
    assert_eq!(
        facts(&user("[Request interrupted by user for tool use]")),
        [Fact::Interrupted { in_tool: true }]
    );
    let quoted = "he wrote [Request interrupted by user]";
    let source = PromptSource::Hidden;
    assert_eq!(
        facts(&user(quoted)),
        [Fact::Prompt { prompt_id: None, text: quoted.to_owned(), source }]
    );
    assert_eq!(decode(&said::replay("hi")), StreamMessage::Replayed { text: "hi".to_owned() });
}

#[test]
fn what_a_sub_agent_says_is_progress_of_its_call() {
    let line = json!({"type": "assistant", "parent_tool_use_id": "t1", "message": {"id": "m", "content": [{"type": "text", "text": "Looking."}, {"type": "tool_use", "id": "x", "name": "Grep", "input": {}}]}});
    let progress = |text: &str| Fact::AgentProgress {
        agent: "t1".to_owned(),
        tool_use_id: Some("t1".to_owned()),
        text: text.to_owned(),
    };
    assert_eq!(facts(&line), [progress("Looking."), progress("Grep")]);
    let event = json!({"type": "stream_event", "parent_tool_use_id": "t1", "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}});
    assert_eq!(facts(&event), []);
    let result = json!({"type": "user", "parent_tool_use_id": "t1", "message": {"content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}]}});
    assert_eq!(facts(&result), []);
}

#[test]
fn a_sub_agent_is_told_from_its_start_to_its_end() {
    let mut decoder = Decoder::default();
    let mut facts = |line: &str| match decoder.decode(line).unwrap() {
        StreamMessage::Facts(facts) => facts,
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        &facts(&said::agent_started())[..],
        [Fact::AgentSpawned { background: true, .. }]
    ));
    assert!(matches!(
        &facts(&said::agent_done())[..],
        [Fact::AgentDone { status: AgentEnd::Completed, .. }]
    ));
    assert_eq!(facts(&said::agent_done()), [], "its end is told once");
}

#[test]
fn a_failure_has_its_class_wherever_it_is_said() {
    let kind = |decoder: &mut Decoder, line: serde_json::Value| match decoder
        .decode(&line.to_string())
        .unwrap()
    {
        StreamMessage::Result(Outcome { failure: Some(failure), .. }) => match *failure {
            Fact::ApiFailure { kind, .. } => kind,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let plain = |status: u16| json!({"type": "result", "subtype": "success", "is_error": true, "api_error_status": status, "result": "API Error"});
    let cases = [
        (401, FailureKind::Authentication),
        (404, FailureKind::ModelNotFound),
        (429, FailureKind::RateLimit),
        (400, FailureKind::InvalidRequest),
        (529, FailureKind::Server),
    ];
    for (status, expected) in cases {
        assert_eq!(kind(&mut Decoder::default(), plain(status)), expected);
    }

    let mut decoder = Decoder::default();
    let message = json!({"type": "assistant", "parent_tool_use_id": null, "error": "billing_error", "message": {"id": "m", "model": "<synthetic>", "content": [{"type": "text", "text": "Credit balance is too low"}]}});
    let told = decoder.decode(&message.to_string()).unwrap();
    assert!(
        matches!(told, StreamMessage::Facts(facts) if matches!(&facts[..], [Fact::ApiFailure { .. }]))
    );
    assert_eq!(kind(&mut decoder, plain(400)), FailureKind::Billing);
    // The words of an answer are never a failure.
    assert!(
        matches!(decode(&said::text("m", "API Error: 401")), StreamMessage::Facts(facts) if matches!(&facts[..], [Fact::Block { .. }]))
    );
    assert!(matches!(
        decode(&said::result("Invalid API key")),
        StreamMessage::Result(Outcome { failure: None, .. })
    ));
}

#[test]
fn a_refused_call_says_who_refused_it() {
    let result = |kind: &str| json!({"type": "user", "parent_tool_use_id": null, "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "no"}], "is_error": true}]}, "tool_result_meta": [{"id": "t1", "non_execution_kind": kind}]});
    for (kind, expected) in [
        ("permission-rule", Some(DeniedBy::Rule)),
        ("user-rejected", Some(DeniedBy::Person)),
        ("", None),
    ] {
        let [Fact::ToolResult { denied, output, is_error: true, .. }] = &facts(&result(kind))[..]
        else {
            panic!("not one result")
        };
        assert_eq!((*denied, output.as_str()), (expected, "no"));
    }
}

#[test]
fn lines_that_are_not_the_protocol_are_errors_or_unknown() {
    for line in ["", "hello", "[1]", "{\"type\"", "null"] {
        assert!(Decoder::default().decode(line).is_err(), "{line}");
    }
    assert_eq!(decode("{}"), StreamMessage::Unknown { kind: String::new() });
    let kind = "system/new_thing".to_owned();
    assert_eq!(
        decode(r#"{"type":"system","subtype":"new_thing"}"#),
        StreamMessage::Unknown { kind }
    );
    let (request_id, kind) = ("r".to_owned(), "hook_callback".to_owned());
    assert_eq!(
        decode(
            r#"{"type":"control_request","request_id":"r","request":{"subtype":"hook_callback"}}"#
        ),
        StreamMessage::OtherRequest { request_id, kind }
    );
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let word = prop_oneof![
        Just("type"),
        Just("system"),
        Just("assistant"),
        Just("user"),
        Just("stream_event"),
        Just("result"),
        Just("message"),
        Just("content"),
        Just("event"),
        Just("index"),
        Just("id"),
        Just("content_block_delta"),
        Just("message_start"),
        Just("subtype"),
        Just("tool_result"),
    ];
    let leaf = prop_oneof![
        word.clone().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::vec((word.clone(), inner), 0..6).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_json_breaks_the_reader(lines in proptest::collection::vec(any_json(), 1..8)) {
        let mut decoder = Decoder::default();
        for line in lines {
            let is_object = line.is_object();
            prop_assert_eq!(decoder.decode(&line.to_string()).is_ok(), is_object);
        }
    }
}
