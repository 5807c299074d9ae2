mod changes;
mod costs;
mod cuts;

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;

use super::{ReaderEvent, TranscriptReader};
use crate::fact::Fact;
use crate::timings::Timings;

/// Long enough for any machine; only a reader that hangs gets there.
const PATIENCE: Duration = Duration::from_secs(20);

/// A transcript in a folder of its own, and its reader.
struct Scene {
    _place: TempDir,
    path: PathBuf,
    reader: TranscriptReader,
}

impl Scene {
    /// Notification does all the work: the poll is far away.
    fn new() -> Self {
        Self::with_poll(Duration::from_hours(1))
    }

    fn with_poll(slow_poll: Duration) -> Self {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap().join("session.jsonl");
        let reader = reader(&path, slow_poll);
        Self { _place: place, path, reader }
    }

    fn append(&self, bytes: impl AsRef<[u8]>) {
        append(&self.path, bytes.as_ref());
    }

    async fn next(&mut self) -> String {
        word(&timeout(PATIENCE, self.reader.next()).await.expect("the reader tells it"))
    }

    async fn expect(&mut self, words: &[&str]) {
        for expected in words {
            assert_eq!(self.next().await, *expected);
        }
    }

    /// Everything that can be told now.
    async fn now(&mut self) -> Vec<String> {
        self.reader.catch_up().await.iter().map(word).collect()
    }
}

fn reader(path: &Path, slow_poll: Duration) -> TranscriptReader {
    TranscriptReader::new(path, &Timings { slow_poll, ..Timings::default() })
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file: File = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// A user record with an id made of its number.
fn line(number: u32) -> String {
    let id = uuid::Uuid::from_u128(u128::from(number));
    format!("{{\"type\":\"user\",\"uuid\":\"{id}\",\"message\":{{\"content\":\"é{number}\"}}}}\n")
}

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers.map(line).collect()
}

/// `é1` for the record of [`line`], and names for the rest.
fn word(event: &ReaderEvent) -> String {
    match event {
        ReaderEvent::Record(record) => match record.facts.as_slice() {
            [Fact::Prompt { text, .. }] => text.clone(),
            [Fact::Enqueued { content }] => format!("+{content}"),
            [] => "nothing".to_owned(),
            other => panic!("{other:?}"),
        },
        ReaderEvent::Broken { offset, .. } => format!("broken at {offset}"),
        ReaderEvent::Refused { offset, .. } => format!("refused at {offset}"),
        ReaderEvent::Restarted => "restarted".to_owned(),
        ReaderEvent::Unreadable(_) => "unreadable".to_owned(),
    }
}
