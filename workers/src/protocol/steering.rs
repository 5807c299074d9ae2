//! Words of ours that wait in the CLI's queue, and what is known about each. Taken is said only
//! with a record or hook that is younger than the write; what is uncertain stops further steering
//! until the turn is over.

use std::time::Instant;

use super::seen::{Step, Ticket};
use super::typing::{Entry, Kind, Stage};
use super::{Machine, Owner, Phase};
use crate::error::WorkerError;
use crate::event::{SteerError, TurnEnd, WorkerEvent};
use crate::fact::{Fact, FailureKind};
use crate::prompt::receipt_matches;

/// Where a word about the queue came from. Each says everything once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Hook,
    Record,
}

/// A prompt of ours that the CLI holds in its queue.
#[derive(Debug)]
struct Own {
    text: String,
    /// It was meant as a prompt of its own: a turn that nobody asked for ran just then.
    submission: bool,
    hooked: bool,
    recorded: bool,
}

/// A steer with its evidence, kept until everything that was written beside that was read: a
/// failure of the turn in the same stretch means that nobody can say what becomes of it.
#[derive(Debug)]
struct Acknowledging {
    ticket: Ticket,
    caught_up: u64,
    until: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Steering {
    own: Vec<Own>,
    acknowledging: Vec<Acknowledging>,
    /// Texts that were written and never acknowledged, in this turn.
    uncertain: Vec<String>,
    /// When a queued prompt of its own has to have begun.
    begins_by: Option<Instant>,
}

impl Steering {
    pub fn deadline(&self) -> Option<Instant> {
        self.acknowledging.iter().map(|waiting| waiting.until).chain(self.begins_by).min()
    }

    pub fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    pub fn has_submission(&self) -> bool {
        self.own.iter().any(|own| own.submission)
    }

    pub fn quarantine(&mut self, text: String) {
        self.uncertain.push(text);
    }

    pub fn take_acknowledging(&mut self) -> Vec<Ticket> {
        self.acknowledging.drain(..).map(|waiting| waiting.ticket).collect()
    }

    /// The turn is over: what was uncertain in it is nobody's any more.
    pub fn turn_over(&mut self) {
        self.uncertain.clear();
        self.own.retain(|own| own.submission);
    }

    /// Another word about a prompt that is known to be queued.
    fn known(&mut self, text: &str, by: By) -> bool {
        let missing = |own: &Own| match by {
            By::Hook => !own.hooked,
            By::Record => !own.recorded,
        };
        let Some(own) =
            self.own.iter_mut().find(|own| missing(own) && receipt_matches(&own.text, text))
        else {
            return false;
        };
        own.hooked |= by == By::Hook;
        own.recorded |= by == By::Record;
        true
    }

    fn take_uncertain(&mut self, text: &str) -> Option<String> {
        let place = self.uncertain.iter().position(|own| receipt_matches(own, text))?;
        Some(self.uncertain.remove(place))
    }

    pub fn push(&mut self, text: String, submission: bool, by: By) {
        self.own.push(Own { text, submission, hooked: by == By::Hook, recorded: by == By::Record });
    }

    /// Takes a prompt out of those that are queued: the one with this text, or the oldest.
    fn take(&mut self, text: Option<&str>) -> Option<Own> {
        let place = match text {
            Some(text) => self.own.iter().position(|own| receipt_matches(&own.text, text))?,
            None if self.own.is_empty() => return None,
            None => 0,
        };
        Some(self.own.remove(place))
    }
}

impl Machine {
    pub(super) fn steer(&mut self, _now: Instant, ticket: Ticket, text: &str) {
        let refused = if !self.may_steer() {
            Err(WorkerError::RefusedPrompt(
                "no turn of yours runs that takes it; send it as the next prompt".to_owned(),
            ))
        } else if self.permissions.any() {
            let message = "Claude Code waits for an answer about a permission; answer it first";
            Err(WorkerError::RefusedPrompt(message.to_owned()))
        } else {
            crate::prompt::prepare_steer(text)
        };
        match refused {
            Ok(clean) => self.keyboard.entry(Kind::Steer(ticket), clean, None),
            Err(error) => {
                let why = match error {
                    WorkerError::RefusedPrompt(why) => why,
                    other => other.to_string(),
                };
                self.steps
                    .push(Step::SteerAnswered { ticket, result: Err(SteerError::Refused(why)) });
            }
        }
    }

    /// A turn of ours runs, its receipt was seen, nobody is stopping it, and nothing that was written in
    /// it is uncertain. What is typed while it is being stopped would stand behind the prompt that goes
    /// back into the box.
    pub(super) fn may_steer(&self) -> bool {
        let ours = self
            .ledger
            .running()
            .is_some_and(|turn| turn.owner == Owner::Ours && turn.compaction.is_none());
        let stopping = self.interrupting.is_some() || self.interrupt_wanted;
        ours && matches!(self.phase, Phase::Up)
            && !self.stopped
            && !stopping
            && self.steering.uncertain.is_empty()
    }

    /// The steer at the keyboard is given up before anything of it was written.
    pub(super) fn drop_steer(&mut self, why: &str) {
        if let Some(entry) = self.keyboard.entry.take() {
            self.fail_entry(
                &entry,
                WorkerError::RefusedPrompt(format!("{why}; send it as the next prompt")),
            );
        }
    }

    pub(super) fn go_on_steering(&mut self, now: Instant) {
        let seen = self.asked.transcript_seen;
        let mut sure = Vec::new();
        self.steering.acknowledging.retain(|waiting| {
            let wait = seen < waiting.caught_up && now < waiting.until;
            if !wait {
                sure.push(waiting.ticket);
            }
            wait
        });
        for ticket in sure {
            self.steps.push(Step::SteerAnswered { ticket, result: Ok(()) });
        }
        self.go_on_submission(now);
    }

    /// What is being typed, if this is the text of it as the CLI took it.
    fn take_receipt(&mut self, text: &str) -> Option<Entry> {
        self.keyboard.entry.take_if(|entry| entry.is_in_box() && receipt_matches(&entry.text, text))
    }

    /// Whose the turn is that begins with this prompt. Ours is said with a receipt only.
    pub(super) fn owner_of(&mut self, prompt_id: Option<&str>, text: &str, now: Instant) -> Owner {
        let owner = match self.take_receipt(text) {
            Some(Entry { kind: Kind::Submit(ticket), .. }) => {
                self.delivered(ticket, prompt_id.map(str::to_owned));
                Owner::Ours
            }
            Some(Entry { kind: Kind::Steer(ticket), .. }) => {
                self.acknowledge(now, ticket);
                Owner::Ours
            }
            Some(Entry { kind: Kind::Compact, .. }) | None => {
                let ours = self.steering.take(Some(text)).is_some()
                    || self.steering.take_uncertain(text).is_some();
                if ours { Owner::Ours } else { Owner::Unasked }
            }
        };
        if owner == Owner::Ours {
            self.following = None;
        }
        owner
    }

    fn acknowledge(&mut self, now: Instant, ticket: Ticket) {
        self.keyboard.box_lines = 0;
        let caught_up = self.ask_transcript();
        let until = now + self.timings.steer_receipt;
        self.steering.acknowledging.push(Acknowledging { ticket, caught_up, until });
    }

    /// A prompt was put into the queue.
    pub(super) fn enqueued(&mut self, now: Instant, text: &str, by: By) {
        if self.steering.known(text, by) {
            return;
        }
        match self.take_receipt(text) {
            Some(Entry { kind: Kind::Submit(ticket), text, .. }) => {
                self.delivered(ticket, None);
                self.steering.push(text, true, by);
            }
            Some(Entry { kind: Kind::Steer(ticket), text, .. }) => {
                self.acknowledge(now, ticket);
                self.steering.push(text, false, by);
            }
            Some(Entry { kind: Kind::Compact, .. }) => {}
            None => {
                // Late, after it was called uncertain: its turn is followed all the same.
                if let Some(text) = self.steering.take_uncertain(text) {
                    self.steering.push(text, false, by);
                    self.steering.uncertain.push(String::new());
                }
            }
        }
    }

    /// A prompt left the queue without a turn of its own.
    pub(super) fn removed(&mut self, content: Option<&str>, absorbed: bool) {
        if content.is_none() && !absorbed {
            // Older versions do not say what left the queue nor why; an absorbed one is told again.
            return;
        }
        let Some(own) = self.steering.take(content) else { return };
        if !own.submission {
            return;
        }
        if absorbed {
            // The turn that runs answers our prompt now.
            if let Some(key) = self.ledger.reading_open().map(|turn| turn.key) {
                self.adopt(key);
            }
        } else {
            self.keyboard.leave(&own.text);
            self.tell(WorkerEvent::TurnEnded { end: TurnEnd::Withdrawn, unasked: false });
        }
    }

    /// A turn that nobody asked for answers a prompt of ours as well: what was told of it so far ends,
    /// and the rest is ours.
    pub(super) fn adopt(&mut self, key: u64) {
        let Some(turn) = self.ledger.get(key).filter(|turn| turn.owner != Owner::Ours) else {
            return;
        };
        turn.owner = Owner::Ours;
        if std::mem::take(&mut turn.began_told) {
            let last_message = turn.last_text().map(str::to_owned);
            self.tell(WorkerEvent::TurnEnded {
                end: TurnEnd::Completed { last_message },
                unasked: true,
            });
        }
    }

    /// A prompt of ours was queued, and nothing runs any more: it has to begin soon.
    fn go_on_submission(&mut self, now: Instant) {
        if !self.steering.has_submission() || !self.ledger.is_empty() {
            self.steering.begins_by = None;
            return;
        }
        let by = *self.steering.begins_by.get_or_insert(now + self.timings.receipt);
        if by <= now {
            self.steering.own.retain(|own| !own.submission);
            self.steering.begins_by = None;
            let text = "Claude Code put the prompt into its queue and did not begin it; look at it with /worker";
            let failure = Fact::ApiFailure {
                kind: FailureKind::Unknown("queued".to_owned()),
                status: None,
                text: text.to_owned(),
                details: None,
                quota: None,
            };
            self.tell(WorkerEvent::TurnEnded {
                end: TurnEnd::Failed(Box::new(failure)),
                unasked: false,
            });
        }
    }

    /// Whether words of ours may still become a part of what runs.
    pub(super) fn has_open_steer(&self) -> bool {
        let typing = self
            .keyboard
            .entry
            .as_ref()
            .is_some_and(|entry| matches!(entry.kind, Kind::Steer(_)) && entry.is_in_box());
        typing || self.steering.has_own()
    }

    /// The turn has ended while a steer is under way: whether it came too late shows soon.
    pub(super) fn hurry_steer(&mut self, now: Instant) {
        let soon = now + self.timings.cr_retry;
        if let Some(Entry { kind: Kind::Steer(_), stage: Stage::Awaiting { until, .. }, .. }) =
            &mut self.keyboard.entry
        {
            *until = (*until).min(soon);
        }
    }

    /// The turn that was steered ended otherwise than by its own end: what is not acknowledged by now
    /// is uncertain, what was not submitted is taken back.
    pub(super) fn abandon_steers(&mut self, failed: bool) {
        let steer = |entry: &mut Entry| matches!(entry.kind, Kind::Steer(_));
        if let Some(entry) = self.keyboard.entry.take_if(steer) {
            if entry.is_in_box() {
                self.keyboard.leave(&entry.text);
            }
            let error = if entry.cr_written() {
                WorkerError::Unconfirmed(self.timings.steer_receipt)
            } else {
                WorkerError::RefusedPrompt(
                    "the turn has ended; send it as the next prompt".to_owned(),
                )
            };
            self.fail_entry(&entry, error);
        }
        for ticket in self.steering.take_acknowledging() {
            let result = if failed { Err(SteerError::Uncertain) } else { Ok(()) };
            self.steps.push(Step::SteerAnswered { ticket, result });
        }
    }
}
