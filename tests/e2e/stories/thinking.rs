//! Thinking: live, then folded with its size, kept across restarts and sent back as it came.

use claw_tests::mock_api::{Gate, MessagesStream, MockApi};
use claw_tests::story::{CTRL_C, CTRL_O, open};
use serde_json::json;

const THOUGHT: &str = "First weigh the options. Then choose the plain one.";

#[test]
fn thinking_is_live_then_folded_and_opens_by_key_and_by_click() {
    let api = MockApi::start();
    let gate = Gate::new();
    let block = json!({"type": "thinking", "thinking": "", "signature": ""});
    let delta = |text: &str| json!({"type": "thinking_delta", "thinking": text});
    api.push(
        MessagesStream::new()
            .block_start(0, &block)
            .block_delta(0, &delta("First weigh the options. "))
            .wait(&gate)
            .block_delta(0, &delta("Then choose the plain one."))
            .block_delta(0, &json!({"type": "signature_delta", "signature": "c2lnbmVk"}))
            .block_stop(0)
            .redacted_thinking("b3BhcXVl")
            .text(&["The plain one."])
            .stop("end_turn", 9)
            .reply(),
    );
    let mut claw = open(&api);
    claw.say("which one?");
    claw.wait_for("First weigh the options.");
    assert!(claw.status_line().contains("thinking"), "{}", claw.status_line());
    gate.release();
    claw.wait_for("The plain one.");
    claw.wait_ready();
    let folded = format!("▸ Thinking ({} chars)", THOUGHT.chars().count());
    claw.wait_for(&folded);
    claw.wait_gone("weigh the options");
    claw.wait_for("Thinking (hidden by the provider)");
    claw.send(CTRL_O);
    claw.wait_for(THOUGHT);
    claw.send(CTRL_O);
    claw.wait_gone(THOUGHT);
    claw.click(&folded);
    claw.wait_for(THOUGHT);
    claw.click("▾ Thinking");
    claw.wait_gone(THOUGHT);
}

#[test]
fn thinking_survives_a_restart_and_goes_back_to_the_provider_as_it_came() {
    let api = MockApi::start();
    let thought = MessagesStream::new().thinking(&[THOUGHT], "c2lnbmVk+/==");
    let thought = thought.redacted_thinking("b3BhcXVl");
    api.push(thought.text(&["The plain one."]).stop("end_turn", 9).reply());
    api.push(MessagesStream::say("Because it is plain."));
    let mut claw = open(&api);
    claw.say("which one?");
    claw.wait_for("The plain one.");
    claw.wait_ready();
    claw.send(CTRL_C);
    claw.send(CTRL_C);
    assert_eq!(claw.wait_back(), 0);

    let mut claw = claw.again().arg("--resume").start();
    claw.wait_for("The plain one.");
    claw.wait_ready();
    claw.wait_for("hidden by the provider");
    claw.send(CTRL_O);
    claw.wait_for(THOUGHT);
    claw.say("why?");
    claw.wait_for("Because it is plain.");
    let sent = &api.requests()[1].body["messages"][1]["content"];
    assert_eq!(
        sent[0],
        json!({"type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmVk+/=="})
    );
    assert_eq!(sent[1], json!({"type": "redacted_thinking", "data": "b3BhcXVl"}));
    assert_eq!(sent[2]["text"], "The plain one.");
}
