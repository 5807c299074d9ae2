//! Every question that waits for a person, and what became of the last ones. Pure: it knows no clock,
//! no channel and no screen. Times are told to it, and each change of it is one [`Change`].
//!
//! What it refuses: an answer to what is unknown, settled, out of time, asked by somebody else, about
//! another input than the one that will run, or not among what was offered. None of those changes
//! anything.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::request::{Asker, Digest, PermissionRequest, RequestId, RetiredReason};
use super::{PermissionPromptDecision, RequestKind};

/// Settled questions whose outcome is still known.
const REMEMBERED: usize = 256;
/// How long it is.
const REMEMBERED_FOR: Duration = Duration::from_hours(1);
/// Changes that can be replayed.
const LOGGED: usize = 1024;
/// Questions that may wait at the same time; more than that are refused at once.
const MOST: usize = 128;

/// A question that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub id: RequestId,
    pub asker: Asker,
    /// Of the whole input that will run.
    pub digest: Digest,
    pub since: Instant,
    /// Nobody waits for the answer after this.
    pub expires: Option<Instant>,
    kind: RequestKind,
    can_be_granted: bool,
}

/// An answer, and who gives it to what.
#[derive(Debug, Clone)]
pub struct Answer<'a> {
    pub id: RequestId,
    pub asker: &'a Asker,
    /// Of the input that was shown.
    pub digest: &'a Digest,
    /// Who answers: a repetition by the same one is told the same.
    pub client: &'a str,
    pub decision: PermissionPromptDecision,
}

/// Why an answer had no effect.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnswerError {
    #[error("there is no such request")]
    Unknown,
    #[error("{by} has answered it already")]
    AlreadyAnswered { by: String, at: Instant, decision: PermissionPromptDecision },
    #[error("the request is no longer waiting: {0}")]
    Gone(RetiredReason),
    #[error("the request is somebody else's")]
    OtherAsker,
    #[error("the input has changed since it was shown")]
    OtherInput,
    #[error("this answer was not offered")]
    NotOffered,
}

/// What happened to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Asked,
    Answered,
    Retired(RetiredReason),
}

/// One step, numbered without gaps from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub number: u64,
    pub id: RequestId,
    pub what: What,
}

#[derive(Debug, Clone)]
enum Outcome {
    Answered { by: String, decision: PermissionPromptDecision },
    Retired(RetiredReason),
}

#[derive(Debug, Clone)]
struct Settled {
    id: RequestId,
    at: Instant,
    outcome: Outcome,
}

/// The store.
#[derive(Debug, Default)]
pub struct Store {
    /// Oldest first.
    pending: Vec<Pending>,
    settled: VecDeque<Settled>,
    log: VecDeque<Change>,
    changes: u64,
}

impl Store {
    /// Takes a question in. Returns those that it takes the place of: one asker of a worker asks one
    /// thing at a time. False when too many wait: then it is not taken in.
    pub fn ask(&mut self, now: Instant, request: &PermissionRequest) -> (bool, Vec<RequestId>) {
        let superseded: Vec<RequestId> = self
            .pending
            .iter()
            .filter(|pending| pending.asker.asks_one_at_a_time() && pending.asker == request.asker)
            .map(|pending| pending.id)
            .collect();
        for id in &superseded {
            self.retire(now, *id, RetiredReason::Superseded { by: request.id });
        }
        if self.pending.len() >= MOST {
            return (false, superseded);
        }
        self.pending.push(Pending {
            id: request.id,
            asker: request.asker.clone(),
            digest: request.digest.clone(),
            since: now,
            expires: request.expires,
            kind: request.kind.clone(),
            can_be_granted: request.can_be_granted(),
        });
        self.note(request.id, What::Asked);
        (true, superseded)
    }

    /// Takes an answer. The first one counts; the same client hears the same again.
    pub fn answer(
        &mut self,
        now: Instant,
        answer: &Answer<'_>,
    ) -> Result<PermissionPromptDecision, AnswerError> {
        self.expire(now);
        self.forget_old(now);
        let Some(at) = self.pending.iter().position(|pending| pending.id == answer.id) else {
            return self.earlier(answer);
        };
        let pending = &self.pending[at];
        if pending.asker != *answer.asker {
            return Err(AnswerError::OtherAsker);
        }
        if pending.digest != *answer.digest {
            return Err(AnswerError::OtherInput);
        }
        if !pending.offers(&answer.decision) {
            return Err(AnswerError::NotOffered);
        }
        self.pending.remove(at);
        let decision = answer.decision.clone();
        let by = answer.client.to_owned();
        self.settle(now, answer.id, Outcome::Answered { by, decision: decision.clone() });
        self.note(answer.id, What::Answered);
        Ok(decision)
    }

    /// Nobody may answer it any more. False when it was not waiting.
    pub fn retire(&mut self, now: Instant, id: RequestId, reason: RetiredReason) -> bool {
        let Some(at) = self.pending.iter().position(|pending| pending.id == id) else {
            return false;
        };
        self.pending.remove(at);
        self.settle(now, id, Outcome::Retired(reason));
        self.note(id, What::Retired(reason));
        true
    }

    /// Retires what is out of time.
    pub fn expire(&mut self, now: Instant) -> Vec<RequestId> {
        let late = |pending: &&Pending| pending.expires.is_some_and(|at| at <= now);
        let late: Vec<RequestId> = self.pending.iter().filter(late).map(|one| one.id).collect();
        for id in &late {
            self.retire(now, *id, RetiredReason::Expired);
        }
        late
    }

    /// Why it is not waiting any more; none when it is, or was answered, or is not known.
    pub fn retired(&self, id: RequestId) -> Option<RetiredReason> {
        let settled = self.settled.iter().find(|settled| settled.id == id)?;
        match settled.outcome {
            Outcome::Retired(reason) => Some(reason),
            Outcome::Answered { .. } => None,
        }
    }

    /// All that wait, oldest first.
    pub fn pending(&self) -> &[Pending] {
        &self.pending
    }

    /// Number of the last change.
    pub fn last_change(&self) -> u64 {
        self.changes
    }

    /// The changes after that number; none when they are not all known any more.
    pub fn changes_since(&self, number: u64) -> Option<impl Iterator<Item = &Change>> {
        let first = self.changes - self.log.len() as u64;
        let known = number >= first && number <= self.changes;
        known.then(|| self.log.iter().filter(move |change| change.number > number))
    }

    fn earlier(&self, answer: &Answer<'_>) -> Result<PermissionPromptDecision, AnswerError> {
        let settled = self.settled.iter().find(|settled| settled.id == answer.id);
        match settled.map(|settled| (&settled.outcome, settled.at)) {
            None => Err(AnswerError::Unknown),
            Some((Outcome::Retired(reason), _)) => Err(AnswerError::Gone(*reason)),
            Some((Outcome::Answered { by, decision }, at)) => {
                if by == answer.client && *decision == answer.decision {
                    return Ok(decision.clone());
                }
                let (by, decision) = (by.clone(), decision.clone());
                Err(AnswerError::AlreadyAnswered { by, at, decision })
            }
        }
    }

    fn settle(&mut self, now: Instant, id: RequestId, outcome: Outcome) {
        self.forget_old(now);
        if self.settled.len() == REMEMBERED {
            self.settled.pop_front();
        }
        self.settled.push_back(Settled { id, at: now, outcome });
    }

    fn forget_old(&mut self, now: Instant) {
        self.settled.retain(|settled| now.duration_since(settled.at) < REMEMBERED_FOR);
    }

    fn note(&mut self, id: RequestId, what: What) {
        self.changes += 1;
        if self.log.len() == LOGGED {
            self.log.pop_front();
        }
        self.log.push_back(Change { number: self.changes, id, what });
    }
}

impl Pending {
    fn offers(&self, decision: &PermissionPromptDecision) -> bool {
        match decision {
            PermissionPromptDecision::Deny { .. } => true,
            PermissionPromptDecision::AllowOnce => {
                matches!(self.kind, RequestKind::Tool { .. } | RequestKind::TrustFolder)
            }
            PermissionPromptDecision::AllowForSession => self.can_be_granted,
            PermissionPromptDecision::AllowInput { .. } => {
                matches!(self.kind, RequestKind::Tool { editable: true })
            }
            PermissionPromptDecision::Answers(answers) => match &self.kind {
                RequestKind::Questions(questions) => {
                    answers.len() == questions.len()
                        && questions
                            .iter()
                            .zip(answers)
                            .all(|(question, answer)| question.question == answer.question)
                }
                _ => false,
            },
            PermissionPromptDecision::ApprovePlan { .. } => {
                matches!(self.kind, RequestKind::Plan { .. })
            }
        }
    }
}

#[cfg(test)]
mod tests;
