//! The waits of the machine: each has an end, and each end its own outcome.

use std::time::Instant;

use super::{Compaction, Kind, Step, Turn, Turns, failed};
use crate::error::WorkerError;
use crate::event::TurnEnd;

impl Turns {
    /// When [`Turns::tick`] is wanted at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        let timings = &self.timings;
        let start = (!self.ready).then_some(self.started + timings.ready);
        let receipt = self.submission_waits_since().map(|at| at + timings.receipt);
        let compaction = self.compacting_since().map(|at| at + timings.compaction);
        let questions = self.questions.iter().map(|known| known.asked + timings.permission).min();
        let turn = self.turn.as_ref().and_then(|turn| self.turn_deadline(turn));
        [start, receipt, compaction, questions, turn].into_iter().flatten().min()
    }

    /// Since when a prompt waits for something that ought to come at once: its own turn, or the late
    /// end of one that was given up.
    fn submission_waits_since(&self) -> Option<Instant> {
        let known = self.submission.as_ref().filter(|_| self.turn.is_none())?;
        known.written.or_else(|| self.swallow.then_some(known.since))
    }

    fn turn_deadline(&self, turn: &Turn) -> Option<Instant> {
        let silent = self.questions.is_empty().then_some(turn.last_sign + self.timings.inactivity);
        let interrupt = turn.interrupted_at.map(|at| at + self.timings.interrupt);
        let follow = turn.over.as_ref().map(|(since, _)| *since + self.timings.steer_receipt);
        [silent, interrupt, follow].into_iter().flatten().min()
    }

    /// A deadline has passed.
    pub fn tick(&mut self, now: Instant) {
        let past = |since: Instant, wait| now >= since + wait;
        if !self.ready && past(self.started, self.timings.ready) {
            let after = self.timings.ready;
            self.steps.push(Step::GiveUp(WorkerError::NotReady { after, screen: String::new() }));
        }
        let receipt = self.timings.receipt;
        if self.submission_waits_since().is_some_and(|at| past(at, receipt))
            && let Some(known) = self.submission.take()
        {
            let error = match known.written {
                Some(_) => WorkerError::Unconfirmed(receipt),
                None => WorkerError::RefusedPrompt(
                    "not sent: Claude Code has not ended the turn that was stopped".to_owned(),
                ),
            };
            let _ = known.taken.send(Err(error));
        }
        if self.compacting_since().is_some_and(|at| past(at, self.timings.compaction)) {
            self.compaction = Compaction::None;
            let end = TurnEnd::Failed(Box::new(failed("compaction_timed_out", None)));
            self.give_turn_up(now, end);
        }
        let wait = self.timings.permission;
        let late: Vec<String> = self
            .questions
            .iter()
            .filter(|known| past(known.asked, wait))
            .map(|known| known.request_id.clone())
            .collect();
        for request_id in late {
            self.answered(now, &request_id, None);
            self.steps.push(Step::Forget { request_id });
        }
        self.tick_turn(now);
    }

    fn tick_turn(&mut self, now: Instant) {
        let past = |since: Instant, wait| now >= since + wait;
        let Some(turn) = self.turn.as_mut() else { return };
        if turn.interrupted_at.is_some_and(|at| past(at, self.timings.interrupt)) {
            self.give_turn_up(now, TurnEnd::Interrupted);
        } else if turn.over.as_ref().is_some_and(|(at, _)| past(*at, self.timings.steer_receipt)) {
            if let Some((_, end)) = turn.over.take() {
                self.end(now, end);
            }
        } else if self.questions.is_empty() && past(turn.last_sign, self.timings.inactivity) {
            let wait = self.timings.inactivity;
            self.steps.push(Step::GiveUp(WorkerError::Inactive(wait)));
        }
    }

    /// Ends a turn that the CLI has not ended; its late end is not taken for another one's.
    fn give_turn_up(&mut self, now: Instant, end: TurnEnd) {
        self.swallow = true;
        self.begin_lost(now);
        self.end(now, end);
    }

    /// A compaction may be given up before anything of it was seen.
    fn begin_lost(&mut self, now: Instant) {
        self.turn.get_or_insert(Turn {
            kind: Kind::Compaction,
            identified: true,
            interrupted_at: None,
            saw_interrupt: false,
            compacted: false,
            last_sign: now,
            over: None,
        });
    }

    fn compacting_since(&self) -> Option<Instant> {
        match self.compaction {
            Compaction::Written(at) => Some(at),
            Compaction::None | Compaction::Ordered => None,
        }
    }
}
