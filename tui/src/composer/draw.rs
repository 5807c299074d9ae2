//! The composer on the screen: rows, list, and the place of the terminal's own cursor.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::Composer;
use super::completion::{self, Completion};
use super::layout::{Row, columns, mark};
use crate::sanitise;
use crate::theme::Theme;

/// The mark before the first row; the rows after it are indented as far.
const PROMPT: &str = "❯ ";
const PROMPT_COLUMNS: u16 = 2;

/// The words in an empty draft.
const PLACEHOLDER: &str = "Ask for something, or / for commands";

/// Columns for text: the prompt goes off, and one column for a caret behind the last character.
fn text_columns(width: u16) -> usize {
    usize::from(width.saturating_sub(PROMPT_COLUMNS + 1)).max(1)
}

impl Composer {
    /// Rows that the composer wants at this width, at most `max` (at least one).
    pub fn height(&mut self, width: u16, max: u16) -> u16 {
        self.lay_out(text_columns(width));
        let rows = self.layout.rows.len() + usize::from(self.line_below().is_some());
        u16::try_from(rows).unwrap_or(u16::MAX).clamp(1, max.max(1))
    }

    /// Draws the draft and returns where the terminal's cursor belongs; none when there is no room.
    pub fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let area = area.intersection(*buf.area());
        if area.width <= PROMPT_COLUMNS || area.height == 0 {
            return None;
        }
        self.lay_out(text_columns(area.width));
        let below = self.line_below();
        // In a single row what has to be said takes the place of the draft, until the next key.
        let height = if area.height > 1 { area.height - u16::from(below.is_some()) } else { 1 };
        let (row, column) = self.layout.place(self.editor.lines(), self.editor.caret());
        self.scroll_to(row, usize::from(height));

        let text = Rect { height, ..area };
        self.draw_rows(text, buf, theme);
        if self.editor.is_empty() && self.search.is_none() {
            let x = area.x + PROMPT_COLUMNS;
            let room = usize::from(area.width - PROMPT_COLUMNS);
            buf.set_stringn(x, area.y, PLACEHOLDER, room, theme.placeholder);
        }
        let mut caret = Position::new(
            (area.x + PROMPT_COLUMNS + u16::try_from(column).unwrap_or(u16::MAX - 512))
                .min(area.right() - 1),
            area.y + u16::try_from(row - self.top).unwrap_or(0),
        );
        if let Some((line, search_caret)) = below {
            let y = area.bottom() - 1;
            if area.height == 1 {
                Clear.render(area, buf);
            }
            buf.set_stringn(area.x, y, &line, usize::from(area.width), theme.dim);
            if let Some(column) = search_caret {
                caret = Position::new((area.x + column).min(area.right() - 1), y);
            }
        }
        Some(caret)
    }

    /// Keeps the caret's row on the screen, and the screen full.
    fn scroll_to(&mut self, row: usize, height: usize) {
        let height = height.max(1);
        self.top = self.top.min(row).max((row + 1).saturating_sub(height));
        self.top = self.top.min(self.layout.rows.len().saturating_sub(height));
    }

    fn draw_rows(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let rows = &self.layout.rows;
        let last = usize::from(area.height).saturating_sub(1);
        for (offset, (y, row)) in (area.y..area.bottom()).zip(&rows[self.top..]).enumerate() {
            let index = self.top + offset;
            // Where the draft goes on outside the screen, an arrow says so.
            let mark = match (offset, index) {
                (0, 0) => PROMPT,
                (0, _) => "↑ ",
                (offset, index) if offset == last && index + 1 < rows.len() => "↓ ",
                _ => "  ",
            };
            buf.set_stringn(area.x, y, mark, usize::from(PROMPT_COLUMNS), theme.user_marker);
            self.draw_row(*row, area.x + PROMPT_COLUMNS, y, area.right(), buf, theme);
        }
    }

    fn draw_row(&self, row: Row, x: u16, y: u16, right: u16, buf: &mut Buffer, theme: &Theme) {
        let line = &self.editor.lines()[row.line];
        let chips = self.pastes.chips(line);
        let mut x = x;
        for (offset, grapheme) in line[row.start..row.end].grapheme_indices(true) {
            let byte = row.start + offset;
            let style = if chips.iter().any(|chip| chip.contains(&byte)) {
                theme.tool_argument
            } else {
                theme.text
            };
            let wide = u16::try_from(columns(grapheme)).unwrap_or(1);
            if x + wide > right {
                break;
            }
            put(buf, x, y, grapheme, style);
            x += wide;
        }
    }

    /// The line under the draft, and the column of the cursor when it belongs there.
    fn line_below(&self) -> Option<(String, Option<u16>)> {
        if let Some(search) = &self.search {
            let found = match (search.words.is_empty(), search.place) {
                (true, _) => "type to search earlier prompts; Esc goes back",
                (false, Some(_)) => "Enter takes it, Ctrl+R older, Esc goes back",
                (false, None) => "nothing found; Esc goes back",
            };
            let head = format!("search: {}", search.words);
            let column = u16::try_from(head.width()).unwrap_or(u16::MAX);
            return Some((format!("{head}  ({found})"), Some(column)));
        }
        if self.quit_until.is_some() {
            return Some(("press Ctrl+C again to quit".to_owned(), None));
        }
        self.notice.as_deref().map(|notice| (sanitise::single_line(notice).into_owned(), None))
    }

    /// Rows that the list above the composer wants, at most `max`; none while it is closed.
    pub fn completion_height(&self, max: u16) -> u16 {
        let rows = self.completion.as_ref().map_or(0, |list| list.candidates.len());
        u16::try_from(rows).unwrap_or(u16::MAX).min(completion::ROWS).min(max)
    }

    /// Draws the list.
    pub fn draw_completion(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let area = area.intersection(*buf.area());
        let Some(list) = &self.completion else { return };
        if area.is_empty() {
            return;
        }
        draw_list(list, area, buf, theme);
    }
}

fn draw_list(list: &Completion, area: Rect, buf: &mut Buffer, theme: &Theme) {
    let widest = list.candidates.iter().map(|c| c.label.width()).max().unwrap_or(0);
    let label_columns = widest.min(usize::from(area.width) / 2 + 8) + 2;
    let window = list.window(usize::from(area.height));
    for (y, index) in (area.y..area.bottom()).zip(window) {
        let candidate = &list.candidates[index];
        let selected = index == list.selected;
        let row = Rect { y, height: 1, ..area };
        for x in row.left()..row.right() {
            buf[(x, y)].reset();
        }
        let mark = if selected { "› " } else { "  " };
        let label = sanitise::single_line(&candidate.label);
        let room = usize::from(area.width);
        buf.set_stringn(area.x, y, mark, room, theme.accent);
        if area.width > 2 {
            let style = if selected { theme.selected } else { theme.text };
            buf.set_stringn(area.x + 2, y, label, (room - 2).min(label_columns), style);
        }
        let at = 2 + label_columns;
        if at < room {
            let x = area.x + u16::try_from(at).unwrap_or(0);
            buf.set_stringn(x, y, sanitise::single_line(&candidate.help), room - at, theme.dim);
        }
    }
}

/// One grapheme into its cells; what must not reach the terminal becomes a mark.
fn put(buf: &mut Buffer, x: u16, y: u16, grapheme: &str, style: Style) {
    match mark(grapheme) {
        Some(mark) => buf.set_string(x, y, mark, style),
        None if grapheme == "\t" => {}
        None => buf.set_string(x, y, grapheme, style),
    }
}
