//! Sessions that are opened, listed and left.

use claw_runtime::session::SessionFork;

use super::*;

#[test]
fn an_opened_session_takes_the_place_of_the_transcript() {
    let mut stage = Stage::in_a_turn();
    stage.text("old answer");
    stage.end();
    stage.tell(opened("s-2", &["what was asked", "what was said"], &["what was asked"]));
    stage.lacks("old answer");
    stage.shows("> what was asked");
    stage.shows("what was said");
    // What was typed in this run is newer than the session.
    stage.key("up");
    stage.key("up");
    assert_eq!(stage.draft(), "what was asked");
}

#[test]
fn a_fork_shows_its_branch() {
    let mut stage = Stage::new().sized(120, 24);
    stage.tell(opened("s-2", &["asked", "said"], &[]));
    let mut status = runtime_status();
    status.fork =
        Some(SessionFork { parent_session_id: "s-1".into(), branch_name: Some("idea".into()) });
    stage.tell(TuiEvent::StatusChanged { status });
    stage.shows("⎇ idea");
}

#[test]
fn a_session_is_named_for_resuming_only_when_something_was_said() {
    let mut stage = Stage::new();
    assert_eq!(stage.app.resumable_session(), None);
    stage.line("/help");
    stage.line("/version");
    assert_eq!(stage.app.resumable_session(), None, "help is no conversation");
    stage.line("hello");
    stage.begin("hello");
    assert_eq!(stage.app.resumable_session(), Some("s-1"));
    stage.end();
    stage.line("/clear");
    stage.tell(opened("s-2", &[], &[]));
    assert_eq!(stage.app.resumable_session(), None);
    stage.tell(opened("s-3", &["asked", "said"], &[]));
    assert_eq!(stage.app.resumable_session(), Some("s-3"));
}

#[test]
fn a_list_of_sessions_opens_and_a_choice_orders_it() {
    let mut stage = Stage::new();
    assert_eq!(stage.line("/session list"), "list sessions");
    stage.tell(listed(&[("s-8", "Fix the cart"), ("s-9", "Write the docs")]));
    insta::assert_snapshot!(stage.bottom(8), @r"
    ╭ Sessions ────────────────────────────────────────────────────────────────────╮
    │ /                                                                     2 of 2 │
    │ › Fix the cart                                                1 h ago · 1 kB │
    │   Write the docs                                              1 h ago · 1 kB │
    │ type to narrow · ↑↓ choose · Enter takes it · Esc closes                     │
    ╰──────────────────────────────────────────────────────────────────────────────╯
    ❯ Ask for something, or / for commands
     anthropic · workspace-write · claude-x · ctx 0 (0 %) · $0.00              ready
    ");
    stage.type_text("docs");
    assert_eq!(stage.key("enter"), "open s-9");
    assert!(stage.app.picker.is_none());
}

#[test]
fn a_list_closes_without_a_choice() {
    let mut stage = Stage::new();
    stage.type_text("/sessions");
    stage.key("enter");
    stage.tell(listed(&[("s-8", "Fix the cart")]));
    assert_eq!(stage.key("esc"), "");
    stage.lacks("Fix the cart");
    assert_eq!(stage.line("hello"), "submit hello");
}

#[test]
fn no_session_on_disk_is_said_rather_than_listed() {
    let mut stage = Stage::new();
    stage.line("/resume");
    stage.tell(listed(&[]));
    assert!(stage.app.picker.is_none());
    stage.shows("There is no session on disk yet");
}

#[test]
fn a_session_is_not_switched_under_a_running_turn() {
    let mut stage = Stage::new();
    stage.line("/resume");
    stage.line("hello");
    stage.tell(listed(&[("s-8", "Fix the cart")]));
    assert_eq!(stage.key("enter"), "");
    stage.shows("choose again when it has ended");
}

#[test]
fn sessions_that_were_listed_can_be_completed() {
    let mut stage = Stage::new();
    stage.tell(listed(&[("s-8", "Fix the cart"), ("s-9", "Write the docs")]));
    stage.key("esc");
    stage.tell(TuiEvent::StatusChanged { status: runtime_status() });
    stage.type_text("/resume ");
    stage.shows("Fix the cart");
    stage.key("down");
    stage.key("tab");
    assert_eq!(stage.draft().trim_end(), "/resume s-9");
}

#[test]
fn a_session_that_cannot_be_opened_leaves_everything_as_it_was() {
    let mut stage = Stage::in_a_turn();
    stage.text("an answer");
    stage.end();
    assert_eq!(stage.line("/session switch nowhere"), "open nowhere");
    stage.tell(TuiEvent::error("no session matches \"nowhere\"; /session list shows them"));
    stage.shows("an answer");
    stage.shows("no session matches");
}

#[test]
fn warnings_about_a_session_are_shown() {
    let mut stage = Stage::new();
    let TuiEvent::SessionOpened { mut view } = opened("s-2", &["asked"], &[]) else { return };
    view.warnings.push("2 lines could not be read".to_owned());
    stage.tell(TuiEvent::SessionOpened { view });
    stage.shows("2 lines could not be read");
}

#[test]
fn earlier_prompts_are_reachable_after_clear() {
    let mut stage = Stage::new();
    stage.tell(opened("s-1", &["from last week"], &["from last week"]));
    stage.line("from today");
    stage.begin("from today");
    stage.end();
    stage.line("/clear");
    stage.tell(opened("s-2", &[], &[]));
    for expected in ["/clear", "from today", "from last week"] {
        stage.key("up");
        assert_eq!(stage.draft(), expected);
    }
}

#[test]
fn a_draft_that_was_put_aside_survives_another_session() {
    let mut stage = Stage::new();
    stage.type_text("half a thought");
    stage.key("ctrl+c");
    stage.tell(opened("s-2", &["asked"], &["asked"]));
    stage.key("up");
    assert_eq!(stage.draft(), "half a thought");
    stage.key("up");
    assert_eq!(stage.draft(), "asked");
}

#[test]
fn a_draft_survives_a_session_that_opens_while_earlier_prompts_are_looked_at() {
    let mut stage = Stage::before_the_runtime();
    stage.app.composer.load_history(vec!["older".to_owned()]);
    stage.type_text("half a thought");
    stage.key("up");
    stage.tell(opened("s-1", &["asked"], &["asked"]));
    assert_eq!(stage.draft(), "older");
    stage.key("ctrl+u");
    stage.key("up");
    stage.key("up");
    assert_eq!(stage.draft(), "half a thought");
}

#[test]
fn a_prompt_sent_before_the_runtime_is_ready_is_shown_once_its_turn_begins() {
    let mut stage = Stage::before_the_runtime();
    assert_eq!(stage.line("early"), "submit early");
    stage.shows("> early");
    stage.tell(opened("s-1", &[], &[]));
    stage.tell(TuiEvent::StatusChanged { status: runtime_status() });
    stage.begin("early");
    let screen = stage.screen();
    assert_eq!(screen.matches("> early").count(), 1, "{screen}");
}
