//! The one way by which foreign text becomes safe to show: no control character, no escape
//! sequence and no invisible format character leaves this room.
//!
//! Text from models, tools, files and workers passes here before it reaches a terminal cell, a
//! title or the clipboard. Four readings of the same rules:
//!
//! - [`text`] for prose, prompts and inputs: a lone carriage return is a line break, nothing that
//!   is visible is ever taken away;
//! - [`output`] for what a program wrote to its terminal: a carriage return or a backspace
//!   overwrites, so a progress bar leaves its last state;
//! - [`single_line`] for titles and one-line summaries;
//! - [`reveal`] for what a person has to judge before it runs: every control is drawn as a visible
//!   sign, nothing is removed, so nothing can hide.
//!
//! [`Sanitiser`] does the first two piece by piece: cutting the input anywhere gives the same text.
//! It does not colour anything, and it does not know where the text goes.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

/// Columns between tab stops: those of markdown, so that indented code keeps its meaning.
const TAB_STOP: usize = 4;

/// Lines longer than this are not measured again for each tab; a tab there is four spaces.
const MEASURED_LINE_BYTES: usize = 4096;

/// What a carriage return and a backspace mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// `\r` breaks the line, `\b` is dropped.
    Text,
    /// The same, and tabs stay: for what leaves the program as a stream of text.
    Stream,
    /// `\r` starts the line again, `\b` takes the last character back.
    Output,
}

/// Where in an escape sequence the input stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    /// After ESC, perhaps with intermediates.
    Escape,
    /// Inside `CSI ...`, until its final character.
    Csi,
    /// Inside OSC, DCS, APC, PM or SOS, until BEL, ST or the end of the line.
    Text,
    /// The same, after an ESC that may begin ST.
    TextEscape,
}

/// Cleans a stream piece by piece. Always push to the same, growing string: what a carriage return
/// or a tab does depends on the line so far.
#[derive(Debug, Clone)]
pub struct Sanitiser {
    reading: Reading,
    state: State,
    /// A carriage return came last; what follows says what it means.
    carriage_return: bool,
}

impl Sanitiser {
    /// For prose and inputs.
    pub fn text() -> Self {
        Self { reading: Reading::Text, state: State::Ground, carriage_return: false }
    }

    /// For prose that goes on to a pipe or a file, where a tab has to stay one.
    pub fn stream() -> Self {
        Self { reading: Reading::Stream, state: State::Ground, carriage_return: false }
    }

    /// For the output of programs.
    pub fn output() -> Self {
        Self { reading: Reading::Output, state: State::Ground, carriage_return: false }
    }

    /// Appends the clean form of `piece` to `out`.
    pub fn push(&mut self, piece: &str, out: &mut String) {
        if self.state == State::Ground && !self.carriage_return && is_clean(piece) {
            out.push_str(piece);
            return;
        }
        for c in piece.chars() {
            self.push_char(c, out);
        }
    }

    fn push_char(&mut self, c: char, out: &mut String) {
        match self.state {
            State::Ground => self.ground(c, out),
            State::Escape => self.escape(c, out),
            State::Csi => match c {
                '\x20'..='\x3f' => {}
                '\x40'..='\x7e' => self.state = State::Ground,
                _ => self.ground(c, out),
            },
            State::Text => match c {
                '\x07' | '\u{9c}' | '\x18' | '\x1a' => self.state = State::Ground,
                '\x1b' => self.state = State::TextEscape,
                // A sequence without an end must not swallow the rest: real ones are one line.
                '\n' | '\r' => self.ground(c, out),
                _ => {}
            },
            State::TextEscape => {
                if c == '\\' {
                    self.state = State::Ground;
                } else {
                    self.escape(c, out);
                }
            }
        }
    }

    fn escape(&mut self, c: char, out: &mut String) {
        match c {
            '[' => self.state = State::Csi,
            ']' | 'P' | 'X' | '^' | '_' => self.state = State::Text,
            '\x20'..='\x2f' => self.state = State::Escape,
            '\x30'..='\x7e' => self.state = State::Ground,
            _ => self.ground(c, out),
        }
    }

    fn ground(&mut self, c: char, out: &mut String) {
        self.state = State::Ground;
        if self.carriage_return {
            match (c, self.reading) {
                // Runs of returns before a line feed are one line end.
                ('\r', _) => return,
                ('\n', _) => {
                    self.carriage_return = false;
                    out.push('\n');
                    return;
                }
                (_, Reading::Text | Reading::Stream) => {
                    self.carriage_return = false;
                    out.push('\n');
                }
                // Sequences and dropped characters write nothing, so they overwrite nothing.
                (_, Reading::Output) if writes(c) => {
                    self.carriage_return = false;
                    out.truncate(line_start(out));
                }
                (_, Reading::Output) => {}
            }
        }
        match c {
            '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\r' => self.carriage_return = true,
            '\t' if self.reading == Reading::Stream => out.push('\t'),
            '\t' => push_tab(out),
            '\x08' if self.reading == Reading::Output => {
                if out.len() > line_start(out) {
                    out.pop();
                }
            }
            '\x1b' => self.state = State::Escape,
            '\u{9b}' => self.state = State::Csi,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => self.state = State::Text,
            _ => push_visible(c, out),
        }
    }
}

/// Clean prose. Borrows when there is nothing to do.
pub fn text(input: &str) -> Cow<'_, str> {
    whole(input, Sanitiser::text())
}

/// Clean output of a program. Borrows when there is nothing to do.
pub fn output(input: &str) -> Cow<'_, str> {
    whole(input, Sanitiser::output())
}

/// Clean text in one line: line breaks and runs of blanks become one space, the ends are trimmed.
pub fn single_line(input: &str) -> Cow<'_, str> {
    let clean = text(input);
    let is_single = !clean.contains('\n')
        && !clean.contains("  ")
        && !clean.starts_with(' ')
        && !clean.ends_with(' ');
    if is_single {
        return clean;
    }
    Cow::Owned(clean.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Everything made visible and nothing removed, for text that a person judges before it runs.
/// Controls become their control pictures, format characters their code points.
pub fn reveal(input: &str) -> Cow<'_, str> {
    if is_clean(input) {
        return Cow::Borrowed(input);
    }
    let mut out = String::with_capacity(input.len() + 16);
    for c in input.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => push_tab(&mut out),
            '\0'..='\x1f' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            '\x7f' => out.push('\u{2421}'),
            _ if c.is_control() || is_format(c) => push_code_point(c, &mut out),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn whole(input: &str, mut sanitiser: Sanitiser) -> Cow<'_, str> {
    if is_clean(input) {
        return Cow::Borrowed(input);
    }
    let mut out = String::with_capacity(input.len());
    sanitiser.push(input, &mut out);
    Cow::Owned(out)
}

/// True when every reading leaves the text as it is.
fn is_clean(input: &str) -> bool {
    let mut ascii = true;
    for &byte in input.as_bytes() {
        if (byte < 0x20 && byte != b'\n') || byte == 0x7f {
            return false;
        }
        ascii &= byte < 0x80;
    }
    ascii || !input.chars().any(|c| c.is_control() && c != '\n' || is_format(c))
}

/// Whether the character puts something on the line (or asks the line for its column).
fn writes(c: char) -> bool {
    c == '\t' || (!c.is_control() && (!is_format(c) || is_shown_format(c)))
}

fn push_visible(c: char, out: &mut String) {
    if is_shown_format(c) {
        push_code_point(c, out);
    } else if !c.is_control() && !is_format(c) {
        out.push(c);
    }
}

fn push_code_point(c: char, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "<U+{:04X}>", u32::from(c));
}

fn push_tab(out: &mut String) {
    let start = measured_line_start(out);
    let column = start.map_or(0, |start| out[start..].width());
    for _ in 0..TAB_STOP - column % TAB_STOP {
        out.push(' ');
    }
}

fn line_start(out: &str) -> usize {
    out.rfind('\n').map_or(0, |at| at + 1)
}

/// Start of the current line if it is short enough to be measured.
fn measured_line_start(out: &str) -> Option<usize> {
    let bytes = out.as_bytes();
    let window = bytes.len().saturating_sub(MEASURED_LINE_BYTES);
    match bytes[window..].iter().rposition(|&byte| byte == b'\n') {
        Some(at) => Some(window + at + 1),
        None if window == 0 => Some(0),
        None => None,
    }
}

/// Format characters that change how the text around them reads: they are shown, not dropped.
fn is_shown_format(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Characters without a shape of their own that can hide or reorder text. The joiners and the two
/// emoji variation selectors stay: scripts and emoji need them.
fn is_format(c: char) -> bool {
    if c < '\u{ad}' {
        return false;
    }
    is_shown_format(c)
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(input: &str, expected: &str) {
        assert_eq!(text(input), expected, "{input:?}");
    }

    fn check_output(input: &str, expected: &str) {
        assert_eq!(output(input), expected, "{input:?}");
    }

    #[test]
    fn clean_text_is_borrowed() {
        for clean in ["", "plain\nlines", "größer 漢字 👩‍👩‍👧 ❤️"] {
            assert!(matches!(text(clean), Cow::Borrowed(_)), "{clean:?}");
            assert!(matches!(output(clean), Cow::Borrowed(_)), "{clean:?}");
            assert!(matches!(reveal(clean), Cow::Borrowed(_)), "{clean:?}");
        }
    }

    #[test]
    fn escape_sequences_are_removed() {
        check("a\x1b[31mred\x1b[0m", "ared");
        check("a\x1b[2J\x1b[H\x1b[?1049hb", "ab");
        check("\x1b]0;title\x07text", "text");
        check("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link");
        check("\x1b]52;c;aGk=\x1b\\x", "x");
        check("\x1bP+q544e\x1b\\x", "x");
        check("\x1b_Gi=1\x1b\\x", "x");
        check("\u{9b}31mred", "red");
        check("\u{9d}0;title\u{9c}x", "x");
        check("\x1b(Bx\x1b7y\x1bcz", "xyz");
        check("\x1b[31\x1b[32mx", "x");
        check("\x1b[12ä", "ä");
    }

    #[test]
    fn an_unterminated_sequence_ends_with_its_line() {
        check("a\x1b]0;never closed\nnext", "a\nnext");
        check("a\x1bPnever closed\nnext", "a\nnext");
        check("a\x1b[31", "a");
        check("a\x1b", "a");
    }

    #[test]
    fn controls_are_dropped_and_line_ends_agree() {
        check("a\0b\x07c\x7fd\u{80}e", "abcde");
        check("a\r\nb\rc\r\r\nd", "a\nb\nc\nd");
        check("a\u{2028}b\u{85}c", "a\nb\nc");
        check("a\tb\n\tc\nabcd\td\n漢\te", "a   b\n    c\nabcd    d\n漢  e");
    }

    #[test]
    fn a_progress_bar_leaves_its_last_state() {
        check_output("10%\r50%\r100%\ndone", "100%\ndone");
        check_output("10%\r\x1b[K50%\r\x1b[K", "50%");
        check_output("a\r\nb\r\n", "a\nb\n");
        check_output("N\x08NA\x08A", "NA");
        check_output("\n\x08x", "\nx");
    }

    #[test]
    fn bidi_overrides_are_shown_and_invisible_characters_dropped() {
        check("a\u{202e}b\u{2069}", "a<U+202E>b<U+2069>");
        check("\u{feff}a\u{200b}b\u{ad}c\u{e0041}d\u{2062}", "abcd");
        check("می‌خواهم", "می‌خواهم");
    }

    #[test]
    fn one_line_forms_have_no_breaks() {
        assert_eq!(single_line(" a\n  b\tc\r\n"), "a b c");
        assert!(matches!(single_line("a b"), Cow::Borrowed("a b")));
    }

    #[test]
    fn what_a_person_judges_hides_nothing() {
        assert_eq!(reveal("rm -rf /\rls\x1b[8m\u{202e}\u{9b}"), "rm -rf /␍ls␛[8m<U+202E><U+009B>");
    }

    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            any::<char>().prop_map(String::from),
            "[ -~]{0,4}",
            prop::sample::select(vec![
                "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\x07", "\r", "\n", "\r\n", "\t",
                "\x08", "\u{9b}", "\u{9c}", "\u{9d}", "\u{202e}", "\u{200b}", "31m", "漢", "é",
            ])
            .prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_control_character_ever_leaves(input in hostile()) {
            for clean in [text(&input), output(&input), reveal(&input), single_line(&input)] {
                let dirty: Vec<char> =
                    clean.chars().filter(|&c| c.is_control() && c != '\n' || is_format(c)).collect();
                prop_assert!(dirty.is_empty(), "{:?}", dirty);
                prop_assert!(is_clean(&clean));
            }
            prop_assert!(!single_line(&input).contains('\n'));
        }

        #[test]
        fn any_cut_gives_the_same_text(input in hostile(), cuts in prop::collection::vec(0usize..64, 0..6)) {
            for make in [Sanitiser::text, Sanitiser::output] {
                let mut whole = String::new();
                make().push(&input, &mut whole);
                let mut cut = String::new();
                let mut sanitiser = make();
                let chars: Vec<char> = input.chars().collect();
                let mut at = 0;
                for step in &cuts {
                    let end = (at + step).min(chars.len());
                    sanitiser.push(&chars[at..end].iter().collect::<String>(), &mut cut);
                    at = end;
                }
                sanitiser.push(&chars[at..].iter().collect::<String>(), &mut cut);
                prop_assert_eq!(&whole, &cut);
            }
        }
    }
}
