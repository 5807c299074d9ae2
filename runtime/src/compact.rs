//! Making a conversation smaller: the oldest part becomes a summary made by rules, without a model
//! call, and long tool payloads of what stays are shortened.
//!
//! It refuses to separate a tool call from its result, to drop the latest thing the person asked,
//! and to claim a change where there was none. It does not touch the disk: the session store keeps
//! the original.

mod summary;
mod trim;

use std::collections::HashMap;
use std::sync::Arc;

use crate::session::{ContentBlock, ConversationMessage, MessageRole, Session, SessionCompaction};

/// Context size at which a conversation is compacted by itself, in tokens.
pub const DEFAULT_AUTO_COMPACTION_TOKENS: u64 = 100_000;
/// Overrides [`DEFAULT_AUTO_COMPACTION_TOKENS`].
pub const AUTO_COMPACTION_VARIABLE: &str = "CLAUDE_CODE_AUTO_COMPACT_INPUT_TOKENS";

/// How much is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionConfig {
    /// Messages at the end that stay as they are. More stay where a tool call would otherwise lose
    /// its result.
    pub preserve_recent_messages: usize,
    /// A conversation below this estimate is left alone; 0 compacts any.
    pub max_estimated_tokens: u64,
    /// Long tool payloads of the messages that stay are shortened until these fit.
    pub kept_estimated_tokens: u64,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            preserve_recent_messages: 4,
            max_estimated_tokens: 10_000,
            kept_estimated_tokens: 10_000,
        }
    }
}

impl CompactionConfig {
    /// The person asked for it: however small the conversation is.
    pub fn requested() -> Self {
        Self { max_estimated_tokens: 0, ..Self::default() }
    }
}

/// What compaction made of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionResult {
    /// False: everything below is as it was.
    pub changed: bool,
    /// The summary as the model reads it, in `<summary>` tags.
    pub summary: String,
    /// The same for a person.
    pub formatted_summary: String,
    /// The conversation as it is now.
    pub messages: Vec<Arc<ConversationMessage>>,
    pub compaction: SessionCompaction,
    pub removed_message_count: usize,
    /// Tool payloads of kept messages that were shortened.
    pub trimmed_payloads: usize,
    pub before_tokens: u64,
    pub after_tokens: u64,
}

/// Compacts a conversation. Pure: the session is not changed. What would not be smaller than before
/// counts as nothing to compact.
///
/// Usage is taken off the kept messages: it belongs to requests that carried the whole. (The session
/// store keeps it on record.) Signed thinking is taken off as well: providers bind it to everything
/// that stood before it and refuse it elsewhere.
pub fn compact_session(session: &Session, config: &CompactionConfig) -> CompactionResult {
    let before_tokens = session.estimated_tokens();
    let unchanged = || unchanged(session, before_tokens);
    if before_tokens < config.max_estimated_tokens {
        return unchanged();
    }
    let messages = &session.messages;
    let first = usize::from(session.compaction.is_some() && is_summary(messages.first()));
    let from = kept_from(messages, first, config.preserve_recent_messages);
    let prompt = last_prompt(messages).filter(|index| (first..from).contains(index));
    let removed: Vec<&ConversationMessage> = (first..from)
        .filter(|index| Some(*index) != prompt)
        .map(|index| messages[index].as_ref())
        .collect();
    let earlier = session.compaction.as_ref().filter(|_| first == 1);
    // A summary that is no shorter than what it stands for would make the context larger.
    let replaced: u64 = removed.iter().map(|message| message.estimated_tokens()).sum();
    let earlier_size: u64 = messages[..first].iter().map(|m| m.estimated_tokens()).sum();
    let head = [true, false]
        .into_iter()
        .filter(|_| !removed.is_empty())
        .map(|with_timeline| {
            summary::write(&removed, earlier.map(|earlier| &*earlier.summary), with_timeline)
        })
        .map(|summary| (Arc::new(summary::message(&summary)), summary))
        .find(|(head, _)| head.estimated_tokens() < replaced.saturating_add(earlier_size));
    let worth_it = head.is_some();
    let removed_message_count = if worth_it { removed.len() } else { 0 };
    let mut kept: Vec<Arc<ConversationMessage>> = if worth_it {
        prompt.into_iter().chain(from..messages.len()).map(|i| Arc::clone(&messages[i])).collect()
    } else {
        messages[first..].to_vec()
    };
    let trimmed_payloads = trim::payloads(&mut kept, config.kept_estimated_tokens);
    if !worth_it && trimmed_payloads == 0 {
        return unchanged();
    }
    take_off_what_is_bound(&mut kept);
    let mut compacted = Vec::with_capacity(kept.len() + 1);
    let summary = if let Some((head, summary)) = head {
        compacted.push(head);
        summary
    } else {
        compacted.extend_from_slice(&messages[..first]);
        earlier.map(|earlier| earlier.summary.clone()).unwrap_or_default()
    };
    compacted.extend(kept);
    let after_tokens = compacted.iter().map(|message| message.estimated_tokens()).sum();
    if after_tokens >= before_tokens {
        return unchanged();
    }
    let count = session.compaction.as_ref().map_or(0, |earlier| earlier.count).saturating_add(1);
    CompactionResult {
        changed: true,
        formatted_summary: summary::for_a_person(&summary),
        compaction: SessionCompaction { count, removed_message_count, summary: summary.clone() },
        summary,
        removed_message_count,
        trimmed_payloads,
        before_tokens,
        after_tokens,
        messages: compacted,
    }
}

/// Usage and signed thinking count only for exactly the messages that stood before.
fn take_off_what_is_bound(kept: &mut Vec<Arc<ConversationMessage>>) {
    for message in kept.iter_mut() {
        if message.usage.is_some() {
            Arc::make_mut(message).usage = None;
        }
        if message.blocks.iter().any(is_bound) {
            Arc::make_mut(message).blocks.retain(|block| !is_bound(block));
        }
    }
    kept.retain(|message| !message.blocks.is_empty());
}

fn unchanged(session: &Session, tokens: u64) -> CompactionResult {
    let compaction = session.compaction.clone().unwrap_or(SessionCompaction {
        count: 0,
        removed_message_count: 0,
        summary: String::new(),
    });
    CompactionResult {
        changed: false,
        summary: compaction.summary.clone(),
        formatted_summary: summary::for_a_person(&compaction.summary),
        messages: session.messages.clone(),
        compaction,
        removed_message_count: 0,
        trimmed_payloads: 0,
        before_tokens: tokens,
        after_tokens: tokens,
    }
}

/// Thinking that only counts after exactly the messages that it followed. Unsigned reasoning is not
/// bound, and some providers want it back.
fn is_bound(block: &ContentBlock) -> bool {
    matches!(
        block,
        ContentBlock::Thinking { signature: Some(_), .. } | ContentBlock::RedactedThinking { .. }
    )
}

/// The summary of an earlier compaction is the one system message of a conversation.
fn is_summary(message: Option<&Arc<ConversationMessage>>) -> bool {
    message.is_some_and(|message| message.role == MessageRole::System)
}

/// The latest message that a person wrote.
fn last_prompt(messages: &[Arc<ConversationMessage>]) -> Option<usize> {
    messages.iter().rposition(|message| {
        message.role == MessageRole::User
            && message.blocks.iter().any(|block| matches!(block, ContentBlock::Text { .. }))
    })
}

/// Index of the first message that stays: moved towards the beginning until every result that
/// stays has its call. Looks at each message once, however long the conversation is.
fn kept_from(messages: &[Arc<ConversationMessage>], first: usize, preserve: usize) -> usize {
    let earliest_call = earliest_calls(messages, first);
    let mut from = messages.len().saturating_sub(preserve).max(first);
    let mut seen = messages.len();
    while seen > from {
        seen -= 1;
        from = from.min(earliest_call[seen]);
    }
    // A call at the end whose result is still to come must stay, too.
    let open = messages.iter().rposition(|message| message.tool_uses().next().is_some());
    match open {
        Some(index) if index >= first && index < from && is_unanswered(&messages[index..]) => index,
        _ => from,
    }
}

/// For each message: where the earliest call stands that one of its results answers; its own place
/// when it answers none.
fn earliest_calls(messages: &[Arc<ConversationMessage>], first: usize) -> Vec<usize> {
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut earliest = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let mut at = index;
        for block in &message.blocks {
            match block {
                ContentBlock::ToolUse { id, .. } => {
                    calls.insert(id, index);
                }
                ContentBlock::ToolResult { tool_use_id, .. } => {
                    at = at.min(calls.get(tool_use_id.as_str()).copied().unwrap_or(first));
                }
                _ => {}
            }
        }
        earliest.push(at);
    }
    earliest
}

fn is_unanswered(messages: &[Arc<ConversationMessage>]) -> bool {
    !crate::session::unanswered_tool_uses(messages).is_empty()
}

/// The threshold that the environment sets, or the default. A value that is no positive number
/// counts as unset.
pub fn auto_compaction_threshold(environment: &dyn Fn(&str) -> Option<String>) -> u64 {
    environment(AUTO_COMPACTION_VARIABLE)
        .and_then(|value| value.trim().parse().ok())
        .filter(|tokens| *tokens > 0)
        .unwrap_or(DEFAULT_AUTO_COMPACTION_TOKENS)
}

/// When a conversation is compacted by itself: once each time that its *current* context crosses
/// the threshold. What all calls together used plays no part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoCompaction {
    threshold: u64,
    /// Set once it fired: below the threshold it is ready again, above it only from here.
    next: Option<u64>,
    /// Messages at which it fires again although the context has not grown: only after an attempt
    /// that found nothing to remove.
    next_messages: Option<usize>,
}

impl Default for AutoCompaction {
    fn default() -> Self {
        Self::new(DEFAULT_AUTO_COMPACTION_TOKENS)
    }
}

impl AutoCompaction {
    /// `threshold` in tokens; 0 is taken as 1.
    pub fn new(threshold: u64) -> Self {
        Self { threshold: threshold.max(1), next: None, next_messages: None }
    }

    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Whether to compact now, asked with the current size of the context and the number of
    /// messages after every call. True once for a crossing: when compaction could not get below the
    /// threshold, the next time is when the context has grown by another quarter of it, or after
    /// [`Self::found_nothing`] when there are more messages to remove.
    pub fn should_compact(&mut self, context_tokens: u64, messages: usize) -> bool {
        if context_tokens < self.threshold {
            self.next = None;
            self.next_messages = None;
            return false;
        }
        let growth = (self.threshold / 4).max(1);
        let has_more = self.next_messages.is_some_and(|next| messages >= next);
        match self.next {
            Some(next) if context_tokens < next && !has_more => {
                // It shrank, though not below the threshold: growth counts from here.
                self.next = Some(next.min(context_tokens.saturating_add(growth)));
                false
            }
            _ => {
                self.next = Some(context_tokens.saturating_add(growth));
                self.next_messages = None;
                true
            }
        }
    }

    /// Whether the last attempt above the threshold changed nothing.
    pub fn has_found_nothing(&self) -> bool {
        self.next_messages.is_some()
    }

    /// The attempt at this number of messages changed nothing.
    pub fn found_nothing(&mut self, messages: usize) {
        let more = CompactionConfig::default().preserve_recent_messages.max(1);
        self.next_messages = Some(messages.saturating_add(more));
    }
}

#[cfg(test)]
mod tests;
