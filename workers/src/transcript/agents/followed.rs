//! One sub-agent that is out.

use std::collections::VecDeque;
use std::path::Path;

use claw_runtime::session::ContentBlock;
use tokio::time::Instant;

use crate::fact::{AgentEnd, Fact};
use crate::transcript::reader::ReaderEvent;
use crate::transcript::tail::Tail;

pub(super) struct Followed {
    /// Its own id, once that is known.
    pub agent: Option<String>,
    pub tool_use_id: Option<String>,
    pub kind: Option<String>,
    pub background: bool,
    /// Its last sign of life.
    pub since: Instant,
    told: bool,
    tail: Option<Tail>,
    /// What it did last that was not told yet. Survives a look that was given up in its middle.
    last: Option<String>,
}

impl Followed {
    pub fn new(tool_use_id: Option<String>) -> Self {
        Self {
            agent: None,
            tool_use_id,
            kind: None,
            background: false,
            since: Instant::now(),
            told: false,
            tail: None,
            last: None,
        }
    }

    /// Its own id, or its call for as long as nothing else is known.
    pub fn name(&self) -> String {
        self.agent.clone().or_else(|| self.tool_use_id.clone()).unwrap_or_default()
    }

    /// There is evidence that it ran.
    pub fn began(&self) -> bool {
        self.told || self.agent.is_some()
    }

    /// Tells that it was spawned, once.
    pub fn told_spawned(&mut self) -> Option<Fact> {
        let first = !std::mem::replace(&mut self.told, true);
        first.then(|| Fact::AgentSpawned {
            agent: self.name(),
            tool_use_id: self.tool_use_id.clone(),
            kind: self.kind.clone(),
            background: self.background,
        })
    }

    pub fn done(&self, status: AgentEnd, summary: String) -> Fact {
        let tool_use_id = self.tool_use_id.clone();
        Fact::AgentDone { agent: self.name(), tool_use_id, status, summary }
    }

    /// Reads what its transcript has now. What it did last, when that is new.
    pub async fn progress(&mut self, folder: &Path) -> Option<String> {
        let agent = self.agent.as_ref().filter(|agent| is_plain(agent))?;
        let tail =
            self.tail.get_or_insert_with(|| Tail::new(folder.join(format!("agent-{agent}.jsonl"))));
        let mut told = VecDeque::new();
        loop {
            let more = tail.step(&mut told).await;
            for event in told.drain(..) {
                if let Some(text) = last_act(event) {
                    self.last = Some(text);
                }
            }
            if !more {
                return self.last.take();
            }
        }
    }
}

/// An id that can be part of a file name.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// Words of the sub-agent, or the name of the tool that it uses. Never empty.
fn last_act(event: ReaderEvent) -> Option<String> {
    let ReaderEvent::Record(record) = event else { return None };
    record.facts.into_iter().rev().find_map(|fact| {
        let Fact::Block { content, .. } = fact else { return None };
        let text = match content {
            ContentBlock::Text { text } => text.trim().to_owned(),
            ContentBlock::ToolUse { name, .. } => name,
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    })
}
