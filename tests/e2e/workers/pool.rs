//! The pool of workers, on the stand-in for the CLI.

use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use claw_tests::claude::housekeeping;
use claw_tests::harness::fake_claude_binary;
use claw_tests::mock_api::{Gate, MessagesStream, MockApi, PATIENCE};
use claw_workers::{Ask, PoolConfig, PoolError, Reply, Stage, Timings, Transport, WorkerPool};

use super::Fake;

struct Rig {
    fake: Fake,
    pool: WorkerPool,
}

impl Rig {
    fn new(api: &MockApi, transport: Transport, change: impl FnOnce(&mut PoolConfig)) -> Self {
        let fake = Fake::new("332", transport);
        let mut config = PoolConfig::new(fake.config(api));
        change(&mut config);
        let pool = WorkerPool::open(config, fake.host.clone());
        Self { fake, pool }
    }

    async fn ask(&self, prompt: &str) -> Result<Reply, PoolError> {
        bounded(self.pool.ask(ask(prompt))).await
    }

    /// Nothing of any worker is left.
    async fn close(self) {
        assert!(bounded(self.pool.close()).await, "{:?}", self.pool.status());
        assert_eq!(self.fake.private_folders(), 0);
        assert_eq!(self.fake.room.processes(), [0; 0]);
    }
}

async fn bounded<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it ends")
}

fn ask(prompt: &str) -> Ask {
    Ask { prompt: prompt.to_owned(), ..Ask::default() }
}

fn in_session(name: &str, prompt: &str) -> Ask {
    Ask { session: Some(name.to_owned()), ..ask(prompt) }
}

/// A model that answers every prompt with its words.
fn echo(api: &MockApi) {
    api.answer(|request| {
        let answer = || MessagesStream::say(&format!("re: {}", request.last_user_text()));
        Some(housekeeping(request).unwrap_or_else(answer))
    });
}

/// One that answers when the gate lets it.
fn gated(api: &MockApi, gate: &Gate) {
    let gate = gate.clone();
    api.answer(move |request| {
        let answer = MessagesStream::new().wait(&gate).text(&["late"]).stop("end_turn", 1);
        Some(housekeeping(request).unwrap_or_else(|| answer.reply()))
    });
}

/// A program in front of the stand-in; `$COUNT` is how often it was started before.
fn wrapper(rig: &Fake, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = rig.folder().join("wrapper");
    let folder = rig.folder().display();
    let fake = fake_claude_binary().display();
    let text = format!(
        "#!/bin/bash\n[ \"$1\" = --version ] && exec '{fake}' --version\n\
         COUNT=$(wc -l < '{folder}/count' 2>/dev/null || echo 0)\necho >> '{folder}/count'\n\
         {script}\nexec '{fake}' \"$@\"\n"
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn starts(fake: &Fake) -> usize {
    std::fs::read_to_string(fake.folder().join("count")).map_or(0, |text| text.lines().count())
}

#[tokio::test]
async fn each_ask_has_a_context_of_its_own_and_a_session_has_one_for_all() {
    for transport in [Transport::Pty, Transport::Stream] {
        let api = MockApi::start();
        echo(&api);
        let rig = Rig::new(&api, transport, |_| {});
        let (first, second) = (rig.ask("one").await.unwrap(), rig.ask("two").await.unwrap());
        assert_eq!((first.text.as_str(), second.text.as_str()), ("re: one", "re: two"));
        assert_ne!(first.session_id, second.session_id);
        assert!(first.usage.is_some());
        let mut ids = Vec::new();
        for prompt in ["a", "b", "c"] {
            ids.push(bounded(rig.pool.ask(in_session("s", prompt))).await.unwrap().session_id);
        }
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let last = api.requests().into_iter().rfind(|it| it.last_user_text() == "c").unwrap();
        let heard = last.body["messages"].to_string();
        assert!(heard.contains("re: a") && heard.contains("re: b"), "{heard}");
        assert!(!heard.contains("re: one"));
        rig.close().await;
    }
}

#[tokio::test]
async fn a_warm_worker_is_used_and_the_next_is_on_its_way_before_the_answer() {
    let api = MockApi::start();
    let gate = Gate::new();
    gated(&api, &gate);
    let rig = Rig::new(&api, Transport::Pty, |config| config.warm = 1);
    bounded(rig.pool.warmed(1)).await;
    let asked = tokio::spawn({
        let pool = rig.pool.clone();
        async move { pool.ask(ask("go")).await }
    });
    let reached = gate.clone();
    tokio::task::spawn_blocking(move || reached.wait_reached(1)).await.unwrap();
    // The answer is still held back.
    bounded(rig.pool.warmed(1)).await;
    let status = rig.pool.status();
    assert_eq!((status.warm, status.busy), (1, 1), "{status:?}");
    gate.open();
    assert_eq!(bounded(asked).await.unwrap().unwrap().text, "late");
    rig.close().await;
}

#[tokio::test]
async fn a_warm_worker_that_died_is_not_used() {
    let api = MockApi::start();
    echo(&api);
    let fake = Fake::new("332", Transport::Stream);
    let mut config = PoolConfig::new(fake.config(&api));
    // The first one ends by itself a moment after it is ready.
    let script = "[ \"$COUNT\" = 0 ] && { (sleep 0.3; kill -9 $$) & }";
    config.worker.program = wrapper(&fake, script).into();
    let pool = WorkerPool::open(config, fake.host.clone());
    bounded(pool.warmed(1)).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(bounded(pool.ask(ask("one"))).await.unwrap().text, "re: one");
    assert!(bounded(pool.close()).await);
}

#[tokio::test]
async fn the_cap_counts_every_process_and_starts_are_limited() {
    let api = MockApi::start();
    echo(&api);
    let rig = Rig::new(&api, Transport::Pty, |config| {
        (config.max, config.warm, config.starting) = (3, 2, 1);
    });
    let asks = (0..12).map(|number| {
        let pool = rig.pool.clone();
        tokio::spawn(async move { pool.ask(ask(&format!("ask {number}"))).await })
    });
    let asks: Vec<_> = asks.collect();
    let mut most = (0, 0);
    while asks.iter().any(|ask| !ask.is_finished()) {
        let status = rig.pool.status();
        most = (most.0.max(rig.fake.private_folders()), most.1.max(status.starting));
        assert!(rig.fake.private_folders() <= 3, "{status:?}");
        assert!(status.warm + status.busy + status.retiring <= 3, "{status:?}");
        assert!(status.starting <= 1, "{status:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (number, asked) in asks.into_iter().enumerate() {
        assert_eq!(asked.await.unwrap().unwrap().text, format!("re: ask {number}"));
    }
    assert!(most.0 >= 2 && most.1 == 1, "{most:?}");
    rig.close().await;
}

#[tokio::test]
async fn failures_to_warm_up_lead_to_a_pause_and_not_to_a_storm() {
    let api = MockApi::start();
    echo(&api);
    let fake = Fake::new("332", Transport::Pty);
    let mut config = PoolConfig::new(fake.config(&api));
    (config.warm, config.cool_down) = (2, Duration::from_secs(3600));
    // Only what is started ahead fails.
    let folder = fake.folder().to_owned();
    let script = format!("[ -e '{}/fail' ] && {{ echo broken; exit 3; }}", folder.display());
    config.worker.program = wrapper(&fake, &script).into();
    std::fs::write(folder.join("fail"), "").unwrap();
    let pool = WorkerPool::open(config, fake.host.clone());
    bounded(async {
        while pool.status().failures == 0 || pool.status().starting > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let tries = starts(&fake);
    assert!(tries <= 2, "{tries}");
    let status = pool.status();
    assert!(status.cool_down_ms > 3_500_000, "{status:?}");
    assert_eq!(status.last_failure.unwrap().0, "start_failed");
    // Asks are answered all the same, by a start of their own.
    let failed = bounded(pool.ask(ask("one"))).await.unwrap_err();
    assert_eq!(failed.name(), "start_failed");
    std::fs::remove_file(folder.join("fail")).unwrap();
    assert_eq!(bounded(pool.ask(ask("two"))).await.unwrap().text, "re: two");
    assert_eq!(starts(&fake), tries + 2);
    assert!(bounded(pool.close()).await);
}

#[tokio::test]
async fn a_crash_before_the_prompt_was_taken_is_tried_again_once_and_a_later_one_is_not() {
    for (quirk, answered, prompts) in [("die-at-paste", true, 1), ("die-at-prompt", false, 0)] {
        let api = MockApi::start();
        echo(&api);
        let fake = Fake::new("332", Transport::Pty);
        let mut config = PoolConfig::new(fake.config(&api));
        config.warm = 0;
        let script = format!("[ \"$COUNT\" = 0 ] && export FAKE_CLAUDE_QUIRKS={quirk}");
        config.worker.program = wrapper(&fake, &script).into();
        let pool = WorkerPool::open(config, fake.host.clone());
        let outcome = bounded(pool.ask(ask("once"))).await;
        assert_eq!(outcome.is_ok(), answered, "{quirk}: {outcome:?}");
        let asked = api.requests().iter().filter(|it| it.last_user_text() == "once").count();
        assert_eq!(asked, prompts, "{quirk}");
        assert_eq!(starts(&fake), if answered { 2 } else { 1 }, "{quirk}");
        assert!(bounded(pool.close()).await);
    }
}

#[tokio::test]
async fn the_time_of_an_ask_counts_from_the_call_and_the_error_says_where_it_was() {
    let api = MockApi::start();
    let gate = Gate::new();
    gated(&api, &gate);
    let rig = Rig::new(&api, Transport::Pty, |config| (config.max, config.warm) = (1, 0));
    let first = tokio::spawn({
        let pool = rig.pool.clone();
        async move { pool.ask(Ask { timeout_ms: Some(1_500), ..ask("first") }).await }
    });
    let reached = gate.clone();
    tokio::task::spawn_blocking(move || reached.wait_reached(1)).await.unwrap();
    let second = rig.pool.ask(Ask { timeout_ms: Some(300), ..ask("second") });
    let stage = |error: PoolError| match error {
        PoolError::Timeout { stage, .. } => stage,
        other => panic!("{other}"),
    };
    assert_eq!(stage(bounded(second).await.unwrap_err()), Stage::Queued);
    assert_eq!(stage(bounded(first).await.unwrap().unwrap_err()), Stage::Running);
    let over = Instant::now();
    while rig.fake.private_folders() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(over.elapsed() < Duration::from_secs(2), "its worker lives on");
    }
    gate.open();
    assert_eq!(rig.ask("third").await.unwrap().text, "late", "the place is free again");
    rig.close().await;
}

#[tokio::test]
async fn what_is_cancelled_anywhere_leaves_nothing() {
    let api = MockApi::start();
    echo(&api);
    let rig = Rig::new(&api, Transport::Stream, |config| (config.max, config.warm) = (3, 1));
    for round in 0..200_u64 {
        let ask = if round % 3 == 0 { in_session("s", "x") } else { ask("x") };
        // At a moment that differs each time, from at once to far behind the answer.
        let at = Duration::from_micros((round * 7_919) % 120_000);
        let _ = tokio::time::timeout(at, rig.pool.ask(ask)).await;
    }
    assert_eq!(rig.ask("still").await.unwrap().text, "re: still");
    rig.close().await;
}

#[tokio::test]
async fn the_same_session_twice_at_once_is_one_process_and_another_folder_is_refused() {
    let api = MockApi::start();
    echo(&api);
    let rig = Rig::new(&api, Transport::Pty, |config| config.warm = 0);
    let (one, two) =
        tokio::join!(rig.pool.ask(in_session("s", "one")), rig.pool.ask(in_session("s", "two")),);
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.session_id, two.session_id);
    assert_eq!(rig.fake.private_folders(), 1);
    let elsewhere = Ask { cwd: Some("/".into()), ..in_session("s", "three") };
    let refused = bounded(rig.pool.ask(elsewhere)).await.unwrap_err();
    assert_eq!(refused.name(), "other_folder");
    rig.close().await;
}

#[tokio::test]
async fn an_idle_session_gives_its_worker_back_and_goes_on_when_it_is_asked_again() {
    let api = MockApi::start();
    echo(&api);
    let rig = Rig::new(&api, Transport::Pty, |config| {
        (config.warm, config.idle) = (0, Duration::from_millis(150));
    });
    let first = bounded(rig.pool.ask(in_session("s", "one"))).await.unwrap();
    bounded(async {
        while rig.fake.private_folders() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let second = bounded(rig.pool.ask(in_session("s", "two"))).await.unwrap();
    assert_eq!(first.session_id, second.session_id);
    let last = api.requests().into_iter().rfind(|it| it.last_user_text() == "two").unwrap();
    assert!(last.body["messages"].to_string().contains("re: one"));
    rig.close().await;
}

#[tokio::test]
async fn closing_refuses_what_is_new_lets_what_runs_end_and_is_bounded() {
    let api = MockApi::start();
    let gate = Gate::new();
    gated(&api, &gate);
    let rig = Rig::new(&api, Transport::Pty, |config| config.grace = Duration::from_secs(20));
    let running = tokio::spawn({
        let pool = rig.pool.clone();
        async move { pool.ask(ask("go")).await }
    });
    let reached = gate.clone();
    tokio::task::spawn_blocking(move || reached.wait_reached(1)).await.unwrap();
    let closing = tokio::spawn({
        let pool = rig.pool.clone();
        async move { pool.close().await }
    });
    let late = || Ask { timeout_ms: Some(1), ..ask("late") };
    while rig.pool.ask(late()).await.unwrap_err().name() != "closed" {}
    gate.open();
    assert_eq!(bounded(running).await.unwrap().unwrap().text, "late");
    assert!(bounded(closing).await.unwrap());
    assert_eq!(rig.fake.private_folders(), 0);

    // Without an answer it is given up when the grace is over.
    let stuck = Gate::new();
    gated(&api, &stuck);
    let rig = Rig::new(&api, Transport::Pty, |config| config.grace = Duration::from_millis(200));
    let running = tokio::spawn({
        let pool = rig.pool.clone();
        async move { pool.ask(ask("go")).await }
    });
    let reached = stuck.clone();
    tokio::task::spawn_blocking(move || reached.wait_reached(1)).await.unwrap();
    assert!(bounded(rig.pool.close()).await);
    assert_eq!(bounded(running).await.unwrap().unwrap_err().name(), "closed");
    assert_eq!(rig.fake.private_folders(), 0);
    stuck.open();
}

#[tokio::test]
async fn a_tool_that_needs_a_permission_is_denied_since_nobody_is_here() {
    for transport in [Transport::Pty, Transport::Stream] {
        let api = MockApi::start();
        api.answer(housekeeping);
        let input = r#"{"command":"touch made.txt"}"#;
        let call = MessagesStream::new().text(&["I try."]).tool_use("toolu_1", "Bash", input);
        api.push(call.stop("tool_use", 9).reply());
        api.push(MessagesStream::say("Not allowed."));
        let rig = Rig::new(&api, transport, |config| config.warm = 0);
        assert_eq!(rig.ask("make it").await.unwrap().text, "Not allowed.");
        assert!(!rig.fake.folder().join("made.txt").exists());
        rig.close().await;
    }
}

#[tokio::test]
async fn more_asks_than_may_wait_are_refused_at_once() {
    let api = MockApi::start();
    let gate = Gate::new();
    gated(&api, &gate);
    let rig = Rig::new(&api, Transport::Stream, |config| {
        (config.max, config.warm, config.queue) = (1, 0, 1);
    });
    let ask_aside = |prompt: &'static str| {
        let pool = rig.pool.clone();
        tokio::spawn(async move { pool.ask(ask(prompt)).await })
    };
    let running = ask_aside("runs");
    let reached = gate.clone();
    tokio::task::spawn_blocking(move || reached.wait_reached(1)).await.unwrap();
    let waiting = ask_aside("waits");
    bounded(async {
        while rig.pool.status().queued == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    assert_eq!(rig.ask("too many").await.unwrap_err().name(), "busy");
    gate.open();
    for asked in [running, waiting] {
        assert_eq!(bounded(asked).await.unwrap().unwrap().text, "late");
    }
    rig.close().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_name() {
    let api = MockApi::start();
    echo(&api);
    let rig = Rig::new(&api, Transport::Pty, |config| config.warm = 0);
    for (wrong, name) in [
        (ask("  "), "bad_request"),
        (Ask { cwd: Some("relative".into()), ..ask("x") }, "bad_request"),
        (Ask { cwd: Some("/nowhere at all".into()), ..ask("x") }, "not_trusted"),
        (ask("/clear"), "refused_prompt"),
    ] {
        assert_eq!(bounded(rig.pool.ask(wrong)).await.unwrap_err().name(), name);
    }
    rig.close().await;
}

/// A worker that ignores SIGTERM, with the command of a tool that does so too.
fn stubborn(config: &mut PoolConfig) {
    config.warm = 0;
    config.worker.timings = Timings::default();
    let quirks = "ignore-sigterm,orphan-tool";
    config.worker.environment.push(("FAKE_CLAUDE_QUIRKS".into(), quirks.into()));
}

#[tokio::test]
async fn what_ignores_everything_is_given_less_time_than_what_is_stopped() {
    for transport in [Transport::Pty, Transport::Stream] {
        let api = MockApi::start();
        api.answer(housekeeping);
        let call = r#"{"command":"sleep 997"}"#;
        let call = MessagesStream::new().tool_use("toolu_1", "Bash", call).stop("tool_use", 9);
        api.push(call.reply());
        let rig = Rig::new(&api, transport, stubborn);
        let asked = tokio::spawn({
            let pool = rig.pool.clone();
            async move { pool.ask(ask("sleep")).await }
        });
        bounded(async {
            // The CLI, its command, and what that is run by.
            while rig.fake.room.processes().len() < 2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        asked.abort();
        let given_up = Instant::now();
        bounded(async {
            while !rig.fake.room.processes().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        assert!(given_up.elapsed() < Duration::from_millis(2_900), "{:?}", given_up.elapsed());
        rig.close().await;
    }
}

#[tokio::test]
async fn closing_is_bounded_with_an_open_session_and_a_start_in_progress() {
    let api = MockApi::start();
    echo(&api);
    let fake = Fake::new("332", Transport::Pty);
    let mut config = PoolConfig::new(fake.config(&api));
    stubborn(&mut config);
    config.grace = Duration::from_millis(100);
    // The first one is a session's; the next never come up.
    let script = "[ \"$COUNT\" = 0 ] || export FAKE_CLAUDE_QUIRKS=never-ready,ignore-sigterm";
    config.worker.program = wrapper(&fake, script).into();
    let pool = WorkerPool::open(config, fake.host.clone());
    assert_eq!(bounded(pool.ask(in_session("s", "one"))).await.unwrap().text, "re: one");
    let starting = tokio::spawn({
        let pool = pool.clone();
        async move { pool.ask(ask("two")).await }
    });
    bounded(async {
        while pool.status().starting == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    let began = Instant::now();
    assert!(bounded(pool.close()).await, "{:?}", pool.status());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(bounded(starting).await.unwrap().unwrap_err().name(), "closed");
    assert_eq!(fake.room.processes(), [0; 0]);
}
