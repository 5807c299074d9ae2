//! Our session and the Claude session that belongs to it.

use std::path::PathBuf;

use claw_tests::claude_backend::{ClaudeBackend, at_once, eventually};
use claw_tests::harness::{Harness, Running};
use claw_tests::mock_api::MessagesStream;
use claw_tests::story::{ENTER, files_below, prompts};

#[test]
fn resuming_goes_on_in_the_same_claude_session() {
    at_once(["pty", "stream"], |transport| {
        let claude = ClaudeBackend::new().setting("transport", transport);
        let mut claw = claude.start();
        claude.talk(&mut claw, "one", "First.");
        let again = claw.again();
        claw.say("/exit");
        claw.wait_back();
        let ids = ClaudeBackend::transcripts(again.home());
        assert_eq!(ids.len(), 1);

        let mut claw = again.arg("--resume").start();
        claw.wait_ready();
        claw.wait_for("First.");
        claude.talk(&mut claw, "two", "Second.");
        let later = ClaudeBackend::transcripts(claw.home());
        assert_eq!(later.len(), 1, "{transport}");
        assert_eq!(later[0].0, ids[0].0, "{transport}");
        let questions = claude.questions();
        let said = prompts(questions.last().unwrap()).concat();
        assert!(said.contains("one") && said.contains("two"), "{transport}: {said}");
        assert!(!said.contains("earlier_conversation"), "{transport}: {said}");
    });
}

#[test]
fn a_fork_is_the_clis_own_fork_and_the_parent_stays_as_it_was() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.start();
    claude.talk(&mut claw, "one", "First.");
    let parent = ClaudeBackend::transcripts(claw.home()).remove(0);
    claw.send(format!("/session fork other {ENTER}"));
    claw.wait_for("other");
    claw.wait_ready();
    claude.talk(&mut claw, "two", "Second.");
    let mut all = ClaudeBackend::transcripts(claw.home());
    assert_eq!(all.len(), 2);
    let at = all.iter().position(|(id, _)| *id == parent.0).expect("the parent is there");
    let kept = all.remove(at).1;
    assert!(!kept.contains("Second.") && kept.contains("First."));
    let fork = &all[0].1;
    assert!(fork.contains("First.") && fork.contains("Second."), "{fork}");
}

#[test]
fn a_fork_in_the_older_version_on_stream_json_is_its_own_fork_too() {
    let claude = ClaudeBackend::new().version("197").setting("transport", "stream");
    let mut claw = claude.start();
    claude.talk(&mut claw, "one", "First.");
    claw.send(format!("/session fork other {ENTER}"));
    claw.wait_for("other");
    claw.wait_ready();
    claude.talk(&mut claw, "two", "Second.");
    let fork = &claude.starts()[1];
    assert!(fork.contains(&format!("--resume {}", claude.first_session())), "{fork}");
    assert!(fork.contains("--fork-session"), "{fork}");
    assert_eq!(prompts(claude.questions().last().unwrap()), ["one", "two"]);
}

#[test]
fn compaction_is_the_clis_own() {
    at_once(["pty", "stream"], |transport| {
        check_compaction(&ClaudeBackend::new().setting("transport", transport));
    });
}

fn check_compaction(claude: &ClaudeBackend) {
    let mut claw = claude.start();
    for (prompt, answer) in [("one", "First."), ("two", "Second."), ("three", "Third.")] {
        claude.talk(&mut claw, prompt, answer);
    }
    claude.api.push(MessagesStream::say("<summary>All of it.</summary>"));
    claw.send(format!("/compact {ENTER}"));
    claw.wait_for("ompacted");
    claw.wait_ready();
    let transcripts = || ClaudeBackend::transcripts(claw.home());
    eventually("the boundary in the transcript", || {
        transcripts().iter().any(|(_, text)| text.contains("compact_boundary"))
    });
    claude.talk(&mut claw, "four", "Fourth.");
    let questions = claude.questions();
    let said = prompts(questions.last().unwrap()).concat();
    assert!(said.contains("All of it.") && !said.contains("two"), "{said}");
}

#[test]
fn a_claude_session_that_is_gone_is_begun_again_with_the_history() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.start();
    claude.talk(&mut claw, "one", "First.");
    let again = claw.again();
    claw.say("/exit");
    claw.wait_back();
    std::fs::remove_dir_all(again.home().join(".claude/projects")).unwrap();
    let mut claw = again.arg("--resume").start();
    claw.wait_ready();
    claude.talk(&mut claw, "two", "Second.");
    claw.wait_for("is gone; a new one is given its history");
    let questions = claude.questions();
    let said = prompts(questions.last().unwrap()).concat();
    assert!(said.contains("The person: one") && said.contains("The assistant: First."), "{said}");
    assert!(said.ends_with("two"), "{said}");
}

/// Leaves, and stands ready to start again; with the folder of another account in the same home.
fn leave_to_another_account(claw: &mut Running) -> (Harness, PathBuf) {
    let again = claw.again();
    claw.say("/exit");
    claw.wait_back();
    let account = again.home().join("other");
    std::fs::create_dir(&account).unwrap();
    std::fs::copy(again.home().join(".claude.json"), account.join(".claude.json")).unwrap();
    (again.env("CLAUDE_CONFIG_DIR", account.to_string_lossy()).arg("--resume"), account)
}

#[test]
fn a_claude_session_comes_along_to_another_account_and_back() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.start();
    claude.talk(&mut claw, "one", "First.");
    let (again, _account) = leave_to_another_account(&mut claw);
    let first = ClaudeBackend::transcripts(again.home());
    let mut claw = again.start();
    claw.wait_ready();
    claude.talk(&mut claw, "two", "Second.");
    assert_eq!(prompts(claude.questions().last().unwrap()), ["one", "two"]);
    assert_eq!(ClaudeBackend::transcripts(claw.home()), first, "it stays where it was");
    let again = claw.again();
    claw.say("/exit");
    claw.wait_back();

    let mut claw = again.env("CLAUDE_CONFIG_DIR", "").arg("--resume").start();
    claw.wait_ready();
    claude.talk(&mut claw, "three", "Third.");
    assert_eq!(prompts(claude.questions().last().unwrap()), ["one", "two", "three"]);
    let resume = format!("--resume {}", claude.first_session());
    assert!(claude.starts()[1..].iter().all(|start| start.contains(&resume)));
    assert!(!claw.text().contains("given its history"), "{}", claw.text());
}

#[test]
fn a_claude_session_that_another_account_has_otherwise_stays_there_as_it_is() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.start();
    claude.talk(&mut claw, "one", "First.");
    let (again, account) = leave_to_another_account(&mut claw);
    let files = files_below(&again.home().join(".claude/projects"));
    let (transcript, _) = files.first().expect("a transcript");
    let below = transcript.strip_prefix(again.home().join(".claude")).unwrap();
    let there = account.join(below);
    std::fs::create_dir_all(there.parent().unwrap()).unwrap();
    std::fs::write(&there, "{}\n").unwrap();
    let mut claw = again.start();
    claw.wait_ready();
    claude.talk(&mut claw, "two", "Second.");
    claw.wait_for("cannot be brought along");
    assert_eq!(std::fs::read_to_string(there).unwrap(), "{}\n");
    let said = prompts(claude.questions().last().unwrap()).concat();
    assert!(said.contains("The person: one") && said.ends_with("two"), "{said}");
}

#[test]
fn another_backends_words_are_given_to_the_worker_and_its_words_to_another_backend() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.start();
    claw.send(format!("/backend anthropic{ENTER}"));
    claw.wait_for(" anthropic ·");
    claude.talk(&mut claw, "one", "First.");
    claw.send(format!("/backend claude{ENTER}"));
    claw.wait_for(" claude ·");
    claude.talk(&mut claw, "two", "Second.");
    let said = prompts(claude.questions().last().unwrap()).concat();
    assert!(said.contains("The person: one") && said.contains("The assistant: First."), "{said}");
    claude.talk(&mut claw, "three", "Third.");
    // Said once.
    let said = prompts(claude.questions().last().unwrap());
    assert_eq!(said.iter().filter(|text| text.contains("The person: one")).count(), 1, "{said:?}");
    claw.send(format!("/backend anthropic{ENTER}"));
    claw.wait_for(" anthropic ·");
    claude.talk(&mut claw, "four", "Fourth.");
    assert_eq!(prompts(claude.questions().last().unwrap()), ["one", "two", "three", "four"]);
    claw.send(format!("/backend claude{ENTER}"));
    claw.wait_for(" claude ·");
    claude.talk(&mut claw, "five", "Fifth.");
    let said = prompts(claude.questions().last().unwrap()).concat();
    assert!(said.contains("The person: four"), "{said}");
    assert_eq!(ClaudeBackend::transcripts(claw.home()).len(), 1);
}
