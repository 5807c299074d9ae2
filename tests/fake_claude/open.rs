//! Which session is opened: a new one, one that exists, or a copy of one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::{Value, json};

use crate::api::Api;
use crate::argv::Options;
use crate::conversation::Conversation;
use crate::front::Front;
use crate::home::Home;
use crate::hooks::Hooks;
use crate::quirks::Quirks;
use crate::record::uuid;
use crate::session::{Session, State};
use crate::version::Version;

/// The session to open.
#[derive(Debug, Clone)]
pub struct Opening {
    pub id: String,
    /// Of the SessionStart hook.
    pub source: &'static str,
    /// Where the history comes from.
    pub from: Option<String>,
}

impl Opening {
    /// The error is what the CLI prints before it ends with status 1.
    pub fn find(options: &Options, home: &Home) -> Result<Self, String> {
        let latest = || home.latest().ok_or("No conversation found to continue".to_owned());
        let from = match (&options.resume, options.continue_latest) {
            (Some(id), _) if !home.transcript(id).exists() => {
                return Err(format!("No conversation found with session ID: {id}"));
            }
            (Some(id), _) => Some(id.clone()),
            (None, true) => Some(latest()?),
            (None, false) => None,
        };
        let named = options.session_id.clone();
        if let Some(id) = &named
            && home.transcript(id).exists()
        {
            return Err(format!("Error: Session ID {id} is already in use."));
        }
        Ok(match from {
            Some(from) if options.fork => {
                Self { id: named.unwrap_or_else(uuid), source: "fork", from: Some(from) }
            }
            Some(from) => Self { id: from.clone(), source: "resume", from: Some(from) },
            None => Self { id: named.unwrap_or_else(uuid), source: "startup", from: None },
        })
    }

    /// The thread with its history; a fork's transcript begins as a copy.
    pub fn conversation(&self, session: &Rc<Session>) -> Conversation {
        let mut thread = Conversation::main(session);
        let Some(from) = &self.from else { return thread };
        let text = std::fs::read_to_string(session.home.transcript(from)).unwrap_or_default();
        let records: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        thread.history = history(&records);
        thread.asked_before = !thread.history.is_empty();
        let chained: Vec<&Value> =
            records.iter().filter(|record| record["uuid"].is_string()).collect();
        let last = chained.last().and_then(|record| record["uuid"].as_str());
        *thread.transcript.last.borrow_mut() = last.map(str::to_owned);
        thread.transcript.chained.set(chained.len() as u64);
        if self.source == "fork" {
            for record in &records {
                let mut copy = record.clone();
                copy["sessionId"] = json!(self.id);
                thread.transcript.add(&copy);
            }
            thread.transcript.flush();
        }
        thread
    }

    /// The SessionStart hook's own fields.
    pub fn about(&self, session: &Session) -> Value {
        if self.source == "startup" {
            return json!({"source": self.source, "model": session.model()});
        }
        let mut about = json!({"source": self.source});
        if session.version.is_332() {
            about["seconds_since_last_response"] = json!(1);
            about["context_tokens"] = json!(10);
            about["prompt_cache_likely_expired"] = json!(false);
            about["estimated_cache_write_usd"] = json!(0.0001);
        }
        about
    }
}

/// Messages for the API, from the records since the last compaction.
fn history(records: &[Value]) -> Vec<Value> {
    let boundary = records.iter().rposition(|record| record["subtype"] == "compact_boundary");
    let since = &records[boundary.unwrap_or(0)..];
    let mut messages: Vec<Value> = Vec::new();
    for record in since {
        let role = record["type"].as_str().unwrap_or_default();
        let spoken = matches!(role, "user" | "assistant") && record["isSidechain"] != true;
        if !spoken || record["message"]["model"] == "<synthetic>" {
            continue;
        }
        let blocks = match &record["message"]["content"] {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks.clone(),
            _ => continue,
        };
        match messages.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.extend(blocks);
                }
            }
            _ => messages.push(json!({"role": role, "content": blocks})),
        }
    }
    messages
}

/// Everything that both modes need before they begin.
pub fn session(
    version: Version,
    options: Options,
    quirks: Quirks,
    front: Rc<dyn Front>,
) -> Result<(Rc<Session>, Opening, bool), String> {
    let home = Home::from_environment();
    let opening = Opening::find(&options, &home)?;
    let settings = home.settings(&options.settings)?;
    let bypass_accepted = home.config()["bypassPermissionsModeAccepted"] == true
        || settings.iter().any(|one| one["skipDangerousModePermissionPrompt"] == true);
    let mode = match &options.permission_mode {
        _ if options.skip_permissions => "bypassPermissions".to_owned(),
        Some(mode) if mode == "manual" => "default".to_owned(),
        Some(mode) => mode.clone(),
        None if version.is_332() => "auto".to_owned(),
        None => "default".to_owned(),
    };
    let root = rustix::process::geteuid().is_root();
    if mode == "bypassPermissions" && root && std::env::var_os("IS_SANDBOX").is_none() {
        return Err("--dangerously-skip-permissions cannot be used with root/sudo privileges for \
                    security reasons"
            .to_owned());
    }
    let hooks = Rc::new(Hooks::from_settings(&settings, version, &home.cwd));
    let api = Api::from_environment(version, &home.config_dir);
    let state = State { id: opening.id.clone(), mode, ..State::default() };
    let session = Rc::new(Session {
        version,
        quirks,
        options,
        home,
        hooks,
        api,
        front,
        state: RefCell::new(state),
        commands: RefCell::default(),
        queued: tokio::sync::Notify::new(),
        request_count: Cell::new(0),
    });
    Ok((session, opening, bypass_accepted))
}
