//! What may run and what may not, and what is left when the program ends.

use claw_tests::mock_api::{MessagesStream, MockApi, Reply};
use claw_tests::story::{CTRL_C, DOWN, ENTER, open, prompts, tool_result};
use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::json;

fn bash(id: &str, command: &str) -> Reply {
    let input = json!({"command": command}).to_string();
    MessagesStream::new().tool_use(id, "bash", &input).stop("tool_use", 9).reply()
}

#[test]
fn a_call_that_was_cut_in_the_middle_never_runs() {
    let api = MockApi::start();
    let cut = MessagesStream::new().text(&["Writing."]).open_tool_use("toolu_1", "write_file");
    let cut = cut.input_delta(1, r#"{"path":"marker","content":"x"}"#);
    api.push(cut.reply().close());
    api.push(MessagesStream::say("Whole."));
    let mut claw = open(&api);
    claw.say("write");
    claw.wait_for("cut off");
    claw.wait_ready();
    assert!(!claw.workspace().join("marker").exists());
    claw.command("/retry", "Whole.");
    assert_eq!(prompts(&api.requests()[1]), ["write"]);
    assert!(!claw.workspace().join("marker").exists());
}

#[test]
fn a_command_allowed_for_the_session_is_not_asked_again() {
    let api = MockApi::start();
    api.push(bash("toolu_1", "touch marker"));
    api.push(MessagesStream::say("Once."));
    api.push(bash("toolu_2", "touch marker"));
    api.push(MessagesStream::say("Twice."));
    let mut claw = open(&api);
    claw.say("go");
    claw.wait_for_dialog();
    claw.send([DOWN, DOWN, DOWN].concat());
    claw.wait_for("› Allow for this session");
    claw.send(ENTER);
    claw.wait_for("Once.");
    claw.wait_ready();
    std::fs::remove_file(claw.workspace().join("marker")).unwrap();
    claw.say("again");
    claw.wait_for("Twice.");
    assert!(claw.workspace().join("marker").exists());
}

#[test]
fn what_is_allowed_must_have_been_seen_to_its_end() {
    let api = MockApi::start();
    let long = format!("{}touch marker", "echo a step\n".repeat(60));
    api.push(bash("toolu_1", &long));
    api.push(MessagesStream::say("Then not."));
    let mut claw = open(&api);
    claw.say("go");
    claw.wait_for_dialog();
    claw.wait_for("more lines");
    claw.send([DOWN, DOWN].concat());
    claw.wait_for("read to the end first");
    claw.send(ENTER);
    // Nothing was answered: the way to the end is shown, and then it can be allowed.
    claw.wait_for("PageDown or End shows the rest");
    assert_eq!(api.requests().len(), 1);
    claw.send("\x1b[F");
    claw.wait_for("touch marker");
    claw.wait_gone("read to the end first");
    claw.send(ENTER);
    claw.wait_for("Then not.");
    assert!(!tool_result(&api.requests()[1], "toolu_1").expect("a result").1);
    assert!(claw.workspace().join("marker").exists());
}

#[test]
fn two_ctrl_c_in_a_dialog_deny_and_leave() {
    let api = MockApi::start();
    api.push(bash("toolu_1", "touch marker"));
    let mut claw = open(&api);
    claw.say("go");
    claw.wait_for_dialog();
    claw.send(CTRL_C);
    claw.send(CTRL_C);
    assert_eq!(claw.wait_back(), 0);
    assert!(!claw.workspace().join("marker").exists());
    // What is on disk is a valid conversation that goes on.
    let mut claw = claw.again().arg("--resume").start();
    claw.wait_ready();
    api.push(MessagesStream::say("On we go."));
    claw.say("on");
    claw.wait_for("On we go.");
    assert!(tool_result(&api.requests()[1], "toolu_1").is_some(), "each call has a result");
}

/// Ends the program while a command runs and checks that the command ends with it.
fn check_no_orphan(end: impl Fn(&mut claw_tests::harness::Running)) {
    let api = MockApi::start();
    api.push(bash("toolu_1", "echo $$ > pid; echo running; exec sleep 1000"));
    let mut claw = open(&api);
    claw.say("go");
    claw.allow_once();
    claw.wait_until("live output", |seen| {
        seen.screen.text().lines().any(|line| line.trim() == "running")
    });
    let pid = std::fs::read_to_string(claw.workspace().join("pid")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    end(&mut claw);
    claw.wait_back();
    let until = std::time::Instant::now() + claw_tests::mock_api::PATIENCE;
    while test_kill_process(pid).is_ok() {
        assert!(std::time::Instant::now() < until, "the command outlived the program");
        std::thread::yield_now();
    }
}

#[test]
fn a_running_command_ends_with_the_program_that_was_left() {
    check_no_orphan(|claw| claw.send([CTRL_C, CTRL_C].concat()));
}

#[test]
fn a_running_command_ends_with_the_program_that_was_told_to_end() {
    check_no_orphan(|claw| claw.signal(Signal::TERM));
}

#[test]
fn kinds_of_events_that_are_not_known_change_nothing() {
    let api = MockApi::start();
    let odd = MessagesStream::new()
        .early_event("novelty", &json!({"type": "novelty"}))
        .block_start(0, &json!({"type": "hologram", "data": "x"}))
        .block_delta(0, &json!({"type": "hologram_delta", "x": 1}))
        .block_stop(0)
        .ping()
        .text(&["All the same."]);
    api.push(odd.stop("end_turn", 3).reply());
    let mut claw = open(&api);
    claw.say("hi");
    claw.wait_for("All the same.");
    claw.wait_ready();
}
