//! Calls of one answer that carry the same id. Results are matched by id, so that a second call with
//! it could neither be answered nor sent back: the first one counts.

use std::collections::HashSet;

use crate::session::{ContentBlock, ConversationMessage};

/// Ids that an answer has used so far.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    called: HashSet<String>,
    answered: HashSet<String>,
    pub dropped_calls: usize,
}

impl Repeats {
    /// Takes calls (and results) off `message` whose id the answer has used before.
    pub(super) fn drop_from(&mut self, message: &mut ConversationMessage) {
        message.blocks.retain(|block| match block {
            ContentBlock::ToolUse { id, .. } => {
                let is_first = self.called.insert(id.clone());
                self.dropped_calls += usize::from(!is_first);
                is_first
            }
            ContentBlock::ToolResult { tool_use_id, .. } => {
                self.answered.insert(tool_use_id.clone())
            }
            _ => true,
        });
    }
}
