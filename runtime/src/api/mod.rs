//! Backends as [`ApiClient`]s: one streaming call that tells while it runs and returns the truth.
//!
//! Adding a provider: one file beside this one and one row where the binary wires backends.

pub mod anthropic;
pub mod demo;
pub mod models;
pub mod openai;
pub mod retry;
pub mod transport;

mod draft;
mod exchange;
mod failure;
mod history;
mod sse;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use thiserror::Error;

use crate::context::TurnContext;
use crate::permissions::PermissionMode;
use crate::session::ConversationMessage;
use crate::tools::ToolSpec;

/// Something that answers a conversation: an HTTP API, a worker, the demo.
pub trait ApiClient: Send {
    /// Sends the conversation and streams the answer.
    ///
    /// Deltas go to `cx.sink` as they arrive; only the returned turn enters the session.
    /// When `cx.cancel` fires it returns within about 100 ms with
    /// `Ok(AssistantTurn { stop_reason: StopReason::Cancelled, .. })` and what had arrived so far.
    fn stream<'a>(
        &'a mut self,
        request: ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<AssistantTurn, ApiError>>;

    /// Whether the backend keeps the context of the conversation itself. Then the runtime neither
    /// compacts by itself nor shortens what it sends: the backend's own session is what counts.
    fn owns_context(&self) -> bool {
        false
    }

    /// Compacts the backend's own context. None: there is none, the runtime compacts.
    fn compact<'a>(
        &'a mut self,
        _request: ApiRequest,
        _cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<Option<ContextCompaction>, ApiError>> {
        Box::pin(async { Ok(None) })
    }

    /// The way in for prompts during a turn; none when the backend cannot take them.
    fn steering(&self) -> Option<Arc<dyn Steering>> {
        None
    }

    /// Waits, between turns, for a turn that nobody here asked for and returns it for the session;
    /// its events go to `cx.sink`. Never returns for most backends. May be dropped at any moment: what
    /// was told but not returned comes at the head of the next `stream` or `unasked`.
    fn unasked<'a>(&'a mut self, _cx: &'a TurnContext) -> BoxFuture<'a, AssistantTurn> {
        Box::pin(std::future::pending())
    }

    /// Stops such a turn, if one runs; its end comes as ever.
    fn stop_unasked(&mut self) {}

    /// What was told and not returned yet, ended where it stands. Called before `close`.
    fn unfinished(&mut self, _cx: &TurnContext) -> Option<AssistantTurn> {
        None
    }

    /// Ends what the backend keeps running, in bounded time. Called before it is dropped, and when the
    /// conversation becomes another one.
    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Takes a prompt while a turn runs. Held by the driver beside the running turn.
pub trait Steering: Send + Sync {
    /// Hands the text to the running turn. `Ok` only with evidence that it was taken.
    fn steer(&self, text: String) -> BoxFuture<'_, Result<(), SteerError>>;
}

/// Why a prompt did not go into the running turn.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SteerError {
    /// Nothing was sent: it may become the next prompt.
    #[error("not sent into the running turn: {0}")]
    Refused(String),
    /// It was sent, and nothing shows that it was taken: it must not be sent again.
    #[error("it is not certain whether the message was taken; it is not sent again")]
    Uncertain,
}

/// What a backend's own compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextCompaction {
    pub before_tokens: u64,
    pub after_tokens: u64,
}

impl ApiClient for Box<dyn ApiClient> {
    fn stream<'a>(
        &'a mut self,
        request: ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<AssistantTurn, ApiError>> {
        (**self).stream(request, cx)
    }

    fn owns_context(&self) -> bool {
        (**self).owns_context()
    }

    fn compact<'a>(
        &'a mut self,
        request: ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<Option<ContextCompaction>, ApiError>> {
        (**self).compact(request, cx)
    }

    fn steering(&self) -> Option<Arc<dyn Steering>> {
        (**self).steering()
    }

    fn unasked<'a>(&'a mut self, cx: &'a TurnContext) -> BoxFuture<'a, AssistantTurn> {
        (**self).unasked(cx)
    }

    fn stop_unasked(&mut self) {
        (**self).stop_unasked();
    }

    fn unfinished(&mut self, cx: &TurnContext) -> Option<AssistantTurn> {
        (**self).unfinished(cx)
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        (**self).close()
    }
}

/// One request: the whole conversation and what the model may use.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    pub model: String,
    /// Blocks of the system prompt, most stable first (cache breakpoints follow this order).
    pub system: Arc<[String]>,
    pub messages: Vec<Arc<ConversationMessage>>,
    /// Sorted by name, so that the prompt cache is not broken by order.
    pub tools: Arc<[ToolSpec]>,
    /// Our session id (for providers and workers that keep state by it).
    pub session_id: String,
    /// The session that this one was forked from.
    pub fork_of: Option<String>,
    /// Whether thinking is wanted where the model supports it.
    pub thinking: bool,
    /// The mode in force, for backends that run tools of their own.
    pub permission_mode: PermissionMode,
}

/// What the backend answered. Only this enters the session.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantTurn {
    /// Usually one assistant message. A backend that runs its own tools returns the assistant
    /// messages *and* the tool messages with their results, in order; a tool use that comes back
    /// without a result is ours to run.
    pub messages: Vec<ConversationMessage>,
    pub stop_reason: StopReason,
}

/// Why the model stopped. Anything but `EndTurn`, `ToolUse` and `StopSequence` is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    EndTurn,
    ToolUse,
    StopSequence,
    /// The answer was cut at the output limit; "continue" goes on.
    MaxTokens,
    Refusal,
    PauseTurn,
    /// The person stopped it.
    Cancelled,
    /// The provider gave a reason that we do not know.
    Other(String),
}

/// Failure of a backend, by what the caller does next. No error is recognised by its text.
#[derive(Debug, Error)]
pub enum ApiError {
    /// Compact and try again.
    #[error("the conversation is too long for the model: {message}")]
    ContextWindowExceeded { message: String },
    /// Fix the key.
    #[error("not authorised ({status}): {message}. Check {credential}.")]
    Auth { status: u16, message: String, credential: &'static str },
    /// No credential is set at all.
    #[error("{variable} is not set. Set it and start again, or use --backend demo.")]
    MissingCredential { variable: &'static str },
    /// Wait. `retry_after` as the provider said.
    #[error("rate limited by the provider: {message}")]
    RateLimited { message: String, retry_after: Option<Duration> },
    /// Wait: the provider is overloaded (529 or an `overloaded_error` event).
    #[error("the provider is overloaded: {message}")]
    Overloaded { message: String },
    /// The provider refused the request as it is (other 4xx).
    #[error("the provider refused the request ({status}): {message}")]
    Rejected { status: u16, message: String },
    /// The provider failed (5xx) and retries did not help.
    #[error("the provider failed ({status}): {message}")]
    Server { status: u16, message: String },
    /// No connection, or it broke before the first byte of an answer.
    #[error("cannot reach {endpoint}: {message}")]
    Transport { endpoint: String, message: String },
    /// The answer broke off. What had arrived is in `partial` and is kept, marked.
    #[error("the answer was cut off: {cause}")]
    StreamCut { cause: CutCause, partial: Box<AssistantTurn> },
    /// What came is not the protocol.
    #[error("unexpected answer from {endpoint}: {message}")]
    Protocol { endpoint: String, message: String },
    /// The backend has no default model.
    #[error("{backend} needs a model: name one with --model, or set it in the settings")]
    NoModel { backend: &'static str },
    /// There is no backend of this name.
    #[error("there is no backend \"{name}\"; one of: {known}")]
    UnknownBackend { name: String, known: String },
    /// Nothing is configured, and nobody is there to be shown the demo.
    #[error(
        "no backend is configured. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a backend with --backend (demo needs no key)"
    )]
    NoBackend,
    /// A worker failed (workers crate).
    #[error("worker: {message}")]
    Worker { message: String },
}

/// How a stream broke off.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CutCause {
    #[error("the connection closed before the end of the message")]
    ConnectionClosed,
    #[error("no data for {} s", .0.as_secs())]
    Idle(Duration),
    #[error("the provider reported {kind}: {message}")]
    Provider { kind: String, message: String },
    #[error("the connection broke: {0}")]
    Transport(String),
    /// A worker failed; its own words say how.
    #[error("{0}")]
    Worker(String),
}
