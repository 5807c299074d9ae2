//! The table of stories, played by workers on the stand-in for the CLI.

mod idle;
mod pool;
mod rounds;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_tests::harness::fake_claude_binary;
use claw_tests::mock_api::MockApi;
use claw_tests::worker_room::WorkerRoom;
use claw_tests::worker_stage::{Cast, play};
use claw_tests::worker_stories::STORIES;
use claw_workers::{Host, OpenAs, Timings, Transport, Worker, WorkerConfig, WorkerEvent};
use tokio::sync::mpsc::UnboundedReceiver;

/// The stand-in, in its own home.
struct Fake {
    version: &'static str,
    transport: Transport,
    tap: bool,
    room: WorkerRoom,
    host: Arc<Host>,
}

impl Fake {
    fn new(version: &'static str, transport: Transport) -> Self {
        Self { version, transport, tap: true, room: WorkerRoom::default(), host: Arc::default() }
    }

    fn config(&self, api: &MockApi) -> WorkerConfig {
        let program = fake_claude_binary().as_os_str().to_owned();
        let mut config = self.room.config(&program, api, self.transport);
        config.environment.push(("FAKE_CLAUDE_VERSION".into(), self.version.into()));
        WorkerConfig { tap: self.tap, timings: Timings::brisk(), ..config }
    }

    /// Where it lives and works.
    fn folder(&self) -> &Path {
        self.room.home()
    }

    /// Folders of workers that live.
    fn private_folders(&self) -> usize {
        self.room.private_folders()
    }
}

impl Cast for Fake {
    async fn open(&self, api: &MockApi, open: OpenAs) -> (Worker, UnboundedReceiver<WorkerEvent>) {
        Worker::start(self.config(api), open, Arc::clone(&self.host))
    }

    fn workspace(&self) -> PathBuf {
        self.folder().to_owned()
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
