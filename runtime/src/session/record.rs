//! One line of a session file: claw-code's records, with what we add inside them.
//!
//! Our additions are extra fields of known records (`seq`, `timestamp_ms`, `blobs`, `facts`,
//! `partial`, `model`, `redacted_data`, `title`, `spent`), never new record types: the reference refuses a
//! file with a type that it does not know, but reads over fields.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::blob::{BlobDir, BlobRef, FIELD_LIMIT_CHARS, head_of_long};
use super::{
    ContentBlock, ConversationMessage, MessageRole, PartialReason, Session, SessionCompaction,
    SessionFork,
};
use crate::tools::ToolFacts;
use crate::usage::{SpentUsage, TokenUsage};

/// Takes secrets out of a text before it is written.
pub type Scrub = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The only version that there is.
const FORMAT_VERSION: u32 = 1;
/// Characters of a long tool input that its record shows.
const INPUT_PREVIEW_CHARS: usize = 4_096;

// Writing

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

#[derive(Serialize, Deserialize)]
struct ForkBody {
    #[serde(default)]
    parent_session_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch_name: Option<String>,
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
pub(super) struct Encoder<'a> {
    pub scrub: &'a Scrub,
    pub blobs: &'a mut BlobDir,
}

impl Encoder<'_> {
    pub(super) fn message(
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

    pub(super) fn meta(&self, session: &Session, title: Option<&str>) -> io::Result<Vec<u8>> {
        line(&MetaRecord {
            r#type: "session_meta",
            version: FORMAT_VERSION,
            session_id: &session.id,
            created_at_ms: session.created_at_ms,
            updated_at_ms: session.updated_at_ms,
            fork: session.fork.as_ref().map(|fork| ForkBody {
                parent_session_id: fork.parent_session_id.clone(),
                branch_name: fork.branch_name.as_deref().map(|name| (self.scrub)(name)),
            }),
            workspace_root: session.workspace_root.as_ref().map(|root| root.to_string_lossy()),
            model: session.model.as_deref(),
            title: title.map(|title| (self.scrub)(title)),
        })
    }

    pub(super) fn compaction(
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

    pub(super) fn prompt(&mut self, text: &str, timestamp_ms: u64) -> io::Result<Vec<u8>> {
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
        let clean = (self.scrub)(text);
        if clean == text { Cow::Borrowed(text) } else { Cow::Owned(clean) }
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
                let clean = (self.scrub)(text);
                let changed = clean != *text;
                *text = clean;
                changed
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

/// Valid JSON that says what a broken tool input was.
fn stand_in_for_broken_input(broken: &str) -> String {
    if broken.trim().is_empty() {
        return "{}".to_owned();
    }
    serde_json::json!({ "incomplete_input": broken }).to_string()
}

// Reading

/// A line as it stands in the file. Flat, because an enum by `type` would buffer every record.
#[derive(Deserialize)]
pub(super) struct RawRecord<'a> {
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
pub(super) fn is_foreign_record(line: &[u8]) -> bool {
    const KNOWN: [&str; 4] = ["session_meta", "message", "compaction", "prompt_history"];
    serde_json::from_slice::<RecordType>(line)
        .is_ok_and(|record| !KNOWN.contains(&record.r#type.as_str()))
}

#[derive(Deserialize)]
pub(super) struct RawMessage<'a> {
    role: String,
    #[serde(borrow)]
    blocks: Vec<RawBlock<'a>>,
    usage: Option<TokenUsage>,
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
pub(super) struct Meta {
    pub session_id: Option<String>,
    pub created_at_ms: Option<u64>,
    pub updated_at_ms: Option<u64>,
    pub fork: Option<SessionFork>,
    pub workspace_root: Option<String>,
    pub model: Option<String>,
    pub title: Option<String>,
}

pub(super) enum Record {
    Meta(Meta),
    Message(ConversationMessage),
    Compaction(SessionCompaction, Vec<SpentUsage>),
    Prompt(String),
    /// A type, role or set of blocks that we do not know.
    Unknown,
}

/// Turns lines into values and counts what could not be made whole.
pub(super) struct Decoder<'a> {
    pub blobs: &'a BlobDir,
    /// Long texts whose side file is gone: their beginning is shown.
    pub missing_blobs: usize,
    /// Blocks of a type that we do not know.
    pub unknown_blocks: usize,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(blobs: &'a BlobDir) -> Self {
        Self { blobs, missing_blobs: 0, unknown_blocks: 0 }
    }

    pub(super) fn record(&mut self, raw: RawRecord<'_>) -> Record {
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
    pub(super) fn message(&mut self, raw: RawMessage<'_>) -> Option<ConversationMessage> {
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
        Some(ConversationMessage { role, blocks, usage: raw.usage, model: raw.model, partial })
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
