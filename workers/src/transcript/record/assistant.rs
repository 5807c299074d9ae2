//! Assistant records: the blocks of a message, one per record as a rule, and failures of the API,
//! which the CLI writes in the place of a message.

use claw_runtime::session::ContentBlock;
use claw_runtime::usage::TokenUsage;
use serde_json::Value;

use super::{owned, system, text, unknown, words};
use crate::fact::{Fact, FailureKind};

/// The model of what the CLI wrote itself.
const SYNTHETIC: &str = "<synthetic>";

/// What the CLI writes in place of an answer that never came, when it opens a session that ended in
/// the middle of a turn. Nobody said it.
const PLACEHOLDER: &str = "No response requested.";

pub(super) fn facts(value: &Value) -> Vec<Fact> {
    if value["isApiErrorMessage"] == true {
        return vec![failure(value)];
    }
    let message = &value["message"];
    if message["model"] == SYNTHETIC && message["content"][0]["text"] == PLACEHOLDER {
        return Vec::new();
    }
    let model = owned(message, "model").filter(|model| model != SYNTHETIC);
    // Nobody counted what the CLI wrote itself, whatever its zeros say.
    let usage = if model.is_some() { usage(&message["usage"]) } else { None };
    let first = value["apiBlockIndex"].as_u64().and_then(|index| usize::try_from(index).ok());
    let plain = match &message["content"] {
        Value::String(_) => vec![serde_json::json!({"type": "text", "text": message["content"]})],
        _ => Vec::new(),
    };
    let blocks = message["content"].as_array().unwrap_or(&plain);
    let facts = blocks.iter().enumerate().flat_map(|(at, block)| {
        let Some(content) = content(block) else {
            return other(block).into_iter().collect::<Vec<_>>();
        };
        let spawned = spawned(&content, block);
        let block = Fact::Block {
            message: text(message, "id").to_owned(),
            block: first.and_then(|first| first.checked_add(at)),
            content,
            model: model.clone(),
            usage,
            stop_reason: owned(message, "stop_reason"),
            aborted: value["isAbortedMidStream"] == true,
        };
        std::iter::once(block).chain(spawned).collect()
    });
    // A word about the account beside a message is no failure of the message.
    let quota = system::quota(&value["quotaLimits"]).map(Fact::Quota);
    quota.into_iter().chain(facts).collect()
}

/// Thinking with words, thinking that is signed and has no words, and hidden thinking are three
/// different things. Thinking that has neither words nor a signature is nothing.
pub(crate) fn content(block: &Value) -> Option<ContentBlock> {
    match text(block, "type") {
        "text" => Some(ContentBlock::Text { text: text(block, "text").to_owned() }),
        "thinking" => {
            let names = ["thinking", "text", "summary"];
            let thinking = names.iter().map(|name| text(block, name)).find(|said| !said.is_empty());
            let signature = owned(block, "signature").filter(|signature| !signature.is_empty());
            if thinking.is_none() && signature.is_none() {
                return None;
            }
            Some(ContentBlock::Thinking {
                thinking: thinking.unwrap_or_default().to_owned(),
                signature,
            })
        }
        "redacted_thinking" => {
            Some(ContentBlock::RedactedThinking { data: text(block, "data").to_owned() })
        }
        "tool_use" => Some(ContentBlock::ToolUse {
            id: text(block, "id").to_owned(),
            name: text(block, "name").to_owned(),
            input: match &block["input"] {
                Value::Null => "{}".to_owned(),
                input => input.to_string(),
            },
        }),
        _ => None,
    }
}

fn other(block: &Value) -> Option<Fact> {
    let kind = text(block, "type");
    (kind != "thinking").then(|| unknown(&format!("assistant/{kind}")))
}

/// A call that says itself that it is for the background. The sub-agent's own id is not known yet:
/// the call's id stands for it.
fn spawned(content: &ContentBlock, block: &Value) -> Option<Fact> {
    let ContentBlock::ToolUse { id, name, .. } = content else { return None };
    let input = &block["input"];
    let asked = matches!(name.as_str(), "Agent" | "Task") && input["run_in_background"] == true;
    asked.then(|| Fact::AgentSpawned {
        agent: id.clone(),
        tool_use_id: Some(id.clone()),
        kind: owned(input, "subagent_type"),
        background: true,
    })
}

/// Unknown is not zero.
pub(crate) fn usage(value: &Value) -> Option<TokenUsage> {
    let number = |field: &str| value[field].as_u64();
    Some(TokenUsage {
        input_tokens: number("input_tokens")?,
        output_tokens: number("output_tokens")?,
        cache_creation_input_tokens: number("cache_creation_input_tokens").unwrap_or(0),
        cache_read_input_tokens: number("cache_read_input_tokens").unwrap_or(0),
    })
}

pub(crate) fn failure(value: &Value) -> Fact {
    let quota = system::quota(&value["quotaLimits"])
        .or_else(|| system::quota(&value["apiErrorParams"]["rate_limit_info"]));
    let details = owned(value, "errorDetails");
    let limit = text(value, "apiError") == "usage_limit_reached"
        || quota.as_ref().is_some_and(crate::fact::Quota::is_hard);
    let kind = match text(value, "error") {
        "authentication_failed" | "oauth_org_not_allowed" => FailureKind::Authentication,
        "billing_error" => FailureKind::Billing,
        "rate_limit" if limit => FailureKind::UsageLimit,
        "rate_limit" => FailureKind::RateLimit,
        "model_not_found" => FailureKind::ModelNotFound,
        "invalid_request" if too_long(value, details.as_deref()) => FailureKind::PromptTooLong,
        "invalid_request" => FailureKind::InvalidRequest,
        "server_error" | "overloaded" => FailureKind::Server,
        "max_output_tokens" => FailureKind::MaxOutputTokens,
        other => FailureKind::Unknown(other.to_owned()),
    };
    let status = value["apiErrorStatus"].as_u64().and_then(|status| u16::try_from(status).ok());
    Fact::ApiFailure { kind, status, text: words(&value["message"]["content"]), details, quota }
}

/// The CLI's class for it is that of any bad request; the API's own words for it are in the details.
fn too_long(value: &Value, details: Option<&str>) -> bool {
    text(value, "apiError") == "prompt_too_long"
        || details.is_some_and(|details| details.to_lowercase().contains("prompt is too long"))
}
