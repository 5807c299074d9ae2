//! Dialogs: what stands selected first, what a blind Enter does, and what was typed.

use claw_tests::claude;
use claw_tests::mock_api::{MessagesStream, MockApi};

use super::{Setup, VERSIONS, said};

const DOWN: &str = "\x1b[B";
const UP: &str = "\x1b[A";

#[test]
fn a_blind_enter_at_the_trust_question_ends_332_and_trusts_on_197() {
    for version in VERSIONS {
        let api = MockApi::start();
        let mut fake = Setup::new(version).unknown_folder().start(&api);
        fake.running.wait_for("Accessing workspace:");
        fake.running.send("\r");
        if version == "332" {
            assert_eq!(fake.running.wait_back(), 1);
            continue;
        }
        fake.running.wait_for("Do you want to use this API key?");
        fake.running.send(UP);
        fake.running.wait_for("❯ 1. Yes");
        fake.running.send("\r");
        fake.hooks.wait("SessionStart", 1);
    }
}

#[test]
fn the_trust_question_of_332_is_passed_by_moving_to_yes() {
    let api = MockApi::start();
    let mut fake = Setup::new("332").unknown_folder().start(&api);
    fake.running.wait_for("❯ No, exit");
    fake.running.send(DOWN);
    fake.running.wait_for("❯ Yes, I trust this folder");
    fake.running.send("\r");
    fake.running.wait_for("❯ No (recommended)");
    fake.running.send(UP);
    fake.running.wait_for("❯ Yes");
    fake.running.send("\r");
    fake.hooks.wait("SessionStart", 1);
}

#[test]
fn a_paste_and_enter_at_a_permission_dialog_approve_it() {
    for version in VERSIONS {
        let api = MockApi::start();
        api.push(
            MessagesStream::new()
                .tool_use("toolu_1", "Bash", r#"{"command":"touch made.txt"}"#)
                .stop("tool_use", 3)
                .reply(),
        );
        api.push(MessagesStream::say("Made."));
        let mut fake = Setup::new(version).ready(&api);
        fake.submit("make a file");
        fake.running.wait_for("Do you want to proceed?");
        fake.submit("a prompt that is lost");
        assert_eq!(fake.wait_stop(1), "Made.");
        let records = fake.leave();
        assert!(fake.running.workspace().join("made.txt").exists());
        assert_eq!(said(&records), ["make a file"]);
    }
}

#[test]
fn two_escapes_open_a_dialog_that_swallows_input() {
    let api = MockApi::start();
    let mut fake = Setup::new("332").ready(&api);
    fake.running.send("\x1b");
    fake.running.wait_quiet(std::time::Duration::from_millis(120));
    fake.running.send("\x1b");
    fake.running.wait_for("Rewind");
}

#[test]
fn quirks_are_seen_in_the_log_of_input() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Here."));
    let log = tempfile::tempdir().unwrap();
    let file = log.path().join("input");
    let quirks = format!("swallow-first-cr,log-input={}", file.display());
    let mut fake = Setup::new("332").quirks(&quirks).ready(&api);
    fake.submit("are you there");
    fake.running.wait_for("❯ are you there");
    fake.running.send("\r");
    assert_eq!(fake.wait_stop(1), "Here.");
    assert_eq!(claude::typed(&file), b"\x1b[200~are you there\x1b[201~\r\r");
}

#[test]
fn an_event_that_the_version_does_not_know_blocks_its_start() {
    let api = MockApi::start();
    let fake = Setup::new("197").event("PreModelSwitch").start(&api);
    fake.running.wait_for("❯ 1. Continue");
    let fake = Setup::new("332").event("PreModelSwitch").start(&api);
    fake.hooks.wait("SessionStart", 1);
}
