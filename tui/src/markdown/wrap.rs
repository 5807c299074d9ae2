//! Breaking styled text into lines of a display width.
//!
//! Widths are those of ratatui (unicode-width over grapheme clusters), so a line that fits here
//! fits on the screen. A wide character is never split; a word longer than the width is.

use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Spans before the first and before each further line of a wrapped text.
#[derive(Debug, Default, Clone)]
pub struct Margins {
    pub first: Vec<Span<'static>>,
    pub rest: Vec<Span<'static>>,
}

/// Breaks at blanks (and between wide characters), hard where a word is too long. Line feeds in the
/// text break the line. Blanks at a break are dropped. Text without a visible character gives one
/// line with the first margin.
pub fn wrap_words(
    spans: &[Span<'_>],
    width: usize,
    margins: &Margins,
    out: &mut Vec<Line<'static>>,
) {
    Wrapper::new(spans, width, margins, out).words();
}

/// Breaks only where the width ends: for code, where every blank counts.
pub fn wrap_hard(spans: &[Span<'_>], width: usize, out: &mut Vec<Line<'static>>) {
    Wrapper::new(spans, width, &Margins::default(), out).hard();
}

/// Display width of spans.
pub fn spans_width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| span.content.width()).sum()
}

/// Cuts to `width` columns from the end, with an ellipsis where something was left out.
pub fn truncate_end(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used + 1 > width {
            break;
        }
        out.push_str(grapheme);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// Cuts to `width` columns in front, keeping the end: for paths, whose name comes last.
pub fn truncate_start(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = Vec::new();
    let mut used = 0;
    for grapheme in text.graphemes(true).rev() {
        used += grapheme.width();
        if used + 1 > width {
            break;
        }
        kept.push(grapheme);
    }
    let mut out = String::from(if width > 0 { "…" } else { "" });
    out.extend(kept.into_iter().rev());
    out
}

/// Where a line may end: its end, the start of the next one, and the column there.
struct Break {
    end: usize,
    next: usize,
    column: usize,
}

struct Wrapper<'a> {
    text: String,
    /// End of each style run in `text`.
    styles: Vec<(usize, Style)>,
    margins: &'a Margins,
    /// Columns for text on the first line and on each further one.
    rooms: [usize; 2],
    out: &'a mut Vec<Line<'static>>,
    first: bool,
}

impl<'a> Wrapper<'a> {
    fn new(
        spans: &[Span<'_>],
        width: usize,
        margins: &'a Margins,
        out: &'a mut Vec<Line<'static>>,
    ) -> Self {
        let mut text = String::with_capacity(spans.iter().map(|span| span.content.len()).sum());
        let mut styles: Vec<(usize, Style)> = Vec::with_capacity(spans.len());
        for span in spans.iter().filter(|span| !span.content.is_empty()) {
            text.push_str(&span.content);
            match styles.last_mut() {
                Some((end, style)) if *style == span.style => *end = text.len(),
                _ => styles.push((text.len(), span.style)),
            }
        }
        let room = |margin: &[Span<'_>]| width.saturating_sub(spans_width(margin)).max(1);
        let rooms = [room(&margins.first), room(&margins.rest)];
        Self { text, styles, margins, rooms, out, first: true }
    }

    /// Columns for text on the line that is emitted next.
    fn room(&self) -> usize {
        self.rooms[usize::from(!self.first)]
    }

    fn hard(mut self) {
        let (mut start, mut column, mut at) = (0, 0, 0);
        while let Some(grapheme) = grapheme_at(&self.text, at) {
            let (len, width) = grapheme;
            if self.text.as_bytes()[at] == b'\n' {
                self.emit(start..at);
                start = at + len;
                column = 0;
            } else {
                if column > 0 && column + width > self.room() {
                    self.emit(start..at);
                    start = at;
                    column = 0;
                }
                column += width;
            }
            at += len;
        }
        self.emit(start..self.text.len());
    }

    fn words(mut self) {
        let (mut start, mut column, mut at) = (0, 0, 0);
        let mut place: Option<Break> = None;
        let mut previous_wide = false;
        while let Some((len, width)) = grapheme_at(&self.text, at) {
            let byte = self.text.as_bytes()[at];
            let next = at + len;
            if byte == b'\n' {
                self.emit(start..at);
                (start, column, place, previous_wide) = (next, 0, None, false);
                at = next;
                continue;
            }
            if byte == b' ' {
                if column + 1 > self.room() || (column == 0 && start > 0 && !self.after_feed(start))
                {
                    // A blank at the edge ends the line; those after it are dropped.
                    if column > 0 {
                        self.emit(start..at);
                    }
                    (start, column, place) = (next, 0, None);
                } else {
                    column += 1;
                    let end = match &place {
                        Some(place) if place.next == at => place.end,
                        _ => at,
                    };
                    place = Some(Break { end, next, column });
                }
                previous_wide = false;
                at = next;
                continue;
            }
            let wide = width > 1;
            if column > 0 && (wide || previous_wide) && !stays_with_previous(&self.text[at..next]) {
                let after_blank = place.as_ref().is_some_and(|place| place.next == at);
                if !after_blank {
                    place = Some(Break { end: at, next: at, column });
                }
            }
            if column > 0 && column + width > self.room() {
                if let Some(found) = place.take() {
                    self.emit(start..found.end);
                    start = found.next;
                    column -= found.column;
                    if column > 0 && column + width > self.room() {
                        self.emit(start..at);
                        (start, column) = (at, 0);
                    }
                } else {
                    self.emit(start..at);
                    (start, column) = (at, 0);
                }
            }
            column += width;
            previous_wide = wide;
            at = next;
        }
        if start < self.text.len() || self.first {
            self.emit(start..self.text.len());
        }
    }

    fn after_feed(&self, start: usize) -> bool {
        start > 0 && self.text.as_bytes()[start - 1] == b'\n'
    }

    fn emit(&mut self, range: Range<usize>) {
        let margin = if self.first { &self.margins.first } else { &self.margins.rest };
        self.first = false;
        let mut at = range.start;
        let first_run = self.styles.partition_point(|(end, _)| *end <= range.start);
        let runs = self.styles[first_run..].partition_point(|(end, _)| *end < range.end) + 1;
        let mut spans = Vec::with_capacity(margin.len() + runs);
        spans.extend_from_slice(margin);
        for (end, style) in &self.styles[first_run..] {
            if at >= range.end {
                break;
            }
            let end = (*end).min(range.end);
            spans.push(Span::styled(self.text[at..end].to_owned(), *style));
            at = end;
        }
        self.out.push(Line::from(spans));
    }
}

/// Length in bytes and width in columns of the grapheme that starts at `at`.
fn grapheme_at(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let byte = *bytes.get(at)?;
    // Two ASCII bytes in a row: the first is a grapheme by itself.
    if byte.is_ascii() && bytes.get(at + 1).is_none_or(u8::is_ascii) {
        return Some((1, usize::from(byte != b'\n')));
    }
    let grapheme = text[at..].graphemes(true).next()?;
    Some((grapheme.len(), grapheme.width()))
}

/// Closing marks do not begin a line.
fn stays_with_previous(grapheme: &str) -> bool {
    grapheme.chars().next().is_some_and(|c| {
        matches!(
            c,
            '、' | '。'
                | '，'
                | '．'
                | '！'
                | '？'
                | '）'
                | '」'
                | '』'
                | '】'
                | '〉'
                | '》'
                | '：'
                | '；'
                | 'ー'
                | '・'
                | '”'
                | '’'
                | '.'
                | ','
                | '!'
                | '?'
                | ')'
                | ']'
                | '}'
                | ':'
                | ';'
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::Stylize;

    fn words(text: &str, width: usize) -> Vec<String> {
        let mut out = Vec::new();
        wrap_words(&[Span::raw(text)], width, &Margins::default(), &mut out);
        out.iter().map(ToString::to_string).collect()
    }

    fn check(text: &str, width: usize, expected: &[&str]) {
        assert_eq!(words(text, width), expected, "{text:?} at {width}");
    }

    #[test]
    fn words_go_to_the_next_line_whole() {
        check("the quick brown fox", 10, &["the quick", "brown fox"]);
        check("the quick brown fox", 9, &["the quick", "brown fox"]);
        check("a", 10, &["a"]);
        check("", 10, &[""]);
        check("one\ntwo", 10, &["one", "two"]);
        check("a  b   c", 4, &["a  b", "c"]);
        check("ab   cd", 2, &["ab", "cd"]);
    }

    #[test]
    fn long_words_break_hard() {
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("xy abcdefgh", 4, &["xy", "abcd", "efgh"]);
    }

    #[test]
    fn wide_characters_are_never_split() {
        check("漢字漢字", 5, &["漢字", "漢字"]);
        check("漢字。漢", 4, &["漢", "字。", "漢"]);
        check("ab漢字", 3, &["ab", "漢", "字"]);
        check("👩‍👩‍👧👩‍👩‍👧", 3, &["👩‍👩‍👧", "👩‍👩‍👧"]);
    }

    #[test]
    fn hard_wrapping_keeps_every_blank() {
        let mut out = Vec::new();
        wrap_hard(&[Span::raw("    let  x = 1;")], 6, &mut out);
        let lines: Vec<String> = out.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["    le", "t  x =", " 1;"]);
    }

    #[test]
    fn styles_follow_their_words() {
        let mut out = Vec::new();
        wrap_words(
            &[Span::raw("one "), "two three".bold(), Span::raw(" four")],
            8,
            &Margins::default(),
            &mut out,
        );
        assert_eq!(
            out,
            vec![
                Line::from(vec![Span::raw("one "), "two".bold()]),
                Line::from(vec!["three".bold()]),
                Line::from(vec![Span::raw("four")]),
            ]
        );
    }

    #[test]
    fn truncation_says_so() {
        assert_eq!(truncate_end("abcdef", 4), "abc…");
        assert_eq!(truncate_start("src/main.rs", 8), "…main.rs");
        assert_eq!(truncate_end("漢字漢字", 4), "漢…");
        assert_eq!(truncate_end("ab", 0), "");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_too_wide(text in "[a-z 漢é👍\n]{0,80}", width in 2usize..20) {
            let lines = words(&text, width);
            for line in &lines {
                prop_assert!(line.width() <= width, "{:?}", line);
            }
            let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(solid(&lines.concat()), solid(&text));
            let mut hard = Vec::new();
            wrap_hard(&[Span::raw(text.as_str())], width, &mut hard);
            let hard: String = hard.iter().map(ToString::to_string).collect();
            prop_assert_eq!(hard, text.replace('\n', ""));
        }
    }
}
