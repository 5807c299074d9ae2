//! Leaving: nothing is lost by a first key press, and the conversation stays in the terminal.

use claw_tests::harness::Running;
use claw_tests::mock_api::{MessagesStream, MockApi};
use claw_tests::story::{CTRL_C, CTRL_D, ENTER, UP, open};

fn check(leave: impl Fn(&mut Running)) {
    let api = MockApi::start();
    api.push(MessagesStream::say("An answer to keep."));
    let mut claw = open(&api);
    claw.say("a prompt to keep");
    claw.wait_for("An answer to keep.");
    claw.wait_ready();
    leave(&mut claw);
    assert_eq!(claw.wait_back(), 0);
    claw.assert_terminal_restored();
    claw.wait_for("> a prompt to keep");
    claw.wait_for("An answer to keep.");
    claw.wait_for("Resume with: claw tui --resume session-");
}

#[test]
fn ctrl_c_twice_leaves_the_conversation_and_the_way_back() {
    check(|claw| {
        claw.send(CTRL_C);
        claw.wait_for("again");
        claw.send(CTRL_C);
    });
}

#[test]
fn ctrl_d_leaves_the_conversation_and_the_way_back() {
    check(|claw| claw.send(CTRL_D));
}

#[test]
fn exit_leaves_the_conversation_and_the_way_back() {
    check(|claw| claw.say("/exit "));
}

#[test]
fn ctrl_c_puts_a_draft_aside_before_anything_else() {
    let api = MockApi::start();
    let mut claw = open(&api);
    claw.send("a long draft");
    claw.wait_for("❯ a long draft");
    claw.send(CTRL_C);
    claw.wait_gone("❯ a long draft");
    claw.send(UP);
    claw.wait_for("❯ a long draft");
}

#[test]
fn ctrl_c_stops_a_turn_and_only_a_second_one_leaves() {
    let api = MockApi::start();
    api.push(MessagesStream::new().open_text(&["Half"]).reply().stall());
    let mut claw = open(&api);
    claw.say("one");
    claw.wait_for("Half");
    claw.send(CTRL_C);
    api.wait_for_hang_ups(1);
    claw.wait_for("Ctrl+C again leaves");
    claw.wait_for("Half");
    claw.send(CTRL_C);
    assert_eq!(claw.wait_back(), 0);
    claw.assert_terminal_restored();
    claw.wait_for("Half");
}

#[test]
fn leaving_without_a_word_leaves_nothing() {
    let api = MockApi::start();
    let mut claw = open(&api);
    claw.send(format!("/exit {ENTER}"));
    assert_eq!(claw.wait_back(), 0);
    claw.assert_terminal_restored();
    assert!(!claw.text().contains("Resume with"), "{}", claw.text());
    assert!(claw.session_files().is_empty(), "an empty session is not kept");
}
