//! The conversation on the screen.
//!
//! A [`Transcript`] owns the cells, the scroll position and the caches of lines. Events append to
//! the source of a cell, which costs a string append; lines are made when a frame needs them, and a
//! frame needs what fits on the screen. A loaded session shares its messages with the runtime.
//!
//! Deliberately missing: any clock (time is passed in), the status line, the dialogs, and any
//! knowledge of how a turn is run.

mod answer;
mod cell;
mod cells;
mod diff;
mod events;
mod load;
mod output;
mod source;
mod summary;
mod thinking;
mod tool;
mod view;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use claw_runtime::permissions::RequestId;
use claw_runtime::session::SessionView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::markdown::{CodeColours, code_blocks};
use crate::theme::Theme;
use cell::{Cell, Content};
use cells::Cells;
use source::Source;
use view::View;

pub use cell::Standing;

/// Under a text that the person stopped.
const INTERRUPTED_MARK: &str = "interrupted";
/// Under a text whose stream broke off.
const CUT_MARK: &str = "cut off; /retry sends it again";

/// Everything that was said and done, and where the screen stands in it.
pub struct Transcript {
    cells: Cells,
    view: View,
    /// The text or thinking that grows.
    live: Option<usize>,
    /// Tool calls of this turn by id, oldest first.
    calls: Vec<(String, usize)>,
    /// Open questions and the calls they are about.
    questions: Vec<(RequestId, String)>,
    /// The last prompt, if its turn has not begun.
    submitted: Option<usize>,
    /// The message that streams has said something.
    said: bool,
}

impl Transcript {
    /// An empty transcript whose code is plain until [`Transcript::set_highlighter`].
    pub fn new(theme: Theme) -> Self {
        Self {
            cells: Cells::new(theme),
            view: View::new(),
            live: None,
            calls: Vec::new(),
            questions: Vec::new(),
            submitted: None,
            said: false,
        }
    }

    /// Where colours of code come from.
    pub fn set_highlighter(&mut self, colours: Box<dyn CodeColours>) {
        self.cells.set_colours(colours);
    }

    /// Draws everything in other styles from now on.
    pub fn set_theme(&mut self, theme: Theme) {
        self.cells.set_theme(theme);
    }

    /// Shows a prompt that was submitted: `queued` when another turn still runs. The event that
    /// its turn started confirms it. Shows the end.
    pub fn push_user(&mut self, text: &str, queued: bool) {
        let standing = if queued { Standing::Queued } else { Standing::Begun };
        let content = Content::User { text: Source::clean(text), standing };
        if queued {
            self.cells.push_queued(content);
        } else {
            self.submitted = Some(self.cells.push(content));
        }
        self.view.follow();
    }

    /// Shows a prompt that is on its way into the running turn, until [`Transcript::steered`] says
    /// what came of it. Shows the end.
    pub fn push_steered(&mut self, text: &str) {
        let standing = Standing::Sending;
        self.cells.push_queued(Content::User { text: Source::clean(text), standing });
        self.view.follow();
    }

    /// The first prompt that is on its way into the turn stands like this from now on.
    pub fn steered(&mut self, becomes: Standing) {
        let Some(mut at) = self.cells.iter().position(is_sending) else { return };
        if !becomes.is_waiting() {
            self.view.count_cell();
            at = self.cells.settle(at);
        }
        if let Some(cell) = self.cells.change(at)
            && let Content::User { standing, .. } = &mut cell.content
        {
            *standing = becomes;
        }
    }

    /// A prompt is on its way into the turn.
    fn is_sending(&self) -> bool {
        self.cells.iter().any(is_sending)
    }

    /// Takes the prompts back that wait for the end of the turn; those on their way into it stay.
    /// They must be taken from the queue as well.
    pub fn take_queued(&mut self) {
        self.cells.retain_waiting(|cell| {
            !matches!(cell.content, Content::User { standing: Standing::Queued, .. })
        });
    }

    /// How many prompts wait for their turn.
    pub fn queued(&self) -> usize {
        self.cells.queued()
    }

    /// Replaces everything by a stored conversation. Builds cells only.
    pub fn load(&mut self, view: &SessionView) {
        self.clear();
        load::load(view, &mut self.cells);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.view.reset();
        self.live = None;
        self.calls.clear();
        self.questions.clear();
        self.submitted = None;
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// True while nothing was said: there are notices at most.
    pub fn has_only_notices(&self) -> bool {
        self.cells.iter().all(|cell| matches!(cell.content, Content::Notice { .. }))
    }

    /// Draws what is visible into `area`.
    pub fn draw(&mut self, now: Instant, area: Rect, buf: &mut Buffer) {
        self.view.draw(&mut self.cells, now, area, buf);
    }

    /// When something changes by itself next: the next whole second of a running tool.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        self.calls
            .iter()
            .filter_map(|(_, at)| match &self.cells.get(*at)?.content {
                Content::Tool(tool) => tool.running_since(),
                _ => None,
            })
            .map(|since| {
                let seconds = now.saturating_duration_since(since).as_secs();
                since + Duration::from_secs(seconds + 1)
            })
            .min()
    }

    /// Scrolls down by `lines`, up when negative. Following begins again at the end.
    pub fn scroll_lines(&mut self, lines: i32) {
        self.view.scroll(&mut self.cells, lines as isize);
    }

    pub fn page_up(&mut self) {
        let page = self.view.page();
        self.view.scroll(&mut self.cells, -page);
    }

    pub fn page_down(&mut self) {
        let page = self.view.page();
        self.view.scroll(&mut self.cells, page);
    }

    pub fn to_start(&mut self) {
        self.view.jump_to_start(&mut self.cells);
    }

    pub fn to_end(&mut self) {
        self.view.follow();
    }

    /// True while the end is shown, whatever arrives.
    pub fn following(&self) -> bool {
        self.view.is_following()
    }

    /// Lines that arrived below since the person scrolled away; 0 while following.
    pub fn new_lines_below(&self) -> usize {
        self.view.new_lines()
    }

    /// Opens or closes the cell whose first line is at this position of the screen. False when
    /// there is nothing to open there.
    pub fn toggle_at(&mut self, x: u16, y: u16) -> bool {
        self.view.head_at(&self.cells, x, y).is_some_and(|at| self.toggle(at))
    }

    /// Moves the keyboard's place to the previous cell that can be opened. False when there is none.
    pub fn focus_prev(&mut self) -> bool {
        self.view.move_focus(&mut self.cells, true, Cell::is_collapsible)
    }

    /// Moves the keyboard's place to the next cell that can be opened. False when there is none.
    pub fn focus_next(&mut self) -> bool {
        self.view.move_focus(&mut self.cells, false, Cell::is_collapsible)
    }

    pub fn clear_focus(&mut self) {
        self.view.unfocus();
    }

    /// Opens or closes the cell that the keyboard is on.
    pub fn toggle_focused(&mut self) -> bool {
        self.view.focus().is_some_and(|at| self.toggle(at))
    }

    /// Opens or closes a cell; its first line stays where it is on the screen.
    fn toggle(&mut self, at: usize) -> bool {
        self.view.hold(&mut self.cells);
        self.cells.toggle(at)
    }

    /// Opens all thinking, or closes it. Returns whether it is open now.
    pub fn toggle_all_thinking(&mut self) -> bool {
        self.cells.thinking_open = !self.cells.thinking_open;
        self.cells.forget_toggles(|content| matches!(content, Content::Thinking(_)));
        self.cells.thinking_open
    }

    /// Whether tool calls show their whole input and output.
    pub fn tool_details(&self) -> bool {
        self.cells.tools_open
    }

    pub fn set_tool_details(&mut self, open: bool) {
        self.cells.tools_open = open;
        self.cells.forget_toggles(|content| matches!(content, Content::Tool(_)));
    }

    /// Markdown source of the last answer, for copying.
    pub fn last_answer(&self) -> Option<String> {
        self.cells.iter().rev().find_map(|cell| match &cell.content {
            Content::Answer(answer) => {
                Some(answer.source().into_owned()).filter(|text| !text.trim().is_empty())
            }
            _ => None,
        })
    }

    /// The code blocks of the last answer, each exactly as it was written, for copying.
    pub fn last_code_blocks(&self) -> Vec<String> {
        self.last_answer().map(|answer| code_blocks(&answer)).unwrap_or_default()
    }

    /// Source of the cell at this position of the screen, for copying.
    pub fn text_at(&self, x: u16, y: u16) -> Option<String> {
        let at = self.view.cell_at(x, y)?;
        self.cells.get(at).map(Cell::copy_text)
    }

    /// Source of the cell that the keyboard is on, for copying.
    pub fn focused_text(&self) -> Option<String> {
        self.cells.get(self.view.focus()?).map(Cell::copy_text)
    }

    /// The end of the conversation in lines of `width`, at most `max`: what stays in the terminal
    /// after the program has ended.
    pub fn farewell_lines(&mut self, now: Instant, width: u16, max: usize) -> Vec<Line<'static>> {
        self.cells.begin_frame(now, width.max(1));
        let mut lines: Vec<Line<'static>> = Vec::new();
        for at in (0..self.cells.len()).rev() {
            if lines.len() >= max {
                break;
            }
            let cell: Vec<Line<'static>> = self.cells.lines(at).to_vec();
            if cell.is_empty() {
                continue;
            }
            lines.extend(cell.into_iter().rev());
            lines.extend(std::iter::repeat_n(Line::default(), self.cells.gap(at)));
        }
        lines.truncate(max);
        lines.reverse();
        let blank = lines.iter().take_while(|line| line.spans.is_empty()).count();
        lines.drain(..blank);
        lines
    }

    /// How often a cell was laid out so far. A frame should cost the screen: tests count on it.
    pub fn layouts(&self) -> u64 {
        self.cells.layouts()
    }

    /// Lines held in caches now.
    pub fn cached_lines(&self) -> usize {
        self.cells.cached_lines()
    }
}

fn is_sending(cell: &Cell) -> bool {
    matches!(cell.content, Content::User { standing: Standing::Sending, .. })
}
