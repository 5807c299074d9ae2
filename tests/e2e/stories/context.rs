//! The context window: room is made in sight, and the prompt stays in every request once.

use claw_tests::mock_api::{MessagesStream, MockApi, Reply};
use claw_tests::story::{beside, open, prompts};

#[test]
fn a_full_window_is_compacted_in_sight_and_the_prompt_is_sent_once_in_each_round() {
    let api = MockApi::start();
    let mut claw = open(&api);
    for number in 1..=4 {
        api.push(MessagesStream::say(&format!("Answer {number}. {}", "words ".repeat(100))));
        claw.say(&format!("prompt {number}"));
        claw.wait_for(&format!("Answer {number}."));
        claw.wait_ready();
    }
    let full = "prompt is too long: 210000 tokens > 200000 maximum";
    api.push(Reply::error(400, "invalid_request_error", full));
    api.push(MessagesStream::say("It fits now."));
    claw.say("the one that does not fit");
    claw.wait_for("Compacted (the context was full)");
    claw.wait_for("It fits now.");
    claw.wait_ready();
    let requests = api.requests();
    assert_eq!(requests.len(), 6);
    for request in &requests[4..] {
        let prompts = prompts(request);
        let times = prompts.iter().filter(|prompt| *prompt == "the one that does not fit").count();
        assert_eq!(times, 1, "{prompts:?}");
    }
    assert!(prompts(&requests[5]).len() < prompts(&requests[4]).len());
}

#[test]
fn a_window_that_stays_full_ends_with_a_way_out() {
    let api = MockApi::start();
    let full = "prompt is too long: 210000 tokens > 200000 maximum";
    api.answer(move |_| Some(Reply::error(400, "invalid_request_error", full)));
    let mut claw = open(&api);
    claw.say("too long by itself");
    claw.wait_for("does not fit the model's context window");
    claw.wait_for("/clear");
    claw.wait_ready();
    assert!(api.requests().len() <= 5, "{} requests", api.requests().len());
}

#[test]
fn a_context_that_grows_past_the_threshold_is_compacted_once_and_said() {
    let api = MockApi::start();
    let claw = beside(&api).env("CLAUDE_CODE_AUTO_COMPACT_INPUT_TOKENS", "5000");
    let mut claw = claw.start();
    claw.wait_ready();
    for number in 1..=4 {
        // Only the last request is said to be large.
        let size = if number == 4 { 6000 } else { 100 };
        let answer = format!("Answer {number}. {}", "words ".repeat(60));
        let stream = MessagesStream::new().usage_start(size, 0, 0).text(&[&answer]);
        api.push(stream.stop("end_turn", 9).reply());
        claw.say(&format!("prompt {number}"));
        claw.wait_for(&format!("Answer {number}."));
        claw.wait_ready();
    }
    claw.wait_for("Compacted (the context was getting full)");
    let small = MessagesStream::new().usage_start(400, 0, 0).text(&["Small again."]);
    api.push(small.stop("end_turn", 9).reply());
    claw.say("prompt 5");
    claw.wait_for("Small again.");
    claw.wait_ready();
    let screen = claw.text();
    assert_eq!(screen.matches("getting full").count(), 1, "{screen}");
    assert!(!prompts(&api.requests()[4]).iter().any(|prompt| prompt == "prompt 1"));
}
