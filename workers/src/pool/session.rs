//! Sessions: the same worker for many prompts, found again by a name. One prompt at a time; the same
//! name at the same time is one process. A worker that is gone is resumed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::error::PoolError;
use super::ready::{Held, Reply, Unanswered};
use super::{Ask, AtStage, Shared, Stage};
use crate::worker::OpenAs;

/// Names that are remembered; the oldest that is not in use goes first.
const MOST: usize = 1024;

#[derive(Default)]
pub(super) struct Sessions {
    by_name: HashMap<String, Slot>,
}

#[derive(Clone)]
struct Slot {
    cwd: PathBuf,
    used: Instant,
    inner: Arc<Mutex<Inner>>,
}

/// Held by whoever prompts.
#[derive(Default)]
struct Inner {
    held: Option<Held>,
    /// Its Claude session, once there is one.
    claude_session: Option<String>,
}

impl Sessions {
    /// Sessions whose worker lives or is in use.
    pub fn len(&self) -> usize {
        let lives = |slot: &&Slot| slot.inner.try_lock().map_or(true, |inner| inner.held.is_some());
        self.by_name.values().filter(lives).count()
    }

    pub fn clear(&mut self) {
        self.by_name.clear();
    }

    /// Workers of sessions that nobody has used for so long are given back, unless something of them
    /// goes on. The name is kept: the next prompt resumes.
    pub fn reap(&mut self, idle: Duration) {
        for slot in self.by_name.values() {
            let Ok(mut inner) = slot.inner.try_lock() else { continue };
            let Some(held) = inner.held.as_mut() else { continue };
            let well = held.is_well();
            if !well || slot.used.elapsed() >= idle && !held.is_pending() {
                inner.held = None;
            }
        }
    }

    fn slot(&mut self, name: &str, cwd: &PathBuf) -> Result<Arc<Mutex<Inner>>, PoolError> {
        if self.by_name.len() >= MOST && !self.by_name.contains_key(name) {
            let oldest = self.by_name.iter().filter(|(_, slot)| slot.inner.try_lock().is_ok());
            let oldest = oldest.min_by_key(|(_, slot)| slot.used).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest {
                self.by_name.remove(&oldest);
            }
        }
        let slot = self.by_name.entry(name.to_owned()).or_insert_with(|| Slot {
            cwd: cwd.clone(),
            used: Instant::now(),
            inner: Arc::default(),
        });
        if slot.cwd != *cwd {
            return Err(PoolError::OtherFolder {
                session: name.to_owned(),
                works_in: slot.cwd.clone(),
                wanted: cwd.clone(),
            });
        }
        slot.used = Instant::now();
        Ok(Arc::clone(&slot.inner))
    }

    fn touch(&mut self, name: &str) {
        if let Some(slot) = self.by_name.get_mut(name) {
            slot.used = Instant::now();
        }
    }
}

/// The worker, when it is of use still.
fn well(held: Option<Held>) -> Option<Held> {
    let mut held = held?;
    held.is_well().then_some(held)
}

impl Shared {
    /// One prompt in the session of this name.
    pub(super) async fn in_session(
        self: &Arc<Self>,
        name: &str,
        ask: &Ask,
        stage: &AtStage,
    ) -> Result<Reply, PoolError> {
        let cwd = ask.cwd.as_ref().unwrap_or(&self.config.worker.cwd);
        let inner = self.sessions().slot(name, cwd)?;
        stage.set(Stage::Queued);
        let mut inner = {
            let _queued = self.queued.one();
            inner.lock().await
        };
        // It leaves its place for as long as it works: whoever drops this retires it.
        let mut held = match well(inner.held.take()) {
            Some(held) => held,
            None => match &inner.claude_session {
                Some(id) => self.resume(id.clone(), ask.cwd.as_ref(), stage).await?,
                None => self.check_out(ask.cwd.as_ref(), stage).await?,
            },
        };
        inner.claude_session = Some(held.session_id.clone());
        let _busy = self.busy.one();
        stage.set(Stage::Running);
        let answered = held.ask(&ask.prompt).await;
        self.sessions().touch(name);
        match answered {
            Ok(reply) => {
                inner.held = Some(held);
                Ok(reply)
            }
            Err(Unanswered { error: error @ PoolError::Api { .. }, .. }) => {
                // The worker is well: the next prompt goes on.
                inner.held = Some(held);
                Err(error)
            }
            Err(Unanswered { error, .. }) => Err(error),
        }
    }

    async fn resume(
        self: &Arc<Self>,
        id: String,
        cwd: Option<&PathBuf>,
        stage: &AtStage,
    ) -> Result<Held, PoolError> {
        let queued = self.queued.one();
        let place = loop {
            let changed = self.home.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                break place;
            }
            if !self.warm().give_up_oldest() {
                changed.await;
            }
        };
        drop(queued);
        Ok(self.start(self.config_in(cwd), OpenAs::Resume(id), place, stage).await?)
    }
}
