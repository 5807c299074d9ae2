//! The events of one streamed answer of the Messages API, as live facts.
//!
//! They reach us on two ways, through the tap and inside the lines of stream-json, and mean the same
//! on both. An event that is not known, or not whole, gives no fact and no error: live facts are for
//! eyes, and the record that follows is the truth.

use serde::Deserialize;
use serde_json::Value;

use crate::fact::Fact;

/// Reads the events of one answer in order.
#[derive(Debug, Default)]
pub(crate) struct ApiEvents {
    /// Id of the message that streams; empty before its start.
    message: String,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: usize,
        content_block: Block,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: Ending,
    },
    MessageStop,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    id: String,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Thinking,
    RedactedThinking,
    ToolUse {
        id: String,
        name: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Ending {
    #[serde(default)]
    stop_reason: Option<String>,
}

impl ApiEvents {
    /// What one event says; `json` is its data, e.g. `{"type": "message_stop"}`.
    pub fn read(&mut self, json: &str) -> Option<Fact> {
        // A kind of event that we do not know may have any shape.
        self.event(serde_json::from_str(json).unwrap_or(Event::Other))
    }

    /// The same for one that was read from JSON before.
    pub fn read_value(&mut self, value: &Value) -> Option<Fact> {
        self.event(Event::deserialize(value).unwrap_or(Event::Other))
    }

    /// The message that streams.
    pub fn message(&self) -> Option<&str> {
        Some(self.message.as_str()).filter(|message| !message.is_empty())
    }

    fn event(&mut self, event: Event) -> Option<Fact> {
        if let Event::MessageStart { message: Start { id, model } } = event {
            self.message.clone_from(&id);
            self.stop_reason = None;
            return Some(Fact::MessageBegan { message: id, model });
        }
        if self.message.is_empty() {
            return None;
        }
        let message = self.message.clone();
        match event {
            Event::ContentBlockStart { index: block, content_block } => match content_block {
                Block::Thinking | Block::RedactedThinking => {
                    Some(Fact::ThinkingBegan { message, block })
                }
                Block::ToolUse { id, name } => {
                    Some(Fact::ToolUseBegan { message, block, id, name })
                }
                Block::Other => None,
            },
            Event::ContentBlockDelta { index: block, delta } => match delta {
                Delta::Text { text } => Some(Fact::TextDelta { message, block, text }),
                Delta::Thinking { thinking } => {
                    Some(Fact::ThinkingDelta { message, block, text: thinking })
                }
                Delta::Other => None,
            },
            Event::ContentBlockStop { index: block } => Some(Fact::BlockEnded { message, block }),
            Event::MessageDelta { delta } => {
                self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
                None
            }
            Event::MessageStop => {
                self.message.clear();
                Some(Fact::MessageEnded { message, stop_reason: self.stop_reason.take() })
            }
            Event::MessageStart { .. } | Event::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(events: &[&str]) -> Vec<Fact> {
        let mut reader = ApiEvents::default();
        events.iter().filter_map(|json| reader.read(json)).collect()
    }

    const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":1}}}"#;

    #[test]
    fn each_kind_of_event_gives_its_fact() {
        let message = || "msg_1".to_owned();
        let told = facts(&[
            START,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hi"}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":4}}"#,
            r#"{"type":"message_stop"}"#,
        ]);
        assert_eq!(
            told,
            [
                Fact::MessageBegan { message: message(), model: Some("m".to_owned()) },
                Fact::ThinkingBegan { message: message(), block: 0 },
                Fact::ThinkingDelta { message: message(), block: 0, text: "hm".to_owned() },
                Fact::BlockEnded { message: message(), block: 0 },
                Fact::TextDelta { message: message(), block: 1, text: "hi".to_owned() },
                Fact::ToolUseBegan {
                    message: message(),
                    block: 2,
                    id: "toolu_1".to_owned(),
                    name: "Bash".to_owned()
                },
                Fact::MessageEnded { message: message(), stop_reason: Some("tool_use".to_owned()) },
            ]
        );
    }

    #[test]
    fn what_is_not_known_or_not_whole_is_passed_over_and_the_rest_is_told() {
        let told = facts(&[
            r#"{"type":"message_stop"}"#,
            "not json",
            START,
            "{}",
            r#"{"type":"content_block_delta","index":"x"}"#,
            r#"{"type":"from_the_future","index":[1]}"#,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":1}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#,
        ]);
        assert_eq!(told.len(), 2, "{told:?}");
    }
}
