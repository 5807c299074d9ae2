//! Bytes of a growing file in, whole lines out, however the bytes were cut. Pure.
//!
//! Refuses to hold more than one line, and a line over the limit at all: such a line is told once
//! and its rest is passed over.

use std::io::BufRead as _;

/// The longest line of a transcript that is read, in bytes. Records with whole tool definitions are
/// hundreds of KB; nothing that was ever seen comes near this.
pub const LINE_LIMIT: usize = 16 * 1024 * 1024;

/// What is kept of a line's buffer for the next line.
const KEPT: usize = 1024 * 1024;

/// One finding. `offset` is where the line begins in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A whole line without its LF.
    Line { offset: u64, bytes: &'a [u8] },
    /// A line that is at least this long.
    TooLong { offset: u64, bytes: u64 },
}

#[derive(Debug)]
pub(super) struct Lines {
    limit: usize,
    /// Where the current line begins.
    offset: u64,
    /// What is known of the current line.
    line: Vec<u8>,
    /// The rest of the current line is passed over; so many bytes of it already.
    passing: Option<u64>,
}

impl Lines {
    pub fn new(limit: usize) -> Self {
        Self { limit, offset: 0, line: Vec::new(), passing: None }
    }

    /// Begins anew at this offset, which is the beginning of a line.
    pub fn restart(&mut self, offset: u64) {
        *self = Self { offset, ..Self::new(self.limit) };
    }

    /// Begins anew inside a line, whose rest is passed over.
    pub fn restart_inside(&mut self, offset: u64) {
        *self = Self { offset, passing: Some(0), ..Self::new(self.limit) };
    }

    pub fn feed(&mut self, mut bytes: &[u8], mut found: impl FnMut(Piece<'_>)) {
        while !bytes.is_empty() {
            let from = bytes;
            // Reading from memory cannot fail.
            let taken = bytes.skip_until(b'\n').unwrap_or(from.len());
            let part = &from[..taken];
            match part.strip_suffix(b"\n") {
                Some(end) => self.end(end, &mut found),
                None => self.grow(part, &mut found),
            }
        }
    }

    fn grow(&mut self, part: &[u8], found: &mut impl FnMut(Piece<'_>)) {
        if let Some(passed) = &mut self.passing {
            *passed += part.len() as u64;
            return;
        }
        let size = self.line.len() + part.len();
        if size > self.limit {
            self.line = Vec::new();
            self.passing = Some(size as u64);
            found(Piece::TooLong { offset: self.offset, bytes: size as u64 });
            return;
        }
        self.line.extend_from_slice(part);
    }

    fn end(&mut self, part: &[u8], found: &mut impl FnMut(Piece<'_>)) {
        let known = self.line.len();
        let whole = known + part.len();
        let size = match self.passing.take() {
            Some(passed) => passed + part.len() as u64,
            None if whole > self.limit => {
                found(Piece::TooLong { offset: self.offset, bytes: whole as u64 });
                whole as u64
            }
            // The usual case needs no copy.
            None if known == 0 => {
                found(Piece::Line { offset: self.offset, bytes: part });
                whole as u64
            }
            None => {
                self.line.extend_from_slice(part);
                found(Piece::Line { offset: self.offset, bytes: &self.line });
                whole as u64
            }
        };
        self.line.clear();
        self.line.shrink_to(KEPT);
        self.offset += size + 1;
    }
}

#[cfg(test)]
mod tests;
