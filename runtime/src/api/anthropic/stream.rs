//! The events of the Messages API, into a draft.
//!
//! Blocks are told apart by their index, so that they may come interleaved. Events, blocks and
//! deltas that we do not know are skipped: the answer goes on without them.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::api::StopReason;
use crate::api::draft::{Draft, PieceId};
use crate::api::exchange::{Fault, Mapper, Progress};
use crate::api::failure::ProviderError;

/// Events whose data must be readable; data of any other may be anything.
const KNOWN_EVENTS: &[&str] = &[
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

pub(super) struct MessageReader<'a> {
    pub draft: Draft<'a>,
    /// Open blocks by their index.
    open: HashMap<u64, PieceId>,
    stopped: bool,
}

impl<'a> MessageReader<'a> {
    pub fn new(draft: Draft<'a>) -> Self {
        Self { draft, open: HashMap::new(), stopped: false }
    }

    fn start_block(&mut self, index: u64, block: Block) {
        let piece = match block {
            Block::Text { text } => {
                let piece = self.draft.open_text();
                self.draft.push(piece, &text);
                piece
            }
            Block::Thinking { thinking, signature } => {
                let piece = self.draft.open_thinking();
                self.draft.push(piece, &thinking);
                if !signature.is_empty() {
                    self.draft.sign(piece, &signature);
                }
                piece
            }
            Block::RedactedThinking { data } => return self.draft.add_redacted(data),
            Block::ToolUse { id, name, input } => {
                let piece = self.draft.open_tool(id, name);
                // Normally `{}`, and the input follows in deltas.
                if input.as_object().is_some_and(|input| !input.is_empty()) {
                    self.draft.push(piece, &input.to_string());
                }
                piece
            }
            Block::Unknown => return,
        };
        self.open.insert(index, piece);
    }

    fn add_delta(&mut self, index: u64, delta: &Delta) {
        let Some(piece) = self.open.get(&index).copied() else { return };
        match delta {
            Delta::Text { text } => self.draft.push(piece, text),
            Delta::Thinking { thinking } => self.draft.push(piece, thinking),
            Delta::Input { partial_json } => self.draft.push(piece, partial_json),
            Delta::Signature { signature } => self.draft.sign(piece, signature),
            Delta::Unknown => {}
        }
    }

    fn merge_usage(&mut self, usage: &Usage) {
        let merge = |total: &mut u64, value: Option<u64>| {
            if let Some(value) = value {
                *total = value;
            }
        };
        let total = &mut self.draft.usage;
        merge(&mut total.input_tokens, usage.input);
        merge(&mut total.output_tokens, usage.output);
        merge(&mut total.cache_creation_input_tokens, usage.cache_creation);
        merge(&mut total.cache_read_input_tokens, usage.cache_read);
    }
}

impl Mapper for MessageReader<'_> {
    fn accept(&mut self, name: &str, data: &str) -> Result<Progress, Fault> {
        let event: Event = match serde_json::from_str(data) {
            Ok(event) => event,
            Err(_) if !name.is_empty() && !KNOWN_EVENTS.contains(&name) => {
                return Ok(Progress::Data);
            }
            Err(error) => {
                let name = if name.is_empty() { "nameless" } else { name };
                let message = format!("a {name} event is not what the API documents: {error}");
                return Err(Fault::Malformed(message));
            }
        };
        match event {
            Event::MessageStart { message } => {
                self.merge_usage(&message.usage);
                if let Some(model) = message.model {
                    self.draft.model = model;
                }
            }
            Event::ContentBlockStart { index, content_block } => {
                self.start_block(index, content_block);
            }
            Event::ContentBlockDelta { index, delta } => self.add_delta(index, &delta),
            Event::ContentBlockStop { index } => {
                if let Some(piece) = self.open.remove(&index) {
                    self.draft.close(piece);
                }
            }
            Event::MessageDelta { delta, usage } => {
                self.merge_usage(&usage);
                if let Some(reason) = delta.stop_reason {
                    self.draft.stop = Some(stop_reason(reason));
                }
            }
            Event::MessageStop => {
                self.stopped = true;
                return Ok(Progress::Complete);
            }
            Event::Error { error } => {
                return Err(Fault::Provider(ProviderError::from_value(&error)));
            }
            Event::Ping => return Ok(Progress::KeepAlive),
            Event::Unknown => {}
        }
        Ok(Progress::Data)
    }

    fn complete_at_end(&self) -> bool {
        self.stopped
    }
}

fn stop_reason(reason: String) -> StopReason {
    match reason.as_str() {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "stop_sequence" => StopReason::StopSequence,
        "max_tokens" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::PauseTurn,
        _ => StopReason::Other(reason),
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        #[serde(default)]
        delta: MessageDelta,
        #[serde(default)]
        usage: Usage,
    },
    MessageStop,
    Ping,
    Error {
        #[serde(default)]
        error: Value,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Start {
    model: Option<String>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    #[serde(other)]
    Unknown,
}

#[derive(Default, Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Usage {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_creation: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: Option<u64>,
}
