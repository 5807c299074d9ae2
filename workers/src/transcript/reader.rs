//! Follows the transcript of a session: each record once and in order, whatever happens to the file.
//!
//! Driven by file notification, with a slow poll beside it. Between the two it does nothing.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::record::Record;
use super::tail::Tail;
use super::watch::Watch;
use crate::error::WorkerError;
use crate::timings::Timings;

/// What the reader tells.
#[derive(Debug)]
pub enum ReaderEvent {
    /// A record that was not told before. One without facts is still a sign of life.
    Record(Record),
    /// A whole line that is no record. `offset` is where it begins, in bytes.
    Broken { offset: u64, message: String },
    /// A line over [`super::LINE_LIMIT`]: a [`WorkerError::TooLarge`], told as soon as it is known.
    /// The bytes are those that were seen by then.
    Refused { offset: u64, error: WorkerError },
    /// The file was cut or replaced by one that does not go on where the old one was left. What
    /// follows is read from its beginning, without the records that were told already.
    Restarted,
    /// A [`WorkerError::File`]. Told once; reading goes on by itself when it can.
    Unreadable(WorkerError),
}

/// Reads one transcript, from its beginning unless told otherwise.
pub struct TranscriptReader {
    tail: Tail,
    watch: Watch,
    ready: VecDeque<ReaderEvent>,
    look: bool,
    poll_at: Instant,
    slow_poll: Duration,
    looks: u64,
}

impl TranscriptReader {
    /// The file and its folder need not exist yet.
    pub fn new(path: &Path, timings: &Timings) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        Self {
            watch: Watch::file(&path),
            tail: Tail::new(path),
            ready: VecDeque::new(),
            look: true,
            poll_at: Instant::now(),
            slow_poll: timings.slow_poll,
            looks: 0,
        }
    }

    /// Passes over what is in the file now, but for an unfinished last line. Costs a bounded read,
    /// however large the file is. To be called before anything is read.
    pub async fn skip_existing(&mut self) -> Result<(), WorkerError> {
        self.ready.clear();
        self.look = true;
        self.tail.skip_existing().await
    }

    /// The next event, as soon as there is one. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> ReaderEvent {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event;
            }
            if !self.look {
                tokio::select! {
                    () = self.watch.changed() => {}
                    () = sleep_until(self.poll_at) => {}
                }
                self.look = true;
            }
            self.step().await;
        }
    }

    /// Everything that is in the file now and was not told yet, without waiting for more. Nothing is
    /// lost when the future is dropped.
    pub async fn catch_up(&mut self) -> Vec<ReaderEvent> {
        // A look that is under way may have begun before what the caller knows of was written.
        if self.tail.is_looking() {
            self.step().await;
        }
        // A file that is written to all the time must not keep us: what it held at the first look is
        // read, and one look more, in case that it was replaced.
        let mut goal = None;
        loop {
            let cost = self.tail.cost();
            self.look = true;
            self.step().await;
            if !self.look {
                break;
            }
            if self.tail.cost() == cost {
                // Another file, with another end.
                goal = None;
            } else if self.tail.offset() > *goal.get_or_insert(self.tail.size()) {
                break;
            }
        }
        self.ready.drain(..).collect()
    }

    /// How many times it looked at the file, and how many bytes it read of it, for those who want to
    /// know what it costs.
    pub fn cost(&self) -> (u64, u64) {
        (self.looks, self.tail.cost())
    }

    async fn step(&mut self) {
        self.watch.aim();
        let more = self.tail.step(&mut self.ready).await;
        self.looks += 1;
        self.look = more;
        self.poll_at = Instant::now() + self.slow_poll;
    }
}

#[cfg(test)]
mod tests;
