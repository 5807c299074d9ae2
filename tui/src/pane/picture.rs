//! What a program's screen shows, as cells of ours. Text is cleaned where it comes in.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use super::{PaneColour, PaneLook, PaneModes};
use crate::sanitise;
use crate::theme::ColourDepth;

/// In place of what cannot be shown in the room that it has.
const UNSHOWN: &str = "\u{fffd}";

/// One picture. Cells that were not set are blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    cells: Vec<PictureCell>,
    columns: u16,
    rows: u16,
    /// Column and row of the cursor, from 0; none while it is hidden.
    cursor: Option<(u16, u16)>,
    title: String,
    modes: PaneModes,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct PictureCell {
    cell: Cell,
    look: PaneLook,
}

impl Picture {
    pub fn new(columns: u16, rows: u16, modes: PaneModes) -> Self {
        let count = usize::from(columns) * usize::from(rows);
        let cells = vec![PictureCell::default(); count];
        Self { cells, columns, rows, cursor: None, title: String::new(), modes }
    }

    /// Puts a character with what combines with it at a place; `wide` takes the next place as well,
    /// which must not be set.
    pub fn set(&mut self, column: u16, row: u16, text: &str, wide: bool, look: PaneLook) {
        if column >= self.columns || row >= self.rows {
            return;
        }
        let place = usize::from(row) * usize::from(self.columns) + usize::from(column);
        let fits = wide && column + 1 < self.columns;
        self.cells[place].look = look;
        set_text(&mut self.cells[place].cell, text, wide, fits);
        if fits {
            self.cells[place + 1].look = look;
        }
    }

    pub fn set_cursor(&mut self, at: Option<(u16, u16)>) {
        self.cursor = at.filter(|(column, row)| *column < self.columns && *row < self.rows);
    }

    pub fn set_title(&mut self, title: &str) {
        self.title = sanitise::single_line(title).into_owned();
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn modes(&self) -> PaneModes {
        self.modes
    }

    /// The part of the picture that is in view on an area that may be smaller: the first column and
    /// row. It follows the cursor, and is the lower left corner without one.
    pub fn origin(&self, area: Rect) -> (u16, u16) {
        let (column, row) = self.cursor.unwrap_or((0, self.rows.saturating_sub(1)));
        let first = |at: u16, there: u16, shown: u16| {
            let last_first = there.saturating_sub(shown);
            (at + 1).saturating_sub(shown).min(last_first)
        };
        (first(column, self.columns, area.width), first(row, self.rows, area.height))
    }

    /// Draws it into the upper left corner of the area, and returns where the cursor is.
    pub fn draw(&self, area: Rect, buf: &mut Buffer, depth: ColourDepth) -> Option<Position> {
        let area = area.intersection(*buf.area());
        let (left, top) = self.origin(area);
        let (columns, rows) = (area.width.min(self.columns), area.height.min(self.rows));
        // Neighbours mostly look alike.
        let mut last = (PaneLook::default(), style(PaneLook::default(), depth));
        for y in 0..rows {
            for x in 0..columns {
                let place =
                    usize::from(top + y) * usize::from(self.columns) + usize::from(left + x);
                let shown = &self.cells[place];
                let target = &mut buf[(area.x + x, area.y + y)];
                *target = shown.cell.clone();
                // Half of a wide character at the edge would draw over what is beside us.
                if x + 1 == columns && target.symbol().width() > 1 {
                    target.set_symbol(" ");
                }
                if shown.look != last.0 {
                    last = (shown.look, style(shown.look, depth));
                }
                target.set_style(last.1);
            }
        }
        let (column, row) = self.cursor?;
        let (x, y) = (column.checked_sub(left)?, row.checked_sub(top)?);
        (x < columns && y < rows).then(|| Position::new(area.x + x, area.y + y))
    }
}

/// The text of a cell in exactly the room that the program's terminal gave it. Terminals disagree
/// about the width of some characters: then what combines with them is left out.
fn set_text(cell: &mut Cell, text: &str, wide: bool, fits: bool) {
    let room = if fits { 2 } else { 1 };
    if wide && !fits {
        cell.set_symbol(" ");
        return;
    }
    let clean = sanitise::text(text);
    let first = clean.chars().next().map(char::len_utf8).unwrap_or_default();
    let fits = |text: &&str| text.width() == room && !text.contains(char::is_control);
    let shown = [&*clean, &clean[..first]].into_iter().find(fits);
    match shown {
        Some(text) => cell.set_symbol(text),
        None if text.is_empty() || clean.trim().is_empty() => cell.set_symbol(" "),
        None => cell.set_symbol(UNSHOWN),
    };
}

fn style(look: PaneLook, depth: ColourDepth) -> Style {
    let mut style = Style::new();
    if depth != ColourDepth::None {
        style = style.fg(colour(look.fg, depth)).bg(colour(look.bg, depth));
    }
    for (on, modifier) in [
        (look.bold, Modifier::BOLD),
        (look.dim, Modifier::DIM),
        (look.italic, Modifier::ITALIC),
        (look.underline, Modifier::UNDERLINED),
        (look.inverse, Modifier::REVERSED),
    ] {
        if on {
            style = style.add_modifier(modifier);
        }
    }
    style
}

fn colour(colour: PaneColour, depth: ColourDepth) -> Color {
    match colour {
        PaneColour::Default => Color::Reset,
        PaneColour::Indexed(index) => depth.indexed(index),
        PaneColour::Rgb(r, g, b) => depth.rgb(r, g, b),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::shown;

    fn drawn(picture: &Picture, width: u16, height: u16) -> (Buffer, Option<Position>) {
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        let caret = picture.draw(area, &mut buf, ColourDepth::TrueColour);
        (buf, caret)
    }

    fn one(text: &str, wide: bool) -> String {
        let mut picture = Picture::new(4, 1, PaneModes::default());
        picture.set(0, 0, text, wide, PaneLook::default());
        picture.set(if wide { 2 } else { 1 }, 0, "|", false, PaneLook::default());
        shown(&drawn(&picture, 4, 1).0, None)
    }

    #[test]
    fn a_character_takes_the_room_that_the_program_gave_it() {
        for (text, wide, expected) in [
            ("a", false, "a|"),
            ("é", false, "é|"),
            ("e\u{301}", false, "e\u{301}|"),
            ("漢", true, "漢|"),
            // Of two minds about the width: what combines is left out.
            ("⚠\u{fe0f}", false, "⚠|"),
            // No room for it.
            ("漢", false, "\u{fffd}|"),
            ("a", true, "\u{fffd} |"),
            ("", false, " |"),
            ("", true, "  |"),
        ] {
            assert_eq!(one(text, wide), expected, "{text:?} {wide}");
        }
    }

    #[test]
    fn nothing_hostile_becomes_a_cell() {
        for text in ["\u{1b}", "\u{7}", "\u{9b}", "\n", "\t", "\u{202e}", "\u{200b}", "a\u{1b}[2J"]
        {
            let row = one(text, false);
            assert!(!row.chars().any(char::is_control), "{text:?} became {row:?}");
            assert!(!row.contains(['\u{202e}', '\u{200b}']), "{text:?} became {row:?}");
            assert!(row.ends_with('|') && row.chars().count() == 2, "{text:?} became {row:?}");
        }
        let mut picture = Picture::new(1, 1, PaneModes::default());
        picture.set_title("a\u{1b}]0;b\u{7}\nc\u{202e}");
        assert!(!picture.title().chars().any(char::is_control), "{:?}", picture.title());
    }

    #[test]
    fn a_wide_character_is_not_cut_in_half_at_an_edge() {
        let mut picture = Picture::new(4, 1, PaneModes::default());
        picture.set(1, 0, "漢", true, PaneLook::default());
        picture.set(3, 0, "字", true, PaneLook::default());
        assert_eq!(shown(&drawn(&picture, 4, 1).0, None), " 漢");
        picture.set_cursor(Some((0, 0)));
        assert_eq!(shown(&drawn(&picture, 2, 1).0, None), "");
    }

    #[test]
    fn the_part_in_view_holds_the_cursor() {
        let mut picture = Picture::new(100, 40, PaneModes::default());
        for (cursor, expected) in [
            (Some((0, 0)), (0, 0)),
            (Some((99, 39)), (80, 35)),
            (Some((19, 4)), (0, 0)),
            (Some((20, 5)), (1, 1)),
            (None, (0, 35)),
        ] {
            picture.set_cursor(cursor);
            assert_eq!(picture.origin(Rect::new(0, 0, 20, 5)), expected, "{cursor:?}");
            let (_, caret) = drawn(&picture, 20, 5);
            assert_eq!(caret.is_some(), cursor.is_some());
        }
        assert_eq!(picture.origin(Rect::new(0, 0, 200, 50)), (0, 0));
    }

    #[test]
    fn colours_are_those_that_the_terminal_has() {
        let look = PaneLook {
            fg: PaneColour::Rgb(215, 119, 87),
            bg: PaneColour::Indexed(4),
            bold: true,
            inverse: true,
            ..PaneLook::default()
        };
        let plain = Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED);
        for (depth, expected) in [
            (ColourDepth::TrueColour, plain.fg(Color::Rgb(215, 119, 87)).bg(Color::Blue)),
            (ColourDepth::Indexed, plain.fg(Color::Indexed(173)).bg(Color::Blue)),
            (ColourDepth::Ansi16, plain.fg(Color::DarkGray).bg(Color::Blue)),
            (ColourDepth::None, plain),
        ] {
            assert_eq!(style(look, depth), expected, "{depth:?}");
        }
        let plain = style(PaneLook::default(), ColourDepth::TrueColour);
        assert_eq!(plain, Style::new().fg(Color::Reset).bg(Color::Reset));
    }

    proptest! {
        #[test]
        fn any_text_at_any_place_on_any_screen_can_be_drawn(
            cells in prop::collection::vec((0..12_u16, 0..6_u16, ".{0,3}", any::<bool>()), 0..40),
            size in (0..12_u16, 0..6_u16),
            cursor in prop::option::of((0..12_u16, 0..6_u16)),
            screen in (0..14_u16, 0..8_u16),
        ) {
            let mut picture = Picture::new(size.0, size.1, PaneModes::default());
            for (column, row, text, wide) in &cells {
                picture.set(*column, *row, text, *wide, PaneLook::default());
            }
            picture.set_cursor(cursor);
            let (buf, caret) = drawn(&picture, screen.0, screen.1);
            for cell in buf.content() {
                prop_assert!(!cell.symbol().chars().any(char::is_control));
                prop_assert!(cell.symbol().width() <= 2);
            }
            prop_assert!(caret.is_none_or(|at| buf.area().contains(at)));
        }
    }
}
