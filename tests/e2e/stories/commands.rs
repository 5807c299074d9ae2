//! Slash commands: each does what it says, and none leaves the full screen.

use claw_tests::mock_api::{MessagesStream, MockApi};
use claw_tests::story::{DOWN, ENTER, KEY, beside, open};

#[test]
fn reports_are_shown_in_the_conversation() {
    let api = MockApi::start();
    let answer = MessagesStream::new().usage_start(1200, 0, 300).text(&["Hello."]);
    api.push(answer.stop("end_turn", 45).reply());
    let mut claw = open(&api);
    claw.say("hi");
    claw.wait_for("Hello.");
    claw.wait_ready();
    claw.command("/help", "switch the colours, or choose them from a list");
    claw.wait_for("interrupt what is running");
    claw.command("/status", "workspace-write");
    claw.wait_for("claude-opus-4-7");
    claw.command("/cost", "Cost of this session: $");
    claw.wait_for("1200");
    claw.command("/context", "the conversation is compacted by itself at");
    claw.command("/config", "Settings");
    claw.command("/version", "claw 0.");
    claw.command("/history", "Last prompts");
    claw.command("/nonsense", "unknown command /nonsense; /help lists them");
    claw.send("\x15");
    claw.command("/hlep", "did you mean /help?");
    assert_eq!(api.requests().len(), 1, "no command goes to the model");
}

#[test]
fn a_model_is_switched_by_name_and_from_a_list() {
    let api = MockApi::start();
    let mut claw = open(&api);
    claw.send(format!("/model claude-sonnet-4-6 {ENTER}"));
    claw.wait_until("the model in the status line", |seen| {
        let text = seen.screen.text();
        text.lines().last().is_some_and(|line| line.contains("claude-sonnet-4-6"))
    });
    api.push(MessagesStream::say("Hello."));
    claw.say("hi");
    claw.wait_for("Hello.");
    claw.wait_ready();
    assert_eq!(api.requests()[0].body["model"], "claude-sonnet-4-6");
    claw.command("/model", "type to narrow");
    claw.send("haiku");
    claw.wait_for("/ haiku");
    claw.send(ENTER);
    claw.wait_gone("type to narrow");
    api.push(MessagesStream::say("Hello again."));
    claw.say("hi again");
    claw.wait_for("Hello again.");
    let requests = api.requests();
    let model = requests[1].body["model"].as_str().expect("a model");
    assert!(model.contains("haiku"), "{model}");
}

#[test]
fn the_permission_mode_decides_what_asks() {
    let api = MockApi::start();
    let mut claw = open(&api);
    let command = |name: &str| {
        let input = format!(r#"{{"command":"touch {name}"}}"#);
        MessagesStream::new().tool_use("toolu_1", "bash", &input).stop("tool_use", 9).reply()
    };
    claw.send(format!("/permissions danger-full-access {ENTER}"));
    claw.wait_until("the mode in the status line", |seen| {
        let text = seen.screen.text();
        text.lines().last().is_some_and(|line| line.contains("danger-full-access"))
    });
    api.push(command("allowed"));
    api.push(MessagesStream::say("Ran."));
    claw.say("go");
    claw.wait_for("Ran.");
    claw.wait_ready();
    assert!(claw.workspace().join("allowed").exists());
    claw.command("/permissions", "Permission mode");
    claw.send("read-only");
    claw.wait_for("/ read-only");
    claw.send(ENTER);
    claw.wait_gone("type to narrow");
    api.push(command("refused"));
    api.push(MessagesStream::say("Did not run."));
    claw.say("go");
    claw.wait_for("Did not run.");
    claw.wait_ready();
    assert!(!claw.workspace().join("refused").exists());
    claw.command("/permissions sometimes", "sometimes");
    assert!(claw.status_line().contains("read-only"), "{}", claw.status_line());
}

#[test]
fn an_export_writes_the_conversation_and_never_over_a_file() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Hello **there**."));
    let claw = beside(&api).file("taken.md", "mine");
    let mut claw = claw.start();
    claw.wait_ready();
    claw.say("hi");
    claw.wait_for("Hello there.");
    claw.wait_ready();
    claw.command("/export talk.md", "Conversation written to");
    let written = std::fs::read_to_string(claw.workspace().join("talk.md")).unwrap();
    assert!(written.contains("## You\n\nhi"), "{written}");
    assert!(written.contains("Hello **there**."), "{written}");
    claw.command("/export taken.md", "cannot write");
    assert_eq!(std::fs::read_to_string(claw.workspace().join("taken.md")).unwrap(), "mine");
}

#[test]
fn an_export_holds_no_key_and_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let api = MockApi::start();
    api.push(MessagesStream::say("Never show it."));
    let mut claw = beside(&api).start();
    claw.wait_ready();
    claw.say(&format!("my key is {KEY}!"));
    claw.wait_for("Never show it.");
    claw.wait_ready();
    claw.command("/export talk.md", "Conversation written to");
    let file = claw.workspace().join("talk.md");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("my key is [redacted]!"), "{written}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn commands_that_need_a_pause_wait_for_the_end_of_the_turn() {
    let api = MockApi::start();
    api.push(MessagesStream::new().open_text(&["Half"]).reply().stall());
    let mut claw = open(&api);
    claw.say("hi");
    claw.wait_for("Half");
    claw.send(format!("/clear {ENTER}"));
    // It is refused with a reason and stays in the draft.
    claw.wait_for("❯ /clear");
    claw.wait_for("Half");
    claw.send("\x15");
    claw.wait_gone("❯ /clear");
    // Reports work in the meantime or right after it; stopping works at once.
    claw.send(format!("/stop {ENTER}"));
    api.wait_for_hang_ups(1);
    claw.wait_ready();
}

#[test]
fn completion_offers_commands_and_a_theme_is_chosen_from_a_list() {
    let api = MockApi::start();
    let mut claw = open(&api);
    claw.send("/the");
    claw.wait_for("switch the colours");
    claw.send("\t");
    claw.wait_for("❯ /theme");
    claw.send(ENTER);
    claw.wait_for("type to narrow");
    claw.send(DOWN);
    claw.send(ENTER);
    claw.wait_gone("type to narrow");
    claw.command("/theme nothing-like-it", "There is no theme \"nothing-like-it\"");
}

#[test]
fn wrong_references_are_answered_and_the_session_stays() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Answer one."));
    let mut claw = open(&api);
    claw.command("/stop", "ready");
    claw.command("/copy", "no answer to copy");
    claw.say("one");
    claw.wait_for("Answer one.");
    claw.wait_ready();
    claw.command("/session switch nothing-like-it", "no session matches \"nothing-like-it\"");
    claw.command("/backend nothing-like-it", "there is no backend \"nothing-like-it\"");
    claw.wait_for("Answer one.");
    api.push(MessagesStream::say("Answer two."));
    claw.say("two");
    claw.wait_for("Answer two.");
    assert_eq!(claw_tests::story::prompts(&api.requests()[1]), ["one", "two"]);
}

#[test]
fn a_prompt_that_begins_with_a_path_is_a_prompt() {
    let api = MockApi::start();
    api.push(MessagesStream::say("A list of hosts."));
    api.push(MessagesStream::say("A slash."));
    let mut claw = open(&api);
    claw.say("/etc/hosts is what?");
    claw.wait_for("A list of hosts.");
    claw.wait_ready();
    claw.say("//help is what?");
    claw.wait_for("A slash.");
    let requests = api.requests();
    assert_eq!(claw_tests::story::prompts(&requests[1]), ["/etc/hosts is what?", "/help is what?"]);
}
