//! Follows the sub-agents of a session: which of them are out, what they did last, and how they
//! ended. Their transcripts are read with offsets of their own.
//!
//! Refuses to keep a sub-agent for ever whose end was never told: when nothing was heard of it for as
//! long as its age limit, it is lost.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use claw_runtime::session::ContentBlock;
use tokio::time::{Instant, sleep_until};

use super::path::agents_folder;
use super::watch::Watch;
use crate::fact::{AgentEnd, Fact};
use crate::timings::Timings;

mod followed;
mod meta;

use followed::Followed;

/// Characters of what is told about progress and of a summary that had to be cut out of a result.
const TEXT: usize = 500;

/// The sub-agents of one session. All facts of the session's own transcript pass through it.
pub struct AgentFollower {
    folder: PathBuf,
    out: Vec<Followed>,
    ready: VecDeque<Fact>,
    /// Made when the first one goes out: most sessions have none.
    watch: Option<Watch>,
    look: bool,
    poll_at: Instant,
    slow_poll: Duration,
    age: Duration,
}

impl AgentFollower {
    /// `transcript`: the session's own file.
    pub fn new(transcript: &Path, timings: &Timings) -> Self {
        let path = std::path::absolute(transcript).unwrap_or_else(|_| transcript.to_path_buf());
        Self {
            folder: agents_folder(&path),
            out: Vec::new(),
            ready: VecDeque::new(),
            watch: None,
            look: false,
            poll_at: Instant::now(),
            slow_poll: timings.slow_poll,
            age: timings.subagent_age,
        }
    }

    /// Sub-agents and other background tasks whose end was not told yet. A session with any is not to
    /// be evicted.
    pub fn pending(&self) -> usize {
        self.out.len()
    }

    /// That sub-agent is out, and nobody waits for it.
    pub fn is_in_background(&self, agent: &str) -> bool {
        self.find(agent, None).is_some_and(|at| self.out[at].background)
    }

    /// Passes a fact of the session's own transcript on, with what it means for sub-agents: each is
    /// spawned once and known by its call from then on; one that is waited for ends with its result.
    pub fn pass(&mut self, fact: Fact) -> Vec<Fact> {
        match &fact {
            Fact::Block { content: ContentBlock::ToolUse { id, name, input }, .. } => {
                self.called(id, name, input);
            }
            Fact::AgentSpawned { .. } => return self.spawned(fact).into_iter().collect(),
            Fact::AgentDone { agent, tool_use_id, .. } => {
                return self.done(agent, tool_use_id.as_deref(), fact.clone());
            }
            Fact::ToolResult { id, output, is_error, .. } => {
                let mut facts = self.returned(id, output, *is_error);
                facts.push(fact);
                return facts;
            }
            _ => {}
        }
        vec![fact]
    }

    /// What sub-agents did, or that one is lost. Waits for ever while none is out. Nothing is lost
    /// when the future is dropped.
    pub async fn next(&mut self) -> Fact {
        loop {
            if let Some(fact) = self.ready.pop_front() {
                return fact;
            }
            if self.out.is_empty() {
                self.watch = None;
                std::future::pending::<()>().await;
            }
            if !self.look {
                self.wait().await;
                self.look = true;
            }
            self.lose_the_old();
            self.progress().await;
        }
    }

    async fn wait(&self) {
        let oldest = self.out.iter().map(|one| one.since).min().unwrap_or_else(Instant::now);
        let wake_at = self.poll_at.min(oldest + self.age);
        let changed = async {
            match &self.watch {
                Some(watch) => watch.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed => {}
            () = sleep_until(wake_at) => {}
        }
    }

    fn called(&mut self, id: &str, name: &str, input: &str) {
        let monitor = name == "Monitor";
        if !(monitor || matches!(name, "Agent" | "Task")) || self.find("", Some(id)).is_some() {
            return;
        }
        let kind = if monitor { Some("Monitor".to_owned()) } else { meta::kind_of_input(input) };
        let mut one = Followed::new(Some(id.to_owned()));
        one.kind = kind;
        one.background = monitor;
        self.add(one);
    }

    fn spawned(&mut self, fact: Fact) -> Option<Fact> {
        let Fact::AgentSpawned { agent, tool_use_id, kind, background } = fact else { return None };
        let at = self.find(&agent, tool_use_id.as_deref()).unwrap_or_else(|| {
            self.add(Followed::new(tool_use_id.clone()));
            self.out.len() - 1
        });
        let one = &mut self.out[at];
        one.background |= background;
        one.kind = kind.or(one.kind.take());
        // Before its receipt a call stands for the sub-agent's own id.
        if one.tool_use_id.as_deref() != Some(agent.as_str()) {
            one.agent = Some(agent);
            self.look = true;
        }
        self.out[at].told_spawned()
    }

    fn done(&mut self, agent: &str, tool_use_id: Option<&str>, fact: Fact) -> Vec<Fact> {
        let gone = self.find(agent, tool_use_id).map(|at| self.out.swap_remove(at));
        let spawned = gone.and_then(|mut one| one.told_spawned());
        spawned.into_iter().chain([fact]).collect()
    }

    /// The result of a call that was waited for is its end; that of one in the background is only the
    /// receipt. A call that was refused never began.
    fn returned(&mut self, id: &str, output: &str, is_error: bool) -> Vec<Fact> {
        let Some(at) = self.find("", Some(id)) else { return Vec::new() };
        if self.out[at].background && !is_error {
            return Vec::new();
        }
        let mut one = self.out.swap_remove(at);
        if is_error && !one.began() {
            return Vec::new();
        }
        let spawned = one.told_spawned();
        let status = if is_error { AgentEnd::Failed } else { AgentEnd::Completed };
        let done = one.done(status, output.chars().take(TEXT).collect());
        spawned.into_iter().chain([done]).collect()
    }

    fn find(&self, agent: &str, tool_use_id: Option<&str>) -> Option<usize> {
        self.out.iter().position(|one| {
            (tool_use_id.is_some() && one.tool_use_id.as_deref() == tool_use_id)
                || (!agent.is_empty() && one.agent.as_deref() == Some(agent))
        })
    }

    fn add(&mut self, one: Followed) {
        self.out.push(one);
        self.look = true;
        self.watch.get_or_insert_with(|| Watch::folder(&self.folder));
    }

    fn lose_the_old(&mut self) {
        let (now, age) = (Instant::now(), self.age);
        for mut one in self.out.extract_if(.., |one| now.duration_since(one.since) >= age) {
            self.ready.extend(one.told_spawned());
            let summary = format!("nothing was heard of it for {} s", age.as_secs());
            self.ready.push_back(one.done(AgentEnd::Lost, summary));
        }
    }

    /// Looks at each transcript once.
    async fn progress(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.aim();
        }
        if self.out.iter().any(|one| one.agent.is_none() && one.tool_use_id.is_some()) {
            for found in meta::read_all(&self.folder).await {
                self.identify(found);
            }
        }
        for one in &mut self.out {
            let Some(text) = one.progress(&self.folder).await else { continue };
            // Whoever still does something is not lost.
            one.since = Instant::now();
            self.ready.extend(one.told_spawned());
            self.ready.push_back(Fact::AgentProgress {
                agent: one.name(),
                tool_use_id: one.tool_use_id.clone(),
                text: text.chars().take(TEXT).collect(),
            });
        }
        // Only now: a look that was given up in its middle is made again.
        self.look = false;
        self.poll_at = Instant::now() + self.slow_poll;
    }

    fn identify(&mut self, found: meta::Meta) {
        let Some(at) = self.find("", Some(&found.tool_use_id)) else { return };
        let one = &mut self.out[at];
        if one.agent.is_none() {
            one.agent = Some(found.agent);
            one.kind = one.kind.take().or(found.kind);
        }
    }
}

#[cfg(test)]
mod tests;
