//! Bytes for a child: whole, in order, and never longer than the child is willing to read.

use std::io;
use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe::Sender;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use crate::error::WorkerError;

/// One that takes fewer bytes than these in `Timings.write` takes them too slowly.
const SLOWEST: usize = 16 * 1024;

/// The way into a pty. Clones write to the same one, one after another.
#[derive(Clone)]
pub struct Input(Arc<Line>);

struct Line {
    /// None once it is closed. No pipe, but it is written and waited for like one.
    master: Mutex<Option<Sender>>,
    closed: CancellationToken,
    /// The kernel may take bytes that nobody will read.
    exit: watch::Receiver<Option<Exit>>,
    /// When anybody's bytes were taken last.
    taken: StdMutex<Instant>,
    total: AtomicU64,
    patience: Duration,
}

impl Input {
    /// `master` must be set not to block.
    pub(super) fn new(
        master: &OwnedFd,
        exit: watch::Receiver<Option<Exit>>,
        patience: Duration,
    ) -> io::Result<Self> {
        let master = Sender::from_owned_fd_unchecked(master.try_clone()?)?;
        Ok(Self(Arc::new(Line {
            master: Mutex::new(Some(master)),
            closed: CancellationToken::new(),
            exit,
            taken: StdMutex::new(Instant::now()),
            total: AtomicU64::new(0),
            patience,
        })))
    }

    /// Writes all of it, after what others are writing. [`WorkerError::NotReading`] when nothing is
    /// taken for as long as `Timings.write`, or all of it far too slowly; [`WorkerError::Stopped`] when
    /// the child is gone or its end has begun. What was taken by then stays taken, also when
    /// the future is dropped: see [`accepted`](Self::accepted).
    pub async fn write(&self, bytes: &[u8]) -> Result<(), WorkerError> {
        let line = &self.0;
        let began = Instant::now();
        let accepted = AtomicUsize::new(0);
        let passed = tokio::select! {
            biased;
            () = line.closed.cancelled() => Err(Refusal::Over),
            () = line.ended() => Err(Refusal::Over),
            passed = line.pass_on(bytes, &accepted) => passed,
            () = line.stalled(began) => Err(Refusal::Broken),
        };
        if line.closed.is_cancelled() {
            line.release();
        }
        passed.map_err(|refusal| match refusal {
            Refusal::Over => WorkerError::Stopped,
            Refusal::Broken => WorkerError::NotReading {
                accepted: accepted.load(Ordering::Relaxed),
                total: bytes.len(),
                after: began.elapsed(),
            },
        })
    }

    /// How many bytes were taken since the start.
    pub fn accepted(&self) -> u64 {
        self.0.total.load(Ordering::Relaxed)
    }

    /// Refuses what comes and what is being written.
    pub(super) fn close(&self) {
        self.0.closed.cancel();
        self.0.release();
    }
}

enum Refusal {
    /// Nobody will read any more.
    Over,
    Broken,
}

impl Line {
    async fn pass_on(&self, bytes: &[u8], accepted: &AtomicUsize) -> Result<(), Refusal> {
        let master = self.master.lock().await;
        let master = master.as_ref().ok_or(Refusal::Over)?;
        let windows = u32::try_from(bytes.len() / SLOWEST).unwrap_or(u32::MAX).saturating_add(1);
        let longest = self.patience.saturating_mul(windows);
        let all = self.write_all(master, bytes, accepted);
        timeout(longest, all).await.unwrap_or(Err(Refusal::Broken))
    }

    async fn write_all(
        &self,
        master: &Sender,
        bytes: &[u8],
        accepted: &AtomicUsize,
    ) -> Result<(), Refusal> {
        let mut left = bytes;
        while !left.is_empty() {
            master.writable().await.map_err(|_| Refusal::Broken)?;
            match master.try_write(left) {
                Ok(count) => {
                    left = &left[count..];
                    accepted.fetch_add(count, Ordering::Relaxed);
                    self.total.fetch_add(count as u64, Ordering::Relaxed);
                    *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                }
                Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => {}
                // No program has the terminal any more. The end of the child, which is known a moment
                // later, says why.
                Err(_) => return std::future::pending().await,
            }
        }
        Ok(())
    }

    /// Returns when the child has ended.
    async fn ended(&self) {
        // An error means that nobody watches it any more: its end has begun.
        let _ = self.exit.clone().wait_for(Option::is_some).await;
    }

    /// Returns when nothing was taken for too long, be it ours or of those before us.
    async fn stalled(&self, began: Instant) {
        loop {
            let taken = *self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let deadline = taken.max(began) + self.patience;
            if Instant::now() >= deadline {
                return;
            }
            sleep_until(deadline).await;
        }
    }

    /// Gives the descriptor up, now or when the one that writes has stopped.
    fn release(&self) {
        if let Ok(mut master) = self.master.try_lock() {
            master.take();
        }
    }
}
