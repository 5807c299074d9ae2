//! One turn: prompts go in, messages and tool calls follow until it ends in one of its ways.

use std::time::Instant;

use serde_json::{Value, json};

use crate::api::Failure;
use crate::conversation::Conversation;
use crate::exchange::End;
use crate::message::Message;
use crate::record::{hash, timestamp, uuid};
use crate::session::{Prompt, Source};

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Completed,
    Failed {
        /// The account's limit: it may go on by itself.
        limit: bool,
        text: String,
    },
    Interrupted,
    /// Before the first output: the text belongs into the input box again.
    Withdrawn(String),
}

/// How the loop of messages and tools ended.
pub enum LoopEnd {
    Done(String),
    Failed(Failure, Option<Message>),
    InStream(Option<Message>),
    InTool(Option<String>),
}

const RESUME: &str = "Output token limit hit. Resume directly — no apology, no recap of what you \
                      were doing. Pick up mid-thought if that is where the cut happened. Break \
                      remaining work into smaller pieces.";
const REFUSED: &str = "Your response above was stopped by a safety classifier — this is not a tool \
                       or API error.";
const EMPTY: &str = "Your last response had no visible output. Please answer the person.";

impl Conversation {
    pub async fn turn(&mut self, prompts: Vec<Prompt>) -> Ended {
        let began = Instant::now();
        let before = self.history.len();
        {
            let mut state = self.session.state.borrow_mut();
            state.in_turn = true;
            state.turns += 1;
        }
        self.spoil_transcript();
        let text = prompts.iter().map(|prompt| prompt.text.as_str()).collect::<Vec<_>>().join("\n");
        self.take_prompts(prompts).await;
        let ended = loop {
            let ended = self.converse().await;
            if let LoopEnd::Done(last) = &ended
                && self.stop_hook_goes_on(last).await
            {
                continue;
            }
            let silent = self.history.len() == before + 1;
            break self.end(ended, silent, began, &text).await;
        };
        if matches!(ended, Ended::Withdrawn(_)) {
            self.history.truncate(before);
        }
        self.session.state.borrow_mut().in_turn = false;
        self.stop_hook_active = false;
        ended
    }

    fn spoil_transcript(&self) {
        if self.session.state.borrow().turns == 2 {
            if self.session.quirks.has("truncate-transcript") {
                self.transcript.truncate();
            }
            if self.session.quirks.has("replace-transcript") {
                self.transcript.replace();
            }
        }
    }

    async fn take_prompts(&mut self, prompts: Vec<Prompt>) {
        self.session.quirks.die("die-at-prompt");
        let is_332 = self.session.version.is_332();
        let mut blocks = Vec::new();
        for prompt in prompts {
            let prompt_id = uuid();
            let turn_index = {
                let mut state = self.session.state.borrow_mut();
                state.prompt_id = Some(prompt_id.clone());
                state.last_prompt.clone_from(&prompt.text);
                state.prompts += u64::from(prompt.source != Source::Notification);
                json!({"promptIndex": state.prompts, "turnIndex": state.turns})
            };
            if !prompt.announced {
                self.fire("UserPromptSubmit", json!({"prompt": prompt.text})).await;
            }
            self.session.front.prompt(&prompt.text);
            if self.transcript.chained.get() == 0 && self.agent.is_none() {
                self.note_state(false);
                if !is_332 {
                    self.note(json!({"type": "ai-title", "aiTitle": "(elided)"}));
                }
            }
            let (source, origin) = match prompt.source {
                Source::Typed if self.session.options.print => ("sdk", "human"),
                Source::Typed => ("typed", "human"),
                Source::Queued => ("queued", "human"),
                Source::Notification => ("system", "task-notification"),
            };
            let mode = self.session.mode();
            let mut record = json!({"promptId": prompt_id, "type": "user",
                "message": {"role": "user", "content": prompt.text},
                "permissionMode": mode, "origin": {"kind": origin}, "promptSource": source});
            if is_332 {
                let turn_origin = if origin == "human" { "human" } else { "task_notification" };
                record["turnOrigin"] = json!(turn_origin);
                record["turnPosition"] = turn_index;
                if prompt.source != Source::Typed {
                    record["sentAtMs"] = json!(jiff::Timestamp::now().as_millisecond());
                }
                if prompt.source == Source::Notification {
                    record["rowSource"] = json!("recorded");
                    record["queueSkipAttachments"] = json!(true);
                }
            }
            if prompt.source != Source::Notification {
                self.note_snapshot(&prompt.uuid);
            }
            self.chain(record);
            for image in &prompt.images {
                let source = format!("[Image: source: {image}]");
                self.chain(json!({"promptId": prompt_id, "type": "user", "isMeta": true,
                    "message": {"role": "user", "content": [{"type": "text", "text": source}]}}));
            }
            if prompt.source != Source::Notification {
                self.session.front.replayed(&prompt.text, &prompt.uuid);
            }
            blocks.push(json!({"type": "text", "text": prompt.text}));
        }
        if !self.asked_before {
            self.attach_surroundings();
        }
        self.history.push(json!({"role": "user", "content": blocks}));
    }

    /// Messages and tools, until one message asks for none.
    pub async fn converse(&mut self) -> LoopEnd {
        let (mut cuts, mut refusals, mut empties) = (0, 0, 0);
        loop {
            let message = match self.exchange().await {
                Ok(message) => message,
                Err(End::Interrupted(partial)) => return LoopEnd::InStream(partial),
                Err(End::Failed(failure, partial)) => return LoopEnd::Failed(failure, partial),
            };
            let parents = self.chain_message(&message);
            self.history.push(json!({"role": "assistant", "content": message.contents()}));
            let uses = message.tool_uses();
            if !uses.is_empty() {
                match self.use_tools(uses, &parents).await {
                    Ok(()) => continue,
                    Err(_) => return LoopEnd::InTool(Some(message.id)),
                }
            }
            match message.stop_reason.as_deref() {
                Some("max_tokens") if cuts < 3 => {
                    cuts += 1;
                    self.hint(RESUME);
                }
                Some("max_tokens") => return LoopEnd::Failed(Failure::max_output(), None),
                Some("refusal") if !self.session.version.is_332() => {
                    let refused = Failure { kind: "refusal".to_owned(), ..Failure::default() };
                    return LoopEnd::Failed(refused, None);
                }
                Some("refusal") if refusals == 0 => {
                    refusals += 1;
                    self.inform(
                        "Opus 5.5's safeguards stopped the response above · continuing \
                                 once with that noted",
                    );
                    self.hint(REFUSED);
                }
                _ if message.blocks.is_empty() && empties == 0 => {
                    empties += 1;
                    self.hint(EMPTY);
                }
                _ => return LoopEnd::Done(message.text()),
            }
        }
    }

    /// Records of a whole message, one for each block. Returns the uuid of each tool use's record.
    fn chain_message(&self, message: &Message) -> Vec<String> {
        if self.session.version.is_332() && !message.tool_uses().is_empty() {
            let tools = {
                let mut state = self.session.state.borrow_mut();
                for one in message.tool_uses() {
                    let name = one["name"].as_str().unwrap_or_default().to_owned();
                    if !state.used_tools.contains(&name) {
                        state.used_tools.push(name);
                    }
                }
                state.used_tools.clone()
            };
            self.note(json!({"type": "tools-used", "tools": tools}));
        }
        let mut uses = Vec::new();
        for (index, block) in message.blocks.iter().enumerate() {
            let id = self.chain_block(message, index, &block.content, false);
            if block.content["type"] == "tool_use" {
                uses.push(id);
            }
        }
        uses
    }

    fn chain_block(&self, message: &Message, index: usize, content: &Value, cut: bool) -> String {
        let is_332 = self.session.version.is_332();
        let mut inner = message.with_block(content, !(cut && is_332), is_332);
        if cut && is_332 {
            inner["stop_reason"] = Value::Null;
        }
        let mut record = json!({"message": inner, "requestId": message.request_id,
            "type": "assistant", "timestamp": message.blocks[index].at});
        if is_332 {
            record["apiBlockIndex"] = json!(index);
            record["requestRef"] = json!(message.request_ref);
            record["requestedModel"] = json!(self.session.model());
            record["promptCacheRequested"] = json!("5m");
            record["effort"] = json!("medium");
            record["perTurnEffort"] = json!("medium");
            record["madeBy"] = json!("model");
            match content["type"].as_str() {
                Some("thinking") => {
                    record["thinkingDurationMs"] = json!(100);
                    record["thinkingDisplay"] = json!("updates");
                }
                Some("tool_use") => record["toolInputStreamMs"] = json!(100),
                _ => {}
            }
            if cut {
                record["isAbortedMidStream"] = json!(true);
            }
        }
        self.chain_late(record)
    }

    /// Words of the CLI for the model only.
    fn hint(&mut self, text: &str) {
        let prompt_id = self.session.state.borrow().prompt_id.clone();
        let mut record = json!({"promptId": prompt_id, "type": "user",
            "message": {"role": "user", "content": text}, "isMeta": true});
        if self.session.version.is_332() {
            record["turnCompanion"] = json!(true);
            record["ownNote"] = json!(true);
        }
        self.chain_late(record);
        self.history.push(json!({"role": "user", "content": [{"type": "text", "text": text}]}));
    }

    pub fn inform(&self, text: &str) {
        self.session.front.notice(text);
        self.chain_late(json!({"type": "system", "subtype": "informational", "content": text,
            "isMeta": false, "level": "notice"}));
    }

    /// The Stop hooks; true when one of them says that the turn must go on.
    async fn stop_hook_goes_on(&mut self, last: &str) -> bool {
        let times = if self.session.quirks.has("extra-stop") { 2 } else { 1 };
        let mut said = Vec::new();
        for _ in 0..times {
            let extra = json!({"stop_hook_active": self.stop_hook_active,
                "last_assistant_message": last,
                "background_tasks": self.session.background_tasks(), "session_crons": []});
            said = self.fire("Stop", extra).await;
        }
        let verdict = said
            .iter()
            .filter_map(crate::hooks::Said::json)
            .find(|verdict| verdict["decision"] == "block");
        if !said.is_empty() {
            let infos: Vec<Value> = said
                .iter()
                .map(|one| {
                    json!({"command": one.command,
                    "durationMs": u64::try_from(one.elapsed.as_millis()).unwrap_or(0)})
                })
                .collect();
            let mut record = json!({"type": "system", "subtype": "stop_hook_summary",
                "hookCount": infos.len(), "hookInfos": infos, "hookErrors": [],
                "hookAdditionalContext": [], "preventedContinuation": false, "stopReason": "",
                "hasOutput": verdict.is_some(), "level": "suggestion", "toolUseID": uuid()});
            if self.session.version.is_332() {
                record["failedHookErrorIndexes"] = json!([]);
            }
            self.chain_late(record);
        }
        let Some(verdict) = verdict else { return false };
        let reason = verdict["reason"].as_str().unwrap_or_default();
        self.stop_hook_active = true;
        self.hint(&format!("Stop hook feedback:\n{reason}"));
        true
    }

    async fn end(&mut self, ended: LoopEnd, silent: bool, began: Instant, text: &str) -> Ended {
        match ended {
            LoopEnd::Done(_) => {
                self.chain_duration(began);
                if self.session.version.is_332() {
                    self.note_state(true);
                }
                Ended::Completed
            }
            LoopEnd::Failed(failure, partial) => self.fail(&failure, partial, began).await,
            LoopEnd::InStream(partial) => {
                let shown = partial.as_ref().is_some_and(Message::has_output);
                if !shown && silent {
                    return Ended::Withdrawn(text.to_owned());
                }
                let id = partial.as_ref().map(|partial| self.keep_partial(partial));
                self.chain_interrupt("[Request interrupted by user]", id);
                if let Some(partial) = &partial {
                    self.session.front.aborted_end(partial);
                }
                Ended::Interrupted
            }
            LoopEnd::InTool(id) => {
                self.chain_interrupt("[Request interrupted by user for tool use]", id);
                if self.session.version.is_332() {
                    self.note_state(true);
                }
                Ended::Interrupted
            }
        }
    }

    fn keep_partial(&mut self, partial: &Message) -> String {
        let mut contents = Vec::new();
        for (index, block) in partial.blocks.iter().enumerate() {
            if block.content["type"] == "tool_use" && !block.ended {
                continue;
            }
            contents.push(block.content.clone());
            if !block.ended {
                self.session.front.aborted(partial, &block.content);
            }
            let whole = block.ended && index + 1 < partial.blocks.len();
            if self.session.version.is_332() || whole {
                self.chain_block(partial, index, &block.content, !whole);
            } else {
                let text = block.content["text"].as_str().unwrap_or_default();
                self.chain_synthetic(text, json!({"isApiErrorMessage": false}));
            }
        }
        self.history.push(json!({"role": "assistant", "content": contents}));
        partial.id.clone()
    }

    fn chain_interrupt(&mut self, text: &str, message: Option<String>) {
        let prompt_id = self.session.state.borrow().prompt_id.clone();
        let mut record = json!({"promptId": prompt_id, "type": "user",
            "message": {"role": "user", "content": [{"type": "text", "text": text}]}});
        if let Some(id) = message {
            record["interruptedMessageId"] = json!(id);
        }
        if self.session.version.is_332() {
            record["rowSource"] = json!("harness");
        }
        self.chain_late(record.clone());
        self.session.front.tool_result(&record, None);
        self.history.push(json!({"role": "user", "content": [{"type": "text", "text": text}]}));
    }

    async fn fail(&mut self, failure: &Failure, partial: Option<Message>, began: Instant) -> Ended {
        let partial = partial.filter(Message::has_output);
        let told = failure.tell(&self.session, partial.is_some());
        if let Some(mut partial) = partial {
            partial.stop_reason = Some("end_turn".to_owned());
            for (index, block) in partial.blocks.iter().enumerate() {
                self.chain_block(&partial, index, &block.content, false);
            }
            self.history.push(json!({"role": "assistant", "content": partial.contents()}));
        }
        self.chain_synthetic(&told.text, told.record.clone());
        let limit = told.record["quotaLimits"].is_object();
        if limit && self.session.version.is_332() && !self.session.options.print {
            self.inform("Usage limit reached · set to continue automatically at 2am");
        }
        let mut extra = json!({"error": told.class, "last_assistant_message": told.text});
        if let Some(details) = &told.details {
            extra["error_details"] = json!(details);
        }
        self.session.front.failed(&told.text, told.class, failure.status);
        self.fire("StopFailure", extra).await;
        if !self.session.version.is_332() {
            self.chain_duration(began);
        }
        Ended::Failed { limit, text: told.text }
    }

    fn chain_duration(&self, began: Instant) {
        let pending = self.session.state.borrow().background.len();
        let mut record = json!({"type": "system", "subtype": "turn_duration",
            "durationMs": u64::try_from(began.elapsed().as_millis()).unwrap_or(0),
            "messageCount": self.transcript.chained.get(), "isMeta": false});
        if pending > 0 {
            record["pendingBackgroundAgentCount"] = json!(pending);
        }
        self.chain(record);
    }

    /// Prompts that came meanwhile and go into this turn, with the result of a tool. Their records
    /// about the queue are written here; returns what follows the tool's result.
    pub fn absorb(&mut self) -> Vec<Prompt> {
        if self.agent.is_some() {
            return Vec::new();
        }
        let taken: Vec<Prompt> = {
            let mut state = self.session.state.borrow_mut();
            let (taken, left): (Vec<_>, Vec<_>) =
                state.queue.drain(..).partition(|prompt| prompt.source == Source::Queued);
            state.queue = left.into();
            taken
        };
        for prompt in &taken {
            let mut record = json!({"type": "queue-operation", "operation": "remove",
                "timestamp": timestamp()});
            if self.session.version.is_332() {
                record["content"] = json!(prompt.text);
                record["reason"] = json!("absorbed_mid_turn");
                record["commandUuid"] = json!(prompt.uuid);
                record["deliveryId"] = json!(uuid());
            }
            self.note(record);
        }
        taken
    }

    pub fn chain_absorbed(&self, prompt: &Prompt) -> Value {
        let mut attachment = json!({"type": "queued_command", "prompt": prompt.text,
            "commandMode": "prompt", "origin": {"kind": "human"}, "timestamp": timestamp()});
        if self.session.version.is_332() {
            attachment["source_uuid"] = json!(prompt.uuid);
            attachment["delivery_id"] = json!(hash());
            attachment["humanTurn"] = json!(true);
        }
        let mut record = json!({"attachment": attachment, "type": "attachment"});
        if self.session.version.is_332() {
            record["rendered"] = json!(["(elided)"]);
            record["renderedRole"] = json!("user");
        }
        self.chain_late(record);
        self.session.front.replayed(&prompt.text, &prompt.uuid);
        json!({"type": "text", "text": prompt.text})
    }

    /// The same thread, for hooks and records outside its turn.
    pub fn view(&self) -> Self {
        Self {
            session: self.session.clone(),
            agent: self.agent.clone(),
            transcript: self.transcript.clone(),
            history: Vec::new(),
            cancel: self.cancel.clone(),
            asked_before: self.asked_before,
            stop_hook_active: false,
            quiet: false,
        }
    }
}
