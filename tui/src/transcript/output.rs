//! The end of a running tool's output.

use crate::sanitise::Sanitiser;

/// Text kept at least; twice as much at most.
const KEPT_BYTES: usize = 8 * 1024;

/// Keeps the last lines of what a tool writes, however much it writes.
#[derive(Debug)]
pub struct OutputTail {
    sanitiser: Sanitiser,
    text: String,
}

impl OutputTail {
    pub fn new() -> Self {
        Self { sanitiser: Sanitiser::output(), text: String::new() }
    }

    pub fn push(&mut self, piece: &str) {
        self.sanitiser.push(piece, &mut self.text);
        if self.text.len() > 2 * KEPT_BYTES {
            let mut cut = self.text.len() - KEPT_BYTES;
            while !self.text.is_char_boundary(cut) {
                cut += 1;
            }
            let cut = self.text[cut..].find('\n').map_or(cut, |at| cut + at + 1);
            self.text.drain(..cut);
        }
    }

    /// The last lines, oldest first.
    pub fn last_lines(&self, count: usize) -> Vec<&str> {
        let mut lines: Vec<&str> =
            self.text.trim_end_matches('\n').rsplit('\n').take(count).collect();
        lines.reverse();
        if lines == [""] { Vec::new() } else { lines }
    }
}
