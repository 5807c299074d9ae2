//! Every wait of this crate in one place, so that tests can shrink them together.

use std::time::Duration;

/// For a connection from the tap to its upstream. What follows is bounded by the CLI's own patience:
/// it hangs up, and so does the tap.
pub(crate) const TAP_CONNECT: Duration = Duration::from_secs(30);

/// Before the tap accepts again when the system refused a connection (no descriptors are left).
pub(crate) const TAP_ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Between two looks at a process where the system makes no event of its end.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// After our end the guard looks once more, for what was just being started and could not be known
/// for ours yet. Nothing tells of it.
pub(crate) const SECOND_LOOK: Duration = Duration::from_millis(500);

/// Between two looks at a process that is just becoming another program, and how many there are.
/// It is over in much less; nothing tells of it.
pub(crate) const EXEC_PAUSE: Duration = Duration::from_millis(1);
pub(crate) const EXEC_LOOKS: u32 = 200;

/// How long is waited for what. No other wait exists in this crate
/// but those above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timings {
    /// From spawn until the SessionStart hook.
    pub ready: Duration,
    /// Between two keys of ours in a dialog, so that it can draw itself again.
    pub dialog_redraw: Duration,
    /// From ready until the first paste.
    pub settle: Duration,
    /// From the end of a paste until the CR.
    pub paste_to_cr: Duration,
    /// From the CR until the one repeated CR, when nothing was seen and no dialog can be open.
    pub cr_retry: Duration,
    /// From the CR until a prompt counts as unconfirmed.
    pub receipt: Duration,
    /// From the end of a steering write until it counts as uncertain.
    pub steer_receipt: Duration,
    /// For bytes to be accepted by the pty.
    pub write: Duration,
    /// From the end of a turn (its hook) until its last records must have been read.
    pub transcript_lag: Duration,
    /// The same while nothing of the session was ever read: the CLI keeps no transcript.
    pub transcript_missing: Duration,
    /// From Esc until the interrupt counts as done without a record.
    pub interrupt: Duration,
    /// The same in a turn that has said nothing: its prompt went back into the input box, and no record
    /// ever comes.
    pub early_interrupt: Duration,
    /// Without any sign of life during a turn.
    pub inactivity: Duration,
    /// From SIGTERM to SIGKILL.
    pub terminate: Duration,
    /// The same for what nobody wants any more: given up, crashed, or dropped.
    pub terminate_abandoned: Duration,
    /// From SIGKILL until the process counts as gone, whatever the kernel says.
    pub kill: Duration,
    /// The poll beside file notification.
    pub slow_poll: Duration,
    /// From the announcement of a tool until it counts as running, when it is not asked about.
    pub ask_lag: Duration,
    /// A permission request waits this long; the hook's own timeout is larger by `hook_margin`.
    pub permission: Duration,
    pub hook_margin: Duration,
    /// A sub-agent whose end was never told is given up after this.
    pub subagent_age: Duration,
    /// For `--version`.
    pub version: Duration,
    /// Before a start that failed is tried again; each time twice as long.
    pub restart: Duration,
    /// For the CLI's own compaction.
    pub compaction: Duration,
    /// For a hook that only tells something, and for its record to arrive.
    pub hook: Duration,
    /// For the CLI's lock on its configuration file; longer than a forgotten one counts.
    pub config_lock: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        let s = Duration::from_secs;
        let ms = Duration::from_millis;
        Self {
            ready: s(30),
            dialog_redraw: ms(400),
            // The CLI's input box is drawn a moment after its hook.
            settle: ms(750),
            paste_to_cr: ms(300),
            cr_retry: s(3),
            receipt: s(15),
            steer_receipt: s(15),
            write: s(5),
            transcript_lag: s(2),
            transcript_missing: ms(200),
            interrupt: s(3),
            early_interrupt: s(1),
            inactivity: s(1800),
            terminate: s(3),
            terminate_abandoned: ms(1500),
            kill: s(1),
            slow_poll: s(2),
            ask_lag: ms(250),
            permission: s(3600),
            hook_margin: s(5),
            subagent_age: s(3600),
            version: s(10),
            restart: s(1),
            compaction: s(600),
            hook: s(10),
            config_lock: s(12),
        }
    }
}

impl Timings {
    /// For tests with a CLI that answers at once.
    pub fn brisk() -> Self {
        let s = Duration::from_secs;
        let ms = Duration::from_millis;
        Self {
            ready: s(10),
            dialog_redraw: ms(50),
            settle: ms(0),
            paste_to_cr: ms(20),
            cr_retry: ms(600),
            receipt: s(3),
            steer_receipt: s(2),
            write: s(1),
            transcript_lag: s(1),
            // As much: a fake CLI may end its first turn before it has written anything.
            transcript_missing: s(1),
            interrupt: ms(800),
            early_interrupt: ms(800),
            inactivity: s(20),
            terminate: ms(400),
            terminate_abandoned: ms(400),
            kill: s(1),
            slow_poll: ms(300),
            ask_lag: ms(250),
            permission: s(20),
            hook_margin: s(2),
            subagent_age: s(20),
            version: s(10),
            restart: ms(50),
            compaction: s(20),
            hook: s(5),
            config_lock: s(12),
        }
    }
}
