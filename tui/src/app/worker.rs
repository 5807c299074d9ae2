//! The worker's own screen in place of ours: who looks at it types into it, and nothing that is typed
//! there means anything here but the one key that leads back.

use std::time::Instant;

use claw_runtime::NoticeLevel;
use crossterm::event::{Event, MouseButton, MouseEventKind};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::{App, Effect};
use crate::keymap::Action;
use crate::pane::{self, PaneEvent, PaneOrder, Picture};

/// The screen never gets smaller than this, whatever ours is: what a smaller one shows is broken into
/// lines that neither a person nor we can read. A part of it is in view then.
const SMALLEST: (u16, u16) = (80, 24);

/// Rows of ours above it.
const HEADER: u16 = 1;

/// What is said when there is nothing to look at.
const NO_SCREEN: &str = "There is no worker's screen to look at. Claude Code has one on the `claude` \
     backend with the `pty` transport, from its first prompt on.";

/// What is known of the screen that is looked at.
#[derive(Debug, Default)]
pub(super) struct WorkerScreen {
    /// None until the first has come: until then everything stays as it was.
    picture: Option<Box<Picture>>,
    /// Its worker has ended; the last picture stays until the person leaves.
    ended: bool,
}

impl App {
    /// True while the keys are the worker's.
    pub(super) fn is_worker_shown(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.picture.is_some())
    }

    pub(super) fn look_at_worker(&mut self, effects: &mut Vec<Effect>) {
        self.worker = Some(WorkerScreen::default());
        let (columns, rows) = size_for(self.layout.area());
        effects.push(Effect::Worker(PaneOrder::Look { columns, rows }));
    }

    pub(super) fn on_worker_screen(
        &mut self,
        now: Instant,
        event: PaneEvent,
        effects: &mut Vec<Effect>,
    ) {
        // One that was on its way when the person left.
        let Some(worker) = &mut self.worker else { return };
        match event {
            PaneEvent::Shown(picture) => {
                *worker = WorkerScreen { picture: Some(picture), ended: false };
            }
            PaneEvent::Gone if worker.picture.is_some() => worker.ended = true,
            PaneEvent::Gone => {
                self.leave_worker(effects);
                self.notice(now, NoticeLevel::Info, NO_SCREEN);
            }
        }
    }

    fn leave_worker(&mut self, effects: &mut Vec<Effect>) {
        self.worker = None;
        effects.push(Effect::Worker(PaneOrder::Leave));
    }

    pub(super) fn resize_worker(&self, width: u16, height: u16, effects: &mut Vec<Effect>) {
        if self.worker.is_some() {
            let (columns, rows) = size_for(Rect::new(0, 0, width, height));
            effects.push(Effect::Worker(PaneOrder::Resize { columns, rows }));
        }
    }

    /// A key, a paste or the mouse while the worker's screen is shown.
    pub(super) fn type_to_worker(
        &mut self,
        now: Instant,
        event: &Event,
        effects: &mut Vec<Effect>,
    ) {
        // A question that waits must not take what is typed right after the way back.
        self.permissions.note_typed(now);
        let area = self.layout.area();
        let Some(picture) = self.worker.as_ref().and_then(|worker| worker.picture.as_deref())
        else {
            return;
        };
        let modes = picture.modes();
        let bytes = match event {
            Event::Key(key) if self.keymap.action(key) == Some(Action::ToggleWorkerScreen) => {
                return self.leave_worker(effects);
            }
            Event::Mouse(mouse)
                if mouse.row < area.y + HEADER
                    && mouse.kind == MouseEventKind::Down(MouseButton::Left) =>
            {
                return self.leave_worker(effects);
            }
            Event::Key(key) => pane::key_bytes(key, modes),
            Event::Paste(text) => pane::paste_bytes(text, modes),
            Event::Mouse(mouse) => {
                let screen = below_header(area);
                pane::mouse_bytes(mouse, screen, picture.origin(screen), modes)
            }
            Event::FocusGained | Event::FocusLost | Event::Resize(..) => return,
        };
        if !bytes.is_empty() {
            effects.push(Effect::Worker(PaneOrder::Type(bytes)));
        }
    }

    pub(super) fn draw_worker(&self, area: Rect, frame: &mut Frame<'_>) {
        let Some(worker) = &self.worker else { return };
        let Some(picture) = &worker.picture else { return };
        let buf = frame.buffer_mut();
        self.draw_worker_header(Rect { height: HEADER, ..area }, worker, picture, buf);
        let caret = picture.draw(below_header(area), buf, self.depth);
        if let Some(caret) = caret.filter(|_| !worker.ended) {
            frame.set_cursor_position(caret);
        }
    }

    fn draw_worker_header(
        &self,
        area: Rect,
        worker: &WorkerScreen,
        picture: &Picture,
        buf: &mut Buffer,
    ) {
        buf.set_style(area, self.theme.selected);
        let keys = self.keymap.first_key(Action::ToggleWorkerScreen);
        let back = keys.map_or_else(|| "click here: back".to_owned(), |key| format!("{key}: back"));
        let back = format!(" {back} ");
        let width = usize::from(area.width);
        let room = width.saturating_sub(back.width());
        let said = if self.permissions.is_waiting() {
            (" A question waits for your answer: go back to give it".to_owned(), self.theme.warning)
        } else if worker.ended {
            (" This worker has ended".to_owned(), self.theme.warning)
        } else {
            let title = picture.title();
            let title = if title.is_empty() { "Claude Code" } else { title };
            (format!(" {title} · what you type goes there"), self.theme.selected)
        };
        buf.set_stringn(area.x, area.y, said.0, room, self.theme.selected.patch(said.1));
        let at = area.x + area.width.saturating_sub(back.width() as u16);
        buf.set_stringn(at, area.y, back, width, self.theme.selected);
    }
}

fn below_header(area: Rect) -> Rect {
    Rect { y: area.y + HEADER.min(area.height), height: area.height.saturating_sub(HEADER), ..area }
}

/// The size that the worker's screen gets where ours has this one.
fn size_for(area: Rect) -> (u16, u16) {
    let shown = below_header(area);
    (shown.width.max(SMALLEST.0), shown.height.max(SMALLEST.1))
}
