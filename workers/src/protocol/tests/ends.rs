use super::super::{AskedBy, HookSeen, Seen};
use super::rig::*;
use crate::fact::{Fact, FailureKind};

fn interrupted() -> Fact {
    Fact::Interrupted { in_tool: false }
}

#[test]
fn the_end_is_told_after_the_last_record_and_once() {
    let mut rig = Rig::running("go");
    rig.hook(stop("p1", "answer"));
    assert_eq!(rig.told(), Vec::<String>::new());
    rig.pass(ms(100));
    rig.record(says("answer"));
    rig.record(duration());
    rig.record(duration());
    rig.hook(stop("p1", "answer"));
    rig.pass(ms(60_000));
    assert_eq!(rig.told(), ["says answer", "TurnDuration", "end completed answer"]);
}

#[test]
fn a_transcript_that_lags_or_is_missing_holds_the_end_no_longer_than_its_bound() {
    let mut rig = Rig::running_unrecorded("go");
    rig.hook(stop("p1", "answer"));
    rig.pass(ms(199));
    assert_eq!(rig.told(), Vec::<String>::new());
    rig.pass(ms(1));
    assert_eq!(rig.told(), ["end completed answer"], "there is no transcript at all");
    let mut rig = Rig::running("go");
    rig.record(uses_tool("t1"));
    rig.hook(stop("p1", "answer"));
    rig.pass(ms(1999));
    assert_eq!(rig.ends(), Vec::<String>::new());
    rig.pass(ms(1));
    assert_eq!(rig.told().last().map(String::as_str), Some("end completed answer"));
    // The last words are there, and only the closing record is missing.
    let mut rig = Rig::running("go");
    rig.record(says("answer"));
    rig.hook(stop("p1", "answer"));
    rig.pass(ms(200));
    assert_eq!(rig.told(), ["says answer", "end completed answer"]);
    // The first of it comes while the end waits.
    let mut rig = Rig::running_unrecorded("go");
    rig.hook(stop("p1", "answer"));
    rig.pass(ms(150));
    rig.record(typed("p1", "go"));
    rig.record(uses_tool("t1"));
    rig.pass(ms(1000));
    rig.record(tool_result("t1"));
    rig.record(says("answer"));
    rig.record(duration());
    assert_eq!(rig.told().last().map(String::as_str), Some("end completed answer"));
    assert_eq!(rig.ends().len(), 1);
}

#[test]
fn words_that_were_said_earlier_in_the_turn_do_not_end_the_wait() {
    let mut rig = Rig::running("go");
    rig.record(says("ok"));
    rig.record(uses_tool("t1"));
    rig.hook(stop("p1", "ok"));
    rig.pass(ms(600));
    assert_eq!(rig.ends(), Vec::<String>::new());
    rig.record(tool_result("t1"));
    rig.record(says("ok"));
    rig.record(duration());
    assert_eq!(rig.told().last().map(String::as_str), Some("end completed ok"));
}

#[test]
fn each_end_has_its_own_outcome_once_whichever_evidence_comes_first() {
    let failed = || Seen::Record(failure(FailureKind::Server, None));
    let hook = || Seen::Hook(stop_failure("p1", "server_error"));
    for (seen, end) in [
        (vec![failed(), hook()], "end failed Server the record's words"),
        (vec![hook(), failed()], "end failed Server the record's words"),
        (vec![hook()], "end failed Server the hook's words"),
        (vec![failed()], "end failed Server the record's words"),
        (vec![Seen::Record(duration())], "end completed nothing"),
        (vec![Seen::Record(says("x")), Seen::Record(duration())], "end completed x"),
        (vec![Seen::Record(duration()), Seen::Hook(stop("p1", "x"))], "end completed nothing"),
        (vec![Seen::Hook(stop("p1", "x")), Seen::Record(duration())], "end completed x"),
        (vec![Seen::Record(interrupted())], "end Interrupted"),
        (vec![Seen::Record(says("x")), Seen::Record(interrupted())], "end Interrupted"),
    ] {
        let mut rig = Rig::running("go");
        let story = format!("{seen:?}");
        for seen in seen {
            rig.see(seen);
        }
        rig.pass(ms(2000));
        assert_eq!(rig.ends(), [end], "{story}");
        rig.submit("next");
        rig.hook(submitted("p2", "next"));
        assert!(rig.told().contains(&"delivered p2".to_owned()), "{story}");
        rig.pass(ms(60_000));
        assert_eq!(rig.ends().len(), 1, "{story}");
    }
}

#[test]
fn an_end_is_told_within_a_second_of_its_record() {
    for record in [
        failure(FailureKind::Server, None),
        failure(FailureKind::UsageLimit, Some("rejected")),
        interrupted(),
    ] {
        let mut rig = Rig::running("go");
        rig.record(record);
        assert_eq!(rig.ends().len(), 1);
    }
}

#[test]
fn a_warning_about_the_quota_never_ends_a_turn() {
    let mut rig = Rig::running("go");
    for status in ["allowed", "allowed_warning", "rejected"] {
        let quota = crate::fact::Quota { status: status.to_owned(), resets_at: None, kind: None };
        rig.record(Fact::Quota(quota.clone()));
        rig.see(Seen::Live { fact: Fact::Quota(quota), prompt_id: None });
    }
    rig.pass(ms(10_000));
    assert_eq!(rig.told(), ["Quota"; 6]);
    rig.hook(stop("p1", "answer"));
    rig.record(says("answer"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed answer"]);
    assert_eq!(rig.wrote(), Vec::<String>::new());
}

#[test]
fn going_on_by_itself_after_a_limit_is_cancelled_with_one_esc_and_only_by_the_record() {
    let mut rig = Rig::running("go");
    rig.hook(stop_failure("p1", "rate_limit"));
    rig.record(failure(FailureKind::UsageLimit, Some("rejected")));
    rig.pass(ms(10_000));
    assert_eq!(rig.wrote(), ["\x1b"]);

    for (kind, quota) in [
        (FailureKind::UsageLimit, None),
        (FailureKind::UsageLimit, Some("allowed_warning")),
        (FailureKind::Server, Some("rejected")),
    ] {
        let mut rig = Rig::running("go");
        rig.record(failure(kind, quota));
        rig.pass(ms(10_000));
        assert_eq!(rig.wrote(), Vec::<String>::new());
    }

    let mut rig = Rig::running("go");
    rig.screen = dialog("What do you want to do?");
    rig.record(failure(FailureKind::UsageLimit, Some("rejected")));
    rig.pass(ms(10_000));
    assert_eq!(rig.wrote(), Vec::<String>::new());
}

#[test]
fn an_esc_never_follows_an_esc_while_idle() {
    let mut rig = Rig::running("go");
    rig.see(Seen::Interrupt);
    rig.record(failure(FailureKind::UsageLimit, Some("rejected")));
    rig.see(Seen::Interrupt);
    rig.pass(ms(10_000));
    assert_eq!(rig.wrote(), ["\x1b"]);
}

#[test]
fn a_dialog_that_an_interrupt_closed_keeps_no_prompt_back() {
    let mut rig = Rig::running("go");
    rig.hook(HookSeen::PermissionAsked { by: AskedBy::Turn });
    rig.see(Seen::Interrupt);
    rig.record(Fact::Interrupted { in_tool: true });
    rig.did.clear();
    rig.submit("next");
    rig.pass(ms(400));
    assert_eq!(rig.wrote(), [pasted("next"), "\r".to_owned()]);
}

#[test]
fn the_next_prompt_is_not_glued_to_the_esc_before_it() {
    let mut rig = Rig::running("go");
    rig.record(failure(FailureKind::UsageLimit, Some("rejected")));
    rig.submit("next");
    rig.pass(ms(1000));
    assert_eq!(rig.wrote(), ["\x1b".to_owned(), pasted("next"), "\r".to_owned()]);
    let at: Vec<_> =
        rig.did.iter().filter(|(_, did)| matches!(did, Did::Wrote(_))).map(|(at, _)| *at).collect();
    assert!(at[1] - at[0] >= 400);
}

#[test]
fn esc_stops_the_running_turn_only_and_the_next_prompt_is_answered() {
    let mut rig = Rig::running("go");
    rig.record(says("some"));
    rig.see(Seen::Interrupt);
    rig.see(Seen::Interrupt);
    rig.record(interrupted());
    rig.see(Seen::Interrupt);
    rig.pass(ms(60_000));
    assert_eq!(rig.wrote(), ["\x1b"]);
    assert_eq!(rig.ends(), ["end Interrupted"]);
    rig.did.clear();
    rig.submit("next");
    assert_eq!(rig.wrote(), [pasted("next"), "\r".to_owned()]);
    rig.hook(submitted("p2", "next"));
    rig.record(typed("p2", "next"));
    rig.record(says("yes"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed yes"]);
}

#[test]
fn nothing_is_sent_when_no_turn_runs() {
    let mut rig = Rig::ready();
    rig.see(Seen::Interrupt);
    assert_eq!(rig.did(), []);
    let mut rig = Rig::running("go");
    rig.record(duration());
    rig.did.clear();
    rig.see(Seen::Interrupt);
    rig.pass(ms(10_000));
    assert_eq!(rig.did(), []);
}

#[test]
fn a_prompt_that_was_stopped_before_any_output_is_withdrawn_and_its_box_emptied() {
    let mut rig = Rig::running("one\ntwo\nthree");
    rig.see(Seen::Interrupt);
    rig.pass(ms(999));
    assert_eq!(rig.ends(), Vec::<String>::new());
    rig.pass(ms(1));
    assert_eq!(rig.ends(), ["end Withdrawn"]);
    rig.did.clear();
    rig.submit("next");
    rig.pass(ms(400));
    assert_eq!(rig.wrote(), ["\x15\x15\x15".to_owned(), pasted("next"), "\r".to_owned()]);
    // With output, a missing record makes it an interrupt all the same.
    let mut rig = Rig::running("go");
    rig.see(Seen::Live {
        fact: Fact::TextDelta { message: "m".to_owned(), block: 0, text: "x".to_owned() },
        prompt_id: None,
    });
    rig.see(Seen::Interrupt);
    rig.pass(ms(3000));
    assert_eq!(rig.ends(), ["end Interrupted"]);
}

#[test]
fn a_prompt_that_is_stopped_before_its_cr_is_taken_back_and_after_it_as_soon_as_its_turn_runs() {
    let mut rig = Rig::ready();
    rig.see(Seen::Submit { ticket: 1, text: "go".to_owned() });
    rig.see(Seen::Interrupt);
    rig.pass(ms(60_000));
    assert_eq!(
        rig.did(),
        [Did::Wrote(pasted("go")), Did::Submitted(Err("RefusedPrompt".to_owned()))]
    );

    let mut rig = Rig::ready();
    rig.submit("go");
    rig.see(Seen::Interrupt);
    assert_eq!(rig.wrote().len(), 2);
    rig.hook(submitted("p1", "go"));
    assert_eq!(rig.wrote()[2], "\x1b");
    rig.record(typed("p1", "go"));
    rig.pass(ms(3000));
    assert_eq!(rig.ends(), ["end Withdrawn"]);
}

#[test]
fn a_person_who_stops_the_turn_in_its_own_screen_ends_it_too() {
    for key in [0x1b, 0x03] {
        let mut rig = Rig::running("go");
        rig.see(Seen::Typed(vec![key]));
        rig.pass(ms(3000));
        assert_eq!(rig.ends(), ["end Withdrawn"]);
    }
}

#[test]
fn a_person_who_closes_something_else_with_esc_ends_no_turn() {
    // The turn shows that it goes on.
    let mut rig = Rig::running("go");
    rig.see(Seen::Typed(vec![0x1b]));
    for _ in 0..10 {
        rig.pass(ms(1000));
        rig.see(Seen::ScreenChanged);
    }
    assert_eq!(rig.ends(), Vec::<String>::new());
    // Output would have left a record.
    let mut rig = Rig::running("go");
    rig.record(says("some"));
    rig.see(Seen::Typed(vec![0x1b]));
    rig.pass(ms(10_000));
    assert_eq!(rig.ends(), Vec::<String>::new());
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed some"]);
}

#[test]
fn the_end_of_the_process_ends_the_turn_after_what_its_transcript_holds() {
    let mut rig = Rig::running("go");
    rig.file.push_back(says("last words"));
    rig.see(Seen::Exited { status: "signal 9".to_owned(), screen: String::new() });
    assert_eq!(
        rig.did(),
        [
            Did::Told("says last words".to_owned()),
            Did::GaveUp("Crashed may_have_run=true".to_owned())
        ]
    );

    // An end that is known is told as what it was.
    let mut rig = Rig::running("go");
    rig.hook(stop("p1", "answer"));
    rig.see(Seen::Exited { status: "exit 0".to_owned(), screen: String::new() });
    assert_eq!(
        rig.did(),
        [
            Did::Told("end completed answer".to_owned()),
            Did::GaveUp("Crashed may_have_run=false".to_owned())
        ]
    );
}

#[test]
fn a_crash_says_whether_the_prompt_may_have_run() {
    let exit = || Seen::Exited { status: "signal 9".to_owned(), screen: String::new() };
    let mut rig = Rig::ready();
    rig.see(Seen::Submit { ticket: 1, text: "go".to_owned() });
    rig.see(exit());
    assert!(rig.did().contains(&Did::Submitted(Err("Crashed may_have_run=false".to_owned()))));
    let mut rig = Rig::ready();
    rig.submit("go");
    rig.see(exit());
    assert!(rig.did().contains(&Did::Submitted(Err("Crashed may_have_run=true".to_owned()))));
}

#[test]
fn silence_is_measured_from_the_last_sign_of_life_and_not_while_a_person_is_asked() {
    let mut rig = Rig::running("go");
    let limit = rig.timings.inactivity;
    let almost = limit.saturating_sub(ms(1));
    for sign in
        [Seen::ScreenChanged, Seen::Traffic, Seen::Hook(HookSeen::Other), Seen::Record(says("x"))]
    {
        rig.pass(almost);
        rig.see(sign);
    }
    rig.hook(HookSeen::PermissionAsked { by: AskedBy::Turn });
    rig.pass(limit * 3);
    rig.hook(HookSeen::PermissionSettled { by: AskedBy::Turn });
    rig.pass(almost);
    assert_eq!(rig.ends(), Vec::<String>::new());
    rig.pass(ms(1));
    assert_eq!(rig.did().last(), Some(&Did::GaveUp("Inactive".to_owned())));
    // An idle worker may be silent for ever.
    let mut rig = Rig::ready();
    rig.pass(limit * 3);
    assert_eq!(rig.did(), []);
}

fn compacting() -> Rig {
    let mut rig = Rig::ready();
    rig.see(Seen::Compact);
    rig.pass(ms(300));
    assert_eq!(rig.wrote(), [pasted("/compact"), "\r".to_owned()]);
    rig.did.clear();
    rig
}

fn compacted() -> Fact {
    Fact::Compacted { automatic: false, before_tokens: 9, after_tokens: 1 }
}

fn output() -> Fact {
    Fact::CommandOutput { text: "Compacted".to_owned() }
}

#[test]
fn a_compaction_ends_as_one_in_any_order_of_its_evidence() {
    let before =
        || Seen::Hook(HookSeen::PreCompact { prompt_id: Some("c".to_owned()), automatic: false });
    let after =
        || Seen::Hook(HookSeen::PostCompact { prompt_id: Some("c".to_owned()), automatic: false });
    let read = || vec![Seen::Record(compacted()), Seen::Record(output())];
    let orders = [
        [vec![before(), after()], read()].concat_seen(),
        [vec![before()], read(), vec![after()]].concat_seen(),
        [read(), vec![before(), after()]].concat_seen(),
        vec![before(), after()],
        read(),
    ];
    for order in orders {
        let mut rig = compacting();
        let story = format!("{order:?}");
        for seen in order {
            rig.see(seen);
        }
        rig.hook(HookSeen::SessionStart {
            session_id: SESSION.to_owned(),
            source: "compact".to_owned(),
        });
        rig.pass(ms(10_000));
        assert_eq!(rig.ends(), ["end Compacted"], "{story}");
    }
}

trait Concat {
    fn concat_seen(self) -> Vec<Seen>;
}

impl<const N: usize> Concat for [Vec<Seen>; N] {
    fn concat_seen(self) -> Vec<Seen> {
        self.into_iter().flatten().collect()
    }
}

#[test]
fn a_compaction_that_does_nothing_or_never_ends_is_told_as_failed() {
    let mut rig = compacting();
    rig.record(Fact::CommandOutput { text: "Not enough messages to compact.".to_owned() });
    assert!(rig.ends()[0].contains("Not enough messages"));
    let mut rig = compacting();
    rig.pass(ms(15_000));
    assert_eq!(rig.ends().len(), 1);
    let mut rig = compacting();
    rig.hook(HookSeen::PreCompact { prompt_id: Some("c".to_owned()), automatic: false });
    rig.pass(rig.timings.compaction);
    assert_eq!(rig.ends().len(), 1);
    let mut rig = Rig::running("go");
    rig.see(Seen::Compact);
    assert_eq!(rig.ends().len(), 1);
    assert_eq!(rig.wrote(), Vec::<String>::new());
}

#[test]
fn a_compaction_of_the_clis_own_is_only_a_fact() {
    let mut rig = Rig::running("go");
    rig.hook(HookSeen::PreCompact { prompt_id: Some("p1".to_owned()), automatic: true });
    rig.record(Fact::Compacted { automatic: true, before_tokens: 9, after_tokens: 1 });
    rig.hook(HookSeen::PostCompact { prompt_id: Some("p1".to_owned()), automatic: true });
    rig.record(says("x"));
    rig.record(duration());
    assert_eq!(rig.ends(), ["end completed x"]);
}
