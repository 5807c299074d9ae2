//! Answers arrive while they are written; silence, Esc and cuts are shown and lose nothing.

use claw_tests::mock_api::{Gate, MessagesStream, MockApi};
use claw_tests::story::{ENTER, ESC, answers, open, prompts};

#[test]
fn text_is_on_the_screen_while_the_server_still_holds_the_answer() {
    let api = MockApi::start();
    let gate = Gate::new();
    let pieces = ["The first words. ", "Then more of them, ", "and **the end**."];
    api.push(
        MessagesStream::new()
            .open_text(&pieces[..1])
            .wait(&gate)
            .text_delta(0, pieces[1])
            .wait(&gate)
            .text_delta(0, pieces[2])
            .block_stop(0)
            .stop("end_turn", 9)
            .reply(),
    );
    let mut claw = open(&api);
    claw.say("tell me");
    claw.wait_for("The first words.");
    assert!(!claw.text().contains("Then more"));
    assert!(claw.status_line().contains("writing"), "{}", claw.status_line());
    gate.release();
    claw.wait_for("The first words. Then more of them,");
    gate.release();
    claw.wait_ready();
    claw.wait_for("The first words. Then more of them, and the end.");
    assert_eq!(prompts(&api.requests()[0]), ["tell me"]);
}

#[test]
fn a_silent_stream_takes_keys_says_so_and_is_stopped_by_esc() {
    let api = MockApi::start();
    // An "s" at the end would be held back: the planted key begins with one.
    api.push(MessagesStream::new().open_text(&["Half of the answ"]).reply().stall());
    api.push(MessagesStream::say("And now the whole."));
    let mut claw = open(&api);
    claw.say("tell me");
    claw.wait_for("Half of the answ");
    claw.send("typed while nothing comes");
    claw.wait_for("typed while nothing comes");
    claw.wait_for("no data for 5 s");
    // Esc stops the turn and hangs up; what had come stays, marked.
    claw.send(ESC);
    api.wait_for_hang_ups(1);
    claw.wait_ready();
    claw.wait_for("Half of the answ");
    claw.wait_for("interrupted");
    claw.wait_for("typed while nothing comes");
    // The draft was not lost, and the next turn works.
    claw.send(ENTER);
    claw.wait_for("And now the whole.");
    claw.wait_ready();
    let requests = api.requests();
    assert_eq!(prompts(&requests[1]), ["tell me", "typed while nothing comes"]);
    assert!(answers(&requests[1])[0].starts_with("Half of the answ"));
}

#[test]
fn a_prompt_typed_during_a_turn_waits_in_sight_and_is_sent_afterwards() {
    let api = MockApi::start();
    let gate = Gate::new();
    let held = MessagesStream::new().open_text(&["Answer one."]).wait(&gate);
    api.push(held.block_stop(0).stop("end_turn", 3).reply());
    api.push(MessagesStream::say("Answer two."));
    api.push(MessagesStream::say("Answer three."));
    let mut claw = open(&api);
    claw.say("one");
    claw.wait_for("Answer one.");
    claw.say("two");
    claw.wait_for("queued");
    claw.say("three");
    claw.wait_until("two queued prompts", |seen| seen.screen.text().matches("queued").count() == 2);
    assert_eq!(api.requests().len(), 1, "nothing is sent before its time");
    gate.release();
    claw.wait_for("Answer three.");
    claw.wait_ready();
    claw.wait_gone("queued");
    let requests = api.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(prompts(&requests[2]), ["one", "two", "three"]);
}

#[test]
fn after_esc_waiting_prompts_are_back_in_the_composer() {
    let api = MockApi::start();
    api.push(MessagesStream::new().open_text(&["Half"]).reply().stall());
    api.push(MessagesStream::say("Answer two."));
    let mut claw = open(&api);
    claw.say("one");
    claw.wait_for("Half");
    claw.say("two");
    claw.wait_for("queued");
    claw.send("a draft");
    claw.wait_for("a draft");
    claw.send(ESC);
    claw.wait_ready();
    claw.wait_gone("queued");
    assert_eq!(api.requests().len(), 1);
    claw.send(ENTER);
    claw.wait_for("Answer two.");
    assert_eq!(prompts(&api.requests()[1]), ["one", "two\n\na draft"]);
}

#[test]
fn a_cut_answer_is_marked_and_retry_sends_the_prompt_once() {
    let api = MockApi::start();
    api.push(MessagesStream::new().open_text(&["Half of the ans"]).reply().close());
    api.push(MessagesStream::say("The whole answer."));
    let mut claw = open(&api);
    claw.say("tell me");
    claw.wait_for("cut off");
    claw.wait_for("/retry");
    claw.wait_ready();
    claw.wait_for("Half of the ans");
    claw.command("/retry", "The whole answer.");
    claw.wait_ready();
    let requests = api.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(prompts(&requests[1]), ["tell me"]);
    assert_eq!(answers(&requests[1]), Vec::<String>::new());
}

#[test]
fn retry_without_anything_to_retry_says_so_and_the_session_goes_on() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Answer one."));
    api.push(MessagesStream::say("Answer two."));
    let mut claw = open(&api);
    claw.command("/retry", "Nothing to retry");
    claw.wait_ready();
    claw.say("one");
    claw.wait_for("Answer one.");
    claw.wait_ready();
    claw.command("/retry", "no prompt waits for an answer");
    claw.say("two");
    claw.wait_for("Answer two.");
    assert_eq!(api.requests().len(), 2);
}

#[test]
fn a_first_prompt_on_the_command_line_is_sent_at_once() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Good morning."));
    let claw = claw_tests::story::beside(&api).arg("a first prompt").start();
    claw.wait_for("Good morning.");
    claw.wait_ready();
    claw.wait_for("> a first prompt");
    assert_eq!(prompts(&api.requests()[0]), ["a first prompt"]);
}

#[test]
fn an_answer_at_the_output_limit_says_that_it_was_cut() {
    let api = MockApi::start();
    api.push(MessagesStream::new().text(&["As far as it"]).stop("max_tokens", 4).reply());
    let mut claw = open(&api);
    claw.say("tell me");
    claw.wait_for("reached the output limit");
    claw.wait_ready();
}

#[test]
fn a_prompt_typed_before_the_program_is_ready_is_answered() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Early answer."));
    let mut claw = claw_tests::story::beside(&api).start();
    claw.say("early prompt");
    claw.wait_for("Early answer.");
    claw.wait_ready();
    claw.wait_for("> early prompt");
    assert_eq!(prompts(&api.requests()[0]), ["early prompt"]);
}

#[test]
fn esc_before_the_first_byte_ends_the_turn_and_the_next_one_works() {
    let api = MockApi::start();
    let gate = Gate::new();
    api.push(MessagesStream::say("Never seen.").wait_before_head(&gate));
    api.push(MessagesStream::say("Answer two."));
    let mut claw = open(&api);
    claw.say("one");
    api.wait_for_requests(1);
    claw.send(ESC);
    api.wait_for_hang_ups(1);
    claw.wait_for("Interrupted");
    claw.wait_ready();
    claw.say("two");
    claw.wait_for("Answer two.");
    assert!(!claw.text().contains("Never seen."));
    assert_eq!(prompts(&api.requests()[1]), ["one", "two"]);
}

#[test]
fn a_flood_of_small_pieces_arrives_whole_while_keys_are_drawn() {
    let api = MockApi::start();
    let gate = Gate::new();
    let words: Vec<String> = (0..5000).map(|number| format!("w{number} ")).collect();
    let pieces: Vec<&str> = words.iter().map(String::as_str).collect();
    let flood = MessagesStream::new().open_text(&pieces[..2500]).wait(&gate);
    let flood = pieces[2500..].iter().fold(flood, |flood, piece| flood.text_delta(0, piece));
    api.push(flood.block_stop(0).stop("end_turn", 9).reply());
    api.push(MessagesStream::say("Next."));
    let mut claw = open(&api);
    claw.say("flood");
    claw.wait_for("w2499");
    gate.release();
    claw.send("a draft");
    claw.wait_for("❯ a draft");
    claw.wait_for("w4999");
    claw.wait_ready();
    claw.send(ENTER);
    claw.wait_for("Next.");
    assert_eq!(answers(&api.requests()[1])[0], words.concat());
}
