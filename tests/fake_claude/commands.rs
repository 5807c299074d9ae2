//! The CLI's own commands that a worker sends.

use std::rc::Rc;
use std::time::Instant;

use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::exchange::End;
use crate::record::uuid;
use crate::session::Session;
use crate::turn::Ended;

const SUMMARISE: &str = "Your task is to create a detailed summary of the conversation so far.";

impl Conversation {
    /// `/compact`: the history becomes a summary. Neither Stop nor a turn's duration follows.
    pub async fn compact(&mut self) -> Ended {
        let began = Instant::now();
        if self.history.is_empty() {
            self.chain_command("compact", "", "Error: No messages to compact");
            return Ended::Completed;
        }
        {
            let mut state = self.session.state.borrow_mut();
            state.in_turn = true;
            state.prompt_id = Some(uuid());
        }
        let about = json!({"trigger": "manual", "custom_instructions": null});
        self.fire("PreCompact", about).await;
        let before = self.history.clone();
        let request = json!({"type": "text", "text": SUMMARISE});
        self.history.push(json!({"role": "user", "content": [request]}));
        self.quiet = true;
        self.session.front.compacting();
        let answer = self.exchange().await;
        self.quiet = false;
        self.history = before;
        let ended = match answer {
            Ok(message) => {
                self.replace_history(&message.text(), began).await;
                Ended::Completed
            }
            Err(End::Interrupted(_)) => {
                self.chain_command("compact", "", "Compaction canceled.");
                Ended::Interrupted
            }
            Err(End::Failed(failure, _)) => {
                let text = failure.tell(&self.session, false).text;
                self.chain_command("compact", "", &format!("Error: {text}"));
                Ended::Failed { limit: false, text }
            }
        };
        self.session.state.borrow_mut().in_turn = false;
        ended
    }

    async fn replace_history(&mut self, answer: &str, began: Instant) {
        let is_332 = self.session.version.is_332();
        let inner =
            answer.split("<summary>").nth(1).and_then(|rest| rest.split("</summary>").next());
        let summary = inner.unwrap_or(answer).trim().to_owned();
        let stop = json!({"stop_hook_active": false, "last_assistant_message": answer,
            "background_tasks": [], "session_crons": [],
            "agent_transcript_path": self.session.home.subagent(&self.session.id(), "acompact", "jsonl")});
        if is_332 {
            let mut view = self.view();
            view.agent = Some(crate::conversation::Agent {
                id: "acompact".to_owned(),
                kind: String::new(),
                tool_use_id: String::new(),
            });
            view.fire("SubagentStop", stop).await;
        }
        let start = json!({"source": "compact", "model": self.session.model()});
        self.fire("SessionStart", start).await;
        self.note_state(true);
        let words = format!(
            "This session is being continued from a previous conversation that ran out of \
             context. The summary below covers the earlier portion of the conversation.\n\n\
             Summary:\n{summary}"
        );
        let logical = self.transcript.last.borrow().clone();
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(0);
        let anchor = uuid();
        let mut metadata = json!({"trigger": "manual", "preTokens": 2080, "postTokens": 1018,
            "durationMs": millis});
        if is_332 {
            metadata["cumulativeDroppedTokens"] = json!(0);
            metadata["preservedSegment"] =
                json!({"headUuid": logical, "anchorUuid": anchor, "tailUuid": logical});
            metadata["preservedMessages"] =
                json!({"anchorUuid": anchor, "uuids": [logical], "allUuids": [logical]});
        }
        self.session.front.compacted(&metadata, &words);
        self.chain_to(
            None,
            json!({"logicalParentUuid": logical, "type": "system", "subtype": "compact_boundary",
                "content": "Conversation compacted", "level": "info",
                "compactMetadata": metadata}),
        );
        let prompt_id = self.session.state.borrow().prompt_id.clone();
        let mut summary = json!({"promptId": prompt_id, "type": "user", "isCompactSummary": true,
            "isVisibleInTranscriptOnly": true, "message": {"role": "user", "content": words}});
        if is_332 {
            summary["rowSource"] = json!("local");
            summary["turnPosition"] = {
                let state = self.session.state.borrow();
                json!({"promptIndex": state.prompts, "turnIndex": state.turns})
            };
        }
        self.chain_late(summary);
        self.chain_command("compact", "", "Compacted (ctrl+o to see full summary)");
        self.history = vec![json!({"role": "user", "content": [{"type": "text", "text": words}]})];
        let about = json!({"trigger": "manual", "compact_summary": answer});
        self.fire("PostCompact", about).await;
        self.session.front.notice("Compacted");
    }

    /// The three records of a command: a caveat, its name, what it printed.
    pub fn chain_command(&self, name: &str, arguments: &str, output: &str) {
        let prompt_id = self.session.state.borrow().prompt_id.clone();
        let user = |content: &str, source: &str| {
            let mut record = json!({"promptId": prompt_id, "type": "user",
                "message": {"role": "user", "content": content}});
            if self.session.version.is_332() {
                record["rowSource"] = json!(source);
            }
            record
        };
        let mut caveat = user(
            "<local-command-caveat>The command below was run directly in Claude Code, not sent to \
             you as a request.</local-command-caveat>",
            "harness",
        );
        caveat["isMeta"] = json!(true);
        self.chain_late(caveat);
        let words = format!(
            "<command-name>/{name}</command-name>\n            \
             <command-message>{name}</command-message>\n            \
             <command-args>{arguments}</command-args>"
        );
        self.chain_late(user(&words, "local"));
        let words = format!("<local-command-stdout>{output}</local-command-stdout>");
        self.chain_late(user(&words, "local"));
    }

    /// `/clear`: the same process goes on in another session.
    pub async fn clear(self) -> Self {
        self.fire("SessionEnd", json!({"reason": "clear"})).await;
        self.transcript.flush();
        let session: Rc<Session> = Rc::clone(&self.session);
        {
            let mut state = session.state.borrow_mut();
            state.id = uuid();
            if session.version.is_332() {
                state.prompt_id = None;
            }
        }
        let thread = Self::main(&session);
        thread.fire("SessionStart", json!({"source": "clear"})).await;
        thread
    }

    /// 197 asks the model for a title of the session.
    pub async fn ask_title(&self, prompt: &str) {
        let body: Value = json!({"model": "claude-haiku-4-5-20251001", "max_tokens": 32_000,
            "stream": true,
            "system": [{"type": "text", "text": "Generate a concise, sentence-case title"}],
            "tools": [],
            "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}]});
        let session = &self.session;
        if let Ok(response) = session.api.send(&session.id(), None, &body).await {
            let _ = response.bytes().await;
        }
    }
}
