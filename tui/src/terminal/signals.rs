//! The signal thread: what the process is told, as entries of the inbox.
//!
//! It is also the watchdog. A UI thread that hangs (in a write to a terminal that does not read)
//! cannot end by itself; some time after SIGTERM, SIGHUP or SIGINT this thread gives the terminal
//! back and ends the process in its place. While the terminal is lent (to an editor) it does so at
//! once, leaves the keys' own signals to the editor, and stops when the editor stops.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossterm::event::Event;
use rustix::process::{getpgid, getpgrp, getppid, getsid, kill_current_process_group};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;

use super::restore::Restorer;
use crate::inbox::{Inbox, InboxSender, Signal};

/// How long the UI has to end after a signal.
const PATIENCE: Duration = Duration::from_millis(400);
/// How long the terminal has to take the last bytes when the UI hangs.
const LAST_BYTES: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Shared {
    /// The signal that asked for the end.
    ending: Mutex<Option<i32>>,
    ending_now: Condvar,
    /// The next SIGTSTP is the one that we send ourselves, and must not be obeyed again.
    own_stop: AtomicBool,
    /// Somebody else has the terminal, and the UI waits for them.
    lent: AtomicBool,
    /// The UI has ended.
    ended: Mutex<bool>,
    ended_now: Condvar,
}

/// A running signal thread.
pub struct SignalThread {
    shared: Arc<Shared>,
    handle: signal_hook::iterator::Handle,
}

impl SignalThread {
    /// Starts listening. `exit` must end the process with the given status and is called when the
    /// UI did not end in time.
    pub fn start(
        inbox: InboxSender,
        restorer: Arc<Restorer>,
        exit: impl FnOnce(i32) + Send + 'static,
    ) -> io::Result<Self> {
        let signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH])?;
        let handle = signals.handle();
        let shared = Arc::new(Shared::default());
        let listener = Listener { shared: Arc::clone(&shared), inbox, restorer };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || listener.run(signals, exit))?;
        Ok(Self { shared, handle })
    }

    /// The signal that asked for the end, if one did.
    pub fn ended_by(&self) -> Option<i32> {
        *self.shared.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The UI has ended: the watchdog may rest.
    pub fn finish(&self) {
        *self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.ended_now.notify_all();
    }

    /// Somebody else has the terminal from now on (or no more), and the UI waits for them.
    pub fn set_lent(&self, lent: bool) {
        self.shared.lent.store(lent, Ordering::SeqCst);
    }

    /// Stops the whole job, as the terminal's own key would, and returns when it is continued.
    pub fn stop(&self, tty: impl AsFd) -> Stopped {
        if !somebody_can_continue_us() {
            return Stopped::NoShell;
        }
        self.shared.own_stop.store(true, Ordering::SeqCst);
        // The group, because whoever started us (cargo, a script) has to stop too: only then does
        // the shell get the terminal. Our own handler takes that signal; the second one cannot be
        // handled, and stops us here.
        if kill_current_process_group(rustix::process::Signal::TSTP).is_err()
            || signal_hook::low_level::raise(SIGSTOP).is_err()
        {
            return Stopped::NoShell;
        }
        // Continued without the terminal: either to be ended (shells continue a stopped job that
        // they kill), or to run on behind the shell, which a screen cannot.
        let in_front = tcgetpgrp(tty).is_ok_and(|group| group == getpgrp());
        if !in_front && self.shared.is_ending_within(LAST_BYTES) {
            return Stopped::Ending;
        }
        Stopped::Continued
    }
}

/// What came of an attempt to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Stopped, and continued.
    Continued,
    /// Not stopped: no shell waits that could continue us.
    NoShell,
    /// Stopped, and continued only to end. The terminal belongs to the shell.
    Ending,
}

impl Drop for SignalThread {
    fn drop(&mut self) {
        self.finish();
        self.handle.close();
    }
}

impl Shared {
    fn set_ending(&self, signal: i32) {
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner) = Some(signal);
        self.ending_now.notify_all();
    }

    fn is_ending_within(&self, limit: Duration) -> bool {
        let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ending_now.wait_timeout_while(ending, limit, |ending| ending.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
    }

    fn ends_within(&self, limit: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended_now.wait_timeout_while(ended, limit, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

struct Listener {
    shared: Arc<Shared>,
    inbox: InboxSender,
    restorer: Arc<Restorer>,
}

impl Listener {
    fn run(self, mut signals: Signals, exit: impl FnOnce(i32)) {
        for signal in signals.forever() {
            let lent = self.shared.lent.load(Ordering::SeqCst);
            match signal {
                // The whole group got it from the terminal; the editor decides what it means.
                SIGINT | SIGQUIT | SIGCONT if lent => {}
                SIGTSTP if lent => {
                    let _ = signal_hook::low_level::raise(SIGSTOP);
                }
                SIGTSTP => {
                    if !self.shared.own_stop.swap(false, Ordering::SeqCst) {
                        self.inbox.send(Inbox::Signal(Signal::Stop));
                    }
                }
                SIGCONT => self.inbox.send(Inbox::Signal(Signal::Continued)),
                SIGWINCH => {
                    let (width, height) = self.restorer.size();
                    self.inbox.send(Inbox::Terminal(Event::Resize(width, height)));
                }
                _ => {
                    self.shared.set_ending(signal);
                    self.inbox.send(Inbox::Signal(Signal::End));
                    let patience = if lent { Duration::ZERO } else { PATIENCE };
                    if !self.shared.ends_within(patience) {
                        give_back_within(LAST_BYTES, self.restorer);
                        exit(128 + signal);
                    }
                    return;
                }
            }
        }
    }
}

/// Tries to give the terminal back, but not longer than this: writing to a terminal that does not
/// read would wait for ever. The outside guard then finishes the work.
fn give_back_within(limit: Duration, restorer: Arc<Restorer>) {
    let (done, waiting) = std::sync::mpsc::channel();
    thread::spawn(move || {
        restorer.give_back_at_once();
        // Nobody waits any more when it took too long.
        let _ = done.send(());
    });
    let _ = waiting.recv_timeout(limit);
}

/// A job can be continued when a shell with job control watches it: the leader of the session is
/// in another process group, and our parent belongs to the session.
fn somebody_can_continue_us() -> bool {
    let Ok(session) = getsid(None) else { return false };
    let shell_is_elsewhere = getpgid(Some(session)).is_ok_and(|group| group != getpgrp());
    shell_is_elsewhere && getsid(getppid()).is_ok_and(|parents| parents == session)
}
