//! What the CLI asks once and keeps in its `.claude.json`: whether a folder is trusted, and whether a
//! key may be used. Read as the CLI reads it, and written ahead of a start, so that no dialog stands
//! in the way of a worker. The question to the person is asked elsewhere, before.
//!
//! The file belongs to the person. Nothing in it is lost: other keys, their order, its mode, its
//! owner and a link in its place are kept, and one that cannot be understood is left as it is. No
//! file below the person's folder is ever touched.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value, json};

use crate::config::WorkerConfig;
use crate::environment::variable;
use crate::error::WorkerError;

/// The key of a folder's entry that says that it is trusted.
const ACCEPTED: &str = "hasTrustDialogAccepted";
/// The CLI's lock is a folder that it makes beside the file; one this old has no owner any more.
const LOCK_STALE: Duration = Duration::from_secs(10);
/// Between two looks at the lock. It is a folder, so there is nothing to wait on.
const LOCK_LOOK: Duration = Duration::from_millis(10);

/// The CLI's `.claude.json`. Its methods block on files for a few milliseconds, and for at most
/// `timings.config_lock` on the lock.
#[derive(Debug, Clone)]
pub struct ClaudeFile {
    path: PathBuf,
    patience: Duration,
}

impl ClaudeFile {
    /// The one that a worker with this configuration reads.
    pub fn of(config: &WorkerConfig) -> Self {
        let folder = config.config_dir.as_ref().unwrap_or(&config.home);
        Self { path: folder.join(".claude.json"), patience: config.timings.config_lock }
    }

    /// Whether the CLI starts in this folder without asking. Its rule: the real path of the folder
    /// or one above it is accepted, but none above the top of a git repository; for a linked work
    /// tree the top of its repository counts too. (2.1.197 also accepts what lies above a repository;
    /// there the person is asked once more than by the CLI.) A file that cannot be read says nothing.
    pub fn is_trusted(&self, cwd: &Path) -> bool {
        let Ok(cwd) = cwd.canonicalize() else { return false };
        let Ok(Some(document)) = self.read(&self.path) else { return false };
        let accepted = |folder: &Path| {
            let entry = folder.to_str().and_then(|folder| document.get("projects")?.get(folder));
            entry.and_then(|entry| entry.get(ACCEPTED)) == Some(&Value::Bool(true))
        };
        for folder in cwd.ancestors() {
            if accepted(folder) {
                return true;
            }
            let git = folder.join(".git");
            if git.symlink_metadata().is_ok() {
                return repository_of_work_tree(&git).is_some_and(|top| accepted(&top));
            }
        }
        false
    }

    /// Writes that the person trusts this folder, and that the first questions of the CLI were
    /// answered.
    pub fn trust(&self, cwd: &Path) -> Result<(), WorkerError> {
        let real = cwd.canonicalize().map_err(|source| file_error(cwd, source))?;
        let name = real.to_str().ok_or_else(|| self.refused(NOT_TEXT))?;
        self.change(|document| {
            document.insert("hasCompletedOnboarding".to_owned(), Value::Bool(true));
            let entry = object(object(document, "projects")?, name)?;
            entry.insert(ACCEPTED.to_owned(), Value::Bool(true));
            Some(())
        })
    }

    /// Writes that the key which the person put into the environment may be used. A key that the
    /// person refused before stays refused; without a key nothing happens.
    pub fn approve_api_key(&self, config: &WorkerConfig) -> Result<(), WorkerError> {
        let key = variable(&config.environment, "ANTHROPIC_API_KEY");
        let Some(tail) = key.and_then(|key| key.to_str()).map(key_tail) else { return Ok(()) };
        self.change(|document| {
            let answers = object(document, "customApiKeyResponses")?;
            let list =
                |value: &Value| value.as_array().is_some_and(|keys| keys.contains(&json!(tail)));
            if answers.get("rejected").is_some_and(list)
                || answers.get("approved").is_some_and(list)
            {
                return Some(());
            }
            answers
                .entry("approved")
                .or_insert_with(|| json!([]))
                .as_array_mut()?
                .push(json!(tail));
            answers.entry("rejected").or_insert_with(|| json!([]));
            Some(())
        })
    }

    /// Changes the file as a whole: locked, read, written beside it, put in its place. A change that
    /// finds something else than it expects gives `None`, and nothing is written.
    fn change(
        &self,
        change: impl FnOnce(&mut Map<String, Value>) -> Option<()>,
    ) -> Result<(), WorkerError> {
        let target = followed(&self.path).map_err(|source| file_error(&self.path, source))?;
        if let Some(folder) = target.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|source| file_error(folder, source))?;
        }
        let _lock = Lock::take(&target, self.patience)?;
        let before = self.read(&target)?;
        let mut after = before.clone().unwrap_or_default();
        change(&mut after).ok_or_else(|| self.refused(NOT_UNDERSTOOD))?;
        if before.as_ref() == Some(&after) {
            return Ok(());
        }
        let text =
            serde_json::to_string_pretty(&after).map_err(|_| self.refused(NOT_UNDERSTOOD))?;
        replace(&target, text.as_bytes()).map_err(|source| file_error(&target, source))
    }

    /// The document; `None` when there is no file.
    fn read(&self, path: &Path) -> Result<Option<Map<String, Value>>, WorkerError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(file_error(path, source)),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|_| self.refused(NOT_UNDERSTOOD))
    }

    fn refused(&self, why: &'static str) -> WorkerError {
        file_error(&self.path, io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

const NOT_UNDERSTOOD: &str = "it is not the JSON that Claude Code writes, so it was left as it is; repair it or start `claude` once by hand";
const NOT_TEXT: &str = "the folder's path is not valid UTF-8 and cannot be named in it; start `claude` there once by hand";

/// The part of a key by which the CLI remembers it.
pub(crate) fn key_tail(key: &str) -> String {
    let from = key.chars().count().saturating_sub(20);
    key.chars().skip(from).collect()
}

/// The object under a key, made when it is missing; `None` when something else stands there.
fn object<'a>(parent: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    parent.entry(key).or_insert_with(|| json!({})).as_object_mut()
}

/// The top of the repository that a linked work tree belongs to, by its `.git` file.
fn repository_of_work_tree(git: &Path) -> Option<PathBuf> {
    let pointer = std::fs::read_to_string(git).ok()?;
    let folder = git.parent()?.join(pointer.strip_prefix("gitdir:")?.trim());
    let common = std::fs::read_to_string(folder.join("commondir")).ok()?;
    let common = folder.join(common.trim()).canonicalize().ok()?;
    (common.file_name()? == ".git").then(|| common.parent().map(Path::to_owned))?
}

/// The file that a path means, through links, also when it is not there yet.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    // As many as the kernel follows.
    for _ in 0..40 {
        match path.read_link() {
            Ok(link) => path = path.parent().unwrap_or(Path::new("/")).join(link),
            // Not a link, or not there.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "too many links"))
}

fn file_error(path: &Path, source: io::Error) -> WorkerError {
    WorkerError::File { path: path.to_owned(), source }
}

/// Puts new content in the place of a file, in one step for everybody who reads it.
fn replace(target: &Path, content: &[u8]) -> io::Result<()> {
    let folder = target.parent().unwrap_or(Path::new("/"));
    let name = format!(".claude.json.{}.tmp", uuid::Uuid::new_v4().simple());
    let beside = folder.join(name);
    let written = write_beside(&beside, target, content)
        .and_then(|()| std::fs::rename(&beside, target))
        // The new name is on the disk only with its folder.
        .and_then(|()| File::open(folder)?.sync_all());
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn write_beside(beside: &Path, target: &Path, content: &[u8]) -> io::Result<()> {
    // Closed to others until it is what it will be: the file may hold secrets.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside)?;
    if let Ok(before) = target.metadata() {
        let now = file.metadata()?;
        if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
            std::os::unix::fs::fchown(&file, Some(before.uid()), Some(before.gid()))?;
        }
        file.set_permissions(before.permissions())?;
    }
    file.write_all(content)?;
    file.sync_all()
}

/// The lock that the CLI itself takes before it changes the file: a folder named after it. It serves
/// our own parallel starts as well.
struct Lock(PathBuf);

impl Lock {
    fn take(target: &Path, patience: Duration) -> Result<Self, WorkerError> {
        let mut name = target.as_os_str().to_owned();
        name.push(".lock");
        let folder = PathBuf::from(name);
        let until = Instant::now() + patience;
        loop {
            match std::fs::create_dir(&folder) {
                Ok(()) => return Ok(Self(folder)),
                Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(file_error(&folder, source));
                }
                Err(_) if is_stale(&folder) => {
                    // Another one may have been faster; the next look tells.
                    let _ = std::fs::remove_dir(&folder);
                }
                Err(source) if Instant::now() >= until => return Err(file_error(&folder, source)),
                Err(_) => std::thread::sleep(LOCK_LOOK),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Left behind, it is stale for everybody a few seconds later.
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn is_stale(folder: &Path) -> bool {
    let changed = folder.symlink_metadata().and_then(|found| found.modified());
    let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
    age.is_some_and(|age| age > LOCK_STALE)
}

#[cfg(test)]
mod tests;
