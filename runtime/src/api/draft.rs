//! An answer while it is being written: every piece is told as it arrives, and at the end the pieces
//! are the message. Both wires fill the same draft, so what is shown cannot differ from what is kept.

use serde_json::value::RawValue;

use super::{AssistantTurn, StopReason};
use crate::event::{StreamSink, TuiEvent};
use crate::session::{ContentBlock, ConversationMessage, MessageRole, PartialReason};
use crate::usage::TokenUsage;

/// How the answer came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Complete,
    Cancelled,
    Cut,
}

enum Piece {
    Text(String),
    Thinking { text: String, signature: Option<String>, open: bool },
    Redacted(String),
    Tool(Tool),
}

struct Tool {
    id: String,
    name: String,
    input: String,
    /// The input is whole, valid and told.
    told: bool,
}

/// A piece of the draft, to add to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceId(usize);

pub(super) struct Draft<'a> {
    sink: &'a dyn StreamSink,
    pieces: Vec<Piece>,
    shown: bool,
    pub usage: TokenUsage,
    /// The model that answers, as the provider names it.
    pub model: String,
    pub stop: Option<StopReason>,
}

impl<'a> Draft<'a> {
    pub fn new(sink: &'a dyn StreamSink, model: &str) -> Self {
        Self {
            sink,
            pieces: Vec::new(),
            shown: false,
            usage: TokenUsage::default(),
            model: model.to_owned(),
            stop: None,
        }
    }

    /// Whether anything of this answer was told already.
    pub fn shown(&self) -> bool {
        self.shown
    }

    fn tell(&mut self, event: TuiEvent) {
        self.shown = true;
        self.sink.emit(event);
    }

    fn add(&mut self, piece: Piece) -> PieceId {
        self.pieces.push(piece);
        PieceId(self.pieces.len() - 1)
    }

    pub fn open_text(&mut self) -> PieceId {
        self.add(Piece::Text(String::new()))
    }

    pub fn open_thinking(&mut self) -> PieceId {
        self.tell(TuiEvent::ThinkingStarted);
        self.add(Piece::Thinking { text: String::new(), signature: None, open: true })
    }

    /// Thinking that the provider hides: told as such, kept verbatim.
    pub fn add_redacted(&mut self, data: String) {
        self.tell(TuiEvent::ThinkingStarted);
        self.tell(TuiEvent::ThinkingEnded { char_count: 0, redacted: true });
        self.add(Piece::Redacted(data));
    }

    pub fn open_tool(&mut self, id: String, name: String) -> PieceId {
        self.tell(TuiEvent::ToolUseStarted { id: id.clone(), name: name.clone() });
        self.add(Piece::Tool(Tool { id, name, input: String::new(), told: false }))
    }

    /// Adds text to a text or thinking piece, or input to a tool use.
    pub fn push(&mut self, id: PieceId, part: &str) {
        if part.is_empty() {
            return;
        }
        let event = match &mut self.pieces[id.0] {
            Piece::Text(text) => {
                text.push_str(part);
                TuiEvent::TextDelta { text: part.to_owned() }
            }
            Piece::Thinking { text, .. } => {
                text.push_str(part);
                TuiEvent::ThinkingDelta { text: part.to_owned() }
            }
            Piece::Tool(tool) => {
                tool.input.push_str(part);
                return;
            }
            Piece::Redacted(_) => return,
        };
        self.tell(event);
    }

    /// Adds to the signature of a thinking piece.
    pub fn sign(&mut self, id: PieceId, part: &str) {
        if let Piece::Thinking { signature, .. } = &mut self.pieces[id.0] {
            signature.get_or_insert_default().push_str(part);
        }
    }

    /// The piece is whole. A tool use whose input is not valid JSON waits for the end of the message,
    /// which says whether it was cut.
    pub fn close(&mut self, id: PieceId) {
        let event = match &mut self.pieces[id.0] {
            Piece::Thinking { text, signature, open } if *open => {
                *open = false;
                let char_count = text.chars().count();
                // A signature without a text is thinking that the provider keeps to itself.
                let redacted = char_count == 0 && signature.is_some();
                TuiEvent::ThinkingEnded { char_count, redacted }
            }
            Piece::Tool(tool) if !tool.told => {
                if tool.input.trim().is_empty() {
                    "{}".clone_into(&mut tool.input);
                }
                if serde_json::from_str::<&RawValue>(&tool.input).is_err() {
                    return;
                }
                tool.told = true;
                tool_use(tool)
            }
            _ => return,
        };
        self.tell(event);
    }

    /// Ends the answer: what is open is closed or told as incomplete, and the rest is the message.
    pub fn finish(mut self, ending: Ending) -> AssistantTurn {
        for index in 0..self.pieces.len() {
            if matches!(self.pieces[index], Piece::Thinking { .. }) {
                self.close(PieceId(index));
            }
        }
        let whole = ending == Ending::Complete && self.stop != Some(StopReason::MaxTokens);
        let mut blocks = Vec::new();
        for piece in std::mem::take(&mut self.pieces) {
            match piece {
                Piece::Text(text) if text.is_empty() => {}
                Piece::Text(text) => blocks.push(ContentBlock::Text { text }),
                Piece::Thinking { text, signature, .. } => {
                    if !text.is_empty() || signature.is_some() {
                        blocks.push(ContentBlock::Thinking { thinking: text, signature });
                    }
                }
                Piece::Redacted(data) => blocks.push(ContentBlock::RedactedThinking { data }),
                Piece::Tool(tool) => blocks.extend(self.finish_tool(tool, whole)),
            }
        }
        let stop_reason = match (ending, self.stop.take()) {
            (Ending::Cancelled, _) => StopReason::Cancelled,
            (_, Some(reason)) => reason,
            (_, None) => StopReason::Other("cut off".to_owned()),
        };
        let partial = match ending {
            Ending::Complete => {
                self.tell(TuiEvent::MessageStop { stop_reason: stop_reason.clone() });
                None
            }
            Ending::Cancelled => Some(PartialReason::Cancelled),
            Ending::Cut => Some(PartialReason::Cut),
        };
        // A message that broke off before it said anything is no message.
        let messages = if blocks.is_empty() && partial.is_some() {
            Vec::new()
        } else {
            vec![ConversationMessage {
                role: MessageRole::Assistant,
                blocks,
                usage: Some(self.usage),
                model: Some(std::mem::take(&mut self.model)),
                partial,
            }]
        };
        AssistantTurn { messages, stop_reason }
    }

    /// A tool use at the end of the message: told already, cut, or whole but not JSON. The last one
    /// is handed on as an object that no tool accepts, so that the model hears of its mistake.
    fn finish_tool(&mut self, mut tool: Tool, whole: bool) -> Option<ContentBlock> {
        if !tool.told {
            if !whole {
                self.tell(TuiEvent::ToolUseIncomplete { id: tool.id, name: tool.name });
                return None;
            }
            tool.input = malformed_input(&tool.input);
            let event = tool_use(&tool);
            self.tell(event);
        }
        Some(ContentBlock::ToolUse { id: tool.id, name: tool.name, input: tool.input })
    }
}

fn tool_use(tool: &Tool) -> TuiEvent {
    TuiEvent::ToolUse { id: tool.id.clone(), name: tool.name.clone(), input: tool.input.clone() }
}

/// A tool input that is not JSON, inside JSON that says so.
pub(super) fn malformed_input(input: &str) -> String {
    serde_json::json!({ "malformed_input": input }).to_string()
}
