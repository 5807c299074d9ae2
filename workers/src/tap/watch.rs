//! Who watches which session, and the words for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::HeaderMap;
use tokio::sync::mpsc;

use super::Tapped;
use super::reader::quota;
use super::retry::retry;
use crate::fact::{Fact, Quota};

/// The watchers of every session.
#[derive(Default)]
pub(super) struct Watchers(Mutex<HashMap<String, Session>>);

#[derive(Default)]
struct Session {
    watchers: Vec<mpsc::UnboundedSender<Tapped>>,
    /// Every answer repeats it; a change is news.
    quota: Option<Quota>,
    /// How often each agent's question has failed in a row.
    failures: HashMap<Option<String>, u32>,
}

impl Watchers {
    pub fn add(&self, session_id: &str) -> mpsc::UnboundedReceiver<Tapped> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut sessions = self.sessions();
        // Here, where the number grows, is where it must shrink.
        sessions.retain(|_, session| {
            session.watchers.retain(|watcher| !watcher.is_closed());
            !session.watchers.is_empty()
        });
        sessions.entry(session_id.to_owned()).or_default().watchers.push(sender);
        receiver
    }

    /// How many are watching, dropped ones included until the next is added.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.sessions().values().map(|session| session.watchers.len()).sum()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those who watch one request. Tells that it began when it is made and, once, that it is over.
pub(super) struct Audience {
    all: Arc<Watchers>,
    session_id: String,
    agent: Option<String>,
    watchers: Vec<mpsc::UnboundedSender<Tapped>>,
    status: Option<u16>,
    over: bool,
}

impl Audience {
    /// None when nobody watches: then nothing has to be read.
    pub fn of(all: &Arc<Watchers>, session_id: &str, agent: Option<String>) -> Option<Self> {
        let watchers = all.sessions().get(session_id)?.watchers.clone();
        if watchers.iter().all(mpsc::UnboundedSender::is_closed) {
            return None;
        }
        let audience = Self {
            all: Arc::clone(all),
            session_id: session_id.to_owned(),
            agent,
            watchers,
            status: None,
            over: false,
        };
        audience.tell(&Tapped::RequestBegan { agent: audience.agent.clone() });
        Some(audience)
    }

    pub fn fact(&self, fact: Fact) {
        self.tell(&Tapped::Fact { agent: self.agent.clone(), fact: Box::new(fact) });
    }

    /// The account's state as this answer says it: a fact when it is not what was said before.
    fn quota(&self, quota: Quota) {
        {
            let mut sessions = self.all.sessions();
            let Some(session) = sessions.get_mut(&self.session_id) else { return };
            if session.quota.as_ref() == Some(&quota) {
                return;
            }
            session.quota = Some(quota.clone());
        }
        self.fact(Fact::Quota(quota));
    }

    /// The head of the answer is here, or there will be none. What a failed question of the
    /// conversation is followed by, is told.
    pub fn answered(&mut self, status: Option<u16>, headers: &HeaderMap, of_conversation: bool) {
        self.status = status;
        let quota = quota(headers);
        if of_conversation {
            let attempt = self.count(status.is_none_or(|status| status >= 400));
            if let Some(fact) = retry(attempt, status, headers, quota.as_ref()) {
                self.fact(fact);
            }
        }
        if let Some(quota) = quota {
            self.quota(quota);
        }
    }

    /// Failures in a row, with this one.
    fn count(&self, failed: bool) -> u32 {
        let mut sessions = self.all.sessions();
        let Some(session) = sessions.get_mut(&self.session_id) else { return 0 };
        if !failed {
            session.failures.remove(&self.agent);
            return 0;
        }
        let failures = session.failures.entry(self.agent.clone()).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        if !std::mem::replace(&mut self.over, true) {
            self.tell(&Tapped::RequestEnded { agent: self.agent.clone(), status: self.status });
        }
    }

    fn tell(&self, tapped: &Tapped) {
        for watcher in &self.watchers {
            // One that has gone away wants nothing more.
            let _ = watcher.send(tapped.clone());
        }
    }
}

impl Drop for Audience {
    fn drop(&mut self) {
        self.end();
    }
}
