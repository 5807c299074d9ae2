//! Orders from whoever holds the worker: taken or refused here, answered once each.

use std::time::Instant;

use super::seen::{Seen, Step, Ticket};
use super::typing::{Entry, Kind, Purpose};
use super::{Machine, Owner, Phase};
use crate::error::WorkerError;
use crate::event::{SteerError, TurnEnd, WorkerEvent};
use crate::fact::{Fact, FailureKind};
use crate::prompt;

impl Machine {
    pub(super) fn submit(&mut self, _now: Instant, ticket: Ticket, text: &str) {
        let refused = if self.stopped {
            Err(WorkerError::Stopped)
        } else if self.is_busy_with_ours() {
            let message =
                "Claude Code still works on what it was asked before; wait for its end or stop it";
            Err(WorkerError::RefusedPrompt(message.to_owned()))
        } else {
            prompt::prepare(text)
        };
        match refused {
            Ok(clean) => self.keyboard.entry(Kind::Submit(ticket), clean, None),
            Err(error) => self.steps.push(Step::SubmitAnswered { ticket, result: Err(error) }),
        }
    }

    pub(super) fn compact(&mut self, now: Instant) {
        if self.stopped || self.is_busy_with_ours() {
            self.compaction_failed(
                "Claude Code still works on what it was asked before; wait for its end or stop it",
            );
            return;
        }
        let until = Some(now + self.timings.receipt);
        self.keyboard.entry(Kind::Compact, "/compact".to_owned(), until);
    }

    /// Something that was asked for here has not ended yet.
    fn is_busy_with_ours(&self) -> bool {
        let entry = |entry: &Entry| !matches!(entry.kind, Kind::Steer(_));
        self.keyboard.entry.as_ref().is_some_and(entry)
            || self.keyboard.waiting.iter().any(entry)
            || self.following.is_some()
            || self.steering.has_submission()
            || self.ledger.iter().any(|turn| turn.owner == Owner::Ours)
    }

    /// A person's own bytes. What they leave in the input box is emptied before the next paste.
    pub(super) fn typed(&mut self, now: Instant, bytes: Vec<u8>) {
        if self.stopped || bytes.is_empty() {
            return;
        }
        if matches!(self.phase, Phase::Starting(_)) {
            self.extend_start(now);
        } else if matches!(bytes.as_slice(), [0x1b | 0x03]) {
            self.expect_interrupt(now, true);
        } else if bytes.last() != Some(&b'\r') {
            self.keyboard.leave("");
        }
        self.write(Purpose::Typed, bytes);
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.answer_all(&WorkerError::Stopped);
    }

    /// A prompt of ours was taken.
    pub(super) fn delivered(&mut self, ticket: Ticket, prompt_id: Option<String>) {
        self.keyboard.box_lines = 0;
        self.steps.push(Step::SubmitAnswered { ticket, result: Ok(()) });
        self.tell(WorkerEvent::Delivered { prompt_id });
    }

    /// Answers for an entry that came to nothing.
    pub(super) fn fail_entry(&mut self, entry: &Entry, error: WorkerError) {
        match entry.kind {
            Kind::Submit(ticket) => {
                self.interrupt_wanted = false;
                self.steps.push(Step::SubmitAnswered { ticket, result: Err(error) });
            }
            Kind::Steer(ticket) => {
                let error = match error {
                    WorkerError::Unconfirmed(_) => {
                        self.steering.quarantine(entry.text.clone());
                        SteerError::Uncertain
                    }
                    // Without its CR nothing was handed over.
                    WorkerError::RefusedPrompt(why) => SteerError::Refused(why),
                    other => SteerError::Refused(other.to_string()),
                };
                self.steps.push(Step::SteerAnswered { ticket, result: Err(error) });
            }
            Kind::Compact => self.compaction_failed(&error.to_string()),
        }
    }

    /// A compaction has no answer of its own: it ends as a turn.
    pub(super) fn compaction_failed(&mut self, text: &str) {
        let end = TurnEnd::Failed(Box::new(compaction_failure(text)));
        self.tell(WorkerEvent::TurnEnded { end, unasked: false });
    }

    pub(super) fn answer_all(&mut self, error: &WorkerError) {
        let entries: Vec<Entry> =
            self.keyboard.entry.take().into_iter().chain(self.keyboard.waiting.drain(..)).collect();
        for entry in entries {
            let pressed = entry.cr_written();
            let error = match entry.kind {
                Kind::Steer(_) if pressed => WorkerError::Unconfirmed(self.timings.steer_receipt),
                _ => repeat(error, pressed),
            };
            self.fail_entry(&entry, error);
        }
        for ticket in self.steering.take_acknowledging() {
            self.steps.push(Step::SteerAnswered { ticket, result: Err(SteerError::Uncertain) });
        }
    }

    /// Nothing can be done any more; the one who asks is told so.
    pub(super) fn refuse_after_end(&mut self, seen: &Seen) {
        match seen {
            Seen::Submit { ticket, .. } => {
                self.steps.push(Step::SubmitAnswered {
                    ticket: *ticket,
                    result: Err(WorkerError::Stopped),
                });
            }
            Seen::Steer { ticket, .. } => {
                let result = Err(SteerError::Refused("Claude Code has ended".to_owned()));
                self.steps.push(Step::SteerAnswered { ticket: *ticket, result });
            }
            _ => {}
        }
    }
}

pub(super) fn compaction_failure(text: &str) -> Fact {
    Fact::ApiFailure {
        kind: FailureKind::Unknown("compaction".to_owned()),
        status: None,
        text: text.to_owned(),
        details: None,
        quota: None,
    }
}

/// The same error for another listener, as far as the machine makes it.
fn repeat(error: &WorkerError, pressed: bool) -> WorkerError {
    match error {
        WorkerError::Auth { message } => WorkerError::Auth { message: message.clone() },
        WorkerError::Dialog { title, screen } => {
            WorkerError::Dialog { title: title.clone(), screen: screen.clone() }
        }
        WorkerError::NotReady { after, screen } => {
            WorkerError::NotReady { after: *after, screen: screen.clone() }
        }
        WorkerError::StartFailed { status, screen } => {
            WorkerError::StartFailed { status: status.clone(), screen: screen.clone() }
        }
        WorkerError::Crashed { status, screen, .. } => WorkerError::Crashed {
            status: status.clone(),
            screen: screen.clone(),
            may_have_run: pressed,
        },
        WorkerError::Inactive(after) => WorkerError::Inactive(*after),
        _ => WorkerError::Stopped,
    }
}
