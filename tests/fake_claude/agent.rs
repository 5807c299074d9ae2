//! Sub-agents: a thread of their own with a transcript of its own. 332 lets them run on by
//! themselves and reports their end in a turn that nobody asked for; 197 waits for them.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::conversation::{Agent, Conversation, Interrupted};
use crate::record::timestamp;
use crate::session::{BackgroundTask, Prompt, Source};
use crate::tools::Outcome;
use crate::transcript::Transcript;
use crate::turn::LoopEnd;

impl Conversation {
    pub async fn launch(&self, input: &Value, tool_use_id: &str) -> Result<Outcome, Interrupted> {
        let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
        let kind = match text("subagent_type") {
            kind if kind.is_empty() => "general-purpose".to_owned(),
            kind => kind,
        };
        let agent = Agent {
            id: format!("a{}", &crate::record::hash()[..16]),
            kind: kind.clone(),
            tool_use_id: tool_use_id.to_owned(),
        };
        let id = agent.id.clone();
        let (description, prompt) = (text("description"), text("prompt"));
        let mut thread = self.subagent(agent, &description);
        if let Some(agent) = &thread.agent {
            self.session.front.agent_began(agent, &description, &prompt);
        }
        thread.fire("SubagentStart", json!({})).await;
        let alone = self.session.version.is_332() || input["run_in_background"] == true;
        if !alone {
            thread.cancel = self.cancel.clone();
            let began = Instant::now();
            let last = thread.work(&prompt).await.ok_or(Interrupted)?;
            return Ok(finished(&id, &kind, &prompt, &last, began));
        }
        self.session.state.borrow_mut().background.push(BackgroundTask {
            id: id.clone(),
            description: description.clone(),
            kind,
        });
        let output = self.session.home.subagent(&self.session.id(), &id, "output");
        tokio::task::spawn_local({
            let (prompt, output, id) = (prompt.clone(), output.clone(), id.clone());
            let desk = self.view();
            async move {
                let began = Instant::now();
                let last = thread.work(&prompt).await.unwrap_or_default();
                let millis = began.elapsed().as_millis();
                let notice = format!(
                    "<task-notification>\n<task-id>{id}</task-id>\n\
                     <tool-use-id>{tool}</tool-use-id>\n\
                     <output-file>{output}</output-file>\n<status>completed</status>\n\
                     <summary>Agent \"{description}\" finished</summary>\n\
                     <result>{last}</result>\n<usage><subagent_tokens>10</subagent_tokens>\
                     <tool_uses>0</tool_uses><duration_ms>{millis}</duration_ms></usage>\n\
                     </task-notification>",
                    tool = thread.agent.as_ref().map_or("", |agent| &agent.tool_use_id),
                    output = output.display(),
                );
                let session = &thread.session;
                if let Some(agent) = &thread.agent {
                    session.front.agent_ended(agent, &description, &last);
                }
                session.state.borrow_mut().background.retain(|task| task.id != id);
                desk.note(json!({"type": "queue-operation", "operation": "enqueue",
                    "timestamp": timestamp(), "content": notice}));
                session.enqueue(Prompt::new(notice, Source::Notification));
            }
        });
        let content = json!([{"type": "text", "text": format!(
            "Async agent launched successfully.\nagentId: {id} (internal ID - do not mention to \
             user.)\nThe agent is working in the background."
        )}]);
        let response = json!({"isAsync": true, "status": "async_launched", "agentId": id,
            "description": text("description"), "prompt": prompt, "outputFile": output,
            "canReadOutputFile": true, "canContinueAgent": true,
            "resolvedModel": self.session.model()});
        Ok(Outcome::blocks(content, response))
    }

    fn subagent(&self, agent: Agent, description: &str) -> Self {
        let home = &self.session.home;
        let session = self.session.id();
        let path = home.subagent(&session, &agent.id, "jsonl");
        let about = json!({"agentType": agent.kind, "description": description,
            "toolUseId": agent.tool_use_id});
        let silent = self.session.quirks.has("no-transcript");
        if let (Some(folder), false) = (path.parent(), silent) {
            let meta = home.subagent(&session, &agent.id, "meta.json");
            let _ = fs::create_dir_all(folder).and_then(|()| fs::write(meta, about.to_string()));
        }
        Self {
            agent: Some(agent),
            transcript: Transcript::new(path, std::time::Duration::from_millis(100), silent),
            cancel: CancellationToken::new(),
            asked_before: true,
            ..self.view()
        }
    }

    /// The sub-agent's whole life; its last words, or none when it was stopped.
    async fn work(&mut self, prompt: &str) -> Option<String> {
        let prompt_id = self.session.state.borrow().prompt_id.clone();
        self.chain(json!({"promptId": prompt_id, "type": "user", "timestamp": timestamp(),
            "message": {"role": "user", "content": prompt}}));
        self.history.push(json!({"role": "user", "content": [{"type": "text", "text": prompt}]}));
        // Boxed, since an agent may launch another one.
        let ended = Box::pin(self.converse()).await;
        let last = match ended {
            LoopEnd::Done(last) => last,
            LoopEnd::Failed(failure, _) => failure.tell(&self.session, false).text,
            LoopEnd::InStream(_) | LoopEnd::InTool(_) => return None,
        };
        let transcript = self.transcript.path().to_owned();
        self.fire(
            "SubagentStop",
            json!({"stop_hook_active": false, "agent_transcript_path": transcript,
                "last_assistant_message": last,
                "background_tasks": self.session.background_tasks(), "session_crons": []}),
        )
        .await;
        Some(last)
    }
}

fn finished(id: &str, kind: &str, prompt: &str, last: &str, began: Instant) -> Outcome {
    let content = json!([
        {"type": "text", "text": last},
        {"type": "text", "text": format!("agentId: {id}")},
    ]);
    let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(0);
    let response = json!({"status": "completed", "prompt": prompt, "agentId": id,
        "agentType": kind, "content": [{"type": "text", "text": last}],
        "resolvedModel": "claude-opus-4-8", "totalDurationMs": millis, "totalTokens": 10,
        "totalToolUseCount": 0,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0, "output_tokens": 5,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard", "cache_creation": {"ephemeral_1h_input_tokens": 0,
                "ephemeral_5m_input_tokens": 0},
            "inference_geo": "", "iterations": [], "speed": "standard"},
        "toolStats": {"readCount": 0, "searchCount": 0, "bashCount": 0, "editFileCount": 0,
            "linesAdded": 0, "linesRemoved": 0, "otherToolCount": 0}});
    Outcome::blocks(content, response)
}
