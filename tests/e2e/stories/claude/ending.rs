//! Nothing of a worker outlives it, however it or claw ends.

use std::time::{Duration, Instant};

use claw_tests::claude_backend::{ClaudeBackend, at_once};
use claw_tests::harness::Running;
use claw_tests::mock_api::{Gate, MessagesStream};
use claw_tests::story::CTRL_C;
use rustix::process::{Pid, Signal};
use serde_json::json;

/// What is allowed beyond our own end; more is asked of a machine that does nothing else.
const LONG: Duration = Duration::from_secs(30);

/// What the worker is doing when the end comes.
#[derive(Debug, Clone, Copy)]
enum State {
    Idle,
    Streaming,
    /// A command of a tool runs in a session of its own, and another beside it.
    InATool,
}

/// With the worker in that state; the gate holds the model's answer back.
fn reach(claude: &ClaudeBackend, state: State) -> (Running, Gate) {
    let mut claw = claude.start();
    let gate = Gate::new();
    match state {
        State::Idle => claude.talk(&mut claw, "one", "First."),
        State::Streaming => {
            claude.api.push(MessagesStream::new().open_text(&["Half"]).wait(&gate).reply());
            claw.say("talk");
            claw.wait_for("Half");
        }
        State::InATool => {
            let script = "(setsid sleep 349 &); exec sleep 349";
            let input = json!({"command": script}).to_string();
            let call = MessagesStream::new().tool_use("toolu_1", "Bash", &input);
            claude.api.push(call.stop("tool_use", 3).reply());
            claw.say("sleep");
            claw.allow_once();
            claude.wait_for_commands("sleep 349", 2);
        }
    }
    assert!(!claude.worker_processes().is_empty());
    (claw, gate)
}

#[track_caller]
fn nothing_is_left(claude: &ClaudeBackend, what: &str) {
    let deadline = Instant::now() + LONG;
    loop {
        let (processes, folders) = (claude.worker_processes(), claude.private_folders());
        if processes.is_empty() && folders.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {processes:?} and {folders:?} are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn check(
    end: impl Fn(&mut Running) + Sync,
    backend: impl Fn() -> ClaudeBackend + Sync,
    name: &str,
) {
    // Beside each other: all of them wait most of the time.
    at_once([State::Idle, State::Streaming, State::InATool], |state| {
        let claude = backend();
        let (mut claw, _gate) = reach(&claude, state);
        end(&mut claw);
        claw.wait_back();
        nothing_is_left(&claude, &format!("{name}, {state:?}"));
    });
}

#[test]
fn leaving_ends_it() {
    check(|claw| claw.send([CTRL_C, CTRL_C, CTRL_C].concat()), ClaudeBackend::new, "Ctrl+C");
}

#[test]
fn sigterm_ends_it() {
    check(|claw| claw.signal(Signal::TERM), ClaudeBackend::new, "SIGTERM");
}

#[test]
fn sighup_ends_it() {
    check(|claw| claw.signal(Signal::HUP), ClaudeBackend::new, "SIGHUP");
}

#[test]
fn sigkill_ends_it() {
    check(|claw| claw.signal(Signal::KILL), ClaudeBackend::new, "SIGKILL");
}

#[test]
fn a_panic_ends_it() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.harness().env("CLAW_TEST_PANIC", "now panic").start();
    claw.wait_ready();
    claude.talk(&mut claw, "one", "First.");
    assert!(!claude.worker_processes().is_empty());
    claw.say("now panic");
    assert_ne!(claw.wait_back(), 0);
    nothing_is_left(&claude, "a panic");
}

#[test]
fn one_that_ignores_signals_is_ended_with_us() {
    let stubborn = || ClaudeBackend::new().quirks("ignore-sigterm,orphan-tool");
    check(|claw| claw.signal(Signal::TERM), stubborn, "SIGTERM");
}

#[test]
fn one_that_ignores_signals_is_ended_after_our_sudden_end() {
    let stubborn = || ClaudeBackend::new().quirks("ignore-sigterm,orphan-tool");
    check(|claw| claw.signal(Signal::KILL), stubborn, "SIGKILL");
}

#[test]
fn one_on_stream_json_is_ended_after_our_sudden_end() {
    let stream = || ClaudeBackend::new().setting("transport", "stream");
    check(|claw| claw.signal(Signal::KILL), stream, "SIGKILL");
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let claude = ClaudeBackend::new();
    let (mut claw, _gate) = reach(&claude, State::InATool);
    assert!(claw.hang_up(LONG), "it goes on without a terminal");
    nothing_is_left(&claude, "a terminal that is gone");
}

#[test]
fn a_worker_that_is_killed_leaves_no_command_and_its_session_goes_on() {
    let claude = ClaudeBackend::new();
    let (mut claw, _gate) = reach(&claude, State::InATool);
    claude.kill_cli();
    claw.wait_for("What it had begun may have been done");
    claw.wait_ready();
    nothing_is_left(&claude, "a killed worker");
    let before = ClaudeBackend::transcripts(claw.home());
    claude.talk(&mut claw, "and now", "Back again.");
    let after = ClaudeBackend::transcripts(claw.home());
    let ids = |all: &[(String, String)]| all.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&before), ids(&after), "it goes on in the same Claude session");
    let starts = claude.starts();
    let resume = format!("--resume {}", claude.first_session());
    assert!(starts.len() == 2 && starts[1].contains(&resume), "{starts:?}");
    // The prompt whose command may have run was not sent again.
    let asked = claude.questions();
    assert_eq!(asked.len(), 2);
}

#[test]
fn ten_runs_leave_nothing() {
    let claude = ClaudeBackend::new();
    let harness = claude.harness();
    let mut claw = harness.start();
    for round in 0..10 {
        claw.wait_ready();
        claude.talk(&mut claw, &format!("prompt {round}"), &format!("Answer {round}."));
        let again = claw.again();
        claw.say("/exit");
        assert_eq!(claw.wait_back(), 0);
        nothing_is_left(&claude, "a run");
        claw = again.start();
    }
    let pid: Pid = claw.claw();
    claw.wait_ready();
    assert!(rustix::process::test_kill_process(pid).is_ok());
}
