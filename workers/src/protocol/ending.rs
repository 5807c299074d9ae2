//! How turns end, and how each end is told: once, after what the transcript has to say about it,
//! in the order of the turns.

use std::time::{Duration, Instant};

use super::orders::compaction_failure;
use super::turns::Turn;
use super::typing::{Entry, Kind, Purpose, Stage};
use super::{Machine, Owner, Phase};
use crate::error::WorkerError;
use crate::event::{TurnEnd, WorkerEvent};
use crate::fact::{Fact, FailureKind, Quota};
use crate::prompt;

/// An ESC was written into a turn.
#[derive(Debug)]
pub(super) struct Interrupting {
    key: u64,
    pub until: Instant,
    /// A person pressed it in the worker's own screen, where it may have closed something else.
    person: bool,
}

impl Interrupting {
    /// Something happens still. After a key of a person's that means that the turn may go on.
    pub fn sign(&mut self, now: Instant, wait: Duration) {
        if self.person {
            self.until = now + wait;
        }
    }
}

/// Our turn is over, and a prompt of ours in the queue becomes the next: the same consumer stays
/// until that ends.
#[derive(Debug)]
pub(super) struct Following {
    end: TurnEnd,
    pub until: Instant,
}

/// After a limit of the account the CLI means to go on by itself when the limit ends. One ESC
/// cancels that.
#[derive(Debug)]
pub(super) enum Resume {
    No,
    Wanted,
    Looking { screen: u64, until: Instant },
}

impl Resume {
    pub fn is_pending(&self) -> bool {
        !matches!(self, Self::No)
    }

    pub fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Looking { until, .. } => Some(*until),
            Self::No | Self::Wanted => None,
        }
    }
}

impl Machine {
    /// Stops the turn that runs. Without one nothing is written: an ESC while idle opens a dialog
    /// when another follows.
    pub(super) fn interrupt(&mut self, now: Instant) {
        if self.stopped || !matches!(self.phase, Phase::Up) {
            return;
        }
        self.take_back();
        if self.keyboard.entry.as_ref().is_some_and(|entry| !matches!(entry.kind, Kind::Steer(_))) {
            // Its CR is written: a turn may begin, and is stopped as soon as it has.
            self.interrupt_wanted = true;
            return;
        }
        if self.ledger.running().is_some() && self.interrupting.is_none() {
            self.expect_interrupt(now, false);
            self.write(Purpose::Esc, prompt::ESC.to_vec());
        }
    }

    /// Orders that were not submitted yet are taken back.
    fn take_back(&mut self) {
        let not_pressed = |entry: &mut Entry| !entry.cr_written();
        let entries: Vec<Entry> = self
            .keyboard
            .entry
            .take_if(not_pressed)
            .into_iter()
            .chain(self.keyboard.waiting.drain(..))
            .collect();
        for entry in entries {
            if entry.is_in_box() {
                self.keyboard.leave(&entry.text);
            }
            self.fail_entry(
                &entry,
                WorkerError::RefusedPrompt(
                    "the prompt was taken back before it was sent".to_owned(),
                ),
            );
        }
    }

    /// An ESC goes to the turn that runs, ours or a person's.
    pub(super) fn expect_interrupt(&mut self, now: Instant, person: bool) {
        if let Some(turn) = self.ledger.running() {
            let said_nothing = !turn.output && turn.compaction.is_none();
            let until = now
                + if said_nothing && !person {
                    self.timings.early_interrupt
                } else {
                    self.timings.interrupt
                };
            self.interrupting.get_or_insert(Interrupting { key: turn.key, until, person });
        }
    }

    pub(super) fn go_on_interrupting(&mut self, now: Instant) {
        let ours = self.ledger.running().is_some_and(|turn| turn.owner == Owner::Ours);
        if self.interrupt_wanted && ours && self.keyboard.entry.is_none() {
            self.interrupt_wanted = false;
            self.interrupt(now);
        }
        let Some(Interrupting { key, until, person }) = self.interrupting else { return };
        let Some(turn) = self.ledger.get(key).filter(|turn| turn.ending.is_none()) else {
            self.interrupting = None;
            return;
        };
        if until > now {
            return;
        }
        self.interrupting = None;
        // Without output and without a record the prompt went back into the input box. What a person
        // pressed in the middle of output leaves a record, or it was not meant for the turn.
        let kept = turn.output || turn.compaction.is_some();
        if !(kept && person) {
            turn.end(if kept { TurnEnd::Interrupted } else { TurnEnd::Withdrawn }, now);
            turn.set_done();
        }
    }

    /// Tells the ends that are due, each before anything of the turn after it.
    pub(super) fn tell_ends(&mut self, now: Instant) {
        self.ledger.close_before_overdue(now);
        while let Some(turn) = self.ledger.front() {
            if turn.owner == Owner::Open {
                // Nothing ever said whose it was: then it was not ours.
                if turn.ending.as_ref().is_none_or(|ending| now < ending.until) {
                    break;
                }
                turn.owner = Owner::Unasked;
            }
            if turn.compaction.is_some_and(|until| until <= now) && turn.ending.is_none() {
                let failure = compaction_failure("the compaction took too long and was given up");
                turn.end(TurnEnd::Failed(Box::new(failure)), now);
            }
            let due =
                turn.ending.as_ref().is_some_and(|ending| turn.is_done() || ending.until <= now);
            // Whose it is, is certain with its record: a hook may have been of a prompt in the queue.
            if turn.owner == Owner::Unasked && !turn.began_told && (turn.is_read() || due) {
                turn.began_told = true;
                let text = turn.text.clone();
                self.tell(WorkerEvent::UnaskedBegan { text });
            }
            if !due {
                break;
            }
            self.flush_held();
            if let Some(turn) = self.ledger.finish() {
                self.turn_over(now, turn);
            }
        }
        self.go_on_following(now);
    }

    /// The process is gone: what is known of ends is told without waiting for more.
    pub(super) fn tell_known_ends(&mut self, now: Instant) {
        while self.ledger.front().is_some_and(|turn| turn.ending.is_some()) {
            if let Some(turn) = self.ledger.front() {
                turn.set_done();
                if turn.owner == Owner::Open {
                    turn.owner = Owner::Unasked;
                }
            }
            self.tell_ends(now);
        }
    }

    fn turn_over(&mut self, now: Instant, turn: Turn) {
        let Some(ending) = turn.ending else { return };
        let end = ending.end;
        if turn.owner == Owner::Ours {
            let completed = matches!(end, TurnEnd::Completed { .. });
            let next_is_ours = self.ledger.iter().any(|turn| turn.owner == Owner::Ours);
            if completed && next_is_ours {
                return;
            }
            if completed && self.has_open_steer() {
                self.hurry_steer(now);
                self.following = Some(Following { end, until: now + self.timings.receipt });
                return;
            }
            self.abandon_steers(matches!(end, TurnEnd::Failed(_)));
            self.release();
        }
        if end == TurnEnd::Withdrawn {
            self.keyboard.leave(&turn.text);
        }
        if is_hard_limit(&end) {
            self.resume = Resume::Wanted;
        }
        self.tell(WorkerEvent::TurnEnded { end, unasked: turn.owner != Owner::Ours });
    }

    /// What was asked for is over. Words of ours that the CLI still works on come as a turn that
    /// nobody waits for.
    fn release(&mut self) {
        self.steering.turn_over();
        self.ledger.disown();
    }

    fn go_on_following(&mut self, now: Instant) {
        let open = self.has_open_steer();
        let idle = self.ledger.is_empty();
        let receipt = self.timings.receipt;
        let Some(following) = &mut self.following else { return };
        if open && !idle {
            // Something else of the queue came first.
            following.until = now + receipt;
        } else if (!open || following.until <= now)
            && let Some(Following { end, .. }) = self.following.take()
        {
            self.abandon_steers(false);
            self.release();
            self.tell(WorkerEvent::TurnEnded { end, unasked: false });
        }
    }

    /// Cancels the CLI's own resumption: one ESC, only while idle, only on a plain screen.
    pub(super) fn cancel_resume(&mut self, now: Instant) {
        let typing = self
            .keyboard
            .entry
            .as_ref()
            .is_some_and(|entry| !matches!(entry.stage, Stage::Waiting { .. }));
        let fit =
            !self.stopped && matches!(self.phase, Phase::Up) && self.ledger.is_empty() && !typing;
        match self.resume {
            Resume::No => {}
            _ if !fit => self.resume = Resume::No,
            Resume::Wanted => {
                let screen = self.ask_screen();
                self.resume = Resume::Looking { screen, until: now + self.timings.write };
            }
            Resume::Looking { screen, until } => match self.may_press(screen) {
                Some(true) => {
                    self.resume = Resume::No;
                    if !self.keyboard.last_was_esc {
                        self.write(Purpose::Esc, prompt::ESC.to_vec());
                    }
                }
                Some(false) => self.resume = Resume::No,
                None if until <= now => self.resume = Resume::No,
                None => {}
            },
        }
    }
}

/// Work was refused for a limit, by the record that says so with the state of the account.
fn is_hard_limit(end: &TurnEnd) -> bool {
    let TurnEnd::Failed(fact) = end else { return false };
    matches!(
        fact.as_ref(),
        Fact::ApiFailure { kind: FailureKind::UsageLimit | FailureKind::RateLimit, quota: Some(quota), .. }
            if Quota::is_hard(quota)
    )
}
