//! The request of chat completions.
//!
//! No limit of output is sent: where none is asked for, providers allow the model's own. Reasoning is
//! sent back only to the families that refuse a tool result without it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::api::ApiRequest;
use crate::api::history::{self, Part, Speaker, Turn};
use crate::api::models::{self, ThinkingStyle};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    System {
        content: String,
    },
    User {
        content: String,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function { function: FunctionSpec<'a> },
}

#[derive(Serialize)]
struct FunctionSpec<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionCall<'a>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: &'a str,
    /// JSON as text.
    arguments: Cow<'a, str>,
}

/// The id on the wire. At a provider's own address a prefix only routes; elsewhere it may be part of
/// the name, but for ours.
pub(super) fn model(name: &str, at_home: bool) -> &str {
    let name = models::resolve_alias(name);
    match name.split_once('/') {
        Some(("local" | "ollama", rest)) => rest,
        Some(_) if at_home => models::bare(name),
        _ => name,
    }
}

/// The body as JSON bytes.
pub(super) fn body(model: &str, request: &ApiRequest) -> serde_json::Result<Vec<u8>> {
    let reasoning_back = models::thinking_style(model) == ThinkingStyle::RoundTrip;
    let mut messages = Vec::new();
    let system: Vec<&str> =
        request.system.iter().map(String::as_str).filter(|text| !text.trim().is_empty()).collect();
    if !system.is_empty() {
        messages.push(Message::System { content: system.join("\n\n") });
    }
    for turn in history::in_order(&request.messages, model) {
        match turn.speaker {
            Speaker::User => add_user(&mut messages, turn),
            Speaker::Assistant => messages.extend(assistant(turn, reasoning_back)),
        }
    }
    let tools = request.tools.iter().map(|tool| Tool::Function {
        function: FunctionSpec {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.input_schema,
        },
    });
    serde_json::to_vec(&Body {
        model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        messages,
        tools: tools.collect(),
    })
}

/// Results are messages of their own, before what the person says.
fn add_user<'a>(messages: &mut Vec<Message<'a>>, turn: Turn<'a>) {
    let mut texts = Vec::new();
    for part in turn.parts {
        match part {
            Part::Text(text) => texts.push(text),
            Part::ToolResult { id, output, .. } => {
                messages.push(Message::Tool { tool_call_id: id, content: output });
            }
            Part::Thinking { .. } | Part::Redacted { .. } | Part::ToolUse { .. } => {}
        }
    }
    if !texts.is_empty() {
        messages.push(Message::User { content: texts.join("\n\n") });
    }
}

/// None when nothing is left to send: a message of thinking alone.
fn assistant(turn: Turn<'_>, reasoning_back: bool) -> Option<Message<'_>> {
    let mut texts = Vec::new();
    let mut reasoning = Vec::new();
    let mut tool_calls = Vec::new();
    for part in turn.parts {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Thinking { thinking, .. } => reasoning.push(thinking),
            Part::ToolUse { id, name, input } => {
                let arguments = match input {
                    Cow::Borrowed(input) => Cow::Borrowed(input.get()),
                    Cow::Owned(input) => Cow::Owned(input.get().to_owned()),
                };
                let function = FunctionCall { name, arguments };
                tool_calls.push(Call { id, kind: "function", function });
            }
            Part::Redacted { .. } | Part::ToolResult { .. } => {}
        }
    }
    if texts.is_empty() && tool_calls.is_empty() {
        return None;
    }
    // Wanted with every tool call, also where the model that made it showed no reasoning.
    let wanted = reasoning_back && !tool_calls.is_empty();
    Some(Message::Assistant {
        content: (!texts.is_empty()).then(|| texts.join("\n\n")),
        reasoning_content: wanted.then(|| reasoning.join("\n")),
        tool_calls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_routes_at_home_and_belongs_to_the_name_elsewhere() {
        let check = |name: &str, at_home: bool, expected: &str| {
            assert_eq!(model(name, at_home), expected, "{name} {at_home}");
        };
        check("openai/gpt-4.1", true, "gpt-4.1");
        check("openai/gpt-oss-120b", false, "openai/gpt-oss-120b");
        check("local/qwen2.5-coder:7b", false, "qwen2.5-coder:7b");
        check("grok-mini", true, "grok-3-mini");
        check("meta/llama", true, "meta/llama");
    }
}
