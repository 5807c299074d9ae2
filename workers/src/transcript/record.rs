//! One line of a transcript -> what it says, as facts.
//!
//! Lenient: a field that is missing or of another shape costs its fact, never the record; only a line
//! that is no JSON object is an error. Refuses to understand words: whose words a record holds, and
//! what failed, is read from its fields.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::fact::Fact;

// The same shapes come in the lines of stream-json.
pub(crate) use assistant::{content, failure, usage};
pub(crate) use system::quota;
pub(crate) use tool_facts::{agent, facts as tool_facts};

mod assistant;
mod notification;
mod system;
mod tool_facts;
mod user;

/// Kinds that keep the CLI's own books. They say nothing about the session, some are huge.
const BOOKKEEPING: &[&str] = &[
    "agent-name",
    "ai-title",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "custom-title",
    "file-history-delta",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "progress",
    "summary",
    "tools-used",
];

/// The same among attachments: what the CLI adds to a request for the model.
const ADDED_FOR_THE_MODEL: &[&str] = &[
    "agent_listing_delta",
    "date",
    "deferred_tools_delta",
    "environment",
    "hook_permission_decision",
    "model",
    "plan_mode",
    "plan_mode_exit",
    "prompt_snapshot",
    "remote_session_change",
    "session_context",
    "skill_listing",
];

/// Characters of a name that is passed on.
const NAME: usize = 64;

/// What one line says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// The record's own id. Bookkeeping has none.
    pub uuid: Option<String>,
    /// The prompt in whose turn it was written; only user records say it.
    pub prompt_id: Option<String>,
    pub session_id: Option<String>,
    /// It belongs to a sub-agent, not to the session's own story.
    pub sidechain: bool,
    /// In order. None for bookkeeping. Each block of a message carries the usage of the *whole*
    /// message, as far as the record knew it: it is to be counted once per message id, the last one.
    pub facts: Vec<Fact>,
}

/// The line is no record.
#[derive(Debug, Error)]
pub enum RecordError {
    #[error("a line of the transcript is not JSON: {0}")]
    Json(String),
    #[error("a line of the transcript is JSON, and no object")]
    NotAnObject,
}

/// What decides whether the rest of the line is looked at. Everything else is passed over unbuilt.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Peek<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default, borrow)]
    attachment: Option<PeekAttachment<'a>>,
}

#[derive(Deserialize)]
struct PeekAttachment<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

impl Record {
    /// Parses one line, without its LF.
    pub fn parse(line: &[u8]) -> Result<Self, RecordError> {
        // A sequence would be taken for the fields in their order.
        if line.trim_ascii_start().first() == Some(&b'[') {
            return Err(RecordError::NotAnObject);
        }
        match serde_json::from_slice::<Peek<'_>>(line) {
            Ok(peek) if !peek.speaks() => Ok(peek.into_record()),
            // Shapes that are not expected are looked at as a whole, too.
            Ok(_) | Err(_) => {
                let value: Value = serde_json::from_slice(line)
                    .map_err(|error| RecordError::Json(error.to_string()))?;
                if !value.is_object() {
                    return Err(RecordError::NotAnObject);
                }
                Ok(Self::from_value(&value))
            }
        }
    }

    fn from_value(value: &Value) -> Self {
        let mut record = Self {
            uuid: owned(value, "uuid"),
            prompt_id: owned(value, "promptId"),
            session_id: owned(value, "sessionId").or_else(|| owned(value, "session_id")),
            sidechain: value["isSidechain"] == true,
            ..Self::default()
        };
        record.facts = match text(value, "type") {
            "user" => user::facts(value),
            "assistant" => assistant::facts(value),
            "system" => system::facts(value),
            "queue-operation" => system::queue(value),
            "rate_limit_event" => system::rate_limit(value).into_iter().collect(),
            "attachment" => system::attachment(value),
            kind if BOOKKEEPING.contains(&kind) => Vec::new(),
            kind => vec![unknown(kind)],
        };
        record
    }
}

impl Peek<'_> {
    /// Whether the record is worth building.
    fn speaks(&self) -> bool {
        match self.kind.as_ref() {
            "attachment" => self
                .attachment
                .as_ref()
                .is_none_or(|it| matches!(it.kind.as_ref(), "queued_command" | "plan_mode")),
            "user" | "assistant" | "system" | "queue-operation" | "rate_limit_event" => true,
            _ => false,
        }
    }

    fn into_record(self) -> Record {
        let kind = match &self.attachment {
            Some(it) if self.kind == "attachment" => {
                let known = ADDED_FOR_THE_MODEL.contains(&it.kind.as_ref());
                (!known).then(|| format!("attachment/{}", it.kind))
            }
            _ if BOOKKEEPING.contains(&self.kind.as_ref()) => None,
            _ => Some(self.kind.into_owned()),
        };
        Record {
            uuid: self.uuid,
            session_id: self.session_id,
            sidechain: self.is_sidechain,
            facts: kind.iter().map(|kind| unknown(kind)).collect(),
            ..Record::default()
        }
    }
}

fn unknown(kind: &str) -> Fact {
    let kind = if kind.is_empty() { "nameless" } else { kind };
    Fact::Unknown { kind: kind.chars().take(NAME).collect() }
}

/// A text field; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

pub(crate) fn owned(value: &Value, field: &str) -> Option<String> {
    value[field].as_str().map(str::to_owned)
}

/// The words of a content: a string, or its text blocks, one below the other.
pub(crate) fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| text(block, "type") == "text");
            texts.map(|block| text(block, "text")).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
