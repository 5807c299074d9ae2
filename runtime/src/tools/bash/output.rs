//! The output of a running command: bytes in, redacted text out, to two readers. The model gets the
//! head and the tail when it is over; the person sees it as it comes, within a budget.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::redact::{RedactedStream, Redactor};

/// Bytes of text kept from the start and from the end of the output.
const HEAD_BYTES: usize = 15_000;
const TAIL_BYTES: usize = 15_000;

/// Whole lines wait at most this long before they are shown.
const LINE_DELAY: Duration = Duration::from_millis(33);
/// An unfinished line is shown after this time.
const PARTIAL_DELAY: Duration = Duration::from_millis(100);
/// Live text: what may be shown at once, and what is added each second after that.
const LIVE_BURST: usize = 256 * 1024;
const LIVE_PER_SECOND: usize = 16 * 1024;
/// More live text than this does not wait; the newest part of it does.
const LIVE_WAITING: usize = 16 * 1024;
const LIVE_KEPT: usize = 4 * 1024;

/// Decodes UTF-8 that arrives in pieces; what is not UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
struct Decoder {
    rest: Vec<u8>,
}

impl Decoder {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.rest.len());
        let mut at = 0;
        for chunk in self.rest.utf8_chunks() {
            text.push_str(chunk.valid());
            at += chunk.valid().len();
            let invalid = chunk.invalid();
            let is_last = at + invalid.len() == self.rest.len();
            let unfinished = std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
            if is_last && unfinished {
                break;
            }
            at += invalid.len();
            if !invalid.is_empty() {
                text.push('\u{fffd}');
            }
        }
        self.rest.drain(..at);
        text
    }

    fn finish(&mut self) -> &'static str {
        let had_rest = !std::mem::take(&mut self.rest).is_empty();
        if had_rest { "\u{fffd}" } else { "" }
    }
}

/// Head and tail of a text of any length.
#[derive(Debug, Default)]
struct Capture {
    head: String,
    tail: VecDeque<u8>,
    omitted: u64,
    line_ends: u64,
    /// The last line has no end yet.
    open_line: bool,
}

/// What a command wrote.
#[derive(Debug)]
pub(super) struct Written {
    /// For the model, with a line in place of what was left out.
    pub text: String,
    pub omitted_bytes: u64,
    /// Lines that were written, also those that were left out.
    pub lines: u64,
}

impl Capture {
    fn push(&mut self, text: &str) {
        self.line_ends += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.open_line = if text.is_empty() { self.open_line } else { !text.ends_with('\n') };
        let room = HEAD_BYTES.saturating_sub(self.head.len());
        // Once something is in the tail, the head is closed, also if a character left it room.
        let cut = if self.tail.is_empty() { text.floor_char_boundary(room) } else { 0 };
        self.head.push_str(&text[..cut]);
        let rest = &text.as_bytes()[cut..];
        let skipped = rest.len().saturating_sub(TAIL_BYTES);
        self.tail.extend(&rest[skipped..]);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        self.omitted += (skipped + surplus) as u64;
    }

    fn into_written(self) -> Written {
        let lines = self.line_ends + u64::from(self.open_line);
        let (mut text, mut omitted) = (self.head, self.omitted);
        let mut tail = Vec::from(self.tail);
        if omitted > 0 {
            // Cut at line ends where they are near, at characters in any case.
            let near = |at: usize| at <= 1_000;
            if let Some(end) = text.rfind('\n').filter(|end| near(text.len() - end)) {
                omitted += (text.len() - end - 1) as u64;
                text.truncate(end + 1);
            }
            let start = match tail.iter().position(|byte| *byte == b'\n').filter(|at| near(*at)) {
                Some(at) => at + 1,
                None => tail.iter().take_while(|byte| **byte & 0xc0 == 0x80).count(),
            };
            omitted += start as u64;
            tail.drain(..start);
            if !text.ends_with('\n') {
                text.push('\n');
            }
            let _ = writeln!(text, "[{omitted} bytes of output left out here]");
        }
        text.push_str(&String::from_utf8_lossy(&tail));
        Written { text, omitted_bytes: omitted, lines }
    }
}

/// Text on its way to the person.
#[derive(Debug)]
struct Live {
    waiting: String,
    skipped: usize,
    budget: usize,
    /// When the budget was last counted up.
    counted: Instant,
    /// Since when something waits.
    since: Option<Instant>,
}

impl Live {
    fn push(&mut self, now: Instant, text: &str) {
        if text.is_empty() {
            return;
        }
        self.since.get_or_insert(now);
        self.waiting.push_str(text);
        if self.waiting.len() > LIVE_WAITING {
            self.keep_newest(LIVE_KEPT);
        }
    }

    fn keep_newest(&mut self, bytes: usize) {
        let from = self.waiting.ceil_char_boundary(self.waiting.len().saturating_sub(bytes));
        let from = self.waiting[from..].find('\n').map_or(from, |at| from + at + 1);
        self.skipped += from;
        self.waiting.drain(..from);
    }

    fn take(&mut self, now: Instant) -> Option<String> {
        let earned = (now - self.counted).as_millis() as usize * LIVE_PER_SECOND / 1_000;
        if earned > 0 {
            self.counted = now;
            self.budget = (self.budget + earned).min(LIVE_BURST);
        }
        if self.waiting.len() > self.budget {
            self.keep_newest(self.budget);
        }
        self.since = None;
        if self.waiting.is_empty() {
            return None;
        }
        self.budget -= self.waiting.len();
        let waiting = std::mem::take(&mut self.waiting);
        Some(match std::mem::take(&mut self.skipped) {
            0 => waiting,
            skipped => format!("[{skipped} bytes not shown live]\n{waiting}"),
        })
    }
}

/// The whole way from the pipe to both readers. Reads no clock: the time is passed in.
#[derive(Debug)]
pub(super) struct Output {
    decoder: Decoder,
    stream: RedactedStream,
    capture: Capture,
    live: Live,
    /// Since when an unfinished line waits.
    partial_since: Option<Instant>,
}

impl Output {
    pub fn new(redactor: &Redactor, now: Instant) -> Self {
        Self {
            decoder: Decoder::default(),
            stream: redactor.stream(),
            capture: Capture::default(),
            live: Live {
                waiting: String::new(),
                skipped: 0,
                budget: LIVE_BURST,
                counted: now,
                since: None,
            },
            partial_since: None,
        }
    }

    pub fn push(&mut self, now: Instant, bytes: &[u8]) {
        let text = self.decoder.push(bytes);
        let ready = self.stream.push(&text);
        self.pass_on(now, &ready);
        if !ready.is_empty() || !self.stream.has_partial() {
            self.partial_since = None;
        }
        if self.stream.has_partial() {
            self.partial_since.get_or_insert(now);
        }
    }

    /// When [`Output::take_live`] should be called next; none while nothing waits.
    pub fn due(&self) -> Option<Instant> {
        let lines = self.live.since.map(|since| since + LINE_DELAY);
        let partial = self.partial_since.map(|since| since + PARTIAL_DELAY);
        [lines, partial].into_iter().flatten().min()
    }

    /// What is to be shown now.
    pub fn take_live(&mut self, now: Instant) -> Option<String> {
        if self.partial_since.is_some_and(|since| now >= since + PARTIAL_DELAY) {
            let partial = self.stream.flush_partial();
            self.pass_on(now, &partial);
            // What is still held back waits for more input, not for time.
            self.partial_since = None;
        }
        self.live.take(now)
    }

    /// The last live text, and everything that was written.
    pub fn finish(mut self, now: Instant) -> (Option<String>, Written) {
        let broken = self.decoder.finish();
        let mut rest = self.stream.push(broken);
        rest.push_str(&self.stream.finish());
        self.pass_on(now, &rest);
        let live = self.live.take(now);
        (live, self.capture.into_written())
    }

    fn pass_on(&mut self, now: Instant, text: &str) {
        self.capture.push(text);
        self.live.push(now, text);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(pieces: &[&[u8]]) -> (String, String, u64) {
        let now = Instant::now();
        let mut output = Output::new(&Redactor::new(["hush-hush-value"]), now);
        let mut shown = String::new();
        for piece in pieces {
            output.push(now, piece);
            shown.extend(output.take_live(now));
        }
        let (last, written) = output.finish(now);
        shown.extend(last);
        let Written { text, omitted_bytes, lines } = written;
        if omitted_bytes == 0 {
            assert_eq!(lines, text.lines().count() as u64, "{text:?}");
        }
        (shown, text, omitted_bytes)
    }

    #[test]
    fn long_output_keeps_head_and_tail_and_says_what_is_missing() {
        let lines = (0..20_000).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
        let (_, text, omitted) = run(&[lines.as_bytes()]);
        assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("line 19999\n"));
        assert!(text.len() < 31_000, "{}", text.len());
        let mark = format!("\n[{omitted} bytes of output left out here]\nline ");
        assert_eq!(text.matches(&mark).count(), 1);
        assert_eq!(text.len() + omitted as usize, lines.len() + mark.len() - "\nline ".len());
    }

    #[test]
    fn output_that_just_fits_is_whole() {
        let text = "é".repeat(usize::midpoint(HEAD_BYTES, TAIL_BYTES) - 1);
        let (_, whole, omitted) = run(&[text.as_bytes()]);
        assert!(whole == text && omitted == 0);
    }

    #[test]
    fn what_is_not_utf8_is_marked_and_the_rest_kept() {
        assert_eq!(run(&[b"a\xffb\xe2\x82", b"\xac\n\xe2\x82"]).1, "a\u{fffd}b\u{20ac}\n\u{fffd}");
    }

    #[test]
    fn an_unfinished_line_is_shown_after_a_tenth_of_a_second() {
        let start = Instant::now();
        let mut output = Output::new(&Redactor::default(), start);
        output.push(start, b"10 % ... ");
        assert_eq!(output.take_live(start), None);
        assert_eq!(output.due(), Some(start + PARTIAL_DELAY));
        assert_eq!(output.take_live(start + PARTIAL_DELAY).as_deref(), Some("10 % ... "));
        assert_eq!(output.due(), None);
    }

    #[test]
    fn a_flood_is_shown_in_part_and_cannot_fill_the_memory() {
        let start = Instant::now();
        let mut output = Output::new(&Redactor::default(), start);
        let (mut shown, mut now) = (0, start);
        for _ in 0..2_000 {
            output.push(now, &b"y\n".repeat(32 * 1024));
            now += Duration::from_millis(33);
            let live = output.take_live(now).unwrap_or_default();
            assert!(live.len() < LIVE_WAITING + 64);
            shown += live.len();
        }
        let seconds = (now - start).as_secs() as usize;
        assert!(shown <= LIVE_BURST + (seconds + 1) * (LIVE_PER_SECOND + 64 * 31), "{shown}");
        assert!(output.capture.head.len() + output.capture.tail.len() <= HEAD_BYTES + TAIL_BYTES);
    }

    proptest! {
        #[test]
        fn any_cut_of_the_bytes_gives_the_same_text(
            cuts in proptest::collection::vec(0..60_usize, 0..8),
        ) {
            let bytes = "é hush-hush-value € ok\nnext sk-ant-0123456789 \u{1f600}\n".as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let (mut pieces, mut from) = (Vec::new(), 0);
            for to in cuts {
                pieces.push(&bytes[from..to]);
                from = to;
            }
            pieces.push(&bytes[from..]);
            let expected = "é [redacted] € ok\nnext [redacted] \u{1f600}\n";
            let (shown, text, omitted) = run(&pieces);
            prop_assert_eq!(shown, expected);
            prop_assert_eq!((text.as_str(), omitted), (expected, 0));
        }
    }
}
