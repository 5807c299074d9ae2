//! Refusals of the provider: said in words with a way out, and the session goes on.

use claw_tests::mock_api::{Gate, MessagesStream, MockApi, Reply};
use claw_tests::story::{KEY, answers, beside, files_below, open, prompts};

/// A refused prompt, what the screen says about it, and that the next prompt works.
fn check(reply: Reply, says: &[&str]) {
    let api = MockApi::start();
    api.push(reply);
    api.push(MessagesStream::say("It works again."));
    let mut claw = open(&api);
    claw.say("one");
    for words in says {
        claw.wait_for(words);
    }
    claw.wait_ready();
    claw.wait_for("/retry sends it again");
    claw.command("/retry", "It works again.");
    claw.wait_ready();
    let requests = api.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(prompts(&requests[1]), ["one"]);
}

#[test]
fn a_refused_key_names_its_variable_and_the_session_goes_on() {
    let reply = Reply::error(401, "authentication_error", "invalid x-api-key");
    check(reply, &["not authorised (401): invalid x-api-key", "Check ANTHROPIC_API_KEY"]);
}

#[test]
fn a_refused_request_says_what_the_provider_said_and_the_session_goes_on() {
    let reply = Reply::error(400, "invalid_request_error", "messages: unheard of");
    check(reply, &["the provider refused the request (400): messages: unheard of"]);
}

/// A provider that says "later": the wait is shown while it lasts, and the answer comes by itself.
fn check_later(status: u16, kind: &str, reason: &str) {
    let api = MockApi::start();
    api.push(Reply::error(status, kind, "slow down").header("retry-after", "1"));
    api.push(MessagesStream::say("Here it is."));
    let mut claw = open(&api);
    claw.say("one");
    claw.wait_until("the retry in the status line", |seen| {
        let text = seen.screen.text();
        let line = text.lines().last().unwrap_or_default();
        line.contains("retry 1/") && line.contains(reason)
    });
    claw.wait_for("Here it is.");
    claw.wait_ready();
    let requests = api.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(prompts(&requests[1]), ["one"]);
}

#[test]
fn a_rate_limit_shows_its_retry_and_goes_on_by_itself() {
    check_later(429, "rate_limit_error", "rate limited");
}

#[test]
fn an_overloaded_provider_shows_its_retry_and_goes_on_by_itself() {
    check_later(529, "overloaded_error", "overloaded");
}

#[test]
fn esc_ends_the_wait_for_a_retry() {
    let api = MockApi::start();
    api.push(Reply::error(429, "rate_limit_error", "slow down").header("retry-after", "300"));
    api.push(MessagesStream::say("Here it is."));
    let mut claw = open(&api);
    claw.say("one");
    claw.wait_for("retry 1/");
    claw.send(claw_tests::story::ESC);
    claw.wait_ready();
    claw.command("/retry", "Here it is.");
    assert_eq!(prompts(&api.requests()[1]), ["one"]);
}

#[test]
fn an_error_in_the_middle_of_an_answer_keeps_what_had_come() {
    let api = MockApi::start();
    let half = MessagesStream::new().open_text(&["Half of it"]);
    api.push(half.error("overloaded_error", "Overloaded").reply());
    api.push(MessagesStream::say("All of it."));
    let mut claw = open(&api);
    claw.say("one");
    claw.wait_for("cut off: the provider reported overloaded_error: Overloaded");
    // The way on is said with it.
    claw.wait_for("/retry");
    claw.wait_for("Half of it");
    claw.wait_ready();
    claw.command("/retry", "All of it.");
    assert_eq!(answers(&api.requests()[1]), Vec::<String>::new());
}

#[test]
fn the_key_never_comes_out_anywhere_but_in_requests() {
    let api = MockApi::start();
    let echo = format!("invalid x-api-key: {KEY}");
    api.push(Reply::error(401, "authentication_error", &echo));
    let input = r#"{"command":"env; printf %s\\n \"$ANTHROPIC_API_KEY\"; echo the end"}"#;
    let look = MessagesStream::new().tool_use("toolu_1", "bash", input);
    api.push(look.stop("tool_use", 9).reply());
    api.push(MessagesStream::say("Looked."));
    let claw = beside(&api).env("CLAW_LOG", "trace");
    let mut claw = claw.start();
    claw.wait_ready();
    claw.say("one");
    claw.wait_for("not authorised (401)");
    claw.wait_ready();
    claw.say("look");
    claw.allow_once();
    claw.wait_for("Looked.");
    claw.wait_ready();
    claw.command("/status", "Permission mode");
    claw.command("/config", "Settings");
    claw.command("/export talk.md", "Conversation written to");
    claw.send("\x18");
    claw.wait_for("the end");
    claw.send([claw_tests::story::CTRL_C, claw_tests::story::CTRL_C].concat());
    claw.wait_back();

    let requests = api.requests();
    assert_eq!(requests[0].header("x-api-key"), Some(KEY));
    for request in &requests {
        assert!(!request.body.to_string().contains(KEY), "the key is in a prompt");
    }
    claw.look(|seen| {
        let out = String::from_utf8_lossy(&seen.log);
        assert!(!out.contains(KEY), "the key came out on the terminal");
        assert!(!out.contains("Error reading the log"), "the logs spoke on the terminal");
    });
    let files = [files_below(claw.workspace()), files_below(claw.home())].concat();
    assert!(files.iter().any(|(path, _)| path.extension().is_some_and(|end| end == "jsonl")));
    assert!(files.iter().any(|(path, _)| path.extension().is_some_and(|end| end == "log")));
    for (path, text) in files {
        assert!(!text.contains(KEY), "the key is in {}", path.display());
    }
}

#[test]
fn a_key_that_the_model_repeats_is_shown_and_kept_nowhere() {
    let api = MockApi::start();
    let (first, second) = KEY.split_at(11);
    let answer = MessagesStream::new().thinking(&["The key is ", first, second, "."], "c2ln");
    let answer = answer.text(&["You gave me ", first, second, "!"]);
    api.push(answer.stop("end_turn", 9).reply());
    let mut claw = open(&api);
    claw.say("what is it?");
    claw.wait_for("You gave me [redacted]!");
    claw.wait_ready();
    claw.send(claw_tests::story::CTRL_O);
    claw.wait_for("The key is [redacted].");
    claw.command("/export talk.md", "Conversation written to");
    claw.send(claw_tests::story::CTRL_D);
    claw.wait_back();
    claw.look(|seen| {
        let out = String::from_utf8_lossy(&seen.log);
        assert!(!out.contains(KEY), "the key came out on the terminal");
    });
    for (path, text) in files_below(claw.workspace()) {
        assert!(!text.contains(KEY), "the key is in {}", path.display());
    }
}

#[test]
fn a_server_that_is_slow_with_its_first_byte_is_asked_once() {
    let api = MockApi::start();
    let gate = Gate::new();
    api.push(MessagesStream::say("At last.").wait_before_head(&gate));
    let mut claw = open(&api);
    claw.say("one");
    api.wait_for_requests(1);
    claw.wait_for("no data for");
    gate.release();
    claw.wait_for("At last.");
    claw.wait_ready();
    assert_eq!(api.requests().len(), 1);
}
