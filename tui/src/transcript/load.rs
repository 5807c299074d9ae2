//! A stored conversation as cells. Nothing is copied, cleaned or laid out here.

use std::collections::HashMap;
use std::sync::Arc;

use claw_runtime::NoticeLevel;
use claw_runtime::session::{
    ContentBlock, ConversationMessage, MessageRole, PartialReason, SessionView,
};

use super::answer::Answer;
use super::cell::{Content, Standing};
use super::cells::Cells;
use super::events::sentence;
use super::source::Source;
use super::thinking::Thinking;
use super::tool::Tool;
use super::{CUT_MARK, INTERRUPTED_MARK};
use crate::sanitise;

/// Appends the cells of a session.
pub fn load(view: &SessionView, cells: &mut Cells) {
    let mut tools: HashMap<String, usize> = HashMap::new();
    for message in &view.messages {
        for (block, content) in message.blocks.iter().enumerate() {
            let source = || Source::Message { message: Arc::clone(message), block };
            match content {
                ContentBlock::Text { text } => {
                    if let Some(content) = text_cell(message, block, text, source()) {
                        cells.push(content);
                    }
                }
                ContentBlock::Thinking { thinking, .. } => {
                    cells.push(Content::Thinking(if thinking.is_empty() {
                        Thinking::hidden()
                    } else {
                        Thinking::finished(source())
                    }));
                }
                ContentBlock::RedactedThinking { .. } => {
                    cells.push(Content::Thinking(Thinking::hidden()));
                }
                ContentBlock::ToolUse { id, name, .. } => {
                    let at = cells.push(Content::Tool(Box::new(Tool::loaded(name, source()))));
                    tools.insert(id.clone(), at);
                }
                ContentBlock::ToolResult { tool_use_id, tool_name, is_error, .. } => {
                    let at = tools.get(tool_use_id).copied().unwrap_or_else(|| {
                        let tool = Tool::loaded(tool_name, Source::Own(String::new()));
                        cells.push(Content::Tool(Box::new(tool)))
                    });
                    if let Some(cell) = cells.change(at)
                        && let Content::Tool(tool) = &mut cell.content
                    {
                        tool.loaded_result(source(), *is_error);
                    }
                }
            }
        }
        // A partial message that does not end with text has no answer to carry its mark.
        if let Some(mark) = mark(message)
            && !matches!(message.blocks.last(), Some(ContentBlock::Text { text }) if !text.is_empty())
        {
            let text = sentence(mark);
            cells.push(Content::Notice { level: NoticeLevel::Warning, text });
        }
    }
    for warning in &view.warnings {
        let text = sanitise::text(warning).into_owned();
        cells.push(Content::Notice { level: NoticeLevel::Warning, text });
    }
}

fn text_cell(
    message: &ConversationMessage,
    block: usize,
    text: &str,
    source: Source,
) -> Option<Content> {
    if text.trim().is_empty() {
        return None;
    }
    Some(match message.role {
        MessageRole::User | MessageRole::Tool => {
            Content::User { text: source, standing: Standing::Begun }
        }
        MessageRole::Assistant => {
            let last = block + 1 == message.blocks.len();
            let mark = mark(message).filter(|_| last).map(str::to_owned);
            Content::Answer(Answer::finished(source, mark))
        }
        MessageRole::System => Content::Compaction {
            text: "Earlier messages were replaced by a summary".to_owned(),
            original: None,
            summary: Some(source),
        },
    })
}

fn mark(message: &ConversationMessage) -> Option<&'static str> {
    message.partial.map(|reason| match reason {
        PartialReason::Cancelled => INTERRUPTED_MARK,
        PartialReason::Cut => CUT_MARK,
    })
}
