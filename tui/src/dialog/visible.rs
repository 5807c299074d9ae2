//! Characters that act without being seen, made visible.
//!
//! What a person approves must be what they see: control characters, characters that change the
//! reading direction and characters without width are shown by name.

use std::fmt::Write as _;

/// Acts on the terminal or on the order of the text, or cannot be seen.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// One column that stands for a grapheme which must not reach the terminal; none for harmless ones.
/// Joiners inside a grapheme are part of it and stay.
#[must_use]
pub fn mark(grapheme: &str) -> Option<&'static str> {
    let mut chars = grapheme.chars();
    match (chars.next(), chars.as_str()) {
        (Some('\t'), "") | (None, _) => None,
        (Some(c), _) if c.is_control() => Some("\u{fffd}"),
        (Some(c), "") if is_hidden(c) => Some("\u{fffd}"),
        _ => None,
    }
}

/// The text with every hidden character named, as in `<U+202E>`; tabs become spaces. Line ends stay.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            c if is_hidden(c) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "<U+{:04X}>", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// As [`escape`], on one line: line ends are named too.
#[must_use]
pub fn escape_line(text: &str) -> String {
    escape(text).replace('\n', "<U+000A>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_get_a_name() {
        for (text, expected) in [
            ("plain é 日本\n", "plain é 日本\n"),
            ("a\u{1b}[31mb", "a<U+001B>[31mb"),
            ("rm \u{202e}txt.exe", "rm <U+202E>txt.exe"),
            ("zero\u{200b}width\u{7f}", "zero<U+200B>width<U+007F>"),
            ("\tx\r", "    x<U+000D>"),
        ] {
            assert_eq!(escape(text), expected);
        }
        assert_eq!(escape_line("a\nb"), "a<U+000A>b");
    }

    #[test]
    fn marks_replace_only_what_stands_alone() {
        assert_eq!(mark("\u{202e}"), Some("\u{fffd}"));
        assert_eq!(mark("\u{7}"), Some("\u{fffd}"));
        assert_eq!(mark("👨\u{200d}👩"), None);
        assert_eq!(mark("\t"), None);
        assert_eq!(mark("e\u{301}"), None);
    }
}
