//! Output of a child: one thread reads it all the time, so that the child never waits for us.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Pid;
use tokio::sync::watch;

use super::exit::Exit;
use crate::config::WindowSize;
use crate::process;
use crate::pty::peek_exit;
use crate::screen::{Screen, ScreenView};
use crate::timings::LOOK_AGAIN;

/// Reads of output that the end of the process is held back for.
const LAST_WORDS: u32 = 256;

/// A screen that changes. Clones show the same one; the last one stays as it is when the process has
/// ended.
#[derive(Clone)]
pub struct LiveScreen {
    screen: Arc<Mutex<Screen>>,
    changes: watch::Sender<u64>,
}

impl LiveScreen {
    pub(super) fn new(size: WindowSize) -> Self {
        Self { screen: Arc::new(Mutex::new(Screen::new(size))), changes: watch::Sender::new(0) }
    }

    /// Tells that something changed, as often as somebody looks. The number only grows.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Whether both show the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.screen, &other.screen)
    }

    /// All that is needed to draw it.
    pub fn view(&self) -> ScreenView {
        self.lock().view()
    }

    /// The lines that it shows.
    pub fn text(&self) -> String {
        self.lock().text()
    }

    /// The last 64 KiB of output, without control sequences.
    pub fn tail(&self) -> String {
        self.lock().tail()
    }

    pub fn title(&self) -> String {
        self.lock().title().to_owned()
    }

    pub(super) fn resize(&self, size: WindowSize) {
        self.lock().resize(size);
        self.changed();
    }

    fn feed(&self, bytes: &[u8]) {
        self.lock().feed(bytes);
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that reads, and that sees the end of the process.
pub(super) struct Output {
    /// Its end ends the thread.
    stop: PipeWriter,
    /// Ends with the thread.
    exit: watch::Receiver<Option<Exit>>,
    thread: JoinHandle<()>,
}

impl Output {
    pub fn start(master: Arc<OwnedFd>, screen: LiveScreen, leader: Pid) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let (told, exit) = watch::channel(None);
        let process = process::open(leader);
        let mut pump = Pump { master, screen, leader, process, stopped, told };
        let thread =
            thread::Builder::new().name("claw-pty".to_owned()).spawn(move || pump.run())?;
        Ok(Self { stop, exit, thread })
    }

    /// How the process ended, as soon as it has.
    pub fn exit(&self) -> watch::Receiver<Option<Exit>> {
        self.exit.clone()
    }

    /// Waits for the end of the process, and until what it wrote is on the screen.
    pub async fn exited(&self) -> Exit {
        let mut exit = self.exit.clone();
        let told = exit.wait_for(Option::is_some).await;
        told.ok().and_then(|exit| *exit).unwrap_or_default()
    }

    /// Ends the thread and waits for it; it stands in no call that blocks.
    pub fn stop(self) {
        drop(self.stop);
        // A panic of it was told by its hook.
        let _ = self.thread.join();
    }
}

struct Pump {
    master: Arc<OwnedFd>,
    screen: LiveScreen,
    leader: Pid,
    /// Readable when the leader has ended. None where there are no process descriptors.
    process: Option<OwnedFd>,
    stopped: PipeReader,
    told: watch::Sender<Option<Exit>>,
}

/// What there is to do.
struct Ready {
    output: bool,
    exit: bool,
    stop: bool,
}

impl Pump {
    fn run(&mut self) {
        let mut buffer = vec![0; 16 * 1024];
        let mut open = true;
        // Others may hold the terminal and write for ever; their words are not the last words.
        let mut last_words = LAST_WORDS;
        loop {
            let ready = self.wait(open);
            if ready.stop {
                return;
            }
            if ready.exit && (!ready.output || last_words == 0) {
                self.tell_exit();
            } else if ready.exit {
                last_words -= 1;
            }
            if ready.output {
                open = self.read(&mut buffer);
            }
        }
    }

    /// False when there will never be output again.
    fn read(&self, buffer: &mut [u8]) -> bool {
        match rustix::io::read(&*self.master, &mut *buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.screen.feed(&buffer[..count]);
                true
            }
            // EIO: nobody has the terminal open any more.
            Err(error) => matches!(error, Errno::AGAIN | Errno::INTR),
        }
    }

    fn tell_exit(&mut self) {
        if let Some(exit) = peek_exit(self.leader) {
            self.told.send_replace(Some(exit));
        }
    }

    fn wait(&self, open: bool) -> Ready {
        let pending = self.told.borrow().is_none();
        let process = self.process.as_ref().filter(|_| pending);
        let mut polled = vec![PollFd::new(&self.stopped, PollFlags::IN)];
        polled.extend(open.then(|| PollFd::new(&*self.master, PollFlags::IN)));
        polled.extend(process.map(|process| PollFd::new(process, PollFlags::IN)));
        let look_again = Timespec::try_from(LOOK_AGAIN).ok();
        let look_again = look_again.filter(|_| pending && self.process.is_none());
        // An error (a signal, no memory) only means to look again.
        let _ = rustix::event::poll(&mut polled, look_again.as_ref());
        let mut happened = polled.iter().map(|one| !one.revents().is_empty());
        let stop = happened.next().unwrap_or(true);
        let output = open && happened.next().unwrap_or(false);
        let ended = happened.next().unwrap_or(self.process.is_none());
        Ready { output, exit: pending && ended, stop }
    }
}
