//! What goes wrong is told with its reason and the way on, and a prompt never runs twice.

use claw_tests::claude_backend::{ClaudeBackend, at_once};
use claw_tests::mock_api::{MessagesStream, Reply};
use claw_tests::story::ENTER;

#[test]
fn a_death_in_the_middle_of_an_answer_is_a_failed_turn_and_the_session_goes_on() {
    let claude = ClaudeBackend::new().quirks("die-in-turn");
    let mut claw = claude.start();
    claude.api.push(MessagesStream::new().text(&["Half"]).stop("end_turn", 1).reply());
    claw.say("begin");
    claw.wait_for("What it had begun may have been done");
    claw.wait_ready();
    assert_eq!(claude.questions().len(), 1);
    // It dies again, but of its own prompt: nothing was sent a second time by itself.
    claude.api.push(MessagesStream::new().text(&["Again"]).stop("end_turn", 1).reply());
    claw.say("once more");
    claw.wait_until("the second failure", |seen| {
        seen.screen.text().matches("What it had begun").count() == 2
    });
    claw.wait_ready();
    assert_eq!(claude.questions().len(), 2);
}

#[test]
fn a_start_that_fails_is_tried_again_after_a_pause_and_then_told() {
    let claude = ClaudeBackend::new().quirks("exit-at-start=out of order today");
    let mut claw = claude.start();
    claw.say("begin");
    claw.wait_for("retry 2/3");
    claw.wait_for("✗ worker: Claude Code ended at its start (exit status 1): out of order today");
    claw.wait_ready();
    claw.send(format!("/backend demo{ENTER}"));
    claw.wait_for(" demo (scripted) ·");
}

#[test]
fn a_program_that_is_missing_is_told_at_once() {
    let claude = ClaudeBackend::new().setting("program", "/no/such/claude");
    let mut claw = claude.start();
    claw.say("begin");
    claw.wait_for("/no/such/claude");
    claw.wait_ready();
    assert!(!claw.text().contains("attempt"));
    assert_eq!(claude.questions().len(), 0);
}

#[test]
fn a_login_that_is_missing_is_told_at_once() {
    let claude = ClaudeBackend::new().quirks("auth-at-start");
    let mut claw = claude.start();
    claw.say("begin");
    claw.wait_for("it asks how to log in");
    claw.wait_ready();
    assert!(!claw.text().contains("attempt"));
}

#[test]
fn a_failure_of_the_api_ends_the_turn_with_its_reason() {
    at_once(["pty", "stream"], |transport| {
        let claude = ClaudeBackend::new().setting("transport", transport);
        let mut claw = claude.start();
        let words = "Your credit balance is too low to access the Anthropic API.";
        claude.api.push(Reply::error(400, "invalid_request_error", words));
        claw.say("begin");
        claw.wait_for("Credit balance is too low");
        claw.wait_ready();
        claude.talk(&mut claw, "again", "Better.");
    });
}

#[test]
fn a_key_that_is_refused_is_told_as_such_and_words_about_logins_are_not() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.start();
    claude.talk(&mut claw, "one", "Invalid API key · Please run /login");
    assert!(!claw.text().contains("not logged in"), "{}", claw.text());
    for _ in 0..2 {
        claude.api.push(Reply::error(401, "authentication_error", "invalid x-api-key"));
    }
    claw.say("two");
    claw.wait_for("login of Claude Code");
    claw.wait_ready();
    claude.talk(&mut claw, "three", "Well again.");
}
