//! From the spawn until the SessionStart hook: the only time in which keys of ours may answer a
//! dialog, and only one that was read as ours.

use std::time::Instant;

use super::seen::Reading;
use super::typing::Purpose;
use super::{Machine, Phase};
use crate::error::WorkerError;
use crate::event::WorkerEvent;

#[derive(Debug, Default)]
pub(super) struct Start {
    /// Known from the spawn on.
    ready_by: Option<Instant>,
    look_at: Option<Instant>,
    /// The dialog of the last reading, by title and screen.
    dialog: Option<(String, String)>,
    screen: String,
}

impl Start {
    pub fn deadline(&self) -> Option<Instant> {
        [self.ready_by, self.look_at].into_iter().flatten().min()
    }

    /// The screen is read at this time, unless it is read sooner anyway.
    pub fn look_soon(&mut self, at: Instant) {
        self.look_at.get_or_insert(at);
    }
}

impl Machine {
    pub(super) fn spawned(&mut self, now: Instant) {
        let (ready, redraw) = (self.timings.ready, self.timings.dialog_redraw);
        if let Phase::Starting(start) = &mut self.phase {
            start.ready_by = Some(now + ready);
            start.look_soon(now + redraw);
        }
    }

    /// A person is at work in a dialog: they get the whole time again.
    pub(super) fn extend_start(&mut self, now: Instant) {
        let (ready, redraw) = (self.timings.ready, self.timings.dialog_redraw);
        if let Phase::Starting(start) = &mut self.phase {
            start.ready_by = Some(now + ready);
            start.look_soon(now + redraw);
        }
    }

    pub(super) fn read_start(&mut self, now: Instant, reading: &Reading) {
        let again = now + self.timings.dialog_redraw;
        let Phase::Starting(start) = &mut self.phase else { return };
        match reading {
            Reading::Plain { screen } => {
                start.screen.clone_from(screen);
                start.dialog = None;
                self.dialog_told = None;
            }
            Reading::Ours { key, title, screen } => {
                start.dialog = Some((title.clone(), screen.clone()));
                // One key, then the list has to draw itself again before it is read.
                start.look_at = Some(again);
                let key = key.clone();
                if !self.stopped && !self.keyboard.is_writing() {
                    self.write(Purpose::Key, key);
                }
            }
            Reading::Theirs { title, screen } => {
                let same = start.dialog.as_ref().is_some_and(|(known, _)| known == title);
                start.dialog = Some((title.clone(), screen.clone()));
                if same {
                    // Read twice: it stands.
                    self.tell_dialog(reading);
                } else {
                    start.look_at = Some(again);
                }
            }
            Reading::Login { title, screen } => {
                let same = start.dialog.as_ref().is_some_and(|(known, _)| known == title);
                start.dialog = Some((title.clone(), screen.clone()));
                if same {
                    // Nobody but the person can go on from here, and not in a few seconds.
                    self.give_up(WorkerError::Auth { message: "it asks how to log in".into() });
                } else {
                    start.look_at = Some(again);
                }
            }
        }
    }

    pub(super) fn go_on_starting(&mut self, now: Instant) {
        let Phase::Starting(start) = &mut self.phase else { return };
        if start.look_at.is_some_and(|at| at <= now) {
            start.look_at = None;
            self.ask_screen();
            return;
        }
        if start.ready_by.is_some_and(|by| by <= now) {
            let error = match start.dialog.take() {
                Some((title, screen)) => WorkerError::Dialog { title, screen },
                None => WorkerError::NotReady {
                    after: self.timings.ready,
                    screen: std::mem::take(&mut start.screen),
                },
            };
            self.give_up(error);
        }
    }

    /// The SessionStart hook: the one sign that it can take a prompt.
    pub(super) fn session_started(&mut self, now: Instant, session_id: String) {
        match &self.phase {
            Phase::Starting(_) => {
                self.phase = Phase::Up;
                self.dialog_told = None;
                self.session_id.clone_from(&session_id);
                self.keyboard.quiet_until(now + self.timings.settle);
                let version = self.version.clone();
                self.tell(WorkerEvent::Ready { session_id, version });
            }
            Phase::Up if self.session_id != session_id => {
                self.session_id.clone_from(&session_id);
                self.ledger.close_all(now);
                self.tell_ends(now);
                self.tell(WorkerEvent::SessionChanged { session_id });
            }
            _ => {}
        }
    }

    /// The API refused the login before the session was ready.
    pub(super) fn auth_failed_at_start(&mut self, message: String) {
        if matches!(self.phase, Phase::Starting(_)) {
            self.give_up(WorkerError::Auth { message });
        }
    }
}
