//! Tools: what needs permission asks, and what happened is seen by the person and by the model.

use claw_tests::mock_api::{MessagesStream, MockApi, Reply};
use claw_tests::story::{DOWN, ENTER, beside, open, tool_result};
use serde_json::json;

fn bash(command: &str) -> Reply {
    let input = json!({"command": command}).to_string();
    MessagesStream::new()
        .text(&["Let me look."])
        .tool_use("toolu_1", "bash", &input)
        .stop("tool_use", 9)
        .reply()
}

#[test]
fn enter_denies_a_command_and_the_model_is_told() {
    let api = MockApi::start();
    api.push(bash("touch marker && echo done"));
    api.push(MessagesStream::say("Then not."));
    let mut claw = open(&api);
    claw.say("go");
    claw.wait_for_dialog();
    claw.wait_for("bash asks for permission");
    claw.wait_for("touch marker && echo done");
    claw.wait_for("mode workspace-write · needs danger-full-access");
    claw.send(ENTER);
    claw.wait_for("Then not.");
    claw.wait_ready();
    claw.wait_for("denied");
    let (result, is_error) = tool_result(&api.requests()[1], "toolu_1").expect("a result");
    assert!(is_error);
    assert!(result.contains("permission denied by the person"), "{result}");
    assert!(!claw.workspace().join("marker").exists());
}

#[test]
fn a_denial_takes_its_reason_to_the_model() {
    let api = MockApi::start();
    api.push(bash("touch marker"));
    api.push(MessagesStream::say("Understood."));
    let mut claw = open(&api);
    claw.say("go");
    claw.wait_for_dialog();
    claw.send(DOWN);
    claw.wait_for("› Deny with a reason");
    claw.send(ENTER);
    claw.wait_for("Enter denies with this reason");
    claw.send("use the script yes");
    claw.wait_for("Reason: use the script yes");
    claw.send(ENTER);
    claw.wait_for("Understood.");
    claw.wait_for("use the script yes");
    let (result, is_error) = tool_result(&api.requests()[1], "toolu_1").expect("a result");
    assert!(is_error);
    assert!(result.ends_with("use the script yes"), "{result}");
    assert!(!claw.workspace().join("marker").exists());
}

#[test]
fn an_allowed_command_shows_its_output_while_it_runs_and_one_line_afterwards() {
    let api = MockApi::start();
    // The command waits for a pipe that the test opens: its first line is out long before its end.
    api.push(bash("mkfifo pipe; echo early line; cat pipe; echo late line"));
    api.push(MessagesStream::say("It ran."));
    let mut claw = open(&api);
    claw.say("go");
    claw.allow_once();
    claw.wait_until("live output below the running call", |seen| {
        seen.screen.text().lines().any(|line| line.trim() == "early line")
    });
    assert!(claw.status_line().contains("running bash"), "{}", claw.status_line());
    std::fs::write(claw.workspace().join("pipe"), "from the test\n").unwrap();
    claw.wait_for("It ran.");
    claw.wait_ready();
    claw.wait_for("exit 0 · 3 lines");
    claw.wait_until("folded output", |seen| {
        !seen.screen.text().lines().any(|line| line.trim() == "early line")
    });
    let (result, is_error) = tool_result(&api.requests()[1], "toolu_1").expect("a result");
    assert!(!is_error);
    assert!(result.contains("early line\nfrom the test\nlate line"), "{result}");
}

#[test]
fn a_failing_command_stands_open_with_its_output() {
    let api = MockApi::start();
    api.push(bash("echo all is lost >&2; exit 3"));
    api.push(MessagesStream::say("It failed."));
    let mut claw = open(&api);
    claw.say("go");
    claw.allow_once();
    claw.wait_for("It failed.");
    claw.wait_ready();
    claw.wait_for("exit 3");
    claw.wait_until("the output below the call", |seen| {
        seen.screen.text().lines().any(|line| line.trim() == "all is lost")
    });
    let (result, is_error) = tool_result(&api.requests()[1], "toolu_1").expect("a result");
    assert!(is_error, "{result}");
}

#[test]
fn an_edit_shows_its_difference_and_changes_the_file() {
    let api = MockApi::start();
    let input = json!({"path": "poem.txt", "old_string": "rose", "new_string": "tulip"});
    let edit = MessagesStream::new().tool_use("toolu_1", "edit_file", &input.to_string());
    api.push(edit.stop("tool_use", 9).reply());
    api.push(MessagesStream::say("Edited."));
    let claw = beside(&api).file("poem.txt", "one\na rose\nthree\n");
    let mut claw = claw.start();
    claw.wait_ready();
    claw.say("go");
    claw.wait_for("Edited.");
    claw.wait_ready();
    claw.wait_for("+1 -1");
    claw.wait_for("a rose");
    claw.wait_for("a tulip");
    let poem = std::fs::read_to_string(claw.workspace().join("poem.txt")).unwrap();
    assert_eq!(poem, "one\na tulip\nthree\n");
}

#[test]
fn two_commands_of_one_answer_are_asked_one_after_the_other() {
    let api = MockApi::start();
    let call = |name: &str| json!({"command": format!("echo {name} > {name}")}).to_string();
    let both = MessagesStream::new()
        .tool_use("toolu_1", "bash", &call("first"))
        .tool_use("toolu_2", "bash", &call("second"))
        .stop("tool_use", 9);
    api.push(both.reply());
    api.push(MessagesStream::say("One of two."));
    let mut claw = open(&api);
    claw.say("go");
    claw.wait_for("echo first > first");
    claw.allow_once();
    claw.wait_for("echo second > second");
    claw.wait_gone("› Allow once");
    claw.deny();
    claw.wait_for("One of two.");
    let request = &api.requests()[1];
    assert!(!tool_result(request, "toolu_1").expect("a result").1);
    assert!(tool_result(request, "toolu_2").expect("a result").1);
    assert!(claw.workspace().join("first").exists());
    assert!(!claw.workspace().join("second").exists());
}

#[test]
fn esc_stops_a_running_command_and_the_next_turn_works() {
    let api = MockApi::start();
    api.push(bash("echo running; exec sleep 1000"));
    api.push(MessagesStream::say("Next."));
    let mut claw = open(&api);
    claw.say("go");
    claw.allow_once();
    claw.wait_until("live output", |seen| {
        seen.screen.text().lines().any(|line| line.trim() == "running")
    });
    claw.send(claw_tests::story::ESC);
    claw.wait_ready();
    claw.say("next");
    claw.wait_for("Next.");
    assert!(tool_result(&api.requests()[1], "toolu_1").is_some(), "each call has a result");
}

#[test]
fn a_flood_of_output_is_cut_with_a_word_and_the_screen_stays_alive() {
    let api = MockApi::start();
    api.push(bash("seq 1 300000"));
    api.push(MessagesStream::say("Counted."));
    let mut claw = open(&api);
    claw.say("go");
    claw.allow_once();
    claw.send("typed meanwhile");
    claw.wait_for("❯ typed meanwhile");
    claw.wait_for("Counted.");
    claw.wait_ready();
    claw.wait_for("exit 0");
    let (result, _) = tool_result(&api.requests()[1], "toolu_1").expect("a result");
    assert!(result.len() < 300_000, "{} bytes went to the model", result.len());
    assert!(result.contains("300000"), "the end of the output is kept");
}

#[test]
fn a_command_that_was_changed_in_the_editor_runs_and_the_model_is_told() {
    let api = MockApi::start();
    api.push(bash("touch first.txt"));
    api.push(MessagesStream::say("As you wish."));
    let harness = beside(&api);
    let editor = harness.script("editor", "#!/bin/sh\nsed -i s/first/second/ \"$1\"\n");
    let mut claw = harness.env("EDITOR", editor.to_string_lossy()).start();
    claw.wait_ready();
    claw.say("go");
    claw.wait_for_dialog();
    claw.choose("Change it in your editor first…");
    claw.wait_for("touch second.txt");
    claw.choose("Allow once, as you changed it");
    claw.wait_for("As you wish.");
    claw.wait_for("✓ bash touch second.txt");
    let made = |name: &str| claw.workspace().join(name).exists();
    assert!(made("second.txt") && !made("first.txt"));
    let (result, is_error) = tool_result(&api.requests()[1], "toolu_1").expect("a result");
    assert!(!is_error && result.contains("this ran in place of the call"), "{result}");
}
