//! Asking: the one way from whoever needs a permission to a person.
//!
//! A request travels as [`TuiEvent::PermissionRequired`] with the one-time right to answer it. What
//! waits and what became of it is kept in one [`Store`], for our own tools and for workers alike. An
//! answer is taken where it is given: whoever answers hears at once whether it counts. Dropping the
//! right to answer denies, and a late answer is refused. The responder exists before the request can be seen.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::request::{
    Asker, Digest, LateAnswer, PermissionPromptDecision, PermissionRequest, RequestId,
    RetiredReason,
};
use super::store::{Answer, AnswerError, Store};
use crate::event::{StreamSink, TuiEvent};

/// What the terminal front-end is called as a client of the store.
const FRONT_END: &str = "you";

/// The one-time right to answer a question. Dropping it denies.
pub struct PermissionReply(Box<dyn Replies>);

/// Where an answer goes.
trait Replies: Send {
    fn answer(self: Box<Self>, decision: PermissionPromptDecision) -> Result<(), LateAnswer>;
    fn is_closed(&self) -> bool;
}

impl fmt::Debug for PermissionReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermissionReply").finish_non_exhaustive()
    }
}

impl PermissionReply {
    /// A reply and the end that receives its answer, without a store.
    pub fn channel() -> (Self, oneshot::Receiver<PermissionPromptDecision>) {
        let (tx, rx) = oneshot::channel();
        (Self(Box::new(tx)), rx)
    }

    /// Nobody listens to an answer any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Answers. Fails when the question was retired meanwhile.
    pub fn answer(self, decision: PermissionPromptDecision) -> Result<(), LateAnswer> {
        self.0.answer(decision)
    }
}

impl Replies for oneshot::Sender<PermissionPromptDecision> {
    fn answer(self: Box<Self>, decision: PermissionPromptDecision) -> Result<(), LateAnswer> {
        self.send(decision).map_err(|_| LateAnswer)
    }

    fn is_closed(&self) -> bool {
        oneshot::Sender::is_closed(self)
    }
}

/// Asks a person, or decides in their place. Must return promptly when `cancel` fires.
pub trait PermissionPrompter: Send + Sync {
    fn decide<'a>(
        &'a self,
        request: PermissionRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionPromptDecision>;
}

/// All questions of this process. Cheap to clone.
#[derive(Clone)]
pub struct Approvals {
    sink: Arc<dyn StreamSink>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    store: Store,
    /// Whoever asked, for each question that is pending in the store.
    responders: HashMap<RequestId, Responder>,
}

struct Responder {
    decided: oneshot::Sender<PermissionPromptDecision>,
    cancel: CancellationToken,
}

impl Approvals {
    /// Questions travel through `sink`.
    pub fn new(sink: Arc<dyn StreamSink>) -> Self {
        Self { sink, waiting: Arc::default() }
    }

    /// Answers a question. The first answer counts.
    pub fn answer(&self, answer: &Answer<'_>) -> Result<(), AnswerError> {
        lock(&self.waiting).answer(answer)
    }

    /// Looks at what waits and what happened.
    pub fn look<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&lock(&self.waiting).store)
    }

    /// Takes the question in with its responder, in one step. None when too many wait.
    fn register(
        &self,
        request: &PermissionRequest,
        cancel: &CancellationToken,
    ) -> Option<oneshot::Receiver<PermissionPromptDecision>> {
        let (decided, decision) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        let (taken, superseded) = waiting.store.ask(Instant::now(), request);
        for id in superseded {
            waiting.responders.remove(&id);
        }
        taken.then(|| {
            let cancel = cancel.clone();
            waiting.responders.insert(request.id, Responder { decided, cancel });
            decision
        })
    }

    fn retire(&self, id: RequestId, reason: RetiredReason) {
        let mut waiting = lock(&self.waiting);
        waiting.store.retire(Instant::now(), id, reason);
        waiting.responders.remove(&id);
    }

    /// Why it is not pending any more, if it is not.
    fn reason(&self, id: RequestId) -> RetiredReason {
        lock(&self.waiting).store.retired(id).unwrap_or(RetiredReason::Dropped)
    }
}

impl Waiting {
    fn answer(&mut self, answer: &Answer<'_>) -> Result<(), AnswerError> {
        // Cancellation wins over an answer that comes in the same instant: fail closed.
        let cancelled =
            self.responders.get(&answer.id).is_some_and(|one| one.cancel.is_cancelled());
        if cancelled {
            self.store.retire(Instant::now(), answer.id, RetiredReason::Cancelled);
            self.responders.remove(&answer.id);
        }
        let decision = self.store.answer(Instant::now(), answer)?;
        // Only the first of several equal answers finds somebody.
        if let Some(responder) = self.responders.remove(&answer.id) {
            let gone = AnswerError::Gone(RetiredReason::Dropped);
            responder.decided.send(decision).map_err(|_| gone)?;
        }
        Ok(())
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to answer one question of the store.
struct OneAnswer {
    waiting: Arc<Mutex<Waiting>>,
    id: RequestId,
    asker: Asker,
    digest: Digest,
}

impl Replies for OneAnswer {
    fn answer(self: Box<Self>, decision: PermissionPromptDecision) -> Result<(), LateAnswer> {
        let answer = Answer {
            id: self.id,
            asker: &self.asker,
            digest: &self.digest,
            client: FRONT_END,
            decision,
        };
        lock(&self.waiting).answer(&answer).map_err(|_| LateAnswer)
    }

    fn is_closed(&self) -> bool {
        let waiting = lock(&self.waiting);
        waiting.responders.get(&self.id).is_none_or(|one| one.decided.is_closed())
    }
}

impl Drop for OneAnswer {
    fn drop(&mut self) {
        let mut waiting = lock(&self.waiting);
        waiting.store.retire(Instant::now(), self.id, RetiredReason::Dropped);
        waiting.responders.remove(&self.id);
    }
}

impl PermissionPrompter for Approvals {
    fn decide<'a>(
        &'a self,
        request: PermissionRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionPromptDecision> {
        Box::pin(async move {
            let Some(answered) = self.register(&request, cancel) else {
                return denied("too many requests wait already");
            };
            let id = request.id;
            let mut open = Open { approvals: self, id, reason: RetiredReason::Dropped };
            let until = request.expires.map(tokio::time::Instant::from_std);
            let reply = PermissionReply(Box::new(OneAnswer {
                waiting: Arc::clone(&self.waiting),
                id,
                asker: request.asker.clone(),
                digest: request.digest.clone(),
            }));
            self.sink.emit(TuiEvent::PermissionRequired { request, reply });
            let expired = async {
                match until {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let decision;
            (decision, open.reason) = tokio::select! {
                biased;
                () = cancel.cancelled() => (denied("interrupted"), RetiredReason::Cancelled),
                decided = answered => match decided {
                    Ok(decision) => (decision, RetiredReason::Answered),
                    Err(_) => (denied("the request was dropped without an answer"), self.reason(id)),
                },
                () = expired => (denied("nobody answered in time"), RetiredReason::Expired),
            };
            decision
        })
    }
}

fn denied(reason: &str) -> PermissionPromptDecision {
    PermissionPromptDecision::Deny { reason: Some(reason.to_owned()) }
}

/// A question that was shown. Whatever becomes of whoever asked, the screen hears its end.
struct Open<'a> {
    approvals: &'a Approvals,
    id: RequestId,
    reason: RetiredReason,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.approvals.retire(self.id, self.reason);
        let (id, reason) = (self.id, self.reason);
        self.approvals.sink.emit(TuiEvent::PermissionRetired { id, reason });
    }
}

/// Denies everything, with a reason: for runs where nobody can answer.
pub struct DenyAll {
    pub reason: String,
}

impl PermissionPrompter for DenyAll {
    fn decide<'a>(
        &'a self,
        _request: PermissionRequest,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionPromptDecision> {
        let reason = self.reason.clone();
        Box::pin(async move { PermissionPromptDecision::Deny { reason: Some(reason) } })
    }
}

#[cfg(test)]
mod tests;
