use proptest::prelude::*;
use serde_json::{Value, json};

use crate::transcript::Record;

/// Any JSON, with a bias for the names that the parser looks for.
fn any_json() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "type",
        "subtype",
        "message",
        "content",
        "id",
        "usage",
        "input",
        "text",
        "thinking",
        "toolUseResult",
        "structuredPatch",
        "lines",
        "oldStart",
        "file",
        "numFiles",
        "newTodos",
        "origin",
        "kind",
        "promptSource",
        "isMeta",
        "attachment",
        "prompt",
        "operation",
        "reason",
        "quotaLimits",
        "status",
        "resetsAt",
        "error",
        "isApiErrorMessage",
        "apiErrorStatus",
        "apiBlockIndex",
        "durationMs",
        "compactMetadata",
        "retryInMs",
        "agentId",
        "isAsync",
        "tool_use_id",
        "uuid",
        "sessionId",
        "isSidechain",
        "stdout",
        "stderr",
        "taskId",
    ]);
    let words = prop::sample::select(vec![
        "user",
        "assistant",
        "system",
        "queue-operation",
        "attachment",
        "queued_command",
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "image",
        "turn_duration",
        "compact_boundary",
        "informational",
        "api_error",
        "enqueue",
        "remove",
        "create",
        "rate_limit_event",
        "<task-notification><task-id>",
        "[Image #",
        "Agent",
        "<task-notification><task-id>a</task-id><status>x</status>",
        "<bash-stdout>",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..8).prop_map(|fields| {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_json_panics(value in any_json()) {
        let parsed = Record::parse(value.to_string().as_bytes());
        // An object is a record whatever is in it.
        prop_assert_eq!(parsed.is_ok(), value.is_object());
    }

    #[test]
    fn no_field_of_a_known_record_panics(
        kind in prop::sample::select(vec![
            "user", "assistant", "system", "queue-operation", "attachment", "rate_limit_event",
        ]),
        message in any_json(),
        result in any_json(),
        other in any_json(),
    ) {
        let mut value = json!({
            "type": kind, "message": {"content": message}, "toolUseResult": result,
            "attachment": other, "content": other,
        });
        if let (Some(fields), Some(more)) = (value.as_object_mut(), other.as_object()) {
            for (name, field) in more {
                fields.entry(name.clone()).or_insert(field.clone());
            }
        }
        prop_assert!(Record::parse(value.to_string().as_bytes()).is_ok());
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if Record::parse(&bytes).is_ok() {
            prop_assert!(serde_json::from_slice::<Value>(&bytes).unwrap().is_object());
        }
    }
}

#[test]
fn nesting_without_end_is_an_error() {
    let deep = format!("{{\"type\":\"user\",\"message\":{}", "[".repeat(100_000));
    assert!(Record::parse(deep.as_bytes()).is_err());
}

#[test]
fn what_is_no_object_is_named() {
    assert!(Record::parse(b" [\"mode\"]").is_err());
    assert!(Record::parse(b"[1]").unwrap_err().to_string().contains("no object"));
    assert!(Record::parse(b"{\"type\": \"us").unwrap_err().to_string().contains("not JSON"));
    // Half of a character.
    assert!(Record::parse(b"{\"type\": \"user\", \"uuid\": \"\xc3\"}").is_err());
}
