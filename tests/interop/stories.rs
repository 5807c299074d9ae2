//! The table of stories with the real CLI: what its stand-in is held to holds for it as well.

use std::path::PathBuf;
use std::sync::Arc;

use claw_tests::mock_api::MockApi;
use claw_tests::worker_stage::{Cast, play};
use claw_tests::worker_stories::STORIES;
use claw_workers::{Host, OpenAs, Transport, Worker, WorkerConfig, WorkerEvent};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::cli::{Room, on_both_versions};
use crate::stream_worker::config;

on_both_versions!(
    every_story_holds_on_stream_json,
    every_story_holds_on_a_pty_with_live_text,
    every_story_holds_on_a_pty_without_the_tap,
);

struct Real<'a> {
    room: &'a Room,
    transport: Transport,
    tap: bool,
    host: Arc<Host>,
}

impl Cast for Real<'_> {
    async fn open(&self, api: &MockApi, open: OpenAs) -> (Worker, UnboundedReceiver<WorkerEvent>) {
        let config = WorkerConfig {
            transport: self.transport,
            tap: self.tap,
            ..config(self.room, api.base_url())
        };
        Worker::start(config, open, Arc::clone(&self.host))
    }

    fn workspace(&self) -> PathBuf {
        self.room.workspace()
    }
}

async fn play_all(room: &Room, transport: Transport, tap: bool) {
    room.trust_workspace();
    for story in STORIES {
        play(story, &Real { room, transport, tap, host: Arc::default() }).await;
    }
}

async fn every_story_holds_on_stream_json(room: &Room) {
    play_all(room, Transport::Stream, false).await;
}

async fn every_story_holds_on_a_pty_with_live_text(room: &Room) {
    play_all(room, Transport::Pty, true).await;
}

async fn every_story_holds_on_a_pty_without_the_tap(room: &Room) {
    play_all(room, Transport::Pty, false).await;
}
