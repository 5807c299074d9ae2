//! Where the text of a cell is kept: its own, or shared with the session.

use std::borrow::Cow;
use std::sync::Arc;

use claw_runtime::session::{ContentBlock, ConversationMessage};
use claw_runtime::tools::ToolFacts;

use crate::sanitise;

/// Text of a cell. A loaded session shares its messages with the runtime: nothing is copied, and
/// the text is cleaned when it is laid out.
#[derive(Debug)]
pub enum Source {
    /// Clean text.
    Own(String),
    /// Block `block` of a message, as the session has it.
    Message { message: Arc<ConversationMessage>, block: usize },
}

impl Source {
    /// Keeps foreign text, cleaned.
    pub fn clean(text: &str) -> Self {
        Self::Own(sanitise::text(text).into_owned())
    }

    /// Keeps the output of a program, cleaned.
    pub fn clean_output(text: &str) -> Self {
        Self::Own(sanitise::output(text).into_owned())
    }

    /// The clean text.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Own(text) => Cow::Borrowed(text),
            Self::Message { message, block } => match message.blocks.get(*block) {
                Some(ContentBlock::Text { text }) => sanitise::text(text),
                Some(ContentBlock::Thinking { thinking, .. }) => sanitise::text(thinking),
                Some(ContentBlock::ToolUse { input, .. }) => sanitise::text(input),
                Some(ContentBlock::ToolResult { output, .. }) => sanitise::output(output),
                Some(ContentBlock::RedactedThinking { .. }) | None => Cow::Borrowed(""),
            },
        }
    }

    /// Facts of the tool result that this is.
    pub fn facts(&self) -> Option<&ToolFacts> {
        match self {
            Self::Own(_) => None,
            Self::Message { message, block } => match message.blocks.get(*block) {
                Some(ContentBlock::ToolResult { facts, .. }) => facts.as_ref(),
                _ => None,
            },
        }
    }
}
