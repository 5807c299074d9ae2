//! Pasted text: made harmless, and folded into a chip when it is large.
//!
//! A chip is a label in the draft, `[pasted 5,000 lines #1]`, that stands for the text kept here.
//! So a draft stays small to edit and to draw whatever is pasted into it, and undo, kill and history
//! carry chips along as plain text.

use std::ops::Range;

use crate::numbers::grouped;

/// A paste of this many lines or more is folded.
const FOLD_LINES: usize = 10;
/// So is one of more characters than this.
const FOLD_CHARS: usize = 1_000;

/// How a label begins.
const OPENING: &str = "[pasted ";

/// The texts behind the chips, for the life of the composer.
#[derive(Debug, Default)]
pub struct Pastes {
    items: Vec<Paste>,
}

#[derive(Debug)]
struct Paste {
    label: String,
    text: String,
}

impl Pastes {
    /// What to put into the draft for this (already cleaned) paste: the text, or a chip's label.
    pub fn fold(&mut self, text: &str) -> String {
        self.fold_above(text, FOLD_LINES, FOLD_CHARS)
    }

    /// Folds at this many lines or above this many characters. The same text gets the same chip.
    pub fn fold_above(&mut self, text: &str, lines: usize, chars: usize) -> String {
        let line_count = text.lines().count();
        let char_count = text.chars().count();
        if line_count < lines && char_count <= chars {
            return text.to_owned();
        }
        if let Some(known) = self.items.iter().find(|paste| paste.text == text) {
            return known.label.clone();
        }
        let number = self.items.len() + 1;
        let label = if line_count > 1 {
            format!("{OPENING}{} lines #{number}]", grouped(line_count))
        } else {
            format!("{OPENING}{} characters #{number}]", grouped(char_count))
        };
        self.items.push(Paste { label: label.clone(), text: text.to_owned() });
        label
    }

    /// The text with every chip replaced by what it stands for. Labels inside pasted text stay.
    pub fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (range, paste) in self.found(text) {
            out.push_str(&text[done..range.start]);
            out.push_str(&paste.text);
            done = range.end;
        }
        out.push_str(&text[done..]);
        out
    }

    /// Where chips are in one line.
    pub fn chips(&self, line: &str) -> Vec<Range<usize>> {
        self.found(line).into_iter().map(|(range, _)| range).collect()
    }

    fn found(&self, text: &str) -> Vec<(Range<usize>, &Paste)> {
        if self.items.is_empty() {
            return Vec::new();
        }
        text.match_indices(OPENING)
            .filter_map(|(at, _)| {
                let paste = self.items.iter().find(|p| text[at..].starts_with(&p.label))?;
                Some((at..at + paste.label.len(), paste))
            })
            .collect()
    }
}

/// Text from outside made fit for a draft: one kind of line end, no terminal sequences, no control
/// characters but newline and tab.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                chars.next_if_eq(&'\n');
                out.push('\n');
            }
            '\u{1b}' => skip_sequence(&mut chars),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Drops what follows an escape character: a control sequence (colours and the like), or nothing.
fn skip_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if chars.next_if_eq(&'[').is_none() {
        return;
    }
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_leave_and_line_ends_become_one_kind() {
        for (text, expected) in [
            ("a\r\nb\rc\nd", "a\nb\nc\nd"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("a\u{0}\u{7}\u{9b}b\tc", "ab\tc"),
            ("\u{1b}]0;title\u{7}x", "]0;titlex"),
            ("日本 é", "日本 é"),
        ] {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn only_large_pastes_are_folded() {
        let mut pastes = Pastes::default();
        assert_eq!(pastes.fold("a\nb"), "a\nb");
        assert_eq!(pastes.fold(&"x\n".repeat(5_000)), "[pasted 5,000 lines #1]");
        assert_eq!(pastes.fold(&"x".repeat(1_000)), "x".repeat(1_000));
        assert_eq!(pastes.fold(&"x".repeat(1_001)), "[pasted 1,001 characters #2]");
        assert_eq!(pastes.fold(&"x".repeat(1_001)), "[pasted 1,001 characters #2]");
    }

    #[test]
    fn expanding_puts_every_text_back_but_not_twice() {
        let mut pastes = Pastes::default();
        let inner = format!("[pasted 9 lines #1]{}", "\nx".repeat(20));
        let label = pastes.fold(&inner);
        let other = pastes.fold(&"y".repeat(2_000));
        let draft = format!("see {label}, {other} and [pasted 7 lines #9]");
        assert_eq!(
            pastes.expand(&draft),
            format!("see {inner}, {} and [pasted 7 lines #9]", "y".repeat(2_000))
        );
    }
}
