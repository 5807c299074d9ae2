//! Where a conversation is shown and where its questions are asked: the screen, or stream-json.

use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use crate::conversation::Agent;
use crate::message::Message;

/// A question: may this tool run?
#[derive(Debug, Clone)]
pub struct Question {
    pub tool: String,
    pub input: Value,
    pub tool_use_id: String,
    pub suggestions: Option<Value>,
    /// Only a person can answer it: its answer is a new input.
    pub needs_person: bool,
    /// The sub-agent that asks.
    pub agent: Option<String>,
}

/// How the one in front answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Yes {
        updated_input: Option<Value>,
    },
    /// With the words for the model, if the front has a way to say them.
    No {
        message: Option<String>,
    },
    /// Esc.
    Stop,
    /// There is nobody to ask.
    Nobody,
}

/// All methods but `ask` are told in the order of the story.
pub trait Front {
    fn prompt(&self, _text: &str) {}
    fn requesting(&self) {}
    fn api_event(&self, _event: &Value, _message: &Message, _tool_use: Option<&str>) {}
    fn block(&self, _message: &Message, _content: &Value, _tool_use: Option<&str>) {}
    fn tool_result(&self, _record: &Value, _tool_use: Option<&str>) {}
    fn retry(&self, _attempt: u32, _max: u32, _delay_ms: u64, _status: Option<u16>, _class: &str) {}
    fn notice(&self, _text: &str) {}
    /// The turn ends with words of the CLI.
    fn failed(&self, _text: &str, _class: &str, _status: Option<u16>) {}
    /// The CLI's own compaction begins, and how it ended.
    fn compacting(&self) {}
    fn compacted(&self, _metadata: &Value, _words: &str) {}
    /// A sub-agent begins, and its end.
    fn agent_began(&self, _agent: &Agent, _description: &str, _prompt: &str) {}
    fn agent_ended(&self, _agent: &Agent, _description: &str, _last: &str) {}
    /// A block that was stopped in the middle.
    fn aborted(&self, _message: &Message, _content: &Value) {}
    /// Everything of a message that was stopped has been told.
    fn aborted_end(&self, _message: &Message) {}
    fn replayed(&self, _text: &str, _uuid: &str) {}
    /// Dropping the future takes the question back.
    fn ask(&self, question: Question) -> LocalBoxFuture<'static, Answer>;
}
