//! The conversation in memory. Field names follow claw-code's records; serialisation is in `store`.

use std::path::PathBuf;
use std::sync::Arc;

use crate::tools::ToolFacts;
use crate::usage::{SpentUsage, TokenUsage};

/// Tokens of a text by the rule of thumb that the reference uses too: four bytes a token.
pub fn estimate_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    System,
    User,
    Assistant,
    Tool,
}

impl MessageRole {
    /// The name in session files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// The role of that name; none for a name that is not known.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::System, Self::User, Self::Assistant, Self::Tool]
            .into_iter()
            .find(|role| role.as_str() == name)
    }
}

/// One block of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum ContentBlock {
    Text {
        text: String,
    },
    /// Signature kept verbatim: the provider checks it.
    Thinking {
        thinking: String,
        signature: Option<String>,
    },
    /// Thinking that the provider hides, kept verbatim for the next request.
    RedactedThinking {
        data: String,
    },
    /// `input` is JSON text, always valid.
    ToolUse {
        id: String,
        name: String,
        input: String,
    },
    ToolResult {
        tool_use_id: String,
        tool_name: String,
        output: String,
        is_error: bool,
        facts: Option<ToolFacts>,
    },
}

/// Why a message is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialReason {
    /// The person stopped it.
    Cancelled,
    /// The stream broke off.
    Cut,
}

impl ContentBlock {
    /// Estimated size of this block in a request.
    pub fn estimated_tokens(&self) -> u64 {
        match self {
            Self::Text { text } => estimate_tokens(text),
            Self::Thinking { thinking, signature } => {
                estimate_tokens(thinking) + signature.as_deref().map_or(0, estimate_tokens)
            }
            Self::RedactedThinking { data } => estimate_tokens(data),
            Self::ToolUse { id, name, input } => {
                estimate_tokens(id) + estimate_tokens(name) + estimate_tokens(input)
            }
            Self::ToolResult { tool_use_id, tool_name, output, .. } => {
                estimate_tokens(tool_use_id) + estimate_tokens(tool_name) + estimate_tokens(output)
            }
        }
    }
}

impl PartialReason {
    /// The name in session files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Cut => "cut",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ConversationMessage {
    pub role: MessageRole,
    pub blocks: Vec<ContentBlock>,
    /// Tokens of the call that produced it (assistant messages).
    pub usage: Option<TokenUsage>,
    /// The model that wrote it (assistant messages), for cost on resume.
    pub model: Option<String>,
    /// Set when the message broke off.
    pub partial: Option<PartialReason>,
}

impl ConversationMessage {
    /// A message without usage, model or partial mark.
    pub fn new(role: MessageRole, blocks: Vec<ContentBlock>) -> Self {
        Self { role, blocks, usage: None, model: None, partial: None }
    }

    /// A user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(MessageRole::User, vec![ContentBlock::Text { text: text.into() }])
    }

    /// The text blocks, joined.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            if let ContentBlock::Text { text: part } = block {
                text.push_str(part);
            }
        }
        text
    }

    /// Estimated size of this message in a request.
    pub fn estimated_tokens(&self) -> u64 {
        self.blocks.iter().map(ContentBlock::estimated_tokens).sum()
    }

    /// Ids, names and inputs of the tool uses in this message.
    pub fn tool_uses(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.blocks.iter().filter_map(|block| match block {
            ContentBlock::ToolUse { id, name, input } => {
                Some((id.as_str(), name.as_str(), input.as_str()))
            }
            _ => None,
        })
    }
}

/// What compaction left of an earlier part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCompaction {
    /// How often the session was compacted.
    pub count: u32,
    /// Messages removed by the last compaction.
    pub removed_message_count: usize,
    pub summary: String,
}

/// Where a fork came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFork {
    pub parent_session_id: String,
    pub branch_name: Option<String>,
}

/// A conversation. Messages are shared, so that handing them to a request or a view costs nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    pub id: String,
    pub messages: Vec<Arc<ConversationMessage>>,
    pub compaction: Option<SessionCompaction>,
    /// Tokens of calls whose messages compaction removed: the cost of a session stays whole.
    pub spent: Vec<SpentUsage>,
    pub fork: Option<SessionFork>,
    pub workspace_root: Option<PathBuf>,
    pub model: Option<String>,
    pub created_at_ms: u64,
    pub updated_at_ms: u64,
}

impl Session {
    /// An empty conversation that begins at `now_ms` (milliseconds since 1970).
    pub fn new(id: impl Into<String>, now_ms: u64) -> Self {
        Self {
            id: id.into(),
            messages: Vec::new(),
            compaction: None,
            spent: Vec::new(),
            fork: None,
            workspace_root: None,
            model: None,
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
        }
    }

    /// Estimated size of all messages in a request. The system prompt and the tools come on top.
    pub fn estimated_tokens(&self) -> u64 {
        self.messages.iter().map(|message| message.estimated_tokens()).sum()
    }
}
