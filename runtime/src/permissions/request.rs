//! A question to the person, as it travels: what is asked, by whom, about which input.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::{PermissionLevel, PermissionMode};
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

/// Fingerprint of a whole input (SHA-256): what was shown is what runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(input: &str) -> Self {
        Self(Sha256::digest(input.as_bytes()).into())
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Asker {
    /// The session of the worker; none for our own tools.
    pub worker: Option<String>,
    /// The id of the sub-agent; none for the turn itself. One in the background asks on when the turn
    /// is over.
    pub agent: Option<String>,
    /// What the sub-agent is called.
    pub agent_kind: Option<String>,
}

impl Asker {
    /// Our own tools may ask side by side; each asker of a worker asks one thing after the other.
    pub fn asks_one_at_a_time(&self) -> bool {
        self.worker.is_some()
    }

    /// The sub-agent in words.
    pub fn agent_words(&self) -> Option<String> {
        self.agent.as_ref()?;
        Some(match &self.agent_kind {
            Some(kind) => format!("sub-agent {kind}"),
            None => "a sub-agent".to_owned(),
        })
    }
}

/// A question of the model to the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub question: String,
    /// A word or two.
    pub header: String,
    pub options: Vec<QuestionOption>,
    /// More than one may be chosen.
    pub multi_select: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionOption {
    pub label: String,
    pub description: String,
}

/// What was chosen or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionAnswer {
    pub question: String,
    /// Labels joined by a comma and a space, or words of the person's own.
    pub answer: String,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestKind {
    /// May this tool run with this input? `editable`: or with another one.
    Tool { editable: bool },
    /// May the program named as the tool work in the folder named as the input, from now on?
    TrustFolder,
    /// The model asks the person something.
    Questions(Vec<Question>),
    /// The model has a plan and wants to begin.
    Plan { text: String },
}

/// A question: may this tool run with this input?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRequest {
    pub id: RequestId,
    pub kind: RequestKind,
    pub asker: Asker,
    pub tool_use_id: String,
    pub tool_name: String,
    /// The complete effective input, JSON text, without known secrets.
    pub input: String,
    /// Of the input as it will run.
    pub digest: Digest,
    /// Nobody waits for an answer after this.
    pub expires: Option<Instant>,
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
        matches!(self.kind, RequestKind::Tool { .. }) && self.reason.is_none()
    }
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionPromptDecision {
    AllowOnce,
    AllowForSession,
    /// Once, with this input (JSON text) in place of the one that was asked about.
    AllowInput {
        input: String,
    },
    /// To [`RequestKind::Questions`], in their order.
    Answers(Vec<QuestionAnswer>),
    /// To [`RequestKind::Plan`]: go on with this text of it.
    ApprovePlan {
        text: String,
    },
    Deny {
        reason: Option<String>,
    },
}

/// Why a question is no longer open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetiredReason {
    Answered,
    /// The turn was cancelled, or it was settled elsewhere: counts as a denial.
    Cancelled,
    /// The reply was dropped unanswered, or whoever asked is gone: counts as a denial.
    Dropped,
    /// Its time was over: counts as a denial.
    Expired,
    /// Whoever asked has asked something else.
    Superseded {
        by: RequestId,
    },
}

impl fmt::Display for RetiredReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answered => "it was answered",
            Self::Cancelled => "it was taken back or settled elsewhere",
            Self::Dropped => "whoever asked is gone",
            Self::Expired => "its time was over",
            Self::Superseded { .. } => "something else is asked in its place",
        })
    }
}

/// The answer came after the question was retired; it had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the request is no longer waiting; the answer had no effect")]
pub struct LateAnswer;
