//! All cells in order, and how many of their lines are kept.
//!
//! Nothing is laid out because it exists: [`Cells::height`] and [`Cells::lines`] work on the cell
//! that is asked for, and cells that were not drawn for long lose their lines.

use std::time::Instant;

use ratatui::text::Line;

use super::cell::{Cell, Content, Env, Key};
use crate::markdown::{CodeColours, PlainCode};
use crate::theme::Theme;

/// Lines kept in caches, beyond those on the screen.
const KEPT_LINES: usize = 4000;

pub struct Cells {
    all: Vec<Cell>,
    /// Prompts that wait for their turn are the last cells, whatever else comes.
    queued: usize,
    pub theme: Theme,
    theme_generation: u32,
    colours: Box<dyn CodeColours>,
    colour_generation: u64,
    width: u16,
    now: Option<Instant>,
    /// All thinking stands open unless a cell says otherwise.
    pub thinking_open: bool,
    /// All tool calls stand open unless a cell says otherwise.
    pub tools_open: bool,
    frame: u64,
    /// Cells with lines.
    laid_out: Vec<usize>,
    layouts: u64,
}

impl Cells {
    pub fn new(theme: Theme) -> Self {
        Self {
            all: Vec::new(),
            queued: 0,
            theme,
            theme_generation: 0,
            colours: Box::new(PlainCode),
            colour_generation: 0,
            width: 80,
            now: None,
            thinking_open: false,
            tools_open: false,
            frame: 0,
            laid_out: Vec::new(),
            layouts: 0,
        }
    }

    pub fn set_colours(&mut self, colours: Box<dyn CodeColours>) {
        self.colours = colours;
        // Blocks that were plain for good may now be coloured.
        self.theme_generation += 1;
    }

    pub fn set_theme(&mut self, theme: Theme) {
        self.theme = theme;
        self.theme_generation += 1;
    }

    /// A frame of this width begins.
    pub fn begin_frame(&mut self, now: Instant, width: u16) {
        self.frame += 1;
        self.now = Some(now);
        self.width = width;
        self.colour_generation = self.colours.poll();
    }

    /// A frame was drawn: lines of cells that were not on the screen for long are dropped.
    pub fn end_frame(&mut self) {
        let kept = |cells: &[Cell], at: usize| cells[at].cached().map_or(0, <[_]>::len);
        let mut total: usize = self.laid_out.iter().map(|&at| kept(&self.all, at)).sum();
        if total <= KEPT_LINES {
            return;
        }
        let cells = &mut self.all;
        self.laid_out.sort_by_key(|&at| cells[at].last_drawn);
        let frame = self.frame;
        self.laid_out.retain(|&at| {
            if total <= KEPT_LINES || cells[at].last_drawn == frame {
                return true;
            }
            total -= kept(cells, at);
            cells[at].drop_lines();
            false
        });
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn queued(&self) -> usize {
        self.queued
    }

    pub fn get(&self, at: usize) -> Option<&Cell> {
        self.all.get(at)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Cell> {
        self.all.iter()
    }

    /// A cell that is about to change.
    pub fn change(&mut self, at: usize) -> Option<&mut Cell> {
        let cell = self.all.get_mut(at)?;
        cell.touch();
        Some(cell)
    }

    /// Adds a cell behind all others but before the queued prompts. Returns its place.
    pub fn push(&mut self, content: Content) -> usize {
        let at = self.all.len() - self.queued;
        if self.queued > 0 {
            self.forget_lines_from(at);
        }
        self.all.insert(at, Cell::new(content));
        at
    }

    /// Adds a prompt that waits for its turn.
    pub fn push_queued(&mut self, content: Content) {
        self.all.push(Cell::new(content));
        self.queued += 1;
    }

    /// The first queued prompt is no longer queued. Returns its place.
    pub fn unqueue_first(&mut self) -> Option<usize> {
        let at = self.all.len().checked_sub(self.queued).filter(|_| self.queued > 0)?;
        self.queued -= 1;
        Some(at)
    }

    /// A waiting prompt becomes one of the cells before all that still wait. Returns its place.
    pub fn settle(&mut self, at: usize) -> usize {
        let first = self.all.len() - self.queued;
        if at < first || at >= self.all.len() {
            return at;
        }
        self.all[first..=at].rotate_right(1);
        self.queued -= 1;
        self.forget_lines_from(first);
        first
    }

    /// Takes waiting prompts away, except those.
    pub fn retain_waiting(&mut self, keep: impl Fn(&Cell) -> bool) {
        let first = self.all.len() - self.queued;
        let waiting = self.all.split_off(first);
        self.all.extend(waiting.into_iter().filter(keep));
        self.queued = self.all.len() - first;
        self.forget_lines_from(first);
    }

    /// Places from here on have moved: their lines are dropped so that the books stay right.
    fn forget_lines_from(&mut self, at: usize) {
        for cell in &mut self.all[at..] {
            cell.drop_lines();
        }
        self.laid_out.retain(|&place| place < at);
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.laid_out.clear();
        self.queued = 0;
    }

    /// Lines of the cell without the blank line before it.
    pub fn lines(&mut self, at: usize) -> &[Line<'static>] {
        let Some(cell) = self.all.get_mut(at) else {
            return &[];
        };
        let key = key(
            cell,
            self.width,
            self.theme_generation,
            (self.thinking_open, self.tools_open),
            self.now,
        );
        cell.last_drawn = self.frame;
        if !cell.is_laid_out(key, self.colour_generation) {
            self.layouts += 1;
            if cell.cached().is_none() {
                self.laid_out.push(at);
            }
        }
        let mut env = Env {
            width: self.width,
            theme: &self.theme,
            colours: self.colours.as_mut(),
            now: self.now,
        };
        cell.lay_out(key, self.colour_generation, &mut env)
    }

    /// Lines that the cell had when it was last laid out.
    pub fn cached(&self, at: usize) -> Option<&[Line<'static>]> {
        self.all.get(at)?.cached()
    }

    /// Blank lines before the cell.
    pub fn gap(&self, at: usize) -> usize {
        let before = self.all.get(..at).and_then(|all| all.iter().rfind(|cell| !cell.is_blank()));
        let Some((cell, before)) = self.all.get(at).zip(before) else {
            return 0;
        };
        usize::from(!(cell.is_compact() && before.is_compact()))
    }

    /// Rows that the cell takes, with the blank line before it.
    pub fn height(&mut self, at: usize) -> usize {
        let lines = self.lines(at).len();
        if lines == 0 { 0 } else { lines + self.gap(at) }
    }

    /// Whether the cell stands open.
    pub fn is_expanded(&self, at: usize) -> bool {
        self.all.get(at).is_some_and(|cell| expanded(cell, self.thinking_open, self.tools_open))
    }

    /// Opens or closes a cell. False when that makes no difference for it.
    pub fn toggle(&mut self, at: usize) -> bool {
        let open = self.is_expanded(at);
        match self.all.get_mut(at) {
            Some(cell) if cell.is_collapsible() => {
                cell.expanded = Some(!open);
                true
            }
            _ => false,
        }
    }

    /// All cells follow the settings again.
    pub fn forget_toggles(&mut self, of: impl Fn(&Content) -> bool) {
        for cell in self.all.iter_mut().filter(|cell| of(&cell.content)) {
            cell.expanded = None;
        }
    }

    /// How often a cell was laid out so far: what a frame really costs.
    pub fn layouts(&self) -> u64 {
        self.layouts
    }

    /// Lines held in caches.
    pub fn cached_lines(&self) -> usize {
        self.laid_out.iter().filter_map(|&at| self.cached(at)).map(<[_]>::len).sum()
    }
}

fn expanded(cell: &Cell, thinking_open: bool, tools_open: bool) -> bool {
    cell.expanded.unwrap_or(match cell.content {
        Content::Thinking(_) => thinking_open,
        Content::Tool(_) => tools_open,
        _ => false,
    })
}

/// What the lines of a cell depend on now.
fn key(
    cell: &Cell,
    width: u16,
    theme: u32,
    (thinking_open, tools_open): (bool, bool),
    now: Option<Instant>,
) -> Key {
    let since = match &cell.content {
        Content::Tool(tool) => tool.running_since(),
        _ => None,
    };
    // Before the first frame a running tool has run for no time at all.
    let seconds =
        since.zip(now).map_or(0, |(since, now)| now.saturating_duration_since(since).as_secs());
    Key { width, theme, expanded: expanded(cell, thinking_open, tools_open), seconds }
}
