//! Tables that fit the width: columns shrink and their cells wrap; far too narrow, the rows become
//! lists of `header: value`.

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use super::wrap::{Margins, spans_width, wrap_words};
use crate::theme::Theme;

/// Between two columns.
const SEPARATOR: &str = " │ ";
const SEPARATOR_WIDTH: usize = 3;

/// Columns are not squeezed below this, if they are wider by nature.
const NARROWEST: usize = 5;

type Cell<'a> = Vec<Span<'a>>;

/// A table while it is read.
#[derive(Debug, Default)]
pub struct Table<'a> {
    alignments: Vec<Alignment>,
    header: Vec<Cell<'a>>,
    rows: Vec<Vec<Cell<'a>>>,
    in_header: bool,
}

impl<'a> Table<'a> {
    pub fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, ..Self::default() }
    }

    pub fn start_header(&mut self) {
        self.in_header = true;
    }

    pub fn start_row(&mut self) {
        self.in_header = false;
        self.rows.push(Vec::new());
    }

    pub fn push_cell(&mut self, cell: Cell<'a>) {
        if self.in_header {
            self.header.push(cell);
        } else if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// The lines of the table in `width` columns.
    pub fn lines(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        match self.columns(width) {
            Some(columns) => self.grid(&columns, theme),
            None => self.list(width, theme),
        }
    }

    /// Widths of the columns, or none when they do not fit.
    fn columns(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.header.len();
        if count == 0 {
            return None;
        }
        let room = width.checked_sub(SEPARATOR_WIDTH * (count - 1))?;
        let mut columns: Vec<usize> = (0..count)
            .map(|column| {
                std::iter::once(&self.header)
                    .chain(&self.rows)
                    .filter_map(|row| row.get(column))
                    .map(|cell| spans_width(cell))
                    .max()
                    .unwrap_or(0)
                    .clamp(1, room.max(1))
            })
            .collect();
        let mut total: usize = columns.iter().sum();
        while total > room {
            let widest = columns.iter_mut().max()?;
            if *widest <= NARROWEST {
                return None;
            }
            *widest -= 1;
            total -= 1;
        }
        Some(columns)
    }

    fn grid(&self, columns: &[usize], theme: &Theme) -> Vec<Line<'static>> {
        let mut out = Vec::new();
        let header: Vec<Cell<'_>> = self
            .header
            .iter()
            .map(|cell| {
                let style = theme.table_header;
                cell.iter().map(|span| span.clone().style(style.patch(span.style))).collect()
            })
            .collect();
        self.grid_row(&header, columns, theme, &mut out);
        let rule: Vec<String> = columns.iter().map(|&width| "─".repeat(width)).collect();
        out.push(Line::from(Span::styled(rule.join("─┼─"), theme.table_rule)));
        for row in &self.rows {
            self.grid_row(row, columns, theme, &mut out);
        }
        out
    }

    fn grid_row(
        &self,
        row: &[Cell<'_>],
        columns: &[usize],
        theme: &Theme,
        out: &mut Vec<Line<'static>>,
    ) {
        let cells: Vec<Vec<Line<'static>>> = columns
            .iter()
            .enumerate()
            .map(|(column, &width)| {
                let mut lines = Vec::new();
                let cell = row.get(column).map_or(&[][..], Vec::as_slice);
                wrap_words(cell, width, &Margins::default(), &mut lines);
                lines
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for index in 0..height {
            let mut spans = Vec::new();
            for (column, &width) in columns.iter().enumerate() {
                if column > 0 {
                    spans.push(Span::styled(SEPARATOR, theme.table_rule));
                }
                let line = cells[column].get(index).cloned().unwrap_or_default();
                let free = width.saturating_sub(line.width());
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    _ => 0,
                };
                // The last column has no blanks behind it: they would be copied.
                let last = column + 1 == columns.len();
                let after = if last { 0 } else { free - before };
                if before > 0 && !(last && line.spans.is_empty()) {
                    spans.push(Span::raw(" ".repeat(before)));
                }
                spans.extend(line.spans);
                if after > 0 {
                    spans.push(Span::raw(" ".repeat(after)));
                }
            }
            out.push(Line::from(spans));
        }
    }

    fn list(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut out = Vec::new();
        if self.rows.is_empty() {
            for header in &self.header {
                wrap_words(header, width, &Margins::default(), &mut out);
            }
        }
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                out.push(Line::default());
            }
            for (column, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                let mut spans: Vec<Span<'_>> = Vec::new();
                if let Some(header) = self.header.get(column) {
                    let style = theme.table_header;
                    spans.extend(
                        header.iter().map(|span| span.clone().style(style.patch(span.style))),
                    );
                    spans.push(Span::styled(": ", style));
                }
                spans.extend(cell.iter().cloned());
                wrap_words(&spans, width, &Margins::default(), &mut out);
            }
        }
        out
    }
}
