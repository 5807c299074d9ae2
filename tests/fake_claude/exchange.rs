//! One message of the model: the request, its repetition after failures, its stream.

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::api::{Events, Failure};
use crate::conversation::Conversation;
use crate::message::Message;
use crate::record::uuid;

/// Why no whole message came.
pub enum End {
    Interrupted(Option<Message>),
    Failed(Failure, Option<Message>),
}

/// How often a request is repeated.
fn max_retries() -> u32 {
    let named = std::env::var("CLAUDE_CODE_MAX_RETRIES").ok();
    named.and_then(|text| text.parse().ok()).unwrap_or(10)
}

impl Conversation {
    /// Asks the model for its next message.
    pub async fn exchange(&mut self) -> Result<Message, End> {
        let first = !std::mem::replace(&mut self.asked_before, true);
        let request_ref = self.note_request(first);
        let front = self.session.front.clone();
        if !self.quiet {
            front.requesting();
        }
        let (mut attempt, mut overloads, mut cuts) = (0, 0, 0);
        loop {
            let streamed = cuts < 2;
            let (failure, partial) = match self.try_once(&request_ref, streamed).await {
                Err(End::Failed(failure, partial)) => (failure, partial),
                other => return other,
            };
            if failure.status == Some(404) && streamed {
                // A server that knows no streams is asked once more without one.
                cuts = 2;
                continue;
            }
            overloads += u32::from(failure.status == Some(529));
            cuts += u32::from(failure.cut);
            attempt += 1;
            if !failure.may_be_repeated() || attempt > max_retries() || overloads >= 3 {
                return Err(End::Failed(failure, partial));
            }
            let delay = failure.delay(attempt, &self.session);
            let class = failure.tell(&self.session, false).class;
            let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            front.retry(attempt, max_retries(), millis, failure.status, class);
            let slept = self.unless_stopped(tokio::time::sleep(delay)).await;
            slept.map_err(|_| End::Interrupted(partial))?;
        }
    }

    fn body(&self, streamed: bool) -> Value {
        let session = &self.session;
        let offered = ["Agent", "Bash", "Edit", "Read", "Write", "AskUserQuestion", "ExitPlanMode"];
        let refused = &session.options.disallowed_tools;
        let tools = offered.into_iter().filter(|name| !refused.iter().any(|no| no == name));
        let tools: Vec<Value> = tools
            .map(|name| {
                json!({"name": name, "description": "(elided)",
                "input_schema": {"type": "object", "properties": {}}})
            })
            .collect();
        let system = session.options.system_prompt.as_deref();
        json!({
            "model": session.model(), "max_tokens": 128_000, "stream": streamed,
            "system": [{"type": "text",
                "text": system.unwrap_or("You are Claude Code, Anthropic's official CLI for Claude.")}],
            "tools": tools, "messages": self.history,
        })
    }

    async fn try_once(&self, request_ref: &str, streamed: bool) -> Result<Message, End> {
        let session = &self.session;
        let body = self.body(streamed);
        let id = session.id();
        let agent = self.agent.as_ref().map(|agent| agent.id.as_str());
        let sent = self.unless_stopped(session.api.send(&id, agent, &body)).await;
        let response = sent
            .map_err(|_| End::Interrupted(None))?
            .map_err(|failure| End::Failed(failure, None))?;
        session.request_count.set(session.request_count.get() + 1);
        let named = response.headers().get("request-id").and_then(|value| value.to_str().ok());
        let request_id =
            named.map_or_else(|| format!("req_{}", session.request_count.get()), str::to_owned);
        if !streamed {
            let body = self.unless_stopped(response.json::<Value>()).await;
            let body = body.map_err(|_| End::Interrupted(None))?.unwrap_or_default();
            return Ok(Message::whole(&body, request_id, request_ref.to_owned()));
        }
        let message = Message::new(request_id, request_ref.to_owned());
        self.read(Events::new(response), message).await
    }

    async fn read(&self, mut events: Events, mut message: Message) -> Result<Message, End> {
        let front = &self.session.front;
        let tool_use = self.agent.as_ref().map(|agent| agent.tool_use_id.as_str());
        let display = Display::begin(self);
        loop {
            let event = match self.unless_stopped(events.next()).await {
                Err(_) => return Err(End::Interrupted(Some(message))),
                Ok(Ok(Some(event))) => event,
                Ok(Ok(None)) if message.ended => break,
                Ok(Ok(None)) => {
                    let cut = Failure {
                        kind: "connection_error".to_owned(),
                        cut: true,
                        ..Failure::default()
                    };
                    return Err(End::Failed(cut, Some(message)));
                }
                Ok(Err(failure)) => return Err(End::Failed(failure, Some(message))),
            };
            if event["type"] == "error" {
                let failure = Failure {
                    kind: event["error"]["type"].as_str().unwrap_or_default().to_owned(),
                    message: event.to_string(),
                    ..Failure::default()
                };
                return Err(End::Failed(failure, Some(message)));
            }
            message.take(&event);
            if let Some(text) = event["delta"]["text"].as_str() {
                display.add(text);
                self.session.quirks.die("die-in-turn");
            }
            if event["type"] == "content_block_stop" && !self.quiet {
                let index = event["index"].as_u64().and_then(|at| usize::try_from(at).ok());
                if let Some(block) = index.and_then(|index| message.blocks.get(index)) {
                    front.block(&message, &block.content, tool_use);
                }
            }
            if !self.quiet {
                front.api_event(&event, &message, tool_use);
            }
            if message.ended {
                break;
            }
        }
        display.end(&message).await;
        Ok(message)
    }
}

/// Runs the MessageDisplay hooks of one message, one after the other.
struct Display {
    lines: Option<mpsc::UnboundedSender<String>>,
    done: Option<tokio::task::JoinHandle<()>>,
}

impl Display {
    fn begin(conversation: &Conversation) -> Self {
        let session = &conversation.session;
        let shown = !session.options.print && conversation.agent.is_none() && !conversation.quiet;
        if !session.hooks.has("MessageDisplay") || !shown {
            return Self { lines: None, done: None };
        }
        let (lines, mut pieces) = mpsc::unbounded_channel::<String>();
        let view = conversation.view();
        let done = tokio::task::spawn_local(async move {
            let (turn, message) = (uuid(), uuid());
            let (mut text, mut index) = (String::new(), 0);
            let mut open = true;
            while open {
                let piece = pieces.recv().await;
                open = piece.is_some();
                text.extend(piece);
                while let Ok(more) = pieces.try_recv() {
                    text.push_str(&more);
                }
                let whole = if open { text.rfind('\n').map_or(0, |at| at + 1) } else { text.len() };
                if whole == 0 {
                    continue;
                }
                let delta: String = text.drain(..whole).collect();
                view.fire(
                    "MessageDisplay",
                    json!({"turn_id": turn, "message_id": message, "index": index,
                        "final": !open, "delta": delta}),
                )
                .await;
                index += 1;
            }
        });
        Self { lines: Some(lines), done: Some(done) }
    }

    fn add(&self, text: &str) {
        if let Some(lines) = &self.lines {
            let _ = lines.send(text.to_owned());
        }
    }

    /// The last flush comes before anything else of the turn.
    async fn end(mut self, _message: &Message) {
        self.lines = None;
        if let Some(done) = self.done.take() {
            let _ = done.await;
        }
    }
}
