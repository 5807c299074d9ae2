//! The turn ring: whole event sequences of `ConversationRuntime` over real tools and a real session
//! file, with a scripted back-end and a scripted person.

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

/// A hook that tells what real ones tell, and leaves feedback on reads.
struct TellingHook;

impl HookRunner for TellingHook {
    fn before_tool<'a>(
        &'a mut self,
        call: &'a ToolCall,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, PreToolOutcome> {
        Box::pin(async move {
            let tool_name = call.name.clone();
            let command = "check".to_owned();
            let event = HookEvent::PreToolUse;
            cx.sink.emit(TuiEvent::HookStarted {
                event,
                tool_name: tool_name.clone(),
                command: command.clone(),
            });
            cx.sink.emit(TuiEvent::HookCompleted { event, tool_name, command });
            PreToolOutcome::default()
        })
    }

    fn after_tool<'a>(
        &'a mut self,
        _call: &'a ToolCall,
        _outcome: &'a ToolOutcome,
        _cx: &'a TurnContext,
    ) -> BoxFuture<'a, PostToolOutcome> {
        Box::pin(async { PostToolOutcome { feedback: vec!["noted".to_owned()] } })
    }
}

#[tokio::test]
async fn golden_sequence_of_a_turn_with_thinking_text_two_tools_a_hook_a_denial_and_a_compaction() {
    let large = TokenUsage { input_tokens: 50_000, output_tokens: 5, ..TokenUsage::default() };
    let mut stage = Stage::new(
        vec![
            answer(vec![text("Hello.")]),
            answer(vec![text("Hello again.")]),
            answer(vec![text("And again.")]),
            answer(vec![
                thinking("Look first."),
                text("I will look."),
                tool("t1", "write_file", json!({"path": "a.txt", "content": "one\n"})),
                tool("t2", "bash", json!({"command": "echo never"})),
            ]),
            answer_with_usage(vec![text("Done.")], large),
        ],
        vec![Decision::Deny { reason: Some("not now".into()) }],
    )
    .with(|conversation| {
        conversation
            .with_hooks(Box::new(TellingHook))
            .with_auto_compaction_input_tokens_threshold(40_000)
    });
    for prompt in ["one", "two", "three"] {
        stage.turn(prompt).await.unwrap();
    }
    let before = stage.sink.lines().len();
    let summary = stage.turn("four").await.unwrap();
    assert_eq!(
        stage.sink.lines()[before..],
        [
            "turn started: four",
            "thinking started",
            "thinking \"Look \"",
            "thinking \"first.\"",
            "thinking ended: 11 chars",
            "text \"I \"",
            "text \"will \"",
            "text \"look.\"",
            "tool use: t1 write_file",
            "tool use: t2 bash",
            "message stop: ToolUse",
            "usage: 10 in, 5 out",
            "hook started: PreToolUse write_file check",
            "hook completed: PreToolUse write_file check",
            "hook started: PreToolUse bash check",
            "hook completed: PreToolUse bash check",
            "permission required: bash needs danger-full-access",
            "permission retired: Answered",
            "tool started: t1 write_file in iteration 1",
            "tool ended: t1 well",
            "tool result: t1 write_file good",
            "tool result: t2 bash denied: permission denied: not now",
            "text \"Done.\"",
            "message stop: EndTurn",
            "usage: 50000 in, 5 out",
            "compacting: Automatic, round 1 of 1",
            "compacted: Automatic, 6 removed",
            "turn completed: Finished(EndTurn), 2 calls, 2 iterations",
        ]
    );
    assert_eq!(summary.tool_calls, 2);
    assert_eq!(summary.auto_compaction, Some(6));
    assert_every_tool_use_has_a_result(&stage.conversation);
}

#[tokio::test]
async fn the_summary_equals_what_was_streamed() {
    let mut stage = Stage::new(
        vec![
            answer(vec![text("First part."), tool("t", "read_file", json!({"path": "a.txt"}))]),
            answer(vec![text("Second part.")]),
        ],
        vec![],
    );
    std::fs::write(stage.folder.path().join("a.txt"), "hello\n").unwrap();
    let summary = stage.turn("go").await.unwrap();
    assert_eq!(summary.text, "First part.\n\nSecond part.");
    assert_eq!(summary.text.replace("\n\n", ""), stage.sink.text());
    assert_eq!(summary.usage.input_tokens, 20);
    assert_eq!(summary.usage.output_tokens, 10);
    assert_eq!(summary.tool_calls, 1);
    let saved = stage.reloaded();
    assert_eq!(saved[1], (MessageRole::Assistant, "First part.".into()));
    assert_eq!(saved[3], (MessageRole::Assistant, "Second part.".into()));
}

#[tokio::test]
async fn reads_run_in_parallel_and_each_start_precedes_its_own_result() {
    let mut stage = Stage::new(
        vec![
            answer(vec![
                tool("a", "read_file", json!({"path": "a.txt"})),
                tool("b", "read_file", json!({"path": "b.txt"})),
                tool("c", "glob_search", json!({"pattern": "*.txt"})),
            ]),
            answer(vec![text("ok")]),
        ],
        vec![],
    );
    for name in ["a.txt", "b.txt"] {
        std::fs::write(stage.folder.path().join(name), name).unwrap();
    }
    stage.turn("read").await.unwrap();
    let lines = stage.sink.lines();
    let at = |wanted: &str| lines.iter().position(|line| line.starts_with(wanted)).unwrap();
    for id in ["a", "b", "c"] {
        assert!(at(&format!("tool started: {id} ")) < at(&format!("tool result: {id} ")));
    }
    let results: Vec<&String> =
        lines.iter().filter(|line| line.starts_with("tool result")).collect();
    assert!(results[0].contains(" a ") && results[1].contains(" b ") && results[2].contains(" c "));
}

#[tokio::test]
async fn a_denied_tool_has_no_start_and_its_result_holds_the_reason() {
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("t", "bash", json!({"command": "touch marker"}))]),
            answer(vec![text("ok")]),
        ],
        vec![Decision::Deny { reason: Some("too risky".into()) }],
    );
    stage.turn("go").await.unwrap();
    let lines = stage.sink.lines();
    assert!(!lines.iter().any(|line| line.starts_with("tool started")));
    assert!(lines.contains(&"tool result: t bash denied: permission denied: too risky".to_owned()));
    assert!(!stage.folder.path().join("marker").exists());
    let question = &stage.person.asked()[0];
    assert_eq!(question.input, r#"{"command":"touch marker"}"#);
    assert_eq!(question.current_mode, PermissionMode::WorkspaceWrite);
}

/// A hook that replaces the input, as a settings hook may.
struct RewritingHook;

impl HookRunner for RewritingHook {
    fn before_tool<'a>(
        &'a mut self,
        _call: &'a ToolCall,
        _cx: &'a TurnContext,
    ) -> BoxFuture<'a, PreToolOutcome> {
        Box::pin(async {
            PreToolOutcome {
                updated_input: Some(json!({"path": "b.txt"}).to_string()),
                ..PreToolOutcome::default()
            }
        })
    }

    fn after_tool<'a>(
        &'a mut self,
        _call: &'a ToolCall,
        _outcome: &'a ToolOutcome,
        _cx: &'a TurnContext,
    ) -> BoxFuture<'a, PostToolOutcome> {
        Box::pin(async { PostToolOutcome::default() })
    }
}

#[tokio::test]
async fn the_result_carries_the_input_as_hooks_left_it() {
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("t", "read_file", json!({"path": "a.txt"}))]),
            answer(vec![text("ok")]),
        ],
        vec![],
    )
    .with(|conversation| conversation.with_hooks(Box::new(RewritingHook)));
    std::fs::write(stage.folder.path().join("b.txt"), "from b\n").unwrap();
    let inputs = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&inputs);
    stage.sink.on_event(move |event| {
        if let TuiEvent::ToolResult { input, outcome, .. } = event {
            seen.lock().unwrap().push((input.clone(), outcome.output.contains("from b")));
        }
    });
    stage.turn("read").await.unwrap();
    assert_eq!(*inputs.lock().unwrap(), [(r#"{"path":"b.txt"}"#.to_owned(), true)]);
}

#[tokio::test]
async fn an_answer_for_this_session_covers_the_same_command_only() {
    let command = json!({"command": "true"});
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("1", "bash", command.clone())]),
            answer(vec![tool("2", "bash", command)]),
            answer(vec![tool("3", "bash", json!({"command": "true; touch marker"}))]),
            answer(vec![text("ok")]),
        ],
        vec![Decision::AllowForSession, Decision::Deny { reason: None }],
    );
    stage.turn("go").await.unwrap();
    assert_eq!(stage.person.asked().len(), 2);
    assert!(!stage.folder.path().join("marker").exists());
}

#[tokio::test]
async fn stopping_a_turn_leaves_a_valid_session_with_the_prompt_once() {
    let cancel_text: Answer = Box::new(|_, cx| {
        let blocks = stream_parts(&[text("Half an ans")], cx);
        cx.cancel.cancel();
        Ok(assistant_turn(blocks, TokenUsage::default(), StopReason::Cancelled))
    });
    let mut stage = Stage::new(vec![cancel_text], vec![]);
    let summary = stage.turn("tell me").await.unwrap();
    assert_eq!(summary.stop, TurnStop::Cancelled);
    assert_eq!(
        stage.reloaded(),
        [(MessageRole::User, "tell me".into()), (MessageRole::Assistant, "Half an ans".into())]
    );
    assert_eq!(
        stage.sink.lines().last().unwrap(),
        "turn completed: Cancelled, 0 calls, 1 iterations"
    );
}

#[tokio::test]
async fn stopping_while_a_tool_runs_ends_it_and_gives_every_call_a_result() {
    let mut stage = Stage::new(
        vec![answer(vec![
            tool("1", "bash", json!({"command": "echo begun; sleep 30"})),
            tool("2", "bash", json!({"command": "touch marker"})),
        ])],
        vec![Decision::AllowOnce, Decision::AllowOnce],
    );
    let cancel = stage.cancel.clone();
    stage.sink.on_event(move |event| {
        if matches!(event, TuiEvent::ToolOutput { .. }) {
            cancel.cancel();
        }
    });
    let begun = std::time::Instant::now();
    let summary = stage.turn("go").await.unwrap();
    assert_eq!(summary.stop, TurnStop::Cancelled);
    assert!(begun.elapsed().as_secs() < 20, "the command was waited for");
    assert!(!stage.folder.path().join("marker").exists());
    assert_every_tool_use_has_a_result(&stage.conversation);
}

#[tokio::test]
async fn a_cut_answer_is_a_failed_visibly_partial_message_and_its_call_never_runs() {
    let cut: Answer = Box::new(|_, cx| {
        let blocks = stream_parts(
            &[text("I will"), tool("t", "bash", json!({"command": "touch marker"}))],
            cx,
        );
        Err(ApiError::StreamCut {
            cause: CutCause::ConnectionClosed,
            partial: Box::new(assistant_turn(blocks, TokenUsage::default(), StopReason::ToolUse)),
        })
    });
    let mut stage = Stage::new(vec![cut, answer(vec![text("Whole.")])], vec![]);
    stage.turn("go").await.unwrap_err();
    assert!(!stage.folder.path().join("marker").exists());
    assert!(stage.sink.lines().last().unwrap().starts_with("turn failed: the answer was cut off"));
    assert_every_tool_use_has_a_result(&stage.conversation);

    // The retry sends the prompt once and not the half answer.
    let cx = stage.context();
    stage.conversation.retry_turn(&cx).await.unwrap();
    assert_eq!(stage.prompts_in_request(1), ["go"]);
    assert_eq!(stage.requests.lock().unwrap()[1].messages.len(), 1);
    assert_eq!(stage.reloaded().last().unwrap().1, "Whole.");
}

#[tokio::test]
async fn a_failed_turn_leaves_the_session_usable_and_the_prompt_is_not_repeated_on_resend() {
    let refused = || ApiError::Rejected { status: 400, message: "no".into() };
    let mut stage = Stage::new(
        vec![failure(refused()), failure(refused()), answer(vec![text("There.")])],
        vec![],
    );
    stage.turn("hello").await.unwrap_err();
    stage.turn("hello").await.unwrap_err();
    stage.turn("hello").await.unwrap();
    assert_eq!(stage.prompts_in_request(2), ["hello"]);
    assert_eq!(stage.reloaded().len(), 2);
}

#[tokio::test]
async fn results_whose_effects_are_on_disk_survive_a_failure_after_them() {
    let mut stage = Stage::new(
        vec![
            answer(vec![tool("t", "write_file", json!({"path": "side.txt", "content": "x"}))]),
            failure(ApiError::Rejected { status: 400, message: "no".into() }),
            answer(vec![text("I see the file.")]),
        ],
        vec![],
    );
    stage.turn("write").await.unwrap_err();
    assert!(stage.folder.path().join("side.txt").exists());
    assert_every_tool_use_has_a_result(&stage.conversation);
    stage.turn("go on").await.unwrap();
    let requests = stage.requests.lock().unwrap();
    assert!(requests[2].messages.iter().any(|message| message.role == MessageRole::Tool));
}

#[tokio::test]
async fn the_context_window_is_recovered_in_rounds_with_the_prompt_in_each_request_once() {
    let too_long = || failure(ApiError::ContextWindowExceeded { message: "too long".into() });
    let mut answers: Vec<Answer> = (0..5).map(|_| answer(vec![text("Earlier.")])).collect();
    answers.extend([too_long(), too_long(), too_long()]);
    answers.push(answer(vec![text("It fits.")]));
    let mut stage = Stage::new(answers, vec![]);
    for n in 0..5 {
        stage.turn(["a", "b", "c", "d", "e"][n]).await.unwrap();
    }
    let before = stage.sink.lines().len();
    stage.turn("the long one").await.unwrap();
    let rounds: Vec<String> = stage.sink.lines()[before..]
        .iter()
        .filter(|line| line.starts_with("compacting"))
        .cloned()
        .collect();
    assert_eq!(
        rounds,
        [
            "compacting: ContextWindow, round 1 of 4",
            "compacting: ContextWindow, round 2 of 4",
            "compacting: ContextWindow, round 3 of 4",
        ]
    );
    let sent = stage.requests.lock().unwrap().len();
    for request in 5..sent {
        let prompts = stage.prompts_in_request(request);
        let count = prompts.iter().filter(|prompt| *prompt == "the long one").count();
        assert_eq!(count, 1, "request {request}: {prompts:?}");
    }
}

#[tokio::test]
async fn the_last_round_leaves_only_the_prompt_and_a_summary() {
    let too_long = || failure(ApiError::ContextWindowExceeded { message: "too long".into() });
    let mut stage = Stage::new(
        vec![
            answer(vec![text("Earlier.")]),
            answer(vec![tool("t", "glob_search", json!({"pattern": "*"}))]),
            too_long(),
            too_long(),
            too_long(),
            answer(vec![text("It fits.")]),
        ],
        vec![],
    );
    stage.turn("before").await.unwrap();
    stage.turn("now").await.unwrap();
    let requests = stage.requests.lock().unwrap();
    let last: Vec<MessageRole> =
        requests.last().unwrap().messages.iter().map(|message| message.role).collect();
    assert_eq!(last, [MessageRole::System, MessageRole::User]);
    drop(requests);
    assert!(stage.sink.lines().contains(&"compacting: ContextWindow, round 4 of 4".to_owned()));
    assert_every_tool_use_has_a_result(&stage.conversation);
}

#[tokio::test]
async fn recovery_stops_when_nothing_more_can_be_removed() {
    let too_long = || failure(ApiError::ContextWindowExceeded { message: "too long".into() });
    let mut stage = Stage::new(vec![too_long()], vec![]);
    let error = stage.turn("alone and too long").await.unwrap_err();
    assert!(matches!(*error, RuntimeError::ContextExhausted));
    assert_eq!(stage.requests.lock().unwrap().len(), 1, "the same request is not sent again");
    assert_eq!(stage.reloaded(), [(MessageRole::User, "alone and too long".into())]);
}

#[tokio::test]
async fn words_about_a_context_window_do_not_discard_history() {
    let mut stage = Stage::new(
        vec![failure(ApiError::Transport {
            endpoint: "http://localhost".into(),
            message: "error decoding response body: context window exceeded".into(),
        })],
        vec![],
    );
    stage.turn("hello").await.unwrap_err();
    assert!(!stage.sink.lines().iter().any(|line| line.starts_with("compacting")));
}

#[tokio::test]
async fn auto_compaction_follows_the_current_context_and_fires_once_per_crossing() {
    let usage =
        |tokens| TokenUsage { input_tokens: tokens, output_tokens: 1, ..Default::default() };
    let mut stage = Stage::new(
        (0..8)
            .map(|n| answer_with_usage(vec![text("ok")], usage(if n == 5 { 900 } else { 400 })))
            .collect(),
        vec![],
    )
    .with(|conversation| conversation.with_auto_compaction_input_tokens_threshold(800));
    let mut compactions = Vec::new();
    for n in 0..8 {
        stage.turn(["a", "b", "c", "d", "e", "f", "g", "h"][n]).await.unwrap();
        let count = stage.sink.lines().iter().filter(|line| line.starts_with("compacted")).count();
        compactions.push(count);
    }
    // 400 tokens in each of five calls is 2,000 in sum and no reason at all.
    assert_eq!(compactions, [0, 0, 0, 0, 0, 1, 1, 1]);
}

#[tokio::test]
async fn the_iteration_cap_is_a_visible_stop() {
    let look = || answer(vec![tool("t", "glob_search", json!({"pattern": "*"}))]);
    let mut stage = Stage::new(vec![look(), look(), look()], vec![])
        .with(|conversation| conversation.with_max_iterations(3));
    let summary = stage.turn("loop").await.unwrap();
    assert_eq!(summary.stop, TurnStop::IterationLimit(3));
    assert_every_tool_use_has_a_result(&stage.conversation);
}

#[tokio::test]
async fn a_stop_at_the_output_limit_is_told_and_its_calls_do_not_run() {
    let cut: Answer = Box::new(|_, cx| {
        let blocks = stream_parts(&[tool("t", "bash", json!({"command": "touch marker"}))], cx);
        Ok(assistant_turn(blocks, TokenUsage::default(), StopReason::MaxTokens))
    });
    let mut stage = Stage::new(vec![cut], vec![]);
    let summary = stage.turn("go").await.unwrap();
    assert_eq!(summary.stop, TurnStop::Finished(StopReason::MaxTokens));
    assert!(!stage.folder.path().join("marker").exists());
    assert_every_tool_use_has_a_result(&stage.conversation);
}

#[tokio::test]
async fn compacting_on_request_tells_both_numbers_and_keeps_the_original() {
    let mut stage = Stage::new((0..6).map(|_| answer(vec![text("An answer.")])).collect(), vec![]);
    let cx = stage.context();
    let config = claw_runtime::compact::CompactionConfig::requested();
    let nothing = stage.conversation.compact(&config, &cx);
    assert_eq!(nothing.removed, 0);
    assert!(stage.sink.lines().contains(&"compacted: Requested, 0 removed".to_owned()));
    for n in 0..6 {
        stage.turn(["a", "b", "c", "d", "e", "f"][n]).await.unwrap();
    }
    let report = stage.conversation.compact(&config, &cx);
    assert!(report.removed > 0);
    let saved = stage.reloaded();
    assert_eq!(saved.len(), stage.conversation.session().messages.len());
    assert_eq!(saved[0].0, MessageRole::System);
}

#[tokio::test]
async fn a_fork_goes_on_by_itself() {
    let mut stage =
        Stage::new(vec![answer(vec![text("Shared.")]), answer(vec![text("Main.")])], vec![]);
    stage.turn("first").await.unwrap();
    let fork = stage
        .conversation
        .fork_session(&SessionStore::open(stage.folder.path()).unwrap(), Some("experiment"))
        .unwrap();
    let parent = stage.conversation.session().id.clone();
    let origin = fork.session().fork.clone().unwrap();
    assert_ne!(fork.session().id, parent);
    assert_eq!(origin.parent_session_id, parent);
    assert_eq!(origin.branch_name.as_deref(), Some("experiment"));
    stage.turn("second").await.unwrap();
    assert_eq!(fork.session().messages.len(), 2);
    assert_eq!(stage.reloaded().len(), 4);
}
