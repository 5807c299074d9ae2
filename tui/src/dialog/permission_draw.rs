//! The permission dialog on the screen, from a whole box down to two lines.

use std::time::Instant;

use claw_runtime::permissions::{PermissionRequest, RequestKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget};
use unicode_width::UnicodeWidthStr;

use super::body::Kind;
use super::choice::Choice;
use super::frame::{self, put};
use super::permission::PermissionDialog;
use crate::numbers::grouped;
use crate::sanitise;
use crate::theme::Theme;

/// Rows of a box around the facts, the input and the choices: frame, hint, count of hidden lines.
const AROUND: usize = 2 + 2;
/// Seconds after which it is said how long a request waits.
const LONG_WAIT: u64 = 10;
/// Columns below which there is no box.
const BOX_COLUMNS: u16 = 40;

/// Columns below which nobody can read an input: nothing counts as shown then.
const READABLE_COLUMNS: u16 = 10;

const HOW_TO_ANSWER: &str = " — stop typing, or Tab to answer";

impl PermissionDialog {
    /// The line above the composer while a request waits without the focus; none otherwise.
    /// `columns` is the width of the screen: the subject is cut first, how to answer last.
    pub fn notice(&self, columns: u16) -> Option<String> {
        if self.focused {
            return None;
        }
        let waiting = self.waiting.front()?;
        let tool = sanitise::single_line(&waiting.request.tool_name).into_owned();
        let more = match self.len() {
            1 => String::new(),
            n => format!(" ({} of {n})", self.age_place() + 1),
        };
        let head = headline(&waiting.request);
        let fixed = head.width() + more.width() + HOW_TO_ANSWER.width();
        // The colon, the space and the two quotes around the subject.
        let room = usize::from(columns).saturating_sub(fixed + 4);
        let subject = if room >= 4 {
            format!(": `{}`", frame::cut(&waiting.body.subject, room))
        } else {
            String::new()
        };
        let full = format!("{head}{subject}{more}{HOW_TO_ANSWER}");
        if full.width() <= usize::from(columns) {
            return Some(full);
        }
        Some(frame::cut(&format!("{tool} asks: Tab to answer"), usize::from(columns)))
    }

    /// Draws the notice into the first row of the area.
    pub fn draw_notice(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let area = area.intersection(*buf.area());
        if let Some(notice) = self.notice(area.width) {
            Clear.render(Rect { height: area.height.min(1), ..area }, buf);
            put(&notice, area, area.y, theme.warning, buf);
        }
    }

    /// Draws the focused dialog at the bottom of the area. Returns where the terminal's cursor
    /// belongs while a reason is typed.
    pub fn draw(
        &mut self,
        now: Instant,
        area: Rect,
        buf: &mut Buffer,
        theme: &Theme,
    ) -> Option<Position> {
        let area = area.intersection(*buf.area());
        if !self.focused || self.waiting.is_empty() || area.is_empty() {
            return None;
        }
        if self.is_boxed(now, area) {
            self.draw_box(now, area, buf, theme)
        } else {
            self.draw_small(area, buf, theme)
        }
    }

    /// Rows that the focused dialog would like to have of this area; 0 when it is not drawn.
    pub fn rows(&mut self, now: Instant, area: Rect) -> u16 {
        if !self.focused || area.is_empty() {
            return 0;
        }
        let (boxed, around) = (self.is_boxed(now, area), self.rows_around(now));
        let width = usize::from(area.width).saturating_sub(if boxed { 4 } else { 0 });
        let Some(front) = self.waiting.front_mut() else { return 0 };
        let around = if boxed { around } else { 3 };
        u16::try_from(around + front.body.rows(width)).unwrap_or(u16::MAX).min(area.height)
    }

    /// Rows of a box around the input.
    fn rows_around(&self, now: Instant) -> usize {
        AROUND + self.choices().len() + self.facts(now).len()
    }

    /// There is room for a box.
    fn is_boxed(&self, now: Instant, area: Rect) -> bool {
        usize::from(area.height) > self.rows_around(now) && area.width >= BOX_COLUMNS
    }

    fn title(&self) -> String {
        let Some(request) = self.front() else { return String::new() };
        format!("{}{}", headline(request), self.place())
    }

    /// The place in the queue, counted from when it was last empty; nothing for a single request.
    fn place(&self) -> String {
        match self.done + self.waiting.len() {
            0 | 1 => String::new(),
            all => format!(" · {} of {all}", self.done + self.age_place() + 1),
        }
    }

    fn draw_box(
        &mut self,
        now: Instant,
        area: Rect,
        buf: &mut Buffer,
        theme: &Theme,
    ) -> Option<Position> {
        let width = usize::from(area.width).saturating_sub(4);
        let facts = self.facts(now);
        let rows = self.waiting.front_mut()?.body.rows(width);
        let wanted = u16::try_from(self.rows_around(now) + rows).unwrap_or(u16::MAX);
        let outer = frame::bottom(area, wanted);
        let inner = frame::boxed(outer, &self.title(), buf, theme);
        let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };

        let mut y = inner.y;
        for (fact, warns) in &facts {
            put(fact, inner, y, if *warns { theme.warning } else { theme.dim }, buf);
            y += 1;
        }
        let choices = self.choices();
        let below = u16::try_from(choices.len() + 2).unwrap_or(0);
        let body = Rect { y, height: inner.bottom().saturating_sub(y + below), ..inner };
        let hidden = self.draw_body(body, rows, buf, theme);
        y = body.bottom();
        if let Some(hidden) = hidden {
            put(&hidden, inner, y, theme.warning, buf);
        }
        y += 1;
        let mut caret = None;
        for choice in choices {
            let line = Rect { y, height: 1, ..inner };
            caret = self.draw_choice(choice, line, buf, theme).or(caret);
            y += 1;
        }
        put(&self.hint(), inner, y, theme.key_hint, buf);
        caret
    }

    /// Without a box: title, input, and one row that shows the selected choice.
    fn draw_small(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let width = usize::from(area.width);
        let rows = self.waiting.front_mut()?.body.rows(width);
        let wanted = u16::try_from(rows + 3).unwrap_or(u16::MAX);
        let area = frame::bottom(area, wanted);
        Clear.render(area, buf);
        let last = Rect { y: area.bottom() - 1, height: 1, ..area };
        if area.height > 1 {
            let tool = self.front().map_or("", |request| request.tool_name.as_str());
            let title = format!("{} asks{}", sanitise::single_line(tool), self.place());
            put(&title, area, area.y, theme.title, buf);
        }
        if area.height > 3 {
            let body = Rect { y: area.y + 1, height: area.height - 3, ..area };
            if let Some(hidden) = self.draw_body(body, rows, buf, theme) {
                put(&hidden, area, body.bottom(), theme.warning, buf);
            }
        } else if area.height == 3 {
            put("(no room for the input)", area, area.y + 1, theme.warning, buf);
        }
        let caret = self.draw_choice(self.choice, last, buf, theme);
        let arrows = "↑↓";
        if caret.is_none() && area.width >= 8 {
            let x = area.right() - 2;
            buf.set_string(x.saturating_sub(1), last.y, " ", theme.text);
            buf.set_string(x, last.y, arrows, theme.key_hint);
        }
        caret
    }

    /// Mode and level, and the reason when there is one; true marks a warning.
    fn facts(&self, now: Instant) -> Vec<(String, bool)> {
        let Some(waiting) = self.waiting.front() else { return Vec::new() };
        let request = &waiting.request;
        let by = request.asker.agent_words().map(|agent| format!(" · for {}", shown(&agent)));
        let mut facts = match &request.kind {
            RequestKind::Tool { .. } => {
                let mode = format!("mode {} · needs {}", request.current_mode, request.required);
                vec![(mode + &by.unwrap_or_default(), false)]
            }
            RequestKind::TrustFolder => Vec::new(),
            RequestKind::Questions(_) => {
                let place = waiting.question_place().filter(|(_, all)| *all > 1);
                let place = place.map(|(at, all)| format!("question {at} of {all}"));
                place.into_iter().map(|place| (place, false)).collect()
            }
            RequestKind::Plan { .. } => {
                vec![("it changes files and runs commands once you approve".to_owned(), false)]
            }
        };
        let waited = now.saturating_duration_since(waiting.since).as_secs();
        if waited >= LONG_WAIT {
            facts.push((format!("waiting for {waited} s"), false));
        }
        if let Some(reason) = &request.reason {
            facts.push((shown(reason), true));
        }
        facts
    }

    /// Draws the input from the scroll position, and says which lines are hidden.
    fn draw_body(
        &mut self,
        area: Rect,
        rows: usize,
        buf: &mut Buffer,
        theme: &Theme,
    ) -> Option<String> {
        let height = usize::from(area.height);
        self.page = height;
        self.scroll = self.scroll.min(rows.saturating_sub(height));
        let end = self.scroll + height;
        if height > 0 && end >= rows && area.width >= READABLE_COLUMNS {
            self.seen_end = true;
        }
        let body = &self.waiting.front()?.body;
        for (y, index) in (area.y..area.bottom()).zip(self.scroll..rows) {
            let Some((kind, text)) = body.row(index) else { break };
            put(text, area, y, style(kind, theme), buf);
        }
        let below = rows.saturating_sub(end);
        let lines = |count: usize| {
            let noun = if count == 1 { "line" } else { "lines" };
            format!("{} more {noun}", grouped(count))
        };
        match (self.scroll, below) {
            (0, 0) => None,
            (0, below) => Some(format!("↓ {} (PageDown, End)", lines(below))),
            (above, 0) => Some(format!("↑ {} above", lines(above))),
            (above, below) => Some(format!("↓ {}, ↑ {above} above", lines(below))),
        }
    }

    fn draw_choice(
        &self,
        choice: Choice,
        area: Rect,
        buf: &mut Buffer,
        theme: &Theme,
    ) -> Option<Position> {
        let selected = choice == self.choice;
        let closed = choice.allows() && !self.seen_end;
        let mark = if selected { "› " } else { "  " };
        if let (true, Some(field), Some(front)) = (selected, &self.reason, self.waiting.front()) {
            return Some(draw_field(field, choice.field(front), area, buf, theme));
        }
        let words = self.waiting.front().map(|front| choice.label(front)).unwrap_or_default();
        let mut label = shown(&words);
        if closed {
            label.push_str(" (read to the end first)");
        }
        let style = match (selected, closed) {
            (true, false) => theme.button_focused,
            (true, true) => theme.dim.patch(theme.selected),
            (false, true) => theme.dim,
            (false, false) => theme.button,
        };
        put(mark, area, area.y, theme.accent, buf);
        let rest = Rect { x: area.x + 2, width: area.width.saturating_sub(2), ..area };
        put(&label, rest, area.y, style, buf);
        None
    }

    fn hint(&self) -> String {
        if self.reason.is_some() {
            return match self.choice {
                Choice::Other => "Enter gives this answer · Esc goes back",
                _ => "Enter denies with this reason · Esc goes back",
            }
            .to_owned();
        }
        if self.choice.allows() && !self.seen_end {
            return "PageDown or End shows the rest; then it can be allowed".to_owned();
        }
        let esc = match self.front().map(|request| &request.kind) {
            Some(RequestKind::Questions(_)) => "leaves it",
            Some(RequestKind::Plan { .. }) => "keeps planning",
            _ => "denies",
        };
        let others = if self.len() > 1 { "←→ others · " } else { "" };
        let letters = if self.len() > 1 { "letters: draft" } else { "letters go to your draft" };
        format!("↑↓ choose · {others}Enter confirms · Esc {esc} · {letters}")
    }
}

/// The field for a reason; its end stays visible.
fn draw_field(
    field: &crate::composer::editor::Editor,
    label: &str,
    area: Rect,
    buf: &mut Buffer,
    theme: &Theme,
) -> Position {
    put(label, area, area.y, theme.accent, buf);
    let offset = u16::try_from(label.width()).unwrap_or(0).min(area.width.saturating_sub(1));
    let room = Rect { x: area.x + offset, width: area.width - offset, ..area };
    let columns = usize::from(room.width).saturating_sub(1);
    let caret = field.caret();
    let text = &field.lines()[caret.line];
    let (before, after) = text.split_at(caret.byte);
    let before = sanitise::reveal(before);
    let mut shown: &str = &before;
    // Drop from the left what does not fit before the caret.
    while shown.width() > columns {
        let mut graphemes = unicode_segmentation::UnicodeSegmentation::graphemes(shown, true);
        graphemes.next();
        shown = graphemes.as_str();
    }
    let at = u16::try_from(shown.width()).unwrap_or(0);
    let whole = format!("{shown}{}", sanitise::reveal(after));
    buf.set_stringn(room.x, room.y, whole, usize::from(room.width), theme.text);
    Position::new((room.x + at).min(area.right().saturating_sub(1)), area.y)
}

/// Text of somebody else's in one line, with everything visible that would not be seen.
fn shown(text: &str) -> String {
    sanitise::single_line(&sanitise::reveal(text)).into_owned()
}

fn headline(request: &PermissionRequest) -> String {
    let who = sanitise::single_line(&request.tool_name);
    match &request.kind {
        RequestKind::Tool { .. } => format!("{who} asks for permission"),
        RequestKind::TrustFolder => format!("{who} asks: do you trust this folder?"),
        RequestKind::Questions(_) => "A question for you".to_owned(),
        RequestKind::Plan { .. } => "A plan for your approval".to_owned(),
    }
}

fn style(kind: Kind, theme: &Theme) -> Style {
    match kind {
        Kind::Command => theme.strong,
        Kind::Data => theme.tool_argument,
        Kind::Added => theme.diff_added,
        Kind::Removed => theme.diff_removed,
        Kind::Hunk => theme.diff_hunk,
        Kind::Context => theme.text,
    }
}
