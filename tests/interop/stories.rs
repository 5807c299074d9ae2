//! The table of stories with the real CLI: what its stand-in is held to holds for it as well.

use std::path::PathBuf;

use claw_tests::mock_api::MockApi;
use claw_tests::worker_stage::{Cast, play};
use claw_tests::worker_stories::STORIES;
use claw_workers::process::Marker;
use claw_workers::stream::{self, Launch};
use claw_workers::{OpenAs, Worker, WorkerEvent};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::cli::{Room, on_both_versions};
use crate::stream_worker::config;

on_both_versions!(every_story_holds_on_stream_json);

struct RealStream<'a>(&'a Room);

impl Cast for RealStream<'_> {
    async fn open(&self, api: &MockApi, open: OpenAs) -> (Worker, UnboundedReceiver<WorkerEvent>) {
        let config = config(self.0, api.base_url());
        let launch = Launch::prepare(&config, &open, Marker::new()).await;
        stream::start(config, launch.expect("the CLI is there"), open)
    }

    fn workspace(&self) -> PathBuf {
        self.0.workspace()
    }
}

async fn every_story_holds_on_stream_json(room: &Room) {
    for story in STORIES {
        play(story, &RealStream(room)).await;
    }
}
