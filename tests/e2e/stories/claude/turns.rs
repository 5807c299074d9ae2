//! Turns: what the CLI says and runs is shown as our own, asked about in our dialog, and stopped by
//! our keys.

use claw_tests::claude_backend::{ClaudeBackend, at_once};
use claw_tests::harness::Running;
use claw_tests::mock_api::{Gate, MessagesStream};
use claw_tests::story::{CTRL_O, ENTER, ESC, TAB, prompts};
use serde_json::json;

/// The ways to have a worker: their settings.
fn ways() -> [(&'static str, ClaudeBackend); 4] {
    [
        ("pty with live text", ClaudeBackend::new()),
        ("older pty with live text", ClaudeBackend::new().version("197")),
        ("pty without", ClaudeBackend::new().setting("tap", false).version("197")),
        ("stream", ClaudeBackend::new().setting("transport", "stream")),
    ]
}

/// A command that the CLI wants to run.
fn command(id: &str, command: &str) -> MessagesStream {
    let input = json!({"command": command, "description": "Does it"}).to_string();
    MessagesStream::new().tool_use(id, "Bash", &input)
}

fn saved(claw: &Running) -> String {
    claw.session_files().into_iter().map(|(_, text)| text).collect()
}

#[test]
fn thinking_text_and_a_tool_that_is_allowed_are_shown_and_saved() {
    at_once(ways(), |(way, claude)| {
        let mut claw = claude.start();
        let input = json!({"command": "touch made.txt && echo it is made"}).to_string();
        claude.api.push(
            MessagesStream::new()
                .thinking(&["I wonder ", "about this."], "c2ln")
                .text(&["Let me ", "make it."])
                .tool_use("toolu_1", "Bash", &input)
                .stop("tool_use", 9)
                .reply(),
        );
        claude.api.push(MessagesStream::say("There it is."));
        claw.say("make a file");
        claw.wait_for("Let me make it.");
        claw.allow_once();
        claw.wait_for("There it is.");
        claw.wait_ready();
        assert!(claw.workspace().join("made.txt").exists(), "{way}");
        claw.wait_for("✓ Bash touch made.txt");
        claw.send(CTRL_O);
        claw.wait_for("I wonder about this.");
        // What it ran is in our session with its result, and was not run by us again.
        let saved = saved(&claw);
        for part in
            ["I wonder about this.", "Let me make it.", "toolu_1", "it is made", "There it is."]
        {
            assert!(saved.contains(part), "{way}: {part} is not in {saved}");
        }
        assert_eq!(claude.questions().len(), 2, "{way}");
    });
}

#[test]
fn a_tool_that_is_denied_does_not_run_and_the_turn_goes_on() {
    at_once(ways(), |(way, claude)| {
        let mut claw = claude.start();
        claude.api.push(command("toolu_1", "touch made.txt").stop("tool_use", 3).reply());
        claude.api.push(MessagesStream::say("Then not."));
        claw.say("make a file");
        claw.deny();
        claw.wait_for("Then not.");
        claw.wait_ready();
        assert!(!claw.workspace().join("made.txt").exists(), "{way}");
        claude.talk(&mut claw, "go on", "I do.");
    });
}

#[test]
fn esc_stops_text_that_streams_and_the_next_prompt_is_answered() {
    at_once(ways(), |(way, claude)| {
        let mut claw = claude.start();
        let gate = Gate::new();
        claude.api.push(MessagesStream::new().open_text(&["Half of it"]).wait(&gate).reply());
        claw.say("talk");
        gate.wait_reached(1);
        // Without live text there is nothing to see before a block is whole.
        let is_live = way != "pty without";
        claw.wait_for(if is_live { "Half of it" } else { "esc stops" });
        claw.send(ESC);
        claw.wait_for("Interrupted");
        claw.wait_ready();
        let shown = claw.text().matches("Half of it").count();
        assert!(if is_live { shown == 1 } else { shown <= 1 }, "{way}: {}", claw.text());
        claude.talk(&mut claw, "and now", "The whole.");
        assert_eq!(claude.questions().len(), 2);
    });
}

#[test]
fn esc_stops_a_running_command_with_all_that_it_started() {
    at_once(ways(), |(way, claude)| {
        let mut claw = claude.start();
        let script = "(setsid sleep 347 &); exec sleep 347";
        claude.api.push(command("toolu_1", script).stop("tool_use", 3).reply());
        claw.say("sleep");
        claw.allow_once();
        claude.wait_for_commands("sleep 347", 2);
        claw.send(ESC);
        claw.wait_ready();
        // It ran: nobody denied it.
        assert!(!claw.text().contains("denied"), "{way}: {}", claw.text());
        claude.talk(&mut claw, "and now", "Awake.");
        assert!(saved(&claw).contains("toolu_1"), "{way}");
    });
}

#[test]
fn esc_sends_nothing_to_a_worker_that_does_nothing() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let claude = ClaudeBackend::new().quirks(&format!("log-input={}", log.path().display()));
    let mut claw = claude.start();
    claude.talk(&mut claw, "one", "First.");
    let before = std::fs::read(log.path()).unwrap();
    for _ in 0..3 {
        // As terminals send it that tell it from the beginning of a sequence.
        claw.send("\x1b[27u");
    }
    claw.send("typed");
    claw.wait_for("❯ typed");
    assert_eq!(std::fs::read(log.path()).unwrap(), before);
    claw.send(ENTER);
    claude.api.push(MessagesStream::say("Second."));
    claw.wait_for("Second.");
}

#[test]
fn a_prompt_during_a_turn_goes_into_it_and_one_for_later_waits() {
    // Without a terminal nothing tells that it was taken before it was, so there is nothing to wait for.
    at_once(ways().into_iter().take(3), |(way, claude)| {
        let mut claw = claude.start();
        let gate = Gate::new();
        let first = MessagesStream::new().wait(&gate);
        let input = json!({"command": "echo alpha"}).to_string();
        claude.api.push(first.tool_use("toolu_1", "Bash", &input).stop("tool_use", 3).reply());
        claude.api.push(MessagesStream::say("Both heard."));
        claude.api.push(MessagesStream::say("And the last."));
        claw.say("begin");
        gate.wait_reached(1);
        claw.wait_for("esc stops");
        claw.send(format!("this too{ENTER}"));
        claw.wait_for("said into this turn");
        claw.send(format!("afterwards{TAB}"));
        claw.wait_for("afterwards");
        gate.open();
        claw.wait_for("Both heard.");
        claw.wait_for("And the last.");
        claw.wait_ready();
        let questions = claude.questions();
        assert_eq!(questions.len(), 3, "{way}");
        let told = |at: usize, words: &str| {
            prompts(&questions[at]).iter().filter(|prompt| prompt.contains(words)).count()
        };
        assert_eq!((told(1, "this too"), told(2, "this too")), (1, 1), "{way}");
        assert_eq!((told(1, "afterwards"), told(2, "afterwards")), (0, 1), "{way}");
    });
}

#[test]
fn a_prompt_that_is_taken_back_at_once_is_no_failure_and_is_not_told_later() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.start();
    claude.talk(&mut claw, "one", "First.");
    // It is still being typed into the CLI.
    claw.send(format!("never mind{ENTER}\x1b[27u"));
    claw.wait_for("Interrupted");
    claw.wait_ready();
    assert!(!claw.text().contains('✗'), "{}", claw.text());
    claude.talk(&mut claw, "two", "Second.");
    let said = prompts(claude.questions().last().expect("a question"));
    assert_eq!(said.last().map(String::as_str), Some("two"), "{said:?}");
}

#[test]
fn what_it_does_beyond_the_workspace_is_asked_about() {
    for (way, claude) in ways() {
        let outside = tempfile::tempdir().unwrap();
        let mut claw = claude.start();
        let path = outside.path().join("made.txt");
        let input = json!({"file_path": path, "content": "x"}).to_string();
        let call = MessagesStream::new().tool_use("toolu_1", "Write", &input);
        claude.api.push(call.stop("tool_use", 3).reply());
        claude.api.push(MessagesStream::say("Then not."));
        claw.say("write it");
        claw.deny();
        claw.wait_for("Then not.");
        claw.wait_ready();
        assert!(!path.exists(), "{way}");
    }
}

#[test]
fn what_is_typed_right_after_an_early_esc_goes_alone() {
    for (way, claude) in ways() {
        let mut claw = claude.start();
        let gate = Gate::new();
        // Nothing was said yet: on its terminal the CLI puts the prompt back into its input box.
        claude.api.push(MessagesStream::say("Never.").wait_before_head(&gate));
        claude.api.push(MessagesStream::say("Done instead."));
        claw.say("the first");
        gate.wait_reached(1);
        claw.wait_for("esc stops");
        claw.send(ESC);
        claw.wait_for("stopping");
        claw.say("another");
        claw.wait_for("Done instead.");
        claw.wait_ready();
        let said = prompts(claude.questions().last().expect("a question"));
        let last = said.last().expect("a prompt");
        assert!(last.contains("another") && !last.contains("first"), "{way}: {said:?}");
        assert_eq!(claude.questions().len(), 2, "{way}");
    }
}

#[test]
fn a_command_that_runs_is_seen_to_go_on() {
    let claude = ClaudeBackend::new();
    let mut claw = claude.start();
    claude.api.push(command("toolu_1", "sleep 341").stop("tool_use", 3).reply());
    claw.say("sleep");
    claw.wait_for("running Bash 2 s");
    claw.send(ESC);
    claw.wait_ready();
}
