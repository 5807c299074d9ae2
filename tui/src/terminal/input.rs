//! The input thread: keys, mouse, paste and focus from the terminal into the inbox.
//!
//! It sleeps in one `poll` on the terminal and on a pipe of its own, without any timer, so an idle
//! program is not woken. A byte in the pipe pauses it before an editor or a shell gets the
//! terminal; from then on it reads nothing. When the terminal hangs up, it says so and ends: the
//! reader below would otherwise turn in circles.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::prefixed::Prefixed;
use crate::inbox::{Inbox, InboxSender, Signal};

/// How long a pause waits for the thread to let go. It only fails to when half an escape sequence
/// was typed and the rest does not come.
const PAUSE_LIMIT: Duration = Duration::from_millis(200);
/// How long the reader looks for the rest of a sequence that has begun.
const READ_LIMIT: Duration = Duration::from_millis(10);
/// How long the reader looks at first for events that came together with the one before, and at
/// most. The library turns in circles for the last millisecond of any look, so that a look which is
/// long from the start costs more than all the rest of a key.
const FIRST_LOOK: Duration = Duration::from_micros(20);
const LONGEST_LOOK: Duration = Duration::from_millis(11);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Read,
    Pause,
    End,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<(Wish, Resting)>,
    changed: Condvar,
}

/// The thread reads nothing at this moment and will not until told.
type Resting = bool;

impl Shared {
    fn lock(&self) -> MutexGuard<'_, (Wish, Resting)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running input thread. Dropping it ends the thread at its next wake-up.
#[derive(Debug)]
pub struct InputThread {
    shared: Arc<Shared>,
    wake: OwnedFd,
}

impl InputThread {
    /// Starts reading the process's terminal (standard input).
    pub fn start(inbox: InboxSender) -> io::Result<Self> {
        // The line is raw already; the parser must be told so, because it takes a line feed, which
        // is Ctrl+J, for Enter otherwise.
        crossterm::terminal::enable_raw_mode()?;
        let (woken, wake) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let shared =
            Arc::new(Shared { state: Mutex::new((Wish::Read, false)), changed: Condvar::new() });
        let reader = Reader { shared: Arc::clone(&shared), woken, inbox };
        thread::Builder::new().name("input".to_owned()).spawn(move || reader.run())?;
        Ok(Self { shared, wake })
    }

    /// Stops reading; returns once no byte will be taken any more.
    pub fn pause(&self) {
        self.wish(Wish::Pause);
        let state = self.shared.lock();
        let _ = self.shared.changed.wait_timeout_while(state, PAUSE_LIMIT, |state| !state.1);
    }

    /// Reads again.
    pub fn resume(&self) {
        self.wish(Wish::Read);
    }

    fn wish(&self, wish: Wish) {
        self.shared.lock().0 = wish;
        self.shared.changed.notify_all();
        // The pipe can only be full of wake-ups, and then the thread will wake.
        let _ = rustix::io::write(&self.wake, &[0]);
    }
}

impl Drop for InputThread {
    fn drop(&mut self) {
        self.wish(Wish::End);
    }
}

struct Reader {
    shared: Arc<Shared>,
    woken: OwnedFd,
    inbox: InboxSender,
}

/// What the wait for input ended with.
enum Awaited {
    Input,
    WishChanged,
    HungUp,
}

impl Reader {
    fn run(self) {
        let stdin = io::stdin();
        while self.rest_until_wanted() {
            match await_input(stdin.as_fd(), self.woken.as_fd()) {
                Ok(Awaited::WishChanged) => {}
                Ok(Awaited::Input) if self.read_events().is_ok() => {}
                Ok(Awaited::Input | Awaited::HungUp) | Err(_) => {
                    self.inbox.send(Inbox::Signal(Signal::End));
                    break;
                }
            }
        }
        self.shared.lock().1 = true;
        self.shared.changed.notify_all();
    }

    /// False when the thread should end.
    fn rest_until_wanted(&self) -> bool {
        let mut state = self.shared.lock();
        while state.0 == Wish::Pause {
            state.1 = true;
            self.shared.changed.notify_all();
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.1 = false;
        state.0 == Wish::Read
    }

    /// Hands over what is there, then returns. Sizes come from the signal thread, which also sees
    /// them while nothing is typed.
    fn read_events(&self) -> io::Result<()> {
        let mut prefixed = Prefixed::default();
        let mut there = event::poll(READ_LIMIT)?;
        while there && self.shared.lock().0 == Wish::Read {
            let event = event::read()?;
            if prefixed.concerns(&event) {
                there = came_along()?;
                self.hand_over(prefixed.push(event, there));
                continue;
            }
            if !matches!(event, Event::Resize(..)) {
                self.inbox.send(Inbox::Terminal(event));
            }
            there = came_along()?;
        }
        self.hand_over(prefixed.flush());
        Ok(())
    }

    fn hand_over(&self, events: Vec<Event>) {
        for event in events {
            self.inbox.send(Inbox::Terminal(event));
        }
    }
}

/// Whether more events came together with the one before.
///
/// The library holds what it has read but not handed out, and looks at that only while its time is
/// not over: a thread that is put aside for that long at the start of a look has not looked, and the
/// rest of a line would wait for the next key. So each look is longer than the one before, and only
/// those that took about their time count.
fn came_along() -> io::Result<bool> {
    let mut look = FIRST_LOOK;
    let mut undisturbed = 0;
    while undisturbed < 2 && look <= LONGEST_LOOK {
        let begun = Instant::now();
        if event::poll(look)? {
            return Ok(true);
        }
        undisturbed += u8::from(begun.elapsed() < look * 2);
        look *= 8;
    }
    Ok(false)
}

fn await_input(tty: BorrowedFd<'_>, woken: BorrowedFd<'_>) -> io::Result<Awaited> {
    let mut fds = [
        PollFd::from_borrowed_fd(tty, PollFlags::IN),
        PollFd::from_borrowed_fd(woken, PollFlags::IN),
    ];
    loop {
        match poll(&mut fds, None) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let [tty, wake] = [fds[0].revents(), fds[1].revents()];
    if !wake.is_empty() {
        rustix::io::read(woken, &mut [0_u8; 64])?;
        return Ok(Awaited::WishChanged);
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    Ok(if tty.intersects(gone) { Awaited::HungUp } else { Awaited::Input })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(prepare: impl FnOnce(&OwnedFd, OwnedFd, &OwnedFd), expected: &str) {
        let (tty, terminal) = rustix::pipe::pipe().unwrap();
        let (woken, wake) = rustix::pipe::pipe().unwrap();
        prepare(&tty, terminal, &wake);
        let seen = match await_input(tty.as_fd(), woken.as_fd()).unwrap() {
            Awaited::Input => "input",
            Awaited::WishChanged => "wish",
            Awaited::HungUp => "hung up",
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_wait_tells_input_a_wish_and_a_hang_up_apart() {
        let mut keep = Vec::new();
        check(
            |_, terminal, _| {
                rustix::io::write(&terminal, b"x").unwrap();
                keep.push(terminal);
            },
            "input",
        );
        check(|_, terminal, _| drop(terminal), "hung up");
        check(
            |_, terminal, wake| {
                rustix::io::write(&terminal, b"for the editor").unwrap();
                rustix::io::write(wake, &[0]).unwrap();
                keep.push(terminal);
            },
            "wish",
        );
    }
}
