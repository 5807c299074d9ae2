//! What is true for the whole process: the session's id, its mode, its queue, its hooks.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::api::Api;
use crate::argv::Options;
use crate::front::Front;
use crate::home::Home;
use crate::hooks::Hooks;
use crate::quirks::Quirks;
use crate::version::Version;

/// Whose words a prompt holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Typed,
    Queued,
    Notification,
}

#[derive(Debug, Clone)]
pub struct Prompt {
    pub text: String,
    pub source: Source,
    /// Its UserPromptSubmit hook has run already.
    pub announced: bool,
    /// Files of images.
    pub images: Vec<String>,
    pub uuid: String,
}

impl Prompt {
    pub fn new(text: String, source: Source) -> Self {
        Self { text, source, announced: false, images: Vec::new(), uuid: crate::record::uuid() }
    }
}

/// A sub-agent that runs on by itself.
#[derive(Debug, Clone)]
pub struct BackgroundTask {
    pub id: String,
    pub description: String,
    pub kind: String,
}

#[derive(Debug, Default)]
pub struct State {
    pub id: String,
    pub mode: String,
    pub prompt_id: Option<String>,
    pub last_prompt: String,
    pub queue: VecDeque<Prompt>,
    /// Rules of this session that allow a tool: its name, and how a command begins.
    pub allowed: Vec<(String, String)>,
    pub used_tools: Vec<String>,
    pub background: Vec<BackgroundTask>,
    /// How many turns there were, and how many prompts of a person.
    pub turns: u64,
    pub prompts: u64,
    pub in_turn: bool,
}

pub struct Session {
    pub version: Version,
    pub quirks: Quirks,
    pub options: Options,
    pub home: Home,
    pub hooks: Rc<Hooks>,
    pub api: Api,
    pub front: Rc<dyn Front>,
    pub state: RefCell<State>,
    /// Session leaders of the commands that run.
    pub commands: RefCell<Vec<Pid>>,
    /// Something came into the queue, or a background task ended.
    pub queued: Notify,
    pub request_count: Cell<u64>,
}

impl Session {
    pub fn id(&self) -> String {
        self.state.borrow().id.clone()
    }

    pub fn mode(&self) -> String {
        self.state.borrow().mode.clone()
    }

    pub fn model(&self) -> String {
        let named = self.options.model.clone();
        named.unwrap_or_else(|| self.version.model().to_owned())
    }

    pub fn entrypoint(&self) -> &'static str {
        if self.options.print { "sdk-cli" } else { "cli" }
    }

    pub fn enqueue(&self, prompt: Prompt) {
        self.state.borrow_mut().queue.push_back(prompt);
        self.queued.notify_one();
    }

    pub fn background_tasks(&self) -> Value {
        let state = self.state.borrow();
        let tasks = state.background.iter().map(|task| {
            json!({"id": task.id, "type": "subagent", "status": "running",
                "description": task.description, "agent_type": task.kind})
        });
        tasks.collect()
    }

    /// Ends the commands that run, as this version does at its own end.
    pub fn end_commands(&self) {
        let orphans = !self.version.is_332() || self.quirks.has("orphan-tool");
        for command in self.commands.borrow_mut().drain(..) {
            if !orphans {
                let _ = kill_process_group(command, Signal::TERM);
            }
        }
    }
}
