//! Values to lines. Long texts go to the side folder on the way, secrets nowhere.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use serde_json::Value;

use super::super::blob::{BlobDir, BlobRef, FIELD_LIMIT_CHARS, head_of_long};
use super::super::{ContentBlock, ConversationMessage, PartialReason, Session, SessionCompaction};
use super::{ForkBody, stand_in_for_broken_input};
use crate::redact::Redactor;
use crate::tools::ToolFacts;
use crate::usage::{SpentUsage, TokenUsage};

/// The only version that there is.
const FORMAT_VERSION: u32 = 1;
/// Characters of a long tool input that its record shows.
const INPUT_PREVIEW_CHARS: usize = 4_096;

type Blobs = BTreeMap<&'static str, BlobRef>;

#[derive(Serialize)]
struct MessageRecord<'a> {
    r#type: &'static str,
    seq: u64,
    timestamp_ms: u64,
    message: MessageBody<'a>,
}

#[derive(Serialize)]
struct MessageBody<'a> {
    role: &'static str,
    blocks: Vec<BlockBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a TokenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<&'static str>,
}

#[derive(Serialize)]
struct BlockBody<'a> {
    #[serde(flatten)]
    kind: BlockKind<'a>,
    #[serde(skip_serializing_if = "Blobs::is_empty")]
    blobs: Blobs,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockKind<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Thinking {
        thinking: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        redacted_data: Option<&'a str>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Cow<'a, str>,
    },
    ToolResult {
        tool_use_id: &'a str,
        tool_name: &'a str,
        output: Cow<'a, str>,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        facts: Option<Value>,
    },
}

#[derive(Serialize)]
struct MetaRecord<'a> {
    r#type: &'static str,
    version: u32,
    session_id: &'a str,
    created_at_ms: u64,
    updated_at_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fork: Option<ForkBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_root: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

#[derive(Serialize)]
struct CompactionRecord<'a> {
    r#type: &'static str,
    count: u32,
    removed_message_count: usize,
    summary: Cow<'a, str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    spent: &'a [SpentUsage],
    #[serde(skip_serializing_if = "Blobs::is_empty")]
    blobs: Blobs,
}

#[derive(Serialize)]
struct PromptRecord<'a> {
    r#type: &'static str,
    timestamp_ms: u64,
    text: Cow<'a, str>,
    #[serde(skip_serializing_if = "Blobs::is_empty")]
    blobs: Blobs,
}

/// Turns values into lines (without the line end). Long texts go to the side folder on the way,
/// secrets nowhere.
pub(in crate::session) struct Encoder<'a> {
    pub redactor: &'a Redactor,
    pub blobs: &'a mut BlobDir,
}

impl Encoder<'_> {
    pub(in crate::session) fn message(
        &mut self,
        message: &ConversationMessage,
        seq: u64,
        timestamp_ms: u64,
    ) -> io::Result<Vec<u8>> {
        let blocks =
            message.blocks.iter().map(|block| self.block(block)).collect::<io::Result<_>>()?;
        let body = MessageBody {
            role: message.role.as_str(),
            blocks,
            usage: message.usage.as_ref(),
            model: message.model.as_deref(),
            partial: message.partial.map(PartialReason::as_str),
        };
        line(&MessageRecord { r#type: "message", seq, timestamp_ms, message: body })
    }

    pub(in crate::session) fn meta(
        &self,
        session: &Session,
        title: Option<&str>,
    ) -> io::Result<Vec<u8>> {
        line(&MetaRecord {
            r#type: "session_meta",
            version: FORMAT_VERSION,
            session_id: &session.id,
            created_at_ms: session.created_at_ms,
            updated_at_ms: session.updated_at_ms,
            fork: session.fork.as_ref().map(|fork| ForkBody {
                parent_session_id: fork.parent_session_id.clone(),
                branch_name: fork.branch_name.as_deref().map(|name| self.clean(name).into_owned()),
            }),
            workspace_root: session.workspace_root.as_ref().map(|root| root.to_string_lossy()),
            model: session.model.as_deref(),
            title: title.map(|title| self.clean(title).into_owned()),
        })
    }

    pub(in crate::session) fn compaction(
        &mut self,
        compaction: &SessionCompaction,
        spent: &[SpentUsage],
    ) -> io::Result<Vec<u8>> {
        let mut blobs = Blobs::new();
        let summary = self.field("summary", &compaction.summary, &mut blobs)?;
        line(&CompactionRecord {
            r#type: "compaction",
            count: compaction.count,
            removed_message_count: compaction.removed_message_count,
            summary,
            spent,
            blobs,
        })
    }

    pub(in crate::session) fn prompt(
        &mut self,
        text: &str,
        timestamp_ms: u64,
    ) -> io::Result<Vec<u8>> {
        let mut blobs = Blobs::new();
        let text = self.field("text", text, &mut blobs)?;
        line(&PromptRecord { r#type: "prompt_history", timestamp_ms, text, blobs })
    }

    fn block<'b>(&mut self, block: &'b ContentBlock) -> io::Result<BlockBody<'b>> {
        let mut blobs = Blobs::new();
        let kind = match block {
            ContentBlock::Text { text } => {
                BlockKind::Text { text: self.field("text", text, &mut blobs)? }
            }
            ContentBlock::Thinking { thinking, signature } => BlockKind::Thinking {
                thinking: self.field("thinking", thinking, &mut blobs)?,
                signature: signature.as_deref(),
                redacted_data: None,
            },
            ContentBlock::RedactedThinking { data } => BlockKind::Thinking {
                thinking: Cow::Borrowed(""),
                signature: None,
                redacted_data: Some(data),
            },
            ContentBlock::ToolUse { id, name, input } => {
                BlockKind::ToolUse { id, name, input: self.input(input, &mut blobs)? }
            }
            ContentBlock::ToolResult { tool_use_id, tool_name, output, is_error, facts } => {
                BlockKind::ToolResult {
                    tool_use_id,
                    tool_name,
                    output: self.field("output", output, &mut blobs)?,
                    is_error: *is_error,
                    facts: self.facts(facts.as_ref(), &mut blobs)?,
                }
            }
        };
        Ok(BlockBody { kind, blobs })
    }

    fn field<'t>(
        &mut self,
        name: &'static str,
        text: &'t str,
        blobs: &mut Blobs,
    ) -> io::Result<Cow<'t, str>> {
        let clean = self.clean(text);
        let Some(head) = head_of_long(&clean, FIELD_LIMIT_CHARS) else { return Ok(clean) };
        blobs.insert(name, self.blobs.keep(&clean)?);
        let left_out = clean.len() - head.len();
        Ok(Cow::Owned(format!("{head}\n[cut here: {left_out} more bytes are in the side file]")))
    }

    /// The text without secrets; borrowed when it had none.
    fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.redact(text)
    }

    /// Tool input stays JSON whatever is taken out of it.
    fn input<'t>(&mut self, input: &'t str, blobs: &mut Blobs) -> io::Result<Cow<'t, str>> {
        let clean = match serde_json::from_str::<Value>(input) {
            Ok(mut value) => {
                let had_secret = self.clean_value(&mut value);
                if had_secret { Cow::Owned(value.to_string()) } else { Cow::Borrowed(input) }
            }
            Err(_) => Cow::Owned(stand_in_for_broken_input(&self.clean(input))),
        };
        if head_of_long(&clean, FIELD_LIMIT_CHARS).is_none() {
            return Ok(clean);
        }
        blobs.insert("input", self.blobs.keep(&clean)?);
        let preview = head_of_long(&clean, INPUT_PREVIEW_CHARS).unwrap_or(&clean);
        let stand_in = serde_json::json!({
            "cut": format!("{} bytes of input are in the side file", clean.len()),
            "begins": preview,
        });
        Ok(Cow::Owned(stand_in.to_string()))
    }

    fn facts(&mut self, facts: Option<&ToolFacts>, blobs: &mut Blobs) -> io::Result<Option<Value>> {
        let Some(facts) = facts else { return Ok(None) };
        let mut value = serde_json::to_value(facts)?;
        self.clean_value(&mut value);
        let text = value.to_string();
        if head_of_long(&text, FIELD_LIMIT_CHARS).is_none() {
            return Ok(Some(value));
        }
        blobs.insert("facts", self.blobs.keep(&text)?);
        Ok(None)
    }

    /// Takes secrets out of every string; true when there was one.
    fn clean_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let Cow::Owned(clean) = self.clean(text) else { return false };
                *text = clean;
                true
            }
            // `|` and not `any`: every element must be cleaned.
            Value::Array(items) => {
                items.iter_mut().fold(false, |changed, item| self.clean_value(item) | changed)
            }
            Value::Object(fields) => {
                fields.values_mut().fold(false, |changed, item| self.clean_value(item) | changed)
            }
            _ => false,
        }
    }
}

fn line<T: Serialize>(record: &T) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(record)?;
    bytes.push(b'\n');
    Ok(bytes)
}
