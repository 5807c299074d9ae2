//! What stays in the normal scrollback after the screen is gone: styled lines as plain output.
//!
//! Only line feeds and colours are written, no cursor movement, so that every terminal keeps the
//! lines as if a simple program had printed them.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

/// The bytes of these lines, each ended by a line break; styled only when `colours` is set.
pub fn encode(lines: &[Line<'_>], colours: bool) -> String {
    // The cursor may stand behind what the shell left.
    let mut out = String::from("\r");
    for line in lines {
        for span in &line.spans {
            let text = span.content.chars().filter(|c| !c.is_control());
            let sgr = if colours { sgr(line.style.patch(span.style)) } else { String::new() };
            if sgr.is_empty() {
                out.extend(text);
            } else {
                out.push_str("\x1b[");
                out.push_str(&sgr);
                out.push('m');
                out.extend(text);
                out.push_str("\x1b[0m");
            }
        }
        out.push_str("\r\n");
    }
    out
}

/// The parameters that switch this style on; empty for the plain one.
fn sgr(style: Style) -> String {
    let mut codes = Vec::new();
    let modifiers = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ];
    for (modifier, code) in modifiers {
        if style.add_modifier.contains(modifier) {
            codes.push(code.to_string());
        }
    }
    codes.extend(style.fg.and_then(|colour| colour_code(colour, 30)));
    codes.extend(style.bg.and_then(|colour| colour_code(colour, 40)));
    codes.join(";")
}

/// The parameter of a colour; `base` is 30 for the text and 40 for what is behind it.
fn colour_code(colour: Color, base: u8) -> Option<String> {
    let index = match colour {
        Color::Reset => return None,
        Color::Rgb(r, g, b) => return Some(format!("{};2;{r};{g};{b}", base + 8)),
        Color::Indexed(index) => return Some(format!("{};5;{index}", base + 8)),
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 60,
        Color::LightRed => 61,
        Color::LightGreen => 62,
        Color::LightYellow => 63,
        Color::LightBlue => 64,
        Color::LightMagenta => 65,
        Color::LightCyan => 66,
        Color::White => 67,
    };
    Some((base + index).to_string())
}

#[cfg(test)]
mod tests {
    use ratatui::style::Stylize;
    use ratatui::text::Span;

    use super::*;

    #[track_caller]
    fn check(line: Line<'_>, colours: bool, expected: &str) {
        assert_eq!(encode(&[line], colours), format!("\r{expected}\r\n"));
    }

    #[test]
    fn lines_keep_their_styles_and_end_plainly() {
        check(Line::from("plain"), true, "plain");
        check(Line::from("bold".bold().red()), true, "\x1b[1;31mbold\x1b[0m");
        check(Line::from("rgb".fg(Color::Rgb(1, 2, 3))), true, "\x1b[38;2;1;2;3mrgb\x1b[0m");
        check(Line::from("i".bg(Color::Indexed(9))), true, "\x1b[48;5;9mi\x1b[0m");
        check(Line::from("w".white()), true, "\x1b[97mw\x1b[0m");
        check(
            Line::from(vec![Span::raw("a"), "b".dim()]).italic(),
            true,
            "\x1b[3ma\x1b[0m\x1b[2;3mb\x1b[0m",
        );
    }

    #[test]
    fn without_colours_only_text_is_written() {
        check(Line::from("bold".bold().red()), false, "bold");
    }

    #[test]
    fn control_characters_do_not_reach_the_shell() {
        check(Line::from("a\x1b[2Jb\u{9b}c\x07"), true, "a[2Jbc");
    }

    #[test]
    fn nothing_to_say_leaves_nothing() {
        assert_eq!(encode(&[], true), "\r");
    }
}
