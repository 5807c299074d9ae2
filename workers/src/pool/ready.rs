//! One worker of the pool, from its start to the end of its last process. However it is let go of, it
//! is retired: its place is free again only when nothing of it lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use claw_runtime::session::ContentBlock;
use claw_runtime::usage::TokenUsage;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::error::PoolError;
use crate::config::WorkerConfig;
use crate::error::WorkerError;
use crate::event::{Asked, TurnEnd, Verdict, WorkerEvent};
use crate::fact::Fact;
use crate::host::Host;
use crate::worker::{OpenAs, Worker};

/// Said to a tool that asks for a permission: nobody is here.
const NOBODY: &str = "nobody is here to be asked; it needs a rule that allows it";

/// How many of something there are. Each that is counted counts until it is dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub fn one(&self) -> Counted {
        self.0.fetch_add(1, Ordering::SeqCst);
        Counted(Arc::clone(&self.0))
    }

    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
pub(super) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What every worker of a pool needs of it.
#[derive(Debug, Clone)]
pub(super) struct Home {
    pub retiring: Counter,
    /// Something changed: a place or a warm worker may be there.
    pub changed: Arc<Notify>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    pub text: String,
    /// The Claude session that gave it.
    pub session_id: String,
    /// Of all its messages; none when the CLI recorded nothing.
    pub usage: Option<TokenUsage>,
}

pub(super) struct Held {
    /// Until it is retired.
    worker: Option<Worker>,
    events: UnboundedReceiver<WorkerEvent>,
    place: Option<OwnedSemaphorePermit>,
    home: Home,
    pub session_id: String,
    /// Background tasks that go on, with their calls.
    pending: Vec<(String, Option<String>)>,
}

/// Why a turn has no answer, and whether the worker may have begun with it.
pub(super) struct Unanswered {
    pub error: PoolError,
    pub may_have_run: bool,
}

impl Held {
    /// Starts one in this place. It is not ready yet.
    pub fn start(
        config: WorkerConfig,
        open: OpenAs,
        host: Arc<Host>,
        place: OwnedSemaphorePermit,
        home: Home,
    ) -> Self {
        let session_id = open.session_id().to_owned();
        let (worker, events) = Worker::start(config, open, host);
        Self {
            worker: Some(worker),
            events,
            place: Some(place),
            home,
            session_id,
            pending: Vec::new(),
        }
    }

    /// Waits until it can take a prompt.
    pub async fn ready(&mut self) -> Result<(), WorkerError> {
        loop {
            match self.next().await {
                WorkerEvent::Ready { session_id, .. } => {
                    self.session_id = session_id;
                    return Ok(());
                }
                WorkerEvent::Ended(error) => return Err(error),
                _ => {}
            }
        }
    }

    /// Takes in what it has told while nobody listened. False when it is of no use any more.
    pub fn is_well(&mut self) -> bool {
        while let Ok(event) = self.events.try_recv() {
            match event {
                WorkerEvent::Ended(_) | WorkerEvent::AtDialog { .. } => return false,
                WorkerEvent::Asked(asked) => refuse(asked),
                WorkerEvent::Fact { fact, .. } => self.note(&fact),
                _ => {}
            }
        }
        !self.events.is_closed()
    }

    /// Something of it goes on after its turn.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// One prompt and its answer.
    pub async fn ask(&mut self, prompt: &str) -> Result<Reply, Unanswered> {
        let gone = || Unanswered { error: WorkerError::Stopped.into(), may_have_run: false };
        let submitted = self.worker.as_ref().ok_or_else(gone)?.submit(prompt.to_owned());
        tokio::pin!(submitted);
        let mut delivered = false;
        let mut said = Said::default();
        loop {
            let event = tokio::select! {
                biased;
                taken = &mut submitted, if !delivered => match taken {
                    Ok(()) => {
                        delivered = true;
                        continue;
                    }
                    Err(error) => {
                        let may_have_run =
                            matches!(error, WorkerError::Crashed { may_have_run: true, .. } | WorkerError::Unconfirmed(_));
                        return Err(Unanswered { error: error.into(), may_have_run });
                    }
                },
                event = self.events.recv() => event.unwrap_or(WorkerEvent::Ended(WorkerError::Stopped)),
            };
            let error = match event {
                WorkerEvent::Asked(asked) => {
                    refuse(asked);
                    continue;
                }
                WorkerEvent::Fact { fact, unasked } => {
                    self.note(&fact);
                    if !unasked {
                        said.take(&fact);
                    }
                    continue;
                }
                WorkerEvent::TurnEnded { unasked: false, end } => match end {
                    TurnEnd::Completed { last_message } => {
                        return Ok(said.reply(last_message, &self.session_id));
                    }
                    TurnEnd::Failed(fact) => PoolError::of_api(&fact),
                    TurnEnd::Interrupted | TurnEnd::Withdrawn | TurnEnd::Compacted => {
                        PoolError::Interrupted
                    }
                },
                WorkerEvent::AtDialog { title, screen } => {
                    WorkerError::Dialog { title, screen }.into()
                }
                WorkerEvent::Ended(error) => error.into(),
                _ => continue,
            };
            return Err(Unanswered { error, may_have_run: delivered });
        }
    }

    async fn next(&mut self) -> WorkerEvent {
        self.events.recv().await.unwrap_or(WorkerEvent::Ended(WorkerError::Stopped))
    }

    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::AgentSpawned { agent, tool_use_id, background: true, .. } => {
                self.pending.push((agent.clone(), tool_use_id.clone()));
            }
            Fact::AgentDone { agent, tool_use_id, .. } => self
                .pending
                .retain(|(known, call)| known != agent && (call.is_none() || call != tool_use_id)),
            _ => {}
        }
    }
}

fn refuse(asked: Asked) {
    let verdict = Verdict::Deny { message: NOBODY.to_owned(), interrupt: false };
    // Settled elsewhere meanwhile: then nobody waits for this.
    let _ = asked.reply.send(verdict);
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(worker), place) = (self.worker.take(), self.place.take()) else { return };
        let retiring = self.home.retiring.one();
        let changed = Arc::clone(&self.home.changed);
        // Without a runtime the worker's own end is all there is; its place is nobody's then.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            worker.stop().await;
            drop(place);
            drop(retiring);
            changed.notify_waiters();
        });
    }
}

/// What was said in a turn.
#[derive(Default)]
struct Said {
    text: String,
    /// The last count of each message.
    usage: Vec<(String, TokenUsage)>,
}

impl Said {
    fn take(&mut self, fact: &Fact) {
        let Fact::Block { message, content, usage, .. } = fact else { return };
        match content {
            ContentBlock::Text { text } => self.text.clone_from(text),
            // What was said before a tool is not the answer.
            _ => self.text.clear(),
        }
        let Some(usage) = usage else { return };
        match self.usage.iter_mut().find(|(known, _)| known == message) {
            Some((_, known)) => *known = *usage,
            None => self.usage.push((message.clone(), *usage)),
        }
    }

    fn reply(self, last_message: Option<String>, session_id: &str) -> Reply {
        let usage = self.usage.iter().map(|(_, usage)| *usage).reduce(|all, one| TokenUsage {
            input_tokens: all.input_tokens + one.input_tokens,
            output_tokens: all.output_tokens + one.output_tokens,
            cache_creation_input_tokens: all.cache_creation_input_tokens
                + one.cache_creation_input_tokens,
            cache_read_input_tokens: all.cache_read_input_tokens + one.cache_read_input_tokens,
        });
        Reply { text: last_message.unwrap_or(self.text), session_id: session_id.to_owned(), usage }
    }
}
