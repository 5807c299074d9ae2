use std::fs;
use std::time::Duration;

use super::{Scene, append, line, lines, reader, word};

#[tokio::test]
async fn a_file_that_is_made_late_is_read() {
    let mut scene = Scene::new();
    assert!(scene.now().await.is_empty());
    let path = scene.path.clone();
    let made = tokio::task::spawn_blocking(move || append(&path, line(1).as_bytes()));
    scene.expect(&["é1"]).await;
    made.await.unwrap();
    assert!(scene.now().await.is_empty());
}

#[tokio::test]
async fn folders_that_are_made_late_are_followed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("projects/-home-user/deep");
    let path = folder.join("session.jsonl");
    let mut late = reader(&path, Duration::from_hours(1));
    assert!(late.catch_up().await.is_empty());
    let file = path.clone();
    let made = tokio::task::spawn_blocking(move || {
        fs::create_dir_all(&folder).unwrap();
        append(&file, line(1).as_bytes());
    });
    let event = tokio::time::timeout(super::PATIENCE, late.next()).await.unwrap();
    assert_eq!(word(&event), "é1");
    made.await.unwrap();
    // From now on the folder itself is watched.
    assert!(late.catch_up().await.is_empty());
    append(&path, line(2).as_bytes());
    let event = tokio::time::timeout(super::PATIENCE, late.next()).await.unwrap();
    assert_eq!(word(&event), "é2");
}

#[tokio::test]
async fn a_folder_that_was_replaced_is_followed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("folder");
    let path = folder.join("session.jsonl");
    fs::create_dir(&folder).unwrap();
    append(&path, line(1).as_bytes());
    let mut late = reader(&path, Duration::from_hours(1));
    assert_eq!(late.catch_up().await.len(), 1);
    fs::rename(&folder, place.path().join("old")).unwrap();
    fs::create_dir(&folder).unwrap();
    append(&path, lines(1..3).as_bytes());
    // It goes on where the old one was left.
    let told: Vec<String> = late.catch_up().await.iter().map(word).collect();
    assert_eq!(told, ["é2"]);
    assert!(late.catch_up().await.is_empty());
    append(&path, line(3).as_bytes());
    let event = tokio::time::timeout(super::PATIENCE, late.next()).await.unwrap();
    assert_eq!(word(&event), "é3");
}

#[tokio::test]
async fn a_file_that_was_cut_is_read_anew_and_nothing_is_told_twice() {
    let mut scene = Scene::new();
    scene.append(lines(1..4));
    scene.expect(&["é1", "é2", "é3"]).await;
    fs::write(&scene.path, line(1) + &line(4)).unwrap();
    scene.expect(&["restarted", "é4"]).await;
    scene.append(line(5));
    scene.expect(&["é5"]).await;
}

#[tokio::test]
async fn a_file_that_was_cut_and_has_grown_beyond_the_old_place_is_noticed() {
    let mut scene = Scene::new();
    scene.append(lines(1..3));
    assert_eq!(scene.now().await, ["é1", "é2"]);
    fs::write(&scene.path, lines(10..20)).unwrap();
    let mut expected = vec!["restarted".to_owned()];
    expected.extend((10..20).map(|number| format!("é{number}")));
    assert_eq!(scene.now().await, expected);
}

#[tokio::test]
async fn a_file_that_was_replaced_by_another_one() {
    let mut scene = Scene::new();
    scene.append(lines(1..4));
    scene.expect(&["é1", "é2", "é3"]).await;
    let new = scene.path.with_extension("new");
    fs::write(&new, line(2) + &line(7)).unwrap();
    fs::rename(&new, &scene.path).unwrap();
    scene.expect(&["restarted", "é7"]).await;
}

#[tokio::test]
async fn what_was_written_until_the_replacement_is_told_first() {
    let mut scene = Scene::new();
    scene.append(line(1));
    assert_eq!(scene.now().await, ["é1"]);
    scene.append(line(2));
    let new = scene.path.with_extension("new");
    fs::write(&new, line(7)).unwrap();
    fs::rename(&new, &scene.path).unwrap();
    assert_eq!(scene.now().await, ["é2", "restarted", "é7"]);
}

#[tokio::test]
async fn a_copy_that_goes_on_is_no_restart() {
    let mut scene = Scene::new();
    scene.append(lines(1..4) + "{\"type\":");
    assert_eq!(scene.now().await, ["é1", "é2", "é3"]);
    let new = scene.path.with_extension("new");
    fs::write(&new, lines(1..4) + "{\"type\":\"mode\"}\n" + &line(4)).unwrap();
    fs::rename(&new, &scene.path).unwrap();
    assert_eq!(scene.now().await, ["nothing", "é4"]);
}

#[tokio::test]
async fn renamed_away_and_back_loses_nothing_and_repeats_nothing() {
    let mut scene = Scene::new();
    scene.append(lines(1..3));
    scene.expect(&["é1", "é2"]).await;
    let away = scene.path.with_extension("away");
    fs::rename(&scene.path, &away).unwrap();
    // Whoever has it open goes on writing.
    append(&away, line(3).as_bytes());
    assert_eq!(scene.now().await, ["é3"]);
    append(&away, line(4).as_bytes());
    fs::rename(&away, &scene.path).unwrap();
    scene.append(line(5));
    scene.expect(&["é4", "é5"]).await;
    assert!(scene.now().await.is_empty());
}

#[tokio::test]
async fn removed_and_made_again() {
    let mut scene = Scene::new();
    scene.append(lines(1..3));
    scene.expect(&["é1", "é2"]).await;
    fs::remove_file(&scene.path).unwrap();
    assert!(scene.now().await.is_empty());
    scene.append(line(2) + &line(3));
    scene.expect(&["restarted", "é3"]).await;
}

#[tokio::test]
async fn records_without_an_id_are_not_told_twice_after_a_restart() {
    let queue = "{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":\"x\",\"timestamp\":\"1\"}\n";
    let mut scene = Scene::new();
    scene.append(lines(1..4) + queue);
    assert_eq!(scene.now().await, ["é1", "é2", "é3", "+x"]);
    fs::write(&scene.path, format!("{queue}{}", line(4))).unwrap();
    assert_eq!(scene.now().await, ["restarted", "é4"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_told_once() {
    let mut scene = Scene::new();
    fs::create_dir(&scene.path).unwrap();
    assert_eq!(scene.now().await, ["unreadable"]);
    assert!(scene.now().await.is_empty());
    fs::remove_dir(&scene.path).unwrap();
    scene.append(line(1));
    assert_eq!(scene.now().await, ["é1"]);
}

#[tokio::test]
async fn what_exists_is_passed_over_when_a_session_is_resumed() {
    let mut scene = Scene::new();
    scene.append(lines(1..4));
    scene.append(&line(4).as_bytes()[..10]);
    scene.reader.skip_existing().await.unwrap();
    assert!(scene.now().await.is_empty());
    // The unfinished line is not lost.
    scene.append(&line(4).as_bytes()[10..]);
    // And the last records are known.
    scene.append(line(3) + &line(5));
    assert_eq!(scene.now().await, ["é4", "é5"]);
    fs::write(&scene.path, line(2) + &line(6)).unwrap();
    assert_eq!(scene.now().await, ["restarted", "é6"]);
}

#[tokio::test]
async fn nothing_is_passed_over_where_nothing_exists() {
    let mut scene = Scene::new();
    scene.reader.skip_existing().await.unwrap();
    scene.append(line(1));
    assert_eq!(scene.now().await, ["é1"]);
    let mut half = Scene::new();
    half.append(&line(1).as_bytes()[..10]);
    half.reader.skip_existing().await.unwrap();
    half.append(&line(1).as_bytes()[10..]);
    assert_eq!(half.now().await, ["é1"]);
}
