//! The application state: `update` takes what happened and returns what should be done.
//!
//! Touches no clock, thread, file or channel: time is passed in, effects are data.

use std::time::Instant;

use claw_runtime::driver::Command;
use ratatui::Frame;

use crate::inbox::Inbox;

/// Orders to the loop; the only way in which the application reaches the outside.
#[derive(Debug)]
pub enum Effect {
    /// Order something from the runtime.
    Send(Command),
    /// Put text on the clipboard.
    Copy(String),
    /// Open the text in the person's editor; the result comes back through `App::editor_closed`.
    OpenEditor(String),
    /// Give the terminal back to the shell until SIGCONT.
    Suspend,
    /// Turn mouse capture on or off.
    CaptureMouse(bool),
    /// Remember a submitted prompt across sessions.
    RememberPrompt(String),
    /// Leave.
    Quit,
}

/// Everything on the screen.
pub struct App;

impl App {
    /// Takes one event and says what should be done.
    pub fn update(&mut self, _now: Instant, _event: Inbox) -> Vec<Effect> {
        Vec::new()
    }

    /// When something changes by itself next (elapsed time, dialog focus); none when idle.
    pub fn next_deadline(&self, _now: Instant) -> Option<Instant> {
        None
    }

    /// Called when `next_deadline` has passed. True when something visible changed.
    pub fn tick(&mut self, _now: Instant) -> bool {
        false
    }

    /// Draws the whole state. Costs the screen, not the transcript.
    pub fn draw(&mut self, _now: Instant, _frame: &mut Frame<'_>) {}

    /// The external editor returned this text, or failed with a message.
    pub fn editor_closed(&mut self, _result: Result<String, String>) {}

    /// What is left in the normal scrollback on exit: the conversation as styled lines of `width`.
    pub fn farewell(&mut self, _width: u16) -> Vec<ratatui::text::Line<'static>> {
        Vec::new()
    }
}
