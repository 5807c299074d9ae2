//! The turn ring: a scripted backend, a recording sink, a scripted person.
//!
//! The conversation, the tools and the session file are real.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use claw_runtime::api::{ApiClient, ApiError, ApiRequest, AssistantTurn, StopReason};
use claw_runtime::permissions::{
    PermissionPromptDecision, PermissionPrompter, PermissionRequest, RetiredReason,
};
use claw_runtime::session::{ContentBlock, ConversationMessage, MessageRole};
use claw_runtime::usage::TokenUsage;
use claw_runtime::{StreamSink, TuiEvent, TurnContext};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

/// One scripted answer: what it emits on the way and what it returns.
pub type Answer =
    Box<dyn FnOnce(&ApiRequest, &TurnContext) -> Result<AssistantTurn, ApiError> + Send>;

/// Plays answers in order and records the requests.
#[derive(Default)]
pub struct ScriptedClient {
    answers: VecDeque<Answer>,
    requests: Arc<Mutex<Vec<ApiRequest>>>,
}

impl ScriptedClient {
    pub fn new(answers: Vec<Answer>) -> Self {
        Self { answers: answers.into(), requests: Arc::default() }
    }

    /// Requests as they were sent; shared, so that it can be kept past the move of the client.
    pub fn requests(&self) -> Arc<Mutex<Vec<ApiRequest>>> {
        Arc::clone(&self.requests)
    }
}

impl ApiClient for ScriptedClient {
    fn stream<'a>(
        &'a mut self,
        request: ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<AssistantTurn, ApiError>> {
        Box::pin(async move {
            self.requests.lock().unwrap().push(request.clone());
            match self.answers.pop_front() {
                Some(answer) => answer(&request, cx),
                None => panic!("the script has no answer for request {request:?}"),
            }
        })
    }
}

/// Parts of a scripted message.
#[derive(Clone)]
pub enum Part {
    Thinking(&'static str),
    Text(&'static str),
    Tool { id: &'static str, name: &'static str, input: String },
}

pub fn text(text: &'static str) -> Part {
    Part::Text(text)
}

pub fn thinking(text: &'static str) -> Part {
    Part::Thinking(text)
}

pub fn tool(id: &'static str, name: &'static str, input: serde_json::Value) -> Part {
    Part::Tool { id, name, input: input.to_string() }
}

/// An answer that streams these parts and ends as its parts say (`ToolUse` or `EndTurn`).
pub fn answer(parts: Vec<Part>) -> Answer {
    answer_with_usage(
        parts,
        TokenUsage { input_tokens: 10, output_tokens: 5, ..TokenUsage::default() },
    )
}

/// The same with this usage.
pub fn answer_with_usage(parts: Vec<Part>, usage: TokenUsage) -> Answer {
    Box::new(move |_, cx| {
        let blocks = stream_parts(&parts, cx);
        let stop_reason =
            if blocks.iter().any(|block| matches!(block, ContentBlock::ToolUse { .. })) {
                StopReason::ToolUse
            } else {
                StopReason::EndTurn
            };
        cx.sink.emit(TuiEvent::MessageStop { stop_reason: stop_reason.clone() });
        Ok(assistant_turn(blocks, usage, stop_reason))
    })
}

/// An answer that fails with this error.
pub fn failure(error: ApiError) -> Answer {
    Box::new(move |_, _| Err(error))
}

/// Streams parts as deltas of one word each and returns the blocks they make.
pub fn stream_parts(parts: &[Part], cx: &TurnContext) -> Vec<ContentBlock> {
    parts.iter().map(|part| stream_part(part, cx)).collect()
}

fn stream_part(part: &Part, cx: &TurnContext) -> ContentBlock {
    match part {
        Part::Thinking(text) => {
            cx.sink.emit(TuiEvent::ThinkingStarted);
            for word in text.split_inclusive(' ') {
                cx.sink.emit(TuiEvent::ThinkingDelta { text: word.to_owned() });
            }
            let char_count = text.chars().count();
            cx.sink.emit(TuiEvent::ThinkingEnded { char_count, redacted: false });
            ContentBlock::Thinking { thinking: (*text).to_owned(), signature: Some("sig".into()) }
        }
        Part::Text(text) => {
            for word in text.split_inclusive(' ') {
                cx.sink.emit(TuiEvent::TextDelta { text: word.to_owned() });
            }
            ContentBlock::Text { text: (*text).to_owned() }
        }
        Part::Tool { id, name, input } => {
            let (id, name, input) = ((*id).to_owned(), (*name).to_owned(), input.clone());
            cx.sink.emit(TuiEvent::ToolUse {
                id: id.clone(),
                name: name.clone(),
                input: input.clone(),
            });
            ContentBlock::ToolUse { id, name, input }
        }
    }
}

/// One assistant message as a turn.
pub fn assistant_turn(
    blocks: Vec<ContentBlock>,
    usage: TokenUsage,
    stop_reason: StopReason,
) -> AssistantTurn {
    let mut message = ConversationMessage::new(MessageRole::Assistant, blocks);
    message.usage = Some(usage);
    AssistantTurn { messages: vec![message], stop_reason }
}

type OnEvent = Box<dyn FnMut(&TuiEvent) + Send>;

/// Keeps every event as one line, without what differs from run to run.
#[derive(Default)]
pub struct RecordingSink {
    lines: Mutex<Vec<String>>,
    deltas: Mutex<String>,
    on_event: Mutex<Option<OnEvent>>,
}

impl RecordingSink {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Calls back for each event, before it is recorded (to cancel at a point, for example).
    pub fn on_event(&self, callback: impl FnMut(&TuiEvent) + Send + 'static) {
        *self.on_event.lock().unwrap() = Some(Box::new(callback));
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// All text deltas, joined.
    pub fn text(&self) -> String {
        self.deltas.lock().unwrap().clone()
    }
}

impl StreamSink for RecordingSink {
    fn emit(&self, event: TuiEvent) {
        if let Some(callback) = self.on_event.lock().unwrap().as_mut() {
            callback(&event);
        }
        if let TuiEvent::TextDelta { text } = &event {
            self.deltas.lock().unwrap().push_str(text);
        }
        self.lines.lock().unwrap().push(describe(&event));
    }
}

/// One line about an event: what a golden sequence compares.
pub fn describe(event: &TuiEvent) -> String {
    match event {
        TuiEvent::TurnStarted { input, retry } => {
            format!("turn started{}: {input}", if *retry { " again" } else { "" })
        }
        TuiEvent::TurnCompleted { summary } => format!(
            "turn completed: {:?}, {} calls, {} iterations",
            summary.stop, summary.tool_calls, summary.iterations
        ),
        TuiEvent::TurnFailed { error, .. } => format!("turn failed: {error}"),
        TuiEvent::TextDelta { text } => format!("text {text:?}"),
        TuiEvent::ThinkingStarted => "thinking started".to_owned(),
        TuiEvent::ThinkingDelta { text } => format!("thinking {text:?}"),
        TuiEvent::ThinkingEnded { char_count, redacted } => {
            format!("thinking ended: {char_count} chars{}", if *redacted { ", hidden" } else { "" })
        }
        TuiEvent::ToolUseStarted { id, name } => format!("tool use started: {id} {name}"),
        TuiEvent::ToolUse { id, name, .. } => format!("tool use: {id} {name}"),
        TuiEvent::ToolUseIncomplete { id, name } => format!("tool use incomplete: {id} {name}"),
        TuiEvent::UsageUpdate { usage, .. } => {
            format!("usage: {} in, {} out", usage.context_tokens(), usage.output_tokens)
        }
        TuiEvent::MessageStop { stop_reason } => format!("message stop: {stop_reason:?}"),
        TuiEvent::ToolStarted { iteration, id, name, .. } => {
            format!("tool started: {id} {name} in iteration {iteration}")
        }
        TuiEvent::ToolOutput { id, text } => format!("tool output: {id} {text:?}"),
        TuiEvent::ToolEnded { id, is_error, .. } => {
            format!("tool ended: {id} {}", if *is_error { "failed" } else { "well" })
        }
        TuiEvent::ToolResult { id, name, outcome, denied, .. } => format!(
            "tool result: {id} {name} {}",
            match (denied, outcome.is_error) {
                (true, _) => format!("denied: {}", outcome.output),
                (false, true) => "failed".to_owned(),
                (false, false) => "good".to_owned(),
            }
        ),
        TuiEvent::PermissionRequired { request, .. } => {
            format!("permission required: {} needs {}", request.tool_name, request.required)
        }
        TuiEvent::PermissionRetired { reason, .. } => format!("permission retired: {reason:?}"),
        TuiEvent::HookStarted { event, tool_name, command } => {
            format!("hook started: {event:?} {tool_name} {command}")
        }
        TuiEvent::HookCompleted { event, tool_name, command } => {
            format!("hook completed: {event:?} {tool_name} {command}")
        }
        TuiEvent::HookCancelled { event, tool_name, command } => {
            format!("hook cancelled: {event:?} {tool_name} {command}")
        }
        TuiEvent::Retrying { attempt, max_attempts, .. } => {
            format!("retrying {attempt} of {max_attempts}")
        }
        TuiEvent::Stalled { .. } => "stalled".to_owned(),
        TuiEvent::Compacting { cause, round, max_rounds } => {
            format!("compacting: {cause:?}, round {round} of {max_rounds}")
        }
        TuiEvent::Compacted { cause, removed, .. } => {
            format!("compacted: {cause:?}, {removed} removed")
        }
        TuiEvent::CompactionFailed { error } => match error {
            Some(error) => format!("compaction failed: {error}"),
            None => "compaction stopped".to_owned(),
        },
        TuiEvent::Steered { input, outcome } => format!("steered {input:?}: {outcome:?}"),
        TuiEvent::UnaskedTurnEnded { summary } => {
            format!("unasked turn ended: {:?}, {} calls", summary.stop, summary.tool_calls)
        }
        TuiEvent::SessionOpened { .. } => "session opened".to_owned(),
        TuiEvent::SessionsListed { sessions, .. } => format!("{} sessions listed", sessions.len()),
        TuiEvent::StatusChanged { .. } => "status changed".to_owned(),
        TuiEvent::NothingToRetry => "nothing to retry".to_owned(),
        TuiEvent::Exported { .. } => "exported".to_owned(),
        TuiEvent::Reply { title, .. } => format!("reply: {title}"),
        TuiEvent::Notice { level, text } => format!("notice {level:?}: {text}"),
        TuiEvent::RuntimeEnded => "runtime ended".to_owned(),
    }
}

/// Answers questions in order; panics on one too many, so that a test sees every question.
pub struct ScriptedPerson {
    sink: Arc<RecordingSink>,
    answers: Mutex<VecDeque<PermissionPromptDecision>>,
    asked: Mutex<Vec<PermissionRequest>>,
}

impl ScriptedPerson {
    pub fn new(sink: Arc<RecordingSink>, answers: Vec<PermissionPromptDecision>) -> Arc<Self> {
        Arc::new(Self { sink, answers: Mutex::new(answers.into()), asked: Mutex::default() })
    }

    pub fn asked(&self) -> Vec<PermissionRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl PermissionPrompter for ScriptedPerson {
    fn decide<'a>(
        &'a self,
        request: PermissionRequest,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionPromptDecision> {
        Box::pin(async move {
            let id = request.id;
            self.asked.lock().unwrap().push(request.clone());
            let (reply, answer) = claw_runtime::permissions::PermissionReply::channel();
            self.sink.emit(TuiEvent::PermissionRequired { request, reply });
            drop(answer);
            self.sink.emit(TuiEvent::PermissionRetired { id, reason: RetiredReason::Answered });
            self.answers.lock().unwrap().pop_front().expect("an answer for each question")
        })
    }
}
