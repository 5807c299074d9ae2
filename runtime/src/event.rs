//! What the runtime tells: one event enum and one sink method.
//!
//! A new fact costs a variant here, the line that emits it, and the arm that shows it. Events are
//! facts in the past tense; they are for eyes, while what functions *return* is the truth that
//! enters the session. Order within a turn: `TurnStarted` first, `TurnCompleted` or `TurnFailed`
//! last, exactly one of them, after any `PermissionRetired`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{SteerError, StopReason};
use crate::conversation::TurnSummary;
use crate::driver::RuntimeStatus;
use crate::error::RuntimeError;
use crate::hooks::HookEvent;
use crate::permissions::{PermissionReply, PermissionRequest, RequestId, RetiredReason};
use crate::session::{SessionEntry, SessionView};
use crate::tools::ToolOutcome;
use crate::usage::{TokenUsage, UsageReport};

/// Where events go. Implementations must not block for long and must never panic.
pub trait StreamSink: Send + Sync {
    fn emit(&self, event: TuiEvent);
}

/// One fact told by the runtime.
#[derive(Debug)]
pub enum TuiEvent {
    // The turn
    /// A turn began with this input. `retry`: the prompt is already in the conversation.
    TurnStarted {
        input: String,
        retry: bool,
    },
    /// The turn ended normally, by a limit, or because the person stopped it (`summary.stop`).
    TurnCompleted {
        summary: TurnSummary,
    },
    /// The turn failed; the session stays usable. What was produced before is in `summary`.
    TurnFailed {
        error: Arc<RuntimeError>,
        summary: TurnSummary,
    },

    /// What came of a prompt that was ordered into the running turn. Refused: it was not sent.
    Steered {
        input: String,
        outcome: Result<(), SteerError>,
    },
    /// A turn that nobody here asked for is in the session. It has no `TurnStarted`: the backend tells
    /// of it as it comes.
    UnaskedTurnEnded {
        summary: TurnSummary,
    },

    // The message that streams
    TextDelta {
        text: String,
    },
    ThinkingStarted,
    ThinkingDelta {
        text: String,
    },
    /// `char_count` counts Unicode scalar values; 0 and `redacted` when the provider hides it.
    ThinkingEnded {
        char_count: usize,
        redacted: bool,
    },
    /// The model began to write a tool call; its input is still streaming.
    ToolUseStarted {
        id: String,
        name: String,
    },
    /// The model's tool call is complete. `input` is JSON text.
    ToolUse {
        id: String,
        name: String,
        input: String,
    },
    /// The message is partial: the stream was cut inside this tool call, which will not run.
    ToolUseIncomplete {
        id: String,
        name: String,
    },
    /// Usage of one message, merged from its start and its end, with session totals.
    UsageUpdate {
        usage: TokenUsage,
        report: UsageReport,
    },
    MessageStop {
        stop_reason: StopReason,
    },

    // Tools
    /// The tool really began to run. `input` is the effective JSON input, after hooks.
    ToolStarted {
        iteration: usize,
        id: String,
        name: String,
        input: String,
    },
    /// Output while the tool runs: whole lines where possible. For eyes only.
    ToolOutput {
        id: String,
        text: String,
    },
    /// The tool's own run is over (its result may still wait for hooks and for its turn in order).
    ToolEnded {
        id: String,
        is_error: bool,
        elapsed: Duration,
    },
    /// The result as the session has it; also for denied calls, which have no `ToolStarted`.
    ToolResult {
        iteration: usize,
        max_iterations: usize,
        id: String,
        name: String,
        /// Effective JSON input, after hooks.
        input: String,
        outcome: ToolOutcome,
        /// True when permission or a hook denied it: `outcome.output` then holds the reason.
        denied: bool,
    },

    // Asking
    /// A question waits. The reply is part of the event: answering consumes it, dropping it denies.
    PermissionRequired {
        request: PermissionRequest,
        reply: PermissionReply,
    },
    /// The question is no longer open, for this reason; also after an answer.
    PermissionRetired {
        id: RequestId,
        reason: RetiredReason,
    },

    // Hooks
    HookStarted {
        event: HookEvent,
        tool_name: String,
        command: String,
    },
    HookCompleted {
        event: HookEvent,
        tool_name: String,
        command: String,
    },
    HookCancelled {
        event: HookEvent,
        tool_name: String,
        command: String,
    },

    // The connection
    /// A request failed and will be sent again after `wait`.
    Retrying {
        attempt: u32,
        max_attempts: u32,
        wait: Duration,
        reason: String,
    },
    /// Nothing arrived for `silent_for`; repeated while it lasts. Any delta ends the state.
    Stalled {
        silent_for: Duration,
    },

    // Compaction
    /// Compaction began; `round` of `max_rounds` in context-window recovery, 1 of 1 otherwise.
    Compacting {
        cause: CompactionCause,
        round: u32,
        max_rounds: u32,
    },
    /// Compaction ended. Nothing changed when `before_tokens == after_tokens`; when only tool payloads
    /// were shortened, `removed` is 0 and the sizes differ.
    Compacted {
        cause: CompactionCause,
        removed: usize,
        /// Tokens of the context before and after: as the provider reported them where it did, with
        /// an estimate of what came since and of what was removed.
        before_tokens: u64,
        after_tokens: u64,
        /// Where the conversation as it was is kept; none when nothing changed, and when the backend
        /// compacted a context of its own: our conversation stays as it is.
        original: Option<PathBuf>,
    },
    /// A compaction that was asked for came to nothing; the conversation is as it was.
    CompactionFailed {
        /// None when the person stopped it.
        error: Option<Arc<RuntimeError>>,
    },

    /// A retry was ordered and the last prompt has its whole answer: no turn begins.
    NothingToRetry,

    // Sessions and settings (answers to commands)
    /// A session is now the current one (start, resume, switch, fork, clear). At the start a long
    /// one comes twice: its end first, and then the whole, which replaces it.
    SessionOpened {
        view: SessionView,
    },
    /// `now_ms`: the time of the list, in milliseconds since 1970, so that ages can be shown.
    SessionsListed {
        sessions: Vec<SessionEntry>,
        now_ms: u64,
    },
    /// Backend, model, mode, session facts as they are now.
    StatusChanged {
        status: RuntimeStatus,
    },
    /// The conversation was written to this file.
    Exported {
        path: PathBuf,
    },
    /// The text that answers a command (`/status`, `/cost`, ...), as markdown.
    Reply {
        title: String,
        markdown: String,
    },
    /// Something the person should know. Never the only sign of a failure of a turn.
    Notice {
        level: NoticeLevel,
        text: String,
    },
    /// The runtime thread has ended; nothing follows.
    RuntimeEnded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    Info,
    Warning,
    Error,
}

/// Why the conversation is being compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionCause {
    /// `/compact`.
    Requested,
    /// The current context crossed the threshold.
    Automatic,
    /// The provider said that the request does not fit its context window.
    ContextWindow,
}

/// A sink that drops everything: for calls whose events nobody wants.
pub struct NullSink;

impl StreamSink for NullSink {
    fn emit(&self, _event: TuiEvent) {}
}

impl TuiEvent {
    /// A notice at [`NoticeLevel::Info`].
    pub fn info(text: impl Into<String>) -> Self {
        Self::Notice { level: NoticeLevel::Info, text: text.into() }
    }

    /// A notice at [`NoticeLevel::Warning`].
    pub fn warning(text: impl Into<String>) -> Self {
        Self::Notice { level: NoticeLevel::Warning, text: text.into() }
    }

    /// A notice at [`NoticeLevel::Error`].
    pub fn error(text: impl Into<String>) -> Self {
        Self::Notice { level: NoticeLevel::Error, text: text.into() }
    }
}
