//! The protocol of the interactive CLI as a pure machine: what was seen goes in, what is to be done
//! comes out.
//!
//! It knows no clock, no io and no task. It decides when a key may be written, which prompt was
//! taken, whose turn runs and how each turn ended. It refuses to recognise anything by the words of
//! a screen or of a reply.

mod seen;

use std::time::Instant;

pub use seen::{HookSeen, Reading, Seen, Step, Ticket};

use crate::timings::Timings;

/// The machine of one worker.
#[derive(Debug)]
pub struct Machine {
    timings: Timings,
    session_id: String,
    version: String,
}

impl Machine {
    /// A machine for a worker that will open the session `session_id` on a CLI of this version.
    pub fn new(timings: Timings, session_id: String, version: String) -> Self {
        Self { timings, session_id, version }
    }

    /// Takes in what happened and says what is to be done now.
    pub fn see(&mut self, now: Instant, seen: Seen) -> Vec<Step> {
        let _ = (now, seen, &self.timings, &self.session_id, &self.version);
        Vec::new()
    }

    /// When [`Seen::Tick`] is wanted at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        None
    }
}
