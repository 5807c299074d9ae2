//! What the CLI records about the course of a session: ends of turns, compactions, its words to the
//! person, the queue of prompts, and how the account stands.

use std::time::Duration;

use serde_json::Value;

use super::{notification, owned, text, unknown, user, words};
use crate::fact::{Fact, PromptSource, Quota};

/// Subtypes that say nothing about the session.
const BOOKKEEPING: &[&str] = &[
    "api_request",
    "api_response",
    "microcompact_boundary",
    "stop_hook_summary",
    "thinking_tokens",
    "token_usage",
];

pub(super) fn facts(value: &Value) -> Vec<Fact> {
    let number = |field: &str| value[field].as_u64().unwrap_or(0);
    let said = || words(&value["content"]);
    let fact = match text(value, "subtype") {
        "turn_duration" => Fact::TurnDuration {
            duration: Duration::from_millis(number("durationMs")),
            pending_agents: number("pendingBackgroundAgentCount"),
        },
        "compact_boundary" => {
            let data = &value["compactMetadata"];
            Fact::Compacted {
                automatic: text(data, "trigger") == "auto",
                before_tokens: data["preTokens"].as_u64().unwrap_or(0),
                after_tokens: data["postTokens"].as_u64().unwrap_or(0),
            }
        }
        "informational" => Fact::Notice { text: said() },
        "local_command" => {
            let said = said();
            match user::command_output(&said) {
                Some(text) => Fact::CommandOutput { text },
                // The command itself, as it was typed.
                None => Fact::Prompt { prompt_id: None, text: said, source: PromptSource::Command },
            }
        }
        "api_error" => Fact::Retry {
            attempt: u32::try_from(number("retryAttempt")).unwrap_or(u32::MAX),
            max_attempts: u32::try_from(number("maxRetries")).unwrap_or(u32::MAX),
            wait: milliseconds(&value["retryInMs"]),
            reason: reason(&value["error"]),
        },
        kind if BOOKKEEPING.contains(&kind) => return Vec::new(),
        kind => unknown(&format!("system/{kind}")),
    };
    vec![fact]
}

/// The wait is a fraction at times.
fn milliseconds(value: &Value) -> Duration {
    let wait = value.as_f64().map(|ms| Duration::try_from_secs_f64(ms / 1000.0));
    wait.and_then(Result::ok).unwrap_or_default()
}

fn reason(error: &Value) -> String {
    match error["status"].as_u64() {
        Some(status) => format!("HTTP {status}"),
        None => owned(error, "message").unwrap_or_else(|| "the API failed".to_owned()),
    }
}

pub(super) fn queue(value: &Value) -> Vec<Fact> {
    let content = || Some(words(&value["content"])).filter(|_| !value["content"].is_null());
    let fact = match text(value, "operation") {
        "enqueue" => Fact::Enqueued { content: content().unwrap_or_default() },
        "remove" => Fact::Removed {
            content: content(),
            absorbed: text(value, "reason") == "absorbed_mid_turn",
        },
        "dequeue" => Fact::Dequeued,
        "popAll" => Fact::Removed { content: content(), absorbed: false },
        other => unknown(&format!("queue-operation/{other}")),
    };
    vec![fact]
}

/// A prompt that was absorbed into the running turn. Versions whose `remove` record does not say
/// which prompt was absorbed have no delivery id here, and it is said here.
pub(super) fn attachment(value: &Value) -> Vec<Fact> {
    let it = &value["attachment"];
    match text(it, "type") {
        "queued_command" => {}
        "plan_mode" => {
            let path = owned(it, "planFilePath");
            return path.map(|path| Fact::PlanFile { path }).into_iter().collect();
        }
        other => return vec![unknown(&format!("attachment/{other}"))],
    }
    let said = words(&it["prompt"]);
    let mut facts = Vec::new();
    if it["delivery_id"].is_null() {
        facts.push(Fact::Removed { content: Some(said.clone()), absorbed: true });
    }
    let by_itself = text(&it["origin"], "kind") == "task-notification"
        || text(it, "commandMode") == "task-notification";
    let told = if by_itself { notification::fact(&said) } else { None };
    let source = if by_itself { PromptSource::Notification } else { PromptSource::Queued };
    facts.push(Fact::Prompt { prompt_id: owned(value, "promptId"), text: said, source });
    facts.extend(told);
    facts
}

pub(super) fn rate_limit(value: &Value) -> Option<Fact> {
    let quota = quota(&value["rate_limit_info"]).or_else(|| quota(&value["quotaLimits"]));
    quota.map(Fact::Quota)
}

/// How the account stands. Without a status nothing is known.
pub(crate) fn quota(value: &Value) -> Option<Quota> {
    Some(Quota {
        status: owned(value, "status")?,
        resets_at: value["resetsAt"].as_i64(),
        kind: owned(value, "rateLimitType"),
    })
}
