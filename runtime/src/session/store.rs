//! The sessions of one workspace on disk: where they are, how they are found, begun, resumed,
//! forked and deleted. What one open session does is in [`OpenSession`].
//!
//! Place and format are claw-code's: `<workspace>/.claw/sessions/<fingerprint>/<id>.jsonl`.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::identity::{fingerprint, new_session_id, now_ms};
use super::list::{entry, is_copy, session_files};
use super::load::{FileForm, Loaded, load, load_end};
use super::lock::{LockRefusal, SessionLock};
use super::open::{OpenSession, lock_path};
use super::{ConversationMessage, Session, SessionFork};
use crate::redact::Redactor;

/// One row of the session list.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEntry {
    pub id: String,
    pub path: PathBuf,
    /// First user message, one line, at most 80 characters.
    pub title: String,
    pub updated_at_ms: u64,
    pub bytes: u64,
    /// Exact for our files, estimated for large files of claw-code.
    pub message_count: usize,
    pub fork: Option<SessionFork>,
    pub model: Option<String>,
    /// It is the session that is open now.
    pub current: bool,
    /// Another process has it open.
    pub locked: bool,
}

/// What the front-end needs in order to show a session that was opened.
#[derive(Debug, Clone)]
pub struct SessionView {
    pub id: String,
    pub path: PathBuf,
    pub fork: Option<SessionFork>,
    pub messages: Vec<Arc<ConversationMessage>>,
    /// Text of earlier prompts, oldest first, for the composer's history.
    pub prompt_history: Vec<String>,
    /// Told to the person: skipped lines, repaired tail, missing blobs.
    pub warnings: Vec<String>,
    /// True when it was loaded from disk rather than begun.
    pub resumed: bool,
}

#[derive(Debug, Error)]
pub enum SessionError {
    #[error("no session matches \"{0}\"; /session list shows them")]
    NotFound(String),
    #[error("\"{reference}\" fits {matches} sessions; give more of the id")]
    Ambiguous { reference: String, matches: usize },
    #[error(
        "session {id} is open in another process; close it there and try again, or start a new conversation"
    )]
    Locked { id: String },
    /// The file holds no record of a session.
    #[error("{path} is not a session file; /session list shows what can be resumed")]
    NotASession { path: PathBuf },
    /// The conversation is whole in memory and goes on; what was written before is untouched.
    #[error(
        "the conversation could not be saved to {path}: {source}. It goes on in memory only; make room or allow writing there (the next message saves what is missing), or keep it with /export"
    )]
    NotSaved { path: PathBuf, source: std::io::Error },
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// The sessions of one workspace, on disk.
#[derive(Clone)]
pub struct SessionStore {
    workspace: PathBuf,
    /// Where new sessions go.
    dir: PathBuf,
    /// Where other sessions are looked for: the flat folder of old versions, the home folder.
    older: Vec<PathBuf>,
    redactor: Redactor,
}

impl SessionStore {
    /// The sessions of this workspace folder. Touches nothing on disk.
    pub fn open(workspace: &Path) -> Result<Self, SessionError> {
        let workspace = workspace.canonicalize().map_err(|source| SessionError::Io {
            action: "open workspace",
            path: workspace.to_owned(),
            source,
        })?;
        let sessions = workspace.join(".claw").join("sessions");
        Ok(Self {
            dir: sessions.join(fingerprint(&workspace)),
            older: vec![sessions],
            redactor: Redactor::from_env::<&str>([]),
            workspace,
        })
    }

    /// Also finds sessions in `<home>/.claw/sessions` (by id or prefix, not in the list).
    #[must_use]
    pub fn with_home(mut self, home: &Path) -> Self {
        self.older.push(home.join(".claw").join("sessions"));
        self
    }

    /// What is taken out of every text before it is written, instead of the credentials in this
    /// process' environment alone.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// What is taken out of everything that is written.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Where this workspace's session files are.
    pub fn folder(&self) -> &Path {
        &self.dir
    }

    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// A new session. Nothing is on disk, and so nothing can fail, before its first message.
    pub fn create(&self, model: &str) -> OpenSession {
        let mut session = self.fresh_session();
        session.model = Some(model.to_owned());
        let path = self.path_of(&session.id);
        OpenSession::begin(session, path, self.clone())
    }

    /// Opens a session by `latest` (`last`, `recent`), id, unique prefix of an id, or path.
    ///
    /// Opening never changes the file. Old whole-object files and kept copies are not appended to:
    /// they continue in a new file with their first message.
    pub fn resume(&self, reference: &str) -> Result<OpenSession, SessionError> {
        self.resume_showing(reference, |_| ())
    }

    /// As [`SessionStore::resume`]; the end of a long conversation is shown before all of it is
    /// read. What is returned holds everything, and takes the place of what was shown.
    pub fn resume_showing(
        &self,
        reference: &str,
        show: impl FnOnce(SessionView),
    ) -> Result<OpenSession, SessionError> {
        let path = self.resolve(reference)?;
        if is_copy(&path) {
            let loaded = self.load(&path)?;
            return Ok(self.continue_elsewhere(loaded, None, &path));
        }
        let lock = match SessionLock::acquire(&lock_path(&path)) {
            Ok(lock) => Ok(lock),
            Err(LockRefusal::Held) => {
                return Err(SessionError::Locked { id: super::load::id_of(&path) });
            }
            Err(LockRefusal::Io(error)) => Err(error),
        };
        // What is wrong with the file is told by reading all of it.
        if let Ok(Some(messages)) = load_end(&path) {
            show(SessionView {
                id: super::load::id_of(&path),
                path: path.clone(),
                fork: None,
                messages,
                prompt_history: Vec::new(),
                warnings: Vec::new(),
                resumed: true,
            });
        }
        let mut loaded = self.load(&path)?;
        if loaded.form == FileForm::WholeObject {
            return Ok(self.continue_elsewhere(loaded, None, &path));
        }
        loaded.session.id = super::load::id_of(&path);
        let no_lock = lock.as_ref().err().map(ToString::to_string);
        let elsewhere = loaded.session.workspace_root.clone();
        let mut open = OpenSession::resumed(loaded, path, self.clone(), lock.ok());
        if let Some(error) = no_lock {
            open.warn(format!("the session cannot be locked against other processes ({error})"));
        }
        if let Some(root) = elsewhere.filter(|root| *root != self.workspace) {
            open.warn(format!("this session was begun in {}", root.display()));
        }
        Ok(open)
    }

    /// A new session with the conversation of `parent`, its own id and its own file. Both go on
    /// independently.
    pub fn fork(
        &self,
        parent: &OpenSession,
        branch: Option<&str>,
    ) -> Result<OpenSession, SessionError> {
        let session = self.forked_session(parent.session(), branch);
        let path = self.path_of(&session.id);
        let mut fork = OpenSession::begin_with(
            session,
            path,
            self.clone(),
            parent.prompt_history().to_vec(),
            parent.title(),
        );
        // An empty parent gives an empty fork: nothing to keep yet.
        if !fork.session().messages.is_empty() {
            fork.write_queue()?;
            fork.sync()?;
        }
        Ok(fork)
    }

    /// A fork of a session that is not open here; another process may have it open.
    pub fn fork_of(
        &self,
        reference: &str,
        branch: Option<&str>,
    ) -> Result<OpenSession, SessionError> {
        let path = self.resolve(reference)?;
        let loaded = self.load(&path)?;
        Ok(self.continue_elsewhere(loaded, branch, &path))
    }

    /// All sessions, newest first. `current` is the id of the session that is open here.
    pub fn list(&self, current: Option<&str>) -> Vec<SessionEntry> {
        let mut seen = HashSet::new();
        let mut entries: Vec<SessionEntry> = [Some(&self.dir), self.older.first()]
            .into_iter()
            .flatten()
            .flat_map(|dir| session_files(dir))
            .filter_map(|path| entry(&path, current))
            .collect();
        entries.sort_by(|a, b| {
            // Of two files of one session the one that can be continued wins.
            let is_old = |e: &SessionEntry| e.path.extension().is_some_and(|ext| ext == "json");
            is_old(a).cmp(&is_old(b)).then(b.updated_at_ms.cmp(&a.updated_at_ms))
        });
        entries.retain(|entry| seen.insert(entry.id.clone()));
        entries.sort_by(|a, b| b.updated_at_ms.cmp(&a.updated_at_ms).then(b.id.cmp(&a.id)));
        entries
    }

    /// The last `limit` prompts of this workspace's sessions, oldest first, each once.
    pub fn recent_prompts(&self, limit: usize) -> Vec<String> {
        super::prompts::recent(session_files(&self.dir), limit)
    }

    /// Removes a session with everything that belongs to it.
    pub fn delete(&self, reference: &str, current: Option<&str>) -> Result<String, SessionError> {
        let path = self.resolve(reference)?;
        let id = super::load::id_of(&path);
        if current == Some(id.as_str()) {
            return Err(SessionError::Locked { id });
        }
        let _lock = match SessionLock::acquire(&lock_path(&path)) {
            Ok(lock) => Some(lock),
            Err(LockRefusal::Held) => return Err(SessionError::Locked { id }),
            Err(LockRefusal::Io(_)) => None,
        };
        let failed = |source| SessionError::Io { action: "delete", path: path.clone(), source };
        fs::remove_file(&path).map_err(failed)?;
        let side = path.with_extension("d");
        if side.is_dir() {
            fs::remove_dir_all(&side).map_err(failed)?;
        }
        Ok(id)
    }

    /// The file that a reference names.
    fn resolve(&self, reference: &str) -> Result<PathBuf, SessionError> {
        let reference = reference.trim();
        let not_found = || SessionError::NotFound(reference.to_owned());
        if matches!(reference, "latest" | "last" | "recent") {
            let entries = self.list(None);
            // Files in the flat folder may have come with the project: they are found by name or
            // from the list, but never pass for the latest while there is one of our own.
            let is_own = |e: &&SessionEntry| e.path.parent() == Some(self.dir.as_path());
            let newest = entries
                .iter()
                .filter(is_own)
                .chain(&entries)
                .find(|e| e.message_count > 0)
                .or(entries.first());
            return newest.map(|entry| entry.path.clone()).ok_or_else(not_found);
        }
        let as_path = Path::new(reference);
        let is_path = as_path.components().count() > 1
            || as_path.extension().is_some_and(|ext| ext == "jsonl" || ext == "json");
        if is_path {
            return if as_path.is_file() { Ok(as_path.to_owned()) } else { Err(not_found()) };
        }
        if reference.is_empty() {
            return Err(not_found());
        }
        let mut by_prefix: Vec<PathBuf> = Vec::new();
        for dir in std::iter::once(&self.dir).chain(&self.older) {
            let mut files = session_files(dir);
            // `x.jsonl` before `x.json`: the one that can be continued.
            files.sort_by_key(|path| path.extension().is_some_and(|ext| ext == "json"));
            for path in files {
                let id = super::load::id_of(&path);
                if id == reference {
                    return Ok(path);
                }
                let short = id.strip_prefix("session-").unwrap_or(&id);
                let is_new = by_prefix.iter().all(|known| super::load::id_of(known) != id);
                if is_new && (id.starts_with(reference) || short.starts_with(reference)) {
                    by_prefix.push(path);
                }
            }
        }
        match by_prefix.len() {
            0 => Err(not_found()),
            1 => by_prefix.pop().ok_or_else(not_found),
            matches => Err(SessionError::Ambiguous { reference: reference.to_owned(), matches }),
        }
    }

    /// A file of ours may be damaged to the last line and still be that session; any other file
    /// must hold a record.
    fn load(&self, path: &Path) -> Result<Loaded, SessionError> {
        let loaded = load(path)?;
        let is_ours = path.parent().is_some_and(|dir| dir == self.dir);
        if loaded.records == 0 && !is_ours {
            return Err(SessionError::NotASession { path: path.to_owned() });
        }
        Ok(loaded)
    }

    /// What was loaded, as a new session that remembers where it came from.
    fn continue_elsewhere(&self, loaded: Loaded, branch: Option<&str>, from: &Path) -> OpenSession {
        let session = self.forked_session(&loaded.session, branch);
        let path = self.path_of(&session.id);
        let mut open =
            OpenSession::begin_with(session, path, self.clone(), loaded.prompts, loaded.title);
        for warning in loaded.warnings {
            open.warn(warning);
        }
        open.warn(format!(
            "{} stays as it is; the conversation goes on in a new session",
            from.display()
        ));
        open
    }

    fn forked_session(&self, parent: &Session, branch: Option<&str>) -> Session {
        let mut session = self.fresh_session();
        session.messages.clone_from(&parent.messages);
        session.compaction.clone_from(&parent.compaction);
        session.spent.clone_from(&parent.spent);
        session.model.clone_from(&parent.model);
        session.fork = Some(SessionFork {
            parent_session_id: parent.id.clone(),
            branch_name: branch.map(str::to_owned),
        });
        session
    }

    fn fresh_session(&self) -> Session {
        let mut session = Session::new(new_session_id(), now_ms());
        session.workspace_root = Some(self.workspace.clone());
        session
    }

    fn path_of(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.jsonl"))
    }
}

#[cfg(test)]
mod tests;
