//! The table of stories, played by workers on the stand-in for the CLI.

mod idle;
mod pool;
mod rounds;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use claw_tests::claude::{self, KEY};
use claw_tests::harness::{claw_binary, fake_claude_binary};
use claw_tests::mock_api::MockApi;
use claw_tests::worker_stage::{Cast, play};
use claw_tests::worker_stories::STORIES;
use claw_workers::{
    Host, OpenAs, Timings, Transport, WindowSize, Worker, WorkerConfig, WorkerEvent, guard,
};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

/// The stand-in, in its own home.
struct Fake {
    version: &'static str,
    transport: Transport,
    tap: bool,
    folder: TempDir,
    private: TempDir,
    host: Arc<Host>,
}

impl Fake {
    fn new(version: &'static str, transport: Transport) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let known = claude::settled(folder.path());
        std::fs::write(folder.path().join(".claude.json"), known.to_string()).unwrap();
        let private = claude::private_root();
        Self { version, transport, tap: true, folder, private, host: Arc::default() }
    }

    fn config(&self, api: &MockApi) -> WorkerConfig {
        let set = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let mut environment = vec![
            set("ANTHROPIC_API_KEY", KEY),
            set("ANTHROPIC_BASE_URL", api.base_url()),
            set("CLAUDE_CODE_MAX_RETRIES", "1"),
            set("FAKE_CLAUDE_VERSION", self.version),
            (OsString::from("HOME"), self.folder.path().into()),
        ];
        environment.extend(std::env::var_os("PATH").map(|path| (OsString::from("PATH"), path)));
        let folder = self.folder.path().to_owned();
        WorkerConfig {
            program: fake_claude_binary().as_os_str().to_owned(),
            prefix: Vec::new(),
            arguments: Vec::new(),
            cwd: folder.clone(),
            trusted: false,
            config_dir: None,
            home: folder.clone(),
            environment,
            pass: vec!["CLAUDE_CODE_MAX_RETRIES".to_owned()],
            model: None,
            system_prompt: None,
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            permission_mode: "default".to_owned(),
            transport: self.transport,
            tap: self.tap,
            auto_compaction: true,
            idle: None,
            size: WindowSize::default(),
            hook: vec![claw_binary().into(), "hook".into()],
            guard: vec![claw_binary().into(), guard::SUBCOMMAND.into()],
            private_root: self.private.path().to_owned(),
            timings: Timings::brisk(),
        }
    }
}

impl Fake {
    /// Folders of workers that live.
    fn private_folders(&self) -> usize {
        let folders = std::fs::read_dir(self.private.path()).unwrap().flatten();
        folders.filter(|folder| folder.path().join("settings.json").exists()).count()
    }
}

impl Cast for Fake {
    async fn open(&self, api: &MockApi, open: OpenAs) -> (Worker, UnboundedReceiver<WorkerEvent>) {
        Worker::start(self.config(api), open, Arc::clone(&self.host))
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

async fn play_all(transport: Transport, tap: bool) {
    for version in ["197", "332"] {
        for story in STORIES {
            play(story, &Fake { tap, ..Fake::new(version, transport) }).await;
        }
    }
}

#[tokio::test]
async fn every_story_holds_on_stream_json_in_both_versions() {
    play_all(Transport::Stream, false).await;
}

#[tokio::test]
async fn every_story_holds_on_a_pty_with_live_text_in_both_versions() {
    play_all(Transport::Pty, true).await;
}

#[tokio::test]
async fn every_story_holds_on_a_pty_without_the_tap_in_both_versions() {
    play_all(Transport::Pty, false).await;
}
