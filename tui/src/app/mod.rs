//! The application state: `update` takes what happened and returns what should be done.
//!
//! Touches no clock, thread, file or channel: time is passed in, effects are data. The parts
//! (transcript, composer, dialogs, status line) own their state; this room routes between them.

mod command;
mod input;
mod picker;
mod prompts;
mod runtime;
mod welcome;
mod worker;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use claw_runtime::NoticeLevel;
use claw_runtime::driver::Command;
use claw_runtime::permissions::RequestId;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Widget;
use tokio_util::sync::CancellationToken;

use crate::composer::Composer;
use crate::dialog::PermissionDialog;
use crate::inbox::{Inbox, Signal};
use crate::keymap::Keymap;
use crate::markdown::CodeColours;
use crate::pane::PaneOrder;
use crate::sanitise;
use crate::status::{Activity, StatusLine};
use crate::theme::{ColourDepth, Theme};
use crate::transcript::Transcript;
use crate::view::{self, Layout, Wanted};

use self::picker::OpenPicker;
use self::prompts::WaitingPrompts;
use self::worker::WorkerScreen;

/// How long the second Ctrl+C may take.
const QUIT_WINDOW: Duration = Duration::from_secs(2);

/// How long a word in the status line stays.
const HINT: Duration = Duration::from_secs(4);

/// What is said to an order that nobody can carry out any more.
const ENDED: &str = "the runtime has ended and takes nothing more; /exit leaves";

/// Lines of the conversation that stay in the terminal's scrollback on exit.
const FAREWELL_LINES: usize = 5_000;

/// Orders to the loop; the only way in which the application reaches the outside.
#[derive(Debug)]
pub enum Effect {
    /// Order something from the runtime.
    Send(Command),
    /// Stop the turn that runs.
    Cancel(CancellationToken),
    /// Put text on the clipboard.
    Copy(String),
    /// Open the text in the person's editor; the result comes back through `App::editor_closed`.
    OpenEditor(String),
    /// The same with what a request is about; the result comes back through
    /// `App::request_edited`.
    EditRequest(RequestId, String),
    /// Give the terminal back to the shell until SIGCONT.
    Suspend,
    /// Turn mouse capture on or off.
    CaptureMouse(bool),
    /// Look at the worker's own screen, or type into it.
    Worker(PaneOrder),
    /// Paint every cell again.
    Redraw,
    /// Leave.
    Quit,
}

/// What the application is started with.
pub struct AppOptions {
    pub theme: Theme,
    pub depth: ColourDepth,
    pub keymap: Keymap,
    /// Where colours of code come from.
    pub colours: Box<dyn CodeColours>,
    /// Sent as soon as the runtime is ready.
    pub first_prompt: Option<String>,
    pub mouse: bool,
}

/// When the hint in the status line goes away.
#[derive(Debug)]
struct Hint {
    until: Instant,
    /// It speaks of the turn that runs, and does not outlast it.
    about_turn: bool,
}

/// Everything on the screen.
pub struct App {
    theme: Theme,
    /// What the terminal can show, for other themes.
    depth: ColourDepth,
    keymap: Keymap,
    transcript: Transcript,
    composer: Composer,
    permissions: PermissionDialog,
    picker: Option<OpenPicker>,
    /// The worker's own screen, while it is looked at.
    worker: Option<WorkerScreen>,
    status: StatusLine,
    /// Stops the turn (or compaction) that runs.
    turn: Option<CancellationToken>,
    /// What runs is a `/compact`, which ends without the events of a turn.
    compacting: bool,
    waiting: WaitingPrompts,
    /// A second Ctrl+C before this leaves.
    quit_armed_until: Option<Instant>,
    hint: Option<Hint>,
    focused: bool,
    mouse: bool,
    session_id: Option<String>,
    session_file: Option<PathBuf>,
    /// The same, once it has messages and so is on disk.
    resumable: Option<String>,
    /// Id and title of sessions, as far as they were listed.
    sessions: Vec<(String, String)>,
    /// Where things were drawn last, for the mouse.
    layout: Layout,
}

impl App {
    /// The application and what it orders at once.
    pub fn new(options: AppOptions) -> (Self, Vec<Effect>) {
        let mut transcript = Transcript::new(options.theme.clone());
        transcript.set_highlighter(options.colours);
        let mut app = Self {
            transcript,
            composer: Composer::default(),
            permissions: PermissionDialog::default(),
            picker: None,
            worker: None,
            status: StatusLine::default(),
            turn: None,
            compacting: false,
            waiting: WaitingPrompts::default(),
            quit_armed_until: None,
            hint: None,
            focused: true,
            mouse: options.mouse,
            session_id: None,
            session_file: None,
            resumable: None,
            sessions: Vec::new(),
            layout: view::layout(Rect::ZERO, Wanted { notice: 0, composer: 1, dialog: 0 }),
            theme: options.theme,
            depth: options.depth,
            keymap: options.keymap,
        };
        let mut effects = Vec::new();
        if let Some(prompt) = options.first_prompt {
            app.submit(prompt, &mut effects);
        }
        (app, effects)
    }

    /// Takes one event and says what should be done.
    pub fn update(&mut self, now: Instant, event: Inbox) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Inbox::Terminal(event) => self.on_terminal(now, &event, &mut effects),
            Inbox::Runtime(event) => self.on_runtime(now, event, &mut effects),
            Inbox::Worker(event) => self.on_worker_screen(now, event, &mut effects),
            Inbox::Signal(Signal::End) => self.quit(&mut effects),
            Inbox::Signal(Signal::Stop) => effects.push(Effect::Suspend),
            // The loop has painted everything again; the composer keeps what it held.
            Inbox::Signal(Signal::Continued) | Inbox::Wake => {}
        }
        effects
    }

    /// When something changes by itself next (elapsed time, dialog focus); none when idle.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        // Nobody sees a counter in a window that is not in front.
        let counters = self.focused.then(|| {
            [self.status.next_deadline(now), self.transcript.next_deadline(now)]
                .into_iter()
                .flatten()
                .min()
        });
        let question =
            self.questions_may_come().then(|| self.permissions.next_deadline()).flatten();
        let hint = self.hint.as_ref().map(|hint| hint.until);
        let timed = [question, self.composer.next_deadline(), hint];
        [counters.flatten()].into_iter().chain(timed).flatten().min()
    }

    /// To be called when `next_deadline` has passed; something visible may have changed then.
    pub fn tick(&mut self, now: Instant) {
        if self.hint.as_ref().is_some_and(|hint| hint.until <= now) {
            self.clear_hint();
        }
        if self.questions_may_come() {
            self.permissions.tick(now);
        }
        self.composer.tick(now);
    }

    /// Behind a list or the worker's screen a question cannot take the focus, so it does not wait for a
    /// moment to.
    fn questions_may_come(&self) -> bool {
        self.picker.is_none() && !self.is_worker_shown()
    }

    /// Draws the whole state. Costs the screen, not the transcript.
    pub fn draw(&mut self, now: Instant, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.width < view::MINIMUM.0 || area.height < view::MINIMUM.1 {
            Line::from("too small").render(area, frame.buffer_mut());
            return;
        }
        self.lay_out(now, area);
        if self.is_worker_shown() {
            return self.draw_worker(area, frame);
        }
        let layout = self.layout;
        let buf = frame.buffer_mut();
        let conversation = self.draw_welcome(layout.transcript, buf);
        if !self.transcript.is_empty() {
            self.transcript.draw(now, conversation, buf);
            self.draw_new_lines_marker(conversation, buf);
        }
        self.permissions.draw_notice(layout.notice, buf, &self.theme);
        draw_rule(layout.rule, buf, self.theme.rule);
        let caret = self.composer.draw(layout.composer, buf, &self.theme);
        // Lists lie over the conversation, never over the notice of a question.
        let below = if layout.notice.is_empty() { layout.composer } else { layout.notice };
        let above = Rect { height: below.y.saturating_sub(area.y), ..area };
        let completion = self.composer.completion_height(above.height);
        self.composer.draw_completion(view::bottom(above, completion), buf, &self.theme);
        self.status.draw(now, layout.status, buf, &self.theme);
        let caret = if let Some(picker) = &mut self.picker {
            picker.draw(above, buf, &self.theme)
        } else if self.permissions.is_focused() {
            self.permissions.draw(now, layout.dialog, buf, &self.theme)
        } else {
            caret
        };
        // The terminal's own cursor stands where text goes; in a dialog without a field nowhere.
        if let Some(caret) = caret {
            frame.set_cursor_position(caret);
        }
    }

    /// Where everything is on a screen of this size.
    fn lay_out(&mut self, now: Instant, area: Rect) {
        let waits = self.permissions.is_waiting() && !self.permissions.is_focused();
        let composer = self.composer.height(area.width, area.height / 3);
        let wanted = Wanted { notice: u16::from(waits), composer, dialog: 0 };
        self.layout = view::layout(area, wanted);
        if self.permissions.is_focused() {
            let dialog = self.permissions.rows(now, view::room_for_dialog(self.layout));
            self.layout = view::layout(area, Wanted { dialog, ..wanted });
        }
    }

    /// The external editor returned this text, or failed with a message.
    pub fn editor_closed(&mut self, now: Instant, result: Result<String, String>) {
        match result {
            Ok(text) => self.composer.set_from_editor(&text),
            Err(message) => self.notice(now, NoticeLevel::Warning, &message),
        }
    }

    /// The editor on what a request is about was closed.
    pub fn request_edited(&mut self, now: Instant, id: RequestId, result: Result<String, String>) {
        let edited = result.and_then(|text| self.permissions.edited(id, &text, now));
        if let Err(message) = edited {
            self.notice(now, NoticeLevel::Warning, &message);
        }
    }

    /// What is left in the normal scrollback on exit: the conversation as styled lines of `width`.
    pub fn farewell(&mut self, now: Instant, width: u16) -> Vec<Line<'static>> {
        if self.turn.is_some() {
            self.transcript.leave();
        }
        self.transcript.farewell_lines(now, width, FAREWELL_LINES)
    }

    /// The session to name in the resume command; none when nothing was said.
    pub fn resumable_session(&self) -> Option<&str> {
        self.resumable.as_deref()
    }

    /// The file of the session that is open; it may not be there, when nothing could be saved.
    pub fn session_file(&self) -> Option<&Path> {
        self.session_file.as_deref()
    }

    /// Stops what runs; the outcome comes as an event.
    fn interrupt(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if let Some(cancel) = &self.turn {
            effects.push(Effect::Cancel(cancel.clone()));
            self.status.set_activity(now, Activity::Stopping);
        }
    }

    fn quit(&mut self, effects: &mut Vec<Effect>) {
        if let Some(cancel) = &self.turn {
            effects.push(Effect::Cancel(cancel.clone()));
        }
        // Whoever waits for an answer must not wait for the end of the program.
        self.permissions.clear();
        effects.push(Effect::Quit);
    }

    /// Nothing can be ordered from the runtime any more.
    fn has_ended(&self) -> bool {
        *self.status.activity() == Activity::Ended
    }

    /// A word in the status line that goes away by itself.
    fn hint(&mut self, now: Instant, text: &str, lasts: Duration) {
        self.status.set_hint(Some(sanitise::single_line(text).into_owned()));
        self.hint = Some(Hint { until: now + lasts, about_turn: false });
    }

    /// The same about the turn that runs: it goes with the turn, if not before.
    fn hint_for_turn(&mut self, now: Instant, text: &str, lasts: Duration) {
        self.hint(now, text, lasts);
        self.hint = self.hint.take().map(|hint| Hint { about_turn: true, ..hint });
    }

    fn clear_hint(&mut self) {
        self.status.set_hint(None);
        self.hint = None;
        self.quit_armed_until = None;
    }

    fn draw_new_lines_marker(&self, area: Rect, buf: &mut Buffer) {
        if self.transcript.following() || area.height < 2 {
            return;
        }
        let below = self.transcript.new_lines_below();
        let text = match below {
            0 => " End: Ctrl+End ".to_owned(),
            1 => " 1 new line · Ctrl+End ".to_owned(),
            n => format!(" {n} new lines · Ctrl+End "),
        };
        let width = (text.chars().count() as u16).min(area.width);
        let x = area.right().saturating_sub(width);
        let y = area.bottom().saturating_sub(1);
        buf.set_stringn(x, y, text, usize::from(width), self.theme.selected);
    }
}

/// A line across the screen, between what was said and what is being written.
fn draw_rule(area: Rect, buf: &mut Buffer, style: Style) {
    if area.height > 0 {
        let line = "─".repeat(usize::from(area.width));
        buf.set_stringn(area.x, area.y, line, usize::from(area.width), style);
    }
}
