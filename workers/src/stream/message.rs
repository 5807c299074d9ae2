//! Content blocks and counts as the API writes them, which is also how the CLI hands them on.

use claw_runtime::session::ContentBlock;
use claw_runtime::usage::TokenUsage;
use serde_json::Value;

/// Text under a key; empty when there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

pub(super) fn owned(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

/// A block of an assistant message; none for a kind that the session has no place for.
pub(super) fn block(value: &Value) -> Option<ContentBlock> {
    Some(match text(value, "type") {
        "text" => ContentBlock::Text { text: text(value, "text").to_owned() },
        "thinking" => ContentBlock::Thinking {
            thinking: text(value, "thinking").to_owned(),
            signature: owned(value, "signature").filter(|signature| !signature.is_empty()),
        },
        "redacted_thinking" => {
            ContentBlock::RedactedThinking { data: text(value, "data").to_owned() }
        }
        "tool_use" => ContentBlock::ToolUse {
            id: text(value, "id").to_owned(),
            name: text(value, "name").to_owned(),
            input: input(&value["input"]),
        },
        _ => return None,
    })
}

/// The input of a tool as JSON text; an absent one is an empty object.
pub(super) fn input(value: &Value) -> String {
    if value.is_null() { "{}".to_owned() } else { value.to_string() }
}

/// Token counts; none when nothing was counted.
pub(super) fn usage(value: &Value) -> Option<TokenUsage> {
    let count = |key: &str| value[key].as_u64().unwrap_or(0);
    let usage = TokenUsage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cache_creation_input_tokens: count("cache_creation_input_tokens"),
        cache_read_input_tokens: count("cache_read_input_tokens"),
    };
    (usage != TokenUsage::default()).then_some(usage)
}

/// Content that is a text, or blocks of which the texts count.
pub(super) fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> =
                blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
