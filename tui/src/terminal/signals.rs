//! The signal thread: what the process is told, as entries of the inbox.
//!
//! It is also the watchdog. A UI thread that hangs (in a write to a terminal that does not read)
//! cannot end by itself; some time after SIGTERM, SIGHUP or SIGINT this thread gives the terminal
//! back and ends the process in its place.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossterm::event::Event;
use rustix::process::{getpgid, getpgrp, getppid, getsid, kill_current_process_group};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGSTOP, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;

use super::restore::Restorer;
use crate::inbox::{Inbox, InboxSender, Signal};

/// How long the UI has to end after a signal.
const PATIENCE: Duration = Duration::from_millis(400);
/// How long the terminal has to take the last bytes when the UI hangs.
const LAST_BYTES: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Shared {
    /// The first signal that asked for the end; 0 for none.
    ending: AtomicI32,
    /// Stops that we caused ourselves and that must not be obeyed again.
    own_stops: AtomicU32,
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
        let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGTSTP, SIGCONT, SIGWINCH])?;
        let handle = signals.handle();
        let shared = Arc::new(Shared::default());
        let inner = Arc::clone(&shared);
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGWINCH => {
                        let (width, height) = restorer.size();
                        inbox.send(Inbox::Terminal(Event::Resize(width, height)));
                    }
                    SIGTSTP => {
                        if !inner.take_own_stop() {
                            inbox.send(Inbox::Signal(Signal::Stop));
                        }
                    }
                    SIGCONT => inbox.send(Inbox::Signal(Signal::Continued)),
                    _ => {
                        inner.ending.store(signal, Ordering::SeqCst);
                        inbox.send(Inbox::Signal(Signal::End));
                        if !inner.ends_within(PATIENCE) {
                            let restorer = Arc::clone(&restorer);
                            give_back_within(LAST_BYTES, restorer);
                            exit(128 + signal);
                        }
                        break;
                    }
                }
            }
        })?;
        Ok(Self { shared, handle })
    }

    /// The signal that asked for the end, if one did.
    pub fn ended_by(&self) -> Option<i32> {
        match self.shared.ending.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(signal),
        }
    }

    /// The UI has ended: the watchdog may rest.
    pub fn finish(&self) {
        *self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.ended_now.notify_all();
    }

    /// Stops the whole job, as the terminal's own key would, and returns when it is continued.
    /// Returns false, without stopping, where no shell waits that could continue it.
    pub fn stop(&self) -> bool {
        if !somebody_can_continue_us() {
            return false;
        }
        self.shared.own_stops.store(1, Ordering::SeqCst);
        // The group, because whoever started us (cargo, a script) has to stop too: only then does
        // the shell get the terminal.
        let told = kill_current_process_group(rustix::process::Signal::TSTP);
        // Our own handler took that signal; this one cannot be handled, and stops us here.
        told.is_ok() && signal_hook::low_level::raise(SIGSTOP).is_ok()
    }
}

impl Drop for SignalThread {
    fn drop(&mut self) {
        self.finish();
        self.handle.close();
    }
}

impl Shared {
    fn take_own_stop(&self) -> bool {
        self.own_stops.swap(0, Ordering::SeqCst) > 0
    }

    fn ends_within(&self, limit: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended_now.wait_timeout_while(ended, limit, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
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
