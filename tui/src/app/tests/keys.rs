//! What keys and the mouse do, wherever the focus is.

use crossterm::event::MouseEventKind::{ScrollDown, ScrollUp};

use super::*;

/// A conversation that is longer than the screen.
fn long() -> Stage {
    let mut stage = Stage::in_a_turn();
    for n in 0..60 {
        stage.text(&format!("line {n}\n\n"));
    }
    stage.screen();
    stage
}

#[test]
fn enter_submits_and_the_draft_is_empty() {
    let mut stage = Stage::new();
    assert_eq!(stage.line("hello"), "submit hello");
    assert_eq!(stage.draft(), "");
    stage.shows("> hello");
}

#[test]
fn enter_on_nothing_sends_nothing() {
    let mut stage = Stage::new();
    assert_eq!(stage.line("  "), "");
}

#[test]
fn ctrl_c_during_a_turn_interrupts_and_a_second_one_leaves() {
    let mut stage = Stage::in_a_turn();
    assert_eq!(stage.key("ctrl+c"), "cancel");
    assert_eq!(stage.activity(), "stopping · Ctrl+C again leaves");
    assert_eq!(stage.key("ctrl+c"), "cancel; quit");
}

#[test]
fn ctrl_c_works_with_caps_lock_and_its_release_means_nothing() {
    let mut stage = Stage::in_a_turn();
    let mut key = key("ctrl+c");
    key.kind = crossterm::event::KeyEventKind::Release;
    assert_eq!(stage.update(Inbox::Terminal(Event::Key(key))), "");
    assert_eq!(stage.key("ctrl+C"), "cancel");
}

#[test]
fn ctrl_c_leaves_also_when_the_turn_ended_in_between() {
    let mut stage = Stage::in_a_turn();
    stage.key("ctrl+c");
    stage.end_by(TurnStop::Cancelled);
    assert_eq!(stage.key("ctrl+c"), "quit");
}

#[test]
fn the_second_ctrl_c_must_come_soon_and_with_nothing_in_between() {
    let mut stage = Stage::in_a_turn();
    stage.key("ctrl+c");
    stage.wait(2_100);
    stage.lacks("again leaves");
    assert_eq!(stage.key("ctrl+c"), "cancel");
    stage.key("x");
    stage.lacks("again leaves");
    assert_eq!(stage.key("ctrl+c"), "cancel");
}

#[test]
fn ctrl_c_on_a_draft_never_loses_it() {
    let mut stage = Stage::new();
    stage.type_text("half a thought");
    assert_eq!(stage.key("ctrl+c"), "");
    assert_eq!(stage.draft(), "");
    stage.shows("Up brings it back");
    stage.key("up");
    assert_eq!(stage.draft(), "half a thought");
}

#[test]
fn ctrl_c_during_a_turn_leaves_the_draft_alone() {
    let mut stage = Stage::in_a_turn();
    stage.type_text("half a thought");
    assert_eq!(stage.key("ctrl+c"), "cancel");
    assert_eq!(stage.draft(), "half a thought");
    // The turn is over, and there is text: now Ctrl+C is about that.
    stage.end_by(TurnStop::Cancelled);
    assert_eq!(stage.key("ctrl+c"), "");
    stage.key("up");
    assert_eq!(stage.draft(), "half a thought");
}

#[test]
fn ctrl_c_twice_on_an_empty_draft_leaves() {
    let mut stage = Stage::new();
    assert_eq!(stage.key("ctrl+c"), "");
    stage.shows("again");
    assert_eq!(stage.key("ctrl+c"), "quit");
}

#[test]
fn ctrl_c_closes_a_list_and_nothing_else() {
    let mut stage = Stage::new();
    stage.line("/theme");
    assert_eq!(stage.key("ctrl+c"), "");
    assert!(stage.app.picker.is_none());
    stage.lacks("again");
    let mut stage = Stage::in_a_turn();
    stage.line("/theme");
    assert_eq!(stage.key("ctrl+c"), "cancel", "interrupting is possible from everywhere");
}

#[test]
fn ctrl_d_leaves_when_the_draft_is_empty_only() {
    let mut stage = Stage::new();
    assert_eq!(stage.key("ctrl+d"), "quit");
    let mut stage = Stage::new();
    stage.type_text("x");
    assert_eq!(stage.key("ctrl+d"), "");
    assert_eq!(Stage::in_a_turn().key("ctrl+d"), "cancel; quit");
}

#[test]
fn ctrl_p_switches_the_backend() {
    let mut stage = Stage::new();
    assert_eq!(stage.key("ctrl+p"), "backend None");
    let mut stage = Stage::in_a_turn();
    assert_eq!(stage.key("ctrl+p"), "backend None");
    assert_eq!(stage.activity(), "the backend changes after this turn");
}

#[test]
fn ctrl_p_in_the_list_of_commands_goes_up_as_ctrl_n_goes_down() {
    let mut stage = Stage::new();
    stage.type_text("/");
    let first = stage.screen();
    stage.key("ctrl+n");
    assert_ne!(stage.screen(), first);
    assert_eq!(stage.key("ctrl+p"), "");
    assert_eq!(stage.screen(), first);
}

#[test]
fn ctrl_t_looks_at_the_worker() {
    let mut stage = Stage::new();
    stage.screen();
    assert_eq!(stage.key("ctrl+t"), "look { columns: 80, rows: 24 }");
}

#[test]
fn esc_interrupts_and_does_nothing_when_idle() {
    let mut stage = Stage::in_a_turn();
    assert_eq!(stage.key("esc"), "cancel");
    assert_eq!(stage.activity(), "stopping");
    let mut stage = Stage::new();
    stage.type_text("draft");
    let before = stage.screen();
    assert_eq!(stage.key("esc"), "");
    assert_eq!(stage.screen(), before);
}

#[test]
fn esc_closes_the_list_of_commands_before_it_interrupts() {
    let mut stage = Stage::in_a_turn();
    stage.type_text("/st");
    assert_eq!(stage.key("esc"), "");
    assert_eq!(stage.key("esc"), "cancel");
}

#[test]
fn page_up_holds_the_view_and_a_marker_counts_what_is_new() {
    let mut stage = long();
    stage.shows("line 59");
    stage.key("pageup");
    let held = stage.screen();
    assert!(held.contains("End: Ctrl+End"), "{held}");
    stage.text("one more\n\nand one more\n\n");
    stage.shows(" new lines · Ctrl+End");
    stage.lacks("one more");
    stage.key("ctrl+end");
    stage.shows("and one more");
    stage.lacks("Ctrl+End");
    stage.key("ctrl+home");
    stage.shows("> hello");
}

#[test]
fn f1_shows_keys_and_commands() {
    let mut stage = Stage::new().sized(120, 160);
    assert_eq!(stage.key("f1"), "");
    stage.shows("Commands and keys");
    stage.shows("Ctrl+G");
}

#[test]
fn ctrl_g_opens_the_draft_in_the_editor_and_takes_what_comes_back() {
    let mut stage = Stage::new();
    stage.type_text("draft");
    assert_eq!(stage.key("ctrl+g"), "edit draft");
    stage.app.editor_closed(stage.now, Ok("better\nthan before\n".to_owned()));
    assert_eq!(stage.draft(), "better\nthan before");
    assert_eq!(stage.key("enter"), "submit better\nthan before");
}

#[test]
fn an_editor_that_failed_says_why_and_the_draft_stays() {
    let mut stage = Stage::new();
    stage.type_text("draft");
    stage.key("ctrl+g");
    stage.app.editor_closed(stage.now, Err("there is no editor".to_owned()));
    stage.shows("there is no editor");
    assert_eq!(stage.draft(), "draft");
}

#[test]
fn ctrl_z_suspends_from_everywhere_and_nothing_is_lost() {
    let mut stage = Stage::new();
    stage.type_text("draft");
    assert_eq!(stage.key("ctrl+z"), "suspend");
    assert_eq!(stage.update(Inbox::Signal(Signal::Continued)), "");
    assert_eq!(stage.draft(), "draft");
    stage.key("ctrl+u");
    stage.line("/theme");
    assert_eq!(stage.key("ctrl+z"), "suspend");
    assert!(stage.app.picker.is_some(), "the list is still open");
    assert_eq!(stage.update(Inbox::Signal(Signal::Stop)), "suspend");
}

#[test]
fn ctrl_l_paints_everything_again() {
    assert_eq!(Stage::new().key("ctrl+l"), "redraw");
}

#[test]
fn f6_gives_the_mouse_to_the_terminal_and_back() {
    let mut stage = Stage::new();
    assert_eq!(stage.key("f6"), "mouse false");
    stage.shows("the terminal selects text");
    assert_eq!(stage.key("f6"), "mouse true");
    stage.shows("wheel scrolls");
}

#[test]
fn the_wheel_scrolls_the_transcript() {
    let mut stage = long();
    let end = stage.screen();
    stage.wheel(ScrollUp);
    assert!(!stage.app.transcript.following());
    assert_ne!(stage.screen(), end);
    stage.wheel(ScrollDown);
    assert!(stage.app.transcript.following());
    assert_eq!(stage.screen(), end);
}

#[test]
fn the_wheel_over_an_open_list_moves_the_list() {
    let mut stage = long();
    stage.end();
    stage.line("/permissions");
    let before = stage.screen();
    stage.wheel(ScrollUp);
    stage.wheel(ScrollUp);
    assert_ne!(stage.screen(), before);
    assert!(stage.app.transcript.following(), "the transcript did not move");
    assert_eq!(stage.key("enter"), "mode read-only");
}

#[test]
fn the_wheel_over_a_permission_request_moves_its_input() {
    let mut stage = long();
    let command: Vec<String> = (0..60).map(|n| format!("echo {n}")).collect();
    let (_, _answer) = stage.ask(&command.join("\\n"));
    stage.wait(1_000);
    stage.shows("echo 1");
    stage.lacks("echo 59");
    for _ in 0..40 {
        stage.wheel(ScrollDown);
    }
    stage.shows("echo 59");
    assert!(stage.app.transcript.following(), "the transcript did not move");
}

#[test]
fn a_click_on_a_permission_request_does_not_reach_the_transcript() {
    let mut stage = Stage::in_a_turn();
    stage.tell(TuiEvent::ThinkingDelta { text: "secret thoughts".into() });
    stage.tell(TuiEvent::ThinkingEnded { char_count: 15, redacted: false });
    let (_, _answer) = stage.ask("ls");
    stage.wait(1_000);
    stage.screen();
    for row in 0..24 {
        let kind = MouseEventKind::Down(crossterm::event::MouseButton::Left);
        let mouse = MouseEvent { kind, column: 3, row, modifiers: KeyModifiers::NONE };
        stage.update(Inbox::Terminal(Event::Mouse(mouse)));
    }
    stage.lacks("secret thoughts");
}

#[test]
fn toggles_say_what_they_did() {
    let mut stage = Stage::in_a_turn();
    stage.tell(TuiEvent::ThinkingDelta { text: "deep thoughts".into() });
    stage.tell(TuiEvent::ThinkingEnded { char_count: 13, redacted: false });
    stage.key("ctrl+o");
    stage.shows("deep thoughts");
    assert_eq!(stage.activity(), "thinking is shown");
    stage.key("ctrl+o");
    stage.lacks("deep thoughts");
    assert_eq!(stage.activity(), "thinking is folded");
}

#[test]
fn a_paste_is_never_sent_by_itself() {
    let mut stage = Stage::new();
    let paste = Event::Paste("one\ntwo\n".to_owned());
    assert_eq!(stage.update(Inbox::Terminal(paste)), "");
    assert_eq!(stage.key("enter"), "submit one\ntwo");
}
