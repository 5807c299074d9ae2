//! When the dialog takes the keys, and what happens to keys that were meant for the draft.

use super::*;

#[test]
fn a_request_first_waits_with_a_notice() {
    let mut rig = Rig::new();
    let _reply = rig.ask(command("cargo test"));
    assert_eq!(
        rig.dialog.notice(80).unwrap(),
        "bash asks for permission: `cargo test` — stop typing, or Tab to answer"
    );
    assert!(!rig.dialog.is_focused());
    assert_eq!(rig.screen().trim(), "", "nothing but the notice is drawn");
    assert_eq!(rig.dialog.notice(30).unwrap(), "bash asks: Tab to answer");
    assert_eq!(rig.dialog.notice(10).unwrap(), "bash asks…");
    let _other = rig.ask(command("ls"));
    assert!(rig.dialog.notice(90).unwrap().contains("(1 of 2)"));
}

#[test]
fn it_takes_the_focus_when_the_person_has_stopped_typing() {
    let mut rig = Rig::new();
    rig.type_text("a");
    rig.wait(100);
    let _reply = rig.ask(command("ls"));
    assert_eq!(rig.dialog.next_deadline(), Some(rig.now + Duration::from_millis(500)));
    rig.wait(499);
    assert!(!rig.dialog.is_focused());
    rig.wait(1);
    assert!(rig.dialog.is_focused());
    assert_eq!(rig.dialog.next_deadline(), None);
    assert_eq!(rig.dialog.notice(80), None);
}

#[test]
fn it_waits_a_moment_even_for_a_person_who_does_not_type() {
    let mut rig = Rig::new();
    rig.wait(10_000);
    let _reply = rig.ask(command("ls"));
    rig.wait(299);
    assert!(!rig.dialog.is_focused());
    rig.wait(1);
    assert!(rig.dialog.is_focused());
}

#[test]
fn the_focus_key_takes_it_at_once() {
    let mut rig = Rig::new();
    assert!(!rig.dialog.focus(), "nothing waits");
    rig.type_text("typing");
    let (_, reply) = rig.ask(command("ls"));
    assert!(rig.dialog.focus());
    assert!(matches!(rig.key(KeyCode::Enter), DialogOutcome::Answered(_)));
    assert_eq!(decided(reply), Some(DENY), "Deny is where the focus begins");
}

#[test]
fn keys_typed_ahead_go_to_the_draft_and_never_answer() {
    for typed in ["y", "n", "a", "p", "1", "2", "3", " ", "Y", "é"] {
        let mut rig = Rig::new();
        let (_, reply) = rig.ask(command("touch marker"));
        rig.wait(300);
        assert!(rig.dialog.is_focused());
        rig.screen();
        rig.type_text(typed);
        assert!(!rig.dialog.is_focused(), "{typed:?} gives the focus back");
        assert_eq!(rig.composer.text(), typed);
        rig.key(KeyCode::Enter);
        assert!(!rig.dialog.is_focused());
        rig.wait(599);
        assert!(!rig.dialog.is_focused(), "the wait begins anew");
        rig.wait(1);
        assert!(rig.dialog.is_focused());
        rig.screen();
        rig.keys(&[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
        assert_eq!(
            decided(reply),
            Some(PermissionPromptDecision::AllowOnce),
            "one deliberate answer afterwards works the first time"
        );
    }
}

#[test]
fn a_person_who_types_through_a_request_answers_nothing_and_loses_nothing() {
    let set: Vec<char> = "ynap 123 quick brown fox".chars().collect();
    for seed in 0..50u64 {
        let mut rig = Rig::new();
        let mut typed = String::new();
        let mut reply = None;
        // A small generator is enough: any spread of keys and of arrival times will do.
        let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let arrives_after = 1_000 + next(3_000);
        let stops_after = arrives_after + 100 + next(200);
        for at in (0..stops_after).step_by(60) {
            if at >= arrives_after && reply.is_none() {
                reply = Some(rig.ask(command("touch marker")).1);
                assert!(rig.dialog.notice(80).is_some(), "the notice is there at once");
            }
            let c = set[usize::try_from(next(set.len() as u64)).unwrap()];
            typed.push(c);
            rig.key(KeyCode::Char(c));
            rig.wait(60);
            assert!(!rig.dialog.is_focused());
        }
        let reply = reply.unwrap_or_else(|| rig.ask(command("touch marker")).1);
        rig.key(KeyCode::Enter);
        assert_eq!(rig.submitted.concat(), typed.trim_end());
        rig.wait(600);
        assert!(rig.dialog.is_focused() && rig.screen().contains("touch marker"));
        rig.keys(&[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
        assert_eq!(decided(reply), Some(PermissionPromptDecision::AllowOnce));
    }
}

#[test]
fn typing_in_a_list_counts_as_typing() {
    let mut rig = Rig::new();
    let _reply = rig.ask(command("ls"));
    rig.now += Duration::from_millis(290);
    rig.dialog.note_typed(rig.now);
    rig.wait(599);
    assert!(!rig.dialog.is_focused());
    rig.wait(1);
    assert!(rig.dialog.is_focused());
}

#[test]
fn a_paste_goes_to_the_draft() {
    let mut rig = Rig::new();
    let (_, reply) = rig.ask(command("ls"));
    rig.dialog.focus();
    assert_eq!(rig.event(&Event::Paste("y\ny\n".into())), DialogOutcome::Ignored);
    assert!(!rig.dialog.is_focused());
    assert_eq!(rig.composer.text(), "y\ny\n");
    drop(rig);
    assert_eq!(decided(reply), None, "dropping the dialog answers nothing, which denies");
}

#[test]
fn keys_for_the_whole_program_pass_and_ctrl_c_passes_from_everywhere() {
    let mut rig = Rig::new();
    let _reply = rig.ask(command("ls"));
    rig.dialog.focus();
    let pass = |rig: &mut Rig, code, modifiers| {
        rig.dialog.handle(rig.now, &Event::Key(KeyEvent::new(code, modifiers)))
    };
    assert_eq!(pass(&mut rig, KeyCode::F(1), KeyModifiers::NONE), DialogOutcome::Ignored);
    assert_eq!(pass(&mut rig, KeyCode::Up, KeyModifiers::ALT), DialogOutcome::Ignored);
    assert!(rig.dialog.is_focused());
    rig.keys(&[KeyCode::Down, KeyCode::Enter]);
    let outcome = pass(&mut rig, KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(outcome, DialogOutcome::Ignored);
    assert!(rig.dialog.is_waiting());
}
