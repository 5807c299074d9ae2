//! Answers: each serves one request, once, and only when it was meant.

use super::*;

#[test]
fn what_is_asked_every_time_cannot_be_allowed_for_the_session() {
    let mut rig = Rig::new();
    let mut asked = command("rm -rf ..");
    asked.reason = Some("it destroys what is outside the workspace".into());
    let (_, reply) = rig.ask(asked);
    rig.dialog.focus();
    let screen = rig.screen();
    assert!(!screen.contains("for this session"), "{screen}");
    rig.keys(&[KeyCode::Down; 2]);
    assert!(rig.screen().contains("› Allow once"));
    rig.wait(SETTLE.as_millis() as u64);
    rig.key(KeyCode::Enter);
    assert_eq!(decided(reply), Some(PermissionPromptDecision::AllowOnce));
}

#[test]
fn each_choice_is_answered_by_enter() {
    use PermissionPromptDecision as D;
    for (downs, expected) in [(0, DENY), (2, D::AllowOnce), (3, D::AllowForSession)] {
        let mut rig = Rig::new();
        let (id, reply) = rig.ask(command("ls"));
        rig.dialog.focus();
        rig.screen();
        for _ in 0..downs {
            rig.key(KeyCode::Down);
        }
        let answer =
            Answer { id, tool_name: "bash".into(), decision: expected.clone(), late: false };
        assert_eq!(rig.key(KeyCode::Enter), DialogOutcome::Answered(answer));
        assert_eq!(decided(reply), Some(expected));
        assert!(!rig.dialog.is_focused() && !rig.dialog.is_waiting());
    }
}

#[test]
fn up_from_deny_stays_on_deny() {
    let mut rig = Rig::new();
    let (_, reply) = rig.ask(command("ls"));
    rig.dialog.focus();
    rig.screen();
    rig.keys(&[KeyCode::Up, KeyCode::Left, KeyCode::BackTab, KeyCode::Enter]);
    assert_eq!(decided(reply), Some(DENY));
}

#[test]
fn esc_denies_once() {
    let mut rig = Rig::new();
    let (_, first) = rig.ask(command("ls"));
    let (_, second) = rig.ask(command("rm x"));
    rig.dialog.focus();
    rig.key(KeyCode::Esc);
    assert_eq!(decided(first), Some(DENY));
    assert_eq!(
        rig.key(KeyCode::Esc),
        DialogOutcome::Consumed,
        "a second Esc at once was not meant for the next"
    );
    rig.wait(300);
    assert!(rig.dialog.is_focused());
    rig.key(KeyCode::Esc);
    assert_eq!(decided(second), Some(DENY));
}

#[test]
fn a_reason_is_typed_in_its_own_field_and_only_enter_confirms_it() {
    let mut rig = Rig::new();
    let (_, reply) = rig.ask(command("ls"));
    rig.dialog.focus();
    rig.keys(&[KeyCode::Down, KeyCode::Enter]);
    rig.type_text("y no");
    rig.keys(&[KeyCode::Backspace, KeyCode::Backspace, KeyCode::Backspace, KeyCode::Backspace]);
    rig.keys(&[KeyCode::Backspace, KeyCode::Backspace, KeyCode::Tab, KeyCode::Up]);
    assert!(rig.dialog.is_waiting(), "Backspace never confirms");
    rig.type_text("use jq");
    insta::assert_snapshot!(rig.screen().trim_start(), @"
    ╭ bash asks for permission ────────────────────────────────────────────────────╮
    │ mode workspace-write · needs danger-full-access                              │
    │ ls                                                                           │
    │                                                                              │
    │   Deny                                                                       │
    │ › Reason: use jq‸                                                             │
    │   Allow once                                                                 │
    │   Allow for this session: `cargo test`                                       │
    │   Change it in your editor first…                                            │
    │ Enter denies with this reason · Esc goes back                                │
    ╰──────────────────────────────────────────────────────────────────────────────╯
    ");
    rig.key(KeyCode::Esc);
    assert!(rig.dialog.is_focused() && rig.dialog.is_waiting(), "Esc only leaves the field");
    rig.key(KeyCode::Enter);
    rig.type_text("use jq instead");
    rig.key(KeyCode::Enter);
    let reason = Some("use jq instead".to_owned());
    assert_eq!(decided(reply), Some(PermissionPromptDecision::Deny { reason }));
    assert!(rig.composer.is_empty());
}

#[test]
fn an_answer_to_one_request_never_serves_the_next() {
    let mut rig = Rig::new();
    let (_, first) = rig.ask(command("one"));
    let (_, second) = rig.ask(command("two"));
    rig.dialog.focus();
    rig.screen();
    rig.keys(&[KeyCode::Down, KeyCode::Down, KeyCode::Enter, KeyCode::Enter, KeyCode::Enter]);
    assert_eq!(decided(first), Some(PermissionPromptDecision::AllowOnce));
    assert!(rig.screen().contains("2 of 2"));
    assert!(rig.dialog.is_waiting(), "Enter at once was not meant for the second");
    rig.wait(300);
    rig.key(KeyCode::Enter);
    assert_eq!(decided(second), Some(DENY));
}

#[test]
fn a_key_held_down_answers_once() {
    let mut rig = Rig::new();
    let (_, first) = rig.ask(command("one"));
    let (_, second) = rig.ask(command("two"));
    rig.dialog.focus();
    rig.key(KeyCode::Enter);
    let mut held = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
    held.kind = KeyEventKind::Repeat;
    for _ in 0..30 {
        rig.wait(33);
        assert_eq!(rig.event(&Event::Key(held)), DialogOutcome::Consumed);
    }
    assert_eq!(decided(first), Some(DENY));
    assert!(rig.dialog.is_waiting());
    rig.key(KeyCode::Enter);
    assert_eq!(decided(second), Some(DENY));
}

#[test]
fn a_retired_request_takes_its_keys_with_it() {
    let mut rig = Rig::new();
    let (id, _gone) = rig.ask(command("one"));
    rig.composer.set_text("draft");
    rig.dialog.focus();
    rig.screen();
    rig.keys(&[KeyCode::Down, KeyCode::Down]);
    assert!(rig.dialog.retire(id, rig.now));
    assert!(!rig.dialog.retire(id, rig.now));
    rig.key(KeyCode::Enter);
    assert!(rig.submitted.is_empty(), "Enter meant for the request does not send the draft");
    rig.wait(300);
    rig.key(KeyCode::Enter);
    assert_eq!(rig.submitted, ["draft"]);
}

#[test]
fn a_request_behind_the_front_can_retire() {
    let mut rig = Rig::new();
    let (_, first) = rig.ask(command("one"));
    let (id, _second) = rig.ask(command("two"));
    rig.dialog.focus();
    rig.screen();
    rig.keys(&[KeyCode::Down, KeyCode::Down]);
    assert!(rig.dialog.retire(id, rig.now));
    rig.key(KeyCode::Enter);
    assert_eq!(decided(first), Some(PermissionPromptDecision::AllowOnce));
}

#[test]
fn a_late_answer_says_so() {
    let mut rig = Rig::new();
    let (_, reply) = rig.ask(command("ls"));
    drop(reply);
    rig.dialog.focus();
    let DialogOutcome::Answered(answer) = rig.key(KeyCode::Enter) else { panic!("no answer") };
    assert!(answer.late);
}
