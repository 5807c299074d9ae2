use super::super::{HookSeen, Reading, Seen};
use super::rig::*;
use crate::fact::FailureKind;

fn ours(title: &str, key: &[u8]) -> Reading {
    Reading::Ours { key: key.to_vec(), title: title.to_owned(), screen: title.to_owned() }
}

#[test]
fn ready_is_said_by_the_hook_only_and_at_once() {
    let mut rig = Rig::new();
    rig.see(Seen::Spawned);
    rig.see(Seen::ScreenChanged);
    rig.pass(ms(2000));
    assert_eq!(rig.did(), []);
    rig.hook(start(SESSION));
    assert_eq!(rig.did, [(2000, Did::Told(format!("ready {SESSION} 2.1.332")))]);
}

#[test]
fn a_worker_that_never_becomes_ready_fails_at_the_deadline_with_its_screen() {
    let mut rig = Rig::new();
    rig.see(Seen::Spawned);
    rig.submit("waits");
    rig.pass(ms(29_000));
    assert_eq!(rig.did(), []);
    rig.pass(ms(1000));
    let failed = "NotReady".to_owned();
    assert_eq!(rig.did(), [Did::Submitted(Err(failed.clone())), Did::GaveUp(failed)]);
    assert_eq!(rig.machine.deadline(), None);
}

#[test]
fn a_dialog_of_ours_gets_one_key_after_each_fresh_reading_and_is_answered_as_often_as_it_comes() {
    let mut rig = Rig::new();
    rig.screen = ours("trust", b"\x1b[B");
    rig.see(Seen::Spawned);
    rig.pass(ms(400));
    rig.screen = ours("trust", b"\r");
    rig.see(Seen::ScreenChanged);
    rig.pass(ms(399));
    assert_eq!(rig.wrote(), ["\x1b[B"]);
    rig.pass(ms(1));
    assert_eq!(rig.wrote(), ["\x1b[B", "\r"]);
    rig.screen = plain();
    rig.see(Seen::ScreenChanged);
    rig.pass(ms(500));
    rig.screen = ours("trust", b"\r");
    rig.see(Seen::ScreenChanged);
    rig.pass(ms(400));
    rig.screen = plain();
    rig.pass(ms(400));
    assert_eq!(rig.wrote(), ["\x1b[B", "\r", "\r"]);
}

#[test]
fn after_ready_no_dialog_gets_a_key_of_ours() {
    let mut rig = Rig::ready();
    rig.screen = ours("trust", b"\r");
    for _ in 0..5 {
        rig.see(Seen::ScreenChanged);
        rig.pass(ms(1000));
    }
    rig.submit("hello");
    rig.pass(ms(30_000));
    assert_eq!(rig.wrote(), Vec::<String>::new());
    assert_eq!(
        rig.did(),
        [Did::Told("dialog trust".to_owned()), Did::Submitted(Err("Dialog trust".to_owned()))]
    );
}

#[test]
fn a_dialog_of_the_person_is_told_with_its_title_and_fails_the_start_at_the_deadline() {
    let mut rig = Rig::new();
    rig.screen = dialog("Accept the terms");
    rig.see(Seen::Spawned);
    rig.pass(ms(29_999));
    assert_eq!(rig.did(), [Did::Told("dialog Accept the terms".to_owned())]);
    rig.pass(ms(1));
    assert_eq!(rig.did().last(), Some(&Did::GaveUp("Dialog Accept the terms".to_owned())));
    assert_eq!(rig.wrote(), Vec::<String>::new());
}

#[test]
fn a_person_who_answers_the_dialog_gets_the_whole_time_again() {
    let mut rig = Rig::new();
    rig.screen = dialog("Accept the terms");
    rig.see(Seen::Spawned);
    rig.pass(ms(20_000));
    rig.see(Seen::Typed(b"\r".to_vec()));
    rig.screen = plain();
    rig.pass(ms(20_000));
    rig.hook(start(SESSION));
    assert_eq!(rig.did().last(), Some(&Did::Told(format!("ready {SESSION} 2.1.332"))));
}

#[test]
fn a_login_that_is_asked_for_is_known_within_a_second_and_gets_no_key() {
    let mut rig = Rig::new();
    let title = "Select login method:".to_owned();
    rig.screen = Reading::Login { screen: format!("{title}\n❯ 1. Account\n  2. Key"), title };
    rig.see(Seen::Spawned);
    rig.pass(ms(1_000));
    assert_eq!(rig.did(), [Did::GaveUp("Auth".to_owned())]);
}

#[test]
fn a_refused_login_and_an_early_exit_are_told_apart_by_what_they_are() {
    let mut rig = Rig::new();
    rig.see(Seen::Spawned);
    rig.hook(stop_failure("p0", "authentication_failed"));
    assert_eq!(rig.did(), [Did::GaveUp("Auth".to_owned())]);

    let mut rig = Rig::new();
    rig.see(Seen::Spawned);
    rig.record(failure(FailureKind::Authentication, None));
    assert_eq!(rig.did(), [Did::GaveUp("Auth".to_owned())]);

    let mut rig = Rig::new();
    rig.see(Seen::Spawned);
    rig.screen = Reading::Plain { screen: "Please run /login · rate limit".to_owned() };
    rig.see(Seen::Exited { status: "exit 1".to_owned(), screen: "Please run /login".to_owned() });
    assert_eq!(rig.did(), [Did::GaveUp("StartFailed".to_owned())]);
}

#[test]
fn words_about_limits_and_logins_on_the_screen_mark_nothing() {
    let mut rig = Rig::new();
    rig.hook(stop_failure("p0", "rate_limit"));
    let words = "Please run /login · Usage limit reached · rate limited · Invalid API key";
    rig.screen = Reading::Plain { screen: words.to_owned() };
    rig.see(Seen::Spawned);
    rig.pass(ms(1000));
    rig.hook(start(SESSION));
    rig.pass(ms(1000));
    rig.submit("hello");
    rig.hook(submitted("p1", "hello"));
    rig.record(typed("p1", "hello"));
    rig.record(says(words));
    rig.hook(stop("p1", words));
    rig.record(duration());
    assert_eq!(rig.ends(), [format!("end completed {words}")]);
    assert!(!rig.wrote().contains(&"\x1b".to_owned()));
}

#[test]
fn a_session_that_a_person_clears_goes_on_under_its_new_id() {
    let mut rig = Rig::ready();
    rig.see(Seen::Typed(b"/clear\r".to_vec()));
    rig.hook(HookSeen::SessionEnd { reason: "clear".to_owned() });
    rig.hook(HookSeen::SessionStart { session_id: "new".to_owned(), source: "clear".to_owned() });
    rig.hook(HookSeen::SessionStart { session_id: "new".to_owned(), source: "compact".to_owned() });
    assert_eq!(rig.told(), ["session new"]);
    rig.submit("hello");
    rig.hook(submitted("p1", "hello"));
    assert_eq!(rig.told(), ["session new", "delivered p1"]);
}
