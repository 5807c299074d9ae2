//! What all workers of this process share: the name by which their processes are found, the guard
//! that ends them when we are killed, the tap, and the screen that a person looks at.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use claw_runtime::TurnContext;
use claw_runtime::permissions::{
    Asker, Digest, PermissionLevel, PermissionMode, PermissionPromptDecision, PermissionRequest,
    RequestId, RequestKind,
};
use claw_runtime::tools::Grant;
use tokio::task::spawn_blocking;

use crate::config::{Transport, WorkerConfig};
use crate::error::WorkerError;
use crate::guard::Guard;
use crate::private_dir;
use crate::process::Marker;
use crate::screens::Screens;
use crate::tap::Tap;
use crate::transcript::{self, MigrateError, Migrated};
use crate::trust::ClaudeFile;
use crate::worker::OpenAs;

/// Shared by the workers of one process. Dropping it lets the guard end whatever is left of them.
pub struct Host {
    marker: Marker,
    started: AtomicU64,
    guard: Mutex<Option<Guard>>,
    tap: Mutex<Option<Arc<Tap>>>,
    /// It saw nothing of a worker that was led to it: others do without.
    tap_is_blind: AtomicBool,
    screens: Screens,
    /// One for each worker that has not come to its end.
    living: Arc<()>,
}

/// Held by a worker from its start to the end of its last process.
pub(crate) struct Presence {
    _living: Arc<()>,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            marker: Marker::new(),
            started: AtomicU64::new(0),
            guard: Mutex::default(),
            tap: Mutex::default(),
            tap_is_blind: AtomicBool::new(false),
            screens: Screens::default(),
            living: Arc::default(),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let guard = self.guard.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // Without a worker that lives there is nothing to guard. A guard that is only dropped acts.
        if Arc::strong_count(&self.living) == 1
            && let Some(guard) = guard
        {
            guard.release();
        }
    }
}

impl Host {
    pub(crate) fn presence(&self) -> Presence {
        Presence { _living: Arc::clone(&self.living) }
    }

    /// The screen of the worker in use.
    pub fn screens(&self) -> &Screens {
        &self.screens
    }

    /// The marker of the next worker. From here on the guard stands.
    pub(crate) fn next_marker(&self, config: &WorkerConfig) -> Marker {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        if guard.is_none() && !config.guard.is_empty() {
            let folders = private_dir::own_folders(&config.private_root);
            match Guard::spawn(&config.guard, &self.marker, &folders) {
                Ok(standing) => *guard = Some(standing),
                Err(error) => tracing::warn!(%error, "no guard for the workers"),
            }
        }
        drop(guard);
        self.marker.worker(self.started.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The tap, when it is wanted and can be had. Call it inside a tokio runtime.
    pub(crate) fn tap(&self, config: &WorkerConfig) -> Option<Arc<Tap>> {
        let wanted = config.tap
            && config.transport == Transport::Pty
            && config.prefix.is_empty()
            && !self.tap_is_blind.load(Ordering::Relaxed);
        if !wanted {
            return None;
        }
        let mut tap = self.tap.lock().unwrap_or_else(PoisonError::into_inner);
        if tap.is_none() {
            match Tap::start(&Tap::upstream_of(&config.environment)) {
                Ok(started) => *tap = Some(Arc::new(started)),
                Err(error) => tracing::warn!(%error, "no live text by the tap"),
            }
        }
        tap.clone()
    }

    /// A worker answered and the tap saw nothing of it. True the first time.
    pub(crate) fn tap_saw_nothing(&self) -> bool {
        !self.tap_is_blind.swap(true, Ordering::Relaxed)
    }

    /// Whether Claude Code may work in the configured folder. Asks the person once per folder and
    /// writes their yes where the CLI looks for it.
    pub(crate) async fn may_work_in(
        &self,
        config: &WorkerConfig,
        cx: &TurnContext,
    ) -> Result<bool, WorkerError> {
        let file = ClaudeFile::of(config);
        if !file.is_trusted(&config.cwd) {
            let decision = cx.prompter.decide(trust_question(config), &cx.cancel).await;
            if matches!(decision, PermissionPromptDecision::Deny { .. }) {
                return Ok(false);
            }
            let (file, cwd) = (file.clone(), config.cwd.clone());
            // A file that cannot be changed is no obstacle: the CLI asks by its own dialog then, which
            // is answered with the person's yes.
            if let Ok(Err(error)) = spawn_blocking(move || file.trust(&cwd)).await {
                tracing::warn!(%error, "the trusted folder could not be written ahead");
            }
        }
        let own = config.clone();
        if let Ok(Err(error)) = spawn_blocking(move || file.approve_api_key(&own)).await {
            tracing::warn!(%error, "the key could not be approved ahead");
        }
        Ok(true)
    }

    /// Copies the session that is to be opened from the folder of another account to the configured
    /// one.
    pub(crate) async fn bring_along(
        config: &WorkerConfig,
        open: &OpenAs,
        account: Option<PathBuf>,
    ) -> Result<Migrated, MigrateError> {
        let Some(id) = existing(open) else { return Ok(Migrated::Nothing) };
        let from = WorkerConfig { config_dir: account, ..config.clone() };
        let (from, to) = (transcript_of(&from, id), transcript_of(config, id));
        // An error means that the runtime ends, and whoever waits for this with it.
        spawn_blocking(move || transcript::migrate(&from, &to))
            .await
            .unwrap_or(Ok(Migrated::Nothing))
    }

    /// Whether the session that is to be opened is still there.
    pub(crate) fn has_transcript(config: &WorkerConfig, open: &OpenAs) -> bool {
        let Some(id) = existing(open) else { return true };
        // Behind a prefix it lies on another machine.
        !config.prefix.is_empty() || transcript_of(config, id).exists()
    }
}

/// The session that has to be there before it is opened like this.
fn existing(open: &OpenAs) -> Option<&str> {
    match open {
        OpenAs::New(_) => None,
        OpenAs::Resume(id) | OpenAs::Fork { from: id, .. } => Some(id),
    }
}

/// Where the CLI keeps the session of this id.
pub(crate) fn transcript_of(config: &WorkerConfig, id: &str) -> PathBuf {
    transcript::transcript_path(&transcript::config_dir(config), &config.cwd, id)
}

fn trust_question(config: &WorkerConfig) -> PermissionRequest {
    let folder = config.cwd.display().to_string();
    PermissionRequest {
        id: RequestId::next(),
        kind: RequestKind::TrustFolder,
        asker: Asker::default(),
        digest: Digest::of(&folder),
        expires: None,
        tool_use_id: String::new(),
        tool_name: "Claude Code".to_owned(),
        input: folder.clone(),
        current_mode: PermissionMode::Prompt,
        required: PermissionLevel::DangerFullAccess,
        reason: Some("Claude Code reads, edits and runs files in it, now and later.".into()),
        preview: None,
        grant: Grant { key: format!("trust:{folder}"), words: folder },
    }
}
