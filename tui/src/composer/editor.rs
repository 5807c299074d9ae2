//! The draft as lines of text, with a caret that never stops inside a character.
//!
//! Text, undo and the kill buffer are `tui_textarea`'s; this file is the only one that names it.
//! It adds what that crate lacks: caret moves and deletions by grapheme (what a person calls a
//! character), and jumps without the limit of 16 bits. Wrapping and drawing live in `layout`.

use std::ops::Range;

use tui_textarea::{AtomicRange, CursorMove, TextArea};
use unicode_segmentation::GraphemeCursor;

/// How many edits can be undone.
const UNDO_DEPTH: usize = 500;

/// A caret place: line, and byte in that line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caret {
    pub line: usize,
    pub byte: usize,
}

pub struct Editor {
    area: TextArea<'static>,
    /// Changes with every change of the text, so that a layout can be reused while it is right.
    revision: u64,
}

impl Default for Editor {
    fn default() -> Self {
        let mut area = TextArea::default();
        area.set_max_histories(UNDO_DEPTH);
        area.set_undo_coalescing(true);
        Self { area, revision: 0 }
    }
}

impl Editor {
    pub fn lines(&self) -> &[String] {
        self.area.lines()
    }

    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn caret(&self) -> Caret {
        let (line, column) = self.area.cursor();
        let text = &self.area.lines()[line];
        let byte = text.char_indices().nth(column).map_or(text.len(), |(byte, _)| byte);
        Caret { line, byte }
    }

    /// True when nothing follows the caret.
    pub fn at_end(&self) -> bool {
        let caret = self.caret();
        caret.line + 1 == self.lines().len() && caret.byte == self.lines()[caret.line].len()
    }

    /// Puts the caret here, moved back to the beginning of the character it would split.
    pub fn jump(&mut self, caret: Caret) {
        let line = caret.line.min(self.lines().len() - 1);
        let text = &self.lines()[line];
        let mut byte = caret.byte.min(text.len());
        while !is_boundary(text, byte) {
            byte -= 1;
        }
        let column = text[..byte].chars().count();
        self.move_to(line, column);
    }

    /// The crate's jump takes 16 bits; what is beyond is walked.
    fn move_to(&mut self, line: usize, column: usize) {
        let clamp = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        self.area.move_cursor(CursorMove::Jump(clamp(line), 0));
        for _ in usize::from(clamp(line))..line {
            self.area.move_cursor(CursorMove::Down);
        }
        if let Ok(near) = u16::try_from(column) {
            self.area.move_cursor(CursorMove::Jump(clamp(self.area.cursor().0), near));
            return;
        }
        self.area.move_cursor(CursorMove::End);
        while self.area.cursor().1 > column {
            self.area.move_cursor(CursorMove::Back);
        }
    }

    pub fn left(&mut self) {
        let caret = self.caret();
        if caret.byte == 0 {
            if caret.line > 0 {
                let byte = self.lines()[caret.line - 1].len();
                self.jump(Caret { line: caret.line - 1, byte });
            }
            return;
        }
        let text = &self.lines()[caret.line];
        let byte = self
            .chip(caret.line, |chip| chip.start < caret.byte && caret.byte <= chip.end)
            .map_or_else(|| previous(text, caret.byte), |chip| chip.start);
        self.jump(Caret { line: caret.line, byte });
    }

    pub fn right(&mut self) {
        let caret = self.caret();
        let text = &self.lines()[caret.line];
        if caret.byte == text.len() {
            if caret.line + 1 < self.lines().len() {
                self.jump(Caret { line: caret.line + 1, byte: 0 });
            }
            return;
        }
        let byte = self
            .chip(caret.line, |chip| chip.start <= caret.byte && caret.byte < chip.end)
            .map_or_else(|| next(text, caret.byte), |chip| chip.end);
        self.jump(Caret { line: caret.line, byte });
    }

    pub fn word_left(&mut self) {
        self.step(CursorMove::WordBack);
    }

    pub fn word_right(&mut self) {
        self.step(CursorMove::WordForward);
    }

    pub fn line_start(&mut self) {
        self.step(CursorMove::Head);
    }

    pub fn line_end(&mut self) {
        self.step(CursorMove::End);
    }

    fn step(&mut self, movement: CursorMove) {
        self.area.move_cursor(movement);
        // Word boundaries of the crate can fall inside a character made of several code points.
        let caret = self.caret();
        if !is_boundary(&self.lines()[caret.line], caret.byte) {
            self.jump(caret);
        }
    }

    pub fn insert_char(&mut self, c: char) {
        self.area.insert_char(c);
        self.changed();
    }

    pub fn insert_str(&mut self, text: &str) {
        self.area.insert_str(text);
        self.changed();
    }

    pub fn newline(&mut self) {
        self.area.insert_newline();
        self.changed();
    }

    pub fn backspace(&mut self) {
        let caret = self.caret();
        let text = &self.lines()[caret.line];
        let on_chip = self.chip(caret.line, |chip| chip.end == caret.byte).is_some();
        let start = if caret.byte == 0 { 0 } else { previous(text, caret.byte) };
        let chars = text[start..caret.byte].chars().count();
        if on_chip || chars <= 1 {
            self.area.delete_char();
        } else {
            self.delete_chars(Caret { line: caret.line, byte: start }, chars);
        }
        self.changed();
    }

    pub fn delete(&mut self) {
        let caret = self.caret();
        let text = &self.lines()[caret.line];
        let on_chip = self.chip(caret.line, |chip| chip.start == caret.byte).is_some();
        let chars = text[caret.byte..next(text, caret.byte)].chars().count();
        if on_chip || chars <= 1 {
            self.area.delete_next_char();
        } else {
            self.delete_chars(caret, chars);
        }
        self.changed();
    }

    /// Deletes without touching what Ctrl+Y would put back.
    fn delete_chars(&mut self, from: Caret, chars: usize) {
        let kept = self.area.yank_text();
        self.jump(from);
        self.area.delete_str(chars);
        self.area.set_yank_text(kept);
    }

    pub fn kill_word_left(&mut self) {
        self.area.delete_word();
        self.changed();
    }

    pub fn kill_word_right(&mut self) {
        self.area.delete_next_word();
        self.changed();
    }

    pub fn kill_line_end(&mut self) {
        self.area.delete_line_by_end();
        self.changed();
    }

    /// Empties the draft into the kill buffer; undo brings it back too.
    pub fn kill_all(&mut self) {
        self.area.clear();
        self.changed();
    }

    /// Puts back what was killed last.
    pub fn yank(&mut self) {
        self.area.paste();
        self.changed();
    }

    pub fn undo(&mut self) -> bool {
        let done = self.area.undo();
        self.changed();
        done
    }

    pub fn redo(&mut self) -> bool {
        let done = self.area.redo();
        self.changed();
        done
    }

    /// Another text in place of this one, the caret at its end. Can be undone; the kill buffer
    /// stays.
    pub fn replace(&mut self, text: &str) {
        let kept = self.area.yank_text();
        self.area.clear();
        self.area.set_yank_text(kept);
        self.area.insert_str(text);
        self.changed();
    }

    /// Empties the draft and forgets its edits; the kill buffer stays.
    pub fn reset(&mut self) {
        self.area.set_lines(vec![String::new()], (0, 0));
        self.changed();
    }

    fn changed(&mut self) {
        self.revision += 1;
    }

    /// Makes these stretches of text behave as one character each: line, and bytes in it. Must be
    /// called again after every change.
    pub fn set_chips(&mut self, chips: &[(usize, Range<usize>)]) {
        let ranges: Vec<AtomicRange> = chips
            .iter()
            .filter_map(|(row, bytes)| {
                let text = self.area.lines().get(*row)?;
                let start_col = text.get(..bytes.start)?.chars().count();
                let end_col = start_col + text.get(bytes.clone())?.chars().count();
                Some(AtomicRange { row: *row, start_col, end_col })
            })
            .collect();
        if self.area.try_set_atomic_ranges(ranges).is_err() {
            self.area.clear_atomic_ranges();
        }
    }

    /// The chip of this line for which the condition on its bytes holds.
    fn chip(&self, line: usize, holds: impl Fn(&Range<usize>) -> bool) -> Option<Range<usize>> {
        let text = &self.lines()[line];
        let at = |column: usize| text.char_indices().nth(column).map_or(text.len(), |(at, _)| at);
        self.area
            .atomic_ranges()
            .iter()
            .filter(|range| range.row == line)
            .map(|range| at(range.start_col)..at(range.end_col))
            .find(holds)
    }
}

fn is_boundary(text: &str, byte: usize) -> bool {
    text.is_char_boundary(byte)
        && GraphemeCursor::new(byte, text.len(), true).is_boundary(text, 0).unwrap_or(true)
}

fn previous(text: &str, byte: usize) -> usize {
    GraphemeCursor::new(byte, text.len(), true).prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

fn next(text: &str, byte: usize) -> usize {
    GraphemeCursor::new(byte, text.len(), true)
        .next_boundary(text, 0)
        .ok()
        .flatten()
        .unwrap_or(text.len())
}
