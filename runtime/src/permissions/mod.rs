//! Who may do what: modes, levels, the policy between them, and the question to the person.

mod mode;
mod policy;
mod prompter;
mod request;
mod store;

pub use mode::{ParseModeError, PermissionLevel, PermissionMode};
pub use policy::{PermissionPolicy, PermissionVerdict};
pub use prompter::{Approvals, DenyAll, PermissionPrompter, PermissionReply};
pub use request::{
    Asker, Digest, LateAnswer, PermissionPromptDecision, PermissionRequest, Question,
    QuestionAnswer, QuestionOption, RequestId, RequestKind, RetiredReason,
};
pub use store::{Answer, AnswerError, Change, Pending, Store, What};
