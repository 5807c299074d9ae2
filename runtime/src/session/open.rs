//! A session that is open: the conversation in memory, its file, and the lock on it.
//!
//! The file is append-only. claw-code rewrites and rotates at 256 KiB because it writes a whole
//! snapshot after every turn; one record a message never needs that, so nothing here shortens or
//! renames the live file except compaction, which keeps the original first.
//!
//! What cannot be written stays queued: the conversation goes on in memory, and the next write
//! tries the queue again in order, so that the file never has a hole.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::blob::BlobDir;
use super::disk;
use super::identity::now_ms;
use super::list::title_of;
use super::lock::{LockRefusal, SessionLock};
use super::record::Encoder;
use super::{
    ConversationMessage, MessageRole, Session, SessionCompaction, SessionError, SessionStore,
    SessionView, UnfinishedFile, unfinished,
};
use crate::usage::SpentUsage;

/// An open session. Dropping it releases the lock; a session without a message leaves nothing.
pub struct OpenSession {
    session: Session,
    path: PathBuf,
    file: Option<File>,
    /// Whether the file is on disk (or must not be made anew).
    exists: bool,
    lock: Option<SessionLock>,
    blobs: BlobDir,
    store: SessionStore,
    queue: VecDeque<Pending>,
    next_seq: u64,
    /// The name of the file may not be on disk yet.
    is_new: bool,
    /// The file ends inside a line: the next record must begin a fresh one.
    torn_end: bool,
    title: Option<String>,
    prompts: Vec<String>,
    warnings: Vec<String>,
}

/// What is to be written, in order.
#[derive(Clone)]
enum Pending {
    Message(Arc<ConversationMessage>, u64),
    Prompt(String, u64),
    Compaction,
    Meta,
}

/// A conversation as it was before it was compacted.
#[derive(Debug, Clone)]
pub struct BeforeCompaction {
    messages: Vec<Arc<ConversationMessage>>,
    compaction: Option<SessionCompaction>,
    spent: Vec<SpentUsage>,
}

/// Steps of a compaction on disk, in order; a crash may fall between any two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    OriginalKept,
    SnapshotWritten,
    SnapshotLive,
}

impl OpenSession {
    /// A new session: nothing is on disk before the first message.
    pub(super) fn begin(session: Session, path: PathBuf, store: SessionStore) -> Self {
        Self {
            blobs: BlobDir::beside(&path),
            session,
            path,
            file: None,
            exists: false,
            lock: None,
            store,
            queue: VecDeque::new(),
            next_seq: 0,
            is_new: false,
            torn_end: false,
            title: None,
            prompts: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A new session that begins with what another one holds. Written with the first message.
    pub(super) fn begin_with(
        session: Session,
        path: PathBuf,
        store: SessionStore,
        prompts: Vec<String>,
        title: Option<String>,
    ) -> Self {
        let mut open = Self::begin(session, path, store);
        open.title = title;
        open.prompts = prompts;
        open.queue_everything();
        open
    }

    /// A session that was loaded from `path` and continues there. The lock is ours or cannot be.
    pub(super) fn resumed(
        loaded: super::load::Loaded,
        path: PathBuf,
        store: SessionStore,
        lock: Option<SessionLock>,
    ) -> Self {
        let mut open = Self::begin(loaded.session, path, store);
        open.exists = true;
        open.lock = lock;
        open.next_seq = loaded.next_seq;
        open.torn_end = loaded.torn_end;
        open.title = loaded.title;
        open.prompts = loaded.prompts;
        open.warnings = loaded.warnings;
        if loaded.last_is_unfinished
            && let Some(last) = open.session.messages.last()
        {
            // Recorded with whatever is written next: opening alone changes no file.
            open.queue.push_back(Pending::Message(Arc::clone(last), now_ms()));
        }
        open
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    pub fn id(&self) -> &str {
        &self.session.id
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Texts of earlier prompts, oldest first.
    pub fn prompt_history(&self) -> &[String] {
        &self.prompts
    }

    /// What was found wrong when the session was opened.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Where the next message is kept while it streams.
    pub(crate) fn unfinished_file(&self) -> UnfinishedFile {
        UnfinishedFile {
            path: unfinished::path_in(self.blobs.path()),
            seq: self.next_seq,
            model: self.session.model.clone(),
            redactor: self.store.redactor().clone(),
        }
    }

    pub(super) fn title(&self) -> Option<String> {
        self.title.clone().or_else(|| title_of(&self.session.messages, self.store.redactor()))
    }

    /// A new session with this conversation, its own id and its own file. Both go on independently.
    pub fn fork(&self, branch: Option<&str>) -> Result<Self, SessionError> {
        self.store.fork(self, branch)
    }

    /// What the front-end needs in order to show the session.
    pub fn view(&self, resumed: bool) -> SessionView {
        SessionView {
            id: self.session.id.clone(),
            path: self.path.clone(),
            fork: self.session.fork.clone(),
            messages: self.session.messages.clone(),
            prompt_history: self.prompts.clone(),
            warnings: self.warnings.clone(),
            resumed,
        }
    }

    /// Adds a message to the conversation and to its file.
    ///
    /// The message is in the conversation also when this fails with [`SessionError::NotSaved`].
    pub fn push(&mut self, message: Arc<ConversationMessage>) -> Result<(), SessionError> {
        let now = now_ms();
        self.session.updated_at_ms = now;
        self.session.messages.push(Arc::clone(&message));
        self.queue.push_back(Pending::Message(message, now));
        self.write_queue()
    }

    /// Remembers what the person typed, for the composer's history. Before the first message it
    /// waits for that.
    pub fn record_prompt(&mut self, text: &str) -> Result<(), SessionError> {
        self.prompts.push(text.to_owned());
        self.queue.push_back(Pending::Prompt(text.to_owned(), now_ms()));
        self.write_if_begun()
    }

    /// The model from here on.
    pub fn set_model(&mut self, model: &str) -> Result<(), SessionError> {
        if self.session.model.as_deref() == Some(model) {
            return Ok(());
        }
        self.session.model = Some(model.to_owned());
        self.queue_meta()
    }

    /// Makes everything written so far survive a power cut (about 0.2 ms). Call it at the end of a
    /// turn and after a user message.
    pub fn sync(&mut self) -> Result<(), SessionError> {
        self.notice_removal();
        self.write_if_begun()?;
        let Some(file) = &self.file else { return Ok(()) };
        let mut synced = self.blobs.sync().and_then(|()| file.sync_data());
        if let Some(dir) = self.path.parent().filter(|_| self.is_new && synced.is_ok()) {
            synced = disk::sync_dir(dir);
            self.is_new = synced.is_err();
        }
        synced.map_err(|source| self.not_saved(source))
    }

    /// Replaces the conversation by its compacted form, in memory and on disk, and keeps the
    /// original: returns the file that holds it.
    ///
    /// At every moment a complete session is under the live name. When the disk refuses, the
    /// conversation is compacted in memory, the file keeps the original, and the error says so.
    pub fn replace_after_compaction(
        &mut self,
        messages: Vec<Arc<ConversationMessage>>,
        compaction: SessionCompaction,
    ) -> Result<PathBuf, SessionError> {
        let saved = self.write_queue();
        let title = self.title();
        self.title = title;
        let kept: HashSet<*const ConversationMessage> = messages.iter().map(Arc::as_ptr).collect();
        let removed = self
            .session
            .messages
            .iter()
            .filter(|old| old.usage.is_some() && !kept.contains(&Arc::as_ptr(old)));
        let spent = SpentUsage::of_messages(removed, self.session.model.as_deref());
        SpentUsage::merge(&mut self.session.spent, spent);
        self.session.messages = messages;
        self.session.compaction = Some(compaction);
        self.session.updated_at_ms = now_ms();
        saved?;
        let replaced = self.replace_on_disk(&mut |_| Ok(()));
        replaced.map_err(|source| self.not_saved(source))
    }

    /// What [`Self::put_back`] needs to undo compactions from here on.
    pub fn before_compaction(&self) -> BeforeCompaction {
        BeforeCompaction {
            messages: self.session.messages.clone(),
            compaction: self.session.compaction.clone(),
            spent: self.session.spent.clone(),
        }
    }

    /// Makes the conversation what it was, in memory and on disk. What was kept of the compactions
    /// in between stays in the side folder.
    pub fn put_back(&mut self, before: BeforeCompaction) -> Result<(), SessionError> {
        self.session.messages = before.messages;
        self.session.compaction = before.compaction;
        self.session.spent = before.spent;
        self.session.updated_at_ms = now_ms();
        self.write_live(&mut |_| Ok(())).map_err(|source| self.not_saved(source))?;
        // The snapshot holds what still waited.
        self.queue.clear();
        Ok(())
    }

    fn replace_on_disk(
        &mut self,
        after: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> io::Result<PathBuf> {
        let original = self.keep_original()?;
        after(Step::OriginalKept)?;
        self.write_live(after)?;
        Ok(original)
    }

    /// Puts a snapshot of what is in memory under the live name.
    fn write_live(&mut self, after: &mut dyn FnMut(Step) -> io::Result<()>) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new(".")).to_owned();
        let mut snapshot =
            tempfile::Builder::new().prefix(".compacting-").suffix(".tmp").tempfile_in(&dir)?;
        let count = self.write_snapshot(snapshot.as_file_mut())?;
        self.blobs.sync()?;
        snapshot.as_file().sync_all()?;
        after(Step::SnapshotWritten)?;
        snapshot.persist(&self.path).map_err(|error| error.error)?;
        // The handle still writes to the original: whatever comes next must go to the new file.
        self.file = None;
        self.torn_end = false;
        self.next_seq = count;
        disk::sync_dir(&dir)?;
        after(Step::SnapshotLive)?;
        self.file = Some(disk::open_append(&self.path, false)?);
        Ok(())
    }

    /// A second name for the live file as it is, or a copy where links are not possible.
    fn keep_original(&self) -> io::Result<PathBuf> {
        if let Some(file) = &self.file {
            file.sync_data()?;
        }
        disk::create_private_dir(self.blobs.path())?;
        for number in 1_u32.. {
            let original = self.blobs.path().join(format!("before-compaction-{number}.jsonl"));
            match fs::hard_link(&self.path, &original) {
                Ok(()) => {
                    disk::sync_dir(self.blobs.path())?;
                    return Ok(original);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) if original.exists() => {}
                Err(_) => {
                    let mut source = File::open(&self.path)?;
                    let mut copy = disk::create_private_file(&original)?;
                    io::copy(&mut source, &mut copy)?;
                    copy.sync_all()?;
                    disk::sync_dir(self.blobs.path())?;
                    return Ok(original);
                }
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// The whole session as it is in memory; returns the number of the next message.
    fn write_snapshot(&mut self, file: &mut File) -> io::Result<u64> {
        let title = self.title();
        let now = self.session.updated_at_ms;
        let mut encoder = Encoder { redactor: self.store.redactor(), blobs: &mut self.blobs };
        let mut bytes = encoder.meta(&self.session, title.as_deref())?;
        if let Some(compaction) = &self.session.compaction {
            bytes.extend(encoder.compaction(compaction, &self.session.spent)?);
        }
        for prompt in &self.prompts {
            bytes.extend(encoder.prompt(prompt, now)?);
        }
        let mut seq = 0;
        for message in &self.session.messages {
            bytes.extend(encoder.message(message, seq, now)?);
            seq += 1;
        }
        file.write_all(&bytes)?;
        Ok(seq)
    }

    fn queue_everything(&mut self) {
        let now = now_ms();
        self.queue.clear();
        if self.session.compaction.is_some() {
            self.queue.push_back(Pending::Compaction);
        }
        self.queue.extend(self.prompts.iter().map(|text| Pending::Prompt(text.clone(), now)));
        let messages = self.session.messages.iter().map(|m| Pending::Message(Arc::clone(m), now));
        self.queue.extend(messages);
    }

    /// A clean-up of ignored files takes the session file away under our feet (and the handle would
    /// go on writing to nowhere): then everything is written anew.
    fn notice_removal(&mut self) {
        if self.file.is_none() || self.path.exists() {
            return;
        }
        self.title = self.title();
        self.file = None;
        self.lock = None;
        self.exists = false;
        self.torn_end = false;
        self.next_seq = 0;
        self.blobs = BlobDir::beside(&self.path);
        self.queue_everything();
    }

    fn queue_meta(&mut self) -> Result<(), SessionError> {
        if !self.exists {
            // The first record of the file says it.
            return Ok(());
        }
        self.session.updated_at_ms = now_ms();
        self.queue.push_back(Pending::Meta);
        self.write_queue()
    }

    fn write_if_begun(&mut self) -> Result<(), SessionError> {
        if self.exists || self.queue.iter().any(|p| matches!(p, Pending::Message(..))) {
            self.write_queue()
        } else {
            Ok(())
        }
    }

    /// Writes what waits, also what an earlier failure left.
    pub(super) fn write_queue(&mut self) -> Result<(), SessionError> {
        if self.queue.is_empty() {
            return Ok(());
        }
        self.notice_removal();
        self.ready_file()?;
        while let Some(next) = self.queue.front().cloned() {
            self.write_one(&next).map_err(|source| self.not_saved(source))?;
            self.queue.pop_front();
            if matches!(&next, Pending::Message(message, _) if message.role == MessageRole::Assistant)
            {
                unfinished::forget(self.blobs.path());
            }
        }
        Ok(())
    }

    /// One record by one `write_all`.
    fn write_one(&mut self, pending: &Pending) -> io::Result<()> {
        let title = matches!(pending, Pending::Meta).then(|| self.title()).flatten();
        let mut encoder = Encoder { redactor: self.store.redactor(), blobs: &mut self.blobs };
        let mut record = match pending {
            Pending::Message(message, at) => encoder.message(message, self.next_seq, *at)?,
            Pending::Prompt(text, at) => encoder.prompt(text, *at)?,
            Pending::Compaction => match &self.session.compaction {
                Some(compaction) => encoder.compaction(compaction, &self.session.spent)?,
                None => return Ok(()),
            },
            Pending::Meta => encoder.meta(&self.session, title.as_deref())?,
        };
        if self.torn_end {
            record.insert(0, b'\n');
        }
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        // A failed write may have left half a line.
        self.torn_end = true;
        file.write_all(&record)?;
        self.torn_end = false;
        self.next_seq += u64::from(matches!(pending, Pending::Message(..)));
        Ok(())
    }

    /// Opens the file, making it and its folder when it is the first time.
    fn ready_file(&mut self) -> Result<(), SessionError> {
        if self.file.is_some() {
            return Ok(());
        }
        if self.exists {
            let file = disk::open_append(&self.path, false);
            self.file = Some(file.map_err(|source| self.not_saved(source))?);
            return Ok(());
        }
        let workspace = self.store.workspace();
        if !workspace.is_dir() {
            let gone = format!("the folder {} is gone", workspace.display());
            return Err(self.not_saved(io::Error::new(io::ErrorKind::NotFound, gone)));
        }
        if let Some(dir) = self.path.parent() {
            prepare_dir(dir).map_err(|source| self.not_saved(source))?;
        }
        if self.lock.is_none() {
            self.lock = Some(self.acquire_lock()?);
        }
        let file = disk::open_append(&self.path, true);
        self.file = Some(file.map_err(|source| self.not_saved(source))?);
        self.exists = true;
        self.is_new = true;
        self.queue.push_front(Pending::Meta);
        Ok(())
    }

    fn acquire_lock(&self) -> Result<SessionLock, SessionError> {
        SessionLock::acquire(&lock_path(&self.path)).map_err(|refusal| match refusal {
            LockRefusal::Held => SessionError::Locked { id: self.session.id.clone() },
            LockRefusal::Io(source) => self.not_saved(source),
        })
    }

    fn not_saved(&self, source: io::Error) -> SessionError {
        SessionError::NotSaved { path: self.path.clone(), source }
    }
}

/// The lock of a session file.
pub(super) fn lock_path(session_file: &Path) -> PathBuf {
    session_file.with_extension("lock")
}

/// Makes the folder for session files, readable by its owner alone and out of version control.
fn prepare_dir(dir: &Path) -> io::Result<()> {
    if let Some(root) = dir.parent()
        && root.file_name().is_some_and(|name| name == "sessions")
    {
        // The folder for all that the program keeps here, never the workspace itself.
        match root.parent().map_or(Ok(()), fs::create_dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        disk::create_private_dir(root)?;
        match disk::create_private_file(&root.join(".gitignore")) {
            Ok(mut ignore) => ignore.write_all(b"*\n")?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    disk::create_private_dir(dir)
}

#[cfg(test)]
mod tests;
