//! Esc, looked at closely: what stays on the screen and what ends.

use claw_tests::claude_backend::{ClaudeBackend, at_once};
use claw_tests::mock_api::{Gate, MessagesStream};
use claw_tests::story::ESC;
use serde_json::json;

#[test]
fn what_had_come_stands_there_once() {
    at_once([("332", "pty"), ("197", "pty"), ("332", "stream")], |(version, transport)| {
        let claude = ClaudeBackend::new().version(version).setting("transport", transport);
        let gate = Gate::new();
        claude.api.push(MessagesStream::new().open_text(&["Half an answer"]).wait(&gate).reply());
        let mut claw = claude.start();
        claw.say("talk");
        claw.wait_for("Half an answer");
        claw.send(ESC);
        claw.wait_for("! Interrupted");
        claw.wait_ready();
        claude.api.wait_for_hang_ups(1);
        claude.talk(&mut claw, "go on", "A whole one.");
        let text = claw.text();
        assert_eq!(text.matches("Half an answer").count(), 1, "{version} {transport}:\n{text}");
        let saved: String = claw.session_files().into_iter().map(|(_, text)| text).collect();
        assert_eq!(saved.matches("Half an answer").count(), 1, "{version} {transport}: {saved}");
        assert_eq!(claude.starts().len(), 1, "the worker lives on");
    });
}

#[test]
fn a_command_ends_with_its_turn() {
    at_once([("332", "pty"), ("197", "stream")], |(version, transport)| {
        let claude = ClaudeBackend::new().version(version).setting("transport", transport);
        let input = json!({"command": "sleep 348"}).to_string();
        let call = MessagesStream::new().tool_use("toolu_1", "Bash", &input);
        claude.api.push(call.stop("tool_use", 3).reply());
        let mut claw = claude.start();
        claw.say("wait");
        claude.wait_for_commands("sleep 348", 1);
        claw.send(ESC);
        claw.wait_for("! Interrupted");
        claw.wait_ready();
        claude.wait_for_commands("sleep 348", 0);
        claude.talk(&mut claw, "go on", "Awake.");
    });
}

#[test]
fn a_question_that_is_denied_with_esc_runs_nothing_and_the_turn_goes_on() {
    let claude = ClaudeBackend::new();
    let call = MessagesStream::new().tool_use("toolu_1", "Bash", r#"{"command":"touch made.txt"}"#);
    claude.api.push(call.stop("tool_use", 3).reply());
    claude.api.push(MessagesStream::say("Then not."));
    let mut claw = claude.start();
    claw.say("make a file");
    claw.wait_for_dialog();
    claw.send(ESC);
    claw.wait_for("Then not.");
    claw.wait_ready();
    assert!(!claw.workspace().join("made.txt").exists());
}
