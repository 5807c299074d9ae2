//! The program's arguments, from outside. That this file exists also makes `cargo test --workspace`
//! build the program.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output, Stdio};

fn claw(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_claw"))
        .args(arguments)
        .env("HOME", home.path())
        .env("TERM", "xterm-256color")
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn version_is_that_of_the_package() {
    let output = claw(&["--version"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_names_what_can_be_done_and_nothing_hidden() {
    let output = claw(&["--help"]);
    let help = text(&output.stdout);
    assert!(output.status.success());
    assert!(help.contains("tui"), "{help}");
    assert!(!help.contains("__terminal-guard"), "{help}");
}

#[test]
fn without_a_terminal_the_program_says_so_and_offers_the_plain_mode() {
    let output = claw(&["tui"]);
    let words = text(&output.stderr);
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    assert!(words.contains("terminal") && words.contains("claw -p"), "{words}");
}

#[test]
fn an_unknown_argument_is_named() {
    let output = claw(&["--no-such-flag"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("--no-such-flag"));
}
