//! The blocking side of a tail: one look at a file, without any state of its own.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;

use crate::transcript::lines::LINE_LIMIT;

/// Bytes of one read.
const CHUNK: usize = 64 * 1024;
/// Bytes by which the file that was read is known again: more than a record's ids and time.
const MARK: usize = 512;
/// Bytes at the end of a file whose records are learnt when it is opened at its end.
const LEARNT: usize = 256 * 1024;

/// A file that was opened. Held open, so that its identity cannot be given to another one.
pub(super) struct Held {
    file: File,
    id: (u64, u64),
}

/// What one look showed.
pub(super) enum Look {
    /// Nothing new, or no file.
    Idle,
    /// More of the file, from the offset on.
    Bytes { bytes: Vec<u8>, size: u64 },
    /// This file goes on where the other one was left, or is the first one.
    Continued(Arc<Held>),
    /// This file has to be read from its beginning.
    Restarted(Arc<Held>),
}

/// Where a file ends.
pub(super) struct End {
    pub held: Arc<Held>,
    pub offset: u64,
    /// Whether a line begins at the offset.
    pub whole: bool,
    /// What comes right before the offset.
    pub last: Vec<u8>,
    /// Bytes that were read.
    pub cost: u64,
}

impl Held {
    fn open(path: &Path) -> io::Result<Option<Arc<Self>>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(Some(Arc::new(Self { file, id: (found.dev(), found.ino()) })))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// As many bytes as there are, at most `limit`.
    fn read(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; limit];
        let mut filled = 0;
        while filled < limit {
            match self.file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Whether it holds what was read before, right before the offset.
    fn goes_on(&self, offset: u64, mark: &[u8]) -> io::Result<bool> {
        let Some(from) = offset.checked_sub(mark.len() as u64) else { return Ok(false) };
        Ok(self.size()? >= offset && self.read(from, mark.len())? == mark)
    }
}

/// One look. What the held file still has comes first: it may have been written to until it was
/// replaced, and it is written to while it is renamed.
pub(super) fn look(
    path: &Path,
    held: Option<&Arc<Held>>,
    offset: u64,
    mark: &[u8],
) -> io::Result<Look> {
    let Some(held) = held else {
        return Ok(Held::open(path)?.map_or(Look::Idle, Look::Continued));
    };
    let size = held.size()?;
    if size < offset {
        return Ok(Look::Restarted(Arc::clone(held)));
    }
    if size > offset {
        if !held.goes_on(offset, mark)? {
            return Ok(Look::Restarted(Arc::clone(held)));
        }
        let room = usize::try_from(size - offset).unwrap_or(CHUNK).min(CHUNK);
        let bytes = held.read(offset, room)?;
        // It was cut meanwhile; the next look will know.
        return Ok(if bytes.is_empty() { Look::Idle } else { Look::Bytes { bytes, size } });
    }
    match path.metadata() {
        Ok(found) if (found.dev(), found.ino()) == held.id => return Ok(Look::Idle),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Ok(match Held::open(path)? {
        None => Look::Idle,
        Some(other) if other.goes_on(offset, mark)? => Look::Continued(other),
        Some(other) => Look::Restarted(other),
    })
}

/// Finds the end of the last whole line, from behind.
pub(super) fn end(path: &Path) -> io::Result<Option<End>> {
    let Some(held) = Held::open(path)? else { return Ok(None) };
    let size = held.size()?;
    let mut last: Vec<u8> = Vec::new();
    let mut from = size;
    // A line over the limit would be refused anyway.
    while from > 0 && last.len() <= LINE_LIMIT && !last.contains(&b'\n') {
        let room = from.min(LEARNT as u64);
        from -= room;
        let mut before = held.read(from, usize::try_from(room).unwrap_or(LEARNT))?;
        before.append(&mut last);
        last = before;
    }
    let cost = last.len() as u64;
    if let Some(at) = last.iter().rposition(|&byte| byte == b'\n') {
        last.truncate(at + 1);
        return Ok(Some(End { held, offset: from + at as u64 + 1, whole: true, last, cost }));
    }
    // One unfinished line only. It is read whole, unless it is too long to be read at all.
    let (offset, whole) = if from == 0 { (0, true) } else { (from + cost, false) };
    if whole {
        last.clear();
    }
    Ok(Some(End { held, offset, whole, last, cost }))
}

pub(super) fn keep_mark(mark: &mut Vec<u8>, bytes: &[u8]) {
    let from = bytes.len().saturating_sub(MARK);
    mark.extend_from_slice(&bytes[from..]);
    let over = mark.len().saturating_sub(MARK);
    mark.drain(..over);
}
