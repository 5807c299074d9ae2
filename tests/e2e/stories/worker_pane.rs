//! The worker's own screen inside ours, with the stand-in for the Claude Code CLI.

use claw_tests::claude::{self, KEY};
use claw_tests::harness::{Harness, Running, fake_claude_binary};
use claw_tests::mock_api::{MessagesStream, MockApi};
use claw_tests::story::{ENTER, ESC};
use serde_json::json;

/// Ctrl+], as terminals without a protocol for it send it.
const BACK: &str = "\x1d";

/// `claw tui` with the stand-in as its worker, which first says this to its terminal (for `printf`).
fn beside(api: &MockApi, first_words: &str) -> Harness {
    api.answer(claude::housekeeping);
    let claw = Harness::new()
        .arg("--backend")
        .arg("claude")
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_BASE_URL", api.base_url());
    let fake = fake_claude_binary().display();
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] || printf '{first_words}'\nexec '{fake}' \"$@\"\n"
    );
    let program = claw.script("claude-stand-in", &script);
    let settings = json!({"workers": {"program": program}}).to_string();
    let known = claude::settled(claw.workspace()).to_string();
    std::fs::create_dir_all(claw.home().join(".claw")).unwrap();
    std::fs::write(claw.home().join(".claw/settings.json"), settings).unwrap();
    std::fs::write(claw.home().join(".claude.json"), known).unwrap();
    claw
}

/// With a worker that has answered once.
fn after_a_turn(claw: Harness, api: &MockApi) -> Running {
    api.push(MessagesStream::say("The first answer."));
    let mut claw = claw.start();
    claw.wait_ready();
    claw.say("begin");
    claw.wait_for("The first answer.");
    claw.wait_ready();
    claw
}

#[test]
fn a_prompt_typed_into_its_screen_is_answered_there_and_here() {
    let api = MockApi::start();
    let mut claw = after_a_turn(beside(&api, ""), &api);
    claw.command("/worker", "what you type goes there");
    claw.wait_for("Claude Code v2.1");
    claw.wait_for("● The first answer.");
    api.push(MessagesStream::say("The second answer."));
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
    api.push(MessagesStream::say("The third answer."));
    claw.say("go on here");
    claw.wait_for("The third answer.");
}

#[test]
fn its_control_sequences_never_reach_our_terminal() {
    let api = MockApi::start();
    let hostile = "\\033]0;hostile\\007\\033]52;c;aGk=\\007\\033[?1003h\\033[?1049l\\033[3J";
    let mut claw = after_a_turn(beside(&api, hostile), &api);
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
    let api = MockApi::start();
    let mut claw = after_a_turn(beside(&api, ""), &api);
    let gate = claw_tests::mock_api::Gate::new();
    api.push(MessagesStream::new().open_text(&["Half of it"]).wait(&gate).reply());
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
