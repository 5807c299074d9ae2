//! Lines to values. Flat shapes, because an enum by `type` would buffer every record.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::blob::{BlobDir, BlobRef};
use super::super::{
    ContentBlock, ConversationMessage, MessageRole, PartialReason, SessionCompaction, SessionFork,
};
use super::{ForkBody, stand_in_for_broken_input};
use crate::tools::ToolFacts;
use crate::usage::SpentUsage;

/// A line as it stands in the file.
#[derive(Deserialize)]
pub(in crate::session) struct RawRecord<'a> {
    pub r#type: String,
    pub seq: Option<u64>,
    pub timestamp_ms: Option<u64>,
    #[serde(borrow)]
    message: Option<RawMessage<'a>>,
    session_id: Option<String>,
    created_at_ms: Option<u64>,
    updated_at_ms: Option<u64>,
    fork: Option<ForkBody>,
    workspace_root: Option<String>,
    model: Option<String>,
    title: Option<String>,
    count: Option<u32>,
    removed_message_count: Option<usize>,
    summary: Option<String>,
    #[serde(default)]
    spent: Vec<SpentUsage>,
    text: Option<String>,
    blobs: Option<BTreeMap<String, BlobRef>>,
}

/// Only what tells whether a line is a record at all.
#[derive(Deserialize)]
struct RecordType {
    r#type: String,
}

/// Whether a line that is no record of ours is a whole record of a type that we do not know.
pub(in crate::session) fn is_foreign_record(line: &[u8]) -> bool {
    const KNOWN: [&str; 4] = ["session_meta", "message", "compaction", "prompt_history"];
    serde_json::from_slice::<RecordType>(line)
        .is_ok_and(|record| !KNOWN.contains(&record.r#type.as_str()))
}

#[derive(Deserialize)]
pub(in crate::session) struct RawMessage<'a> {
    role: String,
    #[serde(borrow)]
    blocks: Vec<RawBlock<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    model: Option<String>,
    partial: Option<String>,
}

#[derive(Deserialize)]
struct RawBlock<'a> {
    r#type: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    redacted_data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    tool_name: Option<String>,
    output: Option<String>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow)]
    facts: Option<&'a RawValue>,
    blobs: Option<BTreeMap<String, BlobRef>>,
}

/// Facts of a `session_meta` record.
#[derive(Debug, Default)]
pub(in crate::session) struct Meta {
    pub session_id: Option<String>,
    pub created_at_ms: Option<u64>,
    pub updated_at_ms: Option<u64>,
    pub fork: Option<SessionFork>,
    pub workspace_root: Option<String>,
    pub model: Option<String>,
    pub title: Option<String>,
}

pub(in crate::session) enum Record {
    Meta(Meta),
    Message(ConversationMessage),
    Compaction(SessionCompaction, Vec<SpentUsage>),
    Prompt(String),
    /// A type, role or set of blocks that we do not know.
    Unknown,
}

/// Turns lines into values and counts what could not be made whole.
pub(in crate::session) struct Decoder<'a> {
    pub blobs: &'a BlobDir,
    /// Long texts whose side file is gone: their beginning is shown.
    pub missing_blobs: usize,
    /// Blocks of a type that we do not know.
    pub unknown_blocks: usize,
}

impl<'a> Decoder<'a> {
    pub(in crate::session) fn new(blobs: &'a BlobDir) -> Self {
        Self { blobs, missing_blobs: 0, unknown_blocks: 0 }
    }

    pub(in crate::session) fn record(&mut self, raw: RawRecord<'_>) -> Record {
        let blobs = raw.blobs;
        match raw.r#type.as_str() {
            "session_meta" => Record::Meta(Meta {
                session_id: raw.session_id,
                created_at_ms: raw.created_at_ms,
                updated_at_ms: raw.updated_at_ms,
                fork: raw.fork.map(|fork| SessionFork {
                    parent_session_id: fork.parent_session_id,
                    branch_name: fork.branch_name,
                }),
                workspace_root: raw.workspace_root,
                model: raw.model,
                title: raw.title,
            }),
            "message" => raw
                .message
                .and_then(|message| self.message(message))
                .map_or(Record::Unknown, Record::Message),
            "compaction" => {
                let compaction = SessionCompaction {
                    count: raw.count.unwrap_or(1),
                    removed_message_count: raw.removed_message_count.unwrap_or(0),
                    summary: self.whole("summary", raw.summary, blobs.as_ref()),
                };
                Record::Compaction(compaction, raw.spent)
            }
            "prompt_history" => Record::Prompt(self.whole("text", raw.text, blobs.as_ref())),
            _ => Record::Unknown,
        }
    }

    /// None for a role that we do not know, or when no block is left.
    pub(in crate::session) fn message(
        &mut self,
        raw: RawMessage<'_>,
    ) -> Option<ConversationMessage> {
        let role = MessageRole::from_name(&raw.role)?;
        let had_blocks = !raw.blocks.is_empty();
        let blocks: Vec<ContentBlock> =
            raw.blocks.into_iter().filter_map(|block| self.block(block)).collect();
        if had_blocks && blocks.is_empty() {
            return None;
        }
        let partial = match raw.partial.as_deref() {
            Some("cancelled") => Some(PartialReason::Cancelled),
            Some(_) => Some(PartialReason::Cut),
            None => None,
        };
        let usage = raw.usage.and_then(|usage| serde_json::from_str(usage.get()).ok());
        Some(ConversationMessage { role, blocks, usage, model: raw.model, partial })
    }

    fn block(&mut self, raw: RawBlock<'_>) -> Option<ContentBlock> {
        let blobs = raw.blobs.as_ref();
        let block = match raw.r#type.as_str() {
            "text" => ContentBlock::Text { text: self.whole("text", raw.text, blobs) },
            "thinking" => match raw.redacted_data {
                Some(data) => ContentBlock::RedactedThinking { data },
                None => ContentBlock::Thinking {
                    thinking: self.whole("thinking", raw.thinking, blobs),
                    signature: raw.signature,
                },
            },
            "tool_use" => ContentBlock::ToolUse {
                id: raw.id?,
                name: raw.name?,
                input: valid_input(self.whole("input", raw.input.map(input_text), blobs)),
            },
            "tool_result" => ContentBlock::ToolResult {
                tool_use_id: raw.tool_use_id?,
                tool_name: raw.tool_name.unwrap_or_default(),
                facts: self.facts(raw.facts, blobs),
                output: self.whole("output", raw.output, blobs),
                is_error: raw.is_error,
            },
            _ => {
                self.unknown_blocks += 1;
                return None;
            }
        };
        Some(block)
    }

    /// The field, or the whole of it from the side folder.
    fn whole(
        &mut self,
        name: &str,
        field: Option<String>,
        blobs: Option<&BTreeMap<String, BlobRef>>,
    ) -> String {
        let field = field.unwrap_or_default();
        let Some(blob) = blobs.and_then(|blobs| blobs.get(name)) else { return field };
        self.blobs.fetch(blob).unwrap_or_else(|| {
            self.missing_blobs += 1;
            field
        })
    }

    fn facts(
        &mut self,
        raw: Option<&RawValue>,
        blobs: Option<&BTreeMap<String, BlobRef>>,
    ) -> Option<ToolFacts> {
        match raw {
            Some(raw) => serde_json::from_str(raw.get()).ok(),
            None if blobs.is_some_and(|blobs| blobs.contains_key("facts")) => {
                serde_json::from_str(&self.whole("facts", None, blobs)).ok()
            }
            None => None,
        }
    }
}

/// The reference writes input as a string that holds JSON; an object as such is taken too.
fn input_text(raw: &RawValue) -> String {
    serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// Tool input goes back to the provider, which refuses anything but an object.
fn valid_input(input: String) -> String {
    let is_object = input.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(&input).is_ok();
    if is_object { input } else { stand_in_for_broken_input(&input) }
}
