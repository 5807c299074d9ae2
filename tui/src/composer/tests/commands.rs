//! Slash commands: offered, completed, refused with the draft kept.

use super::*;

#[test]
fn commands_are_offered_with_their_help() {
    let mut rig = Rig::new();
    rig.type_text("/ex");
    insta::assert_snapshot!(rig.list(60), @r"
    › /export [file]  write the conversation as markdown
      /exit           leave; the session stays on disk
      /context        show how full the context is
    ");
    rig.keys("down tab");
    assert_eq!(rig.text(), "/exit");
    assert!(!rig.composer.is_completing());
    assert_eq!(
        rig.keys("enter"),
        Outcome::Command { action: CommandAction::Exit, line: "/exit".into() }
    );
    assert!(rig.composer.is_empty());
}

#[test]
fn enter_completes_a_name_and_runs_it_when_nothing_is_left_to_say() {
    let mut rig = Rig::new();
    rig.type_text("/comp");
    assert_eq!(
        rig.keys("enter"),
        Outcome::Command { action: CommandAction::Compact, line: "/compact".into() }
    );
    rig.type_text("/perm");
    assert_eq!(rig.keys("enter"), Outcome::Consumed);
    assert_eq!(rig.text(), "/permissions ");
    assert!(rig.composer.is_completing(), "the modes are offered");
    rig.keys("down");
    let mode = Some(claw_runtime::permissions::PermissionMode::WorkspaceWrite);
    assert_eq!(
        rig.keys("enter"),
        Outcome::Command {
            action: CommandAction::Permissions(mode),
            line: "/permissions workspace-write".into()
        }
    );
    rig.type_text("/model");
    assert_eq!(
        rig.keys("enter"),
        Outcome::Command { action: CommandAction::Model(None), line: "/model".into() },
        "a complete line is sent as it is"
    );
}

#[test]
fn enter_never_runs_what_only_resembles_the_typed_name() {
    let mut rig = Rig::new();
    rig.type_text("/init");
    assert!(rig.list(60).contains("/session list"), "its letters are there in this order");
    assert_eq!(rig.keys("enter"), Outcome::Consumed);
    assert_eq!(rig.text(), "/init");
    assert!(rig.screen(70, 5).contains("unknown command /init"));
    rig.keys("ctrl+u");
    rig.type_text("/perm");
    rig.keys("tab");
    rig.type_text("full");
    assert_eq!(rig.keys("enter"), Outcome::Consumed);
    assert!(rig.screen(90, 5).contains("unknown permission mode"));
    rig.keys("backspace backspace backspace backspace");
    rig.type_text("dang");
    assert!(matches!(rig.keys("enter"), Outcome::Command { .. }));
}

#[test]
fn one_row_is_enough_to_say_what_is_wrong() {
    let mut rig = Rig::new();
    rig.type_text("/foo").keys("enter");
    insta::assert_snapshot!(rig.screen(60, 1), @"unknow‸n command /foo; did you mean /fork? /help lists them");
    rig.keys("backspace");
    insta::assert_snapshot!(rig.screen(60, 1), @"❯ /fo‸");
}

#[test]
fn esc_closes_the_list_and_it_stays_closed_for_this_text() {
    let mut rig = Rig::new();
    rig.type_text("/mo");
    assert_eq!(rig.keys("esc"), Outcome::Consumed);
    assert!(!rig.composer.is_completing());
    assert_eq!(rig.keys("esc"), Outcome::Ignored);
    rig.type_text("d");
    assert!(rig.composer.is_completing());
}

#[test]
fn an_unknown_command_keeps_the_draft_and_says_what_is_near() {
    let mut rig = Rig::new();
    rig.type_text("/foo bar");
    assert_eq!(rig.keys("enter"), Outcome::Consumed);
    assert_eq!(rig.text(), "/foo bar");
    insta::assert_snapshot!(rig.screen(70, 5), @r"
    ❯ /foo bar‸
    unknown command /foo; did you mean /fork? /help lists them
    ");
    rig.type_text("x");
    insta::assert_snapshot!(rig.screen(70, 5), @"❯ /foo barx‸");
}

#[test]
fn commands_between_turns_wait_while_one_runs() {
    let mut rig = Rig::new();
    rig.composer.set_busy(true);
    rig.type_text("/compact");
    assert_eq!(rig.keys("enter"), Outcome::Consumed);
    assert_eq!(rig.text(), "/compact");
    assert!(rig.screen(70, 5).contains("/compact waits for the end of the turn"));
    rig.composer.set_busy(false);
    assert!(matches!(rig.keys("enter"), Outcome::Command { .. }));
}

#[test]
fn enter_works_after_a_slash_command() {
    let mut rig = Rig::new();
    rig.type_text("/status").keys("enter");
    rig.type_text("hello");
    assert_eq!(rig.keys("enter"), Outcome::Submit("hello".into()));
    rig.composer.refuse("/retry", "nothing to retry");
    assert_eq!(rig.text(), "/retry");
    assert!(rig.screen(70, 5).contains("nothing to retry"));
}

#[test]
fn prompts_that_begin_with_a_slash_are_sent() {
    let mut rig = Rig::new();
    rig.type_text("/usr/bin/x is broken");
    assert_eq!(rig.keys("enter"), Outcome::Submit("/usr/bin/x is broken".into()));
    rig.type_text("//help me");
    assert_eq!(rig.keys("enter"), Outcome::Submit("/help me".into()));
}
