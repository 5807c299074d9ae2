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

#[test]
fn esc_in_the_dialog_denies_and_the_turn_goes_on() {
    let api = MockApi::start();
    api.push(bash("toolu_1", "touch marker"));
    api.push(MessagesStream::say("Then not."));
    let mut claw = open(&api);
    claw.say("go");
    claw.wait_for_dialog();
    claw.send(claw_tests::story::ESC);
    claw.wait_for("Then not.");
    assert!(tool_result(&api.requests()[1], "toolu_1").expect("a result").1);
    assert!(!claw.workspace().join("marker").exists());
}

#[test]
fn a_write_outside_the_workspace_never_happens() {
    let api = MockApi::start();
    let claw = claw_tests::story::beside(&api);
    let target = claw.home().join("outside.txt");
    let input = json!({"path": target, "content": "new words\n"}).to_string();
    let write = MessagesStream::new().tool_use("toolu_1", "write_file", &input);
    api.push(write.stop("tool_use", 9).reply());
    api.push(MessagesStream::say("Then not."));
    let mut claw = claw.start();
    claw.wait_ready();
    claw.say("go");
    claw.wait_for("Then not.");
    let (said, failed) = tool_result(&api.requests()[1], "toolu_1").expect("a result");
    assert!(failed && said.contains("is outside the workspace"), "{said}");
    assert!(!target.exists());
}

#[test]
fn a_question_about_a_change_shows_its_difference() {
    let api = MockApi::start();
    let claw = claw_tests::story::beside(&api).file("notes.txt", "old words\n");
    let mut claw = claw.arg("--permission-mode").arg("prompt").start();
    claw.wait_ready();
    let input = json!({"path": "notes.txt", "content": "new words\n"}).to_string();
    let write = MessagesStream::new().tool_use("toolu_1", "write_file", &input);
    api.push(write.stop("tool_use", 9).reply());
    api.push(MessagesStream::say("Then not."));
    claw.say("go");
    claw.wait_for_dialog();
    claw.wait_for("-old words");
    claw.wait_for("+new words");
    claw.send(ENTER);
    claw.wait_for("Then not.");
    let notes = std::fs::read_to_string(claw.workspace().join("notes.txt")).unwrap();
    assert_eq!(notes, "old words\n");
}

#[test]
fn the_mode_prompt_asks_for_reading_too_and_read_only_never_asks_for_a_command() {
    let api = MockApi::start();
    let claw = claw_tests::story::beside(&api).file("notes.txt", "remember\n");
    let mut claw = claw.arg("--permission-mode").arg("prompt").start();
    claw.wait_ready();
    let read = MessagesStream::new().tool_use("toolu_1", "read_file", r#"{"path":"notes.txt"}"#);
    api.push(read.stop("tool_use", 9).reply());
    api.push(MessagesStream::say("Read."));
    claw.say("read");
    claw.wait_for("read_file asks for permission");
    claw.allow_once();
    claw.wait_for("Read.");
    claw.wait_ready();
    assert!(tool_result(&api.requests()[1], "toolu_1").expect("a result").0.contains("remember"));
    claw.send(format!("/permissions read-only {ENTER}"));
    claw.wait_until("the mode in the status line", |seen| {
        let text = seen.screen.text();
        text.lines().last().is_some_and(|line| line.contains("read-only"))
    });
    api.push(bash("toolu_2", "touch marker"));
    api.push(MessagesStream::say("Refused."));
    claw.say("run");
    claw.wait_for("Refused.");
    let (result, is_error) = tool_result(&api.requests()[3], "toolu_2").expect("a result");
    assert!(is_error && result.contains("read-only"), "{result}");
}

#[test]
fn a_tool_that_does_not_exist_is_refused_without_a_question() {
    let api = MockApi::start();
    let call = MessagesStream::new().tool_use("toolu_1", "teleport", r#"{"to":"mars"}"#);
    api.push(call.stop("tool_use", 9).reply());
    api.push(MessagesStream::say("On foot, then."));
    let mut claw = open(&api);
    claw.say("go");
    claw.wait_for("On foot, then.");
    claw.wait_for("there is no tool teleport");
    let (result, is_error) = tool_result(&api.requests()[1], "toolu_1").expect("a result");
    assert!(is_error && result.contains("read_file"), "{result}");
}
