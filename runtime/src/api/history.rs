//! A conversation made fit for a provider, before it takes that provider's form.
//!
//! What comes out alternates between user and assistant, begins and ends with the user, has no empty
//! text, and every tool use is followed at once by its result: where a session has none (the stream
//! broke off, the person stopped it), an error result says so. Nothing is invented beyond that, and
//! every message of the session is in it once.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::draft::malformed_input;
use super::models;
use crate::session::{ContentBlock, ConversationMessage, MessageRole};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
}

#[derive(Debug)]
pub(super) enum Part<'a> {
    Text(Cow<'a, str>),
    /// `own` when the model that is asked now wrote it, or nobody knows who did.
    Thinking {
        thinking: &'a str,
        signature: Option<&'a str>,
        own: bool,
    },
    Redacted {
        data: &'a str,
        own: bool,
    },
    /// The input is a JSON object.
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Cow<'a, RawValue>,
    },
    ToolResult {
        id: &'a str,
        output: &'a str,
        is_error: bool,
    },
}

#[derive(Debug)]
pub(super) struct Turn<'a> {
    pub speaker: Speaker,
    pub parts: Vec<Part<'a>>,
}

/// The result of a tool use that has none.
const INTERRUPTED: &str = "interrupted";

/// Puts the conversation in order for a request to `model`.
pub(super) fn in_order<'a>(messages: &'a [Arc<ConversationMessage>], model: &str) -> Vec<Turn<'a>> {
    let mut order = Order::default();
    for message in messages {
        if message.role == MessageRole::Assistant {
            order.add_assistant(message, model);
        } else {
            order.add_user(message);
        }
    }
    order.answer_open_calls();
    let mut turns = order.turns;
    // Only the conversation that was cut off, or cut down, has these gaps.
    if turns.last().is_none_or(|turn| turn.speaker == Speaker::Assistant) {
        turns.push(user_text("Continue."));
    }
    if turns[0].speaker == Speaker::Assistant {
        turns.insert(0, user_text("(The beginning of the conversation is not available.)"));
    }
    for turn in &mut turns {
        if turn.speaker == Speaker::User {
            turn.parts.sort_by_key(|part| !matches!(part, Part::ToolResult { .. }));
        }
    }
    turns
}

fn user_text(text: &str) -> Turn<'_> {
    Turn { speaker: Speaker::User, parts: vec![Part::Text(Cow::Borrowed(text))] }
}

#[derive(Default)]
struct Order<'a> {
    turns: Vec<Turn<'a>>,
    /// Tool uses of the last assistant turn that have no result yet.
    open_calls: Vec<&'a str>,
}

impl<'a> Order<'a> {
    /// The turn of this speaker at the end, new if the other one spoke last.
    fn turn(&mut self, speaker: Speaker) -> &mut Turn<'a> {
        if self.turns.last().is_none_or(|turn| turn.speaker != speaker) {
            self.turns.push(Turn { speaker, parts: Vec::new() });
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }

    fn answer_open_calls(&mut self) {
        for id in std::mem::take(&mut self.open_calls) {
            let result = Part::ToolResult { id, output: INTERRUPTED, is_error: true };
            self.turn(Speaker::User).parts.push(result);
        }
    }

    fn add_assistant(&mut self, message: &'a ConversationMessage, model: &str) {
        let own = message.model.as_deref().is_none_or(|author| models::same_model(author, model));
        let parts: Vec<Part<'a>> =
            message.blocks.iter().filter_map(|block| assistant_part(block, own)).collect();
        if parts.is_empty() {
            return;
        }
        self.answer_open_calls();
        for part in &parts {
            if let Part::ToolUse { id, .. } = part {
                self.open_calls.push(id);
            }
        }
        self.turn(Speaker::Assistant).parts.extend(parts);
    }

    fn add_user(&mut self, message: &'a ConversationMessage) {
        for block in &message.blocks {
            let part = match block {
                ContentBlock::Text { text } if !text.trim().is_empty() => {
                    Part::Text(Cow::Borrowed(text.as_str()))
                }
                ContentBlock::ToolResult {
                    tool_use_id: id, tool_name, output, is_error, ..
                } => {
                    match self.open_calls.iter().position(|open| open == id) {
                        Some(at) => {
                            self.open_calls.remove(at);
                            Part::ToolResult { id, output, is_error: *is_error }
                        }
                        // Its call is gone (compaction): a provider would refuse it as a result.
                        None => {
                            Part::Text(format!("Earlier result of {tool_name}:\n{output}").into())
                        }
                    }
                }
                _ => continue,
            };
            self.turn(Speaker::User).parts.push(part);
        }
    }
}

fn assistant_part(block: &ContentBlock, own: bool) -> Option<Part<'_>> {
    match block {
        ContentBlock::Text { text } if !text.trim().is_empty() => {
            Some(Part::Text(Cow::Borrowed(text.as_str())))
        }
        ContentBlock::Thinking { thinking, signature } => Some(Part::Thinking {
            thinking,
            signature: signature.as_deref().filter(|signature| !signature.is_empty()),
            own,
        }),
        ContentBlock::RedactedThinking { data } => Some(Part::Redacted { data, own }),
        ContentBlock::ToolUse { id, name, input } => {
            Some(Part::ToolUse { id, name, input: object(input) })
        }
        ContentBlock::Text { .. } | ContentBlock::ToolResult { .. } => None,
    }
}

/// A tool input as the JSON object that providers insist on.
fn object(input: &str) -> Cow<'_, RawValue> {
    match serde_json::from_str::<&RawValue>(input) {
        Ok(value) if value.get().starts_with('{') => Cow::Borrowed(value),
        _ => RawValue::from_string(malformed_input(input))
            .map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: MessageRole, blocks: Vec<ContentBlock>) -> Arc<ConversationMessage> {
        Arc::new(ConversationMessage::new(role, blocks))
    }

    fn text(text: &str) -> ContentBlock {
        ContentBlock::Text { text: text.to_owned() }
    }

    fn call(id: &str) -> ContentBlock {
        ContentBlock::ToolUse { id: id.to_owned(), name: "bash".to_owned(), input: "{}".to_owned() }
    }

    fn result(id: &str) -> ContentBlock {
        ContentBlock::ToolResult {
            tool_use_id: id.to_owned(),
            tool_name: "bash".to_owned(),
            output: format!("out {id}"),
            is_error: false,
            facts: None,
        }
    }

    /// The order as one line a turn.
    fn check(messages: &[Arc<ConversationMessage>], expected: &[&str]) {
        let turns = in_order(messages, "claude-opus-4-7");
        let lines: Vec<String> = turns.iter().map(line).collect();
        assert_eq!(lines, expected);
    }

    fn line(turn: &Turn<'_>) -> String {
        let parts: Vec<String> = turn
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => format!("{text:?}"),
                Part::Thinking { thinking, own, .. } => format!("thinks {thinking} own={own}"),
                Part::Redacted { own, .. } => format!("redacted own={own}"),
                Part::ToolUse { id, input, .. } => format!("calls {id} {input}"),
                Part::ToolResult { id, output, is_error } => format!("{id}={output} {is_error}"),
            })
            .collect();
        format!("{:?}: {}", turn.speaker, parts.join(", "))
    }

    use MessageRole::{Assistant, System, Tool, User};

    #[test]
    fn messages_of_one_side_become_one_turn_and_a_summary_is_the_users() {
        check(
            &[
                message(System, vec![text("summary")]),
                message(User, vec![text("hi"), text("  ")]),
                message(Assistant, vec![text(""), text("a")]),
                message(Assistant, vec![text("b")]),
                message(User, vec![text("bye")]),
            ],
            &[r#"User: "summary", "hi""#, r#"Assistant: "a", "b""#, r#"User: "bye""#],
        );
    }

    #[test]
    fn every_tool_use_is_followed_by_its_result() {
        check(
            &[
                message(User, vec![text("go")]),
                message(Assistant, vec![call("1"), call("2")]),
                message(Tool, vec![result("2")]),
                message(User, vec![text("and?")]),
                message(Assistant, vec![call("3")]),
                message(Assistant, vec![text("cut")]),
                message(User, vec![text("more")]),
            ],
            &[
                r#"User: "go""#,
                "Assistant: calls 1 {}, calls 2 {}",
                r#"User: 2=out 2 false, 1=interrupted true, "and?""#,
                "Assistant: calls 3 {}",
                "User: 3=interrupted true",
                r#"Assistant: "cut""#,
                r#"User: "more""#,
            ],
        );
    }

    #[test]
    fn a_result_without_its_call_is_text() {
        check(
            &[message(Tool, vec![result("9")]), message(User, vec![text("hi")])],
            &[r#"User: "Earlier result of bash:\nout 9", "hi""#],
        );
    }

    #[test]
    fn a_conversation_that_ends_with_the_assistant_is_asked_to_go_on() {
        check(
            &[message(Assistant, vec![text("half")])],
            &[
                r#"User: "(The beginning of the conversation is not available.)""#,
                r#"Assistant: "half""#,
                r#"User: "Continue.""#,
            ],
        );
        check(&[], &[r#"User: "Continue.""#]);
    }

    #[test]
    fn tool_input_is_always_an_object() {
        let check = |input: &str, expected: &str| assert_eq!(object(input).get(), expected);
        check(r#" {"a":1}"#, r#"{"a":1}"#);
        check("{\"a\":", r#"{"malformed_input":"{\"a\":"}"#);
        check("", r#"{"malformed_input":""}"#);
        check("[1]", r#"{"malformed_input":"[1]"}"#);
    }

    #[test]
    fn thinking_knows_whether_the_model_that_is_asked_wrote_it() {
        let thinking =
            ContentBlock::Thinking { thinking: "hm".to_owned(), signature: Some("s".to_owned()) };
        let by = |model: Option<&str>| {
            let mut message = ConversationMessage::new(Assistant, vec![thinking.clone()]);
            message.model = model.map(str::to_owned);
            vec![Arc::new(ConversationMessage::user("x")), Arc::new(message)]
        };
        for (author, own) in
            [(None, true), (Some("claude-opus-4-7"), true), (Some("grok-3"), false)]
        {
            let messages = by(author);
            let turns = in_order(&messages, "anthropic/claude-opus-4-7");
            assert_eq!(line(&turns[1]), format!("Assistant: thinks hm own={own}"));
        }
    }
}
