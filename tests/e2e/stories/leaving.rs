//! Leaving: nothing is lost by a first key press, and the conversation stays in the terminal.

use claw_tests::harness::{Harness, Running};
use claw_tests::mock_api::{MessagesStream, MockApi};
use claw_tests::story::{CTRL_C, CTRL_D, ENTER, UP, beside, open};

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
    claw.wait_for("— interrupted");
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

/// Has a conversation, leaves, and looks at the last line.
fn last_words(claw: Harness, api: &MockApi) -> String {
    api.push(MessagesStream::say("An answer to keep."));
    let mut claw = claw.start();
    claw.wait_ready();
    claw.say("hello");
    claw.wait_for("An answer to keep.");
    claw.wait_ready();
    claw.send(CTRL_D);
    claw.wait_back();
    let text = claw.text();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let back = lines.iter().position(|line| line.starts_with("[back")).expect("the shell is back");
    // A long line is broken by the terminal.
    let from = lines[..back].iter().rposition(|line| line.is_empty()).map_or(0, |at| at + 1);
    lines[from..back].concat()
}

#[test]
fn the_way_back_names_a_folder_that_is_not_the_one_of_the_shell() {
    let api = MockApi::start();
    let claw = beside(&api).file("it's here/x", "");
    let words = last_words(claw.arg("-C").arg("it'\\''s here"), &api);
    assert!(words.contains(r"claw tui -C '/"), "{words}");
    assert!(words.contains(r"/it'\''s here' --resume session-"), "{words}");
}

#[test]
fn the_way_back_names_the_file_of_a_session_from_elsewhere() {
    let api = MockApi::start();
    let mut first = beside(&api).start();
    first.wait_ready();
    api.push(MessagesStream::say("Begun."));
    first.say("begin");
    first.wait_for("Begun.");
    first.wait_ready();
    first.send(CTRL_D);
    first.wait_back();
    let (file, text) = first.session_files().remove(0);
    drop(file);
    let copy = first.home().join("kept.jsonl");
    std::fs::write(&copy, text).unwrap();
    let copy = copy.display().to_string();
    let words = last_words(first.again().arg("--resume").arg(&copy), &api);
    assert_eq!(words, format!("Resume with: claw tui --resume {copy}"));
}

#[test]
fn a_conversation_that_could_not_be_saved_names_no_way_back() {
    let api = MockApi::start();
    // A file where the folder of the sessions would be.
    let words = last_words(beside(&api).file(".claw/sessions", "in the way"), &api);
    assert!(words.contains("was not saved"), "{words}");
}
