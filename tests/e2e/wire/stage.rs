//! One client, one mock server, one recorder of events: the stage of every wire test.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use claw_runtime::api::anthropic::{AnthropicClient, AnthropicConfig};
use claw_runtime::api::openai::{OpenAiClient, OpenAiConfig, Preset};
use claw_runtime::api::retry::RetryConfig;
use claw_runtime::api::transport::{Credential, Secret, Timing};
use claw_runtime::api::{ApiClient, ApiError, ApiRequest, AssistantTurn};
use claw_runtime::permissions::{DenyAll, PermissionMode};
use claw_runtime::session::{ContentBlock, ConversationMessage};
use claw_runtime::{StreamSink, TuiEvent, TurnContext};
use claw_tests::mock_api::{MockApi, PATIENCE, Reply};
use tokio_util::sync::CancellationToken;

/// The key of every test: it must never be seen in an event, an error or a Debug.
pub const KEY: &str = "sk-marker-0123456789";

/// Records events as one line each.
#[derive(Default)]
pub struct Recorder {
    lines: Mutex<Vec<String>>,
    changed: Condvar,
}

impl StreamSink for Recorder {
    fn emit(&self, event: TuiEvent) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line(&event));
        self.changed.notify_all();
    }
}

impl Recorder {
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Blocks until `count` events begin with `start`.
    pub fn wait_for(&self, start: &str, count: usize) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = |lines: &mut Vec<String>| {
            lines.iter().filter(|line| line.starts_with(start)).count() < count
        };
        let (lines, timeout) = self
            .changed
            .wait_timeout_while(lines, PATIENCE, missing)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "waited in vain for {count} x {start:?}: {lines:#?}");
    }
}

fn line(event: &TuiEvent) -> String {
    match event {
        TuiEvent::TextDelta { text } => format!("text {text}"),
        TuiEvent::ThinkingStarted => "thinking".to_owned(),
        TuiEvent::ThinkingDelta { text } => format!("think {text}"),
        TuiEvent::ThinkingEnded { redacted: true, char_count: 0 } => "thought hidden".to_owned(),
        TuiEvent::ThinkingEnded { char_count, .. } => format!("thought {char_count}"),
        TuiEvent::ToolUseStarted { id, name } => format!("call {id} {name}"),
        TuiEvent::ToolUse { id, name, input } => format!("called {id} {name} {input}"),
        TuiEvent::ToolUseIncomplete { id, name } => format!("incomplete {id} {name}"),
        TuiEvent::MessageStop { stop_reason } => format!("stop {stop_reason:?}"),
        TuiEvent::Stalled { .. } => "stalled".to_owned(),
        TuiEvent::Retrying { attempt, max_attempts, wait, reason } => {
            format!("retry {attempt}/{max_attempts} in {wait:?}: {reason}")
        }
        other => format!("{other:?}"),
    }
}

pub type Answer = Result<AssistantTurn, ApiError>;

pub struct Stage {
    pub api: MockApi,
    pub sink: Arc<Recorder>,
    pub cancel: CancellationToken,
    pub timing: Timing,
    pub retry: RetryConfig,
    pub request: ApiRequest,
}

impl Stage {
    /// Waits are short where they are waited out, and long where they must not be.
    pub fn new() -> Self {
        let long = PATIENCE * 2;
        Self {
            api: MockApi::start(),
            sink: Arc::default(),
            cancel: CancellationToken::new(),
            timing: Timing {
                connect_timeout: long,
                idle_timeout: long,
                stall_notice_after: long,
                stall_notice_every: long,
            },
            retry: RetryConfig {
                max_retries: 2,
                min_wait: Duration::from_millis(1),
                max_wait: Duration::from_millis(2),
                jitter: false,
                max_retry_after: Duration::from_secs(5),
            },
            request: request(),
        }
    }

    /// A stage whose server gives these replies.
    pub fn with(replies: impl IntoIterator<Item = Reply>) -> Self {
        let stage = Self::new();
        replies.into_iter().for_each(|reply| stage.api.push(reply));
        stage
    }

    pub fn anthropic(&self) -> AnthropicClient {
        let mut config = AnthropicConfig::new(Credential::ApiKey(Secret::new(KEY)));
        self.api.base_url().clone_into(&mut config.base_url);
        config.timing = self.timing.clone();
        config.retry = self.retry.clone();
        AnthropicClient::new(config).unwrap()
    }

    pub fn openai(&self) -> OpenAiClient {
        let mut config = OpenAiConfig::new(Preset::OpenAi, Credential::AuthToken(Secret::new(KEY)));
        config.base_url = format!("{}/v1", self.api.base_url());
        config.timing = self.timing.clone();
        config.retry = self.retry.clone();
        OpenAiClient::new(config).unwrap()
    }

    /// A context that records and can be cancelled; every question is denied.
    pub fn context(&self) -> TurnContext {
        TurnContext {
            sink: self.sink.clone(),
            prompter: Arc::new(DenyAll { reason: "nobody asks here".to_owned() }),
            cancel: self.cancel.clone(),
        }
    }

    /// Begins a request on a thread of its own.
    pub fn start(&self, mut client: impl ApiClient + 'static) -> JoinHandle<Answer> {
        let cx = self.context();
        let request = self.request.clone();
        std::thread::spawn(move || runtime().block_on(async { client.stream(request, &cx).await }))
    }

    /// A whole request to the Messages API.
    pub fn ask(&self) -> Answer {
        self.start(self.anthropic()).join().unwrap()
    }

    /// A whole request to chat completions.
    pub fn ask_chat(&self) -> Answer {
        self.start(self.openai()).join().unwrap()
    }

    #[track_caller]
    pub fn check_events(&self, expected: &[&str]) {
        assert_eq!(self.sink.lines(), expected);
    }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// One question of the user to the default model, thinking not asked for.
pub fn request() -> ApiRequest {
    ApiRequest {
        model: "claude-opus-4-7".to_owned(),
        system: Arc::from([]),
        messages: vec![Arc::new(ConversationMessage::user("hi"))],
        tools: Arc::from([]),
        session_id: "session".to_owned(),
        thinking: false,
        fork_of: None,
        permission_mode: PermissionMode::WorkspaceWrite,
    }
}

/// The blocks of a turn of one message.
#[track_caller]
pub fn blocks(turn: &AssistantTurn) -> &[ContentBlock] {
    assert_eq!(turn.messages.len(), 1, "{turn:?}");
    &turn.messages[0].blocks
}

pub fn text(text: &str) -> ContentBlock {
    ContentBlock::Text { text: text.to_owned() }
}

pub fn tool_use(id: &str, name: &str, input: &str) -> ContentBlock {
    ContentBlock::ToolUse { id: id.to_owned(), name: name.to_owned(), input: input.to_owned() }
}
