use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::time::{Duration, Instant};

use super::{ReaderEvent, Scene, append, line, word};
use crate::error::WorkerError;
use crate::transcript::LINE_LIMIT;

#[tokio::test]
async fn a_line_of_50_mb_is_refused_by_name_and_the_next_one_is_read() {
    let mut scene = Scene::new();
    let part = vec![b'x'; 1024 * 1024];
    for _ in 0..50 {
        scene.append(&part);
    }
    scene.append("\n".to_owned() + &line(1));
    let events = scene.reader.catch_up().await;
    let [ReaderEvent::Refused { offset: 0, error }, ReaderEvent::Record(_)] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    let limit = LINE_LIMIT as u64;
    assert!(
        matches!(error, WorkerError::TooLarge { bytes, limit: l, .. } if *bytes > limit && *l == limit)
    );
    assert!(error.to_string().contains("over the limit of 16777216 bytes"));
}

#[tokio::test]
async fn a_line_of_almost_16_mb_is_taken() {
    let mut scene = Scene::new();
    let words = "w".repeat(LINE_LIMIT - 100);
    scene.append(format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{words}\"}}}}\n"));
    let told = scene.now().await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].len(), words.len());
}

#[tokio::test]
async fn opening_200_mb_at_the_end_costs_a_bounded_read() {
    let mut scene = Scene::new();
    let mut file =
        OpenOptions::new().create(true).write(true).truncate(true).open(&scene.path).unwrap();
    file.seek(SeekFrom::Start(200 * 1024 * 1024)).unwrap();
    file.write_all(format!("\n{}", line(1)).as_bytes()).unwrap();
    scene.reader.skip_existing().await.unwrap();
    append(&scene.path, line(2).as_bytes());
    assert_eq!(scene.now().await, ["é2"]);
    let (_, bytes) = scene.reader.cost();
    assert!(bytes < 1024 * 1024, "{bytes} bytes were read");
}

#[tokio::test]
async fn what_happens_beside_the_file_wakes_nobody() {
    let mut scene = Scene::new();
    scene.append(line(1));
    scene.expect(&["é1"]).await;
    let neighbour = scene.path.with_file_name("other.jsonl");
    let path = scene.path.clone();
    let before = scene.reader.cost().0;
    let writer = tokio::task::spawn_blocking(move || {
        for number in 0..200 {
            append(&neighbour, line(number).as_bytes());
        }
        // The neighbour's events are over when this one comes.
        append(&path, line(2).as_bytes());
    });
    scene.expect(&["é2"]).await;
    writer.await.unwrap();
    let looks = scene.reader.cost().0 - before;
    assert!(looks <= 6, "{looks} looks for one line");
}

#[tokio::test]
async fn reading_the_file_ourselves_wakes_nobody() {
    let mut scene = Scene::new();
    scene.append(line(1));
    scene.expect(&["é1"]).await;
    let before = scene.reader.cost().0;
    for _ in 0..100 {
        assert!(!std::fs::read(&scene.path).unwrap().is_empty());
    }
    let path = scene.path.clone();
    let writer = tokio::task::spawn_blocking(move || append(&path, line(2).as_bytes()));
    scene.expect(&["é2"]).await;
    writer.await.unwrap();
    let looks = scene.reader.cost().0 - before;
    assert!(looks <= 6, "{looks} looks for one line");
}

#[tokio::test]
async fn a_line_is_told_within_50_ms() {
    let mut scene = Scene::new();
    scene.append(line(0));
    scene.expect(&["é0"]).await;
    let mut best = Duration::MAX;
    for number in 1..20 {
        let path = scene.path.clone();
        let writer = tokio::task::spawn_blocking(move || {
            append(&path, line(number).as_bytes());
            Instant::now()
        });
        assert_eq!(scene.next().await, format!("é{number}"));
        best = best.min(writer.await.unwrap().elapsed());
    }
    // The best of many: a busy machine may hold up any single one.
    assert!(best < Duration::from_millis(50), "{best:?}");
}

#[tokio::test]
async fn the_slow_poll_finds_what_notification_missed() {
    let mut scene = Scene::with_poll(Duration::from_millis(30));
    scene.append(line(1));
    scene.expect(&["é1"]).await;
    assert!(scene.now().await.is_empty());
    scene.reader.watch.blind();
    scene.append(line(2));
    scene.expect(&["é2"]).await;
}

#[tokio::test]
async fn many_records_are_told_in_order_from_bounded_reads() {
    let mut scene = Scene::new();
    scene.append(super::lines(0..5000));
    let mut number = 0;
    while number < 5000 {
        assert_eq!(word(&scene.reader.next().await), format!("é{number}"));
        // At most one chunk's records wait.
        assert!(scene.reader.ready.len() < 1500);
        number += 1;
    }
}
