//! The chunks of chat completions, into a draft.
//!
//! Servers differ: reasoning comes under two names, tool calls with or without an index or an id, the
//! usage in a chunk of its own or in each. Whatever a chunk does not have is taken as not said.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::api::StopReason;
use crate::api::draft::{Draft, PieceId};
use crate::api::exchange::{Fault, Mapper, Progress};
use crate::api::failure::ProviderError;

pub(super) struct ChunkReader<'a> {
    pub draft: Draft<'a>,
    /// The piece that text or thinking is being added to; a piece of another kind ends it.
    current: Option<Current>,
    calls: Vec<Call>,
    /// Ids of tool uses that the conversation has already: some servers count from zero each time.
    used: &'a HashSet<&'a str>,
    finished: bool,
}

#[derive(Clone, Copy)]
enum Current {
    Text(PieceId),
    Thinking(PieceId),
}

/// A tool call that is being written.
struct Call {
    index: Option<u64>,
    /// The id as the server gave it; empty when it gave none.
    id: String,
    /// Arguments that came before the name.
    early: String,
    piece: Option<PieceId>,
}

impl<'a> ChunkReader<'a> {
    pub fn new(draft: Draft<'a>, used: &'a HashSet<&'a str>) -> Self {
        Self { draft, current: None, calls: Vec::new(), used, finished: false }
    }

    fn add_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let piece = if let Some(Current::Text(piece)) = self.current {
            piece
        } else {
            self.end_current();
            self.draft.open_text()
        };
        self.current = Some(Current::Text(piece));
        self.draft.push(piece, text);
    }

    fn add_thinking(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let piece = match self.current {
            Some(Current::Thinking(piece)) => piece,
            _ => self.draft.open_thinking(),
        };
        self.current = Some(Current::Thinking(piece));
        self.draft.push(piece, text);
    }

    fn end_current(&mut self) {
        if let Some(Current::Text(piece) | Current::Thinking(piece)) = self.current.take() {
            self.draft.close(piece);
        }
    }

    fn add_call(&mut self, delta: &CallDelta) {
        let at = self.call_of(delta);
        let name = delta.function.name.as_deref().unwrap_or_default();
        let arguments = match &delta.function.arguments {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        if self.calls[at].piece.is_none() && !name.is_empty() {
            self.end_current();
            let id = self.unused_id(&self.calls[at].id, at);
            let piece = self.draft.open_tool(id, name.to_owned());
            self.draft.push(piece, &std::mem::take(&mut self.calls[at].early));
            self.calls[at].piece = Some(piece);
        }
        match self.calls[at].piece {
            Some(piece) => self.draft.push(piece, &arguments),
            None => self.calls[at].early.push_str(&arguments),
        }
    }

    /// The place of the call that this delta belongs to, new if there is none.
    fn call_of(&mut self, delta: &CallDelta) -> usize {
        let id = delta.id.as_deref().unwrap_or_default();
        let found = if delta.index.is_none() && id.is_empty() {
            self.calls.len().checked_sub(1)
        } else {
            self.calls.iter().rposition(|call| {
                // Another id at the same index is another call: some servers never count on.
                let same_id = id.is_empty() || call.id.is_empty() || call.id == id;
                match (delta.index, call.index) {
                    (Some(one), Some(other)) => one == other && same_id,
                    _ => !id.is_empty() && call.id == id,
                }
            })
        };
        if let Some(at) = found {
            if self.calls[at].id.is_empty() {
                id.clone_into(&mut self.calls[at].id);
            }
            return at;
        }
        let index = delta.index;
        self.calls.push(Call { index, id: id.to_owned(), early: String::new(), piece: None });
        self.calls.len() - 1
    }

    /// The server's id, or one of ours where it gave none or one that is taken.
    fn unused_id(&self, id: &str, at: usize) -> String {
        let taken = self.calls[..at].iter().any(|call| call.id == id);
        if id.is_empty() || taken || self.used.contains(id) {
            return format!("call_{}", Uuid::new_v4().simple());
        }
        id.to_owned()
    }

    /// The answer is whole. At the output limit the last call is the one that was cut.
    fn finish(&mut self, reason: &str) {
        if self.finished {
            return;
        }
        self.finished = true;
        self.end_current();
        let stop = stop_reason(reason, self.calls.iter().any(|call| call.piece.is_some()));
        let whole = match stop {
            StopReason::MaxTokens => self.calls.len().saturating_sub(1),
            _ => self.calls.len(),
        };
        for piece in self.calls[..whole].iter().filter_map(|call| call.piece) {
            self.draft.close(piece);
        }
        self.draft.stop = Some(stop);
    }

    fn set_usage(&mut self, usage: &Usage) {
        let details = usage.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens);
        let cached = cached.or(usage.prompt_cache_hit_tokens).unwrap_or(0);
        let total = &mut self.draft.usage;
        // The wire counts cached tokens among the prompt's.
        total.input_tokens = usage.prompt_tokens.saturating_sub(cached);
        total.cache_read_input_tokens = cached;
        total.output_tokens = usage.completion_tokens;
    }
}

impl Mapper for ChunkReader<'_> {
    fn accept(&mut self, name: &str, data: &str) -> Result<Progress, Fault> {
        if data.trim() == "[DONE]" {
            self.finish("stop");
            return Ok(Progress::Complete);
        }
        let value: Value = serde_json::from_str(data).map_err(|error| malformed(&error))?;
        if name == "error" || value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::Provider(ProviderError::from_value(&value)));
        }
        let chunk: Chunk = serde_json::from_value(value).map_err(|error| malformed(&error))?;
        if let Some(model) = chunk.model.filter(|model| !model.is_empty()) {
            self.draft.model = model;
        }
        if let Some(usage) = chunk.usage {
            self.set_usage(&usage);
        }
        for choice in chunk.choices.into_iter().flatten().take(1) {
            let delta = choice.delta.unwrap_or_default();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let reasoning = match text(&delta.reasoning_content) {
                none if none.is_empty() => text(&delta.reasoning),
                some => some,
            };
            self.add_thinking(&reasoning);
            self.add_text(&text(&delta.content));
            self.add_text(&text(&delta.refusal));
            for call in delta.tool_calls.iter().flatten() {
                self.add_call(call);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish(&reason);
            }
        }
        Ok(Progress::Data)
    }

    fn complete_at_end(&self) -> bool {
        self.finished
    }
}

fn malformed(error: &serde_json::Error) -> Fault {
    Fault::Malformed(format!("a chunk is not what the API documents: {error}"))
}

fn stop_reason(reason: &str, has_calls: bool) -> StopReason {
    match reason {
        // Some servers stop "normally" after tool calls.
        "stop" | "tool_calls" | "function_call" if has_calls => StopReason::ToolUse,
        "stop" | "tool_calls" | "function_call" => StopReason::EndTurn,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

#[derive(Deserialize)]
struct Chunk {
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

/// Texts as values: servers write null, and a few write lists.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Value,
    refusal: Value,
    reasoning_content: Value,
    reasoning: Value,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    #[serde(default)]
    function: FunctionDelta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Value,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_tokens_details: Option<PromptDetails>,
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}
