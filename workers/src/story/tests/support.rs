//! A sink that writes events down as one line each, and the fixtures as facts.

use std::sync::Mutex;

use claw_runtime::session::{ContentBlock, ConversationMessage};
use claw_runtime::{StreamSink, TuiEvent};
use jiff::tz::TimeZone;

use crate::fact::{Fact, PromptSource};
use crate::story::{Ending, Story};
use crate::stream::codec::{Decoder, StreamMessage};

/// Keeps events as text.
#[derive(Default)]
pub struct Notebook(Mutex<Vec<String>>);

impl StreamSink for Notebook {
    fn emit(&self, event: TuiEvent) {
        self.0.lock().unwrap().push(line(&event));
    }
}

impl Notebook {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The events, deltas that follow each other joined.
    pub fn text(&self) -> String {
        let mut out: Vec<String> = Vec::new();
        for line in self.lines() {
            let joined = ["text ", "thinking "].iter().any(|kind| {
                let (Some(last), Some(rest)) = (out.last_mut(), line.strip_prefix(kind)) else {
                    return false;
                };
                let same = last.starts_with(kind);
                if same {
                    last.push_str(rest);
                }
                same
            });
            if !joined {
                out.push(line);
            }
        }
        out.join("\n")
    }

    /// Everything that was told as text of the answer.
    pub fn said(&self) -> String {
        self.lines().iter().filter_map(|line| line.strip_prefix("text ")).collect()
    }
}

fn line(event: &TuiEvent) -> String {
    match event {
        TuiEvent::TextDelta { text } => format!("text {text}"),
        TuiEvent::ThinkingStarted => "think begun".to_owned(),
        TuiEvent::ThinkingDelta { text } => format!("thinking {text}"),
        TuiEvent::ThinkingEnded { char_count, redacted } => {
            format!("thought {char_count}{}", if *redacted { " redacted" } else { "" })
        }
        TuiEvent::ToolUseStarted { id, name } => format!("use begun {} {name}", short(id)),
        TuiEvent::ToolUse { id, name, input } => format!("use {} {name} {input}", short(id)),
        TuiEvent::ToolUseIncomplete { id, .. } => format!("use incomplete {}", short(id)),
        TuiEvent::ToolStarted { id, input, iteration, .. } => {
            format!("started {} {input} in {iteration}", short(id))
        }
        TuiEvent::ToolOutput { id, text } => format!("output {} {text:?}", short(id)),
        TuiEvent::ToolEnded { id, is_error, elapsed } => {
            format!("ended {} error={is_error} {elapsed:?}", short(id))
        }
        TuiEvent::ToolResult { id, name, input, outcome, denied, .. } => format!(
            "result {} {name} {input} -> {:?} error={} denied={denied}",
            short(id),
            outcome.output,
            outcome.is_error
        ),
        TuiEvent::MessageStop { stop_reason } => format!("stop {stop_reason:?}"),
        TuiEvent::Retrying { attempt, max_attempts, wait, reason } => {
            format!("retry {attempt}/{max_attempts} {wait:?} {reason}")
        }
        TuiEvent::Notice { level, text } => format!("notice {level:?} {text}"),
        other => format!("{other:?}"),
    }
}

/// Ids are made up; their last characters are enough to tell them apart.
fn short(id: &str) -> &str {
    &id[id.len().saturating_sub(4)..]
}

pub fn story() -> Story {
    Story::in_zone(TimeZone::UTC)
}

/// Tells facts and ends the turn.
pub fn told(
    facts: impl IntoIterator<Item = Fact>,
    ending: &Ending,
) -> (Notebook, Vec<ConversationMessage>) {
    let (book, mut story) = (Notebook::default(), story());
    for fact in facts {
        story.tell(fact, &book);
    }
    let turn = story.finish(ending, &book);
    (book, turn.messages)
}

pub fn completed() -> Ending {
    Ending::Completed { last_message: None }
}

/// The facts of a stream-json capture, turn by turn, and how each ended. A prompt that is echoed after
/// the first one of a turn was sent during the turn.
pub fn captured(path: &str) -> Vec<(Vec<Fact>, Ending)> {
    let path =
        format!("{}/../tests/fixtures/claude/stream-json/{path}", env!("CARGO_MANIFEST_DIR"));
    let mut decoder = Decoder::default();
    let (mut turns, mut facts, mut echoed) = (Vec::new(), Vec::new(), false);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["dir"] != "out" {
            continue;
        }
        match decoder.decode(&line["msg"].to_string()).unwrap() {
            StreamMessage::Facts(more) => facts.extend(more),
            StreamMessage::Replayed { text } if echoed => {
                let source = PromptSource::Queued;
                facts.push(Fact::Prompt { prompt_id: None, text, source });
            }
            StreamMessage::Replayed { .. } => echoed = true,
            StreamMessage::Result(outcome) => {
                let ending = if outcome.broken { Ending::Interrupted } else { completed() };
                turns.push((std::mem::take(&mut facts), ending));
                echoed = false;
            }
            _ => {}
        }
    }
    if !facts.is_empty() {
        turns.push((facts, Ending::Failed));
    }
    turns
}

/// Whether a fact is for eyes only.
pub fn is_live(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::MessageBegan { .. }
            | Fact::ThinkingBegan { .. }
            | Fact::ThinkingDelta { .. }
            | Fact::TextDelta { .. }
            | Fact::ToolUseBegan { .. }
            | Fact::BlockEnded { .. }
            | Fact::MessageEnded { .. }
            | Fact::Lines { .. }
            | Fact::ToolStarted { .. }
            | Fact::ToolEnded { .. }
    )
}

/// Messages in short: role, and each block.
pub fn outline(messages: &[ConversationMessage]) -> String {
    let mut out = String::new();
    for message in messages {
        out += message.role.as_str();
        if let Some(partial) = message.partial {
            out += &format!(" ({})", partial.as_str());
        }
        if let Some(usage) = message.usage {
            out += &format!(" {}+{}", usage.context_tokens(), usage.output_tokens);
        }
        out.push('\n');
        for block in &message.blocks {
            out += &match block {
                ContentBlock::Text { text } => format!("  text {text}\n"),
                ContentBlock::Thinking { thinking, signature } => {
                    format!("  thinking {thinking} signed={}\n", signature.is_some())
                }
                ContentBlock::RedactedThinking { .. } => "  redacted\n".to_owned(),
                ContentBlock::ToolUse { id, name, input } => {
                    format!("  use {} {name} {input}\n", short(id))
                }
                ContentBlock::ToolResult { tool_use_id, tool_name, output, is_error, .. } => {
                    format!(
                        "  result {} {tool_name} {output:?} error={is_error}\n",
                        short(tool_use_id)
                    )
                }
            };
        }
    }
    out
}

/// The text of the assistant in these messages.
pub fn answer(messages: &[ConversationMessage]) -> String {
    let texts = messages.iter().filter(|message| message.role.as_str() == "assistant");
    texts.map(ConversationMessage::text).collect()
}
