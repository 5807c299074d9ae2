//! Prompts during a turn where no terminal tells what became of them.

use claw_tests::claude::typed;
use claw_tests::claude_backend::{ClaudeBackend, eventually};
use claw_tests::mock_api::{Gate, MessagesStream};

/// A turn that runs a tool when the gate opens, with a prompt on its way into it.
fn begun() -> (ClaudeBackend, claw_tests::harness::Running, Gate) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let claude = ClaudeBackend::new()
        .setting("transport", "stream")
        .quirks(&format!("log-input={}", log.path().display()));
    let gate = Gate::new();
    let call = MessagesStream::new().open_text(&["I begin."]).wait(&gate).block_stop(0);
    let call = call.tool_use("toolu_1", "Bash", r#"{"command":"echo alpha"}"#);
    claude.api.push(call.stop("tool_use", 9).reply());
    let mut claw = claude.start();
    claw.say("begin");
    claw.wait_for("I begin.");
    claw.say("and this too");
    claw.wait_for("on its way into this turn");
    // Before that it would only not have been sent.
    eventually("the CLI to read it", || {
        String::from_utf8_lossy(&typed(log.path())).contains("and this too")
    });
    (claude, claw, gate)
}

#[test]
fn a_prompt_that_a_tool_takes_in_has_its_receipt_then() {
    let (claude, claw, gate) = begun();
    claude.api.push(MessagesStream::say("Both were heard."));
    gate.open();
    claw.wait_for("said into this turn");
    claw.wait_for("Both were heard.");
    claw.wait_ready();
    let questions = claude.questions();
    assert_eq!(questions.len(), 2, "one turn took both");
    let second = questions[1].body["messages"].to_string();
    assert_eq!(second.matches("and this too").count(), 1, "{second}");
}

#[test]
fn a_prompt_whose_worker_dies_is_not_certain_to_have_arrived_and_not_sent_again() {
    let (claude, mut claw, _gate) = begun();
    claude.kill_cli();
    claw.wait_for("not certain to have arrived; it is not sent again");
    claw.wait_ready();
    claude.talk(&mut claw, "go on", "On we go.");
    assert_eq!(claude.asked("and this too"), 0);
    assert_eq!(claude.asked("go on"), 1);
}
