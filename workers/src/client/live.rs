//! One open worker with what has been heard of it: its story so far and the questions that wait.

use std::sync::Arc;
use std::time::Duration;

use claw_runtime::StreamSink;
use claw_runtime::api::{AssistantTurn, ContextCompaction};
use claw_runtime::permissions::{Asker, PermissionPromptDecision};
use claw_runtime::tools::ToolCall;
use claw_runtime::{TuiEvent, TurnContext};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answers;
use super::gate::{self, About, Gate, Ruling};
use super::memory::Memory;
use super::plan::PlanFile;
use crate::config::WorkerConfig;
use crate::error::WorkerError;
use crate::event::{Asked, TurnEnd, Verdict, WorkerEvent};
use crate::fact::Fact;
use crate::host::Host;
use crate::story::{Ending, Story};
use crate::timings::Timings;
use crate::worker::{OpenAs, Worker};

/// Characters of what began a turn that nobody here asked for.
const LONGEST_REASON: usize = 160;

/// Why a turn began that nobody here asked for, in one line: the summary of a notification, the
/// beginning of anything else. Its text is meant for the model.
fn reason_of(text: &str) -> String {
    let summary = text.trim_start().starts_with("<task-notification>").then(|| {
        let (_, rest) = text.split_once("<summary>")?;
        rest.split_once("</summary>").map(|(summary, _)| summary)
    });
    let words = summary.flatten().unwrap_or(text).split_whitespace();
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What one step of listening brought, for whoever waits for a turn.
#[derive(Debug)]
pub(super) enum Happened {
    Nothing,
    TurnEnded { end: TurnEnd, unasked: bool },
    Ended(WorkerError),
}

/// An answer of the person on its way to the worker.
struct Decided {
    call: ToolCall,
    decision: PermissionPromptDecision,
    reply: oneshot::Sender<Verdict>,
}

/// A question that waits, so that it can be taken back.
struct Waiting {
    tool_use_id: Option<String>,
    of_agent: bool,
    retire: CancellationToken,
}

/// An open worker.
#[expect(clippy::struct_excessive_bools, reason = "facts about it, independent of each other")]
pub(super) struct Live {
    worker: Worker,
    events: UnboundedReceiver<WorkerEvent>,
    /// Our session that it serves.
    ours: String,
    claude_session_id: String,
    story: Story,
    answers: FuturesUnordered<BoxFuture<'static, Decided>>,
    waiting: Vec<Waiting>,
    is_ready: bool,
    in_unasked_turn: bool,
    /// It was begun by us and has not taken a prompt yet.
    fresh: bool,
    ended: bool,
    /// How long a question of its waits for an answer.
    permission: Duration,
    plan: PlanFile,
    /// Its last sign of use.
    used: Instant,
    /// Sub-agents in the background, and other tasks that go on after a turn, with their calls.
    pending: Vec<(String, Option<String>)>,
    /// A compaction of ours runs.
    compacting: bool,
    compacted: Option<ContextCompaction>,
}

impl Live {
    pub(super) fn start(host: &Arc<Host>, config: WorkerConfig, ours: &str, open: &OpenAs) -> Self {
        let claude_session_id = open.session_id().to_owned();
        let (permission, plan) = (config.timings.permission, PlanFile::of(&config));
        let (worker, events) = Worker::start(config, open.clone(), Arc::clone(host));
        Self {
            worker,
            events,
            ours: ours.to_owned(),
            claude_session_id,
            story: Story::new(),
            answers: FuturesUnordered::new(),
            waiting: Vec::new(),
            is_ready: false,
            in_unasked_turn: false,
            fresh: true,
            ended: false,
            permission,
            plan,
            used: Instant::now(),
            pending: Vec::new(),
            compacting: false,
            compacted: None,
        }
    }

    pub(super) fn worker(&self) -> &Worker {
        &self.worker
    }

    pub(super) fn claude_session_id(&self) -> &str {
        &self.claude_session_id
    }

    pub(super) fn serves(&self, ours: &str) -> bool {
        self.ours == ours && !self.ended
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn is_in_unasked_turn(&self) -> bool {
        self.in_unasked_turn
    }

    /// Waits until it can take a prompt. False when the person cancelled.
    pub(super) async fn ready(
        &mut self,
        gate: &mut Gate,
        cx: &TurnContext,
    ) -> Result<bool, WorkerError> {
        while !self.is_ready {
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Ok(false),
                happened = self.next(gate, cx) => {
                    if let Happened::Ended(error) = happened {
                        return Err(error);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Takes what comes next: an event of the worker, or an answer of the person. May be dropped at
    /// any moment without losing anything.
    pub(super) async fn next(&mut self, gate: &mut Gate, cx: &TurnContext) -> Happened {
        tokio::select! {
            biased;
            Some(decided) = self.answers.next(), if !self.answers.is_empty() => {
                gate.note(&decided.call, &decided.decision);
                self.waiting.retain(|waiting| waiting.tool_use_id.as_deref() != Some(&decided.call.id));
                let allowed = !matches!(decided.decision, PermissionPromptDecision::Deny { .. });
                // A question that was settled elsewhere meanwhile has nobody who listens.
                let sent = decided.reply.send(answers::verdict(&decided.call, &decided.decision));
                if sent.is_err() && allowed {
                    cx.sink.emit(TuiEvent::warning(format!(
                        "Your answer about {} came too late: Claude Code had settled it meanwhile.",
                        decided.call.name
                    )));
                }
                Happened::Nothing
            }
            event = self.events.recv() => {
                let event = event.unwrap_or(WorkerEvent::Ended(WorkerError::Stopped));
                self.take(event, gate, cx)
            }
        }
    }

    /// Waits for its last event after a prompt failed because it has ended. Returns why that prompt
    /// failed: one that it took no notice of has not run, whatever an earlier one has.
    pub(super) async fn end(
        &mut self,
        of_prompt: WorkerError,
        gate: &mut Gate,
        cx: &TurnContext,
    ) -> WorkerError {
        let reason = loop {
            if let Happened::Ended(error) = self.next(gate, cx).await {
                break error;
            }
        };
        match (of_prompt, reason) {
            (WorkerError::Stopped, WorkerError::Crashed { status, screen, .. }) => {
                WorkerError::Crashed { status, screen, may_have_run: false }
            }
            (WorkerError::Stopped, reason) => reason,
            (of_prompt, _) => of_prompt,
        }
    }

    /// Nobody uses it and nothing of it goes on: when it will have been so for `idle`.
    pub(super) fn idle_at(&self, idle: Duration) -> Option<Instant> {
        let rests = !self.in_unasked_turn && self.pending.is_empty() && self.waiting.is_empty();
        rests.then(|| self.used + idle)
    }

    fn take(&mut self, event: WorkerEvent, gate: &mut Gate, cx: &TurnContext) -> Happened {
        self.used = Instant::now();
        match event {
            WorkerEvent::Ready { session_id, .. } => {
                self.claude_session_id = session_id;
                self.is_ready = true;
            }
            WorkerEvent::Delivered { .. } => self.fresh = false,
            WorkerEvent::UnaskedBegan { text } => {
                self.in_unasked_turn = true;
                self.story.begin_unasked();
                let why = reason_of(&text);
                cx.sink.emit(TuiEvent::info(format!("Claude Code goes on by itself: {why}")));
            }
            WorkerEvent::Fact { fact, .. } => self.take_fact(fact, cx),
            WorkerEvent::Asked(asked) => self.ask(asked, gate, cx),
            WorkerEvent::AskedRetired { tool_use_id } => self.retire(tool_use_id.as_deref()),
            WorkerEvent::TurnEnded { end, unasked } => {
                if unasked {
                    self.in_unasked_turn = false;
                }
                return Happened::TurnEnded { end, unasked };
            }
            WorkerEvent::SessionChanged { session_id } => {
                self.claude_session_id = session_id;
                cx.sink.emit(TuiEvent::warning(
                    "Claude Code began a new session of its own (/clear): it does not know what was said before.",
                ));
            }
            WorkerEvent::AtDialog { title, .. } => cx.sink.emit(TuiEvent::warning(format!(
                "Claude Code waits at a dialog: {title}. /worker shows it and takes your keys."
            ))),
            WorkerEvent::TranscriptRestarted => cx.sink.emit(TuiEvent::warning(
                "The transcript of Claude Code was replaced meanwhile; something that it said may be missing here.",
            )),
            WorkerEvent::Typed => {}
            WorkerEvent::Ended(error) => {
                self.ended = true;
                return Happened::Ended(error);
            }
        }
        Happened::Nothing
    }

    fn take_fact(&mut self, fact: Fact, cx: &TurnContext) {
        self.plan.note(&fact);
        match &fact {
            Fact::AgentSpawned { agent, tool_use_id, background: true, .. } => {
                self.pending.push((agent.clone(), tool_use_id.clone()));
            }
            Fact::AgentDone { agent, tool_use_id, .. } => {
                // Before its receipt it is known by its call only.
                self.pending.retain(|(known, call)| {
                    known != agent && (call.is_none() || call != tool_use_id)
                });
            }
            _ => {}
        }
        match fact {
            // Whoever ordered it tells its numbers.
            Fact::Compacted { before_tokens, after_tokens, .. } if self.compacting => {
                self.compacted = Some(ContextCompaction { before_tokens, after_tokens });
            }
            Fact::CommandOutput { .. } if self.compacting => {}
            fact => self.story.tell(fact, &*cx.sink),
        }
    }

    fn ask(&mut self, asked: Asked, gate: &Gate, cx: &TurnContext) {
        let Asked { tool_use_id, tool_name, input, agent, reply } = asked;
        let id = tool_use_id.clone().unwrap_or_default();
        let call = ToolCall { id, name: tool_name, input, iteration: 1 };
        let plan = answers::asks_for_plan(&call).then(|| self.plan.read()).flatten();
        let (agent_id, agent_kind) = agent.map(|agent| (agent.id, agent.kind)).unzip();
        let about = About {
            asker: Asker {
                worker: Some(self.claude_session_id.clone()),
                agent: agent_id,
                agent_kind: agent_kind.flatten(),
            },
            expires: std::time::Instant::now() + self.permission,
            plan,
        };
        let of_agent = about.asker.agent.is_some();
        match gate.rule(&call, about) {
            // Sending fails only when it was settled elsewhere.
            Ruling::Settled(verdict) => drop(reply.send(verdict)),
            Ruling::Leave => {
                cx.sink.emit(TuiEvent::warning(format!(
                    "Claude Code asks something ({}) that is answered in its own terminal: /worker shows it and takes your keys.",
                    call.name
                )));
                drop(reply);
            }
            Ruling::Ask(request) => {
                let cx = cx.child();
                self.waiting.push(Waiting { tool_use_id, of_agent, retire: cx.cancel.clone() });
                self.answers.push(Box::pin(async move {
                    let decision = gate::ask(*request, &cx).await;
                    Decided { call, decision, reply }
                }));
            }
        }
    }

    /// Takes questions back: that of this tool use, or all of those that have none.
    fn retire(&mut self, tool_use_id: Option<&str>) {
        self.waiting.retain(|waiting| {
            let meant = waiting.tool_use_id.as_deref() == tool_use_id;
            if meant {
                waiting.retire.cancel();
            }
            !meant
        });
    }

    /// The turn is over: nothing of it is asked any more. A sub-agent in the background may ask on; the
    /// worker itself says when that question is over.
    fn retire_questions_of_turn(&mut self) {
        self.waiting.retain(|waiting| {
            if !waiting.of_agent {
                waiting.retire.cancel();
            }
            waiting.of_agent
        });
    }

    /// Nothing is asked any more.
    fn retire_questions(&mut self) {
        for waiting in self.waiting.drain(..) {
            waiting.retire.cancel();
        }
    }

    /// What was said and run since the last call of this.
    pub(super) fn finish(&mut self, ending: &Ending, sink: &dyn StreamSink) -> AssistantTurn {
        self.retire_questions_of_turn();
        self.story.finish(ending, sink)
    }

    /// What was told of a turn that nobody asked for, ended where it stands; none when there is
    /// nothing.
    pub(super) fn take_unfinished(
        &mut self,
        end: Option<&TurnEnd>,
        memory: &Memory,
        sink: &dyn StreamSink,
    ) -> Option<AssistantTurn> {
        let turn = self.finish(&super::ending(end), sink);
        let told = !turn.messages.is_empty();
        if told {
            self.saw_unasked(memory, turn.messages.len());
        }
        told.then_some(turn)
    }

    /// Messages of a turn that nobody asked for are about to enter our session.
    pub(super) fn saw_unasked(&self, memory: &Memory, messages: usize) {
        if let Some(mut known) = memory.load(&self.ours) {
            known.seen += messages;
            if let Err(error) = memory.save(&self.ours, &known) {
                tracing::warn!(%error, "the Claude session of this conversation cannot be remembered");
            }
        }
    }

    /// The CLI's own compaction.
    pub(super) async fn compact(
        &mut self,
        gate: &mut Gate,
        timings: &Timings,
        cx: &TurnContext,
    ) -> Result<ContextCompaction, WorkerError> {
        self.compacted = None;
        self.compacting = true;
        self.worker.compact();
        let ended = self.until_compacted(gate, timings, cx).await;
        self.compacting = false;
        ended?;
        self.compacted.take().ok_or(WorkerError::Stopped)
    }

    async fn until_compacted(
        &mut self,
        gate: &mut Gate,
        timings: &Timings,
        cx: &TurnContext,
    ) -> Result<(), WorkerError> {
        let deadline = tokio::time::sleep(timings.compaction);
        tokio::pin!(deadline);
        let mut stopping = false;
        loop {
            tokio::select! {
                biased;
                () = cx.cancel.cancelled(), if !stopping => {
                    stopping = true;
                    self.worker.interrupt();
                    deadline.as_mut().reset(tokio::time::Instant::now() + timings.interrupt);
                }
                happened = self.next(gate, cx) => match happened {
                    Happened::TurnEnded { unasked: false, .. } => return Ok(()),
                    Happened::Ended(error) => return Err(error),
                    Happened::Nothing | Happened::TurnEnded { .. } => {}
                },
                () = &mut deadline => {
                    return Err(if stopping { WorkerError::Stopped } else { WorkerError::Inactive(timings.compaction) });
                }
            }
        }
    }

    /// Ends the process and everything that it started, in bounded time.
    pub(super) async fn close(mut self) {
        self.retire_questions();
        self.worker.stop().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_nobody_asked_for_has_its_reason_in_one_line() {
        let notification = "<task-notification>\n<task-id>a</task-id>\n<status>completed</status>\n\
             <summary>Agent \"Small job\"\n finished</summary>\n<result>Much.</result>";
        let long = "word ".repeat(100);
        for (text, expected) in [
            (notification, "Agent \"Small job\" finished"),
            ("typed by a person", "typed by a person"),
            ("two\nlines", "two lines"),
            ("<task-notification> without one", "<task-notification> without one"),
            ("say <summary>no</summary>", "say <summary>no</summary>"),
        ] {
            assert_eq!(reason_of(text), expected);
        }
        assert_eq!(reason_of(&long).chars().count(), LONGEST_REASON + 1);
    }
}
