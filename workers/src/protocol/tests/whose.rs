use super::super::Seen;
use super::rig::*;
use crate::fact::{Fact, FailureKind, PromptSource};

const NOTE: &str = "<task-notification>ok</task-notification>";

/// A whole turn that nobody asked for, by hooks and records.
fn unasked_turn(rig: &mut Rig, id: &str, text: &str) {
    rig.hook(submitted(id, NOTE));
    rig.record(notification(id, NOTE));
    rig.record(says(text));
    rig.hook(stop(id, text));
    rig.record(duration());
}

#[test]
fn turns_that_nobody_asked_for_are_told_as_such_before_between_and_behind_ours() {
    let mut rig = Rig::ready();
    unasked_turn(&mut rig, "n1", "one");
    rig.submit("ok");
    rig.hook(submitted("p1", "ok"));
    rig.record(typed("p1", "ok"));
    rig.record(says("ours"));
    rig.hook(stop("p1", "ours"));
    rig.record(duration());
    unasked_turn(&mut rig, "n2", "two");
    let mut told = rig.told();
    told.retain(|told| !told.contains("TurnDuration"));
    let unasked = format!("unasked {NOTE}");
    let prompt = format!("unasked prompt {NOTE}");
    assert_eq!(
        told,
        [
            &unasked,
            &prompt,
            "unasked says one",
            "end unasked completed one",
            "delivered p1",
            "prompt ok",
            "says ours",
            "end completed ours",
            &unasked,
            &prompt,
            "unasked says two",
            "end unasked completed two",
        ]
    );
}

#[test]
fn a_prompt_that_is_written_behind_its_answer_begins_no_second_turn() {
    for after_stop in [false, true] {
        let mut rig = Rig::ready();
        rig.submit("go");
        rig.hook(submitted("p1", "go"));
        rig.record(says("answer"));
        if after_stop {
            rig.hook(stop("p1", "answer"));
        }
        rig.record(typed("p1", "go"));
        if !after_stop {
            rig.hook(stop("p1", "answer"));
        }
        rig.record(duration());
        rig.pass(ms(10_000));
        assert_eq!(rig.ends(), ["end completed answer"], "{after_stop}");
        let told = rig.told();
        assert!(!told.iter().any(|told| told.contains("unasked")), "{told:?}");
    }
}

#[test]
fn the_next_turn_waits_until_the_records_of_ours_are_told() {
    let mut rig = Rig::running("go");
    rig.hook(stop("p1", "answer"));
    rig.hook(submitted("n1", NOTE));
    rig.see(Seen::Live {
        fact: Fact::TextDelta { message: "m2".to_owned(), block: 0, text: "next".to_owned() },
        prompt_id: None,
    });
    assert_eq!(rig.told(), Vec::<String>::new());
    rig.record(says("answer"));
    rig.record(duration());
    assert_eq!(rig.told(), ["says answer", "TurnDuration", "end completed answer"]);
    rig.record(notification("n1", NOTE));
    let (unasked, prompt) = (format!("unasked {NOTE}"), format!("unasked prompt {NOTE}"));
    assert_eq!(rig.told()[3..], [unasked.as_str(), &prompt, "unasked delta next"]);
}

#[test]
fn a_stop_of_an_unknown_prompt_never_ends_our_turn() {
    let mut rig = Rig::running("go");
    rig.hook(stop("other", "foreign words"));
    rig.pass(ms(100));
    rig.record(says("answer"));
    rig.hook(stop("p1", "answer"));
    rig.record(duration());
    rig.pass(ms(5000));
    assert_eq!(rig.ends(), ["end completed answer", "end unasked completed foreign words"]);
}

#[test]
fn evidence_of_an_earlier_turn_that_comes_late_never_ends_ours() {
    let mut rig = Rig::running("go");
    rig.hook(stop("p1", "first"));
    rig.pass(ms(2000));
    assert_eq!(rig.ends(), ["end completed first"]);
    rig.submit("again");
    rig.hook(submitted("p2", "again"));
    rig.did.clear();
    // The records of the first turn come only now.
    rig.record(says("first"));
    rig.record(duration());
    rig.hook(stop("p1", "first"));
    rig.hook(stop_failure("p1", "server_error"));
    assert_eq!(rig.ends(), Vec::<String>::new());
    rig.record(typed("p2", "again"));
    rig.record(says("second"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed second"]);
}

#[test]
fn short_prompts_do_not_match_foreign_records() {
    for text in ["1", "ok", "a\nb"] {
        let mut rig = Rig::ready();
        rig.submit(text);
        rig.hook(submitted("n1", &format!("<task-notification>1 ok {text}</task-notification>")));
        rig.record(notification(
            "n1",
            &format!("<task-notification>1 ok {text}</task-notification>"),
        ));
        rig.record(says("foreign"));
        rig.hook(stop("n1", "foreign"));
        rig.record(duration());
        assert_eq!(rig.ends(), ["end unasked completed foreign"]);
        rig.hook(submitted("p1", text));
        rig.record(typed("p1", text));
        rig.record(says("ours"));
        rig.record(duration());
        assert_eq!(rig.ends(), ["end unasked completed foreign", "end completed ours"]);
    }
}

#[test]
fn a_record_of_an_earlier_turn_with_the_same_words_is_no_receipt() {
    let mut rig = Rig::running("again");
    rig.record(duration());
    rig.did.clear();
    rig.submit("again");
    rig.record(typed("p1", "again"));
    assert_eq!(rig.told().iter().filter(|told| told.starts_with("delivered")).count(), 0);
    rig.hook(submitted("p2", "again"));
    assert!(rig.told().contains(&"delivered p2".to_owned()));
}

#[test]
fn prompts_that_leave_the_queue_together_share_one_turn() {
    // A person queues two prompts of theirs; 2.1.197 tells each at its dequeue.
    for hooks in [true, false] {
        let mut rig = Rig::ready();
        if hooks {
            rig.hook(submitted("q1", "one"));
            rig.hook(submitted("q2", "two"));
        }
        rig.record(queued("q1", "one"));
        rig.record(queued("q2", "two"));
        rig.record(says("both"));
        rig.hook(stop("q2", "both"));
        rig.record(duration());
        rig.pass(ms(5000));
        assert_eq!(rig.ends(), ["end unasked completed both"], "{hooks}");
    }
}

#[test]
fn prompts_that_share_a_turn_end_once_even_when_the_transcript_never_comes() {
    let mut rig = Rig::ready();
    rig.hook(submitted("q1", "one"));
    rig.hook(submitted("q2", "two"));
    rig.hook(stop("q2", "both"));
    rig.pass(ms(5000));
    assert_eq!(rig.ends().last().map(String::as_str), Some("end unasked completed both"));
}

#[test]
fn a_turn_that_the_transcript_alone_knows_is_told() {
    let mut rig = Rig::ready();
    // A shell command that a person typed: its prompt is of no kind that starts a turn.
    rig.record(Fact::Prompt {
        prompt_id: Some("b".to_owned()),
        text: "<bash-input>ls</bash-input>".to_owned(),
        source: PromptSource::Command,
    });
    assert_eq!(rig.told().len(), 1);
    rig.record(says("a listing"));
    rig.hook(stop("b", "a listing"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end unasked completed a listing"]);
}

#[test]
fn hidden_words_and_words_for_the_person_start_no_turn() {
    let mut rig = Rig::running("go");
    rig.record(says("half"));
    let hidden = Fact::Prompt {
        prompt_id: Some("p1".to_owned()),
        text: "Resume".to_owned(),
        source: PromptSource::Hidden,
    };
    rig.record(hidden);
    rig.record(says("whole"));
    rig.record(Fact::Notice { text: "Usage limit reached".to_owned() });
    rig.hook(stop("p1", "whole"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed whole"]);
    rig.did.clear();
    rig.record(Fact::Notice { text: "an update is there".to_owned() });
    rig.record(Fact::CommandOutput { text: "a cost".to_owned() });
    rig.pass(ms(60_000));
    assert_eq!(rig.told(), ["Notice", "CommandOutput"]);
}

#[test]
fn a_failure_of_a_foreign_turn_is_not_ours() {
    let mut rig = Rig::ready();
    rig.hook(submitted("n1", NOTE));
    rig.record(notification("n1", NOTE));
    rig.record(failure(FailureKind::Server, None));
    rig.hook(stop_failure("n1", "server_error"));
    rig.submit("go");
    rig.hook(submitted("p1", "go"));
    rig.record(typed("p1", "go"));
    rig.record(says("fine"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end unasked failed Server the record's words", "end completed fine"]);
}

#[test]
fn a_person_who_types_a_prompt_of_their_own_gets_a_turn_of_their_own() {
    let mut rig = Rig::ready();
    rig.see(Seen::Typed(b"their words\r".to_vec()));
    rig.hook(submitted("u1", "their words"));
    rig.record(typed("u1", "their words"));
    rig.record(says("yes"));
    rig.hook(stop("u1", "yes"));
    rig.record(duration());
    assert_eq!(rig.told()[0], "unasked their words");
    assert_eq!(rig.ends(), ["end unasked completed yes"]);
}

#[test]
fn a_notification_that_is_absorbed_starts_no_turn_and_ends_none() {
    let mut rig = Rig::running("go");
    rig.record(uses_tool("t1"));
    rig.record(enqueued(NOTE));
    rig.record(absorbed(NOTE));
    rig.record(tool_result("t1"));
    rig.record(Fact::Prompt {
        prompt_id: None,
        text: NOTE.to_owned(),
        source: PromptSource::Notification,
    });
    rig.record(says("both"));
    rig.hook(stop("p1", "both"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed both"]);
    assert!(rig.facts.iter().all(|(_, unasked)| !unasked));
}

#[test]
fn a_record_that_comes_just_behind_the_bound_is_still_marked_as_its_turn_is() {
    let mut rig = Rig::running("go");
    rig.hook(stop("p1", "answer"));
    // The bound has passed, and no tick has come in between.
    rig.now += rig.timings.transcript_lag;
    rig.record(says("answer"));
    assert_eq!(rig.told(), ["end completed answer", "says answer"]);
}
