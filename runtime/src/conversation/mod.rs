//! The turn loop: ask the model, run what it wants once that is allowed, until it is done.
//!
//! What a backend *returns* enters the session; what it emitted on the way was for eyes. Refuses to
//! know who listens, and never recognises an error by its text.

mod adopt;
mod draft;
mod recovery;
mod redacted;
mod repeats;
mod request;
mod tools;
mod unasked;

use std::sync::Arc;

use crate::api::{ApiClient, ApiError, Steering, StopReason};
use crate::compact::AutoCompaction;
use crate::context::TurnContext;
use crate::error::RuntimeError;
use crate::event::TuiEvent;
use crate::hooks::{HookRunner, NoHooks};
use crate::permissions::{PermissionMode, PermissionPolicy};
use crate::redact::Redactor;
use crate::session::{
    ConversationMessage, MessageRole, OpenSession, PartialReason, Session, SessionError,
    SessionStore,
};
use crate::tools::{ToolExecutor, ToolSpec};
use crate::usage::{TokenUsage, UsageReport, UsageTracker};

use redacted::RedactedSink;

pub use recovery::CompactionReport;

/// Calls to the model in one turn before it is stopped, visibly.
pub const DEFAULT_MAX_ITERATIONS: usize = 200;

/// Why a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnStop {
    /// The model was done; the reason says whether normally.
    Finished(StopReason),
    /// The person stopped it.
    Cancelled,
    /// The iteration cap was reached.
    IterationLimit(usize),
    /// See the error of `TurnFailed`.
    Failed,
}

/// What a turn was. Equals what was streamed.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnSummary {
    pub stop: TurnStop,
    /// All text of the assistant in this turn, messages joined by a blank line.
    pub text: String,
    /// Tool calls with results in this turn, denied ones included.
    pub tool_calls: usize,
    pub iterations: usize,
    /// Sum over the calls of this turn.
    pub usage: TokenUsage,
    /// Messages removed by automatic compaction in this turn, if it happened.
    pub auto_compaction: Option<usize>,
}

impl TurnSummary {
    fn new() -> Self {
        Self {
            stop: TurnStop::Failed,
            text: String::new(),
            tool_calls: 0,
            iterations: 0,
            usage: TokenUsage::default(),
            auto_compaction: None,
        }
    }

    fn add_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }
}

/// A conversation with one backend and one set of tools.
pub struct ConversationRuntime<C, T> {
    session: OpenSession,
    client: C,
    tools: T,
    specs: Arc<[ToolSpec]>,
    system: Arc<[String]>,
    model: String,
    context_window: Option<u64>,
    thinking: bool,
    policy: PermissionPolicy,
    hooks: Box<dyn HookRunner>,
    usage: UsageTracker,
    redactor: Redactor,
    auto_compaction: AutoCompaction,
    max_iterations: usize,
    /// Saving failed and the person was told; told again only after a save that worked.
    unsaved: bool,
}

impl<C: ApiClient, T: ToolExecutor> ConversationRuntime<C, T> {
    /// A conversation over `session`; usage is summed again from its messages.
    pub fn new(session: OpenSession, client: C, tools: T, model: impl Into<String>) -> Self {
        let specs = tools.specs().into();
        let usage = UsageTracker::from_session(session.session());
        Self {
            session,
            client,
            tools,
            specs,
            system: Arc::from([]),
            model: model.into(),
            context_window: None,
            thinking: true,
            policy: PermissionPolicy::new(PermissionMode::WorkspaceWrite),
            hooks: Box::new(NoHooks),
            usage,
            redactor: Redactor::default(),
            auto_compaction: AutoCompaction::default(),
            max_iterations: DEFAULT_MAX_ITERATIONS,
            unsaved: false,
        }
    }

    #[must_use]
    pub fn with_system_prompt(mut self, blocks: Vec<String>) -> Self {
        self.system = blocks.into();
        self
    }

    #[must_use]
    pub fn with_permission_mode(mut self, mode: PermissionMode) -> Self {
        self.policy.set_mode(mode);
        self
    }

    #[must_use]
    pub fn with_hooks(mut self, hooks: Box<dyn HookRunner>) -> Self {
        self.hooks = hooks;
        self
    }

    #[must_use]
    pub fn with_max_iterations(mut self, limit: usize) -> Self {
        self.max_iterations = limit.max(1);
        self
    }

    #[must_use]
    pub fn with_usage(mut self, usage: UsageTracker) -> Self {
        self.usage = usage;
        self
    }

    /// What models say is told and kept without the values that this redactor knows.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Tokens of the current context at which the conversation is compacted by itself.
    #[must_use]
    pub fn with_auto_compaction_input_tokens_threshold(mut self, tokens: u64) -> Self {
        self.set_auto_compaction_input_tokens_threshold(tokens);
        self
    }

    pub fn set_auto_compaction_input_tokens_threshold(&mut self, tokens: u64) {
        self.auto_compaction = AutoCompaction::new(tokens);
    }

    /// Tokens of the current context at which the conversation is compacted by itself.
    pub fn auto_compaction_threshold(&self) -> u64 {
        self.auto_compaction.threshold()
    }

    pub fn session(&self) -> &Session {
        self.session.session()
    }

    pub fn open_session(&self) -> &OpenSession {
        &self.session
    }

    pub fn open_session_mut(&mut self) -> &mut OpenSession {
        &mut self.session
    }

    /// Continues with another session. Grants given "for this session" end with the old one.
    pub fn replace_session(&mut self, session: OpenSession) -> OpenSession {
        self.usage.restart(session.session());
        self.policy.clear_grants();
        self.auto_compaction = AutoCompaction::new(self.auto_compaction.threshold());
        self.unsaved = false;
        std::mem::replace(&mut self.session, session)
    }

    /// Continues with another backend; the history stays. Returns the old one, to be closed.
    #[must_use]
    pub fn replace_client(&mut self, client: C, model: String, context_window: Option<u64>) -> C {
        let old = std::mem::replace(&mut self.client, client);
        self.set_model(model, context_window);
        old
    }

    pub fn set_model(&mut self, model: String, context_window: Option<u64>) {
        // A refusal is told with the next message, which is refused too.
        let _told_later = self.session.set_model(&model);
        self.model = model;
        self.context_window = context_window;
    }

    /// Tokens of the model's window, for the meter.
    pub fn set_context_window(&mut self, tokens: Option<u64>) {
        self.context_window = tokens;
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    pub fn permission_mode(&self) -> PermissionMode {
        self.policy.mode()
    }

    pub fn set_permission_mode(&mut self, mode: PermissionMode) {
        self.policy.set_mode(mode);
    }

    pub fn usage(&self) -> &UsageTracker {
        &self.usage
    }

    pub fn usage_report(&self) -> UsageReport {
        self.usage.report(self.context_window)
    }

    /// Estimated tokens of the messages as they are.
    pub fn estimated_tokens(&self) -> u64 {
        self.session.session().estimated_tokens()
    }

    /// A copy of the conversation under an id of its own, with this one as its parent.
    pub fn fork_session(
        &self,
        store: &SessionStore,
        branch: Option<&str>,
    ) -> Result<OpenSession, SessionError> {
        store.fork(&self.session, branch)
    }

    /// The backend's way in for prompts during a turn.
    pub fn steering(&self) -> Option<Arc<dyn Steering>> {
        self.client.steering()
    }

    /// Whether the backend keeps the context of the conversation itself.
    pub fn backend_owns_context(&self) -> bool {
        self.client.owns_context()
    }

    /// Runs a turn for this input. The last event is `TurnCompleted` or `TurnFailed`.
    ///
    /// A prompt whose earlier turn failed before any answer is not repeated in the session when it
    /// is sent again.
    pub async fn run_turn(
        &mut self,
        input: &str,
        cx: &TurnContext,
    ) -> Result<TurnSummary, Arc<RuntimeError>> {
        let cx = &self.without_secrets(cx);
        cx.sink.emit(TuiEvent::TurnStarted { input: input.to_owned(), retry: false });
        let unanswered = self
            .session()
            .messages
            .last()
            .is_some_and(|last| last.role == MessageRole::User && last.text() == input);
        if !unanswered {
            self.push(ConversationMessage::user(input), cx);
        }
        self.sync(cx);
        self.finish_turn(cx).await
    }

    /// Runs the last prompt again, without repeating it: after a failure, or after a cut answer.
    pub async fn retry_turn(&mut self, cx: &TurnContext) -> Result<TurnSummary, Arc<RuntimeError>> {
        let cx = &self.without_secrets(cx);
        let input = self.last_prompt().map(|message| message.text()).unwrap_or_default();
        cx.sink.emit(TuiEvent::TurnStarted { input, retry: true });
        self.finish_turn(cx).await
    }

    /// The same context; what is told passes the redactor.
    fn without_secrets(&self, cx: &TurnContext) -> TurnContext {
        let sink = RedactedSink::new(Arc::clone(&cx.sink), self.redactor.clone());
        TurnContext { sink: Arc::new(sink), ..cx.clone() }
    }

    /// Whether `retry_turn` has something to do: a prompt without a whole answer.
    pub fn can_retry(&self) -> bool {
        self.session().messages.last().is_some_and(|last| match last.role {
            MessageRole::User | MessageRole::Tool => true,
            MessageRole::Assistant => last.partial.is_some(),
            MessageRole::System => false,
        })
    }

    async fn finish_turn(&mut self, cx: &TurnContext) -> Result<TurnSummary, Arc<RuntimeError>> {
        let mut summary = TurnSummary::new();
        let result = self.run_iterations(&mut summary, cx).await;
        self.sync(cx);
        match result {
            Ok(stop) => {
                summary.stop = stop;
                cx.sink.emit(TuiEvent::TurnCompleted { summary: summary.clone() });
                Ok(summary)
            }
            Err(error) => {
                let error = Arc::new(error);
                cx.sink.emit(TuiEvent::TurnFailed { error: Arc::clone(&error), summary });
                Err(error)
            }
        }
    }

    async fn run_iterations(
        &mut self,
        summary: &mut TurnSummary,
        cx: &TurnContext,
    ) -> Result<TurnStop, RuntimeError> {
        // The answer to a cut message replaces it, so its leftovers must not wait for results.
        self.answer_dangling_tool_uses("not run: the answer that asked for it was cut off", cx);
        loop {
            if cx.cancel.is_cancelled() {
                return Ok(TurnStop::Cancelled);
            }
            if summary.iterations == self.max_iterations {
                return Ok(TurnStop::IterationLimit(self.max_iterations));
            }
            summary.iterations += 1;
            let turn = match self.request_with_recovery(summary, cx).await {
                Ok(turn) => turn,
                Err(RuntimeError::Api(ApiError::StreamCut { cause, partial })) => {
                    self.adopt((*partial).clone(), Some(PartialReason::Cut), summary, cx);
                    self.answer_dangling_tool_uses("not run: the answer was cut off", cx);
                    return Err(ApiError::StreamCut { cause, partial }.into());
                }
                Err(error) => return Err(error),
            };
            let stop_reason = turn.stop_reason.clone();
            let partial =
                (stop_reason == StopReason::Cancelled).then_some(PartialReason::Cancelled);
            let pending = self.adopt(turn, partial, summary, cx);
            match stop_reason {
                StopReason::Cancelled => {
                    self.answer_dangling_tool_uses("interrupted before it ran", cx);
                    return Ok(TurnStop::Cancelled);
                }
                // A call cut at the output limit may be incomplete: never run it.
                StopReason::MaxTokens | StopReason::Refusal => {
                    self.answer_dangling_tool_uses("not run: the answer ended early", cx);
                    return Ok(TurnStop::Finished(stop_reason));
                }
                StopReason::PauseTurn if pending.is_empty() => {}
                _ if pending.is_empty() => {
                    self.compact_if_due(summary, cx);
                    return Ok(TurnStop::Finished(stop_reason));
                }
                _ => {
                    self.run_tools(pending, summary, cx).await;
                    self.compact_if_due(summary, cx);
                }
            }
        }
    }

    /// Appends to the session. A failure to save is told once; the conversation goes on in memory.
    fn push(&mut self, message: ConversationMessage, cx: &TurnContext) {
        let saved = self.session.push(Arc::new(message));
        self.told_whether_saved(saved, cx);
    }

    fn sync(&mut self, cx: &TurnContext) {
        let saved = self.session.sync();
        self.told_whether_saved(saved, cx);
    }

    fn told_whether_saved(&mut self, saved: Result<(), SessionError>, cx: &TurnContext) {
        match saved {
            Ok(()) => self.unsaved = false,
            Err(error) if !self.unsaved => {
                self.unsaved = true;
                cx.sink.emit(TuiEvent::error(error.to_string()));
            }
            Err(_) => {}
        }
    }

    fn last_prompt(&self) -> Option<&Arc<ConversationMessage>> {
        self.session().messages.iter().rev().find(|message| message.role == MessageRole::User)
    }
}
