//! A worker as an [`ApiClient`]: the Claude session that belongs to ours is opened, prompted and
//! listened to; what it said and ran comes back for the session.
//!
//! Refuses to send a prompt twice: one that may have run is never repeated unasked.

mod answers;
mod failure;
mod gate;
mod history;
mod kept;
mod live;
mod memory;
mod plan;
mod steering;

use std::sync::Arc;

use claw_runtime::api::{
    ApiClient, ApiError, ApiRequest, AssistantTurn, ContextCompaction, Steering, StopReason,
};
use claw_runtime::session::{ConversationMessage, MessageRole};
use claw_runtime::{TuiEvent, TurnContext};
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::time::Instant;

use crate::config::WorkerConfig;
use crate::error::WorkerError;
use crate::event::TurnEnd;
use crate::host::Host;
use crate::story::Ending;
use crate::version::find_program;
use crate::worker::OpenAs;

use failure::LOGIN;
use gate::Gate;
use kept::{Account, is_kept};
use live::{Happened, Live};
use memory::{Remembered, fingerprint};
use steering::SteeringLine;

pub use gate::Judge;
pub use memory::Memory;

/// Starts in a row that may fail before the person is told; each waits longer than the one before.
const START_ATTEMPTS: u32 = 3;

/// What a client is made of.
pub struct WorkerClientParts {
    pub config: WorkerConfig,
    pub memory: Memory,
    pub judge: Arc<dyn Judge>,
    pub host: Arc<Host>,
}

/// One Claude session at a time, as a backend.
pub struct WorkerClient {
    config: WorkerConfig,
    memory: Memory,
    gate: Gate,
    host: Arc<Host>,
    live: Option<Live>,
    steering: Arc<SteeringLine>,
}

impl WorkerClient {
    /// Nothing is started before the first prompt.
    pub fn new(parts: WorkerClientParts) -> Self {
        Self {
            config: parts.config,
            memory: parts.memory,
            gate: Gate::new(parts.judge),
            host: parts.host,
            live: None,
            steering: Arc::default(),
        }
    }

    async fn run(
        &mut self,
        request: ApiRequest,
        cx: &TurnContext,
    ) -> Result<AssistantTurn, ApiError> {
        self.gate.set_mode(request.permission_mode);
        let mut attempt = 1;
        loop {
            let turn = self.attempt(&request, cx).await;
            match turn {
                // Nothing of the prompt had been taken, so it may be sent again, once.
                Err(Failure::Before(WorkerError::Crashed { .. })) if attempt == 1 => attempt += 1,
                Err(failure) => return Err(failure.into()),
                Ok(turn) => return Ok(turn),
            }
        }
    }

    async fn attempt(
        &mut self,
        request: &ApiRequest,
        cx: &TurnContext,
    ) -> Result<AssistantTurn, Failure> {
        let Some(known) = self.open(request, cx).await? else { return Ok(cancelled()) };
        let Some(mut live) = self.live.take() else {
            return Err(Failure::Before(WorkerError::Stopped));
        };
        let outcome = self.turn(&mut live, request, known, cx).await;
        if !live.has_ended() {
            self.live = Some(live);
        }
        outcome
    }

    /// One prompt from delivery to end on an open worker.
    async fn turn(
        &mut self,
        live: &mut Live,
        request: &ApiRequest,
        known: usize,
        cx: &TurnContext,
    ) -> Result<AssistantTurn, Failure> {
        // A turn that nobody asked for is heard to its end first: its words are its own.
        while live.is_in_unasked_turn() {
            tokio::select! {
                happened = live.next(&mut self.gate, cx) => {
                    if let Happened::Ended(error) = happened {
                        return Err(Failure::Before(error));
                    }
                }
                () = cx.cancel.cancelled() => {
                    live.worker().interrupt();
                    return Ok(cancelled());
                }
            }
        }
        let (prompt, earlier) = prompt_of(&request.messages, known);
        let text = history::with_history(earlier, &prompt);
        let anchor = request.messages.len().saturating_sub(1);
        let submitted = live.worker().submit(text);
        tokio::pin!(submitted);
        let mut delivered = false;
        let mut give_up: Option<Instant> = None;
        self.steering.open(live.worker());
        let end = loop {
            let patience = async {
                match give_up {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = cx.cancel.cancelled(), if give_up.is_none() => {
                    live.worker().interrupt();
                    let timings = &self.config.timings;
                    give_up = Some(Instant::now() + timings.interrupt + timings.transcript_lag);
                }
                taken = &mut submitted, if !delivered => match taken {
                    Ok(()) => {
                        delivered = true;
                        self.remember(request, live, anchor + 1);
                    }
                    Err(error @ (WorkerError::Crashed { .. } | WorkerError::Stopped)) => {
                        break Err(live.end(error, &mut self.gate, cx).await);
                    }
                    Err(error) => break Err(error),
                },
                happened = live.next(&mut self.gate, cx) => match happened {
                    Happened::Nothing | Happened::TurnEnded { unasked: true, .. } => {}
                    Happened::TurnEnded { end, unasked: false } => break Ok(end),
                    Happened::Ended(error) => break Err(error),
                },
                // It does not say that it stopped: what is known of it stays, what comes later is
                // told with the next turn.
                () = patience => break Ok(TurnEnd::Interrupted),
            }
        };
        self.steering.close();
        let turn = live.finish(&ending(end.as_ref().ok()), &*cx.sink);
        let taken_back = !delivered
            && give_up.is_some()
            && matches!(&end, Err(WorkerError::RefusedPrompt(_)) | Ok(TurnEnd::Withdrawn));
        // What the person took back before it was sent is not told the CLI later as something earlier.
        if delivered || taken_back && known >= anchor {
            self.remember(request, live, anchor + 1 + turn.messages.len());
        }
        match end {
            Err(_) if taken_back => Ok(cancelled()),
            Ok(TurnEnd::Failed(fact)) => Err(Failure::Api(failure::of_api(*fact, turn))),
            Ok(_) => Ok(turn),
            Err(error) if !delivered && turn.messages.is_empty() && !may_have_run(&error) => {
                Err(Failure::Before(error))
            }
            Err(error) => Err(Failure::Api(failure::of_worker(&error, turn))),
        }
    }

    /// An open worker for this session, and how many messages its Claude session knows. None when
    /// the person cancelled meanwhile.
    async fn open(
        &mut self,
        request: &ApiRequest,
        cx: &TurnContext,
    ) -> Result<Option<usize>, Failure> {
        let before_prompt = request.messages.len().saturating_sub(1);
        let remembered = self.remembered(&request.session_id, &request.messages);
        if let Some(known) = self.known_to_open_worker(request, remembered.as_ref()) {
            return Ok(Some(known.min(before_prompt)));
        }
        self.close_live().await;
        self.gate.clear_grants();
        let parent = request.fork_of.as_ref().and_then(|parent| {
            let parent = self.remembered(parent, &request.messages)?;
            (parent.seen <= before_prompt).then_some(parent)
        });
        let parent_dir = parent.as_ref().map(|parent| parent.config_dir.clone());
        let (open, known) = match (&remembered, parent) {
            (Some(known), _) => {
                (OpenAs::Resume(known.claude_session_id.clone()), known.seen.min(before_prompt))
            }
            (None, Some(parent)) => {
                let into = uuid::Uuid::new_v4().to_string();
                (OpenAs::Fork { from: parent.claude_session_id, into }, parent.seen)
            }
            (None, None) => (OpenAs::New(uuid::Uuid::new_v4().to_string()), 0),
        };
        // Which of the two it is, the order above says.
        let kept_in = remembered.map(|known| known.config_dir).or(parent_dir);
        self.start(request, open, known, kept_in, cx).await
    }

    /// How many messages the worker that is open knows of this conversation; none when it is not the
    /// right one any more.
    fn known_to_open_worker(
        &self,
        request: &ApiRequest,
        remembered: Option<&Remembered>,
    ) -> Option<usize> {
        let live = self.live.as_ref().filter(|live| live.serves(&request.session_id))?;
        remembered.map(|known| known.seen).or(live.is_fresh().then_some(0))
    }

    async fn start(
        &mut self,
        request: &ApiRequest,
        open: OpenAs,
        known: usize,
        kept_in: Option<Account>,
        cx: &TurnContext,
    ) -> Result<Option<usize>, Failure> {
        let mut config = self.config.clone();
        if config.model.is_none() && !request.model.is_empty() {
            config.model = Some(request.model.clone());
        }
        // Nobody is asked about a program that is not there.
        if config.prefix.is_empty() {
            find_program(&config).map_err(Failure::Before)?;
        }
        if !self.host.may_work_in(&config, cx).await.map_err(Failure::Before)? {
            return Err(Failure::Before(WorkerError::NotTrusted(config.cwd)));
        }
        config.trusted = true;
        let (open, known) = if is_kept(&config, &open, kept_in, cx).await {
            (open, known)
        } else {
            (OpenAs::New(uuid::Uuid::new_v4().to_string()), 0)
        };
        let mut attempt = 1;
        loop {
            let mut live = Live::start(&self.host, config.clone(), &request.session_id, &open);
            match live.ready(&mut self.gate, cx).await {
                Ok(true) => {
                    self.live = Some(live);
                    return Ok(Some(known));
                }
                Ok(false) => {
                    live.close().await;
                    return Ok(None);
                }
                Err(error) => {
                    live.close().await;
                    if !may_pass(&error) || attempt == START_ATTEMPTS {
                        return Err(Failure::Before(error));
                    }
                    let wait = self.config.timings.restart * 2_u32.pow(attempt - 1);
                    cx.sink.emit(TuiEvent::Retrying {
                        attempt,
                        max_attempts: START_ATTEMPTS,
                        wait,
                        reason: error.to_string(),
                    });
                    tokio::select! {
                        () = tokio::time::sleep(wait) => attempt += 1,
                        () = cx.cancel.cancelled() => return Ok(None),
                    }
                }
            }
        }
    }

    /// What is remembered of that session, when it is still about this conversation and this folder.
    fn remembered(
        &self,
        session_id: &str,
        messages: &[Arc<ConversationMessage>],
    ) -> Option<Remembered> {
        self.memory.load(session_id).filter(|known| {
            // Behind a prefix the files of another account are out of reach.
            let in_reach =
                known.config_dir == self.config.config_dir || self.config.prefix.is_empty();
            known.cwd == self.config.cwd && in_reach && known.still_fits(messages)
        })
    }

    fn remember(&self, request: &ApiRequest, live: &Live, seen: usize) {
        let anchor = request.messages.len().saturating_sub(1);
        let Some(message) = request.messages.get(anchor) else { return };
        let remembered = Remembered {
            claude_session_id: live.claude_session_id().to_owned(),
            cwd: self.config.cwd.clone(),
            config_dir: self.config.config_dir.clone(),
            seen,
            anchor,
            anchor_fingerprint: fingerprint(message),
        };
        if let Err(error) = self.memory.save(&request.session_id, &remembered) {
            tracing::warn!(%error, "the Claude session of this conversation cannot be remembered");
        }
    }

    async fn close_live(&mut self) {
        self.steering.close();
        if let Some(live) = self.live.take() {
            live.close().await;
        }
    }

    async fn compact_worker(
        &mut self,
        request: ApiRequest,
        cx: &TurnContext,
    ) -> Result<Option<ContextCompaction>, ApiError> {
        self.gate.set_mode(request.permission_mode);
        let Some(_known) = self.open(&request, cx).await.map_err(ApiError::from)? else {
            return Ok(Some(ContextCompaction { before_tokens: 0, after_tokens: 0 }));
        };
        let Some(live) = &mut self.live else { return Ok(None) };
        let compacted = live.compact(&mut self.gate, &self.config.timings, cx).await;
        if live.has_ended() {
            self.live = None;
        }
        compacted.map(Some).map_err(|error| ApiError::Worker { message: error.to_string() })
    }

    async fn unasked_turn(&mut self, cx: &TurnContext) -> AssistantTurn {
        loop {
            let Some(live) = &mut self.live else { return std::future::pending().await };
            let idle_at = self.config.idle.and_then(|idle| live.idle_at(idle));
            let idle = async {
                match idle_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let happened = tokio::select! {
                biased;
                happened = live.next(&mut self.gate, cx) => happened,
                () = idle => {
                    self.close_live().await;
                    cx.sink.emit(TuiEvent::info(
                        "Claude Code was not used for a while and was ended. The next prompt goes on in its session.",
                    ));
                    continue;
                }
            };
            match happened {
                Happened::TurnEnded { unasked: true, end } => {
                    let turn = live.finish(&ending(Some(&end)), &*cx.sink);
                    live.saw_unasked(&self.memory, turn.messages.len());
                    return turn;
                }
                Happened::Ended(error) => {
                    cx.sink.emit(TuiEvent::warning(format!(
                        "{error}. The next prompt starts it again and goes on in the same Claude session."
                    )));
                    let told = live.take_unfinished(None, &self.memory, &*cx.sink);
                    self.live = None;
                    if let Some(turn) = told {
                        return turn;
                    }
                }
                Happened::Nothing | Happened::TurnEnded { .. } => {}
            }
        }
    }
}

impl ApiClient for WorkerClient {
    fn stream<'a>(
        &'a mut self,
        request: ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<AssistantTurn, ApiError>> {
        Box::pin(self.run(request, cx))
    }

    fn owns_context(&self) -> bool {
        true
    }

    fn compact<'a>(
        &'a mut self,
        request: ApiRequest,
        cx: &'a TurnContext,
    ) -> BoxFuture<'a, Result<Option<ContextCompaction>, ApiError>> {
        Box::pin(self.compact_worker(request, cx))
    }

    fn steering(&self) -> Option<Arc<dyn Steering>> {
        Some(Arc::clone(&self.steering) as Arc<dyn Steering>)
    }

    fn unasked<'a>(&'a mut self, cx: &'a TurnContext) -> BoxFuture<'a, AssistantTurn> {
        Box::pin(self.unasked_turn(cx))
    }

    fn stop_unasked(&mut self) {
        if let Some(live) = self.live.as_ref().filter(|live| live.is_in_unasked_turn()) {
            live.worker().interrupt();
        }
    }

    fn unfinished(&mut self, cx: &TurnContext) -> Option<AssistantTurn> {
        let live = self.live.as_mut()?;
        let mut end = Some(TurnEnd::Interrupted);
        // What it has told already is heard first.
        while let Some(happened) = live.next(&mut self.gate, cx).now_or_never() {
            match happened {
                Happened::TurnEnded { end: told, .. } => end = Some(told),
                Happened::Ended(_) => break,
                Happened::Nothing => {}
            }
        }
        live.take_unfinished(end.as_ref(), &self.memory, &*cx.sink)
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.close_live())
    }
}

/// Where an attempt failed.
enum Failure {
    /// Nothing of the prompt was taken.
    Before(WorkerError),
    Api(ApiError),
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Before(WorkerError::Auth { message }) => {
                Self::Auth { status: 401, message, credential: LOGIN }
            }
            Failure::Before(error) => Self::Worker { message: error.to_string() },
            Failure::Api(error) => error,
        }
    }
}

/// Whether a start that failed like this may work a moment later.
fn may_pass(error: &WorkerError) -> bool {
    matches!(
        error,
        WorkerError::StartFailed { .. } | WorkerError::Crashed { .. } | WorkerError::Spawn { .. }
    )
}

/// Whether the worker may have begun with the prompt before it failed like this.
fn may_have_run(error: &WorkerError) -> bool {
    matches!(error, WorkerError::Crashed { may_have_run: true, .. })
}

fn cancelled() -> AssistantTurn {
    AssistantTurn { messages: Vec::new(), stop_reason: StopReason::Cancelled }
}

/// How the story ends; none when the worker itself did.
fn ending(end: Option<&TurnEnd>) -> Ending {
    match end {
        Some(TurnEnd::Completed { last_message }) => {
            Ending::Completed { last_message: last_message.clone() }
        }
        Some(TurnEnd::Compacted) => Ending::Completed { last_message: None },
        Some(TurnEnd::Interrupted | TurnEnd::Withdrawn) => Ending::Interrupted,
        Some(TurnEnd::Failed(_)) | None => Ending::Failed,
    }
}

/// The prompt of this turn, and the messages before it that the worker does not know.
fn prompt_of(
    messages: &[Arc<ConversationMessage>],
    known: usize,
) -> (String, &[Arc<ConversationMessage>]) {
    match messages.split_last() {
        Some((last, earlier)) if last.role == MessageRole::User => {
            (last.text(), earlier.get(known..).unwrap_or_default())
        }
        // Another backend stopped in the middle of its tools: go on from there.
        Some(_) => ("Please go on.".to_owned(), messages.get(known..).unwrap_or_default()),
        None => (String::new(), messages),
    }
}
