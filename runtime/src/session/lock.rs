//! One process at a time writes a session.
//!
//! The lock is the operating system's, on a file beside the session: it ends with the process that
//! holds it, however that dies. The file itself is removed on release and means nothing by its mere
//! presence.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Looking at a lock (the session list does) holds it for some microseconds, so a refusal is only
/// believed when it repeats.
const ATTEMPTS: u32 = 4;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(3);

/// Held while it lives.
#[derive(Debug)]
pub(super) struct SessionLock {
    file: File,
    path: PathBuf,
}

/// Why there is no lock.
#[derive(Debug)]
pub(super) enum LockRefusal {
    /// Another process, or another conversation in this one, holds it.
    Held,
    Io(io::Error),
}

impl SessionLock {
    pub(super) fn acquire(path: &Path) -> Result<Self, LockRefusal> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let file = options.open(path).map_err(LockRefusal::Io)?;
            match file.try_lock() {
                // The holder before us may have removed the name between our open and our lock:
                // then this is a lock on nothing, and we take the file that is there now.
                Ok(()) if is_same_file(&file, path) => {
                    return Ok(Self { file, path: path.to_owned() });
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if attempt >= ATTEMPTS => {
                    return Err(LockRefusal::Held);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_ATTEMPTS),
                Err(TryLockError::Error(error)) => return Err(LockRefusal::Io(error)),
            }
        }
    }

    /// Whether someone holds the lock now. Never creates the file.
    pub(super) fn is_held(path: &Path) -> bool {
        File::open(path)
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // Removed while it is still held, so that nobody can lock the name that goes away.
        if cfg!(unix) && is_same_file(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

#[cfg(unix)]
fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(a), Ok(b)) => a.dev() == b.dev() && a.ino() == b.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same_file(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_holder_is_refused_until_the_first_lets_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.lock");
        let first = SessionLock::acquire(&path).unwrap();
        assert!(SessionLock::is_held(&path));
        assert!(matches!(SessionLock::acquire(&path), Err(LockRefusal::Held)));
        drop(first);
        assert!(!path.exists());
        assert!(!SessionLock::is_held(&path));
        SessionLock::acquire(&path).unwrap();
    }

    #[test]
    fn a_lock_file_that_a_dead_process_left_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.lock");
        fs::write(&path, "4242").unwrap();
        assert!(!SessionLock::is_held(&path));
        SessionLock::acquire(&path).unwrap();
    }
}
