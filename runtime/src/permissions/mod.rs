//! Who may do what: modes, levels, the policy between them, and the question to the person.

mod mode;
mod policy;
mod prompter;

pub use mode::{ParseModeError, PermissionLevel, PermissionMode};
pub use policy::{PermissionPolicy, PermissionVerdict};
pub use prompter::{
    DenyAll, LateAnswer, PermissionPromptDecision, PermissionPrompter, PermissionReply,
    PermissionRequest, RequestId, RequestKind, RetiredReason, SinkPrompter,
};
