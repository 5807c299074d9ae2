//! Writing prompts: lines, pastes, history, an editor of one's own.

use claw_tests::mock_api::{MessagesStream, MockApi};
use claw_tests::story::{ENTER, UP, beside, open, prompts};

#[test]
fn a_prompt_of_several_lines_arrives_as_it_was_typed() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Seen."));
    let mut claw = open(&api);
    claw.send("first\nsecond\\");
    claw.send(ENTER);
    claw.send("third");
    claw.wait_for("third");
    claw.send(ENTER);
    claw.wait_for("Seen.");
    assert_eq!(prompts(&api.requests()[0]), ["first\nsecond\nthird"]);
}

#[test]
fn ctrl_j_makes_a_new_line_on_terminals_that_send_a_line_feed_for_it() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Seen."));
    let mut claw = open(&api);
    claw.send("aaa");
    claw.wait_for("❯ aaa");
    claw.send("\n");
    claw.send("bbb");
    claw.wait_for("bbb");
    claw.send(ENTER);
    claw.wait_for("Seen.");
    assert_eq!(prompts(&api.requests()[0]), ["aaa\nbbb"]);
    claw.send("/exit\r");
    claw.wait_back();
    claw.assert_terminal_restored();
}

#[test]
fn alt_with_an_arrow_scrolls_and_types_nothing_where_alt_is_an_escape_in_front() {
    let api = MockApi::start();
    let lines: String = (1..=100).map(|number| format!("- line number {number}\n")).collect();
    api.push(MessagesStream::say(&lines));
    let mut claw = open(&api);
    claw.say("count");
    claw.wait_for("line number 100");
    claw.wait_ready();
    claw.send("draft");
    claw.wait_for("❯ draft");
    let before = claw.find("line number 80").0;
    for keys in ["\x1b\x1b[A", "\x1b\x1bOA", "\x1b\x1b[A"] {
        claw.send(keys);
    }
    claw.wait_until("three lines scrolled", |seen| {
        seen.screen.text().lines().position(|line| line.contains("line number 80"))
            == Some(before + 3)
    });
    claw.send("!");
    claw.wait_for("❯ draft!");
}

#[test]
fn a_paste_never_sends_itself_and_arrives_whole() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Seen."));
    let mut claw = open(&api);
    let text: String = (1..=40).map(|number| format!("\tline {number}\n")).collect();
    claw.paste(&text);
    claw.send(" and a word");
    claw.wait_for("and a word");
    assert_eq!(api.requests().len(), 0);
    claw.send(ENTER);
    claw.wait_for("Seen.");
    let sent = prompts(&api.requests()[0]).concat();
    assert!(sent.contains(text.trim_end()), "{sent}");
    assert!(sent.ends_with(" and a word"), "{sent}");
}

#[test]
fn an_earlier_prompt_is_recalled_and_sent_again() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Answer one."));
    api.push(MessagesStream::say("Answer two."));
    let mut claw = open(&api);
    claw.say("once more");
    claw.wait_for("Answer one.");
    claw.wait_ready();
    claw.send(UP);
    claw.wait_for("❯ once more");
    claw.send(ENTER);
    claw.wait_for("Answer two.");
    assert_eq!(prompts(&api.requests()[1]), ["once more", "once more"]);
}

#[test]
fn the_draft_goes_through_the_editor_and_back() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Seen."));
    let claw = beside(&api);
    let editor = claw.script("editor", "#!/bin/sh\nprintf 'from the editor' >> \"$1\"\n");
    let mut claw = claw.env("EDITOR", editor.display().to_string()).start();
    claw.wait_ready();
    claw.send("typed and ");
    claw.wait_for("typed and");
    claw.send("\x07");
    claw.wait_for("from the editor");
    claw.send(ENTER);
    claw.wait_for("Seen.");
    let sent = prompts(&api.requests()[0]).concat();
    assert!(sent.starts_with("typed and") && sent.ends_with("from the editor"), "{sent}");
}

#[test]
fn a_prompt_sent_again_after_a_failure_is_on_the_wire_once() {
    let api = MockApi::start();
    let error = claw_tests::mock_api::Reply::error(400, "invalid_request_error", "not now");
    api.push(error);
    api.push(MessagesStream::say("Now."));
    let mut claw = open(&api);
    claw.say("do it");
    claw.wait_for("not now");
    claw.wait_ready();
    claw.say("do it");
    claw.wait_for("Now.");
    assert_eq!(prompts(&api.requests()[1]), ["do it"]);
}
