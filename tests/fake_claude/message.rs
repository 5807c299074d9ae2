//! One message of the model, put together from the events of its stream.

use serde_json::{Value, json};

use crate::record::{timestamp, uuid};

#[derive(Debug, Clone)]
pub struct Message {
    pub id: String,
    pub model: String,
    pub usage: Value,
    pub stop_reason: Option<String>,
    pub blocks: Vec<Block>,
    pub request_id: String,
    /// Of the `api-request` record.
    pub request_ref: String,
    /// Nothing more comes.
    pub ended: bool,
}

#[derive(Debug, Clone)]
pub struct Block {
    pub content: Value,
    pub ended: bool,
    pub at: String,
    input: String,
}

impl Message {
    pub fn new(request_id: String, request_ref: String) -> Self {
        Self {
            id: uuid(),
            model: String::new(),
            usage: json!({}),
            stop_reason: None,
            blocks: Vec::new(),
            request_id,
            request_ref,
            ended: false,
        }
    }

    /// Takes one event of the stream.
    pub fn take(&mut self, event: &Value) {
        let index = event["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                let message = &event["message"];
                message["id"].as_str().unwrap_or_default().clone_into(&mut self.id);
                message["model"].as_str().unwrap_or_default().clone_into(&mut self.model);
                self.usage = message["usage"].clone();
            }
            "content_block_start" => self.blocks.push(Block {
                content: event["content_block"].clone(),
                ended: false,
                at: timestamp(),
                input: String::new(),
            }),
            "content_block_delta" => {
                if let Some(block) = index.and_then(|index| self.blocks.get_mut(index)) {
                    block.grow(&event["delta"]);
                }
            }
            "content_block_stop" => {
                if let Some(block) = index.and_then(|index| self.blocks.get_mut(index)) {
                    block.end();
                }
            }
            "message_delta" => {
                self.stop_reason = event["delta"]["stop_reason"].as_str().map(str::to_owned);
                if let Some(usage) = event["usage"].as_object() {
                    for (key, value) in usage {
                        self.usage[key] = value.clone();
                    }
                }
            }
            "message_stop" => self.ended = true,
            _ => {}
        }
    }

    /// A reply that was not streamed.
    pub fn whole(body: &Value, request_id: String, request_ref: String) -> Self {
        let mut message = Self::new(request_id, request_ref);
        message.take(&json!({"type": "message_start", "message": body}));
        for content in body["content"].as_array().into_iter().flatten() {
            message.blocks.push(Block {
                content: content.clone(),
                ended: true,
                at: timestamp(),
                input: String::new(),
            });
        }
        message.stop_reason = body["stop_reason"].as_str().map(str::to_owned);
        message.ended = true;
        message
    }

    /// The text of its last block: each block counts as a message of its own.
    pub fn text(&self) -> String {
        let mut texts = self.blocks.iter().rev().filter_map(|block| block.content["text"].as_str());
        texts.next().unwrap_or_default().to_owned()
    }

    pub fn tool_uses(&self) -> Vec<Value> {
        let uses = self.blocks.iter().filter(|block| block.content["type"] == "tool_use");
        uses.map(|block| block.content.clone()).collect()
    }

    pub fn contents(&self) -> Vec<Value> {
        self.blocks.iter().map(|block| block.content.clone()).collect()
    }

    /// True when something of it could be shown.
    pub fn has_output(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// The `message` of a record that holds only this block.
    pub fn with_block(&self, content: &Value, final_state: bool, is_332: bool) -> Value {
        let mut usage = self.usage.clone();
        usage["service_tier"] = json!("standard");
        for key in ["cache_creation_input_tokens", "cache_read_input_tokens"] {
            if usage[key].is_null() {
                usage[key] = json!(0);
            }
        }
        let mut message = json!({"id": self.id, "type": "message", "role": "assistant",
            "model": self.model, "content": [content], "stop_reason": Value::Null,
            "stop_sequence": null});
        if final_state {
            for (key, value) in [
                ("server_tool_use", json!({"web_search_requests": 0, "web_fetch_requests": 0})),
                (
                    "cache_creation",
                    json!({"ephemeral_1h_input_tokens": 0,
                    "ephemeral_5m_input_tokens": 0}),
                ),
                ("inference_geo", json!("")),
                ("iterations", json!([])),
                ("speed", json!("standard")),
            ] {
                usage[key] = value;
            }
            if is_332 {
                usage["output_tokens_details"] = json!({"thinking_tokens": 0});
                usage["fallback_credit"] = Value::Null;
            }
            message["stop_reason"] = json!(self.stop_reason);
            message["stop_details"] = Value::Null;
        }
        message["usage"] = usage;
        message
    }
}

impl Block {
    fn grow(&mut self, delta: &Value) {
        let mut append = |key: &str| {
            let more = delta[key].as_str().unwrap_or_default();
            let text = self.content[key].as_str().unwrap_or_default();
            self.content[key] = json!(format!("{text}{more}"));
        };
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => append("text"),
            "thinking_delta" => append("thinking"),
            "signature_delta" => append("signature"),
            "input_json_delta" => {
                self.input.push_str(delta["partial_json"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.at = timestamp();
        if self.content["type"] == "tool_use" && !self.input.is_empty() {
            self.content["input"] = serde_json::from_str(&self.input).unwrap_or_default();
        }
    }
}
