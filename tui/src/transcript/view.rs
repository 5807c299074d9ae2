//! What part of the transcript is on the screen: the anchor, following, and the keyboard's place.
//!
//! The position is the cell and the row in it that stand at the top, or "follow the end". Nothing
//! here asks for the height of the whole transcript: walking from the anchor, or back from the end,
//! stops when the screen is full.

use std::time::Instant;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use super::cells::Cells;

/// A place in the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    cell: usize,
    /// Row within the cell, its blank line included.
    row: usize,
}

/// The place at the top of the screen, and what keeps it through changes of the width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Anchor {
    place: Place,
    /// The width for which the person chose `chosen_row`, and the visible characters before it.
    chosen: Option<Chosen>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chosen {
    width: u16,
    row: usize,
    characters: usize,
}

/// Where the screen stands.
#[derive(Debug)]
pub struct View {
    /// None follows the end.
    anchor: Option<Anchor>,
    width: u16,
    height: u16,
    area: Rect,
    /// The cell in each row of the last frame.
    rows: Vec<Option<Place>>,
    focus: Option<usize>,
    arrived: Arrived,
}

/// Counts the lines that arrive while the person looks elsewhere, by their text alone.
#[derive(Debug, Default)]
struct Arrived {
    lines: usize,
    column: usize,
}

impl View {
    pub fn new() -> Self {
        Self {
            anchor: None,
            width: 80,
            height: 24,
            area: Rect::default(),
            rows: Vec::new(),
            focus: None,
            arrived: Arrived::default(),
        }
    }

    pub fn is_following(&self) -> bool {
        self.anchor.is_none()
    }

    /// Lines that arrived below since the person scrolled away; 0 while following.
    pub fn new_lines(&self) -> usize {
        if self.is_following() { 0 } else { self.arrived.lines }
    }

    /// Text arrived in the last cell. Its lines are counted as they will wrap, roughly.
    pub fn count_text(&mut self, text: &str) {
        if self.is_following() {
            return;
        }
        let width = usize::from(self.width.max(1));
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.arrived.lines += 1;
                self.arrived.column = 0;
            }
            let column = self.arrived.column + line.width();
            self.arrived.lines += column / width;
            self.arrived.column = column % width;
        }
    }

    /// A new cell begins.
    pub fn count_cell(&mut self) {
        if !self.is_following() {
            self.arrived.lines += 1;
            self.arrived.column = 0;
        }
    }

    /// A cell was put in at this place: those behind it moved by one.
    pub fn make_room(&mut self, at: usize) {
        if let Some(anchor) = &mut self.anchor
            && anchor.place.cell >= at
        {
            anchor.place.cell += 1;
        }
        if let Some(focus) = &mut self.focus
            && *focus >= at
        {
            *focus += 1;
        }
        self.rows.clear();
    }

    pub fn follow(&mut self) {
        self.anchor = None;
        self.arrived = Arrived::default();
    }

    /// Forgets everything that depends on the cells.
    pub fn reset(&mut self) {
        self.follow();
        self.focus = None;
        self.rows.clear();
    }

    pub fn jump_to_start(&mut self, cells: &mut Cells) {
        self.anchor = Some(Anchor { place: Place { cell: 0, row: 0 }, chosen: None });
        self.arrived = Arrived::default();
        self.settle(cells);
    }

    /// Begins the screen with this cell, when what follows from there does not fit on it.
    pub fn show_from(&mut self, cells: &mut Cells, at: usize) {
        self.anchor = Some(Anchor { place: Place { cell: at, row: 0 }, chosen: None });
        self.settle(cells);
    }

    /// Moves the view down by `lines`, or up when negative.
    pub fn scroll(&mut self, cells: &mut Cells, lines: isize) {
        if cells.is_empty() || (lines > 0 && self.is_following()) {
            return;
        }
        let was_following = self.is_following();
        let top = self.top(cells);
        let place = if lines < 0 {
            up(cells, top, lines.unsigned_abs())
        } else {
            down(cells, top, lines.unsigned_abs())
        };
        if was_following && place == top {
            return;
        }
        self.anchor = Some(Anchor { place, chosen: None });
        self.settle(cells);
    }

    pub fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(2).max(1)).unwrap_or(1)
    }

    /// Follows again when the end is on the screen.
    fn settle(&mut self, cells: &mut Cells) {
        let Some(anchor) = self.anchor else {
            return;
        };
        if rows_below(cells, anchor.place, usize::from(self.height) + 1) <= usize::from(self.height)
        {
            self.follow();
        }
    }

    /// What is on the screen stays where it is although a cell in it changes its height. The end is
    /// followed again when it fits.
    pub fn hold(&mut self, cells: &mut Cells) {
        if self.is_following() {
            self.anchor = Some(Anchor { place: self.top(cells), chosen: None });
        }
    }

    /// The place at the top of the screen.
    fn top(&self, cells: &mut Cells) -> Place {
        match self.anchor {
            Some(anchor) => anchor.place,
            None => up(cells, end(cells), usize::from(self.height)),
        }
    }

    /// Draws the visible part.
    pub fn draw(&mut self, cells: &mut Cells, now: Instant, area: Rect, buf: &mut Buffer) {
        let area = area.intersection(buf.area);
        self.area = area;
        self.rows.clear();
        if area.is_empty() {
            return;
        }
        self.keep_place(cells, area.width);
        self.width = area.width;
        self.height = area.height;
        cells.begin_frame(now, area.width);
        self.find_row(cells);
        self.clamp(cells);
        self.settle(cells);
        let mut place = self.top(cells);
        let height = usize::from(area.height);
        while self.rows.len() < height && place.cell < cells.len() {
            self.draw_cell(cells, place, area, buf);
            place = Place { cell: place.cell + 1, row: 0 };
        }
        cells.end_frame();
    }

    /// Draws the rows of one cell from `place` on, as far as there is room.
    fn draw_cell(&mut self, cells: &mut Cells, place: Place, area: Rect, buf: &mut Buffer) {
        let gap = cells.gap(place.cell);
        let focused = self.focus == Some(place.cell);
        let selected = cells.theme.selected;
        let lines = cells.lines(place.cell);
        if lines.is_empty() {
            return;
        }
        for row in place.row..lines.len() + gap {
            let Ok(y) = u16::try_from(self.rows.len()) else {
                return;
            };
            if y >= area.height {
                return;
            }
            self.rows.push((row >= gap).then_some(Place { cell: place.cell, row }));
            let Some(line) = row.checked_sub(gap).and_then(|row| lines.get(row)) else {
                continue;
            };
            let y = area.y + y;
            buf.set_line(area.x, y, line, area.width);
            if focused && row == gap {
                let width = u16::try_from(line.width()).unwrap_or(u16::MAX).min(area.width);
                buf.set_style(Rect { x: area.x, y, width, height: 1 }, selected);
            }
        }
    }

    /// Before the width changes: remembers which text is at the top.
    fn keep_place(&mut self, cells: &Cells, width: u16) {
        if width == self.width {
            return;
        }
        let Some(anchor) = &mut self.anchor else {
            return;
        };
        if anchor.chosen.is_none() {
            let gap = cells.gap(anchor.place.cell);
            let row = anchor.place.row.saturating_sub(gap);
            let characters =
                cells.cached(anchor.place.cell).map_or(0, |lines| solid_before(lines, row));
            anchor.chosen = Some(Chosen { width: self.width, row: anchor.place.row, characters });
        }
    }

    /// After the width changed: finds the row that shows the same text.
    fn find_row(&mut self, cells: &mut Cells) {
        let Some(Anchor { place, chosen: Some(chosen) }) = &mut self.anchor else {
            return;
        };
        if chosen.width == self.width || chosen.row == 0 {
            place.row = chosen.row;
            return;
        }
        let gap = cells.gap(place.cell);
        place.row = gap + row_of(cells.lines(place.cell), chosen.characters);
    }

    /// A cell that shrank must not leave the anchor behind its end.
    fn clamp(&mut self, cells: &mut Cells) {
        let Some(anchor) = &mut self.anchor else {
            return;
        };
        let last = cells.len().saturating_sub(1);
        if anchor.place.cell > last {
            anchor.place = Place { cell: last, row: 0 };
        }
        let height = cells.height(anchor.place.cell);
        anchor.place.row = anchor.place.row.min(height.saturating_sub(1));
    }

    /// The cell at a position of the screen.
    pub fn cell_at(&self, x: u16, y: u16) -> Option<usize> {
        if !self.area.contains((x, y).into()) {
            return None;
        }
        let place = self.rows.get(usize::from(y - self.area.y)).copied().flatten()?;
        Some(place.cell)
    }

    /// The cell at a position, if the position is on its first line.
    pub fn head_at(&self, cells: &Cells, x: u16, y: u16) -> Option<usize> {
        let cell = self.cell_at(x, y)?;
        let place = self.rows.get(usize::from(y - self.area.y)).copied().flatten()?;
        (place.row == cells.gap(cell)).then_some(cell)
    }

    pub fn focus(&self) -> Option<usize> {
        self.focus
    }

    pub fn unfocus(&mut self) {
        self.focus = None;
    }

    /// Moves the keyboard's place to the next cell that `fits`, up or down, and shows it.
    pub fn move_focus(
        &mut self,
        cells: &mut Cells,
        backwards: bool,
        fits: impl Fn(&super::cell::Cell) -> bool,
    ) -> bool {
        // Without a place on the screen it begins at the edge of the screen.
        let mut shown = self.rows.iter().flatten().map(|place| place.cell);
        let focus = self.focus.filter(|at| self.rows.is_empty() || shown.clone().any(|c| c == *at));
        let found = if backwards {
            let edge = shown.next_back().map_or(cells.len(), |last| last + 1);
            let from = focus.unwrap_or(edge).min(cells.len());
            (0..from).rev().find(|&at| cells.get(at).is_some_and(&fits))
        } else {
            let from = focus.map_or_else(|| shown.next().unwrap_or(cells.len()), |at| at + 1);
            (from..cells.len()).find(|&at| cells.get(at).is_some_and(&fits))
        };
        let Some(at) = found else {
            return false;
        };
        self.focus = Some(at);
        let gap = cells.gap(at);
        let visible = self.rows.contains(&Some(Place { cell: at, row: gap }));
        if !visible {
            self.anchor = Some(Anchor { place: Place { cell: at, row: 0 }, chosen: None });
            self.settle(cells);
            self.rows.clear();
        }
        true
    }
}

/// The place just behind the last row.
fn end(cells: &Cells) -> Place {
    Place { cell: cells.len(), row: 0 }
}

/// The place `rows` above `place`, or the start.
fn up(cells: &mut Cells, place: Place, rows: usize) -> Place {
    let Place { mut cell, mut row } = place;
    let mut left = rows;
    loop {
        if row >= left {
            return Place { cell, row: row - left };
        }
        left -= row;
        row = 0;
        if cell == 0 {
            return Place { cell: 0, row: 0 };
        }
        cell -= 1;
        row += cells.height(cell);
    }
}

/// The place `rows` below `place`, or the last row.
fn down(cells: &mut Cells, place: Place, rows: usize) -> Place {
    let Place { mut cell, mut row } = place;
    let mut left = rows;
    while cell < cells.len() {
        let rest = cells.height(cell).saturating_sub(row);
        if left < rest {
            return Place { cell, row: row + left };
        }
        left -= rest;
        cell += 1;
        row = 0;
    }
    up(cells, end(cells), 1)
}

/// Rows from `place` to the end, counted no further than `limit`.
fn rows_below(cells: &mut Cells, place: Place, limit: usize) -> usize {
    let mut rows = 0;
    let mut row = place.row;
    for cell in place.cell..cells.len() {
        rows += cells.height(cell).saturating_sub(row);
        row = 0;
        if rows >= limit {
            return limit;
        }
    }
    rows
}

/// Visible characters of a line: what wrapping leaves as it is.
fn solid(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| span.content.chars().filter(|c| !c.is_whitespace()).count()).sum()
}

fn solid_before(lines: &[Line<'_>], row: usize) -> usize {
    lines.iter().take(row).map(solid).sum()
}

/// The row in which the character with this number stands.
fn row_of(lines: &[Line<'_>], characters: usize) -> usize {
    let mut before = 0;
    for (row, line) in lines.iter().enumerate() {
        before += solid(line);
        if before > characters {
            return row;
        }
    }
    lines.len().saturating_sub(1)
}
