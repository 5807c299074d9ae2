//! Every tool use has one result, and every result its tool use: providers refuse anything else.

use std::collections::HashSet;
use std::sync::Arc;

use super::{ContentBlock, ConversationMessage, MessageRole};

/// The result that stands in for one that was lost.
const LOST_RESULT: &str =
    "The result of this call is not on record: the program ended before it was saved.";

/// Tool uses that no later message answers, as (id, name), oldest first.
pub fn unanswered_tool_uses(messages: &[Arc<ConversationMessage>]) -> Vec<(String, String)> {
    let mut open: Vec<(String, String)> = Vec::new();
    for message in messages {
        for block in &message.blocks {
            match block {
                ContentBlock::ToolUse { id, name, .. } => open.push((id.clone(), name.clone())),
                ContentBlock::ToolResult { tool_use_id, .. } => {
                    open.retain(|(id, _)| id != tool_use_id);
                }
                _ => {}
            }
        }
    }
    open
}

/// What [`mend_pairs`] did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mended {
    pub results_added: usize,
    pub results_dropped: usize,
}

/// Restores the pairing after lines of a file were lost: adds a result that says so where one is
/// missing, and drops results whose call is gone or that repeat.
pub(super) fn mend_pairs(messages: &mut Vec<Arc<ConversationMessage>>) -> Mended {
    let mut mended = Mended::default();
    let mut whole = Vec::with_capacity(messages.len());
    let mut open: Vec<(String, String)> = Vec::new();
    let mut answered: HashSet<String> = HashSet::new();
    for message in messages.drain(..) {
        // Only what a person said ends the exchange: a backend may write one answer of the model
        // as several messages, with the results after the last of them.
        let answers =
            message.blocks.iter().any(|block| matches!(block, ContentBlock::ToolResult { .. }));
        if message.role == MessageRole::User && !answers {
            close(&mut open, &mut whole, &mut mended);
        }
        let Some(message) = without_orphans(message, &mut open, &mut answered, &mut mended) else {
            continue;
        };
        for (id, ..) in message.tool_uses() {
            // Some providers count their calls anew in each answer.
            answered.remove(id);
        }
        open.extend(message.tool_uses().map(|(id, name, _)| (id.to_owned(), name.to_owned())));
        whole.push(message);
    }
    close(&mut open, &mut whole, &mut mended);
    *messages = whole;
    mended
}

fn close(
    open: &mut Vec<(String, String)>,
    whole: &mut Vec<Arc<ConversationMessage>>,
    mended: &mut Mended,
) {
    if open.is_empty() {
        return;
    }
    mended.results_added += open.len();
    let blocks = open
        .drain(..)
        .map(|(tool_use_id, tool_name)| ContentBlock::ToolResult {
            tool_use_id,
            tool_name,
            output: LOST_RESULT.to_owned(),
            is_error: true,
            facts: None,
        })
        .collect();
    whole.push(Arc::new(ConversationMessage::new(MessageRole::Tool, blocks)));
}

fn without_orphans(
    message: Arc<ConversationMessage>,
    open: &mut Vec<(String, String)>,
    answered: &mut HashSet<String>,
    mended: &mut Mended,
) -> Option<Arc<ConversationMessage>> {
    let mut keep = Vec::with_capacity(message.blocks.len());
    for block in &message.blocks {
        let ContentBlock::ToolResult { tool_use_id, .. } = block else {
            keep.push(true);
            continue;
        };
        let before = open.len();
        open.retain(|(id, _)| id != tool_use_id);
        keep.push(open.len() < before && answered.insert(tool_use_id.clone()));
    }
    if keep.iter().all(|keep| *keep) {
        return Some(message);
    }
    let mut kept = (*message).clone();
    let mut flags = keep.iter();
    kept.blocks.retain(|_| *flags.next().unwrap_or(&true));
    mended.results_dropped += message.blocks.len() - kept.blocks.len();
    (!kept.blocks.is_empty()).then(|| Arc::new(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(ids: &[&str]) -> Arc<ConversationMessage> {
        let blocks = ids
            .iter()
            .map(|id| ContentBlock::ToolUse {
                id: (*id).into(),
                name: "bash".into(),
                input: "{}".into(),
            })
            .collect();
        Arc::new(ConversationMessage::new(MessageRole::Assistant, blocks))
    }

    fn result(id: &str) -> Arc<ConversationMessage> {
        let block = ContentBlock::ToolResult {
            tool_use_id: id.into(),
            tool_name: "bash".into(),
            output: "ok".into(),
            is_error: false,
            facts: None,
        };
        Arc::new(ConversationMessage::new(MessageRole::Tool, vec![block]))
    }

    fn user() -> Arc<ConversationMessage> {
        Arc::new(ConversationMessage::user("next"))
    }

    fn check(mut messages: Vec<Arc<ConversationMessage>>, added: usize, dropped: usize) {
        let mended = mend_pairs(&mut messages);
        assert_eq!(mended, Mended { results_added: added, results_dropped: dropped });
        assert!(unanswered_tool_uses(&messages).is_empty());
        assert_eq!(mend_pairs(&mut messages), Mended::default(), "mending twice changes nothing");
    }

    #[test]
    fn each_tool_use_keeps_exactly_one_result() {
        check(vec![user(), uses(&["a", "b"]), result("a"), result("b"), user()], 0, 0);
        check(vec![uses(&["a", "b"]), result("a"), user()], 1, 0);
        check(vec![uses(&["a"])], 1, 0);
        check(vec![uses(&["a"]), uses(&["b"]), result("a"), result("b"), user()], 0, 0);
        check(vec![result("a"), user()], 0, 1);
        check(vec![uses(&["a"]), result("a"), result("a"), user()], 0, 1);
        check(vec![uses(&["a"]), user(), result("a")], 1, 1);
        let again = [uses(&["a"]), result("a"), user()];
        check([&again[..], &again].concat(), 0, 0);
    }
}
