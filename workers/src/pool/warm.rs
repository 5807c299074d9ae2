//! The workers that are kept ready, and who keeps them: newest first, none older than its time, a
//! pause after a failure instead of a storm of starts.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ready::Held;
use super::{AtStage, PoolError, Shared};
use crate::error::WorkerError;
use crate::worker::OpenAs;

/// At most this long until old workers and idle sessions are looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Warm {
    /// Oldest first.
    ready: Vec<(Held, Instant)>,
    /// On their way.
    coming: usize,
    cool_until: Option<Instant>,
    pub failures: u32,
    pub last_failure: Option<(String, String)>,
}

impl Warm {
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// The newest that is well. What is not is let go of.
    pub fn take(&mut self, age: Duration) -> Option<Held> {
        while let Some((mut held, since)) = self.ready.pop() {
            if since.elapsed() < age && held.is_well() {
                return Some(held);
            }
        }
        None
    }

    /// Lets the oldest go. False when there is none.
    pub fn give_up_oldest(&mut self) -> bool {
        let any = !self.ready.is_empty();
        if any {
            self.ready.remove(0);
        }
        any
    }

    pub fn clear(&mut self) {
        self.ready.clear();
    }

    /// How long nothing is started ahead.
    pub fn cools_for(&self, now: Instant) -> Duration {
        self.cool_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    fn came(&mut self, held: Held) {
        self.ready.push((held, Instant::now()));
        self.failures = 0;
        self.cool_until = None;
        self.last_failure = None;
    }

    fn failed(&mut self, error: WorkerError, cool_down: Duration) {
        self.failures += 1;
        let first = self.cools_for(Instant::now()).is_zero();
        self.cool_until = Some(Instant::now() + cool_down);
        let error = PoolError::from(error);
        if first {
            tracing::warn!(%error, pause = cool_down.as_secs(), "no warm worker");
        }
        self.last_failure = Some((error.name().to_owned(), error.to_string()));
    }

    /// Lets go of what is too old or not well.
    fn reap(&mut self, age: Duration) {
        self.ready.retain_mut(|(held, since)| since.elapsed() < age && held.is_well());
    }
}

/// Keeps the pool warm for as long as it is there.
pub(super) async fn keep(pool: Weak<Shared>, stop: CancellationToken) {
    loop {
        let Some(shared) = pool.upgrade() else { return };
        if shared.closing.is_cancelled() {
            return;
        }
        shared.warm().reap(shared.config.warm_age);
        shared.sessions().reap(shared.config.idle);
        fill(&shared);
        let cools = shared.warm().cools_for(Instant::now());
        let wait = if cools.is_zero() { LOOK_AGAIN } else { cools.min(LOOK_AGAIN) };
        let wait = wait.min(shared.config.idle).min(shared.config.warm_age);
        tokio::select! {
            () = stop.cancelled() => return,
            () = shared.closing.cancelled() => return,
            () = shared.keep.notified() => {}
            // A place that became free may be for a warm worker.
            () = shared.home.changed.notified() => {}
            () = tokio::time::sleep(wait.max(Duration::from_millis(10))) => {}
        }
    }
}

/// Starts as many as are missing, as far as there are places.
fn fill(shared: &Arc<Shared>) {
    loop {
        let mut warm = shared.warm();
        let wanted = shared.config.warm > warm.ready.len() + warm.coming;
        if !wanted || !warm.cools_for(Instant::now()).is_zero() {
            return;
        }
        // Who waits for a place comes first.
        if shared.queued.get() > 0 {
            return;
        }
        let Ok(place) = Arc::clone(&shared.places).try_acquire_owned() else { return };
        warm.coming += 1;
        drop(warm);
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            let config = shared.config_in(None);
            let open = OpenAs::New(uuid::Uuid::new_v4().to_string());
            let stage = AtStage::default();
            let started = tokio::select! {
                () = shared.closing.cancelled() => Err(WorkerError::Stopped),
                started = shared.start(config, open, place, &stage) => started,
            };
            let mut warm = shared.warm();
            warm.coming -= 1;
            match started {
                Ok(held) if !shared.closing.is_cancelled() => warm.came(held),
                Ok(_) | Err(WorkerError::Stopped) => {}
                Err(error) => warm.failed(error, shared.config.cool_down),
            }
            drop(warm);
            shared.home.changed.notify_waiters();
            shared.keep.notify_one();
        });
    }
}
