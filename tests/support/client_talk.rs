//! A conversation with a worker as a backend, without the front-end: our side of the session, the
//! person's answers by script, and what was told.

#![expect(clippy::expect_used, reason = "support code fails the test that uses it by panicking")]
#![expect(clippy::missing_panics_doc, reason = "panicking is how a test fails")]

use std::sync::{Arc, Mutex, PoisonError};

use claw_runtime::api::{ApiClient as _, ApiRequest};
use claw_runtime::permissions::{
    PermissionLevel, PermissionMode, PermissionPromptDecision, PermissionPrompter,
    PermissionRequest,
};
use claw_runtime::session::{ContentBlock, ConversationMessage};
use claw_runtime::tools::{Grant, Requirement, ToolCall};
use claw_runtime::{StreamSink, TuiEvent, TurnContext};
use claw_workers::{Host, Judge, Memory, WorkerClient, WorkerClientParts, WorkerConfig};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::mock_api::PATIENCE;

/// Every tool needs everything.
struct Strict;

impl Judge for Strict {
    fn requirement(&self, _call: &ToolCall) -> Requirement {
        let grant = Grant { key: String::new(), words: String::new() };
        Requirement { level: PermissionLevel::DangerFullAccess, always_ask: None, grant }
    }

    fn preview(&self, _call: &ToolCall) -> Option<String> {
        None
    }
}

struct Told(UnboundedSender<TuiEvent>);

impl StreamSink for Told {
    fn emit(&self, event: TuiEvent) {
        let _ = self.0.send(event);
    }
}

type Answering = dyn FnMut(&PermissionRequest) -> PermissionPromptDecision + Send;

/// Answers by a function, and remembers what was asked.
struct Person {
    answer: Mutex<Box<Answering>>,
    asked: Arc<Mutex<Vec<PermissionRequest>>>,
}

impl PermissionPrompter for Person {
    fn decide<'a>(
        &'a self,
        request: PermissionRequest,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionPromptDecision> {
        let decision = (self.answer.lock().unwrap_or_else(PoisonError::into_inner))(&request);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        Box::pin(std::future::ready(decision))
    }
}

/// Drop it after [`end`](Self::end).
pub struct ClientTalk {
    pub client: WorkerClient,
    pub messages: Vec<Arc<ConversationMessage>>,
    pub cx: TurnContext,
    pub told: UnboundedReceiver<TuiEvent>,
    asked: Arc<Mutex<Vec<PermissionRequest>>>,
    _sessions: tempfile::TempDir,
}

impl ClientTalk {
    pub fn new(
        config: WorkerConfig,
        host: Arc<Host>,
        answer: impl FnMut(&PermissionRequest) -> PermissionPromptDecision + Send + 'static,
    ) -> Self {
        let sessions = tempfile::tempdir().expect("a folder");
        let memory = Memory::new(sessions.path().to_owned());
        let client =
            WorkerClient::new(WorkerClientParts { config, memory, judge: Arc::new(Strict), host });
        let (sender, told) = unbounded_channel();
        let asked = Arc::default();
        let person = Person { answer: Mutex::new(Box::new(answer)), asked: Arc::clone(&asked) };
        let cx = TurnContext {
            sink: Arc::new(Told(sender)),
            prompter: Arc::new(person),
            cancel: CancellationToken::new(),
        };
        Self { client, messages: Vec::new(), cx, told, asked, _sessions: sessions }
    }

    /// One prompt and all that was said to it.
    pub async fn say(&mut self, text: &str) -> String {
        self.messages.push(Arc::new(ConversationMessage::user(text)));
        let request = ApiRequest {
            model: String::new(),
            system: Arc::default(),
            messages: self.messages.clone(),
            tools: Arc::default(),
            session_id: "ours".to_owned(),
            fork_of: None,
            thinking: false,
            permission_mode: PermissionMode::Prompt,
        };
        let turn = self.client.stream(request, &self.cx);
        let turn = tokio::time::timeout(PATIENCE, turn).await.expect("it ends").expect("a turn");
        let said = turn.messages.iter().flat_map(|message| &message.blocks);
        let said = said.filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let said = said.collect();
        self.messages.extend(turn.messages.into_iter().map(Arc::new));
        said
    }

    /// What the person was asked so far.
    pub fn asked(&self) -> Vec<PermissionRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub async fn end(mut self) {
        self.client.close().await;
    }
}
