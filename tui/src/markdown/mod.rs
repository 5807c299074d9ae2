//! Markdown to styled lines of a given width.
//!
//! Every top-level block is laid out by itself, so that a growing text can keep the lines of its
//! finished blocks (see `transcript`). Code lines stand at column 0 without any decoration, so what
//! is selected on the screen is what was written. Colours of code come from a [`CodeColours`], or
//! later: they never change a width.
//!
//! The source is expected to be clean; what the parser decodes out of entities is cleaned here.
//! Deliberately missing: scrolling, and any clock.

mod blocks;
mod highlight;
mod nesting;
mod syntax;
mod table;
pub mod wrap;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use ratatui::text::Line;

use crate::theme::{CodeRole, Theme};

pub use highlight::{Highlighter, Wake};

/// Roles of the pieces of each line of a code block, as byte lengths: at most as many lines as the
/// block has; what is not covered is plain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColouredCode {
    pub lines: Vec<Vec<(u32, CodeRole)>>,
}

/// What is known about the colours of a block.
#[derive(Debug, Clone)]
pub enum Colours {
    Ready(Arc<ColouredCode>),
    /// They are being worked out: drawn plain (or in the colours known so far) for now.
    Pending(Option<Arc<ColouredCode>>),
    /// It stays plain.
    Never,
}

/// Knows the colours of code, or finds them out in the background.
pub trait CodeColours {
    /// Colours for `code`. `open` says that more lines are still to come and that the last line may
    /// be half a line.
    fn colours(&mut self, language: &str, code: &str, open: bool) -> Colours;

    /// Takes in what was found out meanwhile. The number returned changes when something was.
    fn poll(&mut self) -> u64 {
        0
    }
}

/// Leaves all code plain.
pub struct PlainCode;

impl CodeColours for PlainCode {
    fn colours(&mut self, _language: &str, _code: &str, _open: bool) -> Colours {
        Colours::Never
    }
}

/// One top-level block of a document.
#[derive(Debug, Clone)]
pub struct Block {
    /// Where it starts in the source, in bytes.
    pub start: usize,
    /// A blank line belongs between it and the block before it.
    pub gap: bool,
    pub lines: Vec<Line<'static>>,
    /// Colours of code in it are still to come.
    pub pending: bool,
    /// Everything before it is finished whatever text follows: the source can be cut at `start`
    /// and both parts laid out by themselves with the same lines.
    pub safe_start: bool,
}

/// A document laid out block by block.
#[derive(Debug, Clone, Default)]
pub struct Document {
    pub blocks: Vec<Block>,
    /// It defines link references, which change the meaning of text anywhere: it must be laid out
    /// as a whole.
    pub has_references: bool,
}

/// Lays out a document block by block. `open` says that more text is still to come.
pub fn render_blocks(
    source: &str,
    width: u16,
    theme: &Theme,
    colours: &mut dyn CodeColours,
    open: bool,
) -> Document {
    blocks::render(source, usize::from(width.max(1)), theme, colours, open)
}

/// Lays out a whole document.
pub fn render(
    source: &str,
    width: u16,
    theme: &Theme,
    colours: &mut dyn CodeColours,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for block in render_blocks(source, width, theme, colours, false).blocks {
        if block.gap {
            lines.push(Line::default());
        }
        lines.extend(block.lines);
    }
    lines
}

/// The code blocks of a document, in order, each as it was written and without a final line feed.
pub fn code_blocks(source: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    for event in Parser::new_ext(source, blocks::OPTIONS) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => {
                found.push(String::new());
                inside = true;
            }
            Event::End(TagEnd::CodeBlock) => {
                inside = false;
                if let Some(code) = found.last_mut()
                    && code.ends_with('\n')
                {
                    code.pop();
                }
            }
            Event::Text(text) if inside => {
                if let Some(code) = found.last_mut() {
                    code.push_str(&text);
                }
            }
            _ => {}
        }
    }
    found
}

/// Length of the part of a growing text that can be shown: a last line whose meaning is not yet
/// known (a marker without its text, the head of a table) waits for what follows it.
pub fn settled_len(source: &str) -> usize {
    let line_start = source.rfind('\n').map_or(0, |at| at + 1);
    let last = source[line_start..].trim();
    if last.starts_with("```") || last.starts_with("~~~") {
        return line_start;
    }
    if !last.is_empty() {
        let marker = |c: char| "-=*_#>`~+:| ".contains(c) || c.is_ascii_digit();
        if (last.len() <= 12 && last.chars().all(marker)) || is_list_number(last) {
            return table_start(source, line_start).unwrap_or(line_start);
        }
    }
    table_start(source, source.len()).unwrap_or(source.len())
}

/// "12." or "3)" before the item's text has come.
fn is_list_number(line: &str) -> bool {
    line.strip_suffix(['.', ')'].as_slice())
        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Start of a table whose first two lines are not both complete, within `source[..end]`.
fn table_start(source: &str, end: usize) -> Option<usize> {
    let mut start = None;
    let mut complete = 0;
    let mut at = end;
    while at > 0 {
        let line_end = if source[..at].ends_with('\n') { at - 1 } else { at };
        let line_start = source[..line_end].rfind('\n').map_or(0, |at| at + 1);
        if !source[line_start..line_end].trim_start().starts_with('|') {
            break;
        }
        complete += usize::from(line_end < at);
        if complete >= 2 {
            return None;
        }
        start = Some(line_start);
        at = line_start;
    }
    start
}
