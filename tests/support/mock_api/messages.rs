//! Streams of the Messages API, event by event.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{Gate, Reply};

/// Builds the events of one message. Blocks are numbered in the order they are opened.
#[derive(Clone)]
pub struct MessagesStream {
    reply: Reply,
    usage: Value,
    model: String,
    id: String,
    started: bool,
    next_index: usize,
}

/// Two messages of one conversation never have the same id, and the CLI relies on it.
static NEXT: AtomicUsize = AtomicUsize::new(1);

impl MessagesStream {
    #[expect(clippy::new_without_default, reason = "a script is made on purpose")]
    pub fn new() -> Self {
        Self {
            reply: Reply::stream(),
            usage: json!({"input_tokens": 10, "output_tokens": 1}),
            model: "claude-opus-4-7".to_owned(),
            id: format!("msg_mock{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            started: false,
            next_index: 0,
        }
    }

    /// A whole reply of one text.
    pub fn say(text: &str) -> Reply {
        Self::new().text(&[text]).stop("end_turn", 5).reply()
    }

    /// The input side of `message_start`'s usage.
    #[must_use]
    pub fn usage_start(mut self, input: u64, cache_write: u64, cache_read: u64) -> Self {
        self.usage = json!({
            "input_tokens": input,
            "cache_creation_input_tokens": cache_write,
            "cache_read_input_tokens": cache_read,
            "output_tokens": 1,
        });
        self
    }

    /// The model that `message_start` names.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        model.clone_into(&mut self.model);
        self
    }

    /// Any event, with its data. `message_start` is sent first if it was not yet.
    #[must_use]
    pub fn event(mut self, name: &str, data: &Value) -> Self {
        if !self.started {
            self.started = true;
            let start = json!({"type": "message_start", "message": {
                "id": self.id, "type": "message", "role": "assistant", "content": [],
                "model": self.model, "stop_reason": null, "stop_sequence": null, "usage": self.usage,
            }});
            self.reply = self.reply.event("message_start", &start.to_string());
        }
        self.reply = self.reply.event(name, &data.to_string());
        self
    }

    /// An event before (or instead of) `message_start`.
    #[must_use]
    pub fn early_event(mut self, name: &str, data: &Value) -> Self {
        self.reply = self.reply.event(name, &data.to_string());
        self
    }

    /// Raw bytes, as they are.
    #[must_use]
    pub fn bytes(mut self, bytes: &str) -> Self {
        self.reply = self.reply.bytes(bytes);
        self
    }

    #[must_use]
    pub fn ping(self) -> Self {
        self.event("ping", &json!({"type": "ping"}))
    }

    /// Waits at this gate.
    #[must_use]
    pub fn wait(mut self, gate: &Gate) -> Self {
        self.reply = self.reply.wait(gate);
        self
    }

    /// `content_block_start` with this index and block.
    #[must_use]
    pub fn block_start(mut self, index: usize, block: &Value) -> Self {
        self.next_index = self.next_index.max(index + 1);
        let data = json!({"type": "content_block_start", "index": index, "content_block": block});
        self.event("content_block_start", &data)
    }

    /// `content_block_delta` with this index and delta.
    #[must_use]
    pub fn block_delta(self, index: usize, delta: &Value) -> Self {
        let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
        self.event("content_block_delta", &data)
    }

    #[must_use]
    pub fn block_stop(self, index: usize) -> Self {
        self.event("content_block_stop", &json!({"type": "content_block_stop", "index": index}))
    }

    /// A text block in these deltas, left open.
    #[must_use]
    pub fn open_text(self, deltas: &[&str]) -> Self {
        let index = self.next_index;
        let start = self.block_start(index, &json!({"type": "text", "text": ""}));
        deltas.iter().fold(start, |stream, text| stream.text_delta(index, text))
    }

    #[must_use]
    pub fn text_delta(self, index: usize, text: &str) -> Self {
        self.block_delta(index, &json!({"type": "text_delta", "text": text}))
    }

    /// A whole text block in these deltas.
    #[must_use]
    pub fn text(self, deltas: &[&str]) -> Self {
        let index = self.next_index;
        self.open_text(deltas).block_stop(index)
    }

    /// A whole thinking block in these deltas, signed.
    #[must_use]
    pub fn thinking(self, deltas: &[&str], signature: &str) -> Self {
        let index = self.next_index;
        let block = json!({"type": "thinking", "thinking": "", "signature": ""});
        let stream = deltas.iter().fold(self.block_start(index, &block), |stream, text| {
            stream.block_delta(index, &json!({"type": "thinking_delta", "thinking": text}))
        });
        stream
            .block_delta(index, &json!({"type": "signature_delta", "signature": signature}))
            .block_stop(index)
    }

    /// A block of thinking that the provider hides.
    #[must_use]
    pub fn redacted_thinking(self, data: &str) -> Self {
        let index = self.next_index;
        self.block_start(index, &json!({"type": "redacted_thinking", "data": data}))
            .block_stop(index)
    }

    /// The start of a tool use, left open.
    #[must_use]
    pub fn open_tool_use(self, id: &str, name: &str) -> Self {
        let index = self.next_index;
        self.block_start(index, &json!({"type": "tool_use", "id": id, "name": name, "input": {}}))
    }

    /// A piece of a tool use's input.
    #[must_use]
    pub fn input_delta(self, index: usize, json_part: &str) -> Self {
        self.block_delta(index, &json!({"type": "input_json_delta", "partial_json": json_part}))
    }

    /// A whole tool use; its input comes in two pieces.
    #[must_use]
    pub fn tool_use(self, id: &str, name: &str, input: &str) -> Self {
        let index = self.next_index;
        let middle = (0..=input.len() / 2).rev().find(|at| input.is_char_boundary(*at));
        let (first, second) = input.split_at(middle.unwrap_or(0));
        self.open_tool_use(id, name)
            .input_delta(index, first)
            .input_delta(index, second)
            .block_stop(index)
    }

    /// `message_delta` with this stop reason and these output tokens, without `message_stop`.
    #[must_use]
    pub fn message_delta(self, stop_reason: &str, output_tokens: u64) -> Self {
        let data = json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": null},
            "usage": {"output_tokens": output_tokens},
        });
        self.event("message_delta", &data)
    }

    /// `message_delta` and `message_stop`.
    #[must_use]
    pub fn stop(self, stop_reason: &str, output_tokens: u64) -> Self {
        self.message_delta(stop_reason, output_tokens)
            .event("message_stop", &json!({"type": "message_stop"}))
    }

    /// An `error` event.
    #[must_use]
    pub fn error(self, kind: &str, message: &str) -> Self {
        let data = json!({"type": "error", "error": {"type": kind, "message": message}});
        self.event("error", &data)
    }

    /// The reply.
    pub fn reply(self) -> Reply {
        self.reply
    }
}
