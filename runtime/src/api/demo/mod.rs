//! The scripted demo: a backend without any model, so that a fresh machine shows everything at
//! work. It streams, thinks and calls the *real* tools behind the *real* permission questions.
//!
//! It recognises a handful of requests and says honestly when it does not. The words are data in
//! `assets/demo/script.json`; this file only plays them.

mod script;

use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use self::script::{Scene, Script, Step};
use super::{ApiClient, ApiError, ApiRequest, AssistantTurn, StopReason};
use crate::context::TurnContext;
use crate::event::TuiEvent;
use crate::session::{ContentBlock, ConversationMessage, MessageRole, PartialReason};
use crate::usage::TokenUsage;

/// Name of the only model.
pub const MODEL: &str = "scripted-demo";

/// Stays in the status line while the demo is in use.
pub const NOTE: &str = "This is a scripted demo: no model answers. To connect one, leave with /exit, set ANTHROPIC_API_KEY (or OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own) and start again.";

/// A word is streamed about every so often: near the pace of a hosted model.
pub const DEFAULT_PACE: Duration = Duration::from_millis(14);

/// Plays the script.
pub struct DemoClient {
    script: Script,
    pace: Duration,
}

impl DemoClient {
    /// `pace` is the pause between two words; zero for tests.
    pub fn new(pace: Duration) -> Result<Self, ApiError> {
        let script = Script::embedded().map_err(|error| ApiError::Protocol {
            endpoint: "the embedded demo script".to_owned(),
            message: error.to_string(),
        })?;
        Ok(Self { script, pace })
    }
}

impl ApiClient for DemoClient {
    fn stream<'a>(
        &'a mut self,
        request: ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<AssistantTurn, ApiError>> {
        Box::pin(async move {
            let place = Place::of(&request);
            let scene = self.script.scene_for(&place.prompt);
            let step = scene.step(place.answers);
            let mut player = Player { cx, pace: self.pace, blocks: Vec::new() };
            let finished = player.play(step, scene, &place).await;
            Ok(player.turn(&request, finished))
        })
    }
}

/// Where in its scene the conversation is.
struct Place {
    /// The last prompt.
    prompt: String,
    /// Answers given since that prompt.
    answers: usize,
    /// Output of the last tool, and whether any tool since the last answer failed or was denied.
    last_output: String,
    failed: bool,
}

impl Place {
    fn of(request: &ApiRequest) -> Self {
        let mut place =
            Self { prompt: String::new(), answers: 0, last_output: String::new(), failed: false };
        for message in &request.messages {
            match message.role {
                MessageRole::User => {
                    place = Self { prompt: message.text(), ..place };
                    place.answers = 0;
                }
                MessageRole::Assistant => {
                    place.answers += 1;
                    place.failed = false;
                }
                MessageRole::Tool => place.note_results(message),
                MessageRole::System => {}
            }
        }
        place
    }

    fn note_results(&mut self, message: &ConversationMessage) {
        for block in &message.blocks {
            if let ContentBlock::ToolResult { output, is_error, .. } = block {
                self.last_output.clone_from(output);
                self.failed |= is_error;
            }
        }
    }

    /// Fills the placeholders of a script text.
    fn fill(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let quoted: String = self.prompt.chars().take(120).collect();
        let first_line = self.last_output.lines().find(|line| !line.trim().is_empty());
        text.replace("{prompt}", quoted.trim())
            .replace("{first_line}", first_line.unwrap_or("README.md").trim())
    }
}

/// Streams one step and collects what was streamed.
struct Player<'a> {
    cx: &'a TurnContext,
    pace: Duration,
    blocks: Vec<ContentBlock>,
}

impl Player<'_> {
    /// False when the person stopped it on the way.
    async fn play(&mut self, step: &Step, scene: &Scene, place: &Place) -> bool {
        let (text, goes_on) = match &step.if_failed {
            Some(text) if place.failed => (text, false),
            _ => (&step.text, true),
        };
        if !step.thinking.is_empty() && !self.think(&place.fill(&step.thinking)).await {
            return false;
        }
        if !text.is_empty() && !self.say(&place.fill(text)).await {
            return false;
        }
        if goes_on {
            for tool in &step.tools {
                let input = place.fill(&tool.input.to_string());
                self.call(&tool.name, input);
            }
        }
        tracing::debug!(scene = scene.name, "played a step of the demo");
        true
    }

    async fn think(&mut self, text: &str) -> bool {
        self.cx.sink.emit(TuiEvent::ThinkingStarted);
        let mut said = String::new();
        let mut whole = true;
        for word in words(text) {
            said.push_str(word);
            self.cx.sink.emit(TuiEvent::ThinkingDelta { text: word.to_owned() });
            if !self.pause().await {
                whole = false;
                break;
            }
        }
        let char_count = said.chars().count();
        self.cx.sink.emit(TuiEvent::ThinkingEnded { char_count, redacted: false });
        self.blocks.push(ContentBlock::Thinking { thinking: said, signature: None });
        whole
    }

    async fn say(&mut self, text: &str) -> bool {
        let mut said = String::new();
        let mut whole = true;
        for word in words(text) {
            said.push_str(word);
            self.cx.sink.emit(TuiEvent::TextDelta { text: word.to_owned() });
            if !self.pause().await {
                whole = false;
                break;
            }
        }
        self.blocks.push(ContentBlock::Text { text: said });
        whole
    }

    fn call(&mut self, name: &str, input: String) {
        let id = format!("demo_{}", Uuid::new_v4().simple());
        self.cx.sink.emit(TuiEvent::ToolUseStarted { id: id.clone(), name: name.to_owned() });
        self.cx.sink.emit(TuiEvent::ToolUse {
            id: id.clone(),
            name: name.to_owned(),
            input: input.clone(),
        });
        self.blocks.push(ContentBlock::ToolUse { id, name: name.to_owned(), input });
    }

    async fn pause(&self) -> bool {
        tokio::select! {
            biased;
            () = self.cx.cancel.cancelled() => false,
            () = tokio::time::sleep(self.pace) => true,
        }
    }

    fn turn(self, request: &ApiRequest, finished: bool) -> AssistantTurn {
        let calls = self.blocks.iter().any(|block| matches!(block, ContentBlock::ToolUse { .. }));
        let stop_reason = match (finished, calls) {
            (false, _) => StopReason::Cancelled,
            (true, true) => StopReason::ToolUse,
            (true, false) => StopReason::EndTurn,
        };
        self.cx.sink.emit(TuiEvent::MessageStop { stop_reason: stop_reason.clone() });
        let usage = estimated_usage(request, &self.blocks);
        let mut message = ConversationMessage::new(MessageRole::Assistant, self.blocks);
        message.usage = Some(usage);
        message.model = Some(MODEL.to_owned());
        message.partial = (!finished).then_some(PartialReason::Cancelled);
        AssistantTurn { messages: vec![message], stop_reason }
    }
}

/// Words with the white space that follows them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive([' ', '\n'])
}

/// The demo has no tokenizer: four bytes count as a token, so that the meters show something true
/// in kind.
fn estimated_usage(request: &ApiRequest, blocks: &[ContentBlock]) -> TokenUsage {
    let system: usize = request.system.iter().map(String::len).sum();
    let input: usize =
        request.messages.iter().flat_map(|message| &message.blocks).map(size).sum::<usize>()
            + system;
    let output: usize = blocks.iter().map(size).sum();
    TokenUsage {
        input_tokens: input as u64 / 4,
        output_tokens: output as u64 / 4,
        ..TokenUsage::default()
    }
}

fn size(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text } => text.len(),
        ContentBlock::Thinking { thinking, .. } => thinking.len(),
        ContentBlock::RedactedThinking { data } => data.len(),
        ContentBlock::ToolUse { input, .. } => input.len(),
        ContentBlock::ToolResult { output, .. } => output.len(),
    }
}
