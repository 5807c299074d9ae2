//! What a worker adds to a turn: from a prompt that is handed over to the first word that is seen,
//! against a model that answers at once. Run it by hand, with a real CLI or with the stand-in:
//!
//! ```sh
//! cargo run --release -p claw-tests --example turn_overhead -- [--turns N] [path of claude]
//! ```
//!
//! Times are printed, not asserted: they belong to the machine and to the CLI.

#![expect(clippy::print_stdout, reason = "figures are for whoever runs it")]

use std::error::Error;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use claw_tests::claude::housekeeping;
use claw_tests::harness::fake_claude_binary;
use claw_tests::mock_api::{MessagesStream, MockApi};
use claw_tests::worker_room::WorkerRoom;
use claw_workers::{Fact, OpenAs, Transport, Worker, WorkerConfig, WorkerEvent};
use tokio::sync::mpsc::UnboundedReceiver;

/// Turns before the first that counts: files are cold, and the CLI asks for a title.
const WARM_UP: usize = 2;

/// Only to catch what hangs.
const LONG: Duration = Duration::from_mins(1);

/// One turn, in milliseconds from the prompt.
struct Turn {
    /// The question is at the model: what the CLI and our way to it take.
    asked: f64,
    /// The first word or block was told.
    seen: f64,
    /// The end was told.
    ended: f64,
}

/// One way to have a worker.
struct Way {
    name: &'static str,
    transport: Transport,
    tap: bool,
}

const WAYS: [Way; 3] = [
    Way { name: "pty, with tap", transport: Transport::Pty, tap: true },
    Way { name: "pty, without tap", transport: Transport::Pty, tap: false },
    Way { name: "stream", transport: Transport::Stream, tap: false },
];

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure_all())
}

async fn measure_all() -> Result<(), Box<dyn Error>> {
    let mut turns = 20;
    let mut program = None;
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--turns" {
            let count = arguments.next().and_then(|count| count.to_str()?.parse().ok());
            turns = count.ok_or("--turns needs a number")?;
        } else {
            program = Some(argument);
        }
    }
    let program = program.unwrap_or_else(|| fake_claude_binary().into());
    println!("{} turns each with {}; milliseconds from the prompt", turns, program.display());
    println!(
        "{:<18} {:>22} {:>22} {:>22}",
        "", "question at the model", "first word", "end of turn"
    );
    for way in WAYS {
        let measured = measure(&program, &way, turns).await?;
        let picks: [fn(&Turn) -> f64; 3] = [|turn| turn.asked, |turn| turn.seen, |turn| turn.ended];
        let columns = picks.map(|pick| median_and_worst(measured.iter().map(pick).collect()));
        println!("{:<18} {:>22} {:>22} {:>22}", way.name, columns[0], columns[1], columns[2]);
    }
    Ok(())
}

fn median_and_worst(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let worst = times.last().copied().unwrap_or_default();
    format!("{:.0} (worst {worst:.0})", times.get(times.len() / 2).copied().unwrap_or_default())
}

async fn measure(program: &OsString, way: &Way, turns: usize) -> Result<Vec<Turn>, Box<dyn Error>> {
    let api = MockApi::start();
    let asked: Arc<Mutex<Option<Instant>>> = Arc::default();
    let note = Arc::clone(&asked);
    api.answer(move |request| {
        Some(housekeeping(request).unwrap_or_else(|| {
            *note.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            MessagesStream::new().text(&["One. ", "Two."]).stop("end_turn", 5).reply()
        }))
    });
    let room = WorkerRoom::default();
    let open = OpenAs::New(uuid::Uuid::new_v4().to_string());
    let config = WorkerConfig { tap: way.tap, ..room.config(program, &api, way.transport) };
    let (worker, mut events) = Worker::start(config, open, Arc::default());
    let mut measured = Vec::new();
    for round in 0..WARM_UP + turns {
        let begun = Instant::now();
        let mut turn = Turn { asked: 0.0, seen: 0.0, ended: 0.0 };
        let since = || begun.elapsed().as_secs_f64() * 1e3;
        let follow = async {
            while turn.ended == 0.0 {
                match next(&mut events).await? {
                    WorkerEvent::Fact {
                        fact: Fact::TextDelta { .. } | Fact::Block { .. }, ..
                    } if turn.seen == 0.0 => {
                        turn.seen = since();
                    }
                    WorkerEvent::TurnEnded { .. } => turn.ended = since(),
                    _ => {}
                }
            }
            Ok::<(), Box<dyn Error>>(())
        };
        let (taken, followed) = tokio::join!(worker.submit(format!("prompt {round}")), follow);
        taken?;
        followed?;
        let arrived = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let arrived = arrived.ok_or("the model was not asked")?;
        turn.asked = arrived.duration_since(begun).as_secs_f64() * 1e3;
        if round >= WARM_UP {
            measured.push(turn);
        }
    }
    worker.stop().await;
    Ok(measured)
}

async fn next(events: &mut UnboundedReceiver<WorkerEvent>) -> Result<WorkerEvent, Box<dyn Error>> {
    match tokio::time::timeout(LONG, events.recv()).await?.ok_or("the worker says nothing more")? {
        WorkerEvent::Ended(error) => Err(error.into()),
        event => Ok(event),
    }
}
