//! Whether Claude Code may work in a folder is the person's to say, once.

use claw_tests::claude_backend::ClaudeBackend;
use claw_tests::mock_api::MessagesStream;
use claw_tests::story::ENTER;
use serde_json::Value;

const QUESTION: &str = "do you trust this folder?";

fn known(home: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(home.join(".claude.json")).unwrap()).unwrap()
}

#[test]
fn a_yes_is_asked_for_once_and_written_where_the_cli_looks_for_it() {
    let claude = ClaudeBackend::new().untrusted();
    let mut claw = claude.start();
    claude.api.push(MessagesStream::say("Here."));
    claw.say("begin");
    claw.wait_for(QUESTION);
    assert!(claude.worker_processes().is_empty());
    claw.trust_folder();
    claw.wait_for("Here.");
    claw.wait_ready();
    let file = known(claw.home());
    let folder = claw.workspace().canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    assert_eq!(file["projects"][folder]["hasTrustDialogAccepted"], true, "{file}");
    assert_eq!(file["projects"]["/elsewhere"]["kept"][0], 1, "{file}");
    let again = claw.again();
    claw.say("/exit");
    claw.wait_back();
    // Another start asks no more.
    let mut claw = again.start();
    claw.wait_ready();
    claude.talk(&mut claw, "and now", "Still here.");
    assert!(!String::from_utf8_lossy(&claw.look(|seen| seen.log.clone())).contains(QUESTION));
}

#[test]
fn a_no_starts_nothing_and_loses_nothing() {
    let claude = ClaudeBackend::new().untrusted();
    let mut claw = claude.start();
    let before = std::fs::read(claw.home().join(".claude.json")).unwrap();
    claw.say("begin");
    claw.wait_for(QUESTION);
    claw.deny();
    // The folder stands before it, so the line may break anywhere else.
    claw.wait_for("trusted,");
    assert!(claude.worker_processes().is_empty());
    assert_eq!(claude.questions().len(), 0);
    assert_eq!(std::fs::read(claw.home().join(".claude.json")).unwrap(), before);
    // The session goes on, with this backend or another.
    claw.say("/retry");
    claw.wait_until("the question again", |seen| {
        seen.screen.text().contains("Enter confirms") && seen.screen.text().contains("› Deny")
    });
    claw.send(ENTER);
    claw.wait_ready();
    claw.send(format!("/backend demo{ENTER}"));
    claw.wait_for(" demo (scripted) ·");
    claw.say("hello");
    claw.wait_ready();
}
