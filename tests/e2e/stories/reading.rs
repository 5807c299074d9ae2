//! Reading back while more arrives, copying, and text that tries to command the terminal.

use claw_tests::mock_api::{Gate, MessagesStream, MockApi};
use claw_tests::story::open;

fn numbered(from: usize, to: usize) -> String {
    (from..=to).map(|number| format!("- line number {number}\n")).collect()
}

#[test]
fn who_reads_further_up_is_not_moved_by_what_arrives() {
    let api = MockApi::start();
    let gate = Gate::new();
    let held = MessagesStream::new().open_text(&[&numbered(1, 100)]).wait(&gate);
    api.push(held.text_delta(0, &numbered(101, 120)).block_stop(0).stop("end_turn", 9).reply());
    let mut claw = open(&api);
    claw.say("count");
    claw.wait_for("line number 100");
    claw.send("\x1b[5~");
    claw.wait_gone("line number 100");
    let before = claw.find("line number 60");
    gate.release();
    claw.wait_for("new lines");
    claw.wait_ready();
    assert_eq!(claw.find("line number 60"), before);
    claw.send("\x1b[1;5F");
    claw.wait_for("line number 120");
    claw.wait_gone("new lines");
}

#[test]
fn copying_asks_the_terminal_with_the_source_of_the_answer() {
    let api = MockApi::start();
    api.push(MessagesStream::say("some **bold**"));
    let mut claw = open(&api);
    claw.say("hi");
    claw.wait_for("some bold");
    claw.wait_ready();
    claw.command("/copy", "OSC 52");
    // "some **bold**" in base64.
    claw.look(|seen| assert_eq!(seen.screen.clipboard, ["c;c29tZSAqKmJvbGQqKg=="]));
}

#[test]
fn text_that_commands_the_terminal_is_shown_and_not_obeyed() {
    let api = MockApi::start();
    let hostile = "before\u{1b}[2J\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]0;stolen\u{7}\u{9b}31m after";
    api.push(
        MessagesStream::new()
            .text(&[hostile])
            .tool_use("toolu_1", "bash", r#"{"command":"printf '\\033]0;stolen\\007out\\n'"}"#)
            .stop("tool_use", 9)
            .reply(),
    );
    api.push(MessagesStream::say("Done."));
    let mut claw = open(&api);
    claw.say("attack");
    claw.wait_for("before");
    claw.wait_for("after");
    claw.allow_once();
    claw.wait_for("Done.");
    claw.wait_ready();
    claw.send("\x18");
    claw.wait_until("the output of the call", |seen| {
        seen.screen.text().lines().any(|line| line.trim().ends_with("out"))
    });
    claw.look(|seen| {
        assert_eq!(seen.screen.clipboard, Vec::<String>::new());
        assert!(!seen.screen.modes.title.contains("stolen"));
        assert!(seen.screen.text().contains("before"), "{}", seen.screen.text());
    });
}

#[test]
fn the_conversation_fits_every_size_and_comes_back() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Wide 你好 words, and **more** of them for a narrow window."));
    let mut claw = open(&api);
    claw.say("hi");
    claw.wait_for("for a narrow window.");
    claw.wait_ready();
    for (columns, rows) in [(20, 5), (8, 2), (1, 1), (300, 5), (40, 100)] {
        claw.resize(columns, rows);
        claw.wait_quiet(std::time::Duration::from_millis(50));
        assert!(claw.is_alive(), "{columns}x{rows}");
    }
    claw.resize(120, 40);
    claw.wait_for("Wide 你好 words, and more of them for a narrow window.");
    claw.wait_ready();
}
