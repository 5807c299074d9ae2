//! The worker's own screen inside ours, with the stand-in for the Claude Code CLI.

use std::os::unix::fs::PermissionsExt as _;

use claw_tests::claude_backend::ClaudeBackend;
use claw_tests::harness::{Running, fake_claude_binary};
use claw_tests::mock_api::{Gate, MessagesStream, MockApi};
use claw_tests::story::{ENTER, ESC};
use serde_json::json;

/// Ctrl+], as terminals without a protocol for it send it.
const BACK: &str = "\x1d";

/// With a worker that has answered once.
fn after_a_turn(claude: &ClaudeBackend) -> Running {
    let mut claw = claude.start();
    claude.talk(&mut claw, "begin", "The first answer.");
    claw
}

#[test]
fn a_prompt_typed_into_its_screen_is_answered_there_and_here() {
    let claude = ClaudeBackend::new();
    let mut claw = after_a_turn(&claude);
    claw.command("/worker", "what you type goes there");
    claw.wait_for("Claude Code v2.1");
    claw.wait_for("● The first answer.");
    claude.api.push(MessagesStream::say("The second answer."));
    claw.send("typed over there");
    claw.wait_for("❯ typed over there");
    claw.send(ENTER);
    claw.wait_for("● The second answer.");
    assert!(!claw.text().contains("goes on by itself"));
    claw.send(BACK);
    claw.wait_gone("what you type goes there");
    // It is part of the conversation, and no answer to anything that was asked here.
    claw.wait_for("Claude Code goes on by itself: typed over there");
    claw.wait_for("The second answer.");
    claw.wait_ready();
    claude.api.push(MessagesStream::say("The third answer."));
    claw.say("go on here");
    claw.wait_for("The third answer.");
}

#[test]
fn what_was_begun_there_is_stopped_from_here() {
    let claude = ClaudeBackend::new();
    let mut claw = after_a_turn(&claude);
    let gate = Gate::new();
    claude.api.push(MessagesStream::new().open_text(&["Half of it"]).wait(&gate).reply());
    claw.command("/worker", "what you type goes there");
    claw.send(format!("typed over there{ENTER}"));
    claw.wait_for("● Half of it");
    claw.send(BACK);
    claw.wait_for("the backend goes on by itself · esc stops");
    claw.wait_for("Half of it");
    claw.send("\x1b[27u");
    claw.wait_ready();
    claude.talk(&mut claw, "and now", "Answered here.");
    assert_eq!(claude.questions().len(), 3);
}

#[test]
fn what_was_begun_there_is_kept_when_claw_ends_in_its_middle() {
    let claude = ClaudeBackend::new();
    let mut claw = after_a_turn(&claude);
    let gate = Gate::new();
    claude.api.push(MessagesStream::new().open_text(&["Half of it"]).wait(&gate).reply());
    claw.command("/worker", "what you type goes there");
    claw.send(format!("typed over there{ENTER}"));
    claw.wait_for("● Half of it");
    claw.send(BACK);
    claw.wait_for("the backend goes on by itself · esc stops");
    claw.wait_for("Half of it");
    let again = claw.again();
    claw.say("/exit");
    claw.wait_back();
    let mut again = again.arg("--resume").start();
    again.wait_for("typed over there");
    again.wait_for("Half of it");
    again.wait_for(" claude · ");
    claude.talk(&mut again, "go on", "As you say.");
}

#[test]
fn what_was_begun_there_stays_in_its_own_session() {
    let claude = ClaudeBackend::new();
    let mut claw = after_a_turn(&claude);
    let gate = Gate::new();
    claude.api.push(MessagesStream::new().open_text(&["Half of it"]).wait(&gate).reply());
    claw.command("/worker", "what you type goes there");
    claw.send(format!("typed over there{ENTER}"));
    claw.wait_for("● Half of it");
    claw.send(BACK);
    claw.wait_for("the backend goes on by itself · esc stops");
    claw.wait_for("Half of it");
    claw.say("/clear");
    claw.wait_gone("Half of it");
    claude.talk(&mut claw, "something else", "Of course.");
    gate.open();
    for (_, text) in claw.session_files() {
        assert!(!(text.contains("something else") && text.contains("Half of it")), "{text}");
    }
    let saved: String = claw.session_files().into_iter().map(|(_, text)| text).collect();
    assert!(saved.contains("Half of it") && saved.contains("typed over there"), "{saved}");
}

#[test]
fn its_control_sequences_never_reach_our_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("claude");
    let words = "\\033]0;hostile\\007\\033]52;c;aGk=\\007\\033[?1003h\\033[?1049l\\033[3J";
    let fake = fake_claude_binary().display();
    let script =
        format!("#!/bin/sh\n[ \"$1\" = --version ] || printf '{words}'\nexec '{fake}' \"$@\"\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let claude = ClaudeBackend::new().setting("program", program.to_str().unwrap());
    let mut claw = after_a_turn(&claude);
    claw.command("/worker", "what you type goes there");
    claw.wait_for("hostile · what you type");
    claw.send("x");
    claw.wait_for("❯ x");
    claw.look(|seen| {
        assert_eq!(seen.screen.modes.title, "claw");
        assert!(seen.screen.modes.has(1049) && !seen.screen.modes.has(1003));
    });
    claw.send(BACK);
    claw.wait_for("The first answer.");
    claw.say("/exit");
    claw.wait_for("claw tui --resume");
    claw.wait_back();
    claw.assert_terminal_restored();
    assert!(
        claw.look(|seen| seen.screen.clipboard.is_empty() && seen.screen.scrollback_clears == 0)
    );
}

#[test]
fn esc_in_its_screen_stops_its_turn_and_a_resize_reaches_it() {
    let claude = ClaudeBackend::new();
    let mut claw = after_a_turn(&claude);
    let gate = Gate::new();
    claude.api.push(MessagesStream::new().open_text(&["Half of it"]).wait(&gate).reply());
    claw.say("talk");
    claw.wait_for("Half of it");
    claw.command("/worker", "what you type goes there");
    claw.wait_for("esc to interrupt");
    claw.resize(200, 50);
    // The rule of its input box is as wide as the terminal.
    let wide = "─".repeat(200);
    claw.wait_for(&wide);
    claw.send(ESC);
    claw.wait_gone("esc to interrupt");
    claw.send(BACK);
    claw.wait_gone("what you type goes there");
    claw.wait_for("Half of it");
    claw.wait_ready();
}

#[test]
fn without_a_worker_it_says_so() {
    let api = MockApi::start();
    let mut claw = claw_tests::story::open(&api);
    claw.command("/worker", "There is no worker's screen to look at.");
    api.push(MessagesStream::say("Still here."));
    claw.say("hello");
    claw.wait_for("Still here.");
}

#[test]
fn a_question_of_a_shape_that_we_do_not_know_is_answered_there() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.start();
    let question = json!({"question": "Which colour?", "header": "Colour",
        "multiSelect": false, "options": [{"label": "Red", "description": "the red one"},
        {"label": "Blue", "description": "the blue one"}]});
    // Answers are given by the words of a question: twice the same cannot be told apart.
    let input = json!({"questions": [question, question]});
    let call = MessagesStream::new().tool_use("toolu_1", "AskUserQuestion", &input.to_string());
    claude.api.push(call.stop("tool_use", 3).reply());
    claude.api.push(MessagesStream::say("Red it is."));
    claw.say("ask me");
    claw.wait_for("that is answered in its own terminal");
    claw.command("/worker", "Which colour?");
    claw.send(ENTER);
    claw.wait_for("● Red it is.");
    claw.send(BACK);
    claw.wait_gone("what you type goes there");
    claw.wait_for("Red it is.");
    claw.wait_ready();
}

#[test]
fn a_permission_can_be_given_there_too_and_our_own_question_goes_away() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.start();
    let input = json!({"command": "touch made.txt", "description": "Does it"}).to_string();
    let call = MessagesStream::new().tool_use("toolu_1", "Bash", &input);
    claude.api.push(call.stop("tool_use", 3).reply());
    claude.api.push(MessagesStream::say("There it is."));
    claw.say("make it");
    // The question stands in both places; it is answered over there.
    claw.wait_for_dialog();
    claw.send(format!("/worker {ENTER}"));
    claw.wait_for("A question waits for your answer");
    claw.wait_for("Do you want to proceed?");
    claw.send(ENTER);
    claw.wait_for("● There it is.");
    claw.wait_gone("A question waits for your answer");
    claw.send(BACK);
    claw.wait_for("There it is.");
    claw.wait_ready();
    assert!(claw.workspace().join("made.txt").exists());
    assert!(!claw.text().contains("Enter confirms"), "{}", claw.text());
}
