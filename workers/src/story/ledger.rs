//! What belongs into the session, made from records only.

use std::collections::BTreeSet;

use claw_runtime::session::{ContentBlock, ConversationMessage, MessageRole, PartialReason};
use claw_runtime::tools::ToolFacts;
use claw_runtime::usage::TokenUsage;

/// The model name of messages that the CLI made up itself.
const SYNTHETIC: &str = "<synthetic>";

/// The messages of one turn, in the order in which an API accepts them again.
#[derive(Default)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
}

struct Entry {
    /// The API's id of an assistant message.
    id: Option<String>,
    indices: BTreeSet<usize>,
    message: ConversationMessage,
}

impl Entry {
    fn of(message: ConversationMessage) -> Self {
        Self { id: None, indices: BTreeSet::new(), message }
    }
}

impl Ledger {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a block to its message. False when it was there already.
    pub fn block(
        &mut self,
        id: &str,
        index: Option<usize>,
        content: &ContentBlock,
        model: Option<String>,
        usage: Option<TokenUsage>,
        aborted: bool,
    ) -> bool {
        if let ContentBlock::ToolUse { id, .. } = content
            && self.name_of(id).is_some()
        {
            return false;
        }
        let entry = self.assistant(id);
        if index.is_some_and(|index| !entry.indices.insert(index)) {
            return false;
        }
        let message = &mut entry.message;
        message.blocks.push(content.clone());
        message.model = message.model.take().or(model.filter(|name| name != SYNTHETIC));
        if let Some(usage) = usage {
            message.usage = Some(larger(message.usage, usage));
        }
        if aborted {
            message.partial = Some(PartialReason::Cancelled);
        }
        true
    }

    fn assistant(&mut self, id: &str) -> &mut Entry {
        let known = self.entries.iter().rposition(|entry| entry.id.as_deref() == Some(id));
        let at = known.unwrap_or_else(|| {
            let message = ConversationMessage::new(MessageRole::Assistant, Vec::new());
            self.entries.push(Entry { id: Some(id.to_owned()), ..Entry::of(message) });
            self.entries.len() - 1
        });
        &mut self.entries[at]
    }

    /// The tokens of a message that has blocks already; of another nothing is kept.
    pub fn usage(&mut self, id: &str, usage: TokenUsage) {
        let known = self.entries.iter_mut().rfind(|entry| entry.id.as_deref() == Some(id));
        if let Some(entry) = known {
            entry.message.usage = Some(larger(entry.message.usage, usage));
        }
    }

    /// Adds a result behind its call and the results that are there. Returns the name of the tool;
    /// none when there is no such call, or when it has a result.
    pub fn result(
        &mut self,
        id: &str,
        output: &str,
        is_error: bool,
        facts: Option<ToolFacts>,
    ) -> Option<String> {
        let (at, name) = self.name_of(id)?;
        let behind = &self.entries[at + 1..];
        let results = behind.iter().take_while(|entry| entry.message.role == MessageRole::Tool);
        let place = at + 1 + results.count();
        if self.entries[at + 1..place].iter().any(|entry| answers(&entry.message, id)) {
            return None;
        }
        let block = ContentBlock::ToolResult {
            tool_use_id: id.to_owned(),
            tool_name: name.clone(),
            output: output.to_owned(),
            is_error,
            facts,
        };
        let message = ConversationMessage::new(MessageRole::Tool, vec![block]);
        self.entries.insert(place, Entry::of(message));
        Some(name)
    }

    /// The entry of a call and the tool's name.
    fn name_of(&self, id: &str) -> Option<(usize, String)> {
        self.entries.iter().enumerate().rev().find_map(|(at, entry)| {
            let mut uses = entry.message.tool_uses();
            uses.find(|(known, ..)| *known == id).map(|(_, name, _)| (at, name.to_owned()))
        })
    }

    pub fn prompt(&mut self, text: String) {
        self.entries.push(Entry::of(ConversationMessage::user(text)));
    }

    /// Ids of the calls without a result, in order.
    pub fn unanswered(&self) -> Vec<String> {
        let messages = || self.entries.iter().map(|entry| &entry.message);
        let uses = messages().flat_map(ConversationMessage::tool_uses).map(|(id, ..)| id);
        uses.filter(|id| !messages().any(|message| answers(message, id)))
            .map(str::to_owned)
            .collect()
    }

    /// Whether the last words of the assistant are these.
    pub fn ends_with(&self, text: &str) -> bool {
        let said = |entry: &&Entry| {
            entry.message.role == MessageRole::Assistant && !entry.message.text().trim().is_empty()
        };
        let last = self.entries.iter().rfind(said);
        last.is_some_and(|entry| entry.message.text().trim().ends_with(text))
    }

    /// Marks the last message when it is one of the assistant.
    pub fn mark(&mut self, partial: Option<PartialReason>) {
        if let Some(entry) = self.entries.last_mut()
            && entry.message.role == MessageRole::Assistant
            && entry.message.partial.is_none()
        {
            entry.message.partial = partial;
        }
    }

    pub fn take(&mut self) -> Vec<ConversationMessage> {
        std::mem::take(&mut self.entries).into_iter().map(|entry| entry.message).collect()
    }
}

fn answers(message: &ConversationMessage, id: &str) -> bool {
    message.blocks.iter().any(
        |block| matches!(block, ContentBlock::ToolResult { tool_use_id, .. } if tool_use_id == id),
    )
}

/// Early records carry the counts of the beginning of a message: the largest are the final ones.
fn larger(known: Option<TokenUsage>, new: TokenUsage) -> TokenUsage {
    let known = known.unwrap_or_default();
    TokenUsage {
        input_tokens: known.input_tokens.max(new.input_tokens),
        output_tokens: known.output_tokens.max(new.output_tokens),
        cache_creation_input_tokens: known
            .cache_creation_input_tokens
            .max(new.cache_creation_input_tokens),
        cache_read_input_tokens: known.cache_read_input_tokens.max(new.cache_read_input_tokens),
    }
}
