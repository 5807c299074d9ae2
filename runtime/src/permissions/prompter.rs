//! The question to the person and its single answer.
//!
//! A request carries its own oneshot reply: answering consumes it, dropping it is a denial, and a
//! late answer is refused. The responder exists before the request can be seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{PermissionLevel, PermissionMode};
use crate::event::{StreamSink, TuiEvent};
use crate::tools::Grant;

/// Identifies a question within this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

impl RequestId {
    /// The next unused id.
    pub fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// May this tool run with this input?
    Tool,
    /// May the program named as the tool work in the folder named as the input, from now on?
    TrustFolder,
}

/// A question: may this tool run with this input?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRequest {
    pub id: RequestId,
    pub kind: RequestKind,
    /// The sub-agent that asks, in words; none when the turn itself does. One in the background asks
    /// on when the turn is over.
    pub agent: Option<String>,
    pub tool_use_id: String,
    pub tool_name: String,
    /// The complete effective input, JSON text.
    pub input: String,
    pub current_mode: PermissionMode,
    pub required: PermissionLevel,
    /// Why it is asked whatever the mode and earlier grants say; none when the mode explains it.
    pub reason: Option<String>,
    /// Unified diff of what an edit would do.
    pub preview: Option<String>,
    /// What "for this session" would allow.
    pub grant: Grant,
}

impl PermissionRequest {
    /// Whether an answer "for this session" would hold: what is asked for a reason of its own is
    /// asked every time.
    pub fn can_be_granted(&self) -> bool {
        self.kind == RequestKind::Tool && self.reason.is_none()
    }
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionPromptDecision {
    AllowOnce,
    AllowForSession,
    Deny { reason: Option<String> },
}

/// Why a question is no longer open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetiredReason {
    Answered,
    /// The turn was cancelled: counts as a denial.
    Cancelled,
    /// The reply was dropped unanswered, or whoever asked is gone: counts as a denial.
    Dropped,
}

/// The one-time right to answer a question. Dropping it denies.
#[derive(Debug)]
pub struct PermissionReply(oneshot::Sender<PermissionPromptDecision>);

/// The answer came after the question was retired; it had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request is no longer waiting; the answer had no effect")]
pub struct LateAnswer;

impl PermissionReply {
    /// A reply and the end that receives its answer.
    pub fn channel() -> (Self, oneshot::Receiver<PermissionPromptDecision>) {
        let (tx, rx) = oneshot::channel();
        (Self(tx), rx)
    }

    /// Nobody listens to an answer any more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Answers. Fails when the question was retired meanwhile.
    pub fn answer(self, decision: PermissionPromptDecision) -> Result<(), LateAnswer> {
        self.0.send(decision).map_err(|_| LateAnswer)
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

/// Asks through the event stream: the request travels as [`TuiEvent::PermissionRequired`].
pub struct SinkPrompter {
    sink: Arc<dyn StreamSink>,
}

impl SinkPrompter {
    pub fn new(sink: Arc<dyn StreamSink>) -> Self {
        Self { sink }
    }
}

impl PermissionPrompter for SinkPrompter {
    fn decide<'a>(
        &'a self,
        request: PermissionRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionPromptDecision> {
        Box::pin(async move {
            let id = request.id;
            let (reply, answer) = PermissionReply::channel();
            self.sink.emit(TuiEvent::PermissionRequired { request, reply });
            let mut open = Open { sink: &*self.sink, id, reason: RetiredReason::Dropped };
            // Cancellation wins over an answer that arrives in the same instant: fail closed.
            let decision;
            (decision, open.reason) = tokio::select! {
                biased;
                () = cancel.cancelled() => (
                    PermissionPromptDecision::Deny { reason: Some("interrupted".to_owned()) },
                    RetiredReason::Cancelled,
                ),
                answer = answer => match answer {
                    Ok(decision) => (decision, RetiredReason::Answered),
                    Err(_) => (
                        PermissionPromptDecision::Deny {
                            reason: Some("the request was dropped without an answer".to_owned()),
                        },
                        RetiredReason::Dropped,
                    ),
                },
            };
            decision
        })
    }
}

/// A question that was shown. Whatever becomes of whoever asked, the screen hears its end.
struct Open<'a> {
    sink: &'a dyn StreamSink,
    id: RequestId,
    reason: RetiredReason,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.sink.emit(TuiEvent::PermissionRetired { id: self.id, reason: self.reason });
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
