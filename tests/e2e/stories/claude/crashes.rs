//! A worker that dies: whether its prompt may have run decides whether it is sent again.

use claw_tests::claude_backend::{ClaudeBackend, at_once};
use claw_tests::mock_api::MessagesStream;

fn on(transport: &str) -> ClaudeBackend {
    ClaudeBackend::new().setting("transport", transport)
}

/// Its first start dies like this with a prompt that may have been taken.
fn check_told(quirk: &str, transport: &str, version: &'static str) {
    let claude = on(transport).version(version);
    claude.quirks_of_next_start(quirk);
    if quirk == "die-in-turn" {
        claude.api.push(MessagesStream::new().text(&["Half"]).reply());
    }
    let mut claw = claude.start();
    claw.say("first words");
    claw.wait_for("Claude Code ended");
    claw.wait_for("What it had begun may have been done");
    claw.wait_ready();
    let asked = claude.asked("first words");
    assert_eq!(claude.starts().len(), 1, "{transport}: it was started again unasked");
    claude.talk(&mut claw, "second words", "Whole.");
    assert_eq!(claude.asked("first words"), asked, "{transport}: the prompt was sent again");
    assert_eq!(claude.asked("second words"), 1, "{transport}");
}

#[test]
fn a_death_with_a_prompt_that_may_have_run_is_told_and_nothing_is_repeated() {
    at_once(["pty", "stream"], |transport| check_told("die-at-prompt", transport, "332"));
}

#[test]
fn a_death_in_the_middle_of_text_is_told_and_the_next_prompt_is_answered() {
    at_once(["pty", "stream"], |transport| check_told("die-in-turn", transport, "197"));
}

#[test]
fn a_death_before_the_prompt_was_sent_is_made_good() {
    let claude = on("pty");
    claude.quirks_of_next_start("die-at-paste");
    let mut claw = claude.start();
    claude.talk(&mut claw, "first words", "Whole.");
    assert_eq!((claude.starts().len(), claude.asked("first words")), (2, 1));
    assert!(!claw.text().contains("ended"), "{}", claw.text());
}

#[test]
fn a_prompt_right_behind_the_death_of_an_idle_worker_is_answered() {
    at_once(["pty", "stream"], |transport| {
        let claude = on(transport);
        let mut claw = claude.start();
        claude.talk(&mut claw, "first words", "One.");
        claude.kill_cli();
        // Whether its end is known to us already must not matter.
        claude.talk(&mut claw, "second words", "Two.");
        assert_eq!(claude.asked("second words"), 1, "{transport}");
        assert_eq!(claude.starts().len(), 2, "{transport}");
    });
}

#[test]
fn a_start_that_worked_gives_the_next_one_all_its_tries() {
    let claude = on("pty");
    claude.quirks_of_next_start("exit-at-start=out of order");
    let mut claw = claude.start();
    claude.talk(&mut claw, "first words", "One.");
    assert_eq!(claude.starts().len(), 2);
    // Now it fails as often as it is tried.
    claude.set_quirks("exit-at-start=out of order");
    claude.kill_cli();
    claw.wait_for("The next prompt starts it again");
    claw.say("second words");
    claw.wait_for("retry 1/3");
    claw.wait_for("retry 2/3");
    claw.wait_for("ended at its start (exit status 1): out of order");
    claw.wait_ready();
    assert_eq!(claude.starts().len(), 5);
    claude.set_quirks("");
    claude.talk(&mut claw, "third words", "Three.");
    assert_eq!((claude.asked("second words"), claude.asked("third words")), (0, 1));
}
