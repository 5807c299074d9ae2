//! What is written into the worker, and when. Every key of ours is preceded by a fresh reading of
//! the screen that shows no dialog: a CR that meets an open permission dialog approves it.

use std::collections::VecDeque;
use std::time::Instant;

use super::seen::{Reading, Step, Ticket};
use super::{Machine, Phase};
use crate::error::WorkerError;
use crate::prompt;

/// What a write was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Empties the box before the entry with this number.
    Clear(u64),
    Paste(u64),
    Cr(u64),
    /// The one repeated CR.
    Retry,
    Esc,
    /// A key in a dialog of the start.
    Key,
    Typed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Submit(Ticket),
    Steer(Ticket),
    Compact,
}

/// Something that is being typed.
#[derive(Debug)]
pub(super) struct Entry {
    pub number: u64,
    pub kind: Kind,
    pub text: String,
    pub stage: Stage,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// Until the CLI is ready, the box settled, and no turn runs (a compaction).
    Waiting {
        until: Option<Instant>,
    },
    /// For a fresh reading and everything that the transcript holds already.
    Looking {
        screen: u64,
        transcript: u64,
        until: Instant,
    },
    Clearing,
    Pasting,
    /// Between the paste and the CR.
    Gap {
        until: Instant,
    },
    /// For a reading without a dialog before the CR. `screen` is none while nothing has changed.
    Checking {
        screen: Option<u64>,
        until: Instant,
    },
    Pressing,
    Awaiting {
        until: Instant,
        retry: Retry,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    At(Instant),
    Looking(u64),
    Done,
}

impl Entry {
    /// Whether a receipt may come for it: its text is in the box, or was.
    pub fn is_in_box(&self) -> bool {
        !matches!(self.stage, Stage::Waiting { .. } | Stage::Looking { .. } | Stage::Clearing)
    }

    pub fn cr_written(&self) -> bool {
        matches!(self.stage, Stage::Pressing | Stage::Awaiting { .. })
    }
}

/// The way into the worker.
#[derive(Debug, Default)]
pub(super) struct Keyboard {
    pub entry: Option<Entry>,
    pub waiting: VecDeque<Entry>,
    writes: VecDeque<Purpose>,
    quiet_until: Option<Instant>,
    /// Lines that may be left in the input box.
    pub box_lines: usize,
    /// A paste was cut in its middle.
    unclosed: bool,
    /// The last thing written was an ESC; one more while idle would open another dialog.
    pub last_was_esc: bool,
    /// Something was seen since the CR.
    signs: bool,
    numbers: u64,
}

impl Keyboard {
    pub fn entry(&mut self, kind: Kind, text: String, until: Option<Instant>) {
        self.numbers += 1;
        self.waiting.push_back(Entry {
            number: self.numbers,
            kind,
            text,
            stage: Stage::Waiting { until },
        });
    }

    pub fn sign(&mut self) {
        self.signs = true;
    }

    /// Nothing is written before this time.
    pub fn quiet_until(&mut self, at: Instant) {
        self.quiet_until = Some(self.quiet_until.map_or(at, |known| known.max(at)));
    }

    pub fn is_quiet(&self, now: Instant) -> bool {
        self.writes.is_empty() && self.quiet_until.is_none_or(|at| at <= now)
    }

    pub fn is_writing(&self) -> bool {
        !self.writes.is_empty()
    }

    pub fn awaits_receipt(&self) -> bool {
        self.entry.as_ref().is_some_and(Entry::is_in_box)
    }

    pub fn cr_written(&self) -> bool {
        self.entry.as_ref().is_some_and(Entry::cr_written)
    }

    /// The text may still stand in the box.
    pub fn leave(&mut self, text: &str) {
        self.box_lines = self.box_lines.max(text.matches('\n').count() + 1);
    }

    pub fn deadline(&self, up: bool) -> Option<Instant> {
        self.entry.as_ref().and_then(|entry| match entry.stage {
            Stage::Waiting { until } => {
                let quiet = self.quiet_until.filter(|_| up && self.writes.is_empty());
                [until, quiet].into_iter().flatten().min()
            }
            Stage::Looking { until, .. } | Stage::Gap { until } | Stage::Checking { until, .. } => {
                Some(until)
            }
            Stage::Awaiting { until, retry: Retry::At(at), .. } => Some(until.min(at)),
            Stage::Awaiting { until, .. } => Some(until),
            Stage::Clearing | Stage::Pasting | Stage::Pressing => None,
        })
    }
}

impl Machine {
    pub(super) fn write(&mut self, purpose: Purpose, bytes: Vec<u8>) {
        self.keyboard.last_was_esc = bytes == prompt::ESC;
        self.keyboard.writes.push_back(purpose);
        self.steps.push(Step::Write(bytes));
    }

    pub(super) fn written(&mut self, now: Instant) {
        let redraw = now + self.timings.dialog_redraw;
        let Some(purpose) = self.keyboard.writes.pop_front() else { return };
        if matches!(purpose, Purpose::Esc | Purpose::Clear(_)) {
            // Two keys in one read would be taken for another key.
            self.keyboard.quiet_until(redraw);
        }
        let (gap, receipt) = (now + self.timings.paste_to_cr, self.timings.receipt);
        let (steer, retry) = (self.timings.steer_receipt, now + self.timings.cr_retry);
        let Some(entry) = &mut self.keyboard.entry else { return };
        match (purpose, entry.stage) {
            (Purpose::Clear(of), Stage::Clearing) if of == entry.number => {
                self.keyboard.box_lines = 0;
                self.keyboard.unclosed = false;
                entry.stage = Stage::Waiting { until: Some(redraw + receipt) };
            }
            (Purpose::Paste(of), Stage::Pasting) if of == entry.number => {
                entry.stage = Stage::Gap { until: gap }
            }
            (Purpose::Cr(of), Stage::Pressing) if of == entry.number => {
                let (until, retry) = match entry.kind {
                    Kind::Steer(_) => (now + steer, Retry::Done),
                    Kind::Submit(_) | Kind::Compact => (now + receipt, Retry::At(retry)),
                };
                entry.stage = Stage::Awaiting { until, retry };
            }
            _ => {}
        }
    }

    pub(super) fn write_failed(&mut self, accepted: usize, total: usize) {
        let Some(purpose) = self.keyboard.writes.pop_front() else { return };
        let (Purpose::Clear(of) | Purpose::Paste(of) | Purpose::Cr(of)) = purpose else { return };
        if matches!(purpose, Purpose::Paste(_)) && accepted > 0 {
            self.keyboard.unclosed = true;
        }
        if let Some(entry) = self.keyboard.entry.take_if(|entry| entry.number == of) {
            self.keyboard.leave(&entry.text);
            self.fail_entry(
                &entry,
                WorkerError::NotReading { accepted, total, after: self.timings.write },
            );
        }
    }

    /// Moves what is being typed as far as it can go now.
    pub(super) fn go_on_typing(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        if self.keyboard.entry.is_none() {
            self.keyboard.entry = self.keyboard.waiting.pop_front();
        }
        let Some(stage) = self.keyboard.entry.as_ref().map(|entry| entry.stage) else { return };
        match stage {
            Stage::Waiting { until } => self.go_on_waiting(now, until),
            Stage::Looking { screen, transcript, until } => {
                self.go_on_looking(now, screen, transcript, until);
            }
            Stage::Gap { until } if until <= now => {
                let bound = now + self.receipt_bound();
                let screen = Some(self.ask_screen());
                self.set_stage(Stage::Checking { screen, until: bound });
            }
            Stage::Checking { screen, until } => self.go_on_checking(now, screen, until),
            Stage::Awaiting { until, retry, .. } => self.go_on_awaiting(now, until, retry),
            Stage::Gap { .. } | Stage::Clearing | Stage::Pasting | Stage::Pressing => {}
        }
    }

    fn receipt_bound(&self) -> std::time::Duration {
        match self.keyboard.entry.as_ref().map(|entry| entry.kind) {
            Some(Kind::Steer(_)) => self.timings.steer_receipt,
            _ => self.timings.receipt,
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        if let Some(entry) = &mut self.keyboard.entry {
            entry.stage = stage;
        }
    }

    fn go_on_waiting(&mut self, now: Instant, until: Option<Instant>) {
        let kind = self.keyboard.entry.as_ref().map(|entry| entry.kind);
        if matches!(kind, Some(Kind::Steer(_))) && !self.may_steer() {
            self.drop_steer("the turn has ended");
            return;
        }
        let idle = kind != Some(Kind::Compact) || self.ledger.is_empty();
        let free = matches!(self.phase, Phase::Up)
            && self.keyboard.is_quiet(now)
            && !self.resume.is_pending();
        if idle && free {
            let screen = self.ask_screen();
            let transcript = self.ask_transcript();
            self.set_stage(Stage::Looking { screen, transcript, until: now + self.timings.write });
        } else if until.is_some_and(|until| until <= now) {
            let message =
                "another turn of Claude Code runs; wait for its end or stop it".to_owned();
            self.fail(WorkerError::RefusedPrompt(message));
        }
    }

    fn go_on_looking(&mut self, now: Instant, screen: u64, transcript: u64, until: Instant) {
        let pressable = self.may_press(screen);
        match pressable {
            Some(true) if self.asked.transcript_seen >= transcript => self.begin_typing(),
            Some(false) => self.fail_at_dialog(),
            _ if until <= now => {
                let message =
                    "its screen and its transcript could not be read in time; nothing was sent"
                        .to_owned();
                self.fail(WorkerError::Protocol(message));
            }
            _ => {}
        }
    }

    fn begin_typing(&mut self) {
        let Some(entry) = &self.keyboard.entry else { return };
        let (number, kind) = (entry.number, entry.kind);
        if matches!(kind, Kind::Steer(_)) && !self.may_steer() {
            self.drop_steer("the turn has ended");
        } else if self.keyboard.box_lines > 0 || self.keyboard.unclosed {
            let bytes = prompt::clear(self.keyboard.box_lines, self.keyboard.unclosed);
            self.set_stage(Stage::Clearing);
            self.write(Purpose::Clear(number), bytes);
        } else {
            let bytes = prompt::paste(&entry.text);
            self.set_stage(Stage::Pasting);
            self.write(Purpose::Paste(number), bytes);
        }
    }

    fn go_on_checking(&mut self, now: Instant, screen: Option<u64>, until: Instant) {
        let number = self.keyboard.entry.as_ref().map_or(0, |entry| entry.number);
        match screen.map(|wanted| self.may_press(wanted)) {
            Some(Some(true)) => {
                self.keyboard.signs = false;
                self.set_stage(Stage::Pressing);
                self.write(Purpose::Cr(number), prompt::CR.to_vec());
            }
            _ if until <= now => self.fail_at_dialog(),
            // Read again as soon as something has changed.
            Some(Some(false)) => self.set_stage(Stage::Checking { screen: None, until }),
            Some(None) | None => {}
        }
    }

    /// Something changed that may have closed the dialog which keeps the CR back.
    pub(super) fn look_again(&mut self) {
        if let Some(Stage::Checking { screen: None, until }) =
            self.keyboard.entry.as_ref().map(|entry| entry.stage)
        {
            let screen = Some(self.ask_screen());
            self.set_stage(Stage::Checking { screen, until });
        }
    }

    fn go_on_awaiting(&mut self, now: Instant, until: Instant, retry: Retry) {
        if until <= now {
            self.fail(WorkerError::Unconfirmed(self.timings.receipt));
            return;
        }
        let next = match retry {
            Retry::At(at) if at <= now => Retry::Looking(self.ask_screen()),
            Retry::Looking(_) if self.keyboard.signs => Retry::Done,
            Retry::Looking(wanted) => match self.may_press(wanted) {
                Some(true) => {
                    self.write(Purpose::Retry, prompt::CR.to_vec());
                    Retry::Done
                }
                Some(false) => Retry::Done,
                None => retry,
            },
            Retry::At(_) | Retry::Done => retry,
        };
        if let Some(Entry { stage: Stage::Awaiting { retry, .. }, .. }) = &mut self.keyboard.entry {
            *retry = next;
        }
    }

    fn fail_at_dialog(&mut self) {
        let (title, screen) = match &self.asked.reading {
            Some(
                Reading::Theirs { title, screen }
                | Reading::Login { title, screen }
                | Reading::Ours { title, screen, .. },
            ) => (title.clone(), screen.clone()),
            Some(Reading::Plain { screen }) => {
                ("a question about a permission".to_owned(), screen.clone())
            }
            None => ("unknown".to_owned(), String::new()),
        };
        self.fail(WorkerError::Dialog { title, screen });
    }

    /// What is being typed has failed. Once its text was in the box it may still be there.
    fn fail(&mut self, error: WorkerError) {
        if let Some(entry) = self.keyboard.entry.take() {
            if entry.is_in_box() {
                self.keyboard.leave(&entry.text);
            }
            self.fail_entry(&entry, error);
        }
    }
}
