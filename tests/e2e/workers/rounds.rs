//! Whole workers, started and ended a hundred times: nothing piles up, neither in the system nor in
//! our own process.

use std::process::Command;
use std::time::{Duration, Instant};

use claw_tests::mock_api::{MessagesStream, MockApi, PATIENCE};
use claw_workers::{OpenAs, Transport, Worker, WorkerEvent};

use super::Fake;

const ROUNDS: u32 = 100;

/// Says which of the tests below this process is.
const ROLE: &str = "CLAW_TEST_ROLE";

/// In a process of its own, since the other tests have workers as well.
fn in_a_process_of_its_own(transport: &str) {
    let test = "workers::rounds::role_of_a_hundred_workers";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ROLE, transport)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("a hundred workers left nothing"), "{said}");
}

#[test]
fn a_hundred_workers_on_ptys_leave_nothing() {
    in_a_process_of_its_own("pty");
}

#[test]
fn a_hundred_workers_on_stream_json_leave_nothing() {
    in_a_process_of_its_own("stream");
}

#[tokio::test]
async fn role_of_a_hundred_workers() {
    let transport = match std::env::var(ROLE).as_deref() {
        Ok("pty") => Transport::Pty,
        Ok("stream") => Transport::Stream,
        _ => return,
    };
    let api = MockApi::start();
    api.answer(claw_tests::claude::housekeeping);
    let fake = Fake::new("332", transport);
    let mut before = None;
    for round in 0..ROUNDS {
        let config = fake.config(&api);
        let open = OpenAs::New(uuid::Uuid::new_v4().to_string());
        let (worker, mut events) = Worker::start(config, open, fake.host.clone());
        let mut until = async |wanted: fn(&WorkerEvent) -> bool| {
            let found = async { while !wanted(&events.recv().await.expect("it says more")) {} };
            tokio::time::timeout(PATIENCE, found).await.expect("it comes");
        };
        until(|event| matches!(event, WorkerEvent::Ready { .. })).await;
        // Some of them work first.
        if round % 10 == 0 {
            api.push(MessagesStream::say("Done."));
            worker.submit("go".to_owned()).await.unwrap();
            until(|event| matches!(event, WorkerEvent::TurnEnded { .. })).await;
        }
        worker.stop().await;
        // The first rounds open what is opened once.
        if round == 1 {
            before = Some((settled("/proc/self/fd").await, settled("/proc/self/task").await));
        }
    }
    let after = (settled("/proc/self/fd").await, settled("/proc/self/task").await);
    let (descriptors, threads) = before.unwrap();
    assert!(after.0 <= descriptors, "{descriptors} descriptors became {}", after.0);
    // The async runtime keeps a few idle threads for some seconds; a leak would be one for each round.
    assert!(after.1 < threads + 20, "{threads} threads became {}", after.1);
    let private = std::fs::read_dir(fake.room.private_root()).unwrap().count();
    assert_eq!(private, 0, "private folders are left");
    // The guard carries no marker; everything of a worker does.
    let left = fake.room.processes();
    assert!(left.is_empty(), "{left:?}");
    println!("a hundred workers left nothing");
}

/// How many entries a folder has when that number has stayed the same for a while: a thread that has
/// said its last word needs a moment to be gone.
async fn settled(folder: &str) -> usize {
    let deadline = Instant::now() + PATIENCE;
    let (mut last, mut same) = (0, 0);
    while same < 20 && Instant::now() < deadline {
        let now = std::fs::read_dir(folder).unwrap().count();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    last
}
