//! What all dialogs share on the screen: a box over the whole width at the bottom of its area, and
//! text cut to a width with a sign that it was.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Widget};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::theme::Theme;

/// The lowest `height` rows of the area. The whole width: a narrower box could begin in the middle
/// of a wide character.
pub fn bottom(area: Rect, height: u16) -> Rect {
    let height = height.min(area.height);
    Rect { y: area.bottom() - height, height, ..area }
}

/// Clears the rectangle and draws a box with this title; returns the room inside.
pub fn boxed(area: Rect, title: &str, buf: &mut Buffer, theme: &Theme) -> Rect {
    Clear.render(area, buf);
    let room = usize::from(area.width).saturating_sub(4);
    let title = Line::from(vec![
        Span::raw(" "),
        Span::styled(cut(title, room), theme.title),
        Span::raw(" "),
    ]);
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.border_focused)
        .title_top(title);
    let inner = block.inner(area);
    block.render(area, buf);
    inner
}

/// One line of text into a row, cut at its right end.
pub fn put(text: &str, area: Rect, y: u16, style: Style, buf: &mut Buffer) {
    if y >= area.top() && y < area.bottom() && area.width > 0 {
        let width = usize::from(area.width);
        buf.set_stringn(area.x, y, cut(text, width), width, style);
    }
}

/// The text in at most this many columns; what was cut ends in `…`.
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let width = grapheme.width();
        if used + width + 1 > columns {
            break;
        }
        out.push_str(grapheme);
        used += width;
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_text_says_so() {
        for (text, columns, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("ab", 1, "…"),
            ("ab", 0, ""),
        ] {
            assert_eq!(cut(text, columns), expected);
        }
    }
}
