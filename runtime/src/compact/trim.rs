//! Shortening long tool payloads, head and tail: keeping the last messages must not mean keeping
//! the megabyte that one of them carries.

use std::sync::Arc;

use serde_json::Value;

use crate::session::{ContentBlock, ConversationMessage, MessageRole};

/// Bytes that stay of a payload that the model has already answered to, however much room there is.
const READ_LIMIT: usize = 8_192;
/// Bytes that stay of any payload, tried in this order until the messages fit.
const LIMITS: [usize; 3] = [16_384, 4_096, 1_024];

/// Shortens payloads of `messages`: those that the model has read when they are large, and all of
/// them until they fit `budget_tokens`, but never below a readable rest. Returns how many were
/// shortened.
pub(super) fn payloads(messages: &mut [Arc<ConversationMessage>], budget_tokens: u64) -> usize {
    let originals: Vec<Arc<ConversationMessage>> = messages.to_vec();
    let read = messages
        .iter()
        .rposition(|message| message.role == MessageRole::Assistant)
        .unwrap_or_default();
    let mut trimmed = shorten(&mut messages[..read], &originals, READ_LIMIT);
    for limit in LIMITS {
        let size: u64 = messages.iter().map(|message| message.estimated_tokens()).sum();
        if size <= budget_tokens {
            break;
        }
        // Always from the original, so that a text has one gap and its true size in the mark.
        trimmed = shorten(&mut messages[..read], &originals, limit.min(READ_LIMIT))
            + shorten(&mut messages[read..], &originals[read..], limit);
    }
    trimmed
}

fn shorten(
    messages: &mut [Arc<ConversationMessage>],
    originals: &[Arc<ConversationMessage>],
    limit: usize,
) -> usize {
    let mut trimmed = 0;
    for (message, original) in messages.iter_mut().zip(originals) {
        let (shorter, count) = shorten_message(original, limit);
        trimmed += count;
        if let Some(shorter) = shorter {
            *message = Arc::new(shorter);
        }
    }
    trimmed
}

fn shorten_message(
    message: &ConversationMessage,
    limit: usize,
) -> (Option<ConversationMessage>, usize) {
    let mut count = 0;
    if message.blocks.iter().all(|block| payload_bytes(block) <= limit) {
        return (None, 0);
    }
    let blocks = message
        .blocks
        .iter()
        .map(|block| match shorten_block(block, limit) {
            Some(shorter) => {
                count += 1;
                shorter
            }
            None => block.clone(),
        })
        .collect();
    ((count > 0).then(|| ConversationMessage { blocks, ..message.clone() }), count)
}

/// Size of what may be shortened.
fn payload_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::ToolResult { output, .. } => output.len(),
        ContentBlock::ToolUse { input, .. } => input.len(),
        _ => 0,
    }
}

fn shorten_block(block: &ContentBlock, limit: usize) -> Option<ContentBlock> {
    match block {
        ContentBlock::ToolResult { tool_use_id, tool_name, output, is_error, facts } => {
            Some(ContentBlock::ToolResult {
                output: head_and_tail(output, limit)?,
                tool_use_id: tool_use_id.clone(),
                tool_name: tool_name.clone(),
                is_error: *is_error,
                facts: facts.clone(),
            })
        }
        ContentBlock::ToolUse { id, name, input } if input.len() > limit => {
            let mut value: Value = serde_json::from_str(input).ok()?;
            let shortened = shorten_strings(&mut value, limit);
            shortened.then(|| ContentBlock::ToolUse {
                id: id.clone(),
                name: name.clone(),
                input: value.to_string(),
            })
        }
        _ => None,
    }
}

/// Input stays JSON: only strings inside become shorter.
fn shorten_strings(value: &mut Value, limit: usize) -> bool {
    match value {
        Value::String(text) => head_and_tail(text, limit).map(|shorter| *text = shorter).is_some(),
        Value::Array(items) => {
            items.iter_mut().fold(false, |done, item| shorten_strings(item, limit) | done)
        }
        Value::Object(fields) => {
            fields.values_mut().fold(false, |done, item| shorten_strings(item, limit) | done)
        }
        _ => false,
    }
}

/// Two thirds from the head and one third from the tail; none when the text is short enough. A little
/// over the limit is short enough, or a text would be shortened again for the mark in it.
fn head_and_tail(text: &str, limit: usize) -> Option<String> {
    if text.len() <= limit + limit / 4 {
        return None;
    }
    let head = &text[..text.floor_char_boundary(limit / 3 * 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - limit / 3)..];
    let gap = text.len() - head.len() - tail.len();
    Some(format!("{head}\n[{gap} bytes left out by compaction]\n{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_stay_and_the_gap_is_counted() {
        assert_eq!(head_and_tail("short", 9), None);
        let text = format!("{}{}", "h".repeat(50), "t".repeat(50));
        let expected =
            format!("{}\n[70 bytes left out by compaction]\n{}", "h".repeat(20), "t".repeat(10));
        assert_eq!(head_and_tail(&text, 30), Some(expected));
        // Never in the middle of a character.
        assert!(head_and_tail(&"ä🦀".repeat(40), 31).is_some());
    }
}
