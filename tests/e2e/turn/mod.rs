//! The turn ring: whole event sequences of `ConversationRuntime` over real tools and a real session
//! file, with a scripted backend and a scripted person.

mod backend_session;
mod context;
mod events;
mod stops;
mod tools;

use std::sync::Arc;

use claw_runtime::api::{ApiError, CutCause, StopReason};
use claw_runtime::conversation::{ConversationRuntime, TurnStop};
use claw_runtime::event::TuiEvent;
use claw_runtime::hooks::{HookEvent, HookRunner, PostToolOutcome, PreToolOutcome};
use claw_runtime::permissions::{PermissionMode, PermissionPromptDecision as Decision};
use claw_runtime::session::{ContentBlock, MessageRole, SessionStore};
use claw_runtime::tools::{ToolCall, ToolOutcome, ToolRegistry};
use claw_runtime::usage::TokenUsage;
use claw_runtime::{RuntimeError, TurnContext};
use claw_tests::turn::{
    Answer, RecordingSink, ScriptedClient, ScriptedPerson, answer, answer_with_usage,
    assistant_turn, failure, stream_parts, text, thinking, tool,
};
use futures_util::future::BoxFuture;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

type Conversation = ConversationRuntime<ScriptedClient, ToolRegistry>;

/// A conversation in an empty workspace, and what it is observed through.
struct Stage {
    conversation: Conversation,
    sink: Arc<RecordingSink>,
    person: Arc<ScriptedPerson>,
    requests: Arc<std::sync::Mutex<Vec<claw_runtime::api::ApiRequest>>>,
    cancel: CancellationToken,
    folder: TempDir,
}

impl Stage {
    fn new(answers: Vec<Answer>, decisions: Vec<Decision>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::open(folder.path()).unwrap();
        let session = store.create("scripted");
        let client = ScriptedClient::new(answers);
        let requests = client.requests();
        let tools =
            ToolRegistry::new(folder.path(), claw_runtime::redact::Redactor::default()).unwrap();
        let sink = RecordingSink::new();
        let person = ScriptedPerson::new(Arc::clone(&sink), decisions);
        Self {
            conversation: ConversationRuntime::new(session, client, tools, "scripted"),
            sink,
            person,
            requests,
            cancel: CancellationToken::new(),
            folder,
        }
    }

    fn with(mut self, change: impl FnOnce(Conversation) -> Conversation) -> Self {
        self.conversation = change(self.conversation);
        self
    }

    fn context(&self) -> TurnContext {
        TurnContext {
            sink: self.sink.clone(),
            prompter: self.person.clone(),
            cancel: self.cancel.clone(),
        }
    }

    async fn turn(&mut self, prompt: &str) -> Result<claw_runtime::TurnSummary, Arc<RuntimeError>> {
        let cx = self.context();
        self.conversation.run_turn(prompt, &cx).await
    }

    /// Texts of the user messages in the n-th request.
    fn prompts_in_request(&self, n: usize) -> Vec<String> {
        self.requests.lock().unwrap()[n]
            .messages
            .iter()
            .filter(|message| message.role == MessageRole::User)
            .map(|message| message.text())
            .collect()
    }

    /// The session as another process would load it.
    fn reloaded(&self) -> Vec<(MessageRole, String)> {
        let store = SessionStore::open(self.folder.path()).unwrap();
        let loaded = store.fork_of(self.conversation.open_session().id(), None).unwrap();
        loaded.session().messages.iter().map(|message| (message.role, message.text())).collect()
    }
}

/// Every tool use in the session has exactly one result.
fn assert_every_tool_use_has_a_result(conversation: &Conversation) {
    let mut open: Vec<String> = Vec::new();
    for message in &conversation.session().messages {
        for block in &message.blocks {
            match block {
                ContentBlock::ToolUse { id, .. } => open.push(id.clone()),
                ContentBlock::ToolResult { tool_use_id, .. } => {
                    let at = open.iter().position(|id| id == tool_use_id);
                    open.remove(at.expect("a result answers an open tool use"));
                }
                _ => {}
            }
        }
    }
    assert!(open.is_empty(), "tool uses without a result: {open:?}");
}
