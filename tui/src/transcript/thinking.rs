//! The model's thinking: its last lines while it streams, one line afterwards.

use std::borrow::Cow;

use ratatui::text::{Line, Span};

use super::cell::{Env, marked};
use super::source::Source;
use crate::markdown::wrap::{Margins, wrap_words};
use crate::numbers::grouped;
use crate::sanitise::Sanitiser;

/// Lines of live thinking on the screen.
const TAIL_LINES: usize = 4;

#[derive(Debug)]
pub struct Thinking {
    text: Source,
    state: State,
}

#[derive(Debug)]
enum State {
    Live(Sanitiser),
    /// `chars` as the provider counted; none is counted when it is shown.
    Done {
        chars: Option<usize>,
    },
    /// The provider keeps the text to itself.
    Hidden,
}

impl Thinking {
    pub fn live() -> Self {
        Self { text: Source::Own(String::new()), state: State::Live(Sanitiser::text()) }
    }

    pub fn finished(text: Source) -> Self {
        Self { text, state: State::Done { chars: None } }
    }

    pub fn hidden() -> Self {
        Self { text: Source::Own(String::new()), state: State::Hidden }
    }

    pub fn push(&mut self, delta: &str) {
        if let (State::Live(sanitiser), Source::Own(text)) = (&mut self.state, &mut self.text) {
            sanitiser.push(delta, text);
        }
    }

    /// It ended as the provider said, or (without a count) because something else began.
    pub fn finish(&mut self, chars: Option<usize>, redacted: bool) {
        let empty = matches!(&self.text, Source::Own(text) if text.is_empty());
        self.state = if redacted || (empty && chars.unwrap_or(0) == 0) {
            State::Hidden
        } else {
            State::Done { chars }
        };
    }

    pub fn is_collapsible(&self) -> bool {
        matches!(self.state, State::Done { .. })
    }

    pub fn text(&self) -> Cow<'_, str> {
        self.text.text()
    }

    pub fn lay_out(&self, expanded: bool, env: &mut Env<'_>, out: &mut Vec<Line<'static>>) {
        let style = env.theme.thinking;
        let text = self.text.text();
        match &self.state {
            State::Live(_) => {
                marked("▸ ", "Thinking…", env.theme.running, style, env, out);
                let width = usize::from(env.width);
                let mut lines = Vec::new();
                body(tail(&text, width), env, &mut lines);
                let from = lines.len().saturating_sub(TAIL_LINES);
                out.extend(lines.drain(from..));
            }
            State::Hidden => {
                marked("▸ ", "Thinking (hidden by the provider)", style, style, env, out);
            }
            State::Done { chars } => {
                let chars = grouped(chars.unwrap_or_else(|| text.chars().count()));
                let mark = if expanded { "▾ " } else { "▸ " };
                marked(mark, &format!("Thinking ({chars} chars)"), style, style, env, out);
                if expanded {
                    body(text.trim(), env, out);
                }
            }
        }
    }
}

fn body(text: &str, env: &Env<'_>, out: &mut Vec<Line<'static>>) {
    if text.trim().is_empty() {
        return;
    }
    let margins = Margins { first: vec![Span::raw("  ")], rest: vec![Span::raw("  ")] };
    let span = Span::styled(text.trim_end().to_owned(), env.theme.thinking);
    wrap_words(&[span], usize::from(env.width), &margins, out);
}

/// Enough of the end of `text` to fill the tail, from the start of a line where one is near.
fn tail(text: &str, width: usize) -> &str {
    let bytes = (TAIL_LINES + 1) * width.max(1) * 4;
    if text.len() <= bytes {
        return text.trim_start();
    }
    let mut at = text.len() - bytes;
    while !text.is_char_boundary(at) {
        at += 1;
    }
    let cut = &text[at..];
    cut.split_once('\n').map_or(cut, |(_, rest)| if rest.trim().is_empty() { cut } else { rest })
}
