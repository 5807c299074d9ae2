//! The processes that a worker started, and their end.
//!
//! A process group is not a worker: tool commands run in sessions of their own and belong to process
//! 1 as soon as the CLI has died. So they are found by descent, by session and by a variable in
//! their environment, and each is known by its id *and* its start time. Signals go through process
//! descriptors, so that an id that was reused meanwhile is never hit.
//!
//! It decides nothing about when; it reaps nothing.

mod table;

use std::collections::HashSet;
use std::fmt;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};
use tokio::sync::oneshot;

use crate::timings::{LOOK_AGAIN, Timings};

/// The variable that everything a worker starts has in its environment.
pub const MARKER_VARIABLE: &str = "CLAW_WORKER";

/// The value of [`MARKER_VARIABLE`]: `<ours>` for all workers of our process, `<ours>.<number>` for
/// one of them. No secret: tool commands see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker(String);

impl Marker {
    /// A new one for our process, unlike any other.
    pub fn new() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    /// The one of a worker of ours.
    #[must_use]
    pub fn worker(&self, number: u64) -> Self {
        Self(format!("{}.{number}", self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for this very value, and for those of the workers of our process.
    fn covers(&self, value: &[u8]) -> bool {
        let rest = value.strip_prefix(self.0.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
    }
}

impl Default for Marker {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&str> for Marker {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

/// One process, also after its id was given to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    pid: Pid,
    /// In the unit of the system; compared only.
    started: u64,
}

impl ProcessId {
    /// The process that has this id now.
    pub fn of(pid: u32) -> Option<Self> {
        Self::read(Pid::from_raw(i32::try_from(pid).ok()?)?)
    }

    pub(crate) fn read(pid: Pid) -> Option<Self> {
        table::row(pid).map(|row| row.id)
    }

    pub fn pid(self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// False for a process that has ended, reaped or not.
    pub fn lives(self) -> bool {
        table::row(self.pid).is_some_and(|row| row.lives && row.id == self)
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pid())
    }
}

/// How long the end of processes is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// From SIGTERM to SIGKILL.
    pub terminate: Duration,
    /// From SIGKILL until we give up.
    pub kill: Duration,
}

impl From<&Timings> for Patience {
    fn from(timings: &Timings) -> Self {
        Self { terminate: timings.terminate, kill: timings.kill }
    }
}

impl Patience {
    /// For processes that nobody wants any more.
    pub(crate) fn abandoned(timings: &Timings) -> Self {
        Self { terminate: timings.terminate_abandoned, kill: timings.kill }
    }
}

/// All living processes that belong to `root` or carry the marker, with their descendants and the
/// members of their sessions. Never our own process.
pub fn collect(root: Option<ProcessId>, marker: &Marker) -> Vec<ProcessId> {
    collect_from(root.as_slice(), marker)
}

fn collect_from(roots: &[ProcessId], marker: &Marker) -> Vec<ProcessId> {
    let us = rustix::process::getpid();
    let rows: Vec<table::Row> = table::all()
        .into_iter()
        .filter(|row| row.id.pid != us && row.id.pid != Pid::INIT)
        .collect();
    let carriers = table::marked(&rows, marker);
    let seed = rows.iter().filter(|row| roots.contains(&row.id) || carriers.contains(&row.id.pid));
    let mut ours: HashSet<Pid> = seed.map(|row| row.id.pid).collect();
    let belongs = |row: &table::Row, ours: &HashSet<Pid>| {
        let by = [row.parent, row.session];
        by.into_iter().flatten().any(|pid| ours.contains(&pid))
    };
    loop {
        let before = ours.len();
        for row in &rows {
            if belongs(row, &ours) {
                ours.insert(row.id.pid);
            }
        }
        if ours.len() == before {
            break;
        }
    }
    rows.into_iter()
        .filter(|row| row.lives && ours.contains(&row.id.pid))
        .map(|row| row.id)
        .collect()
}

/// Ends all that [`collect`] finds: SIGTERM, time to obey, then SIGKILL for what is left of it and
/// for what was started meanwhile. Returns what is alive even then: nothing, unless the kernel holds
/// it. Goes on in the background when the future is dropped.
pub async fn end_tree(
    root: Option<ProcessId>,
    marker: &Marker,
    patience: Patience,
) -> Vec<ProcessId> {
    let marker = marker.clone();
    let ended = on_a_thread(move || end_tree_now(root, &marker, patience));
    ended.await.unwrap_or_default()
}

/// [`end_tree`] for those who may block.
pub fn end_tree_now(
    root: Option<ProcessId>,
    marker: &Marker,
    patience: Patience,
) -> Vec<ProcessId> {
    let mut left = Targets::default();
    left.add(collect(root, marker));
    for target in &left.0 {
        target.signal(Signal::TERM);
        // One that was stopped could not obey.
        target.signal(Signal::CONT);
    }
    left.wait(Instant::now() + patience.terminate);
    let deadline = Instant::now() + patience.kill;
    loop {
        let mut roots = left.ids();
        roots.extend(root);
        left.add(collect_from(&roots, marker));
        for target in &left.0 {
            target.signal(Signal::KILL);
        }
        left.wait(deadline);
        if left.0.is_empty() && collect(root, marker).is_empty() || Instant::now() >= deadline {
            return left.ids();
        }
    }
}

/// Runs what blocks on a thread of its own, which ends with it. Where no thread is to be had it
/// blocks the caller: processes that nobody ends would be worse.
pub(crate) fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (done, ended) = oneshot::channel();
    let work = std::sync::Arc::new(std::sync::Mutex::new(Some((work, done))));
    let run = {
        let work = work.clone();
        move || {
            let taken = work.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            if let Some((work, done)) = taken {
                // Nobody may wait for it any more.
                let _ = done.send(work());
            }
        }
    };
    if thread::Builder::new().name("claw-end".to_owned()).spawn(run.clone()).is_err() {
        run();
    }
    ended
}

/// Processes that are to end.
#[derive(Default)]
struct Targets(Vec<Target>);

impl Targets {
    fn add(&mut self, ids: Vec<ProcessId>) {
        for id in ids {
            if !self.0.iter().any(|target| target.id == id) {
                self.0.extend(Target::of(id));
            }
        }
    }

    fn ids(&self) -> Vec<ProcessId> {
        self.0.iter().map(|target| target.id).collect()
    }

    /// Waits until all have ended or the time has come; keeps those that live.
    fn wait(&mut self, deadline: Instant) {
        loop {
            self.0.retain(|target| !target.has_ended());
            let left = deadline.saturating_duration_since(Instant::now());
            if self.0.is_empty() || left.is_zero() {
                return;
            }
            let handles: Vec<&OwnedFd> =
                self.0.iter().filter_map(|target| target.handle.as_ref()).collect();
            let silent = handles.len() < self.0.len();
            let wait = if silent { left.min(LOOK_AGAIN) } else { left };
            wait_readable(&handles, wait);
        }
    }
}

/// Waits until one of them is readable.
fn wait_readable(descriptors: &[&OwnedFd], at_most: Duration) {
    let mut polled: Vec<PollFd<'_>> =
        descriptors.iter().map(|one| PollFd::new(*one, PollFlags::IN)).collect();
    let at_most = Timespec::try_from(at_most).ok();
    // An error (a signal, no memory) only means to look again.
    let _ = rustix::event::poll(&mut polled, at_most.as_ref());
}

/// A process that is held on to, so that signals reach it or nobody.
struct Target {
    id: ProcessId,
    /// None where the system has no process descriptors.
    handle: Option<OwnedFd>,
}

impl Target {
    /// None when it has ended.
    fn of(id: ProcessId) -> Option<Self> {
        let handle = open(id.pid);
        // Only now: the descriptor may be that of a process that came after it.
        id.lives().then_some(Self { id, handle })
    }

    fn signal(&self, signal: Signal) {
        // It may have ended, or belong to somebody else by now (a program that changes its user).
        let _ = match &self.handle {
            #[cfg(target_os = "linux")]
            Some(handle) => rustix::process::pidfd_send_signal(handle, signal),
            _ if self.id.lives() => rustix::process::kill_process(self.id.pid, signal),
            _ => Ok(()),
        };
    }

    fn has_ended(&self) -> bool {
        let Some(handle) = &self.handle else { return !self.id.lives() };
        let mut polled = [PollFd::new(handle, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::event::poll(&mut polled, Some(&now)), Ok(1..))
    }
}

/// A descriptor of a process, readable once it has ended. None where there are none.
#[cfg(target_os = "linux")]
pub(crate) fn open(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open(_: Pid) -> Option<OwnedFd> {
    None
}

#[cfg(test)]
mod tests;
