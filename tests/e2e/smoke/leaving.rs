//! Giving the terminal back: every mode off, the title and the line settings as before, the cursor
//! at the start of a line of the main screen, whatever the program was doing and however it ended.

use std::time::Duration;

use claw_tests::harness::{Harness, Running};
use rustix::process::Signal;

/// What the program is doing when the end comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Streaming,
    Dialog,
    Editor,
}

const ON_SCREEN: [State; 3] = [State::Idle, State::Streaming, State::Dialog];
const ALL: [State; 4] = [State::Idle, State::Streaming, State::Dialog, State::Editor];

fn harness() -> Harness {
    let harness = Harness::new().arg("--backend").arg("demo");
    let editor = harness.script("editor", "#!/bin/sh\necho editor open\nread -r line\n");
    harness.env("EDITOR", editor.to_string_lossy())
}

fn reach(state: State) -> Running {
    reach_with(state, harness())
}

fn reach_with(state: State, harness: Harness) -> Running {
    let mut claw = harness.start();
    claw.wait_for("ready");
    match state {
        State::Idle => {}
        State::Streaming => {
            claw.send("show me everything\r");
            claw.wait_for("esc stops");
        }
        State::Dialog => {
            claw.send("please run a command\r");
            claw.wait_for("Allow once");
        }
        State::Editor => {
            claw.send("a draft\x07");
            claw.wait_for("editor open");
        }
    }
    claw
}

/// Ends it by a signal that it can hear.
#[track_caller]
fn check(state: State, signal: Signal, status: u32) {
    let claw = reach(state);
    claw.signal(signal);
    assert_eq!(claw.wait_back(), status, "{state:?}");
    claw.assert_terminal_restored();
}

/// Ends it by a signal that leaves it no last word.
#[track_caller]
fn check_crash(state: State, signal: Signal, status: u32) {
    let claw = reach(state);
    claw.wait_until("the guard", |_| {
        claw.children_of_claw().iter().any(|(_, arguments)| arguments.contains("terminal-guard"))
    });
    // The first SIGSEGV only takes away the handler that looks for an overflowing stack; a real
    // fault would come again by itself.
    while claw.is_alive() {
        claw.signal(signal);
    }
    assert_eq!(claw.wait_back(), status, "{state:?}");
    claw.assert_modes_restored();
}

#[test]
fn the_quit_command_gives_the_terminal_back_and_says_how_to_return() {
    let mut claw = reach(State::Idle);
    claw.send("hello\r");
    claw.wait_for("Welcome to claw");
    claw.wait_for("ready");
    claw.send("/quit\r");
    assert_eq!(claw.wait_back(), 0);
    claw.assert_terminal_restored();
    let text = claw.text();
    assert!(text.contains("Welcome to claw"), "{text}");
    assert!(text.contains("claw tui --resume"), "{text}");
}

#[test]
fn ctrl_c_twice_gives_the_terminal_back() {
    for state in ON_SCREEN {
        let mut claw = reach(state);
        claw.send("\x03\x03");
        assert_eq!(claw.wait_back(), 0, "{state:?}");
        claw.assert_terminal_restored();
    }
}

#[test]
fn sigterm_gives_the_terminal_back() {
    for state in ALL {
        check(state, Signal::TERM, 143);
    }
}

#[test]
fn sighup_gives_the_terminal_back() {
    for state in ALL {
        check(state, Signal::HUP, 129);
    }
}

#[test]
fn sigint_from_outside_gives_the_terminal_back() {
    for state in ON_SCREEN {
        check(state, Signal::INT, 130);
    }
}

#[test]
fn a_crash_gives_the_terminal_back_from_outside() {
    for state in ALL {
        check_crash(state, Signal::SEGV, 139);
    }
}

#[test]
fn sigkill_gives_the_terminal_back_from_outside() {
    for state in ALL {
        check_crash(state, Signal::KILL, 137);
    }
}

#[test]
fn a_panic_speaks_on_the_normal_screen() {
    let mut claw = reach_with(State::Idle, harness().env("CLAW_TEST_PANIC", "now panic"));
    claw.send("now panic\r");
    assert_eq!(claw.wait_back(), 101);
    claw.assert_terminal_restored();
    let text = claw.text();
    assert!(text.contains("panicked at"), "{text}");
}

#[test]
fn a_terminal_that_goes_away_ends_the_program() {
    for state in ALL {
        let mut claw = reach(state);
        assert!(claw.hang_up(Duration::from_secs(10)), "{state:?}: still running");
    }
}

#[test]
fn a_terminal_that_stopped_reading_cannot_hold_the_program() {
    let claw = reach(State::Idle);
    claw.stop_reading(true);
    // Each size is a whole picture; together they are more than any terminal keeps for later.
    for step in 0..200_u16 {
        claw.resize(200 + step % 2, 60);
        claw.bytes_within(Duration::from_millis(5));
    }
    claw.signal(Signal::TERM);
    assert!(claw.ends_within(Duration::from_secs(10)));
    claw.stop_reading(false);
    assert_eq!(claw.wait_back(), 143);
    claw.assert_modes_restored();
}

#[test]
fn ctrl_z_gives_the_shell_the_terminal_and_fg_brings_everything_back() {
    let mut claw = harness().start_and_then("read -r _; fg; echo \"[back $?]\"");
    claw.wait_for("ready");
    claw.send("a draft\x1a");
    // 128 and SIGSTOP: how a shell reports a job that stopped.
    assert_eq!(claw.wait_back(), 147);
    claw.assert_terminal_restored();
    claw.resize(90, 20);
    claw.send("\n");
    claw.wait_for("a draft");
    claw.look(|seen| {
        assert!([1049, 2004, 1004, 25].iter().all(|mode| seen.screen.modes.has(*mode)));
        assert_eq!(seen.screen.modes.keyboard[1], [1]);
    });
    // Keys and sizes work as before.
    claw.send(" goes on");
    claw.wait_for("a draft goes on");
    claw.send("\x03");
    claw.wait_gone("a draft goes on");
    claw.send("\x04");
    claw.wait_for("[back 0]");
    claw.assert_terminal_restored();
}

#[test]
fn a_suspended_program_that_is_ended_leaves_the_shell_alone() {
    for signal in ["TERM", "HUP", "KILL"] {
        let afterwards = format!(
            "kill -{signal} %1; while kill -0 %1; do sleep 0.02; done 2>/dev/null; echo '[gone]'"
        );
        let mut claw = harness().start_and_then(&afterwards);
        claw.wait_for("ready");
        claw.send("\x1a");
        claw.wait_for("[gone]");
        claw.assert_terminal_restored();
    }
}

#[test]
fn the_external_editor_gets_a_clean_terminal_and_gives_the_draft_back() {
    let harness = Harness::new().arg("--backend").arg("demo");
    let editor = harness.script(
        "editor",
        "#!/bin/sh\necho editor open\nread -r line\nprintf '%s from the editor' \"$line\" >\"$1\"\n",
    );
    let mut claw = harness.env("VISUAL", editor.to_string_lossy()).start();
    claw.wait_for("ready");
    claw.send("a draft\x07");
    claw.wait_for("editor open");
    claw.assert_terminal_restored();
    // Every byte belongs to the editor now.
    claw.send("typed there\n");
    claw.wait_for("typed there from the editor");
    claw.look(|seen| assert!(seen.screen.modes.has(1049) && seen.screen.modes.has(2004)));
    claw.send(" and here");
    claw.wait_for("from the editor and here");
}

#[test]
fn an_editor_that_fails_keeps_the_draft() {
    let harness = Harness::new().arg("--backend").arg("demo").env("EDITOR", "false");
    let mut claw = harness.start();
    claw.wait_for("ready");
    claw.send("a draft\x07");
    claw.wait_for("nothing has changed");
    claw.wait_for("a draft");
}
