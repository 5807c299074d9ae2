//! stream-json as the front of a conversation: what is told becomes lines of JSON on stdout.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::argv::Options;
use crate::conversation::Agent;
use crate::front::{Answer, Front, Question};
use crate::message::Message;
use crate::record::{timestamp, uuid};
use crate::version::Version;

pub struct StreamFront {
    version: Version,
    partial: bool,
    replay: bool,
    /// Somebody answers questions.
    host: bool,
    pub session_id: RefCell<String>,
    asked: RefCell<BTreeMap<String, oneshot::Sender<Answer>>>,
    pub failed_status: Cell<Option<u16>>,
    /// Only the result is printed.
    silent: bool,
    pub denials: RefCell<Vec<Value>>,
    pub messages: Cell<u64>,
    pub usage: RefCell<Value>,
}

impl StreamFront {
    pub fn new(version: Version, options: &Options) -> Self {
        Self {
            version,
            partial: options.partial_messages,
            replay: options.replay_user_messages,
            host: options.permission_prompt_tool.as_deref() == Some("stdio"),
            session_id: RefCell::default(),
            asked: RefCell::default(),
            failed_status: Cell::new(None),
            silent: options.output_format.as_deref() != Some("stream-json"),
            denials: RefCell::default(),
            messages: Cell::new(0),
            usage: RefCell::new(json!({})),
        }
    }

    /// One line, with the session's id and an id of its own.
    pub fn say(&self, mut line: Value) {
        line["session_id"] = json!(*self.session_id.borrow());
        line["uuid"] = json!(uuid());
        self.write(&line);
    }

    pub fn write(&self, line: &Value) {
        if self.silent && line["type"] != "result" {
            return;
        }
        let mut out = std::io::stdout().lock();
        // A host that has gone ends us by the end of our input.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    /// The host's answer to a question.
    pub fn answer(&self, response: &Value) {
        let id = response["request_id"].as_str().unwrap_or_default();
        let Some(reply) = self.asked.borrow_mut().remove(id) else { return };
        let said = &response["response"];
        let answer = if response["subtype"] == "success" && said["behavior"] == "allow" {
            let updated = said["updatedInput"].clone();
            Answer::Yes { updated_input: updated.is_object().then_some(updated) }
        } else if said["interrupt"] == true {
            Answer::Stop
        } else {
            let message = said["message"].as_str().or(response["error"].as_str());
            Answer::No { message: Some(message.unwrap_or("denied").to_owned()) }
        };
        // The turn may have ended meanwhile.
        let _ = reply.send(answer);
    }

    fn assistant(&self, message: &Message, content: &Value, tool_use: Option<&str>) -> Value {
        let mut inner = message.with_block(content, false, self.version.is_332());
        inner["context_management"] = Value::Null;
        let mut line = json!({"type": "assistant", "message": inner,
            "parent_tool_use_id": tool_use, "request_id": message.request_id});
        if self.version.is_332() {
            line["timestamp"] = json!(timestamp());
            if content["type"] == "thinking" {
                line["thinking_duration_ms"] = json!(100);
                line["thinking_display"] = json!("updates");
            }
        }
        line
    }

    fn event(&self, event: &Value, message: &Message, tool_use: Option<&str>) {
        if !self.partial {
            return;
        }
        let mut line =
            json!({"type": "stream_event", "event": event, "parent_tool_use_id": tool_use});
        if self.version.is_332() {
            line["api_message_id"] = json!(message.id);
        }
        if event["type"] == "message_start" {
            line["ttft_ms"] = json!(1);
            if self.version.is_332() {
                line["thinking_display"] = json!("updates");
            }
        }
        self.say(line);
    }
}

impl Front for StreamFront {
    fn requesting(&self) {
        self.say(json!({"type": "system", "subtype": "status", "status": "requesting"}));
    }

    fn api_event(&self, event: &Value, message: &Message, tool_use: Option<&str>) {
        if let Some(text) = event["delta"]["thinking"].as_str() {
            let more = text.len() / 4;
            let all: usize = message
                .blocks
                .iter()
                .filter_map(|block| block.content["thinking"].as_str())
                .map(|text| text.len() / 4)
                .sum();
            self.say(json!({"type": "system", "subtype": "thinking_tokens",
                "estimated_tokens": all, "estimated_tokens_delta": more}));
        }
        self.event(event, message, tool_use);
        if message.ended {
            self.messages.set(self.messages.get() + 1);
            *self.usage.borrow_mut() =
                message.with_block(&Value::Null, true, self.version.is_332())["usage"].clone();
        }
    }

    fn block(&self, message: &Message, content: &Value, tool_use: Option<&str>) {
        self.say(self.assistant(message, content, tool_use));
    }

    fn compacting(&self) {
        self.say(json!({"type": "system", "subtype": "status", "status": "compacting"}));
    }

    fn compacted(&self, metadata: &Value, words: &str) {
        self.say(json!({"type": "system", "subtype": "status", "status": null,
            "compact_result": "success"}));
        self.say(json!({"type": "system", "subtype": "compact_boundary", "compact_metadata": {
            "trigger": metadata["trigger"], "pre_tokens": metadata["preTokens"],
            "post_tokens": metadata["postTokens"], "cumulative_dropped_tokens": 0,
            "duration_ms": metadata["durationMs"]}}));
        for text in [words, "<local-command-stdout>Compacted </local-command-stdout>"] {
            self.say(json!({"type": "user", "message": {"role": "user", "content": text},
                "parent_tool_use_id": null, "timestamp": timestamp(), "isReplay": true}));
        }
    }

    fn agent_began(&self, agent: &Agent, description: &str, prompt: &str) {
        let mut line = json!({"type": "system", "subtype": "task_started", "task_id": agent.id,
            "tool_use_id": agent.tool_use_id, "description": description,
            "subagent_type": agent.kind, "task_type": "local_agent", "prompt": prompt});
        if self.version.is_332() {
            line["is_backgrounded"] = json!(true);
            line["spawn_depth"] = json!(1);
        }
        self.say(line);
    }

    fn agent_ended(&self, agent: &Agent, description: &str, last: &str) {
        let summary = match self.version {
            Version::V332 => last.to_owned(),
            Version::V197 => format!("Agent \"{description}\" finished"),
        };
        self.say(json!({"type": "system", "subtype": "task_notification", "task_id": agent.id,
            "tool_use_id": agent.tool_use_id, "status": "completed", "output_file": "",
            "summary": summary,
            "usage": {"total_tokens": 15, "tool_uses": 0, "duration_ms": 1}}));
    }

    fn aborted(&self, message: &Message, content: &Value) {
        let mut line = self.assistant(message, content, None);
        if self.version.is_332() {
            line["aborted"] = json!(true);
        }
        self.say(line);
    }

    fn aborted_end(&self, message: &Message) {
        if !self.version.is_332() {
            return;
        }
        let index = message.blocks.len().saturating_sub(1);
        for event in [
            json!({"type": "content_block_stop", "index": index}),
            json!({"type": "message_delta", "delta": {"stop_reason": null, "stop_sequence": null},
                "usage": {"output_tokens": 1}}),
            json!({"type": "message_stop"}),
        ] {
            self.event(&event, message, None);
        }
    }

    fn tool_result(&self, record: &Value, tool_use: Option<&str>) {
        let mut line = json!({"type": "user", "message": record["message"],
            "parent_tool_use_id": tool_use});
        if !record["toolUseResult"].is_null() {
            line["tool_use_result"] = record["toolUseResult"].clone();
        }
        if self.version.is_332() {
            line["timestamp"] = json!(timestamp());
            if !record["toolUseResult"].is_null() {
                let id = &record["message"]["content"][0]["tool_use_id"];
                let mut meta = json!({"id": id,
                    "permission_decision": record["permissionDecision"]});
                if !record["toolDenialKind"].is_null() {
                    meta["non_execution_kind"] = record["toolDenialKind"].clone();
                }
                line["tool_result_meta"] = json!([meta]);
            }
        }
        self.say(line);
    }

    fn retry(&self, attempt: u32, max: u32, delay_ms: u64, status: Option<u16>, class: &str) {
        self.say(json!({"type": "system", "subtype": "api_retry", "attempt": attempt,
            "max_retries": max, "retry_delay_ms": delay_ms, "error_status": status,
            "error": class}));
    }

    fn failed(&self, text: &str, class: &str, status: Option<u16>) {
        self.failed_status.set(status);
        self.say(json!({"type": "assistant", "parent_tool_use_id": null, "error": class,
            "message": {"id": uuid(), "type": "message", "role": "assistant",
                "model": "<synthetic>", "stop_reason": "stop_sequence", "stop_sequence": "",
                "usage": {"input_tokens": 0, "output_tokens": 0},
                "content": [{"type": "text", "text": text}]}}));
    }

    fn replayed(&self, text: &str, uuid: &str) {
        if !self.replay {
            return;
        }
        self.write(&json!({"type": "user", "message": {"role": "user",
            "content": [{"type": "text", "text": text}]}, "parent_tool_use_id": null,
            "session_id": *self.session_id.borrow(), "uuid": uuid, "timestamp": timestamp(),
            "isReplay": true}));
    }

    fn ask(&self, question: Question) -> LocalBoxFuture<'static, Answer> {
        if !self.host {
            let words = format!("{} needs approval.", question.tool);
            if self.version.is_332() {
                self.say(json!({"type": "system", "subtype": "permission_denied",
                    "tool_name": question.tool, "tool_use_id": question.tool_use_id,
                    "message": words}));
            }
            self.denials.borrow_mut().push(json!({"tool_name": question.tool,
                "tool_use_id": question.tool_use_id, "tool_input": question.input}));
            return async { Answer::Nobody }.boxed_local();
        }
        let id = uuid();
        let mut request = json!({"subtype": "can_use_tool", "tool_name": question.tool,
            "display_name": question.tool, "input": question.input,
            "tool_use_id": question.tool_use_id});
        if let Some(description) = question.input["description"].as_str() {
            request["description"] = json!(description);
        }
        if let Some(suggestions) = &question.suggestions {
            request["permission_suggestions"] = suggestions.clone();
        }
        if let Some(agent) = &question.agent {
            request["agent_id"] = json!(agent);
        }
        if question.needs_person {
            request["requires_user_interaction"] = json!(true);
        }
        let (reply, answer) = oneshot::channel();
        self.asked.borrow_mut().insert(id.clone(), reply);
        self.write(&json!({"type": "control_request", "request_id": id, "request": request}));
        async move { answer.await.unwrap_or(Answer::Stop) }.boxed_local()
    }
}
