//! Soft wrapping of the draft and the way between a caret and a place on the screen.
//!
//! Pure: lines and a width in, rows out. Widths are those of `unicode-width`, grapheme by grapheme,
//! which is what ratatui draws with; so the caret is where the terminal shows it.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::editor::Caret;
use crate::sanitise;

/// Columns of a tab.
const TAB: usize = 4;

/// One screen row: the bytes `start..end` of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub line: usize,
    pub start: usize,
    pub end: usize,
}

/// The rows of a draft at one width.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    pub rows: Vec<Row>,
    width: usize,
}

/// What is drawn in one column in place of a grapheme that must not reach the terminal.
pub fn mark(grapheme: &str) -> Option<&'static str> {
    let harmless = grapheme == "\t" || matches!(sanitise::reveal(grapheme), Cow::Borrowed(_));
    (!harmless).then_some("\u{fffd}")
}

/// Columns that a grapheme takes in the composer.
pub fn columns(grapheme: &str) -> usize {
    match grapheme {
        // Most text is this; nothing has to be looked up for it.
        g if g.len() == 1 && matches!(g.as_bytes()[0], b' '..=b'~') => 1,
        "\t" => TAB,
        g if mark(g).is_some() => 1,
        g => g.width(),
    }
}

impl Layout {
    /// Wraps at words where possible. Spaces that do not fit hang over the edge.
    pub fn new(lines: &[String], width: usize) -> Self {
        let width = width.max(1);
        let mut rows = Vec::with_capacity(lines.len());
        for (line, text) in lines.iter().enumerate() {
            wrap(line, text, width, &mut rows);
        }
        Self { rows, width }
    }

    /// The row that holds the caret, and its column in it.
    pub fn place(&self, lines: &[String], caret: Caret) -> (usize, usize) {
        let from = self.rows.partition_point(|row| row.line < caret.line);
        let of_line = self.rows[from..].iter().take_while(|row| row.line == caret.line).count();
        let inside = self.rows[from..from + of_line]
            .iter()
            .position(|row| caret.byte < row.end)
            .unwrap_or(of_line.saturating_sub(1));
        let index = from + inside;
        let Some(row) = self.rows.get(index) else { return (0, 0) };
        let before = &lines[row.line][row.start..caret.byte.max(row.start)];
        let column: usize = before.graphemes(true).map(columns).sum();
        (index, column.min(self.width))
    }

    /// The caret nearest to this column of this row.
    pub fn caret_at(&self, lines: &[String], row: usize, column: usize) -> Caret {
        let row = self.rows[row.min(self.rows.len() - 1)];
        let text = &lines[row.line];
        let last_of_line = row.end == text.len();
        let mut at = 0;
        let mut byte = row.start;
        for (offset, grapheme) in text[row.start..row.end].grapheme_indices(true) {
            let width = columns(grapheme);
            byte = row.start + offset;
            if at + width > column {
                return Caret { line: row.line, byte };
            }
            at += width;
        }
        // The end of a wrapped row is the beginning of the next one: stay on this row.
        Caret { line: row.line, byte: if last_of_line { row.end } else { byte } }
    }
}

fn wrap(line: usize, text: &str, width: usize, rows: &mut Vec<Row>) {
    let mut start = 0;
    let mut used = 0;
    // The last place after a space where the row can be broken, and the columns used up to it.
    let mut break_at: Option<(usize, usize)> = None;
    for (byte, grapheme) in text.grapheme_indices(true) {
        let columns = columns(grapheme);
        let space = grapheme.chars().all(char::is_whitespace);
        if used + columns > width && !space && byte > start {
            let (at, used_there) = break_at.filter(|(at, _)| *at > start).unwrap_or((byte, used));
            rows.push(Row { line, start, end: at });
            start = at;
            used = used.saturating_sub(used_there);
            break_at = None;
            // What was carried over may itself be as wide as the row.
            if used + columns > width && byte > start {
                rows.push(Row { line, start, end: byte });
                start = byte;
                used = 0;
            }
        }
        used += columns;
        if space {
            break_at = Some((byte + grapheme.len(), used));
        }
    }
    rows.push(Row { line, start, end: text.len() });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: usize) -> Vec<String> {
        let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let layout = Layout::new(&lines, width);
        layout.rows.iter().map(|row| lines[row.line][row.start..row.end].to_owned()).collect()
    }

    #[test]
    fn rows_break_at_words_and_long_words_break_anywhere() {
        for (text, width, expected) in [
            ("", 5, vec![""]),
            ("abc", 5, vec!["abc"]),
            ("hello world", 5, vec!["hello ", "world"]),
            ("hello wo rld", 8, vec!["hello wo ", "rld"]),
            ("abcdefgh", 3, vec!["abc", "def", "gh"]),
            ("a abcdefgh", 4, vec!["a ", "abcd", "efgh"]),
            ("a\n\nb", 4, vec!["a", "", "b"]),
            ("日本語", 4, vec!["日本", "語"]),
            ("a👨‍👩‍👧b", 3, vec!["a👨‍👩‍👧", "b"]),
            ("ab     cd", 3, vec!["ab     ", "cd"]),
        ] {
            assert_eq!(rows(text, width), expected, "{text:?} at {width}");
        }
    }

    proptest::proptest! {
        #[test]
        fn rows_hold_every_byte_once_and_fit(
            text in "[a-c \\t日\u{301}👨‍👩‍👧\n]{0,40}",
            width in 2usize..12,
        ) {
            let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
            let layout = Layout::new(&lines, width);
            for (index, line) in lines.iter().enumerate() {
                let joined: String = layout.rows.iter().filter(|row| row.line == index)
                    .map(|row| &line[row.start..row.end]).collect();
                proptest::prop_assert_eq!(&joined, line);
            }
            for row in &layout.rows {
                let shown = lines[row.line][row.start..row.end].trim_end();
                let wide: usize = shown.graphemes(true).map(columns).sum();
                proptest::prop_assert!(wide <= width.max(4), "{:?}", shown);
            }
            for (line, text) in lines.iter().enumerate() {
                for (byte, _) in text.grapheme_indices(true) {
                    let (row, column) = layout.place(&lines, Caret { line, byte });
                    proptest::prop_assert!(row < layout.rows.len() && column <= width);
                }
            }
        }
    }
}
