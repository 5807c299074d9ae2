//! Gives the terminal back, from whichever thread ends the program.
//!
//! The screen, the panic hook and the signal thread share one [`Restorer`]. It remembers whether
//! the terminal is taken and what the line settings were, restores once, and tells the outside
//! guard (a process that outlives a crash of this one) whether there is something to restore.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};

use super::modes;

/// What the guard is told: the terminal is taken, or it was given back.
pub const GUARD_TAKEN: u8 = b't';
pub const GUARD_RETURNED: u8 = b'r';

#[derive(Default)]
struct State {
    /// The terminal is in our hands.
    taken: bool,
    /// The line settings before; none when the descriptor is not a terminal (in tests).
    before: Option<Termios>,
    guard: Option<Box<dyn Write + Send>>,
}

impl State {
    fn tell_guard(&mut self, word: u8) {
        // A guard that died is no reason to stop; it is only the net below the net.
        if self.guard.as_mut().is_some_and(|guard| guard.write_all(&[word]).is_err()) {
            self.guard = None;
        }
    }
}

/// Owns the way back to the terminal as it was.
pub struct Restorer {
    tty: OwnedFd,
    state: Mutex<State>,
}

impl Restorer {
    /// Over a descriptor of the terminal.
    pub fn new(tty: OwnedFd) -> Self {
        Self { tty, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the terminal: raw line settings, then these bytes. Fails when it is gone.
    pub fn take(&self, enter: &str) -> io::Result<()> {
        let mut state = self.lock();
        if let Ok(now) = tcgetattr(&self.tty) {
            // The settings of the first time are the ones to return to.
            let before = state.before.get_or_insert_with(|| now.clone());
            let raw = raw(before);
            tcsetattr(&self.tty, OptionalActions::Now, &raw)?;
        }
        state.taken = true;
        state.tell_guard(GUARD_TAKEN);
        drop(state);
        self.write(enter.as_bytes())
    }

    /// Sets the raw line settings again after somebody else changed them.
    pub fn retake_line(&self) -> io::Result<()> {
        let state = self.lock();
        if let Some(before) = &state.before {
            tcsetattr(&self.tty, OptionalActions::Now, &raw(before))?;
        }
        Ok(())
    }

    /// Gives the terminal back once; later calls do nothing. True when this call did it.
    /// What the terminal may have typed meanwhile (mouse, focus, key reports) is thrown away.
    pub fn give_back(&self) -> bool {
        Self::give_back_locked(&self.tty, &mut self.lock())
    }

    /// As [`Restorer::give_back`], but never waits for another thread that is doing it: for the
    /// panic hook and for a program whose UI thread hangs.
    pub fn give_back_at_once(&self) -> bool {
        match self.state.try_lock() {
            Ok(mut state) => Self::give_back_locked(&self.tty, &mut state),
            Err(TryLockError::Poisoned(state)) => {
                Self::give_back_locked(&self.tty, &mut state.into_inner())
            }
            Err(TryLockError::WouldBlock) => false,
        }
    }

    fn give_back_locked(tty: &OwnedFd, state: &mut State) -> bool {
        if !std::mem::take(&mut state.taken) {
            return false;
        }
        // Each step is tried even when another failed: half a restore is better than none.
        let written = write_all(tty, modes::LEAVE.as_bytes());
        if let Some(before) = &state.before {
            let _ = tcsetattr(tty, OptionalActions::Now, before);
            let _ = tcflush(tty, QueueSelector::IFlush);
        }
        if written.is_ok() {
            state.tell_guard(GUARD_RETURNED);
        }
        true
    }

    /// The terminal itself.
    pub fn tty(&self) -> &OwnedFd {
        &self.tty
    }

    /// True while the terminal is in our hands.
    pub fn is_taken(&self) -> bool {
        self.lock().taken
    }

    /// The line settings from before, once the terminal was taken.
    pub fn line_settings(&self) -> Option<Termios> {
        self.lock().before.clone()
    }

    /// From now on this writer is told [`GUARD_TAKEN`] and [`GUARD_RETURNED`].
    pub fn set_guard(&self, guard: Box<dyn Write + Send>) {
        let mut state = self.lock();
        state.guard = Some(guard);
        let word = if state.taken { GUARD_TAKEN } else { GUARD_RETURNED };
        state.tell_guard(word);
    }

    /// Writes everything to the terminal; waits as long as the terminal does not read.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        write_all(&self.tty, bytes)
    }

    /// Columns and rows as they are now; 80x24 where the terminal does not say.
    pub fn size(&self) -> (u16, u16) {
        match rustix::termios::tcgetwinsize(&self.tty) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => (80, 24),
        }
    }
}

/// Raw line settings made from these.
pub fn raw(before: &Termios) -> Termios {
    let mut raw = before.clone();
    raw.make_raw();
    raw
}

/// Writes all bytes to a descriptor that may be in blocking or non-blocking mode.
pub fn write_all(tty: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(&tty, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(&tty, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use super::*;

    fn restorer() -> (Restorer, std::io::PipeReader) {
        let (reader, writer) = io::pipe().unwrap();
        (Restorer::new(writer.into()), reader)
    }

    fn written((restorer, mut reader): (Restorer, std::io::PipeReader)) -> String {
        drop(restorer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    }

    #[derive(Clone, Default)]
    struct Words(Arc<Mutex<Vec<u8>>>);

    impl Write for Words {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_terminal_is_given_back_exactly_once() {
        let both = restorer();
        assert!(!both.0.give_back());
        both.0.take("<enter>").unwrap();
        assert!(both.0.give_back());
        assert!(!both.0.give_back());
        assert!(!both.0.give_back_at_once());
        assert_eq!(written(both), format!("<enter>{}", modes::LEAVE));
    }

    #[test]
    fn the_guard_knows_whether_there_is_something_to_restore() {
        let both = restorer();
        let words = Words::default();
        both.0.take("").unwrap();
        both.0.set_guard(Box::new(words.clone()));
        both.0.give_back();
        both.0.take("").unwrap();
        assert_eq!(*words.0.lock().unwrap(), [GUARD_TAKEN, GUARD_RETURNED, GUARD_TAKEN]);
    }

    #[test]
    fn a_thread_that_hangs_in_the_restore_does_not_hold_up_another() {
        let both = restorer();
        both.0.take("").unwrap();
        let held = both.0.lock();
        assert!(!both.0.give_back_at_once());
        drop(held);
        assert!(both.0.give_back_at_once());
    }
}
