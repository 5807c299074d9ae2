//! One transcript file: the chain of its records, and the batches in which they land.

use std::cell::{Cell, RefCell};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

/// Lines wait here until their batch is written, so the file lags behind the hooks.
pub struct Transcript {
    path: PathBuf,
    lag: Duration,
    silent: bool,
    pending: RefCell<Vec<u8>>,
    scheduled: Cell<bool>,
    /// The uuid of the last record of the chain.
    pub last: RefCell<Option<String>>,
    /// How many records of the chain there are.
    pub chained: Cell<u64>,
}

impl Transcript {
    pub fn new(path: PathBuf, lag: Duration, silent: bool) -> Rc<Self> {
        Rc::new(Self {
            path,
            lag,
            silent,
            pending: RefCell::default(),
            scheduled: Cell::new(false),
            last: RefCell::new(None),
            chained: Cell::new(0),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds one line; it is written with its batch.
    pub fn add(self: &Rc<Self>, record: &Value) {
        let mut pending = self.pending.borrow_mut();
        pending.extend_from_slice(record.to_string().as_bytes());
        pending.push(b'\n');
        drop(pending);
        if !self.scheduled.replace(true) {
            let this = Rc::clone(self);
            tokio::task::spawn_local(async move {
                tokio::time::sleep(this.lag).await;
                this.flush();
            });
        }
    }

    /// Writes what waits.
    pub fn flush(&self) {
        self.scheduled.set(false);
        let bytes = std::mem::take(&mut *self.pending.borrow_mut());
        if bytes.is_empty() || self.silent {
            return;
        }
        if let Some(folder) = self.path.parent() {
            let _ = fs::create_dir_all(folder);
        }
        let file = OpenOptions::new().append(true).create(true).open(&self.path);
        let _ = file.and_then(|mut file| file.write_all(&bytes));
    }

    /// Cuts the file to nothing, as no CLI should.
    pub fn truncate(&self) {
        self.flush();
        let _ = OpenOptions::new().write(true).truncate(true).open(&self.path);
    }

    /// Puts another file with the same text in its place.
    pub fn replace(&self) {
        self.flush();
        let copy = self.path.with_extension("new");
        let _ = fs::copy(&self.path, &copy).and_then(|_| fs::rename(&copy, &self.path));
    }
}
