//! What the screen does while the program runs.

use std::time::Duration;

use claw_tests::harness::{Harness, Running};
use claw_tests::mock_api::{Gate, MessagesStream, MockApi};

fn start(harness: Harness) -> Running {
    let claw = harness.arg("--backend").arg("demo").start();
    claw.wait_for("ready");
    claw
}

#[test]
fn a_prompt_is_answered_on_the_screen() {
    let mut claw = start(Harness::new());
    claw.send("hello\r");
    claw.wait_for("Welcome to claw");
    claw.wait_for("ready");
}

#[test]
fn keys_are_drawn_while_the_model_is_silent() {
    let api = MockApi::start();
    let gate = Gate::new();
    api.push(
        MessagesStream::new()
            .text(&["Half an"])
            .wait(&gate)
            .text(&[" answer."])
            .stop("end_turn", 4)
            .reply(),
    );
    let mut claw = Harness::new()
        .env("ANTHROPIC_API_KEY", "sk-ant-test")
        .env("ANTHROPIC_BASE_URL", api.base_url())
        .start();
    claw.wait_for("ready");
    claw.send("hello\r");
    claw.wait_for("Half an");
    gate.wait_reached(1);
    for key in "typed meanwhile".chars() {
        claw.send(key.to_string());
    }
    claw.wait_for("typed meanwhile");
    // Still silent: the keys did not wait for the model.
    claw.look(|seen| assert!(!seen.screen.text().contains("answer.")));
    gate.release();
    claw.wait_for("answer.");
}

#[test]
fn an_idle_program_writes_nothing_and_is_not_woken() {
    let mut claw = start(Harness::new());
    claw.send("hello\r");
    claw.wait_for("Welcome to claw");
    claw.wait_for("ready");
    claw.wait_quiet(Duration::from_secs(1));
    let woken = claw.wakeups();
    assert_eq!(claw.bytes_within(Duration::from_secs(2)), 0);
    assert!(claw.wakeups() - woken <= 2, "{} wake-ups", claw.wakeups() - woken);
}

#[test]
fn nothing_clears_the_screen_while_an_answer_streams() {
    let mut claw = start(Harness::new());
    let before = claw.look(|seen| seen.screen.full_clears);
    claw.send("hello\r");
    claw.wait_for("Welcome to claw");
    claw.wait_for("ready");
    claw.look(|seen| {
        assert_eq!(seen.screen.full_clears, before);
        assert_eq!(seen.screen.scrollback_clears, 0);
    });
}

#[test]
fn every_frame_is_one_synchronized_block() {
    let mut claw = start(Harness::new());
    claw.send("hello\r");
    claw.wait_for("Welcome to claw");
    claw.wait_for("ready");
    let log = claw.look(|seen| String::from_utf8_lossy(&seen.log).into_owned());
    let frames = log.split("\x1b[?2026h").skip(1);
    for frame in frames {
        let after = frame.split_once("\x1b[?2026l").map(|(_, after)| after);
        assert_eq!(after, Some(""), "bytes outside a frame");
    }
}

#[test]
fn a_storm_of_sizes_ends_with_the_right_picture() {
    let mut claw = start(Harness::new());
    claw.send("hello\r");
    claw.wait_for("Welcome to claw");
    claw.wait_for("ready");
    claw.send("a draft");
    claw.wait_for("a draft");
    claw.wait_quiet(Duration::from_millis(300));
    let before = claw.text();
    for step in 0..60_u16 {
        claw.resize(20 + (step * 37) % 220, 8 + (step * 13) % 72);
    }
    claw.resize(120, 40);
    claw.wait_until("the same picture", |seen| seen.screen.text() == before);
    claw.wait_quiet(Duration::from_millis(300));
    assert_eq!(claw.text(), before);
}

#[test]
fn a_tiny_window_is_survived_and_recovered_from() {
    let mut claw = start(Harness::new());
    claw.send("a draft");
    claw.wait_for("a draft");
    for (columns, rows) in [(20, 5), (5, 2), (1, 1), (20, 5)] {
        claw.resize(columns, rows);
        claw.wait_quiet(Duration::from_millis(200));
    }
    claw.resize(120, 40);
    claw.wait_for("a draft");
    claw.send(" lives");
    claw.wait_for("a draft lives");
}

#[test]
fn a_pasted_text_of_many_lines_is_not_sent() {
    let mut claw = start(Harness::new());
    claw.paste("first line\nsecond line\n");
    claw.wait_for("second line");
    assert!(!claw.text().contains("esc stops"));
}

#[test]
fn without_colours_no_colour_is_written() {
    let mut claw = start(Harness::new().env("NO_COLOR", "1"));
    claw.send("hello\r");
    claw.wait_for("Welcome to claw");
    claw.wait_for("ready");
    let log = claw.look(|seen| String::from_utf8_lossy(&seen.log).into_owned());
    for colour in ["[38;5;", "[38;2;", "[48;5;", "[48;2;", "\x1b[31m", "\x1b[32m"] {
        assert!(!log.contains(colour), "{colour:?}");
    }
}
