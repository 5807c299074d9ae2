//! What a conversation shows in which nothing was said yet: what answers, and how to begin.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget, Wrap};

use super::App;
use crate::sanitise;

/// Columns of text at most: longer lines are hard to read.
const COLUMNS: u16 = 76;

/// Rows for notices below it at least.
const NOTICE_ROWS: u16 = 4;

impl App {
    /// Draws the welcome at the top of the area while nothing was said, and returns what is left
    /// below it. Notices about the start do not take its place, unless both do not fit.
    pub(super) fn draw_welcome(&self, area: Rect, buf: &mut Buffer) -> Rect {
        if !self.transcript.has_only_notices() {
            return area;
        }
        let column = Rect {
            x: area.x + 1.min(area.width),
            width: area.width.saturating_sub(2).min(COLUMNS),
            ..area
        };
        let welcome = Paragraph::new(self.welcome()).wrap(Wrap { trim: false });
        let mut drawn = Buffer::empty(column);
        (&welcome).render(column, &mut drawn);
        let rows = column.rows().zip(1..).filter(|(row, _)| !is_blank(*row, &drawn));
        let taken = rows.map(|(_, count)| count).last().unwrap_or(0) + 1;
        if !self.transcript.is_empty() && taken + NOTICE_ROWS > area.height {
            return area;
        }
        welcome.render(column, buf);
        let taken = taken.min(area.height);
        Rect { y: area.y + taken, height: area.height - taken, ..area }
    }

    fn welcome(&self) -> Vec<Line<'static>> {
        let theme = &self.theme;
        let mut lines = vec![
            Line::default(),
            Line::from(vec![
                Span::styled("claw", theme.title),
                Span::styled(concat!("  ", env!("CARGO_PKG_VERSION")), theme.dim),
            ]),
            Line::default(),
        ];
        if let Some(status) = self.status.runtime() {
            let answers = format!("{} answers, through {}.", status.model, status.backend);
            let (text, style) = match &status.backend_note {
                Some(note) => (note.as_str(), theme.warning),
                None => (answers.as_str(), theme.text),
            };
            lines.push(Line::styled(sanitise::single_line(text).into_owned(), style));
            let mode = format!("Permission mode {}: {}.", status.mode, status.mode.describe());
            lines.push(Line::styled(mode, theme.dim));
            lines.push(Line::default());
        }
        for (key, what) in [
            ("Enter", "sends, Ctrl+J makes a new line, Esc stops an answer"),
            ("/", "lists the commands, F1 all keys"),
            ("PageUp", "or the wheel reads back, Ctrl+O opens and closes thinking"),
        ] {
            lines.push(Line::from(vec![
                Span::styled(format!("{key:>7}  "), theme.key_hint),
                Span::styled(what, theme.dim),
            ]));
        }
        if self.status.runtime().is_some_and(|status| status.backend == "demo") {
            lines.push(Line::default());
            let text = "Try \u{201c}hello\u{201d}, or \u{201c}show me everything\u{201d}.";
            lines.push(Line::styled(text, theme.text));
        }
        lines
    }
}

fn is_blank(row: Rect, buf: &Buffer) -> bool {
    row.positions().all(|at| buf[at].symbol() == " ")
}
