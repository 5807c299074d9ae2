use super::{Scene, append, line, lines, reader, word};
use std::time::Duration;

#[tokio::test]
async fn any_split_into_writes_yields_the_same_records_once() {
    let text = lines(1..4);
    let bytes = text.as_bytes();
    // Every position, also inside of a character of two bytes.
    for cut in 0..=bytes.len() {
        let mut scene = Scene::new();
        scene.append(&bytes[..cut]);
        let mut told = scene.now().await;
        scene.append(&bytes[cut..]);
        told.extend(scene.now().await);
        assert_eq!(told, ["é1", "é2", "é3"], "cut at {cut}");
    }
}

#[tokio::test]
async fn a_file_that_comes_byte_by_byte_is_the_same() {
    let mut scene = Scene::new();
    let mut told = Vec::new();
    for byte in lines(1..3).as_bytes() {
        scene.append([*byte]);
        told.extend(scene.now().await);
    }
    assert_eq!(told, ["é1", "é2"]);
}

#[tokio::test]
async fn a_broken_line_is_told_with_its_place_and_the_next_one_is_read() {
    let mut scene = Scene::new();
    scene.append(line(1));
    let place = line(1).len();
    scene.append(b"{\"type\": \"user\", oops\n\n");
    scene.append(b"\xff\xfe\n");
    scene.append(line(2));
    let second = place + 23;
    assert_eq!(
        scene.now().await,
        [
            "é1".to_owned(),
            format!("broken at {place}"),
            format!("broken at {second}"),
            "é2".to_owned()
        ]
    );
}

#[tokio::test]
async fn the_same_record_twice_is_told_once() {
    let mut scene = Scene::new();
    scene.append(line(1) + &line(2) + &line(1) + &line(3));
    assert_eq!(scene.now().await, ["é1", "é2", "é3"]);
    // Records without an id are not taken for each other.
    let queue = "{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":\"x\"}\n";
    scene.append(queue.repeat(2));
    assert_eq!(scene.now().await, ["+x", "+x"]);
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_nothing() {
    let mut scene = Scene::new();
    let writer = {
        let path = scene.path.clone();
        tokio::task::spawn_blocking(move || {
            for number in 0..300 {
                append(&path, line(number).as_bytes());
            }
        })
    };
    let mut told = Vec::new();
    while told.len() < 300 {
        // Given up after one poll, over and over.
        tokio::select! {
            biased;
            event = scene.reader.next() => told.push(word(&event)),
            () = tokio::task::yield_now() => {}
        }
    }
    writer.await.unwrap();
    let expected: Vec<String> = (0..300).map(|number| format!("é{number}")).collect();
    assert_eq!(told, expected);
}

#[tokio::test]
async fn catching_up_sees_what_was_written_before_it() {
    let mut scene = Scene::new();
    for number in 0..50 {
        // A look that is under way began before the line was written.
        tokio::select! {
            biased;
            _ = scene.reader.next() => panic!("nothing was written"),
            () = tokio::task::yield_now() => {}
        }
        scene.append(line(number));
        assert_eq!(scene.now().await, [format!("é{number}")]);
    }
}

#[tokio::test]
async fn each_reader_has_its_own_place() {
    let mut scene = Scene::new();
    let mut other = reader(&scene.path, Duration::from_hours(1));
    scene.append(lines(1..3));
    assert_eq!(scene.now().await, ["é1", "é2"]);
    let told: Vec<String> = other.catch_up().await.iter().map(word).collect();
    assert_eq!(told, ["é1", "é2"]);
}
