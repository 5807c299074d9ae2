//! Backends with a session of their own: prompts into the running turn, turns that nobody asked for,
//! compaction by the backend. The driver, the conversation and the session file are real.

use std::time::Duration;

use claw_runtime::StreamSink;
use claw_runtime::api::{ApiClient, ApiRequest, AssistantTurn, ContextCompaction};
use claw_runtime::api::{SteerError, Steering};
use claw_runtime::driver::{BackendFacts, Backends, Command, Driver, DriverParts};
use claw_runtime::session::{ConversationMessage, SessionStore, SessionView};
use claw_runtime::tools::{ToolExecutor, ToolFacts};
use claw_tests::turn::describe;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::*;

type Outcome<T> = Result<T, ApiError>;

/// A backend whose every step is made by the test.
struct SteppedBackend {
    requests: UnboundedSender<ApiRequest>,
    turns: UnboundedReceiver<Outcome<AssistantTurn>>,
    compactions: UnboundedReceiver<Outcome<Option<ContextCompaction>>>,
    unasked: UnboundedReceiver<Step>,
    /// Of an unasked turn: told, and not returned yet.
    told: Vec<ConversationMessage>,
    steering: Option<Arc<SteppedSteering>>,
    closed: Arc<std::sync::atomic::AtomicBool>,
}

/// A step of a turn that nobody asked for.
enum Step {
    Says(&'static str),
    Ends,
}

struct SteppedSteering {
    steered: UnboundedSender<String>,
    outcomes: tokio::sync::Mutex<UnboundedReceiver<Result<(), SteerError>>>,
}

impl Steering for SteppedSteering {
    fn steer(&self, text: String) -> BoxFuture<'_, Result<(), SteerError>> {
        Box::pin(async move {
            self.steered.send(text).unwrap();
            self.outcomes.lock().await.recv().await.unwrap()
        })
    }
}

impl ApiClient for SteppedBackend {
    fn stream<'a>(
        &'a mut self,
        request: ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Outcome<AssistantTurn>> {
        Box::pin(async move {
            self.requests.send(request).unwrap();
            let turn = tokio::select! {
                turn = self.turns.recv() => turn.unwrap(),
                () = cx.cancel.cancelled() => Ok(AssistantTurn {
                    messages: Vec::new(),
                    stop_reason: StopReason::Cancelled,
                }),
            };
            turn.map(|mut turn| {
                turn.messages.splice(0..0, self.told.drain(..));
                turn
            })
        })
    }

    fn owns_context(&self) -> bool {
        true
    }

    fn compact<'a>(
        &'a mut self,
        request: ApiRequest,
        _cx: &'a TurnContext,
    ) -> BoxFuture<'a, Outcome<Option<ContextCompaction>>> {
        Box::pin(async move {
            self.requests.send(request).unwrap();
            self.compactions.recv().await.unwrap()
        })
    }

    fn steering(&self) -> Option<Arc<dyn Steering>> {
        self.steering.clone().map(|steering| steering as Arc<dyn Steering>)
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.closed.store(true, std::sync::atomic::Ordering::SeqCst) })
    }

    fn unasked<'a>(&'a mut self, cx: &'a TurnContext) -> BoxFuture<'a, AssistantTurn> {
        Box::pin(async move {
            loop {
                match self.unasked.recv().await {
                    Some(Step::Says(said)) => {
                        cx.sink.emit(TuiEvent::TextDelta { text: said.to_owned() });
                        self.told.push(said_by_model(said));
                    }
                    Some(Step::Ends) => {
                        let stop_reason = StopReason::EndTurn;
                        let messages = std::mem::take(&mut self.told);
                        return AssistantTurn { messages, stop_reason };
                    }
                    None => std::future::pending().await,
                }
            }
        })
    }
}

fn said_by_model(said: &str) -> ConversationMessage {
    let text = ContentBlock::Text { text: said.to_owned() };
    ConversationMessage::new(MessageRole::Assistant, vec![text])
}

fn turn_of(messages: Vec<ConversationMessage>) -> AssistantTurn {
    AssistantTurn { messages, stop_reason: StopReason::EndTurn }
}

/// Hands each event on as one line, and keeps the conversation that was opened last.
struct Ear {
    lines: UnboundedSender<String>,
    status: std::sync::Mutex<Option<claw_runtime::driver::RuntimeStatus>>,
}

impl StreamSink for Ear {
    fn emit(&self, event: TuiEvent) {
        if let TuiEvent::StatusChanged { status } = &event {
            *self.status.lock().unwrap() = Some(status.clone());
        }
        let _ = self.lines.send(match &event {
            TuiEvent::Compacted { before_tokens, after_tokens, removed, .. } => {
                format!("compacted: {removed} removed, {before_tokens} are now {after_tokens}")
            }
            event => describe(event),
        });
    }
}

/// The program without a screen: orders go in, events come out, the backend is moved by hand.
struct Desk {
    orders: UnboundedSender<Command>,
    ear: Arc<Ear>,
    lines: UnboundedReceiver<String>,
    requests: UnboundedReceiver<ApiRequest>,
    turns: UnboundedSender<Outcome<AssistantTurn>>,
    compactions: UnboundedSender<Outcome<Option<ContextCompaction>>>,
    unasked: UnboundedSender<Step>,
    steered: UnboundedReceiver<String>,
    outcomes: UnboundedSender<Result<(), SteerError>>,
    driver: JoinHandle<()>,
    closed: Arc<std::sync::atomic::AtomicBool>,
    session: String,
    folder: TempDir,
}

impl Desk {
    fn new(steers: bool) -> Self {
        Self::with_threshold(steers, 100_000)
    }

    /// With our own compaction at this many tokens, for backends that leave it to us.
    fn with_threshold(steers: bool, threshold: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::open(folder.path()).unwrap();
        let session = store.create("stepped");
        let id = session.id().to_owned();
        let redactor = claw_runtime::redact::Redactor::default();
        let tools: Box<dyn ToolExecutor> =
            Box::new(ToolRegistry::new(folder.path(), redactor).unwrap());
        let closed = Arc::<std::sync::atomic::AtomicBool>::default();
        let (request_sender, requests) = unbounded_channel();
        let (turns, turn_receiver) = unbounded_channel();
        let (compactions, compaction_receiver) = unbounded_channel();
        let (unasked, unasked_receiver) = unbounded_channel();
        let (steered_sender, steered) = unbounded_channel();
        let (outcomes, outcome_receiver) = unbounded_channel();
        let steering = SteppedSteering {
            steered: steered_sender,
            outcomes: tokio::sync::Mutex::new(outcome_receiver),
        };
        let client: Box<dyn ApiClient> = Box::new(SteppedBackend {
            requests: request_sender,
            turns: turn_receiver,
            compactions: compaction_receiver,
            unasked: unasked_receiver,
            told: Vec::new(),
            steering: steers.then(|| Arc::new(steering)),
            closed: closed.clone(),
        });
        let (line_sender, lines) = unbounded_channel();
        let ear = Arc::new(Ear { lines: line_sender, status: std::sync::Mutex::default() });
        let conversation = ConversationRuntime::new(session, client, tools, "stepped")
            .with_auto_compaction_input_tokens_threshold(threshold);
        let driver = Driver::new(DriverParts {
            conversation,
            store,
            backends: Backends::new(Vec::new()),
            backend: BackendFacts { name: "stepped".to_owned(), note: None },
            config: Vec::new(),
            sink: ear.clone(),
            prompter: Arc::new(claw_runtime::permissions::DenyAll { reason: "no".to_owned() }),
            resumed: false,
            warnings: Vec::new(),
        });
        let (orders, order_receiver) = unbounded_channel();
        let driver = tokio::spawn(driver.run(order_receiver));
        Self {
            orders,
            ear,
            lines,
            requests,
            turns,
            compactions,
            unasked,
            steered,
            outcomes,
            driver,
            closed,
            session: id,
            folder,
        }
    }

    fn order(&self, command: Command) {
        self.orders.send(command).unwrap();
    }

    fn submit(&self, input: &str) -> CancellationToken {
        let cancel = CancellationToken::new();
        self.order(Command::Submit { input: input.to_owned(), cancel: cancel.clone() });
        cancel
    }

    fn steer(&self, input: &str) {
        self.order(Command::Steer { input: input.to_owned() });
    }

    async fn request(&mut self) -> ApiRequest {
        within(self.requests.recv()).await
    }

    /// The lines up to the first that begins like this.
    async fn until(&mut self, beginning: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let line = within(self.lines.recv()).await;
            let found = line.starts_with(beginning);
            seen.push(line);
            if found {
                return seen;
            }
        }
    }

    async fn line(&mut self, beginning: &str) -> String {
        self.until(beginning).await.pop().unwrap()
    }

    fn status(&self) -> claw_runtime::driver::RuntimeStatus {
        self.ear.status.lock().unwrap().clone().expect("a status was told")
    }

    /// Ends the program and reads what it kept.
    async fn kept(self) -> SessionView {
        self.order(Command::Shutdown);
        tokio::time::timeout(Duration::from_secs(20), self.driver).await.unwrap().unwrap();
        assert!(self.closed.load(std::sync::atomic::Ordering::SeqCst), "the backend was closed");
        let store = SessionStore::open(self.folder.path()).unwrap();
        store.resume(&self.session).unwrap().view(true)
    }
}

async fn within<T>(value: impl Future<Output = Option<T>>) -> T {
    tokio::time::timeout(Duration::from_secs(20), value).await.expect("it came").expect("it lives")
}

fn words(view: &SessionView) -> Vec<String> {
    let line = |message: &Arc<ConversationMessage>| {
        let results = message.blocks.iter().filter_map(|block| match block {
            ContentBlock::ToolUse { id, .. } => Some(format!("calls {id}")),
            ContentBlock::ToolResult { tool_use_id, .. } => Some(format!("result {tool_use_id}")),
            _ => None,
        });
        let parts: Vec<String> =
            results.chain(Some(message.text()).filter(|text| !text.is_empty())).collect();
        format!("{}: {}", message.role.as_str(), parts.join(", "))
    };
    view.messages.iter().map(line).collect()
}

#[tokio::test]
async fn a_prompt_goes_into_the_running_turn_and_stands_in_the_session_where_it_was_taken() {
    let mut desk = Desk::new(true);
    desk.submit("begin");
    desk.request().await;
    assert!(desk.status().steering);
    desk.steer("and this");
    assert_eq!(within(desk.steered.recv()).await, "and this");
    desk.outcomes.send(Ok(())).unwrap();
    assert_eq!(desk.line("steered").await, "steered \"and this\": Ok(())");
    let call = ContentBlock::ToolUse { id: "t".into(), name: "Bash".into(), input: "{}".into() };
    let result = ContentBlock::ToolResult {
        tool_use_id: "t".into(),
        tool_name: "Bash".into(),
        output: "not allowed".into(),
        is_error: true,
        facts: Some(ToolFacts::Denied),
    };
    let turn = turn_of(vec![
        ConversationMessage::new(MessageRole::Assistant, vec![call]),
        // The backend took it while its tool ran.
        ConversationMessage::user("and this"),
        ConversationMessage::new(MessageRole::Tool, vec![result]),
        said_by_model("Both done."),
    ]);
    desk.turns.send(Ok(turn)).unwrap();
    assert_eq!(
        desk.line("turn completed").await,
        "turn completed: Finished(EndTurn), 1 calls, 1 iterations"
    );
    let view = desk.kept().await;
    assert_eq!(
        words(&view),
        [
            "user: begin",
            "assistant: calls t",
            "tool: result t",
            "user: and this",
            "assistant: Both done."
        ]
    );
    let ContentBlock::ToolResult { facts, .. } = &view.messages[2].blocks[0] else {
        panic!("no result: {:?}", view.messages[2]);
    };
    assert_eq!(*facts, Some(ToolFacts::Denied), "a denied call is one after a resume, too");
    assert_eq!(view.prompt_history, ["begin", "and this"]);
}

#[tokio::test]
async fn prompts_for_a_running_turn_keep_their_order_and_each_has_one_outcome() {
    let mut desk = Desk::new(true);
    desk.submit("begin");
    desk.request().await;
    desk.steer("one");
    desk.steer("two");
    // What is not for the turn waits for its end.
    desk.submit("later");
    assert_eq!(within(desk.steered.recv()).await, "one");
    let refused = SteerError::Refused("a dialog is open".to_owned());
    desk.outcomes.send(Err(refused)).unwrap();
    assert_eq!(desk.line("steered").await, "steered \"one\": Err(Refused(\"a dialog is open\"))");
    assert_eq!(within(desk.steered.recv()).await, "two");
    desk.outcomes.send(Err(SteerError::Uncertain)).unwrap();
    assert_eq!(desk.line("steered").await, "steered \"two\": Err(Uncertain)");
    desk.turns.send(Ok(turn_of(vec![said_by_model("Done.")]))).unwrap();
    desk.line("turn completed").await;
    desk.request().await;
    desk.turns.send(Ok(turn_of(vec![said_by_model("Done, too.")]))).unwrap();
    desk.line("turn completed").await;
    let view = desk.kept().await;
    assert_eq!(
        words(&view),
        ["user: begin", "assistant: Done.", "user: later", "assistant: Done, too."]
    );
    assert_eq!(view.prompt_history, ["begin", "two", "later"], "what was not sent is not history");
}

#[tokio::test]
async fn a_prompt_on_its_way_when_the_turn_ends_is_waited_for_and_those_behind_it_are_not_sent() {
    let mut desk = Desk::new(true);
    desk.submit("begin");
    desk.request().await;
    desk.steer("on its way");
    assert_eq!(within(desk.steered.recv()).await, "on its way");
    desk.steer("behind it");
    // Orders are taken in order: once this one is out of the channel, so is the one before it.
    desk.turns.send(Ok(turn_of(vec![said_by_model("Done.")]))).unwrap();
    desk.line("turn completed").await;
    desk.outcomes.send(Ok(())).unwrap();
    assert_eq!(desk.line("steered").await, "steered \"on its way\": Ok(())");
    let behind = desk.line("steered").await;
    assert!(behind.starts_with("steered \"behind it\": Err(Refused("), "{behind}");
    assert!(desk.steered.try_recv().is_err(), "it was not sent");
    desk.line("status changed").await;
    desk.steer("much later");
    let late = desk.line("steered").await;
    assert!(late.starts_with("steered \"much later\": Err(Refused("), "{late}");
}

#[tokio::test]
async fn a_backend_that_takes_no_prompts_during_a_turn_has_them_refused() {
    let mut desk = Desk::new(false);
    desk.submit("begin");
    desk.request().await;
    assert!(!desk.status().steering);
    desk.steer("and this");
    let refused = desk.line("steered").await;
    assert!(refused.starts_with("steered \"and this\": Err(Refused("), "{refused}");
}

#[tokio::test]
async fn leaving_does_not_wait_for_the_outcome_of_a_prompt() {
    let mut desk = Desk::new(true);
    let cancel = desk.submit("begin");
    desk.request().await;
    desk.steer("and this");
    within(desk.steered.recv()).await;
    cancel.cancel();
    desk.order(Command::Shutdown);
    let lines = desk.until("runtime ended").await;
    assert!(lines.contains(&"steered \"and this\": Err(Uncertain)".to_owned()), "{lines:?}");
}

#[tokio::test]
async fn a_turn_that_nobody_asked_for_is_shown_and_lands_in_the_session() {
    let mut desk = Desk::new(true);
    desk.submit("begin");
    desk.request().await;
    desk.turns.send(Ok(turn_of(vec![said_by_model("Begun.")]))).unwrap();
    desk.line("turn completed").await;
    desk.unasked.send(Step::Says("The task has ended.")).unwrap();
    desk.unasked.send(Step::Ends).unwrap();
    let lines = desk.until("unasked turn ended").await;
    assert!(lines.contains(&"text \"The task has ended.\"".to_owned()), "{lines:?}");
    assert_eq!(
        words(&desk.kept().await),
        ["user: begin", "assistant: Begun.", "assistant: The task has ended."]
    );
}

#[tokio::test]
async fn a_prompt_in_the_middle_of_a_turn_that_nobody_asked_for_loses_neither() {
    let mut desk = Desk::new(true);
    desk.unasked.send(Step::Says("The task has")).unwrap();
    desk.line("text \"The task has\"").await;
    desk.submit("what is going on?");
    let request = desk.request().await;
    assert_eq!(request.messages.last().unwrap().text(), "what is going on?");
    desk.turns.send(Ok(turn_of(vec![said_by_model("It has ended.")]))).unwrap();
    desk.line("turn completed").await;
    assert_eq!(
        words(&desk.kept().await),
        ["user: what is going on?", "assistant: The task has", "assistant: It has ended."]
    );
}

#[tokio::test]
async fn a_backend_with_a_context_of_its_own_compacts_it_and_our_record_stays_whole() {
    let mut desk = Desk::new(true);
    desk.submit("begin");
    desk.request().await;
    desk.turns.send(Ok(turn_of(vec![said_by_model("Done.")]))).unwrap();
    desk.line("turn completed").await;
    desk.order(Command::Compact { cancel: CancellationToken::new() });
    assert_eq!(desk.request().await.messages.len(), 2);
    let sizes = ContextCompaction { before_tokens: 90_000, after_tokens: 7_000 };
    desk.compactions.send(Ok(Some(sizes))).unwrap();
    let lines = desk.until("compacted").await;
    assert!(lines.contains(&"compacting: Requested, round 1 of 1".to_owned()), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "compacted: 0 removed, 90000 are now 7000");
    desk.line("status changed").await;
    assert_eq!(desk.status().usage.context_tokens, 7_000);
    assert_eq!(words(&desk.kept().await), ["user: begin", "assistant: Done."]);
}

#[tokio::test]
async fn a_compaction_that_fails_or_is_stopped_says_so_and_the_session_goes_on() {
    let mut desk = Desk::new(true);
    desk.order(Command::Compact { cancel: CancellationToken::new() });
    desk.request().await;
    desk.compactions.send(Err(ApiError::Worker { message: "it is busy".into() })).unwrap();
    assert_eq!(desk.line("compaction").await, "compaction failed: worker: it is busy");
    let cancel = CancellationToken::new();
    desk.order(Command::Compact { cancel: cancel.clone() });
    desk.request().await;
    cancel.cancel();
    desk.compactions.send(Ok(None)).unwrap();
    assert_eq!(desk.line("compaction").await, "compaction stopped");
    desk.submit("go on");
    desk.request().await;
    desk.turns.send(Ok(turn_of(vec![said_by_model("Yes.")]))).unwrap();
    desk.line("turn completed").await;
    assert_eq!(words(&desk.kept().await), ["user: go on", "assistant: Yes."]);
}

#[tokio::test]
async fn a_backend_that_does_not_stop_compacting_is_not_waited_for() {
    let mut desk = Desk::new(true);
    let cancel = CancellationToken::new();
    desk.order(Command::Compact { cancel: cancel.clone() });
    desk.request().await;
    cancel.cancel();
    assert_eq!(desk.line("compaction").await, "compaction stopped");
}

#[tokio::test]
async fn a_backend_without_an_own_compaction_leaves_it_to_us() {
    let mut desk = Desk::new(true);
    for prompt in ["a", "b", "c", "d", "e", "f"] {
        desk.submit(prompt);
        desk.request().await;
        let long = "All of this is done. ".repeat(200);
        desk.turns.send(Ok(turn_of(vec![said_by_model(&long)]))).unwrap();
        desk.line("turn completed").await;
    }
    desk.order(Command::Compact { cancel: CancellationToken::new() });
    desk.request().await;
    desk.compactions.send(Ok(None)).unwrap();
    desk.line("compacted").await;
    let view = desk.kept().await;
    assert_eq!(view.messages[0].role, MessageRole::System, "a summary stands first");
}

#[tokio::test]
async fn nothing_is_compacted_or_left_out_by_us_where_the_backend_keeps_the_context() {
    let mut desk = Desk::with_threshold(true, 10);
    desk.submit("begin");
    desk.request().await;
    let mut half = said_by_model("Half an ans");
    half.usage = Some(TokenUsage { input_tokens: 150_000, ..TokenUsage::default() });
    half.partial = Some(claw_runtime::session::PartialReason::Cut);
    desk.turns.send(Ok(turn_of(vec![half, said_by_model("A whole one.")]))).unwrap();
    let lines = desk.until("turn completed").await;
    assert!(!lines.iter().any(|line| line.starts_with("compact")), "{lines:?}");
    desk.submit("more");
    assert_eq!(desk.request().await.messages.len(), 4, "it sees the record as it is");
    let full = ApiError::ContextWindowExceeded { message: "prompt is too long".into() };
    desk.turns.send(Err(full)).unwrap();
    let lines = desk.until("turn failed").await;
    assert!(!lines.iter().any(|line| line.starts_with("compact")), "{lines:?}");
    assert!(lines.last().unwrap().contains("/compact"), "{lines:?}");
    assert_eq!(desk.kept().await.messages.len(), 4);
}

#[tokio::test]
async fn a_fork_tells_the_backend_its_parent() {
    let mut desk = Desk::new(true);
    desk.submit("begin");
    assert_eq!(desk.request().await.fork_of, None);
    desk.turns.send(Ok(turn_of(vec![said_by_model("Done.")]))).unwrap();
    desk.line("turn completed").await;
    desk.order(Command::Fork { branch: None });
    desk.submit("elsewhere");
    let request = desk.request().await;
    assert_eq!(request.fork_of.as_ref(), Some(&desk.session));
    assert_ne!(request.session_id, desk.session);
}
