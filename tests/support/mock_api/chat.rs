//! Streams of chat completions, chunk by chunk.

use serde_json::{Value, json};

use super::{Gate, Reply};

/// Builds the chunks of one answer.
pub struct ChatStream {
    reply: Reply,
    model: String,
}

impl ChatStream {
    #[expect(clippy::new_without_default, reason = "a script is made on purpose")]
    pub fn new() -> Self {
        Self { reply: Reply::stream(), model: "mock-model".to_owned() }
    }

    /// A whole reply of one text.
    pub fn say(text: &str) -> Reply {
        Self::new().text(&[text]).finish("stop").usage(10, 5, 0).done()
    }

    /// The model that the chunks name.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        model.clone_into(&mut self.model);
        self
    }

    /// Any data line.
    #[must_use]
    pub fn data(mut self, data: &str) -> Self {
        self.reply = self.reply.bytes(format!("data: {data}\n\n"));
        self
    }

    /// A chunk with this delta and finish reason.
    #[must_use]
    pub fn chunk(self, delta: &Value, finish_reason: Option<&str>) -> Self {
        let data = json!({
            "id": "chatcmpl-mock", "object": "chat.completion.chunk", "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        });
        self.data(&data.to_string())
    }

    #[must_use]
    pub fn text(self, deltas: &[&str]) -> Self {
        deltas.iter().fold(self, |stream, text| stream.chunk(&json!({"content": text}), None))
    }

    /// Reasoning in the form `reasoning_content`.
    #[must_use]
    pub fn reasoning(self, deltas: &[&str]) -> Self {
        deltas
            .iter()
            .fold(self, |stream, text| stream.chunk(&json!({"reasoning_content": text}), None))
    }

    /// The first piece of a tool call.
    #[must_use]
    pub fn tool_call_start(self, index: usize, id: &str, name: &str) -> Self {
        let call = json!({"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": ""}});
        self.chunk(&json!({"tool_calls": [call]}), None)
    }

    /// A further piece of a tool call's arguments.
    #[must_use]
    pub fn tool_call_delta(self, index: usize, arguments: &str) -> Self {
        let call = json!({"index": index, "function": {"arguments": arguments}});
        self.chunk(&json!({"tool_calls": [call]}), None)
    }

    /// A whole tool call.
    #[must_use]
    pub fn tool_call(self, index: usize, id: &str, name: &str, arguments: &str) -> Self {
        self.tool_call_start(index, id, name).tool_call_delta(index, arguments)
    }

    /// Waits at this gate.
    #[must_use]
    pub fn wait(mut self, gate: &Gate) -> Self {
        self.reply = self.reply.wait(gate);
        self
    }

    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.chunk(&json!({}), Some(reason))
    }

    /// The usage chunk: prompt tokens (cached ones included), completion tokens, cached tokens.
    #[must_use]
    pub fn usage(self, prompt: u64, completion: u64, cached: u64) -> Self {
        let data = json!({
            "id": "chatcmpl-mock", "object": "chat.completion.chunk", "model": self.model,
            "choices": [],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion,
                "total_tokens": prompt + completion,
                "prompt_tokens_details": {"cached_tokens": cached}},
        });
        self.data(&data.to_string())
    }

    /// `[DONE]`, and the reply.
    pub fn done(self) -> Reply {
        self.data("[DONE]").reply
    }

    /// The reply without `[DONE]`.
    pub fn reply(self) -> Reply {
        self.reply
    }
}
