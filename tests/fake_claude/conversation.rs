//! One thread of messages with the model, the session's own or a sub-agent's, and the hooks that
//! are fired for it.

use std::rc::Rc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::hooks::Said;
use crate::session::Session;
use crate::transcript::Transcript;

#[derive(Debug, Clone)]
pub struct Agent {
    pub id: String,
    pub kind: String,
    /// The tool call that launched it.
    pub tool_use_id: String,
}

pub struct Conversation {
    pub session: Rc<Session>,
    pub agent: Option<Agent>,
    pub transcript: Rc<Transcript>,
    /// Messages as the API takes them.
    pub history: Vec<Value>,
    /// Ends the turn that runs.
    pub cancel: CancellationToken,
    pub asked_before: bool,
    /// Continues a turn because a Stop hook said so.
    pub stop_hook_active: bool,
    /// What the model says is not shown: the CLI asks for itself.
    pub quiet: bool,
}

/// The person stopped it.
#[derive(Debug, Clone, Copy)]
pub struct Interrupted;

impl Conversation {
    /// The session's own thread.
    pub fn main(session: &Rc<Session>) -> Self {
        let path = session.home.transcript(&session.id());
        let lag = session.quirks.millis("transcript-lag");
        let lag = lag.unwrap_or(std::time::Duration::from_millis(100));
        let silent = session.quirks.has("no-transcript");
        Self {
            session: Rc::clone(session),
            agent: None,
            transcript: Transcript::new(path, lag, silent),
            history: Vec::new(),
            cancel: CancellationToken::new(),
            asked_before: false,
            stop_hook_active: false,
            quiet: false,
        }
    }

    /// Waits for something unless the person stops the turn first.
    pub async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Interrupted),
            done = work => Ok(done),
        }
    }

    /// A hook's payload, with the fields that its event has.
    pub fn payload(&self, event: &str, extra: Value) -> Value {
        let state = self.session.state.borrow();
        let transcript = self.session.home.transcript(&state.id);
        let mut payload = Map::new();
        let mut put = |key: &str, value: Value| payload.insert(key.to_owned(), value);
        put("session_id", json!(state.id));
        put("transcript_path", json!(transcript));
        put("cwd", json!(self.session.home.cwd));
        if let Some(prompt) = &state.prompt_id {
            put("prompt_id", json!(prompt));
        }
        let in_tool = matches!(
            event,
            "PreToolUse"
                | "PostToolUse"
                | "PostToolUseFailure"
                | "PermissionRequest"
                | "Stop"
                | "SubagentStop"
        );
        if in_tool || event == "UserPromptSubmit" {
            put("permission_mode", json!(state.mode));
        }
        if let Some(agent) = &self.agent {
            put("agent_id", json!(agent.id));
            put("agent_type", json!(agent.kind));
        }
        if in_tool || event == "StopFailure" {
            put("effort", json!({"level": "medium"}));
        }
        put("hook_event_name", json!(event));
        let Value::Object(extra) = extra else { unreachable!("payloads are objects") };
        payload.extend(extra);
        Value::Object(payload)
    }

    /// Runs the hooks of an event and waits for them.
    pub async fn fire(&self, event: &str, extra: Value) -> Vec<Said> {
        if !self.session.hooks.has(event) {
            return Vec::new();
        }
        let payload = self.payload(event, extra);
        let hooks = Rc::clone(&self.session.hooks);
        hooks.run(payload, self.session.entrypoint(), CancellationToken::new()).await
    }
}
