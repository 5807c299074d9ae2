//! What can go wrong between a request and the end of its answer.

use std::time::{Duration, Instant};

use claw_runtime::api::{ApiError, AssistantTurn, CutCause, StopReason};
use claw_runtime::session::PartialReason;
use claw_tests::mock_api::{Gate, MessagesStream, PATIENCE, Reply};

use super::stage::{Answer, Stage, blocks, text, tool_use};

#[track_caller]
fn cut(answer: Answer) -> (CutCause, AssistantTurn) {
    match answer {
        Err(ApiError::StreamCut { cause, partial }) => (cause, *partial),
        other => panic!("not a cut: {other:?}"),
    }
}

#[track_caller]
fn check_partial(partial: &AssistantTurn, expected: &str, reason: PartialReason) {
    assert_eq!(blocks(partial), [text(expected)]);
    assert_eq!(partial.messages[0].partial, Some(reason));
}

#[test]
fn an_answer_without_its_end_is_a_cut_and_keeps_what_had_come() {
    // The body ends as HTTP says, or in its middle: without `message_stop` neither is a whole answer.
    let half =
        || MessagesStream::new().usage_start(7, 0, 0).text(&["half"]).message_delta("end_turn", 3);
    for reply in [half().reply(), half().reply().close()] {
        let stage = Stage::with([reply]);
        let (cause, partial) = cut(stage.ask());
        assert_eq!(cause, CutCause::ConnectionClosed);
        check_partial(&partial, "half", PartialReason::Cut);
        assert_eq!(partial.messages[0].usage.unwrap().input_tokens, 7);
        stage.check_events(&["text half"]);
        assert_eq!(
            stage.api.requests().len(),
            1,
            "an answer that was shown is not asked for again"
        );
    }
}

#[test]
fn a_reset_connection_is_a_cut_and_keeps_what_had_come() {
    let gate = Gate::new();
    let stage = Stage::with([MessagesStream::new().text(&["half"]).wait(&gate).reply().reset()]);
    let answer = stage.start(stage.anthropic());
    stage.sink.wait_for("text", 1);
    gate.release();
    let (cause, partial) = cut(answer.join().unwrap());
    assert!(matches!(cause, CutCause::Transport(_) | CutCause::ConnectionClosed), "{cause:?}");
    check_partial(&partial, "half", PartialReason::Cut);
}

#[test]
fn a_call_that_the_cut_hit_is_told_as_incomplete_and_not_kept() {
    let stage = Stage::with([MessagesStream::new()
        .tool_use("t1", "bash", r#"{"command":"ls"}"#)
        .open_tool_use("t2", "write_file")
        .input_delta(1, r#"{"path":"#)
        .reply()
        .close()]);
    let (_, partial) = cut(stage.ask());
    stage.check_events(&[
        "call t1 bash",
        r#"called t1 bash {"command":"ls"}"#,
        "call t2 write_file",
        "incomplete t2 write_file",
    ]);
    assert_eq!(blocks(&partial), [tool_use("t1", "bash", r#"{"command":"ls"}"#)]);
    assert_eq!(partial.messages[0].partial, Some(PartialReason::Cut));
}

#[test]
fn a_cut_before_anything_was_said_leaves_no_message() {
    let stage = Stage::with([MessagesStream::new().ping().reply().close()]);
    let (cause, partial) = cut(stage.ask());
    assert_eq!(cause, CutCause::ConnectionClosed);
    assert_eq!(partial.messages, []);
    assert_eq!(stage.api.requests().len(), 1, "the answer had begun: it is not asked for again");
}

#[test]
fn an_overload_inside_the_stream_is_retried_while_nothing_was_shown() {
    let stage = Stage::with([
        MessagesStream::new().ping().error("overloaded_error", "Overloaded").reply(),
        MessagesStream::say("ok"),
    ]);
    let turn = stage.ask().unwrap();
    assert_eq!(blocks(&turn), [text("ok")]);
    stage.check_events(&[
        "retry 1/2 in 1ms: the provider is overloaded: Overloaded",
        "text ok",
        "stop EndTurn",
    ]);
}

#[test]
fn an_error_inside_the_stream_is_a_cut_in_the_providers_words_once_something_was_shown() {
    for kind in ["overloaded_error", "api_error", "brand_new_error"] {
        let stage =
            Stage::with([MessagesStream::new().text(&["half"]).error(kind, "Sorry").reply()]);
        let answer = stage.ask();
        let message = answer.as_ref().unwrap_err().to_string();
        assert!(message.contains("Sorry") && message.contains("cut off"), "{message}");
        let (cause, partial) = cut(answer);
        assert!(matches!(cause, CutCause::Provider { .. }), "{cause:?}");
        check_partial(&partial, "half", PartialReason::Cut);
        assert_eq!(stage.api.requests().len(), 1);
    }
}

#[test]
fn an_unknown_error_inside_the_stream_is_shown_and_not_retried() {
    let stage = Stage::with([MessagesStream::new().error("brand_new_error", "Sorry").reply()]);
    let (cause, _) = cut(stage.ask());
    let expected =
        CutCause::Provider { kind: "brand_new_error".to_owned(), message: "Sorry".to_owned() };
    assert_eq!(cause, expected);
}

#[test]
fn silence_is_told_again_and_again_also_when_keep_alives_come() {
    let ping = Gate::new();
    let pings = (0..3).fold(MessagesStream::new().text(&["half"]), |stream, _| {
        stream.wait(&ping).ping().bytes(": comment\n\n")
    });
    for reply in [MessagesStream::new().text(&["half"]).reply(), pings.reply()] {
        let mut stage = Stage::with([reply.stall()]);
        stage.timing.stall_notice_after = Duration::from_millis(20);
        stage.timing.stall_notice_every = Duration::from_millis(10);
        let answer = stage.start(stage.anthropic());
        for notices in 1..=5 {
            stage.sink.wait_for("stalled", notices);
            ping.release();
        }
        stage.cancel.cancel();
        check_partial(&answer.join().unwrap().unwrap(), "half", PartialReason::Cancelled);
    }
}

#[test]
fn silence_that_lasts_is_an_idle_cut_and_the_request_is_not_sent_again() {
    let idle = Duration::from_millis(100);
    let silent = |reply: Reply| {
        let mut stage = Stage::with([reply]);
        stage.timing.idle_timeout = idle;
        let (cause, partial) = cut(stage.ask());
        assert_eq!(cause, CutCause::Idle(idle));
        stage.api.wait_for_hang_ups(1);
        assert_eq!(stage.api.requests().len(), 1);
        partial
    };
    let partial = silent(MessagesStream::new().text(&["half"]).reply().stall());
    check_partial(&partial, "half", PartialReason::Cut);
    let partial = silent(Reply::stream().wait_before_head(&Gate::new()));
    assert_eq!(partial.messages, []);
}

#[test]
fn keep_alives_are_not_data() {
    let gate = Gate::new();
    let pings = (0..100_000)
        .fold(MessagesStream::new().text(&["half"]), |stream, _| stream.wait(&gate).ping());
    let mut stage = Stage::with([pings.reply()]);
    stage.timing.idle_timeout = Duration::from_millis(200);
    let answer = stage.start(stage.anthropic());
    // Pings keep coming until the client has had enough of them.
    let started = Instant::now();
    while !answer.is_finished() {
        gate.release();
        std::thread::yield_now();
        assert!(started.elapsed() < PATIENCE, "pings kept the stream alive");
    }
    let (cause, partial) = cut(answer.join().unwrap());
    assert_eq!(cause, CutCause::Idle(Duration::from_millis(200)));
    check_partial(&partial, "half", PartialReason::Cut);
}

#[test]
fn a_long_answer_that_keeps_coming_has_no_limit() {
    let gate = Gate::new();
    let rounds = 7;
    let long = (0..rounds).fold(MessagesStream::new().open_text(&[]), |stream, _| {
        stream.text_delta(0, "x").wait(&gate)
    });
    let mut stage = Stage::with([long.block_stop(0).stop("end_turn", 5).reply()]);
    stage.timing.idle_timeout = Duration::from_millis(1_200);
    stage.timing.stall_notice_after = Duration::from_millis(200);
    let started = Instant::now();
    let answer = stage.start(stage.anthropic());
    for round in 1..=rounds {
        stage.sink.wait_for("stalled", round);
        gate.release();
    }
    let turn = answer.join().unwrap().unwrap();
    assert!(started.elapsed() > stage.timing.idle_timeout, "the answer outlasted the idle limit");
    assert_eq!(blocks(&turn), [text(&"x".repeat(rounds))]);
}

#[test]
fn a_slow_first_byte_never_sends_the_request_twice() {
    let gate = Gate::new();
    let mut stage = Stage::with([MessagesStream::say("ok").wait_before_head(&gate)]);
    stage.timing.stall_notice_after = Duration::from_millis(10);
    stage.timing.stall_notice_every = Duration::from_millis(10);
    let answer = stage.start(stage.anthropic());
    stage.sink.wait_for("stalled", 5);
    gate.release();
    answer.join().unwrap().unwrap();
    let paths: Vec<String> = stage.api.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/v1/messages"], "one request: none twice, and no tokens counted before");
}

#[test]
fn what_may_pass_is_retried_and_told_with_attempt_wait_and_reason() {
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        let stage = Stage::with([
            Reply::error(status, "some_error", "later"),
            Reply::error(status, "some_error", "later"),
            MessagesStream::say("ok"),
        ]);
        assert_eq!(blocks(&stage.ask().unwrap()), [text("ok")], "{status}");
        let lines = stage.sink.lines();
        assert!(
            lines[0].starts_with("retry 1/2 in 1ms: ") && lines[0].ends_with("later"),
            "{lines:?}"
        );
        assert!(lines[1].starts_with("retry 2/2 in 2ms: "), "{lines:?}");
        assert_eq!(lines[2..], ["text ok", "stop EndTurn"]);
    }
}

#[test]
fn retries_end_with_the_typed_error_and_refusals_are_not_retried() {
    let check = |status: u16, requests: usize, is_expected: fn(&ApiError) -> bool| {
        let stage = Stage::new();
        stage.api.answer(move |_| Some(Reply::error(status, "some_error", "why")));
        let error = stage.ask().unwrap_err();
        assert!(is_expected(&error), "{status}: {error:?}");
        assert!(error.to_string().contains("why"), "{error}");
        assert_eq!(stage.api.requests().len(), requests, "{status}");
    };
    check(429, 3, |error| matches!(error, ApiError::RateLimited { .. }));
    check(529, 3, |error| matches!(error, ApiError::Overloaded { .. }));
    check(503, 3, |error| matches!(error, ApiError::Server { status: 503, .. }));
    check(401, 1, |error| matches!(error, ApiError::Auth { status: 401, .. }));
    check(403, 1, |error| matches!(error, ApiError::Auth { status: 403, .. }));
    check(400, 1, |error| matches!(error, ApiError::Rejected { status: 400, .. }));
    check(404, 1, |error| matches!(error, ApiError::Rejected { status: 404, .. }));
    check(307, 1, |error| matches!(error, ApiError::Rejected { status: 307, .. }));
}

#[test]
fn the_providers_own_wait_is_honoured_and_an_endless_one_is_reported() {
    let limited = |after: &str| {
        Reply::error(429, "rate_limit_error", "slow down").header("retry-after", after)
    };
    let stage = Stage::with([limited("0.03"), MessagesStream::say("ok")]);
    let started = Instant::now();
    stage.ask().unwrap();
    assert!(started.elapsed() >= Duration::from_millis(30));
    assert_eq!(stage.sink.lines()[0], "retry 1/2 in 30ms: rate limited by the provider: slow down");

    let stage = Stage::with([limited("86400")]);
    let Err(ApiError::RateLimited { retry_after, .. }) = stage.ask() else { panic!("not limited") };
    assert_eq!(retry_after, Some(Duration::from_hours(24)));
    stage.check_events(&[]);
}

#[test]
fn a_connection_that_fails_before_the_first_byte_is_retried() {
    let stage = Stage::with([Reply::no_answer(), MessagesStream::say("ok")]);
    assert_eq!(blocks(&stage.ask().unwrap()), [text("ok")]);
    assert!(stage.sink.lines()[0].starts_with("retry 1/2 in 1ms: cannot reach http://127.0.0.1:"));

    // Nobody listens on the port of a server that is gone.
    let mut stage = Stage::new();
    stage.retry.max_retries = 1;
    let client = stage.anthropic();
    let gone = std::mem::replace(&mut stage.api, claw_tests::mock_api::MockApi::start());
    let address = gone.base_url().trim_start_matches("http://").to_owned();
    drop(gone);
    while std::net::TcpStream::connect(&address).is_ok() {
        std::thread::yield_now();
    }
    let error = stage.start(client).join().unwrap().unwrap_err();
    assert!(matches!(error, ApiError::Transport { .. }), "{error:?}");
    assert!(error.to_string().contains(&address), "{error}");
    assert_eq!(stage.sink.lines().len(), 1, "told once, for the one retry");
}

#[test]
fn a_request_that_does_not_fit_is_typed_by_status_and_type_and_never_retried() {
    let check = |reply: Reply, full: bool| {
        let stage = Stage::with([reply]);
        let error = stage.ask().unwrap_err();
        assert_eq!(matches!(error, ApiError::ContextWindowExceeded { .. }), full, "{error:?}");
        assert_eq!(stage.api.requests().len(), 1);
    };
    let long = "prompt is too long: 210000 tokens > 200000 maximum";
    check(Reply::error(400, "invalid_request_error", long), true);
    check(Reply::error(413, "request_too_large", "Request exceeds the maximum size"), true);
    check(Reply::body(413, "text/html", "<html>413</html>"), true);
    check(MessagesStream::new().stop("model_context_window_exceeded", 0).reply(), true);
    check(Reply::error(400, "invalid_request_error", "context window prompt is too long"), false);
    check(Reply::body(400, "text/html", "error decoding response body"), false);

    // With a part of an answer it is a stop reason: the part is kept.
    let stage = Stage::with([MessagesStream::new()
        .text(&["half"])
        .stop("model_context_window_exceeded", 9)
        .reply()]);
    let turn = stage.ask().unwrap();
    assert_eq!(blocks(&turn), [text("half")]);
    let expected = StopReason::Other("model_context_window_exceeded".to_owned());
    assert_eq!(turn.stop_reason, expected);
}

#[test]
fn what_is_no_stream_is_reported_as_such() {
    for (kind, body) in [("text/html", "<html>log in</html>"), ("application/json", "{}")] {
        let stage = Stage::with([Reply::body(200, kind, body)]);
        let error = stage.ask().unwrap_err();
        assert!(matches!(error, ApiError::Protocol { .. }), "{error:?}");
        assert!(error.to_string().contains(kind), "{error}");
    }
    let stage = Stage::with([Reply::stream().event("message_start", "{]")]);
    assert!(matches!(stage.ask().unwrap_err(), ApiError::Protocol { .. }));
    // Nonsense in the middle of an answer cuts it; what had come is kept.
    let broken = MessagesStream::new().text(&["half"]).reply().event("content_block_delta", "{]");
    let (cause, partial) = cut(Stage::with([broken]).ask());
    assert!(matches!(cause, CutCause::Transport(_)), "{cause:?}");
    check_partial(&partial, "half", PartialReason::Cut);
}

#[test]
fn a_line_without_end_is_cut_before_it_fills_the_memory() {
    let piece = vec![b'x'; 8 * 1024 * 1024];
    let endless = (0..6)
        .fold(MessagesStream::new().text(&["half"]).reply(), |reply, _| reply.bytes(piece.clone()));
    let (cause, partial) = cut(Stage::with([endless.stall()]).ask());
    assert!(cause.to_string().contains("32 MiB"), "{cause}");
    check_partial(&partial, "half", PartialReason::Cut);
}

/// Starts, waits until `ready`, cancels, and returns the turn.
fn cancelled(stage: &Stage, ready: impl FnOnce(&Stage)) -> AssistantTurn {
    let answer = stage.start(stage.anthropic());
    ready(stage);
    let asked = Instant::now();
    stage.cancel.cancel();
    let turn = answer.join().unwrap().unwrap();
    // The promise is 100 ms; the bound only catches a wait that is not interrupted.
    assert!(asked.elapsed() < Duration::from_secs(5));
    assert_eq!(turn.stop_reason, StopReason::Cancelled);
    turn
}

#[test]
fn cancelling_ends_at_once_with_what_had_come_and_drops_the_connection() {
    let half = MessagesStream::new().text(&["half"]).open_tool_use("t1", "bash").reply().stall();
    let stage = Stage::with([half]);
    let turn = cancelled(&stage, |stage| stage.sink.wait_for("call t1", 1));
    check_partial(&turn, "half", PartialReason::Cancelled);
    stage.check_events(&["text half", "call t1 bash", "incomplete t1 bash"]);
    stage.api.wait_for_hang_ups(1);
}

#[test]
fn cancelling_works_before_the_first_byte_and_in_a_refusal() {
    let stage = Stage::with([Reply::stream().wait_before_head(&Gate::new())]);
    let turn = cancelled(&stage, |stage| stage.api.wait_for_requests(1));
    assert_eq!(turn.messages, []);
    stage.api.wait_for_hang_ups(1);

    let gate = Gate::new();
    let stage = Stage::with([Reply::error(500, "api_error", "x").wait(&gate)]);
    let turn = cancelled(&stage, |_| gate.wait_reached(1));
    assert_eq!(turn.messages, []);
}

#[test]
fn cancelling_ends_the_wait_for_a_retry() {
    let stage =
        Stage::with([Reply::error(529, "overloaded_error", "x").header("retry-after", "5")]);
    let started = Instant::now();
    cancelled(&stage, |stage| stage.sink.wait_for("retry", 1));
    assert!(started.elapsed() < Duration::from_secs(4), "the wait was sat out");
    assert_eq!(stage.api.requests().len(), 1);
}

#[test]
fn a_request_that_is_cancelled_before_it_starts_sends_nothing() {
    let stage = Stage::new();
    stage.cancel.cancel();
    assert_eq!(stage.ask().unwrap().stop_reason, StopReason::Cancelled);
    assert_eq!(stage.api.requests().len(), 0);
}
