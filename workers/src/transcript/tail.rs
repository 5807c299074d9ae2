//! One growing file, read from an offset of its own: what is new, and whether it still is the file
//! that was read before. Each consumer of a file has its own tail.
//!
//! Waits for nothing: whoever holds it says when to look. Files are touched on a blocking thread,
//! and a look survives that its caller gives up waiting.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::{JoinHandle, spawn_blocking};

use super::lines::{LINE_LIMIT, Lines, Piece};
use super::reader::ReaderEvent;
use super::record::Record;
use crate::error::WorkerError;

mod held;
mod seen;

use held::{End, Held, Look};
use seen::Seen;

pub(super) struct Tail {
    path: PathBuf,
    held: Option<Arc<Held>>,
    /// Up to here the file was read.
    offset: u64,
    /// The bytes right before the offset: a file that has them there is the one that was read.
    mark: Vec<u8>,
    /// The size at the last look.
    size: u64,
    lines: Lines,
    seen: Seen,
    looking: Option<JoinHandle<std::io::Result<Look>>>,
    /// A failure is told once, not at every look.
    failing: bool,
    /// Bytes that were read so far, for those who want to know the cost.
    cost: u64,
}

impl Tail {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            held: None,
            offset: 0,
            mark: Vec::new(),
            size: 0,
            lines: Lines::new(LINE_LIMIT),
            seen: Seen::default(),
            looking: None,
            failing: false,
            cost: 0,
        }
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether a look is under way that nobody waits for.
    pub fn is_looking(&self) -> bool {
        self.looking.is_some()
    }

    /// Looks once and reads one chunk at most. Whether there may be more right now.
    pub async fn step(&mut self, told: &mut VecDeque<ReaderEvent>) -> bool {
        let looking = self.looking.get_or_insert_with(|| {
            let (path, held) = (self.path.clone(), self.held.clone());
            let (offset, mark) = (self.offset, self.mark.clone());
            spawn_blocking(move || held::look(&path, held.as_ref(), offset, &mark))
        });
        let result = looking.await;
        self.looking = None;
        match result {
            Ok(Ok(look)) => {
                self.failing = false;
                self.learn(look, told)
            }
            Ok(Err(source)) => {
                self.fail(source, told);
                false
            }
            // The program is about to end.
            Err(_) => false,
        }
    }

    fn learn(&mut self, look: Look, told: &mut VecDeque<ReaderEvent>) -> bool {
        match look {
            Look::Idle => false,
            Look::Continued(held) => {
                self.held = Some(held);
                true
            }
            Look::Restarted(held) => {
                self.held = Some(held);
                self.offset = 0;
                self.mark.clear();
                self.lines.restart(0);
                self.seen.restarted();
                told.push_back(ReaderEvent::Restarted);
                true
            }
            Look::Bytes { bytes, size } => {
                self.size = size;
                self.cost += bytes.len() as u64;
                self.offset += bytes.len() as u64;
                held::keep_mark(&mut self.mark, &bytes);
                let seen = &mut self.seen;
                self.lines.feed(&bytes, |piece| told.extend(event(piece, seen)));
                true
            }
        }
    }

    fn fail(&mut self, source: std::io::Error, told: &mut VecDeque<ReaderEvent>) {
        if !std::mem::replace(&mut self.failing, true) {
            told.push_back(ReaderEvent::Unreadable(WorkerError::File {
                path: self.path.clone(),
                source,
            }));
        }
    }

    /// Goes to the end of what is in the file now, keeping an unfinished last line for later. Costs a
    /// bounded read. The last records are known afterwards, so that they are not told when the file
    /// is written anew. A file that is not there yet has no end: it will be read from its beginning.
    pub async fn skip_existing(&mut self) -> Result<(), WorkerError> {
        self.looking = None;
        let path = self.path.clone();
        let found = spawn_blocking(move || held::end(&path)).await;
        let end = found
            .map_err(|_| WorkerError::Stopped)?
            .map_err(|source| WorkerError::File { path: self.path.clone(), source })?;
        let Some(End { held, offset, whole, last, cost }) = end else { return Ok(()) };
        self.cost += cost;
        self.held = Some(held);
        self.offset = offset;
        self.size = offset;
        self.mark.clear();
        held::keep_mark(&mut self.mark, &last);
        if whole {
            self.lines.restart(offset);
        } else {
            self.lines.restart_inside(offset);
        }
        for line in last.split(|&byte| byte == b'\n') {
            // The first one is the rest of a line, as a rule.
            if let Ok(record) = Record::parse(line) {
                self.seen.insert(record.uuid.as_deref(), line);
            }
        }
        Ok(())
    }
}

fn event(piece: Piece<'_>, seen: &mut Seen) -> Option<ReaderEvent> {
    match piece {
        Piece::TooLong { offset, bytes } => Some(ReaderEvent::Refused {
            offset,
            error: WorkerError::TooLarge {
                what: "a line of the transcript",
                bytes,
                limit: LINE_LIMIT as u64,
            },
        }),
        Piece::Line { bytes, .. } if bytes.trim_ascii().is_empty() => None,
        Piece::Line { offset, bytes } => match Record::parse(bytes) {
            Ok(record) => {
                let new = seen.insert(record.uuid.as_deref(), bytes);
                new.then_some(ReaderEvent::Record(record))
            }
            Err(error) => Some(ReaderEvent::Broken { offset, message: error.to_string() }),
        },
    }
}
