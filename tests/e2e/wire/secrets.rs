//! The key is in the header of a request and nowhere else.

use claw_tests::mock_api::{ChatStream, MessagesStream, Reply};

use super::stage::{Answer, KEY, Stage};

#[track_caller]
fn check_hidden(stage: &Stage, answer: &Answer) {
    let shown = format!("{:?} {:?}", stage.sink.lines(), answer);
    assert!(!shown.contains(KEY), "{shown}");
    if let Err(error) = answer {
        assert!(!error.to_string().contains(KEY), "{error}");
    }
}

/// Every way to fail, in words that repeat the key.
fn failures() -> Vec<Reply> {
    let echo = format!("Incorrect API key provided: {KEY}. \u{1b}[31mGo away");
    let mut failures: Vec<Reply> = [400, 401, 403, 404, 413, 429, 500, 529]
        .into_iter()
        .map(|status| Reply::error(status, "some_error", &echo))
        .collect();
    failures.push(Reply::body(401, "text/plain", echo.clone()));
    failures.push(Reply::body(400, "application/json", format!(r#"{{"error":"{KEY}"}}"#)));
    failures.push(MessagesStream::new().error("overloaded_error", &echo).reply());
    failures.push(MessagesStream::new().error(KEY, &echo).reply());
    failures.push(MessagesStream::new().text(&["x"]).error("api_error", &echo).reply());
    failures.push(ChatStream::new().data(&format!(r#"{{"error":{{"message":"{KEY}"}}}}"#)).reply());
    failures.push(Reply::stream().event("message_start", KEY));
    failures.push(Reply::body(200, "text/html", echo));
    failures.push(Reply::no_answer());
    failures.push(MessagesStream::new().text(&["x"]).reply().close());
    failures
}

#[test]
fn the_key_is_in_no_event_no_error_and_no_debug() {
    for failure in failures() {
        for ask in [Stage::ask, Stage::ask_chat] {
            let stage = Stage::new();
            let reply = failure.clone();
            stage.api.answer(move |_| Some(reply.clone()));
            let answer = ask(&stage);
            assert!(answer.is_err(), "{answer:?}");
            check_hidden(&stage, &answer);
            assert!(!stage.api.requests().is_empty());
        }
    }
    let stage = Stage::new();
    let debugs = format!("{:?} {:?}", stage.anthropic(), stage.openai());
    assert!(!debugs.contains(KEY), "{debugs}");
}

#[test]
fn the_key_is_not_carried_to_where_a_redirect_points() {
    let elsewhere = Stage::new();
    let target = format!("{}/v1/messages", elsewhere.api.base_url());
    for ask in [Stage::ask, Stage::ask_chat] {
        let stage =
            Stage::with([Reply::body(307, "text/plain", "moved").header("location", &target)]);
        assert!(ask(&stage).is_err());
    }
    assert_eq!(elsewhere.api.connections(), 0);
}

#[test]
fn messages_of_a_provider_are_one_bounded_line_without_controls() {
    let long = format!("\u{1b}]0;title\u{7}{}\r\nnext", "x".repeat(1_000_000));
    let stage = Stage::with([Reply::body(400, "text/plain", long)]);
    let message = stage.ask().unwrap_err().to_string();
    assert!(message.chars().count() < 1_000, "{} characters", message.len());
    assert!(!message.contains(|c: char| c.is_control()), "{message:?}");
}
