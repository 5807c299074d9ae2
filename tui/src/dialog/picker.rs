//! A list to choose from, narrowed by typing: sessions, models, modes, themes.

use claw_runtime::session::SessionEntry;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::widgets::{Clear, Widget};
use unicode_width::UnicodeWidthStr;

use super::frame::{self, cut, put};
use crate::composer::fuzzy;
use crate::sanitise;
use crate::theme::Theme;

/// Rows of a list at most, without its frame.
const MOST_ROWS: u16 = 16;

/// One row: what is handed out, and what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickerRow<T> {
    pub value: T,
    pub label: String,
    /// Shown dim, to the right.
    pub detail: String,
    /// It is the one in force.
    pub current: bool,
}

/// What a key meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickerOutcome<T> {
    Consumed,
    Chosen(T),
    /// Closed without a choice.
    Closed,
    /// Not a key of the list.
    Ignored,
}

/// An open list.
pub struct Picker<T> {
    title: String,
    rows: Vec<PickerRow<T>>,
    filter: String,
    /// Indices of the rows that match, best first.
    shown: Vec<usize>,
    selected: usize,
    page: usize,
}

impl<T: Clone> Picker<T> {
    /// A list with this title; the row in force is selected.
    pub fn new(title: impl Into<String>, rows: Vec<PickerRow<T>>) -> Self {
        let selected = rows.iter().position(|row| row.current).unwrap_or(0);
        let shown = (0..rows.len()).collect();
        Self { title: title.into(), rows, filter: String::new(), shown, selected, page: 1 }
    }

    /// Takes a key, a paste or the wheel; a paste narrows like typing.
    pub fn handle(&mut self, event: &Event) -> PickerOutcome<T> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            Event::Paste(text) => {
                let text = sanitise::single_line(text);
                self.narrow(|filter| filter.push_str(&text));
                PickerOutcome::Consumed
            }
            Event::Mouse(mouse) => {
                match mouse.kind {
                    MouseEventKind::ScrollUp => self.move_by(false, 1),
                    MouseEventKind::ScrollDown => self.move_by(true, 1),
                    _ => return PickerOutcome::Ignored,
                }
                PickerOutcome::Consumed
            }
            _ => PickerOutcome::Ignored,
        }
    }

    fn key(&mut self, key: &KeyEvent) -> PickerOutcome<T> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let plain = !key.modifiers.intersects(!KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Esc => return PickerOutcome::Closed,
            KeyCode::Char('c') if control => return PickerOutcome::Closed,
            KeyCode::Enter if plain => {
                return match self.shown.get(self.selected) {
                    Some(index) => PickerOutcome::Chosen(self.rows[*index].value.clone()),
                    None => PickerOutcome::Consumed,
                };
            }
            KeyCode::Up => self.move_by(false, 1),
            KeyCode::Char('p') if control => self.move_by(false, 1),
            KeyCode::Down => self.move_by(true, 1),
            KeyCode::Char('n') if control => self.move_by(true, 1),
            KeyCode::PageUp => self.move_by(false, self.page),
            KeyCode::PageDown => self.move_by(true, self.page),
            KeyCode::Home => self.move_by(false, usize::MAX),
            KeyCode::End => self.move_by(true, usize::MAX),
            KeyCode::Backspace => self.narrow(|filter| {
                filter.pop();
            }),
            KeyCode::Char('u') if control => self.narrow(String::clear),
            KeyCode::Char(c) if plain && !c.is_control() => self.narrow(|filter| filter.push(c)),
            _ => return PickerOutcome::Ignored,
        }
        PickerOutcome::Consumed
    }

    fn move_by(&mut self, down: bool, rows: usize) {
        let last = self.shown.len().saturating_sub(1);
        self.selected = if down {
            self.selected.saturating_add(rows).min(last)
        } else {
            self.selected.saturating_sub(rows)
        };
    }

    fn narrow(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.filter);
        let texts: Vec<String> =
            self.rows.iter().map(|row| format!("{} {}", row.label, row.detail)).collect();
        self.shown = fuzzy::rank(&self.filter, texts.iter().map(String::as_str));
        self.selected = 0;
    }

    /// Draws the list at the bottom of the area; returns the place of the terminal's cursor.
    pub fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let area = area.intersection(*buf.area());
        if area.is_empty() {
            return None;
        }
        let rows = u16::try_from(self.rows.len().max(1)).unwrap_or(u16::MAX).min(MOST_ROWS);
        let boxed = area.height >= 6 && area.width >= 20;
        let inner = if boxed {
            let outer = frame::bottom(area, rows + 4);
            let inner = frame::boxed(outer, &self.title, buf, theme);
            Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
        } else {
            let outer = frame::bottom(area, rows + 1);
            Clear.render(outer, buf);
            outer
        };
        let caret = self.draw_filter(inner, buf, theme);
        let hint = u16::from(boxed);
        let list = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1 + hint), ..inner };
        self.draw_rows(list, buf, theme);
        if boxed {
            let hint = "type to narrow · ↑↓ choose · Enter takes it · Esc closes";
            put(hint, inner, inner.bottom() - 1, theme.key_hint, buf);
        }
        Some(caret)
    }

    fn draw_filter(&self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Position {
        let line = format!("/ {}", self.filter);
        put(&line, area, area.y, theme.text, buf);
        let count = format!("{} of {}", self.shown.len(), self.rows.len());
        let room = usize::from(area.width);
        if line.width() + count.width() + 2 <= room {
            let x = area.right() - u16::try_from(count.width()).unwrap_or(0);
            buf.set_string(x, area.y, &count, theme.dim);
        }
        let column = u16::try_from(line.width()).unwrap_or(u16::MAX);
        Position::new(area.x.saturating_add(column).min(area.right() - 1), area.y)
    }

    fn draw_rows(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let height = usize::from(area.height);
        self.page = height.max(1);
        if self.shown.is_empty() {
            put("nothing matches; Backspace widens", area, area.y, theme.dim, buf);
            return;
        }
        let first = (self.selected + 1).saturating_sub(height);
        for (y, place) in (area.y..area.bottom()).zip(first..self.shown.len()) {
            let row = &self.rows[self.shown[place]];
            let selected = place == self.selected;
            let mark = match (selected, row.current) {
                (true, _) => "› ",
                (false, true) => "• ",
                (false, false) => "  ",
            };
            put(mark, area, y, theme.accent, buf);
            let rest = Rect { x: area.x + 2, width: area.width.saturating_sub(2), ..area };
            let detail = sanitise::single_line(&row.detail).into_owned();
            let columns = usize::from(rest.width);
            // The detail keeps its room up to a half; the label gives way first.
            let detail = cut(&detail, columns / 2);
            let room =
                columns.saturating_sub(if detail.is_empty() { 0 } else { detail.width() + 2 });
            let label = sanitise::single_line(&row.label).into_owned();
            let style = if selected { theme.selected } else { theme.text };
            put(&cut(&label, room), rest, y, style, buf);
            if !detail.is_empty() {
                let x = rest.right() - u16::try_from(detail.width()).unwrap_or(0);
                buf.set_string(x, y, &detail, theme.dim);
            }
        }
    }
}

/// Rows for plain names; `current` marks the one in force.
pub fn name_rows(
    names: impl IntoIterator<Item = String>,
    current: Option<&str>,
) -> Vec<PickerRow<String>> {
    names
        .into_iter()
        .map(|name| PickerRow {
            current: current == Some(name.as_str()),
            label: name.clone(),
            detail: String::new(),
            value: name,
        })
        .collect()
}

/// Sessions with title, age, size and branch; the value is the session id.
pub fn session_rows(entries: &[SessionEntry], now_ms: u64) -> Vec<PickerRow<String>> {
    entries
        .iter()
        .map(|entry| {
            let branch = match entry.fork.as_ref().map(|fork| fork.branch_name.as_deref()) {
                Some(Some(name)) => format!(" · branch {name}"),
                Some(None) => " · fork".to_owned(),
                None => String::new(),
            };
            let locked = if entry.locked && !entry.current { " · open elsewhere" } else { "" };
            PickerRow {
                value: entry.id.clone(),
                label: if entry.title.trim().is_empty() {
                    "(no prompt yet)".to_owned()
                } else {
                    entry.title.clone()
                },
                detail: format!(
                    "{} · {}{branch}{locked}",
                    age(now_ms.saturating_sub(entry.updated_at_ms)),
                    size(entry.bytes),
                ),
                current: entry.current,
            }
        })
        .collect()
}

/// A length of time in milliseconds as a person says it.
pub fn age(ms: u64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        0 => "just now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..1_440 => format!("{} h ago", minutes / 60),
        1_440..2_880 => "yesterday".to_owned(),
        _ => format!("{} days ago", minutes / 1_440),
    }
}

/// A number of bytes as a person says it.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests;
