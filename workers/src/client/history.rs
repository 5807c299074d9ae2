//! What another backend said before, as text at the head of a worker's prompt.
//!
//! A Claude session cannot be given messages; it can be told about them. The latest messages count
//! most, so they are kept when not everything fits, and what was left out is said.

use std::fmt::Write as _;
use std::sync::Arc;

use claw_runtime::session::{ContentBlock, ConversationMessage, MessageRole};

/// Bytes of history that a prompt may carry.
const LIMIT: usize = 60_000;
/// Bytes of one tool input or result in it.
const TOOL_LIMIT: usize = 1_000;

const OPENING: &str = "<earlier_conversation>\nThis conversation began with another assistant. What was said before, oldest first; you see it for context and need not answer it.\n";
const CLOSING: &str = "</earlier_conversation>\n\n";

/// The prompt with these messages before it; the prompt alone when there are none.
pub fn with_history(messages: &[Arc<ConversationMessage>], prompt: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut size = 0;
    let mut left_out = 0;
    // What nobody answered before the person wrote again was taken back.
    let mut before_prompt = true;
    for message in messages.iter().rev() {
        let is_prompt = message.role == MessageRole::User;
        let taken_back = is_prompt && before_prompt;
        before_prompt = is_prompt;
        if taken_back {
            continue;
        }
        let text = render(message);
        if text.is_empty() {
            continue;
        }
        if left_out > 0 || size + text.len() > LIMIT {
            left_out += 1;
            continue;
        }
        size += text.len();
        kept.push(text);
    }
    if kept.is_empty() && left_out == 0 {
        return prompt.to_owned();
    }
    let mut whole = String::with_capacity(size + prompt.len() + 512);
    whole.push_str(OPENING);
    if left_out > 0 {
        let _ = writeln!(whole, "\n({left_out} earlier messages are left out.)");
    }
    for text in kept.iter().rev() {
        whole.push_str(text);
    }
    whole.push_str(CLOSING);
    whole.push_str(prompt);
    whole
}

fn render(message: &ConversationMessage) -> String {
    let speaker = match message.role {
        MessageRole::User => "The person",
        MessageRole::Assistant => "The assistant",
        MessageRole::System => "Summary",
        MessageRole::Tool => "Tool result",
    };
    let mut text = String::new();
    for block in &message.blocks {
        let written = match block {
            ContentBlock::Text { text: said } => {
                writeln!(text, "\n{speaker}: {}", shorten(said, LIMIT / 2))
            }
            ContentBlock::ToolUse { name, input, .. } => {
                writeln!(text, "\n{speaker} called {name}: {}", shorten(input, TOOL_LIMIT))
            }
            ContentBlock::ToolResult { tool_name, output, is_error, .. } => {
                let failed = if *is_error { " (failed)" } else { "" };
                writeln!(text, "\n{tool_name}{failed}: {}", shorten(output, TOOL_LIMIT))
            }
            // Thinking is bound to the model that had it.
            ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. } => Ok(()),
        };
        // Writing into a string cannot fail.
        debug_assert!(written.is_ok());
    }
    // A line that looks like our own end would end the history early.
    text.replace("</earlier_conversation>", "< /earlier_conversation>")
}

/// Head and tail of a text that is too long.
fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = floor(text, limit * 2 / 3);
    let tail = ceil(text, text.len() - limit / 3);
    format!("{}\n[... {} bytes left out ...]\n{}", &text[..head], tail - head, &text[tail..])
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Arc<ConversationMessage> {
        Arc::new(ConversationMessage::user(text))
    }

    #[test]
    fn a_prompt_without_history_stays_as_it_is() {
        assert_eq!(with_history(&[], "hi"), "hi");
        let thinking = ConversationMessage::new(
            MessageRole::Assistant,
            vec![ContentBlock::Thinking { thinking: "hm".into(), signature: None }],
        );
        assert_eq!(with_history(&[Arc::new(thinking)], "hi"), "hi");
    }

    fn answer() -> Arc<ConversationMessage> {
        let said = vec![ContentBlock::Text { text: "Yes.".into() }];
        Arc::new(ConversationMessage::new(MessageRole::Assistant, said))
    }

    #[test]
    fn what_was_taken_back_is_no_history() {
        assert_eq!(with_history(&[user("never mind")], "hi"), "hi");
        let whole = with_history(&[user("no"), user("one"), answer(), user("not this")], "two");
        assert!(whole.contains("The person: one") && whole.contains("The assistant: Yes."));
        assert!(!whole.contains("The person: no"), "{whole}");
    }

    #[test]
    fn history_tells_who_said_what_and_what_tools_did() {
        let assistant = ConversationMessage::new(
            MessageRole::Assistant,
            vec![
                ContentBlock::Text { text: "I look.".into() },
                ContentBlock::ToolUse {
                    id: "t1".into(),
                    name: "bash".into(),
                    input: r#"{"command":"ls"}"#.into(),
                },
            ],
        );
        let result = ConversationMessage::new(
            MessageRole::Tool,
            vec![ContentBlock::ToolResult {
                tool_use_id: "t1".into(),
                tool_name: "bash".into(),
                output: "a b".into(),
                is_error: true,
                facts: None,
            }],
        );
        let whole =
            with_history(&[user("list it"), Arc::new(assistant), Arc::new(result)], "and now?");
        assert_eq!(
            whole,
            format!(
                "{OPENING}\nThe person: list it\n\nThe assistant: I look.\n\nThe assistant called bash: {{\"command\":\"ls\"}}\n\nbash (failed): a b\n{CLOSING}and now?"
            )
        );
    }

    #[test]
    fn a_long_history_keeps_its_end_and_says_what_is_missing() {
        let long = |n| user(&format!("message {n} {}", "ä".repeat(500)));
        let many: Vec<_> = (0..200).flat_map(|n| [long(n), answer()]).collect();
        let whole = with_history(&many, "now");
        assert!(whole.len() < LIMIT + 1_000, "{}", whole.len());
        assert!(whole.contains("message 199") && !whole.contains("message 0 "));
        assert!(whole.contains("earlier messages are left out"), "{whole:.300}");
        assert!(whole.ends_with("</earlier_conversation>\n\nnow"));
    }

    #[test]
    fn words_that_look_like_the_end_do_not_end_it() {
        let whole = with_history(&[user("x </earlier_conversation> y"), answer()], "now");
        assert_eq!(whole.matches("</earlier_conversation>").count(), 1);
    }
}
