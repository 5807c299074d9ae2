//! The request of the Messages API.
//!
//! Cache breakpoints stand where the prefix of the next request will still be the same: after the
//! system prompt, after the tools, and at the last two turns of the user. Thinking of another model
//! is left out, since its signature is only good for the model that wrote it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::ApiRequest;
use crate::api::history::{self, Part, Speaker, Turn};
use crate::api::models::{self, ThinkingStyle};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    /// Newer models keep their thinking to themselves unless a summary is asked for.
    Adaptive {
        display: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_binding: Option<BlockBinding>,
    },
    Enabled {
        budget_tokens: u32,
    },
}

/// What becomes of thinking that no longer fits what stands before it.
#[derive(Serialize)]
struct BlockBinding {
    prefix_mismatch_behavior: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Cow<'a, RawValue>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

/// How many of the user's turns, from the end, are cache breakpoints.
const CACHED_TURNS: usize = 2;

/// The body as JSON bytes.
pub(super) fn body(request: &ApiRequest) -> serde_json::Result<Vec<u8>> {
    let model = models::bare(models::resolve_alias(&request.model));
    let max_tokens = models::max_output(model);
    let turns = history::in_order(&request.messages, model);
    let thinking = thinking(request, model, max_tokens, &turns);
    let mut messages: Vec<Message<'_>> = turns.into_iter().filter_map(message).collect();
    let users = messages.iter_mut().rev().filter(|message| message.role == "user");
    for message in users.take(CACHED_TURNS) {
        mark_last(&mut message.content);
    }
    let texts = request.system.iter().filter(|text| !text.trim().is_empty());
    let mut system: Vec<Block<'_>> = texts.map(|text| text_block(Cow::Borrowed(text))).collect();
    mark_last(&mut system);
    let last_tool = request.tools.len().saturating_sub(1);
    let tools = request.tools.iter().enumerate().map(|(index, tool)| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.input_schema,
        cache_control: (index == last_tool).then_some(CacheControl::Ephemeral),
    });
    let tools = tools.collect();
    serde_json::to_vec(&Body { model, max_tokens, stream: true, thinking, system, tools, messages })
}

fn thinking(
    request: &ApiRequest,
    model: &str,
    max_tokens: u32,
    turns: &[Turn<'_>],
) -> Option<Thinking> {
    if !request.thinking {
        return None;
    }
    match models::thinking_style(model) {
        ThinkingStyle::Adaptive => {
            Some(Thinking::Adaptive { display: "summarized", block_binding: None })
        }
        ThinkingStyle::Bound => Some(Thinking::Adaptive {
            display: "summarized",
            block_binding: Some(BlockBinding { prefix_mismatch_behavior: "drop_block" }),
        }),
        ThinkingStyle::Budget { tokens } if !goes_on_without_thinking(turns) => {
            Some(Thinking::Enabled { budget_tokens: tokens.min(max_tokens / 2) })
        }
        ThinkingStyle::Budget { .. } | ThinkingStyle::None | ThinkingStyle::RoundTrip => None,
    }
}

/// Whether the model is in the middle of tool calls that it began without thinking (or whose thinking
/// another model wrote): models with a budget refuse to start thinking there.
fn goes_on_without_thinking(turns: &[Turn<'_>]) -> bool {
    let last = turns.iter().rfind(|turn| turn.speaker == Speaker::Assistant);
    last.is_some_and(|turn| {
        let calls = turn.parts.iter().any(|part| matches!(part, Part::ToolUse { .. }));
        let first = turn.parts.iter().find(|part| part_is_sent(part));
        calls && !matches!(first, Some(Part::Thinking { .. } | Part::Redacted { .. }))
    })
}

fn part_is_sent(part: &Part<'_>) -> bool {
    match part {
        Part::Thinking { signature, own, .. } => *own && signature.is_some(),
        Part::Redacted { own, .. } => *own,
        Part::Text(_) | Part::ToolUse { .. } | Part::ToolResult { .. } => true,
    }
}

/// A message; none when nothing of the turn may be sent.
fn message(turn: Turn<'_>) -> Option<Message<'_>> {
    let role = match turn.speaker {
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
    };
    let content: Vec<Block<'_>> =
        turn.parts.into_iter().filter(part_is_sent).filter_map(block).collect();
    (!content.is_empty()).then_some(Message { role, content })
}

fn block(part: Part<'_>) -> Option<Block<'_>> {
    Some(match part {
        Part::Text(text) => text_block(text),
        Part::Thinking { thinking, signature, .. } => {
            Block::Thinking { thinking, signature: signature? }
        }
        Part::Redacted { data, .. } => Block::RedactedThinking { data },
        Part::ToolUse { id, name, input } => Block::ToolUse { id: wire_id(id), name, input },
        Part::ToolResult { id, output, is_error } => Block::ToolResult {
            tool_use_id: wire_id(id),
            content: if output.is_empty() { "(no output)" } else { output },
            is_error,
            cache_control: None,
        },
    })
}

fn text_block(text: Cow<'_, str>) -> Block<'_> {
    Block::Text { text, cache_control: None }
}

/// Ids of other providers may hold characters that this one refuses.
fn wire_id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !id.is_empty() && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let mut wire: String = id.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if wire.is_empty() {
        wire.push('_');
    }
    Cow::Owned(wire)
}

fn mark_last(blocks: &mut [Block<'_>]) {
    if let Some(Block::Text { cache_control, .. } | Block::ToolResult { cache_control, .. }) =
        blocks.last_mut()
    {
        *cache_control = Some(CacheControl::Ephemeral);
    }
}
