//! Everything that a worker on a pty consists of, made in order: the CLI is found, a private folder
//! with the hooks' socket and settings is made, the process is started.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::argv::argv;
use crate::child::PtyChild;
use crate::config::WorkerConfig;
use crate::dialog::{Answering, Consent, DOWN, Dialog, DialogKind, ENTER, NextKey};
use crate::environment::{child_environment, variable};
use crate::error::WorkerError;
use crate::fact::Fact;
use crate::hooks::SETTINGS;
use crate::hooks::server::{HookArrival, HookServer};
use crate::hooks::settings::settings;
use crate::host::{Host, transcript_of};
use crate::private_dir::PrivateDir;
use crate::protocol::Reading;
use crate::pty::PtyCommand;
use crate::tap::{Tap, Tapped};
use crate::timings::Timings;
use crate::transcript::{AgentFollower, ReaderEvent, Record, TranscriptReader};
use crate::trust::ClaudeFile;
use crate::version::{find_cli, known_hook_events};
use crate::worker::OpenAs;

/// A started worker.
pub(super) struct Running {
    pub child: PtyChild,
    pub version: String,
    pub hooks: UnboundedReceiver<Result<HookArrival, WorkerError>>,
    pub transcript: Transcript,
    pub live: LiveText,
    pub dialogs: Dialogs,
    _server: HookServer,
    _folder: PrivateDir,
}

impl Running {
    pub(super) async fn start(
        config: &WorkerConfig,
        open: &OpenAs,
        host: &Host,
    ) -> Result<Self, WorkerError> {
        let cli = find_cli(config).await?;
        let folder = PrivateDir::create(&config.private_root)?;
        let (server, hooks) = HookServer::open(&folder, &config.timings)?;
        let tap = host.tap(config);
        let events: Vec<&str> = known_hook_events(cli.version)
            .iter()
            .copied()
            // Each of its records costs a process; the tap tells more, and for nothing.
            .filter(|event| tap.is_none() || *event != "MessageDisplay")
            .collect();
        let settings = settings(config, folder.path(), &events)?;
        let settings = folder.write(SETTINGS, settings.as_bytes())?;
        let marker = host.next_marker(config);
        let address = tap.as_ref().map(|tap| tap.base_url());
        let command = PtyCommand {
            argv: argv(&cli.program, config, open, Some(&settings))?,
            cwd: config.cwd.clone(),
            environment: child_environment(config, marker.as_str(), address),
        };
        let transcript = Transcript::before_start(config, open).await?;
        let live = LiveText::of(tap, open.session_id());
        let child = PtyChild::spawn(&command, config.size, &marker, &config.timings)?;
        Ok(Self {
            child,
            version: cli.version.to_string(),
            hooks,
            transcript,
            live,
            dialogs: Dialogs::of(config),
            _server: server,
            _folder: folder,
        })
    }
}

/// The transcript of the session that the worker is in.
pub(super) struct Transcript {
    path: PathBuf,
    reader: TranscriptReader,
    agents: AgentFollower,
    timings: Timings,
    /// In a fork.
    copies: Option<Copies>,
}

/// What a fork has of its parent.
struct Copies {
    /// The ids of the parent's records, which a copy keeps.
    of: HashSet<String>,
    /// A record of the fork's own has come. Copies may still follow.
    are_over: bool,
}

/// The ids of all records of a transcript.
async fn ids_in(path: &Path, config: &WorkerConfig) -> HashSet<String> {
    let events = TranscriptReader::new(path, &config.timings).catch_up().await;
    let records = events.into_iter().filter_map(|event| match event {
        ReaderEvent::Record(record) => record.uuid,
        _ => None,
    });
    records.collect()
}

/// What the transcript told.
pub(super) enum Told {
    Read(ReaderEvent),
    Agent(Fact),
}

impl Transcript {
    /// Placed so that nothing that the worker writes is missed and nothing older is told.
    async fn before_start(config: &WorkerConfig, open: &OpenAs) -> Result<Self, WorkerError> {
        let path = transcript_of(config, open.session_id());
        let mut transcript = Self::of(path, config.timings.clone());
        match open {
            OpenAs::New(_) => {}
            OpenAs::Resume(_) => transcript.reader.skip_existing().await?,
            OpenAs::Fork { from, .. } => {
                let of = ids_in(&transcript_of(config, from), config).await;
                transcript.copies = Some(Copies { of, are_over: false });
            }
        }
        Ok(transcript)
    }

    fn of(path: PathBuf, timings: Timings) -> Self {
        Self {
            reader: TranscriptReader::new(&path, &timings),
            agents: AgentFollower::new(&path, &timings),
            path,
            timings,
            copies: None,
        }
    }

    /// The CLI says where it writes: it knows better.
    pub(super) fn follow(&mut self, path: &Path) {
        if self.path != path {
            let copies = self.copies.take();
            *self = Self { copies, ..Self::of(path.to_owned(), self.timings.clone()) };
        }
    }

    /// Whether the record is a copy of what the parent of a fork said.
    pub(super) fn is_copy(&mut self, record: &Record) -> bool {
        let Some(copies) = &mut self.copies else { return false };
        match &record.uuid {
            Some(uuid) if copies.of.contains(uuid) => true,
            Some(_) => {
                copies.are_over = true;
                false
            }
            // What has no id is one until the fork's own part has begun.
            None => !copies.are_over,
        }
    }

    /// May be dropped at any moment.
    pub(super) async fn next(&mut self) -> Told {
        tokio::select! {
            event = self.reader.next() => Told::Read(event),
            fact = self.agents.next() => Told::Agent(fact),
        }
    }

    pub(super) async fn catch_up(&mut self) -> Vec<ReaderEvent> {
        self.reader.catch_up().await
    }

    /// That sub-agent goes on when the turn is over.
    pub(super) fn is_in_background(&self, agent: &str) -> bool {
        self.agents.is_in_background(agent)
    }

    /// The fact with what it says about sub-agents.
    pub(super) fn pass(&mut self, fact: Fact) -> Vec<Fact> {
        self.agents.pass(fact)
    }
}

/// Live text, when there is any.
pub(super) struct LiveText {
    tap: Option<Arc<Tap>>,
    watched: Option<UnboundedReceiver<Tapped>>,
    /// It saw something of this worker.
    pub has_seen: bool,
}

impl LiveText {
    fn of(tap: Option<Arc<Tap>>, session_id: &str) -> Self {
        let watched = tap.as_ref().map(|tap| tap.watch(session_id));
        Self { tap, watched, has_seen: false }
    }

    /// The worker goes on in another session.
    pub(super) fn follow(&mut self, session_id: &str) {
        self.watched = self.tap.as_ref().map(|tap| tap.watch(session_id));
    }

    pub(super) fn is_tapped(&self) -> bool {
        self.tap.is_some()
    }

    /// May be dropped at any moment.
    pub(super) async fn next(&mut self) -> Tapped {
        loop {
            let Some(watched) = &mut self.watched else { return std::future::pending().await };
            match watched.recv().await {
                Some(tapped) => {
                    self.has_seen = true;
                    return tapped;
                }
                None => self.watched = None,
            }
        }
    }
}

/// The dialogs of the start, and what the person has said to them ahead.
pub(super) struct Dialogs {
    answering: Option<Answering>,
    folder: Option<PathBuf>,
    api_key: Option<String>,
}

impl Dialogs {
    fn of(config: &WorkerConfig) -> Self {
        // Written by us with the person's yes, or by the CLI itself.
        let trusted = ClaudeFile::of(config).is_trusted(&config.cwd) || config.trusted;
        Self {
            answering: Some(Answering::default()),
            folder: trusted.then(|| config.cwd.canonicalize().ok()).flatten(),
            api_key: variable(&config.environment, "ANTHROPIC_API_KEY")
                .and_then(OsStr::to_str)
                .map(str::to_owned),
        }
    }

    /// It can take prompts: from here on every dialog is the person's.
    pub(super) fn leave_to_the_person(&mut self) {
        self.answering = None;
    }

    /// What a screen shows, and the key that we may press.
    pub(super) fn read(&mut self, screen: String) -> Reading {
        let Some(dialog) = Dialog::on_screen(&screen) else { return Reading::Plain { screen } };
        let consent = Consent { folder: self.folder.as_deref(), api_key: self.api_key.as_deref() };
        let key = self.answering.as_mut().map(|answering| answering.next_key(&dialog, &consent));
        let key = match key {
            Some(NextKey::Down) => DOWN,
            Some(NextKey::Enter) => ENTER,
            Some(NextKey::Leave) | None => {
                let Dialog { kind, title, text: screen, .. } = dialog;
                return match kind {
                    DialogKind::Login => Reading::Login { title, screen },
                    _ => Reading::Theirs { title, screen },
                };
            }
        };
        Reading::Ours { key: key.to_vec(), title: dialog.title, screen: dialog.text }
    }
}
