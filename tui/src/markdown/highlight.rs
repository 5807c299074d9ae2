//! Colours of code, worked out in the background.
//!
//! A block is drawn plain first and coloured when the colours are there; the widths never change.
//! Grammars can hang (two of their rules can hand a line back and forth for ever), so one thread
//! does the work and another watches it: when a line takes longer than its deadline, its language
//! stays plain for the rest of the program and a fresh thread serves the others. Nothing starts and
//! nothing is loaded before the first block asks; after a while without work all of it is dropped.
//!
//! What is fed: whole lines only. Lines over 2 kB and very long blocks stay plain.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::syntax::Grammars;
use super::{CodeColours, ColouredCode, Colours};

/// Blocks of more lines or bytes stay plain.
const MOST_LINES: usize = 3000;
const MOST_BYTES: usize = 256 * 1024;

/// A line that takes longer hangs. Generous: a loaded machine is not a hang.
const LINE_DEADLINE: Duration = Duration::from_secs(2);

/// Without work for this long the grammars are dropped; they load again in milliseconds.
const IDLE: Duration = Duration::from_secs(30);

/// Colours kept for blocks that may be laid out again, counted as pieces of lines.
const KEPT_PIECES: usize = 100_000;

/// Does the work. Made on the working thread, so nothing is loaded before it is needed.
pub(super) trait Engine {
    /// Colours of the lines of `code`; none when the language is not known. `line_done` is called
    /// after every line.
    fn colour(&mut self, language: &str, code: &str, line_done: &dyn Fn()) -> Option<ColouredCode>;
}

type MakeEngine = fn() -> Box<dyn Engine>;

/// Told after colours have become ready; called on another thread.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The colours of code. Keeps what it found out about recent blocks.
pub struct Highlighter {
    service: Option<Service>,
    wake: Wake,
    make_engine: MakeEngine,
    deadline: Duration,
    idle: Duration,
    hasher: RandomState,
    known: HashMap<u64, Entry>,
    pieces: usize,
    /// Languages that stay plain: unknown ones, and those that hung.
    plain: HashSet<String>,
    /// The block that grows, as far as its colours are known.
    live: Option<Live>,
    live_asked: bool,
    generation: u64,
}

enum Entry {
    Asked,
    Known { code: Arc<ColouredCode>, pieces: usize, used: u64 },
}

struct Live {
    language: String,
    code: String,
    colours: Arc<ColouredCode>,
}

struct Service {
    jobs: Sender<Job>,
    replies: Receiver<Reply>,
}

struct Job {
    language: String,
    code: String,
    /// The block's key, or none for the block that grows.
    key: Option<u64>,
}

struct Reply {
    job: Job,
    /// None when the language stays plain.
    colours: Option<ColouredCode>,
}

impl Highlighter {
    /// A highlighter that calls `wake` when colours have become ready.
    pub fn new(wake: Wake) -> Self {
        Self::with_engine(wake, || Box::new(Grammars::load()), LINE_DEADLINE, IDLE)
    }

    fn with_engine(
        wake: Wake,
        make_engine: MakeEngine,
        deadline: Duration,
        idle: Duration,
    ) -> Self {
        Self {
            service: None,
            wake,
            make_engine,
            deadline,
            idle,
            hasher: RandomState::new(),
            known: HashMap::new(),
            pieces: 0,
            plain: HashSet::new(),
            live: None,
            live_asked: false,
            generation: 0,
        }
    }

    /// Hands a job to the watching thread, which starts with the first one.
    fn ask(&mut self, job: Job) -> bool {
        if self.service.is_none() {
            let (jobs, job_queue) = channel();
            let (reply_queue, replies) = channel();
            let watch = Watch {
                make_engine: self.make_engine,
                deadline: self.deadline,
                idle: self.idle,
                wake: Arc::clone(&self.wake),
                plain: HashSet::new(),
            };
            let started = std::thread::Builder::new()
                .name("code colours".to_owned())
                .spawn(move || watch.run(&job_queue, &reply_queue));
            if started.is_err() {
                return false;
            }
            self.service = Some(Service { jobs, replies });
        }
        self.service.as_ref().is_some_and(|service| service.jobs.send(job).is_ok())
    }

    /// Colours of the block that grows, as far as they are known.
    fn live_colours(&self, language: &str, code: &str) -> Option<Arc<ColouredCode>> {
        self.live
            .as_ref()
            .filter(|live| live.language == language && code.starts_with(&live.code))
            .map(|live| Arc::clone(&live.colours))
    }

    fn growing(&mut self, language: &str, code: &str) -> Colours {
        // The last line may still grow.
        let whole = code.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
        let found = self.live_colours(language, code);
        let known =
            if found.is_some() { self.live.as_ref().map_or(0, |live| live.code.len()) } else { 0 };
        if known < whole && !self.live_asked {
            let job =
                Job { language: language.to_owned(), code: code[..whole].to_owned(), key: None };
            self.live_asked = self.ask(job);
        }
        Colours::Pending(found)
    }

    fn take(&mut self, reply: Reply) {
        let Reply { job, colours } = reply;
        let Some(colours) = colours else {
            self.plain.insert(job.language);
            match job.key {
                Some(key) => {
                    self.known.remove(&key);
                }
                None => self.live_asked = false,
            }
            return;
        };
        let colours = Arc::new(colours);
        let Some(key) = job.key else {
            self.live_asked = false;
            self.live = Some(Live { language: job.language, code: job.code, colours });
            return;
        };
        let pieces = colours.lines.iter().map(|line| line.len() + 1).sum();
        self.pieces += pieces;
        let entry = Entry::Known { code: colours, pieces, used: self.generation };
        if let Some(Entry::Known { pieces, .. }) = self.known.insert(key, entry) {
            self.pieces -= pieces;
        }
        self.forget_old();
    }

    /// Drops the colours that were not used for longest. They can be worked out again.
    fn forget_old(&mut self) {
        while self.pieces > KEPT_PIECES && self.known.len() > 1 {
            let oldest = self
                .known
                .iter()
                .filter_map(|(key, entry)| match entry {
                    Entry::Known { used, .. } => Some((*used, *key)),
                    Entry::Asked => None,
                })
                .min();
            let Some((_, key)) = oldest else {
                return;
            };
            if let Some(Entry::Known { pieces, .. }) = self.known.remove(&key) {
                self.pieces -= pieces;
            }
        }
    }
}

impl CodeColours for Highlighter {
    fn colours(&mut self, language: &str, code: &str, open: bool) -> Colours {
        let language = language.to_ascii_lowercase();
        if self.plain.contains(&language)
            || code.len() > MOST_BYTES
            || code.lines().nth(MOST_LINES).is_some()
        {
            return Colours::Never;
        }
        if open {
            return self.growing(&language, code);
        }
        let key = self.hasher.hash_one((&language, code));
        match self.known.get_mut(&key) {
            Some(Entry::Known { code, used, .. }) => {
                *used = self.generation;
                Colours::Ready(Arc::clone(code))
            }
            Some(Entry::Asked) => Colours::Pending(self.live_colours(&language, code)),
            None => {
                let job = Job { language: language.clone(), code: code.to_owned(), key: Some(key) };
                if !self.ask(job) {
                    return Colours::Never;
                }
                self.known.insert(key, Entry::Asked);
                Colours::Pending(self.live_colours(&language, code))
            }
        }
    }

    fn poll(&mut self) -> u64 {
        let replies: Vec<Reply> =
            self.service.iter().flat_map(|service| service.replies.try_iter()).collect();
        if !replies.is_empty() {
            self.generation += 1;
        }
        for reply in replies {
            self.take(reply);
        }
        self.generation
    }
}

/// The watching thread: hands jobs to the working one and gives up on it when it hangs.
struct Watch {
    make_engine: MakeEngine,
    deadline: Duration,
    idle: Duration,
    wake: Wake,
    plain: HashSet<String>,
}

/// The working thread. Dropping this ends it as soon as it is done with its line.
struct Worker {
    jobs: Sender<(String, String)>,
    results: Receiver<Option<ColouredCode>>,
    /// Lines done.
    progress: Arc<AtomicU64>,
}

impl Watch {
    fn run(mut self, jobs: &Receiver<Job>, replies: &Sender<Reply>) {
        let mut worker: Option<Worker> = None;
        loop {
            let job = if worker.is_some() {
                match jobs.recv_timeout(self.idle) {
                    Ok(job) => job,
                    Err(RecvTimeoutError::Timeout) => {
                        worker = None;
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            } else {
                match jobs.recv() {
                    Ok(job) => job,
                    Err(_) => return,
                }
            };
            let colours = if self.plain.contains(&job.language) {
                None
            } else {
                self.work(&job, &mut worker)
            };
            if colours.is_none() {
                self.plain.insert(job.language.clone());
            }
            if replies.send(Reply { job, colours }).is_err() {
                return;
            }
            (self.wake)();
        }
    }

    /// Has the worker do the job. None when the language is unknown, hangs, or panics; after the
    /// last two the worker is left to itself.
    fn work(&self, job: &Job, worker: &mut Option<Worker>) -> Option<ColouredCode> {
        if worker.is_none() {
            *worker = start_worker(self.make_engine);
        }
        let current = worker.as_ref()?;
        current.jobs.send((job.language.clone(), job.code.clone())).ok()?;
        let mut seen = current.progress.load(Ordering::Relaxed);
        loop {
            match current.results.recv_timeout(self.deadline) {
                Ok(colours) => return colours,
                Err(RecvTimeoutError::Timeout) => {
                    let done = current.progress.load(Ordering::Relaxed);
                    if done == seen {
                        break;
                    }
                    seen = done;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        *worker = None;
        None
    }
}

fn start_worker(make_engine: MakeEngine) -> Option<Worker> {
    let (jobs, queue) = channel::<(String, String)>();
    let (results, answers) = channel();
    let progress = Arc::new(AtomicU64::new(0));
    let lines = Arc::clone(&progress);
    std::thread::Builder::new()
        .name("code colouring".to_owned())
        .spawn(move || {
            let mut engine = make_engine();
            let line_done = || {
                lines.fetch_add(1, Ordering::Relaxed);
            };
            // The load counts as progress: it must not be taken for a hang.
            line_done();
            while let Ok((language, code)) = queue.recv() {
                if results.send(engine.colour(&language, &code, &line_done)).is_err() {
                    return;
                }
            }
        })
        .ok()?;
    Some(Worker { jobs, results: answers, progress })
}

#[cfg(test)]
mod tests;
