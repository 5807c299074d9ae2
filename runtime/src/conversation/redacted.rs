//! Known credentials out of what a model says, for every backend: in the pieces that are shown while
//! it speaks, and in the message that is kept.
//!
//! Tool calls are for eyes without them too; what runs is the call as the model made it. A signed
//! thought stays whole in memory, because the provider that signed it would refuse a changed one.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use crate::event::{StreamSink, TuiEvent};
use crate::redact::{Redactor, ValueStream};
use crate::session::{ContentBlock, ConversationMessage};

/// Passes events on without known values.
pub(super) struct RedactedSink {
    inner: Arc<dyn StreamSink>,
    redactor: Redactor,
    state: Mutex<State>,
}

struct State {
    stream: ValueStream,
    /// What is held back belongs to thinking, not to text.
    thinks: bool,
    /// Characters of the thought that is being told.
    thought_chars: usize,
}

impl RedactedSink {
    pub fn new(inner: Arc<dyn StreamSink>, redactor: Redactor) -> Self {
        let stream = redactor.value_stream();
        let state = Mutex::new(State { stream, thinks: false, thought_chars: 0 });
        Self { inner, redactor, state }
    }

    fn delta(&self, state: &mut State, thinks: bool, text: &str) {
        if state.thinks != thinks {
            self.let_go(state);
            state.thinks = thinks;
        }
        let ready = state.stream.push(text);
        self.tell(state, ready);
    }

    /// Tells what was held back: what follows does not continue it.
    fn let_go(&self, state: &mut State) {
        let ready = state.stream.finish();
        self.tell(state, ready);
    }

    fn tell(&self, state: &mut State, text: String) {
        if text.is_empty() {
            return;
        }
        self.inner.emit(if state.thinks {
            state.thought_chars += text.chars().count();
            TuiEvent::ThinkingDelta { text }
        } else {
            TuiEvent::TextDelta { text }
        });
    }

    fn redact(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redactor.redact_values(text) {
            *text = redacted;
        }
    }
}

impl StreamSink for RedactedSink {
    fn emit(&self, mut event: TuiEvent) {
        // The lock is held while the event goes on: events keep their order.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut event {
            TuiEvent::TextDelta { text } => return self.delta(&mut state, false, text),
            TuiEvent::ThinkingDelta { text } => return self.delta(&mut state, true, text),
            // Signs of life and notices may come between two pieces.
            TuiEvent::Stalled { .. } | TuiEvent::Retrying { .. } | TuiEvent::Notice { .. } => {}
            TuiEvent::ThinkingEnded { char_count, redacted } => {
                self.let_go(&mut state);
                let told = std::mem::take(&mut state.thought_chars);
                if !*redacted {
                    *char_count = told;
                }
            }
            TuiEvent::ToolUse { input, .. }
            | TuiEvent::ToolStarted { input, .. }
            | TuiEvent::ToolResult { input, .. } => {
                self.let_go(&mut state);
                self.redact(input);
            }
            _ => self.let_go(&mut state),
        }
        self.inner.emit(event);
    }
}

/// Takes known values out of the words of a message that is about to be kept.
pub(super) fn redact_words(redactor: &Redactor, message: &mut ConversationMessage) {
    for block in &mut message.blocks {
        match block {
            ContentBlock::Text { text }
            | ContentBlock::Thinking { thinking: text, signature: None } => {
                if let Cow::Owned(redacted) = redactor.redact_values(text) {
                    *text = redacted;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::StopReason;
    use crate::session::MessageRole;

    const KEY: &str = "planted-marker-4711";

    #[derive(Default)]
    struct Recorder(Mutex<String>);

    impl StreamSink for Recorder {
        fn emit(&self, event: TuiEvent) {
            let words = match event {
                TuiEvent::TextDelta { text } => text,
                TuiEvent::ThinkingDelta { text } => format!("({text})"),
                TuiEvent::ThinkingEnded { char_count, .. } => format!("<thought {char_count}>"),
                TuiEvent::ToolUse { input, .. } => format!("<use {input}>"),
                TuiEvent::Stalled { .. } => "<stalled>".to_owned(),
                TuiEvent::MessageStop { .. } => "<stop>".to_owned(),
                other => panic!("not told here: {other:?}"),
            };
            self.0.lock().unwrap().push_str(&words);
        }
    }

    fn check(events: Vec<TuiEvent>, expected: &str) {
        let recorder = Arc::new(Recorder::default());
        let sink = RedactedSink::new(recorder.clone(), Redactor::new([KEY]));
        for event in events {
            sink.emit(event);
        }
        assert_eq!(*recorder.0.lock().unwrap(), expected);
    }

    fn text(text: &str) -> TuiEvent {
        TuiEvent::TextDelta { text: text.to_owned() }
    }

    fn thinking(text: &str) -> TuiEvent {
        TuiEvent::ThinkingDelta { text: text.to_owned() }
    }

    fn stop() -> TuiEvent {
        TuiEvent::MessageStop { stop_reason: StopReason::EndTurn }
    }

    #[test]
    fn a_known_value_is_not_shown_however_it_is_cut_and_nothing_else_is_lost() {
        let silence = TuiEvent::Stalled { silent_for: std::time::Duration::from_secs(9) };
        check(
            vec![text("It is planted-m"), silence, text("arker-47"), text("11. A p"), stop()],
            "It is <stalled>[redacted]. A p<stop>",
        );
        let ended = TuiEvent::ThinkingEnded { char_count: 19, redacted: false };
        check(
            vec![thinking("planted"), thinking("-marker-4711"), ended, text("Done"), stop()],
            "([redacted])<thought 10>Done<stop>",
        );
        check(vec![thinking("a pla"), text("nted"), stop()], "(a )(pla)nted<stop>");
        let input = format!(r#"{{"command":"echo {KEY}"}}"#);
        let call = TuiEvent::ToolUse { id: "1".into(), name: "bash".into(), input };
        check(vec![text("p"), call], r#"p<use {"command":"echo [redacted]"}>"#);
    }

    #[test]
    fn what_is_kept_is_what_was_shown_and_signed_thoughts_and_calls_stay() {
        let said = || format!("say {KEY}");
        let signed = || Some("signature".to_owned());
        let call = ContentBlock::ToolUse { id: "1".into(), name: "bash".into(), input: said() };
        let kept = vec![ContentBlock::Thinking { thinking: said(), signature: signed() }, call];
        let mut blocks = vec![
            ContentBlock::Text { text: said() },
            ContentBlock::Thinking { thinking: said(), signature: None },
        ];
        blocks.extend(kept.clone());
        let mut message = ConversationMessage::new(MessageRole::Assistant, blocks);
        redact_words(&Redactor::new([KEY]), &mut message);
        let redacted = || "say [redacted]".to_owned();
        let mut expected = vec![
            ContentBlock::Text { text: redacted() },
            ContentBlock::Thinking { thinking: redacted(), signature: None },
        ];
        expected.extend(kept);
        assert_eq!(message.blocks, expected);
    }
}
