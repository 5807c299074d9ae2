//! Records of the transcript, with the fields that each version gives them.

use serde_json::{Map, Value, json};

use crate::conversation::Conversation;

/// Now, as records write it.
pub fn timestamp() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

pub fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// 64 digits that stand for a hash.
pub fn hash() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

impl Conversation {
    /// A record of the chain: the common fields around the given ones. Returns its uuid.
    pub fn chain(&self, fields: Value) -> String {
        let last = self.transcript.last.borrow().clone();
        self.chain_to(last, fields)
    }

    /// The same with another parent.
    pub fn chain_to(&self, parent: Option<String>, fields: Value) -> String {
        let id = uuid();
        let mut record = Map::new();
        record.insert("parentUuid".to_owned(), json!(parent));
        record.insert("isSidechain".to_owned(), json!(self.agent.is_some()));
        if let Some(agent) = &self.agent {
            record.insert("agentId".to_owned(), json!(agent.id));
        }
        let session_id = self.session.id();
        record.insert("uuid".to_owned(), json!(id));
        record.insert("timestamp".to_owned(), json!(timestamp()));
        let Value::Object(fields) = fields else { unreachable!("records are objects") };
        for (key, value) in fields {
            record.insert(key, value);
        }
        record.insert("userType".to_owned(), json!("external"));
        record.insert("entrypoint".to_owned(), json!(self.session.entrypoint()));
        record.insert("cwd".to_owned(), json!(self.session.home.cwd));
        record.insert("sessionId".to_owned(), json!(session_id));
        record.insert("version".to_owned(), json!(self.session.version.number()));
        record.insert("gitBranch".to_owned(), json!("HEAD"));
        self.transcript.add(&Value::Object(record));
        *self.transcript.last.borrow_mut() = Some(id.clone());
        self.transcript.chained.set(self.transcript.chained.get() + 1);
        id
    }

    /// A chained record that 332 writes with a second spelling of the session's id.
    pub fn chain_late(&self, mut fields: Value) -> String {
        if self.session.version.is_332() {
            fields["session_id"] = json!(self.session.id());
        }
        self.chain(fields)
    }

    /// A bookkeeping line, outside the chain.
    pub fn note(&self, mut record: Value) {
        record["sessionId"] = json!(self.session.id());
        self.transcript.add(&record);
    }

    /// What the CLI writes about itself now and then.
    pub fn note_state(&self, with_prompt: bool) {
        let mode = self.session.mode();
        let leaf = self.transcript.last.borrow().clone();
        if with_prompt && let Some(leaf) = leaf {
            let prompt = self.session.state.borrow().last_prompt.clone();
            self.note(json!({"type": "last-prompt", "lastPrompt": prompt, "leafUuid": leaf}));
        }
        self.note(json!({"type": "mode", "mode": "normal"}));
        self.note(json!({"type": "permission-mode", "permissionMode": mode}));
        if self.session.version.is_332() {
            self.note(json!({"type": "atis-latch", "atis": ""}));
        }
    }

    /// The snapshot before a prompt.
    pub fn note_snapshot(&self, message: &str) {
        self.transcript.add(&json!({
            "type": "file-history-snapshot", "messageId": message, "isSnapshotUpdate": false,
            "snapshot": {"messageId": message, "trackedFileBackups": {}, "timestamp": timestamp()},
        }));
    }

    /// An attachment for the model.
    pub fn attach(&self, attachment: Value, role: Option<&str>) -> String {
        let mut record = json!({"attachment": attachment, "type": "attachment"});
        if let (Some(role), true) = (role, self.session.version.is_332()) {
            record["rendered"] = json!(["(elided)"]);
            record["renderedRole"] = json!(role);
        }
        self.chain(record)
    }

    /// The attachments of a session's first prompt.
    pub fn attach_surroundings(&self) {
        let agents = json!({"type": "agent_listing_delta", "addedTypes": ["general-purpose"],
            "addedLines": ["- general-purpose: (elided)"], "removedTypes": [], "isInitial": true,
            "showConcurrencyNote": true});
        let skills = json!({"type": "skill_listing", "content": "(elided)", "skillCount": 1,
            "isInitial": true, "names": ["verify"]});
        if !self.session.version.is_332() {
            self.attach(agents, None);
            self.attach(skills, None);
            return;
        }
        let cwd = &self.session.home.cwd;
        let model = self.session.model();
        self.attach(
            json!({"type": "environment", "snapshot": {"workingDirectory": cwd,
                "isWorktree": false, "isGitRepo": false, "additionalWorkingDirectories": [],
                "platform": "linux", "shell": "bash"}}),
            Some("system"),
        );
        self.attach(
            json!({"type": "model", "identity": {"modelId": model, "marketingName": "Opus 5.5",
                "knowledgeCutoff": "June 2026"}, "text": "(elided)"}),
            Some("system"),
        );
        self.attach(
            json!({"type": "deferred_tools_delta", "addedNames": [], "addedLines": [],
                "removedNames": [], "wireHiddenNames": [], "readdedNames": [],
                "pendingMcpServers": [], "failedMcpServers": []}),
            Some("system"),
        );
        let mut agents = agents;
        agents["builtInTypes"] = json!(["general-purpose"]);
        agents["builtInPluginTypes"] = json!([]);
        self.attach(agents, Some("system"));
        let mut skills = skills;
        skills["digests"] = json!(["140faf7359fd9e4c"]);
        self.attach(skills, Some("system"));
    }

    /// The large records of a request to the API, and the attachments around them.
    pub fn note_request(&self, first: bool) -> String {
        let id = uuid();
        if !self.session.version.is_332() {
            return id;
        }
        let version = self.session.version.number();
        let shape = hash();
        if first {
            // As large as the real one: the system prompt and every tool's definition.
            self.note(json!({"type": "api-request-shape", "shapeHash": shape,
                "timestamp": timestamp(), "version": version,
                "shape": {"system": "x".repeat(120_000), "tools": "y".repeat(90_000)}}));
            self.note(json!({"type": "api-request-blob", "hash": hash(),
                "message": {"role": "user", "content": [{"type": "text", "text": "(elided)"}]}}));
        }
        self.note(json!({"type": "api-request", "id": id, "timestamp": timestamp(),
            "version": version, "querySource": "repl_main_thread", "shapeHash": shape,
            "params": {"model": self.session.model(), "max_tokens": 128_000},
            "thread": {"type": "none"}, "echoWireToolInputs": false, "keep": 0,
            "tail": [hash()], "cacheControl": [], "requestDigest": hash()}));
        if first {
            self.attach_session();
            self.note_state(true);
        }
        id
    }

    fn attach_session(&self) {
        let session_id = self.session.id();
        let late = |attachment: Value, role: Option<&str>| {
            let mut record = json!({"attachment": attachment, "type": "attachment",
                "session_id": session_id});
            if let Some(role) = role {
                record["rendered"] = json!(["(elided)"]);
                record["renderedRole"] = json!(role);
            }
            self.chain(record)
        };
        let date = timestamp()[..10].to_owned();
        late(json!({"type": "session_context", "context": {}}), None);
        late(json!({"type": "date", "date": date}), Some("system"));
        late(
            json!({"type": "prompt_snapshot", "systemPrompt": "(elided)", "reminderFold": false,
                "echoWireToolInputs": false, "contextRendering": "announced"}),
            None,
        );
    }

    /// A synthetic reply, in which the CLI speaks as the model.
    pub fn chain_synthetic(&self, text: &str, extra: Value) -> String {
        let mut message = json!({"id": uuid(), "container": null, "model": "<synthetic>",
            "role": "assistant", "stop_details": null, "stop_reason": "stop_sequence",
            "stop_sequence": "", "type": "message", "usage": {"input_tokens": 0,
                "output_tokens": 0, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
                "service_tier": null, "cache_creation": {"ephemeral_1h_input_tokens": 0,
                    "ephemeral_5m_input_tokens": 0},
                "inference_geo": null, "iterations": null, "speed": null},
            "content": [{"type": "text", "text": text}], "context_management": null});
        if self.session.version.is_332() {
            message["diagnostics"] = Value::Null;
            message["usage"]["output_tokens_details"] = Value::Null;
            message["usage"]["fallback_credit"] = Value::Null;
        }
        let mut record = json!({"type": "assistant", "message": message});
        if self.session.version.is_332() {
            record["madeBy"] = json!("model");
            if !extra["apiErrorStatus"].is_null() {
                record["perTurnEffort"] = json!("medium");
            }
        }
        if let Value::Object(extra) = extra {
            for (key, value) in extra {
                record[key] = value;
            }
        }
        self.chain_late(record)
    }
}
