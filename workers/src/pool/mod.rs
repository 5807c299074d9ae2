//! Warm workers for whoever asks one thing and wants the answer.
//!
//! An ask has a fresh context: a worker that is warm is used once and retired. A session keeps its
//! worker for many prompts. Every process has a place from before its start until nothing of it lives,
//! so their number never exceeds the cap, whatever is cancelled where. Whatever holds a worker is
//! dropped to retire it: no await point needs a clean-up of its own.

pub mod daemon;
mod error;
mod ready;
mod session;
mod warm;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::WorkerConfig;
use crate::error::WorkerError;
use crate::host::Host;
use crate::trust::ClaudeFile;
use crate::worker::OpenAs;

pub use error::{PoolError, Stage};
pub use ready::Reply;

use ready::{Counter, Held, Home, Unanswered};
use session::Sessions;
use warm::Warm;

/// How many, how long.
#[derive(Debug, Clone)]
pub struct PoolConfig {
    /// What every worker is started with; its folder is that of asks that name none.
    pub worker: WorkerConfig,
    /// Workers that are kept ready.
    pub warm: usize,
    /// Processes at the same time, in whatever state.
    pub max: usize,
    /// Of those, how many may be starting.
    pub starting: usize,
    /// Asks that may wait.
    pub queue: usize,
    /// A warm worker that is older is not used any more.
    pub warm_age: Duration,
    /// A session without a prompt for this long gives its worker back.
    pub idle: Duration,
    /// After a warm worker failed to start, before the next try.
    pub cool_down: Duration,
    /// What running asks are given when the pool closes.
    pub grace: Duration,
    /// The longest that an ask takes when it does not say.
    pub timeout: Duration,
}

impl PoolConfig {
    pub fn new(worker: WorkerConfig) -> Self {
        Self {
            worker,
            warm: 1,
            max: 4,
            starting: 2,
            queue: 64,
            warm_age: Duration::from_mins(30),
            idle: Duration::from_mins(30),
            cool_down: Duration::from_secs(30),
            grace: Duration::from_secs(10),
            timeout: Duration::from_mins(10),
        }
    }
}

/// One question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    pub prompt: String,
    /// Where the worker works; none for the pool's own folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Goes on in the session of this name; none for a fresh context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What the pool is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    pub warm: usize,
    pub starting: usize,
    pub busy: usize,
    pub queued: usize,
    pub retiring: usize,
    pub sessions: usize,
    /// The cap over all processes.
    pub max: usize,
    /// Warm workers that failed to start, since the last one that did.
    pub failures: u32,
    /// Milliseconds until the next try.
    pub cool_down_ms: u64,
    /// Name and words of the last failure of a start.
    pub last_failure: Option<(String, String)>,
    pub transport: String,
    pub pid: u32,
}

/// The pool. Cheap to clone; the last one that is dropped ends its workers.
#[derive(Clone)]
pub struct WorkerPool {
    shared: Arc<Shared>,
    _keeper: Arc<DropGuard>,
}

struct Shared {
    config: PoolConfig,
    host: Arc<Host>,
    places: Arc<Semaphore>,
    starts: Arc<Semaphore>,
    warm: Mutex<Warm>,
    sessions: Mutex<Sessions>,
    starting: Counter,
    busy: Counter,
    queued: Counter,
    home: Home,
    /// A warm worker is wanted, or one may be too old.
    keep: Notify,
    /// Nothing new is taken.
    closing: CancellationToken,
    /// What runs is given up.
    kill: CancellationToken,
}

impl WorkerPool {
    /// Opens it and begins to warm up, on the runtime that this is called in.
    pub fn open(mut config: PoolConfig, host: Arc<Host>) -> Self {
        // Its workers are for one question: nothing is lost by a short good-bye.
        let timings = &mut config.worker.timings;
        timings.terminate = timings.terminate.min(timings.terminate_abandoned);
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            places: Arc::new(Semaphore::new(config.max.max(1))),
            starts: Arc::new(Semaphore::new(config.starting.max(1))),
            config,
            host,
            warm: Mutex::default(),
            sessions: Mutex::default(),
            starting: Counter::default(),
            busy: Counter::default(),
            queued: Counter::default(),
            home: Home { retiring: Counter::default(), changed: Arc::default() },
            keep: Notify::new(),
            closing: CancellationToken::new(),
            kill: CancellationToken::new(),
        });
        tokio::spawn(warm::keep(Arc::downgrade(&shared), stop.clone()));
        Self { shared, _keeper: Arc::new(stop.drop_guard()) }
    }

    /// Asks one thing. Its time counts from here, and it may be dropped at any moment.
    pub async fn ask(&self, ask: Ask) -> Result<Reply, PoolError> {
        let shared = &self.shared;
        if ask.prompt.trim().is_empty() {
            return Err(PoolError::BadRequest("the prompt is empty".to_owned()));
        }
        if ask.cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
            return Err(PoolError::BadRequest("the folder is not an absolute path".to_owned()));
        }
        if shared.closing.is_cancelled() {
            return Err(PoolError::Closed);
        }
        let after = ask.timeout_ms.map_or(shared.config.timeout, Duration::from_millis);
        let stage = AtStage::default();
        let answered = async {
            tokio::select! {
                biased;
                () = shared.kill.cancelled() => Err(PoolError::Closed),
                answered = shared.answer(&ask, &stage) => answered,
            }
        };
        match tokio::time::timeout(after, answered).await {
            Ok(answered) => answered,
            Err(_) => Err(PoolError::Timeout { stage: stage.get(), after }),
        }
    }

    pub fn status(&self) -> PoolStatus {
        self.shared.status()
    }

    /// Returns when so many workers are warm, or when none can be made warm.
    pub async fn warmed(&self, count: usize) {
        loop {
            let changed = self.shared.home.changed.notified();
            let status = self.status();
            if status.warm >= count || status.failures > 0 {
                return;
            }
            changed.await;
        }
    }

    /// Takes nothing new, lets what runs end within the grace, then ends everything. Returns in
    /// bounded time, true when nothing is left.
    pub async fn close(&self) -> bool {
        let shared = &self.shared;
        shared.closing.cancel();
        shared.warm().clear();
        let over = Instant::now() + shared.config.grace;
        let idle = async {
            loop {
                let changed = shared.home.changed.notified();
                if shared.busy.get() + shared.queued.get() + shared.starting.get() == 0 {
                    return;
                }
                // What ends without a word is looked at again.
                let _ = tokio::time::timeout(Duration::from_millis(50), changed).await;
            }
        };
        let _ = tokio::time::timeout_at(over, idle).await;
        shared.kill.cancel();
        shared.warm().clear();
        shared.sessions().clear();
        let timings = &shared.config.worker.timings;
        let most = timings.terminate + timings.kill + timings.hook;
        let all = u32::try_from(shared.config.max.max(1)).unwrap_or(u32::MAX);
        let gone = shared.places.acquire_many(all);
        matches!(tokio::time::timeout(most, gone).await, Ok(Ok(_)))
    }
}

impl Shared {
    fn warm(&self) -> MutexGuard<'_, Warm> {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self) -> PoolStatus {
        let warm = self.warm();
        PoolStatus {
            warm: warm.len(),
            starting: self.starting.get(),
            busy: self.busy.get(),
            queued: self.queued.get(),
            retiring: self.home.retiring.get(),
            sessions: self.sessions().len(),
            max: self.config.max,
            failures: warm.failures,
            cool_down_ms: warm.cools_for(Instant::now()).as_millis().try_into().unwrap_or(u64::MAX),
            last_failure: warm.last_failure.clone(),
            transport: self.config.worker.transport.as_str().to_owned(),
            pid: std::process::id(),
        }
    }

    async fn answer(self: &Arc<Self>, ask: &Ask, stage: &AtStage) -> Result<Reply, PoolError> {
        if let Some(name) = &ask.session {
            return self.in_session(name, ask, stage).await;
        }
        let mut attempt = 1;
        loop {
            let mut held = self.check_out(ask.cwd.as_ref(), stage).await?;
            let _busy = self.busy.one();
            stage.set(Stage::Running);
            match held.ask(&ask.prompt).await {
                Ok(reply) => return Ok(reply),
                // Nothing of the prompt had been taken: another worker may have it, once.
                Err(Unanswered {
                    error: PoolError::Worker(WorkerError::Crashed { .. } | WorkerError::Stopped),
                    may_have_run: false,
                }) if attempt == 1 => attempt += 1,
                Err(Unanswered { error, .. }) => return Err(error),
            }
        }
    }

    /// A worker with a fresh context: a warm one, or one that is started now.
    async fn check_out(
        self: &Arc<Self>,
        cwd: Option<&PathBuf>,
        stage: &AtStage,
    ) -> Result<Held, PoolError> {
        let warm_fits = cwd.is_none_or(|cwd| *cwd == self.config.worker.cwd);
        stage.set(Stage::Queued);
        let take = || if warm_fits { self.warm().take(self.config.warm_age) } else { None };
        if let Some(held) = take() {
            self.keep.notify_one();
            return Ok(held);
        }
        let mut waiting = None;
        let place = loop {
            let changed = self.home.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(held) = take() {
                self.keep.notify_one();
                return Ok(held);
            }
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                break place;
            }
            // A warm worker for another folder stands in the way.
            if !warm_fits && self.warm().give_up_oldest() {
                continue;
            }
            if waiting.is_none() {
                if self.queued.get() >= self.config.queue {
                    return Err(PoolError::Busy(self.config.queue));
                }
                waiting = Some(self.queued.one());
            }
            changed.await;
        };
        drop(waiting);
        let config = self.config_in(cwd);
        let open = OpenAs::New(uuid::Uuid::new_v4().to_string());
        Ok(self.start(config, open, place, stage).await?)
    }

    fn config_in(&self, cwd: Option<&PathBuf>) -> WorkerConfig {
        let mut config = self.config.worker.clone();
        if let Some(cwd) = cwd {
            config.trusted &= *cwd == config.cwd;
            config.cwd.clone_from(cwd);
        }
        config
    }

    /// Starts a worker in this place and waits until it is ready.
    async fn start(
        self: &Arc<Self>,
        mut config: WorkerConfig,
        open: OpenAs,
        place: OwnedSemaphorePermit,
        stage: &AtStage,
    ) -> Result<Held, WorkerError> {
        let Ok(_turn) = self.starts.acquire().await else { return Err(WorkerError::Stopped) };
        stage.set(Stage::Starting);
        let _starting = self.starting.one();
        if !config.trusted {
            let file = ClaudeFile::of(&config);
            if !file.is_trusted(&config.cwd) {
                return Err(WorkerError::NotTrusted(config.cwd));
            }
            config.trusted = true;
        }
        let host = Arc::clone(&self.host);
        let mut held = Held::start(config, open, host, place, self.home.clone());
        held.ready().await?;
        Ok(held)
    }
}

/// Where an ask is, for the words about its time.
#[derive(Default)]
struct AtStage(AtomicU8);

impl AtStage {
    fn set(&self, stage: Stage) {
        self.0.store(stage as u8, Ordering::Relaxed);
    }

    fn get(&self) -> Stage {
        match self.0.load(Ordering::Relaxed) {
            0 => Stage::Queued,
            1 => Stage::Starting,
            _ => Stage::Running,
        }
    }
}
