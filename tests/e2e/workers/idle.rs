//! A worker that nobody uses is ended, unless something of it goes on; the next prompt finds its
//! session again.

use std::sync::Arc;
use std::time::Duration;

use claw_runtime::api::{ApiClient as _, ApiRequest};
use claw_runtime::permissions::{DenyAll, PermissionLevel, PermissionMode};
use claw_runtime::session::{ContentBlock, ConversationMessage};
use claw_runtime::tools::{Grant, Requirement, ToolCall};
use claw_runtime::{StreamSink, TuiEvent, TurnContext};
use claw_tests::mock_api::{Gate, MessagesStream, MockApi, PATIENCE};
use claw_tests::worker_stories::script_agent;
use claw_workers::{Judge, Memory, Transport, WorkerClient, WorkerClientParts};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::Fake;

/// Everything is harmless.
struct Harmless;

impl Judge for Harmless {
    fn requirement(&self, _call: &ToolCall) -> Requirement {
        let grant = Grant { key: String::new(), words: String::new() };
        Requirement { level: PermissionLevel::ReadOnly, always_ask: None, grant }
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

/// A client whose workers are ended when they are idle for `idle`, with our side of the conversation.
struct Talk {
    client: WorkerClient,
    messages: Vec<Arc<ConversationMessage>>,
    cx: TurnContext,
    told: UnboundedReceiver<TuiEvent>,
    fake: Fake,
    _sessions: tempfile::TempDir,
}

impl Talk {
    fn new(api: &MockApi, transport: Transport, idle: Duration) -> Self {
        let fake = Fake::new("332", transport);
        let mut config = fake.config(api);
        config.idle = Some(idle);
        let sessions = tempfile::tempdir().unwrap();
        let client = WorkerClient::new(WorkerClientParts {
            config,
            memory: Memory::new(sessions.path().to_owned()),
            judge: Arc::new(Harmless),
            host: fake.host.clone(),
        });
        let (sender, told) = unbounded_channel();
        let prompter = Arc::new(DenyAll { reason: "nobody is here".to_owned() });
        let cx = TurnContext {
            sink: Arc::new(Told(sender)),
            prompter,
            cancel: CancellationToken::new(),
        };
        Self { client, messages: Vec::new(), cx, told, fake, _sessions: sessions }
    }

    async fn say(&mut self, text: &str) -> String {
        self.messages.push(Arc::new(ConversationMessage::user(text)));
        let request = ApiRequest {
            model: String::new(),
            system: Arc::default(),
            messages: self.messages.clone(),
            tools: Arc::default(),
            session_id: "ours".to_owned(),
            fork_of: None,
            thinking: false,
            permission_mode: PermissionMode::WorkspaceWrite,
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

    /// Listens between turns until the worker was ended for want of use; false when a turn of its own
    /// comes first, which is taken in.
    async fn ends_idle(&mut self) -> bool {
        loop {
            tokio::select! {
                biased;
                Some(event) = self.told.recv() => {
                    if matches!(&event, TuiEvent::Notice { text, .. } if text.contains("was not used")) {
                        return true;
                    }
                }
                turn = self.client.unasked(&self.cx) => {
                    self.messages.extend(turn.messages.into_iter().map(Arc::new));
                    return false;
                }
                () = tokio::time::sleep(PATIENCE) => panic!("it is neither ended nor goes on"),
            }
        }
    }

    fn transcripts(&self) -> usize {
        let projects = self.fake.folder.path().join(".claude/projects");
        let folders = std::fs::read_dir(projects).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap());
        files.flatten().filter(|file| file.path().extension().is_some()).count()
    }
}

#[tokio::test]
async fn a_worker_that_nobody_uses_is_ended_and_its_session_goes_on() {
    for transport in [Transport::Pty, Transport::Stream] {
        let api = MockApi::start();
        api.answer(claw_tests::claude::housekeeping);
        let mut talk = Talk::new(&api, transport, Duration::from_millis(200));
        api.push(MessagesStream::say("First."));
        assert_eq!(talk.say("one").await, "First.");
        assert!(talk.ends_idle().await);
        assert_eq!(talk.fake.private_folders(), 0);
        api.push(MessagesStream::say("Second."));
        assert_eq!(talk.say("two").await, "Second.");
        assert_eq!(talk.transcripts(), 1, "it is the same session");
        talk.client.close().await;
    }
}

#[tokio::test]
async fn a_worker_with_a_sub_agent_that_is_out_is_kept_until_that_is_done() {
    for transport in [Transport::Pty, Transport::Stream] {
        let api = MockApi::start();
        let gate = Gate::new();
        script_agent(&api, &gate);
        let idle = Duration::from_millis(300);
        let mut talk = Talk::new(&api, transport, idle);
        assert_eq!(talk.say("delegate it").await, "It works on it.");
        // Much longer than one without anything to do would have.
        assert!(tokio::time::timeout(idle * 4, talk.ends_idle()).await.is_err());
        gate.open();
        assert!(!talk.ends_idle().await, "it reports");
        assert!(talk.ends_idle().await);
        talk.client.close().await;
    }
}
