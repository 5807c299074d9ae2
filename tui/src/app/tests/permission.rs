//! A question may be answered by nothing but an answer to it.

use claw_runtime::permissions::PermissionPromptDecision::{AllowOnce, Deny};
use claw_runtime::permissions::{
    Asker, PermissionReply, PermissionRequest, RequestKind, RetiredReason,
};
use tokio::sync::oneshot::error::TryRecvError;

use super::*;

/// A turn in which a key was pressed just now.
fn typing() -> Stage {
    let mut stage = Stage::in_a_turn();
    stage.wait(5_000);
    stage.type_text("so");
    stage
}

#[test]
fn a_question_that_arrives_while_typing_shows_a_notice_and_takes_no_key() {
    let mut stage = typing();
    let (_, mut answer) = stage.ask("rm -r build");
    stage.shows("bash");
    insta::assert_snapshot!(stage.screen(), @r"
    > hello



















    bash asks for permission: `rm -r build` — stop typing, or Tab to answer
    ────────────────────────────────────────────────────────────────────────────────
    ❯ so
     anthropic · workspace-write · claude-x · ctx 0 %    waiting for your permission
    ");
    stage.wait(100);
    stage.type_text(" far");
    stage.key("enter");
    assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
    stage.shows("so far");
}

#[test]
fn a_question_takes_the_focus_600_ms_after_the_last_key() {
    let mut stage = typing();
    let (_, _answer) = stage.ask("ls");
    stage.wait(500);
    stage.type_text("!");
    stage.wait(599);
    assert!(!stage.app.permissions.is_focused());
    stage.wait(1);
    assert!(stage.app.permissions.is_focused());
    insta::assert_snapshot!(stage.screen(), @"
    > hello









    ╭ bash asks for permission ────────────────────────────────────────────────────╮
    │ mode workspace-write · needs danger-full-access                              │
    │ ls                                                                           │
    │                                                                              │
    │ › Deny                                                                       │
    │   Deny with a reason…                                                        │
    │   Allow once                                                                 │
    │   Allow for this session: `cargo test`                                       │
    │   Change it in your editor first…                                            │
    │ ↑↓ choose · Enter confirms · Esc denies · letters go to your draft           │
    ╰──────────────────────────────────────────────────────────────────────────────╯
    ────────────────────────────────────────────────────────────────────────────────
    ❯ so!
     anthropic · workspace-write · claude-x · ctx 0 %    waiting for your permission
    ");
}

#[test]
fn the_notice_of_a_question_is_not_covered_by_a_list() {
    let mut stage = Stage::in_a_turn();
    stage.wait(5_000);
    stage.type_text("/");
    let (_, _answer) = stage.ask("rm -r build");
    stage.shows("bash asks for permission");
    stage.shows("/help");
    let mut stage = Stage::in_a_turn();
    stage.wait(5_000);
    stage.line("/theme");
    let (_, _answer) = stage.ask("rm -r build");
    stage.shows("bash asks for permission");
    stage.shows("Theme");
}

#[test]
fn a_letter_takes_the_focus_away_again_and_reaches_the_draft() {
    let mut stage = typing();
    let (_, mut answer) = stage.ask("ls");
    stage.wait(1_000);
    stage.type_text("y");
    assert_eq!(stage.draft(), "soy");
    assert!(!stage.app.permissions.is_focused());
    assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn tab_takes_a_waiting_question_up_at_once() {
    let mut stage = typing();
    let (_, _answer) = stage.ask("ls");
    stage.key("tab");
    assert!(stage.app.permissions.is_focused());
}

#[test]
fn an_answer_is_consumed_and_heard() {
    let mut stage = Stage::in_a_turn();
    let (id, mut answer) = stage.ask("ls");
    stage.wait(1_000);
    stage.screen();
    stage.key("down");
    stage.key("down");
    assert_eq!(stage.key("enter"), "", "nothing is sent, nothing is cancelled");
    assert_eq!(answer.try_recv(), Ok(AllowOnce));
    stage.tell(TuiEvent::PermissionRetired { id, reason: RetiredReason::Answered });
    stage.lacks("rm");
    assert_eq!(stage.activity(), "waiting 0 s · esc stops");
    assert!(stage.app.permissions.is_empty());
}

#[test]
fn esc_in_a_question_denies_and_the_turn_goes_on() {
    let mut stage = Stage::in_a_turn();
    let (_, mut answer) = stage.ask("ls");
    stage.wait(1_000);
    assert_eq!(stage.key("esc"), "");
    assert_eq!(answer.try_recv(), Ok(Deny { reason: None }));
}

#[test]
fn ctrl_c_in_a_question_interrupts() {
    let mut stage = Stage::in_a_turn();
    let (_, mut answer) = stage.ask("ls");
    stage.wait(1_000);
    assert_eq!(stage.key("ctrl+c"), "cancel");
    stage.end_by(TurnStop::Cancelled);
    assert_eq!(answer.try_recv(), Err(TryRecvError::Closed));
    assert!(!stage.app.permissions.is_waiting());
}

#[test]
fn the_end_of_a_turn_and_a_retirement_take_the_question_away() {
    let mut stage = Stage::in_a_turn();
    let (id, mut answer) = stage.ask("ls");
    stage.wait(1_000);
    stage.tell(TuiEvent::PermissionRetired { id, reason: RetiredReason::Cancelled });
    assert_eq!(answer.try_recv(), Err(TryRecvError::Closed));
    stage.lacks("Deny");

    let mut stage = Stage::in_a_turn();
    let (_, mut answer) = stage.ask("ls");
    stage.wait(1_000);
    stage.fail();
    assert_eq!(answer.try_recv(), Err(TryRecvError::Closed));
    stage.lacks("Deny");
}

#[test]
fn a_question_of_a_sub_agent_outlasts_the_turn_until_nobody_waits_for_it() {
    let mut stage = Stage::in_a_turn();
    let (_, of_turn) = stage.ask("ls");
    let (reply, mut answer) = PermissionReply::channel();
    let request = PermissionRequest {
        asker: Asker {
            worker: Some("w".into()),
            agent: Some("a1".into()),
            agent_kind: Some("Explore".into()),
        },
        ..request("bash", r#"{"command":"touch made"}"#)
    };
    stage.tell(TuiEvent::PermissionRequired { request, reply });
    drop(of_turn);
    stage.end_by(TurnStop::Cancelled);
    stage.wait(1_000);
    assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
    stage.shows("for sub-agent Explore");
    stage.shows("touch made");
    assert_eq!(stage.activity(), "waiting for your permission");
    drop(answer);
    stage.end_by(TurnStop::Cancelled);
    stage.lacks("touch made");
}

#[test]
fn trust_in_a_folder_is_a_yes_or_a_no_about_that_folder() {
    let mut stage = Stage::in_a_turn();
    let (reply, mut answer) = PermissionReply::channel();
    let request = PermissionRequest {
        kind: RequestKind::TrustFolder,
        ..request("Claude Code", "/home/me/project\u{202e}")
    };
    stage.tell(TuiEvent::PermissionRequired { request, reply });
    stage.wait(1_000);
    stage.shows("Claude Code asks: do you trust this folder?");
    stage.shows("/home/me/project<U+202E>");
    for other in ["Allow once", "session", "reason", "mode"] {
        stage.lacks(&format!("{other} "));
    }
    stage.key("down");
    stage.key("enter");
    assert_eq!(answer.try_recv(), Ok(AllowOnce));
}

#[test]
fn leaving_denies_what_waits() {
    let mut stage = Stage::in_a_turn();
    let (_, mut first) = stage.ask("ls");
    let (_, mut second) = stage.ask("pwd");
    assert_eq!(stage.update(Inbox::Signal(Signal::End)), "cancel; quit");
    // The application is still there: it has a farewell to draw.
    assert_eq!(first.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(second.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn an_answer_to_one_question_never_serves_the_next() {
    let mut stage = Stage::in_a_turn();
    let (_, mut first) = stage.ask("ls");
    let (_, mut second) = stage.ask("rm -r build");
    stage.wait(1_000);
    stage.screen();
    stage.key("down");
    stage.key("down");
    stage.key("enter");
    stage.key("enter");
    stage.key("enter");
    assert_eq!(first.try_recv(), Ok(AllowOnce));
    assert_eq!(second.try_recv(), Err(TryRecvError::Empty), "it was not read yet");
    stage.shows("rm -r build");
    stage.wait(1_000);
    stage.screen();
    stage.key("enter");
    assert_eq!(second.try_recv(), Ok(Deny { reason: None }), "Deny is selected again");
}

#[test]
fn a_second_question_waits_behind_the_first() {
    let mut stage = Stage::in_a_turn();
    let (_, _first) = stage.ask("ls");
    let (second, mut answer) = stage.ask("pwd");
    stage.wait(1_000);
    stage.shows("ls");
    stage.shows("1 of 2");
    stage.tell(TuiEvent::PermissionRetired { id: second, reason: RetiredReason::Cancelled });
    stage.shows("ls");
    stage.lacks("1 of 2");
    assert_eq!(answer.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn a_late_answer_says_that_it_had_no_effect() {
    let mut stage = Stage::in_a_turn();
    let (_, answer) = stage.ask("ls");
    stage.wait(1_000);
    drop(answer);
    stage.key("enter");
    stage.shows("no longer waiting: the answer had no effect");
}

#[test]
fn keys_in_an_open_list_count_as_typing_and_the_list_keeps_them() {
    let mut stage = Stage::in_a_turn();
    stage.wait(5_000);
    stage.line("/theme");
    let (_, mut answer) = stage.ask("ls");
    stage.wait(3_000);
    assert!(!stage.app.permissions.is_focused(), "the list is in front");
    stage.type_text("light");
    stage.key("enter");
    assert_eq!(stage.app.theme.name, "light");
    stage.wait(599);
    assert!(!stage.app.permissions.is_focused());
    stage.wait(1);
    assert!(stage.app.permissions.is_focused());
    assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
}
