//! The text of an answer: markdown that grows.
//!
//! While it streams, a delta costs a string append. A layout parses only what follows the last
//! *safe boundary*: the start of a block that is separated by a blank line from everything before
//! it and whose first line is whole, so that no further text can change what came earlier. Blocks
//! before it keep their lines. A text that defines link references is laid out as a whole, because
//! such a definition changes the meaning of text anywhere.

use ratatui::text::Line;

use super::cell::Env;
use super::source::Source;
use crate::markdown::{render_blocks, settled_len};
use crate::sanitise::Sanitiser;
use ratatui::text::Span;

/// An assistant's text.
#[derive(Debug)]
pub struct Answer {
    text: Source,
    /// Present while the text grows.
    stream: Option<Sanitiser>,
    /// Why the text is not whole, in words.
    mark: Option<String>,
}

/// The lines of an answer, and how far they are final.
#[derive(Debug, Default)]
pub struct AnswerLines {
    pub lines: Vec<Line<'static>>,
    /// Bytes of the source and lines that no further text can change.
    stable_bytes: usize,
    stable_lines: usize,
    /// Colours of code are still to come, in the stable part or behind it.
    stable_pending: bool,
    pub pending: bool,
}

impl Answer {
    /// An answer that begins to stream.
    pub fn live() -> Self {
        Self { text: Source::Own(String::new()), stream: Some(Sanitiser::text()), mark: None }
    }

    pub fn finished(text: Source, mark: Option<String>) -> Self {
        Self { text, stream: None, mark }
    }

    pub fn is_live(&self) -> bool {
        self.stream.is_some()
    }

    pub fn push(&mut self, delta: &str) {
        if let (Some(sanitiser), Source::Own(text)) = (&mut self.stream, &mut self.text) {
            sanitiser.push(delta, text);
        }
    }

    /// No more text will come; `mark` says why when it is not whole.
    pub fn finish(&mut self, mark: Option<String>) {
        self.stream = None;
        if mark.is_some() {
            self.mark = mark;
        }
    }

    /// The markdown source, clean.
    pub fn source(&self) -> std::borrow::Cow<'_, str> {
        self.text.text()
    }

    /// Brings `laid` up to date. `colours_changed` says that colours arrived since the last time.
    pub fn lay_out(&self, laid: &mut AnswerLines, env: &mut Env<'_>, colours_changed: bool) {
        if colours_changed && laid.stable_pending {
            *laid = AnswerLines::default();
        }
        let source = self.source();
        let end =
            if self.is_live() { settled_len(&source).max(laid.stable_bytes) } else { source.len() };
        let mut document = render_blocks(
            &source[laid.stable_bytes..end],
            env.width,
            env.theme,
            env.colours,
            self.is_live(),
        );
        if document.has_references && laid.stable_bytes > 0 {
            *laid = AnswerLines::default();
            document =
                render_blocks(&source[..end], env.width, env.theme, env.colours, self.is_live());
        }
        laid.lines.truncate(laid.stable_lines);
        let base = laid.stable_bytes;
        let boundary = if self.is_live() && !document.has_references {
            document.blocks.iter().rposition(|block| block.safe_start).unwrap_or(0)
        } else {
            0
        };
        laid.pending = laid.stable_pending;
        for (index, block) in document.blocks.into_iter().enumerate() {
            if index > 0 && index == boundary {
                laid.stable_bytes = base + block.start;
                laid.stable_lines = laid.lines.len();
                laid.stable_pending = laid.pending;
            }
            if block.gap || (index == 0 && !laid.lines.is_empty()) {
                laid.lines.push(Line::default());
            }
            laid.lines.extend(block.lines);
            laid.pending |= block.pending;
        }
        if let Some(mark) = &self.mark {
            let span = Span::styled(format!("— {mark}"), env.theme.warning);
            crate::markdown::wrap::wrap_words(
                &[span],
                usize::from(env.width),
                &crate::markdown::wrap::Margins::default(),
                &mut laid.lines,
            );
        }
    }
}
