//! Folders that are ours alone: the private folder of each worker (settings, token, socket), gone
//! with it, and the scratch folder of workers that have no other place.
//!
//! The root is never taken on trust: one of another user, one that others may enter, or a link in
//! its place is refused, since whoever can write there could answer for us.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::environment::variable;
use crate::error::WorkerError;

/// A path of a Unix socket has at most this many bytes everywhere (104 with its NUL on macOS).
const LONGEST_SOCKET: usize = 103;
/// What is needed below the root for a folder's name and the socket in it.
const LONGEST_BELOW: usize = 52;
/// Held locked by the owner for as long as it lives, whatever the process ids say.
const LOCK: &str = "lock";

/// The private folder of one worker: 0700, every file in it 0600 from its birth. Dropping it removes
/// it with everything in it.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
    /// Open for its lock only.
    _lock: File,
}

impl PrivateDir {
    /// Makes a new one below `root` (see [`private_root`]). The first one of a process also removes
    /// what dead processes left there.
    pub fn create(root: &Path) -> Result<Self, WorkerError> {
        check_private(root)?;
        sweep_once(root);
        let random = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("{}-{}", Owner::this_process(), &random[..12]);
        let path = root.join(name);
        let failed = |source| file_error(&path, source);
        DirBuilder::new().mode(0o700).create(&path).map_err(failed)?;
        let lock = new_file(&path.join(LOCK)).and_then(|file| file.lock().map(|()| file));
        match lock {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(source) => {
                let error = file_error(&path, source);
                let _ = std::fs::remove_dir_all(&path);
                Err(error)
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a new file, 0600 from its birth. One of that name must not exist.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, WorkerError> {
        let path = self.path.join(name);
        let written = new_file(&path).and_then(|mut file| file.write_all(content));
        written.map(|()| path.clone()).map_err(|source| file_error(&path, source))
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // What is left is removed by the next process.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// What the paths of all private folders of this process begin with, for the guard that removes them
/// when we cannot.
pub fn own_folders(root: &Path) -> PathBuf {
    root.join(Owner::this_process().to_string())
}

/// Where private folders are made: `$XDG_RUNTIME_DIR/claw`, else `/tmp/claw-<uid>`. Made when it is
/// missing, refused when it is not ours alone.
pub fn private_root(environment: &[(OsString, OsString)]) -> Result<PathBuf, WorkerError> {
    let root = root_for(variable(environment, "XDG_RUNTIME_DIR"), Path::new("/tmp"));
    make_private(&root)?;
    Ok(root)
}

/// The runtime folder when it is one of ours and short enough for a socket; else one of our own
/// below `shared`, which others may write to.
fn root_for(runtime: Option<&OsStr>, shared: &Path) -> PathBuf {
    let runtime = runtime.map(Path::new).filter(|folder| {
        let ours = folder.metadata().is_ok_and(|found| found.is_dir() && found.uid() == uid());
        folder.is_absolute() && ours
    });
    let root = runtime.map(|folder| folder.join("claw"));
    root.filter(|root| fits(root)).unwrap_or_else(|| shared.join(format!("claw-{}", uid())))
}

fn fits(root: &Path) -> bool {
    root.as_os_str().len() + LONGEST_BELOW <= LONGEST_SOCKET
}

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes a folder of ours alone, or checks that the one that is there is.
fn make_private(folder: &Path) -> Result<(), WorkerError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(file_error(folder, source))
        }
        // Also after we made it: what counts is what is there.
        _ => check_private(folder),
    }
}

/// Refuses a folder that is not ours alone.
pub fn check_private(folder: &Path) -> Result<(), WorkerError> {
    let found = folder.symlink_metadata().map_err(|source| file_error(folder, source))?;
    let wrong = if !found.is_dir() {
        "is not a folder"
    } else if found.uid() != uid() {
        "belongs to another user"
    } else if found.mode() & 0o077 != 0 {
        "can be entered by other users (its mode must be 0700)"
    } else if !fits(folder) {
        "has too long a path for a socket in it"
    } else {
        return Ok(());
    };
    let message = format!(
        "the folder for the workers' private files {wrong}; remove it or set XDG_RUNTIME_DIR to another one"
    );
    Err(file_error(folder, io::Error::new(io::ErrorKind::PermissionDenied, message)))
}

fn file_error(path: &Path, source: io::Error) -> WorkerError {
    WorkerError::File { path: path.to_owned(), source }
}

/// Roots that this process has swept.
static SWEPT: LazyLock<Mutex<BTreeSet<PathBuf>>> = LazyLock::new(Mutex::default);

fn sweep_once(root: &Path) {
    if SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(root.to_owned()) {
        sweep(root);
    }
}

/// Removes the private folders of processes that are gone, and says how many. A folder is left alone
/// while its owner lives by either sign: its process, or the lock that it holds.
pub fn sweep(root: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(root) else { return 0 };
    let abandoned = entries.flatten().filter(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let owner = entry.file_name().to_str().and_then(Owner::of_folder);
        is_folder && owner.is_some_and(|owner| !owner.lives()) && !is_locked(&entry.path())
    });
    abandoned.filter(|entry| std::fs::remove_dir_all(entry.path()).is_ok()).count()
}

fn is_locked(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK)) else { return false };
    matches!(lock.try_lock(), Err(TryLockError::WouldBlock))
}

/// The process that a private folder belongs to. Its start time tells it from a later process that
/// got the same id.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    process: i32,
    /// In clock ticks since the machine started; 0 where that is not to be had.
    started: u64,
}

impl Owner {
    fn this_process() -> Self {
        let process = rustix::process::getpid().as_raw_nonzero().get();
        Self { process, started: started(process).unwrap_or(0) }
    }

    /// Reads `<process>-<started>-<random>`.
    fn of_folder(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let owner =
            Self { process: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? };
        (parts.next().is_some_and(|random| random.len() == 12) && parts.next().is_none())
            .then_some(owner)
    }

    fn lives(&self) -> bool {
        let Some(process) = rustix::process::Pid::from_raw(self.process) else { return false };
        if self.started == 0 {
            return rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH);
        }
        started(self.process) == Some(self.started)
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.process, self.started)
    }
}

/// When a process started, by `/proc`.
fn started(process: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may hold anything, so the fields are counted from its closing bracket.
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_whitespace().nth(19)?.parse().ok()
}

/// Where a worker works that was given no folder: the same one for all of them and for good, so that
/// it is trusted once. Made when it is missing.
pub fn scratch_dir(home: &Path) -> Result<PathBuf, WorkerError> {
    let folder = home.join(".cache").join("claw").join("scratch");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|source| file_error(&folder, source))?;
    Ok(folder)
}

#[cfg(test)]
mod tests;
