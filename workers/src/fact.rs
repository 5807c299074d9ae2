//! Facts of a Claude session, whichever way they became known: the transcript, hooks, the tap, or
//! the lines of stream-json. The protocol and the story are told in these and in nothing else.
//!
//! Two kinds: *live* facts are for eyes and may be missing; *records* are the truth, whole blocks
//! after the fact.

use std::time::Duration;

use claw_runtime::session::ContentBlock;
use claw_runtime::tools::ToolFacts;
use claw_runtime::usage::TokenUsage;

/// Why a turn of the CLI failed, from its own classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureKind {
    Authentication,
    Billing,
    RateLimit,
    /// The account's limit, with what is known about its end.
    UsageLimit,
    ModelNotFound,
    PromptTooLong,
    InvalidRequest,
    Server,
    MaxOutputTokens,
    Unknown(String),
}

/// State of an account's quota, as the CLI recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// `allowed`, `allowed_warning`, `rejected`, or something that we do not know.
    pub status: String,
    /// Unix time in seconds.
    pub resets_at: Option<i64>,
    /// `five_hour`, `seven_day`, ...
    pub kind: Option<String>,
}

impl Quota {
    /// Only a status that is neither of the two friendly ones means that work was refused.
    pub fn is_hard(&self) -> bool {
        !matches!(self.status.as_str(), "allowed" | "allowed_warning")
    }
}

/// Whose words a user record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptSource {
    /// Typed or pasted into the input box (ours).
    Typed,
    /// Typed during a turn and taken afterwards, or absorbed in the turn.
    Queued,
    /// The CLI began by itself: a background task has ended.
    Notification,
    /// Written by the CLI for the model only ("Output token limit hit ...").
    Hidden,
    /// The summary after a compaction.
    Summary,
    /// A command of the CLI or its output.
    Command,
}

/// Who refused a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeniedBy {
    Rule,
    Person,
}

/// One fact.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    // Live: for eyes.
    /// A message of the model began to stream. `message` is the API's message id.
    MessageBegan {
        message: String,
        model: Option<String>,
    },
    ThinkingBegan {
        message: String,
        block: usize,
    },
    ThinkingDelta {
        message: String,
        block: usize,
        text: String,
    },
    TextDelta {
        message: String,
        block: usize,
        text: String,
    },
    ToolUseBegan {
        message: String,
        block: usize,
        id: String,
        name: String,
    },
    BlockEnded {
        message: String,
        block: usize,
    },
    MessageEnded {
        message: String,
        stop_reason: Option<String>,
    },
    /// Whole lines of the reply from the MessageDisplay hook. Its ids are its own.
    Lines {
        display: String,
        index: u64,
        text: String,
        last: bool,
    },
    /// A tool really began to run (PreToolUse, or the stream's own word).
    ToolStarted {
        id: String,
        input: String,
    },
    /// A tool's run is over (PostToolUse, PostToolUseFailure).
    ToolEnded {
        id: String,
        is_error: bool,
        elapsed: Option<Duration>,
    },
    /// The CLI asks the API again after a failure.
    Retry {
        attempt: u32,
        max_attempts: u32,
        wait: Duration,
        reason: String,
    },
    /// The API said how the account stands.
    Quota(Quota),

    // Records: the truth.
    /// Words for the model.
    Prompt {
        prompt_id: Option<String>,
        text: String,
        source: PromptSource,
    },
    /// One finished block of a message, in order. `block` is its index where the record has it.
    /// `usage` is that of the whole message as far as it was known; each block repeats it, so it counts
    /// once per message, the last one.
    Block {
        message: String,
        block: Option<usize>,
        content: ContentBlock,
        model: Option<String>,
        usage: Option<TokenUsage>,
        stop_reason: Option<String>,
        /// The person stopped it in the middle.
        aborted: bool,
    },
    /// The tokens of a message, where they are known only after its blocks.
    Usage {
        message: String,
        usage: TokenUsage,
    },
    ToolResult {
        id: String,
        output: String,
        is_error: bool,
        facts: Option<ToolFacts>,
        denied: Option<DeniedBy>,
    },
    /// The API failed and the turn ended with it. `text` are the CLI's words for it.
    ApiFailure {
        kind: FailureKind,
        status: Option<u16>,
        text: String,
        details: Option<String>,
        quota: Option<Quota>,
    },
    Interrupted {
        in_tool: bool,
    },
    /// The sentinel of a normal end.
    TurnDuration {
        duration: Duration,
        pending_agents: u64,
    },
    /// A prompt was put into the queue (the receipt of steering).
    Enqueued {
        content: String,
    },
    /// It was taken out without being used, for this reason, or absorbed into the turn.
    Removed {
        content: Option<String>,
        absorbed: bool,
    },
    /// The queue became the next turn.
    Dequeued,
    /// It is in plan mode and keeps its plan in this file.
    PlanFile {
        path: String,
    },
    Compacted {
        automatic: bool,
        before_tokens: u64,
        after_tokens: u64,
    },
    /// A word of the CLI to the person.
    Notice {
        text: String,
    },
    /// What a command of the CLI printed.
    CommandOutput {
        text: String,
    },
    /// A sub-agent was launched by this tool call.
    /// `agent` is the id of the call for as long as the sub-agent's own is not known.
    AgentSpawned {
        agent: String,
        tool_use_id: Option<String>,
        kind: Option<String>,
        background: bool,
    },
    /// What a sub-agent did last: some of its text, or the name of a tool.
    AgentProgress {
        agent: String,
        tool_use_id: Option<String>,
        text: String,
    },
    AgentDone {
        agent: String,
        tool_use_id: Option<String>,
        status: AgentEnd,
        summary: String,
    },
    /// A record of a kind that we do not know, by its name.
    Unknown {
        kind: String,
    },
}

/// How a sub-agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEnd {
    Completed,
    Failed,
    Killed,
    TimedOut,
    /// Nobody ever said; it was given up for its age.
    Lost,
}
