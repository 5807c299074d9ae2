use super::super::{AskedBy, HookSeen, Seen};
use super::rig::*;
use crate::fact::Fact;

fn wrote(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn the_first_paste_waits_for_the_box_to_settle_and_later_ones_do_not() {
    let mut rig = Rig::new();
    rig.see(Seen::Spawned);
    rig.hook(start(SESSION));
    rig.see(Seen::Submit { ticket: 1, text: "one".to_owned() });
    rig.pass(ms(749));
    assert_eq!(rig.wrote(), Vec::<String>::new());
    rig.pass(ms(2000));
    let at: Vec<u64> =
        rig.did.iter().filter(|(_, did)| matches!(did, Did::Wrote(_))).map(|(at, _)| *at).collect();
    assert_eq!(at, [750, 1050]);
    rig.hook(submitted("p1", "one"));
    rig.record(typed("p1", "one"));
    rig.hook(stop("p1", "yes"));
    rig.record(duration());
    let before = rig.age();
    rig.did.clear();
    rig.see(Seen::Submit { ticket: 2, text: "two".to_owned() });
    assert_eq!(rig.did, [(before, Did::Wrote(pasted("two")))]);
}

#[test]
fn delivered_is_said_with_evidence_only_and_before_that_nothing() {
    for by in 0..2 {
        let mut rig = Rig::ready();
        rig.submit("hello");
        assert_eq!(rig.take(), [Did::Wrote(pasted("hello")), Did::Wrote("\r".to_owned())]);
        rig.pass(ms(2000));
        rig.hook(submitted("x", "another prompt"));
        rig.record(typed("x", "hello there"));
        assert!(!rig.told().iter().any(|told| told.starts_with("delivered")));
        rig.did.clear();
        rig.see(if by == 0 {
            Seen::Hook(submitted("p1", "hello"))
        } else {
            Seen::Record(typed("p1", "hello"))
        });
        assert_eq!(rig.did()[..2], [Did::Submitted(Ok(())), Did::Told("delivered p1".to_owned())]);
    }
}

#[test]
fn a_swallowed_cr_leads_to_exactly_one_more() {
    let mut rig = Rig::ready();
    rig.submit("hello");
    rig.pass(ms(2999));
    assert_eq!(rig.wrote().len(), 2);
    rig.pass(ms(1));
    assert_eq!(rig.wrote(), wrote(&[&pasted("hello"), "\r", "\r"]));
    rig.pass(ms(9000));
    assert_eq!(rig.wrote().len(), 3);
    rig.hook(submitted("p1", "hello"));
    assert_eq!(rig.told(), ["delivered p1"]);
}

#[test]
fn no_second_cr_when_anything_shows_that_a_turn_may_have_begun() {
    let signs: [fn() -> Seen; 4] = [
        || Seen::Hook(submitted("x", "something else")),
        || Seen::Hook(HookSeen::PreToolUse { prompt_id: None }),
        || Seen::Record(duration()),
        || Seen::Traffic,
    ];
    for sign in signs {
        let mut rig = Rig::ready();
        rig.submit("hello");
        rig.see(sign());
        rig.pass(ms(14_000));
        assert_eq!(rig.wrote().len(), 2, "{:?}", sign());
    }
    // The paste itself changes the screen: that shows nothing.
    let mut rig = Rig::ready();
    rig.submit("hello");
    rig.see(Seen::ScreenChanged);
    rig.pass(ms(14_000));
    assert_eq!(rig.wrote().len(), 3);
}

#[test]
fn no_key_is_sent_while_a_permission_or_question_dialog_may_be_open() {
    // Before the paste.
    let mut rig = Rig::ready();
    rig.screen = dialog("Bash command");
    rig.submit("hello");
    rig.pass(ms(30_000));
    assert_eq!(rig.wrote(), wrote(&[]));
    // After the paste, as the hook or as the screen says it.
    for by_hook in [true, false] {
        let mut rig = Rig::ready();
        rig.see(Seen::Submit { ticket: 1, text: "hello".to_owned() });
        if by_hook {
            rig.hook(HookSeen::PermissionAsked { by: AskedBy::Turn });
        } else {
            rig.screen = dialog("Bash command");
        }
        rig.see(Seen::ScreenChanged);
        rig.pass(ms(30_000));
        assert_eq!(rig.wrote(), wrote(&[&pasted("hello")]));
        assert!(
            matches!(rig.did().last(), Some(Did::Submitted(Err(error))) if error.starts_with("Dialog"))
        );
    }
    // After the CR.
    let mut rig = Rig::ready();
    rig.submit("hello");
    rig.screen = dialog("Bash command");
    rig.pass(ms(30_000));
    assert_eq!(rig.wrote(), wrote(&[&pasted("hello"), "\r"]));
}

#[test]
fn the_cr_follows_when_the_dialog_is_gone() {
    let mut rig = Rig::ready();
    rig.see(Seen::Submit { ticket: 1, text: "hello".to_owned() });
    rig.hook(HookSeen::PermissionAsked { by: AskedBy::Turn });
    rig.pass(ms(2000));
    assert_eq!(rig.wrote().len(), 1);
    rig.hook(HookSeen::PermissionSettled { by: AskedBy::Turn });
    assert_eq!(rig.wrote(), wrote(&[&pasted("hello"), "\r"]));
}

#[test]
fn an_unconfirmed_prompt_is_never_sent_again_and_a_late_turn_of_it_is_not_ours() {
    let mut rig = Rig::ready();
    rig.submit("hello");
    rig.pass(ms(15_000));
    assert_eq!(rig.did().last(), Some(&Did::Submitted(Err("Unconfirmed".to_owned()))));
    let written = rig.wrote().len();
    // A slow delivery, not a lost one.
    rig.hook(submitted("p1", "hello"));
    rig.record(typed("p1", "hello"));
    rig.record(says("late"));
    rig.hook(stop("p1", "late"));
    rig.record(duration());
    rig.pass(ms(60_000));
    assert_eq!(rig.wrote().len(), written);
    assert!(!rig.told().contains(&"delivered p1".to_owned()));
    assert_eq!(rig.ends(), ["end unasked completed late"]);
}

#[test]
fn what_an_unconfirmed_prompt_may_have_left_is_cleared_before_the_next() {
    let mut rig = Rig::ready();
    rig.submit("one\ntwo");
    rig.pass(ms(15_000));
    rig.did.clear();
    rig.submit("next");
    rig.pass(ms(400));
    assert_eq!(rig.wrote(), wrote(&["\x15\x15", &pasted("next"), "\r"]));
    assert!(rig.did[1].0 - rig.did[0].0 >= 400);
}

#[test]
fn a_prompt_that_cannot_be_one_is_refused_before_a_byte_is_written() {
    for text in ["/compact", "", "\0"] {
        let mut rig = Rig::ready();
        rig.submit(text);
        assert_eq!(rig.did(), [Did::Submitted(Err("RefusedPrompt".to_owned()))]);
    }
    let mut rig = Rig::running("one");
    rig.submit("two");
    assert_eq!(rig.did(), [Did::Submitted(Err("RefusedPrompt".to_owned()))]);
}

#[test]
fn a_worker_that_does_not_read_fails_the_prompt_with_the_bytes_it_took() {
    let mut rig = Rig::ready();
    rig.reads_stdin = false;
    rig.submit("hello");
    rig.pass(ms(5000));
    rig.see(Seen::WriteFailed { accepted: 4, total: 17 });
    assert_eq!(
        rig.take(),
        [Did::Wrote(pasted("hello")), Did::Submitted(Err("NotReading 4/17".to_owned()))]
    );
    // The cut paste is closed before anything else is written.
    rig.reads_stdin = true;
    rig.submit("next");
    rig.pass(ms(400));
    assert_eq!(rig.wrote(), wrote(&["\x1b[201~\x15", &pasted("next"), "\r"]));
}

#[test]
fn a_prompt_for_a_busy_worker_waits_in_its_queue_and_is_ours_when_it_begins() {
    let mut rig = Rig::ready();
    rig.hook(submitted("n1", "<task-notification>"));
    rig.record(notification("n1", "<task-notification>"));
    rig.submit("hello");
    // 2.1.332 fires the hook at once, with the id of the turn that runs.
    rig.hook(submitted("n1", "hello"));
    rig.record(enqueued("hello"));
    rig.record(says("noted"));
    rig.hook(stop("n1", "noted"));
    rig.record(duration());
    rig.record(queued("p1", "hello"));
    rig.record(says("hi"));
    rig.hook(stop("p1", "hi"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end unasked completed noted", "end completed hi"]);
    assert_eq!(rig.told().iter().filter(|told| told.starts_with("delivered")).count(), 1);
    assert!(
        rig.told().contains(&"says hi".to_owned())
            && rig.told().contains(&"unasked says noted".to_owned())
    );
}

#[test]
fn a_prompt_that_is_absorbed_by_a_turn_is_answered_by_that_turn() {
    let mut rig = Rig::ready();
    rig.hook(submitted("n1", "<task-notification>"));
    rig.record(notification("n1", "<task-notification>"));
    rig.submit("hello");
    rig.record(enqueued("hello"));
    rig.record(says("noted"));
    // What was told as a turn of its own ends as one.
    rig.record(absorbed("hello"));
    rig.record(says("both"));
    rig.hook(stop("n1", "both"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end unasked completed noted", "end completed both"]);
    let facts: Vec<bool> = rig.facts.iter().map(|(_, unasked)| *unasked).collect();
    assert_eq!(facts, [true, true, true, false, false, false]);
}

#[test]
fn a_queued_prompt_that_never_begins_ends_as_failed_and_one_that_a_person_takes_out_as_withdrawn() {
    let queued = || {
        let mut rig = Rig::ready();
        rig.hook(submitted("n1", "<task-notification>"));
        rig.record(notification("n1", "<task-notification>"));
        rig.submit("hello");
        rig.record(enqueued("hello"));
        rig
    };
    let mut rig = queued();
    rig.record(duration());
    rig.pass(ms(15_000));
    assert!(rig.ends()[1].contains("did not begin it"), "{:?}", rig.ends());
    let mut rig = queued();
    rig.record(Fact::Removed { content: Some("hello".to_owned()), absorbed: false });
    rig.record(duration());
    rig.pass(ms(60_000));
    assert_eq!(rig.ends(), ["end Withdrawn", "end unasked completed nothing"]);
    // An older version does not say which one left the queue.
    let mut rig = queued();
    rig.record(Fact::Removed { content: None, absorbed: false });
    rig.record(absorbed("hello"));
    rig.record(says("both"));
    rig.record(duration());
    assert_eq!(rig.ends().last().map(String::as_str), Some("end completed both"));
}

#[test]
fn what_a_person_left_in_the_box_is_not_glued_to_the_next_prompt() {
    let mut rig = Rig::ready();
    rig.see(Seen::Typed(b"half a sen".to_vec()));
    rig.submit("hello");
    rig.pass(ms(400));
    assert_eq!(rig.wrote(), wrote(&["half a sen", "\x15", &pasted("hello"), "\r"]));
}
