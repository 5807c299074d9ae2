//! What hooks and the pool cost: the round trip of a hook against an empty shell command, a warm ask
//! against a cold one, and our own process with twenty workers. Run it by hand, with a real CLI or with
//! the stand-in:
//!
//! ```sh
//! cargo run --release -p claw-tests --example pool_figures -- [path of claude]
//! ```
//!
//! Figures are printed, not asserted: they belong to the machine and to the CLI.

#![expect(clippy::print_stdout, reason = "figures are for whoever runs it")]

use std::error::Error;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use claw_tests::claude::housekeeping;
use claw_tests::harness::{claw_binary, fake_claude_binary};
use claw_tests::mock_api::{MessagesStream, MockApi};
use claw_tests::worker_room::WorkerRoom;
use claw_workers::hooks::server::HookServer;
use claw_workers::private_dir::PrivateDir;
use claw_workers::{Ask, Host, PoolConfig, Timings, Transport, Verdict, WorkerPool};

const ROUNDS: usize = 200;
const ASKS: usize = 10;
const WORKERS: usize = 20;
const WATCHED: Duration = Duration::from_secs(10);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let program = std::env::args_os().nth(1).unwrap_or_else(|| fake_claude_binary().into());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        hooks().await?;
        for transport in [Transport::Pty, Transport::Stream] {
            asks(&program, transport).await?;
        }
        many(&program).await
    })
}

/// Median and worst, in milliseconds.
fn say(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let ms = |at: usize| times[at].as_secs_f64() * 1000.0;
    println!(
        "{what:<44} {:>9.2} ms median {:>9.2} ms worst",
        ms(times.len() / 2),
        ms(times.len() - 1)
    );
}

/// From the start of the hook's program to its end, with the verdict on its output.
async fn hooks() -> Outcome<()> {
    let root = claw_tests::claude::private_root();
    let folder = PrivateDir::create(root.path())?;
    let (_server, mut arrivals) = HookServer::open(&folder, &Timings::default())?;
    tokio::spawn(async move {
        while let Some(Ok(arrival)) = arrivals.recv().await {
            if let Some(reply) = arrival.reply {
                let _ = reply.answer(&Verdict::Allow { updated_input: None });
            }
        }
    });
    let payload = r#"{"session_id":"s","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
    let path = folder.path().to_owned();
    let (shell, hook) = tokio::task::spawn_blocking(move || -> Rounds {
        let time = |command: &mut Command, expects: bool| -> std::io::Result<Duration> {
            let began = Instant::now();
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            if let Some(mut input) = child.stdin.take() {
                // A shell that does nothing reads nothing.
                let _ = input.write_all(payload.as_bytes());
            }
            let output = child.wait_with_output()?;
            assert_eq!(expects, output.stdout.starts_with(b"{"));
            Ok(began.elapsed())
        };
        let (mut shell, mut hook) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            shell.push(time(Command::new("sh").args(["-c", ":"]), false)?);
            let mut command = Command::new(claw_binary());
            hook.push(time(command.arg("hook").arg(&path).arg("PermissionRequest"), true)?);
        }
        Ok((shell, hook))
    })
    .await??;
    say("an empty shell command", shell);
    say("a permission hook, from start to verdict", hook);
    Ok(())
}

/// Times of the empty command and of the hook.
type Rounds = std::io::Result<(Vec<Duration>, Vec<Duration>)>;

fn model() -> MockApi {
    let api = MockApi::start();
    api.answer(|request| {
        Some(housekeeping(request).unwrap_or_else(|| MessagesStream::say("Yes.")))
    });
    api
}

async fn asks(program: &OsString, transport: Transport) -> Outcome<()> {
    let (api, room) = (model(), WorkerRoom::default());
    for warm in [0, 1] {
        let mut config = PoolConfig::new(room.config(program, &api, transport));
        config.warm = warm;
        let pool = WorkerPool::open(config, Arc::new(Host::default()));
        let mut times = Vec::new();
        for _ in 0..ASKS {
            if warm > 0 {
                pool.warmed(1).await;
            }
            let began = Instant::now();
            pool.ask(Ask { prompt: "Is it?".to_owned(), ..Ask::default() }).await?;
            times.push(began.elapsed());
        }
        pool.close().await;
        let how = if warm > 0 { "warm" } else { "cold" };
        say(&format!("{how} ask, {}", transport.as_str()), times);
    }
    Ok(())
}

/// Our own process while workers stand ready and nobody asks.
async fn many(program: &OsString) -> Outcome<()> {
    let (api, room) = (model(), WorkerRoom::default());
    let mut config = PoolConfig::new(room.config(program, &api, Transport::Pty));
    (config.warm, config.max, config.starting) = (WORKERS, WORKERS, 4);
    let before = resident()?;
    let pool = WorkerPool::open(config, Arc::new(Host::default()));
    pool.warmed(WORKERS).await;
    let status = pool.status();
    let (cpu, began) = (used()?, Instant::now());
    tokio::time::sleep(WATCHED).await;
    let share = (used()? - cpu).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    println!(
        "{} warm workers: {} KiB more of our own memory, {share:.2} % of one CPU while idle",
        status.warm,
        resident()?.saturating_sub(before),
    );
    pool.close().await;
    Ok(())
}

/// Resident memory of this process, in KiB.
fn resident() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?;
    Ok(number.parse()?)
}

/// CPU time of this process.
fn used() -> Outcome<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no stat")?;
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(2).filter_map(|it| it.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}
