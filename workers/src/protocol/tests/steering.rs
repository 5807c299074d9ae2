use super::super::{AskedBy, HookSeen, Seen};
use super::rig::*;
use crate::event::SteerError;
use crate::fact::{Fact, FailureKind};

fn steered(rig: &Rig) -> Vec<(u64, Result<(), SteerError>)> {
    let steered =
        |did| if let Did::Steered(ticket, result) = did { Some((ticket, result)) } else { None };
    rig.did().into_iter().filter_map(steered).collect()
}

fn refused(rig: &Rig, ticket: u64) -> bool {
    steered(rig)
        .iter()
        .any(|(of, result)| *of == ticket && matches!(result, Err(SteerError::Refused(_))))
}

#[test]
fn taken_is_said_only_after_the_matching_queue_record() {
    let mut rig = Rig::running("go");
    rig.steer(7, "and this");
    assert_eq!(rig.wrote(), [pasted("and this"), "\r".to_owned()]);
    rig.record(enqueued("something else"));
    rig.record(enqueued("and"));
    rig.pass(ms(10_000));
    assert_eq!(steered(&rig), []);
    rig.record(enqueued("and this"));
    assert_eq!(steered(&rig), [(7, Ok(()))]);
    rig.record(enqueued("and this"));
    rig.hook(submitted("p1", "and this"));
    assert_eq!(steered(&rig).len(), 1);
}

#[test]
fn the_hook_of_a_queued_prompt_acknowledges_it_too() {
    let mut rig = Rig::running("go");
    rig.steer(7, "and this");
    rig.hook(submitted("p1", "and this"));
    assert_eq!(steered(&rig), [(7, Ok(()))]);
}

#[test]
fn queue_records_from_before_the_write_do_not_count() {
    let mut rig = Rig::running("go");
    rig.file.push_back(enqueued("and this"));
    rig.steer(7, "and this");
    rig.pass(ms(14_000));
    assert_eq!(steered(&rig), []);
    rig.pass(ms(2000));
    assert_eq!(steered(&rig), [(7, Err(SteerError::Uncertain))]);
}

#[test]
fn the_hook_of_the_turn_s_own_prompt_is_no_acknowledgement_of_the_same_words() {
    let mut rig = Rig::ready();
    rig.submit("go");
    rig.record(typed("p1", "go"));
    rig.steer(7, "go");
    rig.hook(submitted("p1", "go"));
    assert_eq!(steered(&rig), []);
    rig.record(enqueued("go"));
    assert_eq!(steered(&rig), [(7, Ok(()))]);
}

#[test]
fn one_word_of_the_queue_acknowledges_one_steer_of_two_alike() {
    let mut rig = Rig::running("go");
    rig.steer(1, "more");
    rig.hook(submitted("p1", "more"));
    rig.steer(2, "more");
    // The record of the first.
    rig.record(enqueued("more"));
    assert_eq!(steered(&rig), [(1, Ok(()))]);
    rig.record(enqueued("more"));
    assert_eq!(steered(&rig), [(1, Ok(())), (2, Ok(()))]);
}

#[test]
fn nothing_is_written_without_a_confirmed_turn_of_ours() {
    // Idle.
    let mut rig = Rig::ready();
    rig.steer(1, "x");
    // Before the receipt.
    rig.submit("go");
    rig.steer(2, "x");
    // In a turn that nobody asked for.
    let mut foreign = Rig::ready();
    foreign.hook(submitted("n1", "<task-notification>"));
    foreign.steer(3, "x");
    // After the end, by its hook, its records, and by records that are not read yet.
    let mut over = Rig::running("go");
    over.hook(stop("p1", "x"));
    over.steer(4, "x");
    let mut read = Rig::running("go");
    read.record(duration());
    read.steer(5, "x");
    let mut unread = Rig::running("go");
    unread.file.push_back(failure(FailureKind::Server, None));
    unread.steer(6, "x");
    // Another session, and none at all.
    let mut other = Rig::running("go");
    other.hook(HookSeen::SessionStart { session_id: "new".to_owned(), source: "clear".to_owned() });
    other.steer(7, "x");
    let mut gone = Rig::running("go");
    gone.see(Seen::Exited { status: "exit 0".to_owned(), screen: String::new() });
    gone.steer(8, "x");
    for (rig, ticket) in [
        (&rig, 1),
        (&rig, 2),
        (&foreign, 3),
        (&over, 4),
        (&read, 5),
        (&unread, 6),
        (&other, 7),
        (&gone, 8),
    ] {
        assert!(refused(rig, ticket), "{ticket}: {:?}", rig.did());
        assert!(!rig.wrote().concat().contains('x'), "{ticket}");
    }
    assert_eq!(unread.ends().len(), 1);
}

#[test]
fn control_characters_nul_and_commands_are_refused_unwritten() {
    for text in ["a\0", "a\x1b[201~b", "\x03", "/compact", "", "a\u{85}"] {
        let mut rig = Rig::running("go");
        rig.steer(1, text);
        assert!(refused(&rig, 1), "{text:?}");
        assert_eq!(rig.wrote(), Vec::<String>::new());
    }
}

#[test]
fn a_steer_presses_no_key_into_a_permission_dialog() {
    // Open already.
    let mut rig = Rig::running("go");
    rig.hook(HookSeen::PermissionAsked { by: AskedBy::Turn });
    rig.steer(1, "x");
    assert!(refused(&rig, 1) && rig.wrote().is_empty());
    let mut rig = Rig::running("go");
    rig.screen = dialog("Bash command");
    rig.steer(1, "x");
    assert!(refused(&rig, 1) && rig.wrote().is_empty());
    // Opened between the paste and the CR, and answered.
    let mut rig = Rig::running("go");
    rig.see(Seen::Steer { ticket: 1, text: "x".to_owned() });
    rig.screen = dialog("Bash command");
    rig.hook(HookSeen::PermissionAsked { by: AskedBy::Turn });
    rig.pass(ms(5000));
    assert_eq!(rig.wrote(), [pasted("x")]);
    rig.screen = plain();
    rig.hook(HookSeen::PermissionSettled { by: AskedBy::Turn });
    assert_eq!(rig.wrote(), [pasted("x"), "\r".to_owned()]);
    // Never answered: nothing was handed over, and the box is emptied before the next words.
    let mut rig = Rig::running("go");
    rig.see(Seen::Steer { ticket: 1, text: "x".to_owned() });
    rig.screen = dialog("Bash command");
    rig.pass(ms(16_000));
    assert!(refused(&rig, 1));
    rig.screen = plain();
    rig.did.clear();
    rig.steer(2, "y");
    rig.pass(ms(400));
    assert_eq!(rig.wrote(), ["\x15".to_owned(), pasted("y"), "\r".to_owned()]);
}

#[test]
fn an_uncertain_steer_is_not_repeated_and_allows_no_other_until_the_turn_is_over() {
    let mut rig = Rig::running("go");
    rig.steer(1, "x");
    rig.pass(ms(15_000));
    assert_eq!(steered(&rig), [(1, Err(SteerError::Uncertain))]);
    rig.steer(2, "y");
    assert!(refused(&rig, 2));
    assert_eq!(rig.wrote(), [pasted("x"), "\r".to_owned()]);
    // The turn's own result comes all the same.
    rig.record(says("answer"));
    rig.hook(stop("p1", "answer"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed answer"]);
    rig.submit("next");
    rig.pass(ms(400));
    rig.hook(submitted("p2", "next"));
    rig.steer(3, "z");
    rig.record(enqueued("z"));
    assert_eq!(steered(&rig).last(), Some(&(3, Ok(()))));
}

#[test]
fn nothing_is_typed_behind_a_prompt_that_is_on_its_way_back_into_the_box() {
    // Nothing was said yet, so the CLI gives the prompt back.
    let mut rig = Rig::running("go");
    rig.see(Seen::Interrupt);
    rig.steer(1, "instead");
    assert!(refused(&rig, 1));
    rig.pass(ms(3_000));
    assert_eq!(rig.ends(), ["end Withdrawn"]);
    let wrote = rig.wrote().concat();
    assert!(!wrote.contains("instead"), "{wrote:?}");
}

#[test]
fn a_steer_that_is_absorbed_stays_in_the_turn_and_one_end_is_told() {
    let attachment = Fact::Prompt {
        prompt_id: None,
        text: "x".to_owned(),
        source: crate::fact::PromptSource::Queued,
    };
    let unsaid = Fact::Removed { content: None, absorbed: false };
    for facts in [
        vec![absorbed("x"), tool_result("t1"), attachment.clone()],
        vec![unsaid, tool_result("t1"), absorbed("x"), attachment],
    ] {
        let mut rig = Rig::running("go");
        rig.record(uses_tool("t1"));
        rig.steer(1, "x");
        rig.record(enqueued("x"));
        for fact in facts {
            rig.record(fact);
        }
        rig.record(says("both"));
        rig.hook(stop("p1", "both"));
        rig.record(duration());
        assert_eq!(rig.ends(), ["end completed both"], "{:?}", rig.did());
        rig.pass(ms(60_000));
        assert_eq!(rig.ends().len(), 1);
        assert!(rig.facts.iter().all(|(_, unasked)| !unasked));
    }
}

#[test]
fn a_steer_that_becomes_the_next_turn_is_ours_until_that_ends() {
    // By records as 2.1.332 writes them, with and without the hooks of 2.1.197.
    for hooks in [true, false] {
        let mut rig = Rig::running("go");
        rig.steer(1, "x");
        rig.record(enqueued("x"));
        rig.steer(2, "y");
        rig.record(enqueued("y"));
        rig.record(says("first"));
        rig.record(Fact::Dequeued);
        rig.record(Fact::Dequeued);
        rig.hook(stop("p1", "first"));
        rig.record(duration());
        assert_eq!(rig.ends(), Vec::<String>::new());
        if hooks {
            rig.hook(submitted("q1", "x"));
            rig.hook(submitted("q2", "y"));
        }
        rig.record(queued("q1", "x"));
        rig.record(queued("q2", "y"));
        rig.record(says("second"));
        rig.hook(stop("q2", "second"));
        rig.record(duration());
        rig.pass(ms(60_000));
        assert_eq!(rig.ends(), ["end completed second"], "{hooks}");
        assert!(rig.facts.iter().all(|(_, unasked)| !unasked));
    }
}

#[test]
fn a_queued_steer_whose_turn_never_comes_lets_the_end_go_in_the_end() {
    let mut rig = Rig::running("go");
    rig.steer(1, "x");
    rig.record(enqueued("x"));
    rig.hook(stop("p1", "first"));
    rig.record(duration());
    rig.pass(ms(14_000));
    assert_eq!(rig.ends(), Vec::<String>::new());
    rig.pass(ms(2000));
    assert_eq!(rig.ends(), ["end completed first"]);
}

#[test]
fn a_steer_that_comes_too_late_for_the_turn_is_answered_by_its_own() {
    let mut rig = Rig::running("go");
    rig.see(Seen::Steer { ticket: 1, text: "x".to_owned() });
    rig.hook(stop("p1", "first"));
    rig.record(duration());
    rig.pass(ms(300));
    assert_eq!(rig.wrote(), [pasted("x"), "\r".to_owned()]);
    rig.hook(submitted("p2", "x"));
    assert_eq!(steered(&rig), [(1, Ok(()))]);
    rig.record(typed("p2", "x"));
    rig.record(says("second"));
    rig.hook(stop("p2", "second"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed second"]);
    // Nothing ever says that it was taken: it is uncertain, and the end is told.
    let mut rig = Rig::running("go");
    rig.steer(1, "x");
    rig.hook(stop("p1", "first"));
    rig.record(duration());
    rig.pass(ms(3000));
    assert_eq!(steered(&rig), [(1, Err(SteerError::Uncertain))]);
    assert_eq!(rig.ends(), ["end completed first"]);
}

#[test]
fn a_late_acknowledgement_of_an_uncertain_steer_is_still_followed() {
    let mut rig = Rig::running("go");
    rig.steer(1, "x");
    rig.pass(ms(15_000));
    rig.record(enqueued("x"));
    rig.steer(2, "y");
    assert!(refused(&rig, 2));
    rig.record(says("first"));
    rig.hook(stop("p1", "first"));
    rig.record(duration());
    rig.record(queued("q1", "x"));
    rig.record(says("second"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed second"]);
    assert_eq!(steered(&rig)[0], (1, Err(SteerError::Uncertain)));
}

#[test]
fn a_failure_in_the_same_stretch_overrides_the_acknowledgement_and_a_warning_does_not() {
    let quota =
        crate::fact::Quota { status: "allowed_warning".to_owned(), resets_at: None, kind: None };
    for (fact, result) in [
        (failure(FailureKind::Server, None), Err(SteerError::Uncertain)),
        (Fact::Quota(quota), Ok(())),
    ] {
        let mut rig = Rig::running("go");
        rig.steer(1, "x");
        rig.file.push_back(fact);
        rig.record(enqueued("x"));
        assert_eq!(steered(&rig), [(1, result)]);
    }
}

#[test]
fn words_that_began_already_when_the_turn_before_them_failed_are_told_as_their_own_turn() {
    let mut rig = Rig::running("go");
    rig.steer(1, "x");
    rig.record(enqueued("x"));
    // 2.1.197 tells the queued prompt at its beginning, before the failure was read.
    rig.hook(submitted("q1", "x"));
    rig.record(failure(FailureKind::Server, None));
    rig.record(queued("q1", "x"));
    rig.record(says("second"));
    rig.hook(stop("q1", "second"));
    rig.record(duration());
    assert_eq!(
        rig.ends(),
        ["end failed Server the record's words", "end unasked completed second"]
    );
}

#[test]
fn an_interrupt_with_a_queued_prompt_ends_the_turn_and_the_prompt_starts_as_one_nobody_waits_for() {
    let mut rig = Rig::running("go");
    rig.steer(1, "x");
    rig.record(enqueued("x"));
    rig.see(Seen::Interrupt);
    rig.record(Fact::Dequeued);
    rig.record(says("some"));
    rig.record(Fact::Interrupted { in_tool: false });
    rig.record(queued("q1", "x"));
    rig.record(says("second"));
    rig.hook(stop("q1", "second"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end Interrupted", "end unasked completed second"]);
    assert_eq!(rig.wrote().last().map(String::as_str), Some("\x1b"));
}

#[test]
fn a_steer_that_was_not_submitted_is_taken_back_by_an_interrupt() {
    let mut rig = Rig::running("go");
    rig.see(Seen::Steer { ticket: 1, text: "x".to_owned() });
    rig.see(Seen::Interrupt);
    rig.pass(ms(1000));
    assert!(refused(&rig, 1));
    assert_eq!(rig.wrote(), [pasted("x"), "\x1b".to_owned()]);
}

#[test]
fn a_steer_to_a_worker_that_does_not_read_ends_with_the_bytes_it_took_while_the_turn_goes_on() {
    let mut rig = Rig::running("go");
    rig.reads_stdin = false;
    rig.steer(1, "some words");
    rig.record(says("meanwhile"));
    assert_eq!(rig.told(), ["says meanwhile"]);
    rig.see(Seen::WriteFailed { accepted: 3, total: 22 });
    let Some((1, Err(SteerError::Refused(why)))) = steered(&rig).pop() else {
        panic!("{:?}", rig.did())
    };
    assert!(why.contains("3 of 22 bytes"), "{why}");
    rig.hook(stop("p1", "meanwhile"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed meanwhile"]);
}

#[test]
fn steers_are_typed_one_after_the_other() {
    let mut rig = Rig::running("go");
    rig.see(Seen::Steer { ticket: 1, text: "x".to_owned() });
    rig.see(Seen::Steer { ticket: 2, text: "y".to_owned() });
    rig.pass(ms(1000));
    assert_eq!(rig.wrote(), [pasted("x"), "\r".to_owned()]);
    rig.record(enqueued("x"));
    rig.pass(ms(1000));
    rig.record(enqueued("y"));
    assert_eq!(rig.wrote(), [pasted("x"), "\r".to_owned(), pasted("y"), "\r".to_owned()]);
    assert_eq!(steered(&rig), [(1, Ok(())), (2, Ok(()))]);
}

#[test]
fn a_crash_answers_every_steer() {
    let mut rig = Rig::running("go");
    rig.steer(1, "x");
    rig.see(Seen::Steer { ticket: 2, text: "y".to_owned() });
    rig.see(Seen::Exited { status: "signal 9".to_owned(), screen: String::new() });
    assert_eq!(steered(&rig)[0], (1, Err(SteerError::Uncertain)));
    assert!(refused(&rig, 2));
}
