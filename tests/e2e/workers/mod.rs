//! The table of stories, played by workers on the stand-in for the CLI.

use std::ffi::OsString;
use std::path::PathBuf;

use claw_tests::claude::{self, KEY};
use claw_tests::harness::fake_claude_binary;
use claw_tests::mock_api::MockApi;
use claw_tests::worker_stage::{Cast, play};
use claw_tests::worker_stories::STORIES;
use claw_workers::process::Marker;
use claw_workers::stream::{self, Launch};
use claw_workers::{OpenAs, Timings, Transport, WindowSize, Worker, WorkerConfig, WorkerEvent};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

/// The stand-in without a terminal.
struct FakeStream {
    version: &'static str,
    folder: TempDir,
}

impl FakeStream {
    fn new(version: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let known = claude::settled(folder.path());
        std::fs::write(folder.path().join(".claude.json"), known.to_string()).unwrap();
        Self { version, folder }
    }

    fn config(&self, api: &MockApi, transport: Transport) -> WorkerConfig {
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
            config_dir: None,
            home: folder.clone(),
            environment,
            pass: vec!["CLAUDE_CODE_MAX_RETRIES".to_owned()],
            model: None,
            system_prompt: None,
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            permission_mode: "default".to_owned(),
            transport,
            tap: false,
            auto_compaction: true,
            size: WindowSize::default(),
            hook: Vec::new(),
            guard: Vec::new(),
            private_root: folder,
            timings: Timings::brisk(),
        }
    }
}

impl Cast for FakeStream {
    async fn open(&self, api: &MockApi, open: OpenAs) -> (Worker, UnboundedReceiver<WorkerEvent>) {
        let config = self.config(api, Transport::Stream);
        let launch = Launch::prepare(&config, &open, Marker::new()).await;
        stream::start(config, launch.expect("the stand-in is there"), open)
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

#[tokio::test]
async fn every_story_holds_on_stream_json_in_both_versions() {
    for version in ["197", "332"] {
        for story in STORIES {
            play(story, &FakeStream::new(version)).await;
        }
    }
}
