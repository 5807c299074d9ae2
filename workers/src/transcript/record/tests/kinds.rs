use std::time::Duration;

use claw_runtime::session::ContentBlock;
use claw_runtime::usage::TokenUsage;
use serde_json::{Value, json};

use super::{facts, record};
use crate::fact::{AgentEnd, Fact, FailureKind, PromptSource, Quota};

fn said(value: &Value) -> (PromptSource, String) {
    match facts(value).as_slice() {
        [Fact::Prompt { text, source, .. }, ..] => (*source, text.clone()),
        other => panic!("{other:?}"),
    }
}

fn user(content: Value, more: Value) -> Value {
    let mut value = json!({"type": "user", "message": {"role": "user"}});
    value["message"]["content"] = content;
    let Value::Object(more) = more else { panic!("no fields") };
    value.as_object_mut().unwrap().extend(more);
    value
}

#[test]
fn whose_words_a_user_record_holds() {
    let typed = json!({"promptSource": "typed", "origin": {"kind": "human"}});
    assert_eq!(said(&user(json!("hi"), typed.clone())), (PromptSource::Typed, "hi".into()));
    let blocks = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    assert_eq!(said(&user(blocks, typed)), (PromptSource::Typed, "a\nb".into()));
    let sources = [
        (json!({"promptSource": "queued", "origin": {"kind": "human"}}), PromptSource::Queued),
        (json!({"promptSource": "suggestion", "origin": {"kind": "human"}}), PromptSource::Typed),
        (json!({"isMeta": true, "turnCompanion": true}), PromptSource::Hidden),
        (json!({"isCompactSummary": true}), PromptSource::Summary),
        (json!({"origin": {"kind": "task-notification"}}), PromptSource::Notification),
        (json!({"turnOrigin": "task_notification"}), PromptSource::Notification),
        (json!({}), PromptSource::Typed),
    ];
    for (fields, source) in sources {
        assert_eq!(said(&user(json!("words"), fields.clone())).0, source, "{fields}");
    }
}

#[test]
fn commands_and_their_output() {
    let command = user(json!("<command-name>/compact</command-name>"), json!({}));
    assert_eq!(said(&command).0, PromptSource::Command);
    let output = user(json!("<local-command-stdout>done</local-command-stdout>"), json!({}));
    assert_eq!(facts(&output), [Fact::CommandOutput { text: "done".into() }]);
    let shell = "<bash-stdout>out</bash-stdout><bash-stderr>err</bash-stderr>";
    assert_eq!(
        facts(&user(json!(shell), json!({}))),
        [Fact::CommandOutput { text: "out\nerr".into() }]
    );
}

#[test]
fn words_of_a_person_are_never_taken_for_a_mark_of_the_cli() {
    let typed = json!({"promptSource": "typed", "origin": {"kind": "human"}});
    for text in [
        "[Request interrupted by user]",
        "<task-notification><task-id>a</task-id><status>completed</status></task-notification>",
        "<local-command-stdout>x</local-command-stdout>",
        "<command-name>/clear</command-name>",
    ] {
        assert_eq!(
            facts(&user(json!(text), typed.clone())),
            [Fact::Prompt { prompt_id: None, text: text.into(), source: PromptSource::Typed }]
        );
    }
}

#[test]
fn the_record_itself() {
    let value = json!({"type": "user", "uuid": "u", "promptId": "p", "sessionId": "s",
        "isSidechain": true, "message": {"content": "x"}});
    let record = record(&value);
    assert_eq!(record.uuid.as_deref(), Some("u"));
    assert_eq!(record.prompt_id.as_deref(), Some("p"));
    assert_eq!(record.session_id.as_deref(), Some("s"));
    assert!(record.sidechain);
}

fn assistant(block: &Value) -> Value {
    json!({"type": "assistant", "apiBlockIndex": 3, "message": {"id": "m", "model": "claude",
        "content": [block], "stop_reason": "end_turn", "usage": {"input_tokens": 1,
        "output_tokens": 2, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 4}}})
}

fn block(value: &Value) -> ContentBlock {
    match facts(&assistant(value)).remove(0) {
        Fact::Block { content, .. } => content,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_block_has_its_fields() {
    let usage = TokenUsage {
        input_tokens: 1,
        output_tokens: 2,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 4,
    };
    assert_eq!(
        facts(&assistant(&json!({"type": "text", "text": "hi"}))),
        [Fact::Block {
            message: "m".into(),
            block: Some(3),
            content: ContentBlock::Text { text: "hi".into() },
            model: Some("claude".into()),
            usage: Some(usage),
            stop_reason: Some("end_turn".into()),
            aborted: false,
        }]
    );
    let tool =
        block(&json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"b": 1, "a": 2}}));
    assert_eq!(
        tool,
        ContentBlock::ToolUse {
            id: "t".into(),
            name: "Bash".into(),
            input: r#"{"b":1,"a":2}"#.into()
        }
    );
}

#[test]
fn usage_that_is_not_recorded_is_unknown_and_not_zero() {
    let mut value = assistant(&json!({"type": "text", "text": "hi"}));
    value["message"]["usage"] = json!({"service_tier": "standard"});
    assert!(matches!(&facts(&value)[0], Fact::Block { usage: None, .. }));
    value["message"]["usage"] = json!({"input_tokens": 0, "output_tokens": 0});
    value["message"]["model"] = json!("<synthetic>");
    assert!(matches!(&facts(&value)[0], Fact::Block { usage: None, model: None, .. }));
}

#[test]
fn what_stands_for_an_answer_that_never_came_is_nobodys_words() {
    let mut value = assistant(&json!({"type": "text", "text": "No response requested."}));
    assert_eq!(facts(&value).len(), 1, "a model may say the same");
    value["message"]["model"] = json!("<synthetic>");
    assert_eq!(facts(&value), []);
    // Text that was stopped in the middle is written under the same name.
    let mut value = assistant(&json!({"type": "text", "text": "Half of"}));
    value["message"]["model"] = json!("<synthetic>");
    assert_eq!(facts(&value).len(), 1);
}

#[test]
fn thinking_with_words_signed_without_words_and_hidden_are_three_things() {
    let words = block(&json!({"type": "thinking", "thinking": "hm", "signature": "S"}));
    let signed = block(&json!({"type": "thinking", "thinking": "", "signature": "S"}));
    let hidden = block(&json!({"type": "redacted_thinking", "data": "D"}));
    let thinking =
        |text: &str| ContentBlock::Thinking { thinking: text.into(), signature: Some("S".into()) };
    assert_eq!(words, thinking("hm"));
    assert_eq!(signed, thinking(""));
    assert_eq!(hidden, ContentBlock::RedactedThinking { data: "D".into() });
    assert_eq!(facts(&assistant(&json!({"type": "thinking", "thinking": ""}))), []);
}

#[test]
fn what_failed_is_read_from_the_fields() {
    let failure = |fields: Value| {
        let mut value = json!({"type": "assistant", "isApiErrorMessage": true,
            "message": {"content": [{"type": "text", "text": "words"}]}});
        value.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        match facts(&value).as_slice() {
            [Fact::ApiFailure { kind, text, .. }] if text == "words" => kind.clone(),
            other => panic!("{other:?}"),
        }
    };
    let table = [
        ("authentication_failed", FailureKind::Authentication),
        ("billing_error", FailureKind::Billing),
        ("rate_limit", FailureKind::RateLimit),
        ("model_not_found", FailureKind::ModelNotFound),
        ("invalid_request", FailureKind::InvalidRequest),
        ("server_error", FailureKind::Server),
        ("max_output_tokens", FailureKind::MaxOutputTokens),
        ("unknown", FailureKind::Unknown("unknown".into())),
    ];
    for (error, kind) in table {
        assert_eq!(failure(json!({"error": error})), kind);
    }
    let long = json!({"error": "invalid_request", "errorDetails": "prompt is too long: 9 > 8"});
    assert_eq!(failure(long), FailureKind::PromptTooLong);
    let limit = json!({"error": "rate_limit", "apiError": "usage_limit_reached"});
    assert_eq!(failure(limit), FailureKind::UsageLimit);
    let rejected = json!({"error": "rate_limit", "quotaLimits": {"status": "rejected"}});
    assert_eq!(failure(rejected), FailureKind::UsageLimit);
    let soft = json!({"error": "rate_limit", "quotaLimits": {"status": "allowed_warning"}});
    assert_eq!(failure(soft), FailureKind::RateLimit);
}

#[test]
fn a_quota_warning_never_looks_like_a_failure() {
    for status in ["allowed", "allowed_warning"] {
        let limits = json!({"status": status, "resetsAt": 7, "rateLimitType": "five_hour"});
        let mut beside = assistant(&json!({"type": "text", "text": "You've hit your limit"}));
        beside["quotaLimits"] = limits.clone();
        let alone = json!({"type": "rate_limit_event", "rate_limit_info": limits});
        let quota =
            Quota { status: status.into(), resets_at: Some(7), kind: Some("five_hour".into()) };
        assert!(!quota.is_hard());
        let told = facts(&beside);
        assert_eq!(told[0], Fact::Quota(quota.clone()));
        assert!(matches!(told[1], Fact::Block { .. }) && told.len() == 2);
        assert_eq!(facts(&alone), [Fact::Quota(quota)]);
    }
    let rejected = json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}});
    assert!(matches!(&facts(&rejected)[..], [Fact::Quota(quota)] if quota.is_hard()));
}

#[test]
fn system_records() {
    let of = |value: Value| facts(&value);
    let duration = json!({"type": "system", "subtype": "turn_duration", "durationMs": 1500,
        "pendingBackgroundAgentCount": 2});
    assert_eq!(
        of(duration),
        [Fact::TurnDuration { duration: Duration::from_millis(1500), pending_agents: 2 }]
    );
    let compact = json!({"type": "system", "subtype": "compact_boundary",
        "compactMetadata": {"trigger": "auto", "preTokens": 9, "postTokens": 3}});
    assert_eq!(
        of(compact),
        [Fact::Compacted { automatic: true, before_tokens: 9, after_tokens: 3 }]
    );
    let notice = json!({"type": "system", "subtype": "informational", "content": "word"});
    assert_eq!(of(notice), [Fact::Notice { text: "word".into() }]);
    let local = json!({"type": "system", "subtype": "local_command",
        "content": "<local-command-stdout>out</local-command-stdout>"});
    assert_eq!(of(local), [Fact::CommandOutput { text: "out".into() }]);
    let retry = json!({"type": "system", "subtype": "api_error", "retryAttempt": 2,
        "maxRetries": 10, "retryInMs": 1200.5, "error": {"status": 529}});
    assert_eq!(
        of(retry),
        [Fact::Retry {
            attempt: 2,
            max_attempts: 10,
            wait: Duration::from_secs_f64(1.2005),
            reason: "HTTP 529".into()
        }]
    );
    for quiet in ["stop_hook_summary", "thinking_tokens", "token_usage", "api_request"] {
        assert_eq!(of(json!({"type": "system", "subtype": quiet})), []);
    }
}

#[test]
fn the_queue_of_prompts() {
    let of = |value: Value| facts(&value);
    let enqueue = json!({"type": "queue-operation", "operation": "enqueue", "content": "next"});
    assert_eq!(of(enqueue), [Fact::Enqueued { content: "next".into() }]);
    let remove = json!({"type": "queue-operation", "operation": "remove", "content": "next",
        "reason": "absorbed_mid_turn"});
    assert_eq!(of(remove), [Fact::Removed { content: Some("next".into()), absorbed: true }]);
    let bare = json!({"type": "queue-operation", "operation": "remove"});
    assert_eq!(of(bare), [Fact::Removed { content: None, absorbed: false }]);
    let dequeue = json!({"type": "queue-operation", "operation": "dequeue"});
    assert_eq!(of(dequeue), [Fact::Dequeued]);
}

#[test]
fn kinds_that_are_not_known_are_told_by_name_and_bookkeeping_is_not() {
    let name = |value: Value| match facts(&value).as_slice() {
        [Fact::Unknown { kind }] => kind.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(name(json!({"type": "hologram", "uuid": "u"})), "hologram");
    assert_eq!(name(json!({"type": "system", "subtype": "mood"})), "system/mood");
    assert_eq!(
        name(json!({"type": "attachment", "attachment": {"type": "smell"}})),
        "attachment/smell"
    );
    assert_eq!(name(json!({"type": 7})), "nameless");
    assert_eq!(name(json!({"type": "x".repeat(5000)})).len(), 64);
    assert_eq!(name(assistant(&json!({"type": "server_tool_use"}))), "assistant/server_tool_use");
    for quiet in super::super::BOOKKEEPING {
        assert_eq!(facts(&json!({"type": quiet, "anything": [1, {"a": 2}]})), []);
    }
}

fn notification(inside: &str) -> Vec<Fact> {
    let text =
        format!("<task-notification>\n<task-id>a1</task-id>\n{inside}\n</task-notification>");
    let mut facts = facts(&user(json!(text), json!({"origin": {"kind": "task-notification"}})));
    assert!(matches!(facts.remove(0), Fact::Prompt { source: PromptSource::Notification, .. }));
    facts
}

#[test]
fn ends_of_background_tasks() {
    let table = [
        ("<status>completed</status><summary>it</summary>", AgentEnd::Completed, "it"),
        ("<status>killed</status><summary>it</summary>", AgentEnd::Killed, "it"),
        ("<status>stopped</status>", AgentEnd::Killed, ""),
        ("<status>failed</status><result>why</result>", AgentEnd::Failed, "why"),
        ("<status>timed_out</status>", AgentEnd::TimedOut, ""),
        ("<summary>Monitor timed out</summary>", AgentEnd::TimedOut, "Monitor timed out"),
    ];
    for (inside, end, words) in table {
        assert_eq!(
            notification(inside),
            [Fact::AgentDone {
                agent: "a1".into(),
                tool_use_id: None,
                status: end,
                summary: words.into()
            }]
        );
    }
    assert_eq!(
        notification("<event>line</event>"),
        [Fact::AgentProgress { agent: "a1".into(), tool_use_id: None, text: "line".into() }]
    );
    assert_eq!(notification(""), []);
}

#[test]
fn the_mark_around_an_error_of_a_call_is_not_shown() {
    for (content, expected) in [
        ("<tool_use_error>File not found.</tool_use_error>", "File not found."),
        ("<tool_use_error>half", "<tool_use_error>half"),
        ("about <tool_use_error>x</tool_use_error>", "about <tool_use_error>x</tool_use_error>"),
    ] {
        let block = json!([{"type": "tool_result", "tool_use_id": "t", "is_error": true,
            "content": content}]);
        let facts = facts(&user(block, json!({})));
        let [Fact::ToolResult { output, .. }] = facts.as_slice() else { panic!("{facts:?}") };
        assert_eq!(output, expected);
    }
}
