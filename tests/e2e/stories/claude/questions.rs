//! What the CLI asks beyond yes and no: its questions, its plans, and inputs that the person changes.

use claw_tests::claude_backend::{ClaudeBackend, at_once};
use claw_tests::mock_api::{MessagesStream, RecordedRequest};
use claw_tests::story::ENTER;
use serde_json::{Value, json};

fn ways() -> [(&'static str, ClaudeBackend); 3] {
    [
        ("pty", ClaudeBackend::new()),
        ("older pty", ClaudeBackend::new().version("197")),
        ("stream", ClaudeBackend::new().setting("transport", "stream")),
    ]
}

fn call(id: &str, name: &str, input: &Value) -> MessagesStream {
    MessagesStream::new().tool_use(id, name, &input.to_string()).stop("tool_use", 9)
}

/// What the model was given as the result of the call.
fn result(request: &RecordedRequest) -> String {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.map(|block| block["content"].to_string()).collect()
}

#[test]
fn a_question_is_answered_in_our_dialog_by_what_it_offers_or_in_own_words() {
    at_once(ways(), |(way, claude)| {
        let input = json!({"questions": [
            {"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [
                {"label": "Red", "description": "the red one"},
                {"label": "Blue", "description": "the blue one"}]},
            {"question": "How big?", "header": "Size", "multiSelect": false, "options": [
                {"label": "Small", "description": "fits in"},
                {"label": "Large", "description": "does not"}]},
        ]});
        claude.api.push(call("toolu_1", "AskUserQuestion", &input).reply());
        claude.api.push(MessagesStream::say("So be it."));
        let mut claw = claude.start();
        claw.say("paint it");
        claw.wait_for("› Do not answer");
        claw.wait_for("Blue: the blue one");
        claw.choose("Blue");
        claw.wait_for("How big?");
        claw.wait_for("› Do not answer");
        // The Enter of the first question is not taken for the second.
        claw.wait_for("question 2 of 2");
        claw.choose("Something else…");
        claw.wait_for("› Answer:");
        claw.send(format!("as big as it gets{ENTER}"));
        claw.wait_for("So be it.");
        claw.wait_ready();
        let given = result(claude.questions().last().unwrap());
        assert!(given.contains("Blue") && given.contains("as big as it gets"), "{way}: {given}");
    });
}

#[test]
fn a_question_that_is_not_answered_goes_back_as_such() {
    at_once(ways(), |(way, claude)| {
        let input = json!({"questions": [{"question": "Which?", "header": "It",
            "multiSelect": false, "options": [
                {"label": "This", "description": ""}, {"label": "That", "description": ""}]}]});
        claude.api.push(call("toolu_1", "AskUserQuestion", &input).reply());
        claude.api.push(MessagesStream::say("Then I decide."));
        let mut claw = claude.start();
        claw.say("ask me");
        claw.wait_for("› Do not answer");
        claw.send(ENTER);
        claw.wait_for("Then I decide.");
        claw.wait_ready();
        let given = result(claude.questions().last().unwrap());
        assert!(given.contains("denied by the person"), "{way}: {given}");
    });
}

#[test]
fn a_plan_is_approved_or_sent_back_with_a_message() {
    let claude = ClaudeBackend::new().version("197").setting("permissionMode", "plan");
    let plan = json!({"plan": "1. Look around\n2. Build it"});
    claude.api.push(call("toolu_1", "ExitPlanMode", &plan).reply());
    claude.api.push(call("toolu_2", "ExitPlanMode", &plan).reply());
    claude.api.push(MessagesStream::say("I begin."));
    let mut claw = claude.start();
    claw.say("plan it");
    claw.wait_for("A plan for your approval");
    claw.wait_for("2. Build it");
    claw.wait_for("› Keep planning");
    claw.choose("Keep planning, with a message…");
    claw.send(format!("look twice{ENTER}"));
    claw.wait_until("the plan comes back", |seen| {
        seen.screen.text().contains("› Keep planning") && claude.questions().len() == 2
    });
    assert!(result(claude.questions().last().unwrap()).contains("look twice"));
    claw.choose("Approve this plan");
    claw.wait_for("I begin.");
    claw.wait_ready();
}

#[test]
fn a_command_that_was_changed_in_the_editor_runs_as_it_was_changed() {
    at_once(ways(), |(way, claude)| {
        let input = json!({"command": "touch first.txt", "description": "Does it"});
        claude.api.push(call("toolu_1", "Bash", &input).reply());
        claude.api.push(MessagesStream::say("It is made."));
        let harness = claude.harness();
        let editor = harness.script("editor", "#!/bin/sh\nsed -i s/first/second/ \"$1\"\n");
        let mut claw = harness.env("EDITOR", editor.to_string_lossy()).start();
        claw.wait_ready();
        claw.say("make a file");
        claw.wait_for("› Deny");
        claw.choose("Change it in your editor first…");
        claw.wait_for("touch second.txt");
        claw.choose("Allow once, as you changed it");
        claw.wait_for("It is made.");
        claw.wait_ready();
        // What is shown is what ran.
        claw.wait_for("✓ Bash touch second.txt");
        let made = |name: &str| claw.workspace().join(name).exists();
        assert!(made("second.txt") && !made("first.txt"), "{way}");
    });
}
