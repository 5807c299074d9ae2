//! Takes terminal escape sequences out of text from outside, whole, with what they carry.
//!
//! For messages that the runtime itself words (errors, reasons). What reaches a terminal cell is made
//! safe by the front-end, whatever happened here.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// CSI with its parameters; OSC, DCS, SOS, PM and APC up to their end or the end of the line; any
/// other escape. Compiling cannot fail for a fixed pattern; a test proves it.
static SEQUENCES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        (?: \x1b\[ | \x{9b} ) [\x20-\x3f]* [\x40-\x7e]?
        | (?: \x1b[\]PX^_] | [\x{90}\x{98}\x{9d}-\x{9f}] )
          [^\x07\x{9c}\x1b\r\n]* (?: \x07 | \x{9c} | \x1b\\ )?
        | \x1b [\x20-\x2f]* [\x30-\x7e]?
        ",
    )
    .ok()
});

/// The text without sequences. Borrows when there is none.
pub fn strip_sequences(text: &str) -> Cow<'_, str> {
    SEQUENCES.as_ref().map_or(Cow::Borrowed(text), |pattern| pattern.replace_all(text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_whole_and_text_stays() {
        for (input, expected) in [
            ("plain [31m text", "plain [31m text"),
            ("a\x1b[31mred\x1b[0m", "ared"),
            ("\u{9b}1;2Hx", "x"),
            ("\x1b]0;OWNED\x07x", "x"),
            ("\x1b]8;;http://h\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1bPq\u{9c}x", "x"),
            ("\x1b]0;no end\nnext", "\nnext"),
            ("\x1b(Bx\x1b7y", "xy"),
            ("a\x1b[31", "a"),
            ("a\x1b", "a"),
            ("\x1b[12\u{e4}", "\u{e4}"),
        ] {
            assert_eq!(strip_sequences(input), expected, "{input:?}");
        }
    }
}
