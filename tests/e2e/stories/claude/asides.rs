//! What the CLI does besides answering: turns of its own, limits, notices.

use claw_tests::claude_backend::ClaudeBackend;
use claw_tests::mock_api::{Gate, MessagesStream, Reply};
use claw_tests::story::prompts;
use claw_tests::worker_stories::script_agent_asks;

#[test]
fn a_turn_that_nobody_asked_for_is_shown_as_such_and_is_no_answer() {
    let claude = ClaudeBackend::new().quirks("unasked-between");
    let mut claw = claude.start();
    claude.api.answer(|request| {
        Some(claw_tests::claude::housekeeping(request).unwrap_or_else(|| {
            let said = request.last_user_text();
            let answer =
                if said.contains("task-notification") { "By itself." } else { "Asked for." };
            MessagesStream::say(answer)
        }))
    });
    claw.say("one");
    claw.wait_for("Asked for.");
    claw.wait_for("Claude Code goes on by itself");
    claw.wait_for("By itself.");
    claw.wait_ready();
    claw.say("two");
    claw.wait_until("the second answer", |seen| {
        seen.screen.text().matches("Asked for.").count() == 2
    });
    claw.wait_ready();
    let saved: String = claw.session_files().into_iter().map(|(_, text)| text).collect();
    assert!(saved.contains("By itself."), "{saved}");
}

#[test]
fn a_prompt_during_a_turn_that_nobody_asked_for_has_its_own_answer() {
    let claude = ClaudeBackend::new().quirks("unasked-between");
    let gate = Gate::new();
    let wait = gate.clone();
    claude.api.answer(move |request| {
        Some(claw_tests::claude::housekeeping(request).unwrap_or_else(|| {
            let said = request.last_user_text();
            if said.contains("task-notification") {
                let talk = MessagesStream::new().open_text(&["By the way."]).wait(&wait);
                talk.block_stop(0).stop("end_turn", 5).reply()
            } else {
                MessagesStream::say(&format!("Answer to {said}."))
            }
        }))
    });
    let mut claw = claude.start();
    claw.say("one");
    claw.wait_for("Answer to one.");
    claw.wait_for("By the way.");
    claw.say("two");
    gate.open();
    claw.wait_for("Answer to two.");
    claw.wait_ready();
    let text = claw.text();
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words} in\n{text}"));
    assert!(at("goes on by itself") < at("By the way."), "{text}");
    assert!(at("By the way.") < at("Answer to two."), "{text}");
    assert_eq!(text.matches("By the way.").count(), 1, "{text}");
    assert_eq!(claude.asked("two"), 1);
}

#[test]
fn an_account_that_is_close_to_its_limit_says_so_once_and_the_turn_goes_on() {
    let claude = ClaudeBackend::new().with_account();
    let mut claw = claude.start();
    for words in ["First.", "Second."] {
        let answer = MessagesStream::say(words)
            .header("anthropic-ratelimit-unified-status", "allowed_warning")
            .header("anthropic-ratelimit-unified-reset", "1893456000")
            .header("anthropic-ratelimit-unified-representative-claim", "five_hour");
        claude.api.push(answer);
        claw.say("go on");
        claw.wait_for(words);
        claw.wait_ready();
    }
    let text = claw.text();
    assert_eq!(text.matches("The account is close to its 5-hour limit; it").count(), 1, "{text}");
}

#[test]
fn the_limit_of_an_account_says_when_it_ends_and_is_not_waited_for_by_the_cli() {
    let claude = ClaudeBackend::new().with_account().quirks("limit-continue");
    let mut claw = claude.start();
    let limited = Reply::error(
        429,
        "rate_limit_error",
        "This request would exceed your account's rate limit.",
    )
    .header("anthropic-ratelimit-unified-status", "rejected")
    .header("anthropic-ratelimit-unified-reset", "1893456000")
    .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
    .header("x-should-retry", "false");
    claude.api.push(limited);
    claw.say("begin");
    claw.wait_for("The account's 5-hour limit is reached; it resets on");
    claw.wait_ready();
    let asked = claude.questions().len();
    claude.talk(&mut claw, "later", "Open again.");
    let all = claude.questions();
    assert_eq!(all.len(), asked + 1, "the CLI did not go on by itself");
    assert!(!prompts(all.last().unwrap()).concat().contains("Continue from where you left off"));
}

#[test]
fn a_sub_agent_in_the_background_may_ask_on_when_the_turn_is_over() {
    for setting in ["pty", "stream"] {
        let claude = ClaudeBackend::new().setting("transport", setting);
        let gate = Gate::new();
        script_agent_asks(&claude.api, &gate);
        let mut claw = claude.start();
        claw.say("delegate it");
        claw.wait_for("Bash asks");
        claw.wait_for("sub-agent");
        gate.open();
        claw.wait_for("It works on it.");
        claw.wait_for("waiting for your permission");
        assert!(!claw.workspace().join("made.txt").exists());
        claw.allow_once();
        claw.wait_for("It has reported.");
        claw.wait_ready();
        assert!(claw.workspace().join("made.txt").exists());
    }
}
