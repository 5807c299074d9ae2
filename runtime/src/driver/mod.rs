//! The driver owns the conversation on the runtime thread and turns commands into calls.
//!
//! The front-end holds only the sending end of [`Command`]s and a turn's cancel token; everything
//! comes back as events. Commands are taken one after another: one that arrives during a turn waits
//! until the turn has ended. Only `Steer` is for the turn that runs.

mod backends;
mod export;
mod orders;
mod report;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use crate::api::{ApiClient, SteerError};
use crate::compact::CompactionConfig;
use crate::context::TurnContext;
use crate::conversation::ConversationRuntime;
use crate::event::{StreamSink, TuiEvent};
use crate::permissions::{PermissionMode, PermissionPrompter};
use crate::session::{OpenSession, SessionError, SessionFork, SessionStore, now_ms};
use crate::tools::ToolExecutor;
use crate::usage::UsageReport;

use orders::Orders;

pub use backends::{Backend, BackendRow, Backends, OpenBackend};

/// Earlier prompts that the composer can recall.
const RECALLED_PROMPTS: usize = 200;

/// What a front-end may order.
#[derive(Debug)]
pub enum Command {
    /// Runs a turn. The token stops it.
    Submit {
        input: String,
        cancel: CancellationToken,
    },
    /// Runs the last, unanswered or partial, turn again without repeating the prompt.
    Retry {
        cancel: CancellationToken,
    },
    /// A prompt for the turn that runs. What came of it is told by `TuiEvent::Steered`.
    Steer {
        input: String,
    },
    Compact {
        cancel: CancellationToken,
    },
    /// Stops a turn that nobody here asked for, if one runs.
    StopUnasked,
    /// A fresh session; the old one stays on disk.
    Clear,
    ListSessions,
    /// Forks the current session and opens the fork.
    Fork {
        branch: Option<String>,
    },
    /// Opens a session by id, unique prefix, path or `latest`.
    Open {
        reference: String,
    },
    /// Writes the conversation as markdown; without a path into the workspace.
    Export {
        path: Option<PathBuf>,
    },
    SetModel {
        model: String,
    },
    SetMode {
        mode: PermissionMode,
    },
    /// Switches the backend by name; none means the next one that is configured.
    SetBackend {
        name: Option<String>,
    },
    /// Text for `/status`, `/cost`, `/context`, `/config`.
    Report {
        topic: ReportTopic,
    },
    /// Ends the thread; the sender cancels what is running first.
    Shutdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportTopic {
    Status,
    Cost,
    Context,
    Config,
}

/// Facts for the status line.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeStatus {
    /// "anthropic", "openai", "claude", "demo".
    pub backend: String,
    /// One line about the backend that must stay visible (the demo says that it is a demo).
    pub backend_note: Option<String>,
    pub model: String,
    pub mode: PermissionMode,
    pub session_id: String,
    pub fork: Option<SessionFork>,
    pub usage: UsageReport,
    /// All backends that could be switched to, in order.
    pub backends: Vec<String>,
    /// Models worth offering for this backend.
    pub models: Vec<String>,
    /// Whether the backend takes prompts during a turn.
    pub steering: bool,
}

/// The conversation of the program: any backend, any tools.
pub type Conversation = ConversationRuntime<Box<dyn ApiClient>, Box<dyn ToolExecutor>>;

/// What the driver is started with.
pub struct DriverParts {
    pub conversation: Conversation,
    pub store: SessionStore,
    pub backends: Backends,
    /// The backend that `conversation` was made with.
    pub backend: BackendFacts,
    /// Rows for `/config`: key, value, where it comes from.
    pub config: Vec<(String, String, String)>,
    pub sink: Arc<dyn StreamSink>,
    pub prompter: Arc<dyn PermissionPrompter>,
    /// The first session was loaded rather than begun.
    pub resumed: bool,
    /// Told once at the start: settings that were not understood, a prompt file that was cut.
    pub warnings: Vec<String>,
}

/// The part of a [`Backend`] that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendFacts {
    pub name: String,
    pub note: Option<String>,
}

/// Owns the conversation; lives on the runtime thread.
pub struct Driver {
    parts: DriverParts,
}

impl Driver {
    pub fn new(parts: DriverParts) -> Self {
        Self { parts }
    }

    /// Takes commands until `Shutdown` or until every sender is gone. `RuntimeEnded` is the last
    /// event.
    pub async fn run(mut self, commands: UnboundedReceiver<Command>) {
        self.tell_session(self.parts.resumed);
        for warning in self.take_warnings() {
            self.emit(TuiEvent::warning(warning));
        }
        let mut orders = Orders::new(commands);
        while let Some(command) = self.next(&mut orders).await {
            if matches!(command, Command::Shutdown) {
                break;
            }
            self.execute(command, &mut orders).await;
        }
        let sink = Arc::clone(&self.parts.sink);
        self.close().await;
        sink.emit(TuiEvent::RuntimeEnded);
    }

    /// Runs one turn to its end, for callers without a front-end.
    pub async fn run_one(
        &mut self,
        input: &str,
        cancel: CancellationToken,
    ) -> Result<crate::TurnSummary, Arc<crate::RuntimeError>> {
        let cx = self.context(cancel);
        self.parts.conversation.run_turn(input, &cx).await
    }

    /// Ends what the backend keeps running, in bounded time.
    pub async fn close(mut self) {
        self.settle().await;
    }

    /// Nothing of the backend goes on, and what it told is in the session.
    async fn settle(&mut self) {
        let cx = self.context(CancellationToken::new());
        self.parts.conversation.settle(&cx).await;
    }

    /// What is to be told once at the start; a caller without events takes it from here.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.parts.warnings)
    }

    /// The next order. Meanwhile the backend may have a turn that nobody here asked for; an order
    /// that comes in its middle goes first, and the backend brings what it told with the next turn.
    async fn next(&mut self, orders: &mut Orders) -> Option<Command> {
        loop {
            let cx = self.context(CancellationToken::new());
            tokio::select! {
                biased;
                command = orders.next() => return command,
                summary = self.parts.conversation.take_unasked(&cx) => {
                    self.emit(TuiEvent::UnaskedTurnEnded { summary });
                    self.tell_status();
                }
            }
        }
    }

    async fn execute(&mut self, command: Command, orders: &mut Orders) {
        match command {
            Command::Submit { input, cancel } => self.submit(&input, cancel, orders).await,
            Command::Retry { cancel } => self.retry(cancel, orders).await,
            Command::Steer { input } => {
                let outcome = Err(SteerError::Refused("no turn is running".to_owned()));
                self.emit(TuiEvent::Steered { input, outcome });
            }
            Command::Compact { cancel } => {
                let cx = self.context(cancel);
                let config = CompactionConfig::requested();
                let compaction = self.parts.conversation.compact_on_request(&config, &cx);
                // Nothing can be said into a compaction.
                orders.during(compaction, None, cx.sink.as_ref()).await;
                self.tell_status();
            }
            Command::Clear => {
                self.open(|parts| Ok(parts.store.create(parts.conversation.model())), false).await;
            }
            Command::ListSessions => {
                let current = self.parts.conversation.session().id.clone();
                let sessions = self.parts.store.list(Some(&current));
                self.emit(TuiEvent::SessionsListed { sessions, now_ms: now_ms() });
            }
            Command::Fork { branch } => {
                self.open(
                    |parts| parts.conversation.fork_session(&parts.store, branch.as_deref()),
                    true,
                )
                .await;
            }
            Command::Open { reference } => {
                self.open(|parts| parts.store.resume(&reference), true).await;
            }
            Command::Export { path } => {
                let session = self.parts.conversation.session();
                match export::export(session, path, self.parts.store.redactor()) {
                    Ok(path) => self.emit(TuiEvent::Exported { path }),
                    Err(error) => self.emit(TuiEvent::error(error.to_string())),
                }
            }
            Command::SetModel { model } => self.set_model(&model).await,
            Command::SetMode { mode } => {
                self.parts.conversation.set_permission_mode(mode);
                self.tell_status();
            }
            Command::SetBackend { name } => self.set_backend(name).await,
            Command::Report { topic } => {
                let (title, markdown) = report::report(topic, &self.parts, &self.status());
                self.emit(TuiEvent::Reply { title, markdown });
            }
            Command::StopUnasked => self.parts.conversation.stop_unasked(),
            Command::Shutdown => {}
        }
    }

    async fn submit(&mut self, input: &str, cancel: CancellationToken, orders: &mut Orders) {
        self.record_prompt(input);
        let cx = self.context(cancel);
        let steering = self.parts.conversation.steering();
        // The outcome has been told by the last event of the turn.
        let turn = self.parts.conversation.run_turn(input, &cx);
        let (_told, steered) = orders.during(turn, steering, cx.sink.as_ref()).await;
        self.after_turn(&steered);
    }

    async fn retry(&mut self, cancel: CancellationToken, orders: &mut Orders) {
        if !self.parts.conversation.can_retry() {
            self.emit(TuiEvent::NothingToRetry);
            return;
        }
        let cx = self.context(cancel);
        let steering = self.parts.conversation.steering();
        let turn = self.parts.conversation.retry_turn(&cx);
        let (_told, steered) = orders.during(turn, steering, cx.sink.as_ref()).await;
        self.after_turn(&steered);
    }

    fn after_turn(&mut self, steered: &[String]) {
        for input in steered {
            self.record_prompt(input);
        }
        self.tell_status();
    }

    fn record_prompt(&mut self, input: &str) {
        if let Err(error) = self.parts.conversation.open_session_mut().record_prompt(input) {
            tracing::warn!(%error, "the prompt history is not being saved");
        }
    }

    /// Opens another session; on failure the current one stays.
    async fn open(
        &mut self,
        open: impl FnOnce(&DriverParts) -> Result<OpenSession, SessionError>,
        resumed: bool,
    ) {
        // What the backend still tells belongs into the session that it leaves.
        self.settle().await;
        match open(&self.parts) {
            Ok(session) => {
                drop(self.parts.conversation.replace_session(session));
                self.tell_session(resumed);
            }
            Err(error) => self.emit(TuiEvent::error(error.to_string())),
        }
    }

    async fn set_model(&mut self, model: &str) {
        let name = self.parts.backend.name.clone();
        match self.parts.backends.open(&name, Some(model)) {
            Ok(backend) => self.take_backend(backend).await,
            Err(error) => self.emit(TuiEvent::error(error.to_string())),
        }
    }

    async fn set_backend(&mut self, name: Option<String>) {
        let names = self.parts.backends.names();
        let current = self.parts.backend.name.clone();
        let wanted = name.or_else(|| {
            let at = names.iter().position(|name| *name == current).unwrap_or(0);
            names.get((at + 1) % names.len().max(1)).cloned()
        });
        match wanted {
            Some(name) if name == current => self.emit(TuiEvent::info(format!(
                "{current} is the only configured backend. Set ANTHROPIC_API_KEY or OPENAI_API_KEY before starting to have another."
            ))),
            Some(name) => match self.parts.backends.open(&name, None) {
                Ok(backend) => self.take_backend(backend).await,
                Err(error) => self.emit(TuiEvent::error(error.to_string())),
            },
            None => {}
        }
    }

    async fn take_backend(&mut self, backend: Backend) {
        self.settle().await;
        self.parts.backend = BackendFacts { name: backend.name, note: backend.note };
        drop(self.parts.conversation.replace_client(
            backend.client,
            backend.model,
            backend.context_window,
        ));
        self.tell_status();
    }

    fn tell_session(&self, resumed: bool) {
        let mut view = self.parts.conversation.open_session().view(resumed);
        // The composer recalls what was typed in this workspace, this session's own prompts last.
        let mut recalled = self.parts.store.recent_prompts(RECALLED_PROMPTS);
        recalled.retain(|prompt| !view.prompt_history.contains(prompt));
        recalled.append(&mut view.prompt_history);
        view.prompt_history = recalled;
        self.emit(TuiEvent::SessionOpened { view });
        self.tell_status();
    }

    fn tell_status(&self) {
        self.emit(TuiEvent::StatusChanged { status: self.status() });
    }

    fn status(&self) -> RuntimeStatus {
        let session = self.parts.conversation.session();
        RuntimeStatus {
            backend: self.parts.backend.name.clone(),
            backend_note: self.parts.backend.note.clone(),
            model: self.parts.conversation.model().to_owned(),
            mode: self.parts.conversation.permission_mode(),
            session_id: session.id.clone(),
            fork: session.fork.clone(),
            usage: self.parts.conversation.usage_report(),
            backends: self.parts.backends.names(),
            models: self.parts.backends.models(&self.parts.backend.name),
            steering: self.parts.conversation.steering().is_some(),
        }
    }

    fn context(&self, cancel: CancellationToken) -> TurnContext {
        TurnContext {
            sink: Arc::clone(&self.parts.sink),
            prompter: Arc::clone(&self.parts.prompter),
            cancel,
        }
    }

    fn emit(&self, event: TuiEvent) {
        self.parts.sink.emit(event);
    }
}
