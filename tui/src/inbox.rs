//! What the UI thread waits for: one queue, one variant per source (never one per feature).
//!
//! To be built by its owner: the queue (a mutex and a condition variable), `InboxSender` (clone),
//! `InboxReceiver`, the input thread, and the runtime's sink over it, which merges neighbouring
//! deltas and blocks the *runtime* (never the UI) when the terminal has stopped reading.

use claw_runtime::TuiEvent;
use crossterm::event::Event;

/// One thing that happened.
#[derive(Debug)]
pub enum Inbox {
    /// Key, mouse, paste, focus, resize.
    Terminal(Event),
    /// A fact from the runtime.
    Runtime(TuiEvent),
    /// The process was told something.
    Signal(Signal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM, SIGHUP or SIGINT: end now, cleanly.
    End,
    /// SIGCONT: the terminal has to be taken again and redrawn.
    Continued,
    /// SIGTSTP from outside.
    Stop,
}
