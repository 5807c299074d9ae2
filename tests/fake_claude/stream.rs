//! `-p` with stream-json in both directions: one loop over the host's lines and the turn.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::argv::Options;
use crate::conversation::Conversation;
use crate::open;
use crate::quirks::Quirks;
use crate::record::{timestamp, uuid};
use crate::session::{Prompt, Session, Source};
use crate::stream_front::StreamFront;
use crate::terminal::read_input;
use crate::turn::Ended;
use crate::version::Version;

type Running = LocalBoxFuture<'static, (Conversation, Ended)>;

struct Host {
    session: Rc<Session>,
    front: Rc<StreamFront>,
    desk: Conversation,
    idle: Option<Conversation>,
    running: Option<Running>,
    cancel: CancellationToken,
    began: Instant,
    interrupted: bool,
    /// Lines that came together with the first.
    lines: VecDeque<Value>,
    buffer: Vec<u8>,
}

/// Runs until the input ends; the exit status.
pub async fn run(version: Version, options: Options, quirks: Quirks) -> i32 {
    let front = Rc::new(StreamFront::new(version, &options));
    let (session, opening, _) = match open::session(version, options, quirks, front.clone()) {
        Ok(made) => made,
        Err(words) => {
            eprintln!("{words}");
            return 1;
        }
    };
    *front.session_id.borrow_mut() = session.id();
    if session.quirks.has("stall-at-start") || session.quirks.has("auth-at-start") {
        if session.quirks.has("auth-at-start") {
            eprintln!("Invalid API key · Please run /login");
        }
        return std::future::pending().await;
    }
    let thread = opening.conversation(&session);
    let mut host = Host {
        desk: thread.view(),
        idle: Some(thread),
        running: None,
        cancel: CancellationToken::new(),
        began: Instant::now(),
        interrupted: false,
        lines: VecDeque::new(),
        buffer: Vec::new(),
        front,
        session,
    };
    host.live(&opening).await
}

impl Host {
    async fn live(&mut self, opening: &open::Opening) -> i32 {
        let session = Rc::clone(&self.session);
        let mut term = signal(SignalKind::terminate()).expect("a handler for a signal");
        let mut input = read_input(session.quirks.path("log-input"));
        self.begin(opening).await;
        let prompt = session.options.prompt.clone();
        let mut open = prompt.is_none();
        if let Some(prompt) = prompt {
            self.start(vec![Prompt::new(prompt, Source::Typed)]);
        }
        while open || self.running.is_some() {
            let running = self.running.as_mut();
            let turn = async move {
                match running {
                    Some(running) => running.await,
                    None => std::future::pending().await,
                }
            };
            let idle = self.idle.is_some();
            tokio::select! {
                biased;
                _ = term.recv(), if !session.quirks.has("ignore-sigterm") => {
                    return self.leave(143).await;
                }
                bytes = input.recv(), if open => match bytes {
                    Some(bytes) => {
                        self.take(&bytes);
                        self.obey_all();
                    }
                    None => open = false,
                },
                (thread, ended) = turn => {
                    self.turn_over(thread, &ended);
                    self.take_queue();
                }
                () = session.queued.notified(), if idle => self.take_queue(),
            }
        }
        let code = i32::from(self.interrupted);
        self.leave(code).await
    }

    async fn begin(&mut self, opening: &open::Opening) {
        if let Some(wait) = self.session.quirks.millis("slow-ready") {
            tokio::time::sleep(wait).await;
        }
        let name = format!("SessionStart:{}", opening.source);
        let about = json!({"hook_id": uuid(), "hook_name": name, "hook_event": "SessionStart"});
        let heard = self.session.hooks.has("SessionStart");
        let say = |subtype: &str, more: Value| {
            let mut line = json!({"type": "system", "subtype": subtype});
            for part in [&about, &more] {
                for (key, value) in part.as_object().into_iter().flatten() {
                    line[key] = value.clone();
                }
            }
            self.front.say(line);
        };
        if heard {
            say("hook_started", json!({}));
        }
        self.desk.fire("SessionStart", opening.about(&self.session)).await;
        if heard {
            say(
                "hook_response",
                json!({"output": "", "stdout": "", "stderr": "", "exit_code": 0,
                "outcome": "success"}),
            );
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            if let Ok(line) = serde_json::from_slice(&line) {
                self.lines.push_back(line);
            }
        }
    }

    fn obey_all(&mut self) {
        while let Some(line) = self.lines.pop_front() {
            match line["type"].as_str().unwrap_or_default() {
                "control_request" => self.control(&line),
                "control_response" => self.front.answer(&line["response"]),
                "user" => self.user(&line["message"]["content"]),
                _ => {}
            }
        }
    }

    fn control(&mut self, line: &Value) {
        let response = match line["request"]["subtype"].as_str() {
            Some("initialize") => {
                let mut answer = json!({"commands": [{"name": "compact", "description": ""}],
                    "agents": [], "output_style": "default", "models": [],
                    "account": {"tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY",
                        "apiProvider": "firstParty"},
                    "pid": std::process::id()});
                if self.session.version.is_332() {
                    answer["claude_code_version"] = json!(self.session.version.number());
                    answer["current_permission_mode"] = json!(self.session.mode());
                }
                answer
            }
            Some("interrupt") => {
                self.cancel.cancel();
                json!({"still_queued": []})
            }
            Some("set_permission_mode") => {
                if let Some(mode) = line["request"]["mode"].as_str() {
                    mode.clone_into(&mut self.session.state.borrow_mut().mode);
                }
                json!({})
            }
            _ => json!({}),
        };
        self.front.write(&json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": line["request_id"], "response": response}}));
    }

    fn user(&mut self, content: &Value) {
        let text = match content {
            Value::String(text) => text.clone(),
            blocks => {
                let blocks = blocks.as_array().into_iter().flatten();
                blocks.filter_map(|block| block["text"].as_str()).collect()
            }
        };
        if self.running.is_some() {
            self.desk.note(json!({"type": "queue-operation", "operation": "enqueue",
                "timestamp": timestamp(), "content": text}));
            self.session.enqueue(Prompt::new(text, Source::Queued));
            return;
        }
        self.start(vec![Prompt::new(text, Source::Typed)]);
    }

    fn start(&mut self, prompts: Vec<Prompt>) {
        let Some(mut thread) = self.idle.take() else { return };
        self.cancel = CancellationToken::new();
        thread.cancel = self.cancel.clone();
        self.began = Instant::now();
        self.front.messages.set(0);
        self.say_init();
        let compacts = prompts.len() == 1 && prompts[0].text.trim() == "/compact";
        self.running = Some(
            async move {
                let ended =
                    if compacts { thread.compact().await } else { thread.turn(prompts).await };
                (thread, ended)
            }
            .boxed_local(),
        );
    }

    fn say_init(&self) {
        let session = &self.session;
        self.front.say(json!({"type": "system", "subtype": "init", "cwd": session.home.cwd,
            "tools": ["Task", "Bash", "Edit", "Read", "Write"], "mcp_servers": [],
            "model": session.model(), "permissionMode": session.mode(),
            "slash_commands": ["compact"], "apiKeySource": "ANTHROPIC_API_KEY",
            "claude_code_version": session.version.number(), "output_style": "default",
            "agents": ["general-purpose"], "skills": [], "plugins": []}));
    }

    fn turn_over(&mut self, thread: Conversation, ended: &Ended) {
        self.running = None;
        let last = thread.history.iter().rev().find(|message| message["role"] == "assistant");
        let said = last.map(|message| {
            let blocks = message["content"].as_array().into_iter().flatten();
            let mut texts = blocks.rev().filter_map(|block| block["text"].as_str());
            texts.next().unwrap_or_default().to_owned()
        });
        self.idle = Some(thread);
        self.interrupted = matches!(ended, Ended::Interrupted | Ended::Withdrawn(_));
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(0);
        let mut line = json!({"type": "result", "subtype": "success", "is_error": false,
            "duration_ms": millis, "duration_api_ms": millis, "ttft_ms": 1,
            "num_turns": self.front.messages.get(), "stop_reason": "end_turn",
            "total_cost_usd": 0.0, "usage": *self.front.usage.borrow(), "modelUsage": {},
            "permission_denials": std::mem::take(&mut *self.front.denials.borrow_mut()),
            "terminal_reason": "completed"});
        match ended {
            Ended::Completed if self.front.messages.get() == 0 => line["result"] = json!(""),
            Ended::Completed => line["result"] = json!(said.unwrap_or_default()),
            Ended::Failed { text, .. } => {
                line["is_error"] = json!(true);
                line["result"] = json!(text);
                line["stop_reason"] = json!("stop_sequence");
                line["terminal_reason"] = json!("api_error");
                line["api_error_status"] = json!(self.front.failed_status.get());
            }
            Ended::Interrupted | Ended::Withdrawn(_) => {
                line["subtype"] = json!("error_during_execution");
                line["is_error"] = json!(true);
                line["stop_reason"] = Value::Null;
                line["terminal_reason"] = json!("aborted_streaming");
            }
        }
        self.front.say(line);
    }

    fn take_queue(&mut self) {
        if self.running.is_some() {
            return;
        }
        let prompts: Vec<Prompt> = self.session.state.borrow_mut().queue.drain(..).collect();
        if prompts.is_empty() {
            return;
        }
        for _ in &prompts {
            self.desk.note(json!({"type": "queue-operation", "operation": "dequeue",
                "timestamp": timestamp()}));
        }
        self.start(prompts);
    }

    async fn leave(&mut self, code: i32) -> i32 {
        self.session.end_commands();
        self.desk.fire("SessionEnd", json!({"reason": "other"})).await;
        self.desk.transcript.flush();
        code
    }
}
