//! The worker's own screen: what is typed there goes there and means nothing here.

use claw_runtime::permissions::PermissionPromptDecision::AllowOnce;
use claw_runtime::permissions::RetiredReason;
use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::pane::{PaneEvent, PaneLook, PaneModes, Picture};

/// A screen that says this.
fn picture(columns: u16, rows: u16, lines: &[&str]) -> PaneEvent {
    picture_with(columns, rows, lines, PaneModes::default())
}

fn picture_with(columns: u16, rows: u16, lines: &[&str], modes: PaneModes) -> PaneEvent {
    let mut picture = Picture::new(columns, rows, modes);
    for (row, line) in (0..).zip(lines) {
        for (column, c) in (0..).zip(line.chars()) {
            picture.set(column, row, &c.to_string(), false, PaneLook::default());
        }
    }
    picture.set_title("✳ Claude\u{1b}[31m Code\u{7}");
    let last = lines.len().saturating_sub(1) as u16;
    picture.set_cursor(Some((2, last)));
    PaneEvent::Shown(Box::new(picture))
}

impl Stage {
    fn worker(&mut self, event: PaneEvent) -> String {
        self.update(Inbox::Worker(event))
    }

    /// Looks at a worker's screen, in a turn.
    fn looking(width: u16, height: u16) -> Self {
        let mut stage = Self::in_a_turn().sized(width, height);
        stage.text("An answer.");
        stage.screen();
        let (columns, rows) = (width.max(80), (height - 1).max(24));
        let look = format!("look {{ columns: {columns}, rows: {rows} }}");
        assert_eq!(stage.line("/worker"), look);
        assert_eq!(stage.worker(picture(columns, rows, &["Welcome", "", "> "])), "");
        stage
    }
}

#[test]
fn its_screen_is_shown_whole_below_a_line_of_ours() {
    let mut stage = Stage::looking(80, 25);
    let screen = stage.screen();
    let lines: Vec<&str> = screen.lines().collect();
    let top = " ✳ Claude Code · what you type goes there                          Ctrl+]: back";
    assert_eq!(lines[..4], [top, "Welcome", "", ">"]);
    assert!(lines[4..].iter().all(|line| line.is_empty()), "{screen}");
    assert_eq!(stage.terminal.get_cursor_position().unwrap(), (2, 3).into());
}

#[test]
fn a_large_screen_is_used_whole() {
    let mut stage = Stage::looking(200, 50);
    let screen = stage.screen();
    let (title, gap) = (" ✳ Claude Code · what you type goes there", " ".repeat(146));
    assert_eq!(screen.lines().next(), Some(format!("{title}{gap}Ctrl+]: back").as_str()));
    assert_eq!(stage.terminal.get_cursor_position().unwrap(), (2, 3).into());
}

#[test]
fn every_key_goes_there_and_none_means_anything_here() {
    let mut stage = Stage::looking(80, 25);
    for (name, sent) in [
        ("h", "h"),
        ("enter", "\\r"),
        ("esc", "\\u{1b}"),
        ("ctrl+c", "\\u{3}"),
        ("ctrl+d", "\\u{4}"),
        ("ctrl+z", "\\u{1a}"),
        ("ctrl+t", "\\u{14}"),
        ("tab", "\\t"),
        ("f1", "\\u{1b}OP"),
        ("pageup", "\\u{1b}[5~"),
    ] {
        assert_eq!(stage.key(name), format!("type {sent}"), "{name}");
    }
    assert_eq!(stage.update(Inbox::Terminal(Event::Paste("a\nb".into()))), "type a\\rb");
    assert_eq!(stage.draft(), "");
    stage.key("ctrl+]");
    stage.shows("An answer.");
    stage.lacks("stopping");
}

#[test]
fn one_key_leads_there_and_back_and_what_was_there_is_as_it_was() {
    let mut stage = Stage::in_a_turn();
    stage.text("An answer.");
    stage.type_text("a draft");
    let before = stage.screen();
    for key in ["ctrl+]", "ctrl+5"] {
        assert_eq!(stage.key(key), "look { columns: 80, rows: 24 }");
        // Until the first picture is there nothing changes.
        assert_eq!(stage.screen(), before);
        stage.worker(picture(80, 24, &["its own screen"]));
        stage.shows("its own screen");
        stage.lacks("a draft");
        assert_eq!(stage.key(key), "leave");
        assert_eq!(stage.screen(), before);
        // One that was on its way.
        stage.worker(picture(80, 24, &["its own screen"]));
        assert_eq!(stage.screen(), before);
    }
}

#[test]
fn a_click_on_our_line_leads_back_and_one_below_goes_there() {
    let modes = PaneModes {
        mouse: Some(crate::pane::PaneMouse { drags: false, moves: false, sgr: true }),
        ..PaneModes::default()
    };
    let mut stage = Stage::looking(80, 25);
    stage.worker(picture_with(80, 24, &["x"], modes));
    let click = |row| {
        let kind = MouseEventKind::Down(crossterm::event::MouseButton::Left);
        let mouse = MouseEvent { kind, column: 3, row, modifiers: KeyModifiers::NONE };
        Inbox::Terminal(Event::Mouse(mouse))
    };
    assert_eq!(stage.update(click(1)), "type \\u{1b}[<0;4;1M");
    assert_eq!(stage.update(click(0)), "leave");
    stage.shows("An answer.");
}

#[test]
fn a_question_waits_until_the_person_is_back_and_no_key_answers_it() {
    let mut stage = Stage::looking(80, 25);
    let (_, mut answer) = stage.ask("rm -r build");
    stage.wait(10_000);
    stage.shows("A question waits for your answer");
    for key in ["right", "right", "enter", "tab", "enter", "esc", "y"] {
        assert!(stage.key(key).starts_with("type "), "{key}");
    }
    stage.wait(10_000);
    assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
    stage.key("ctrl+]");
    // What is typed on goes into the draft.
    stage.key("enter");
    stage.type_text("y");
    assert_eq!(answer.try_recv(), Err(TryRecvError::Empty));
    stage.wait(2_000);
    for key in ["down", "down", "enter"] {
        stage.key(key);
    }
    assert_eq!(answer.try_recv(), Ok(AllowOnce));
}

#[test]
fn a_question_that_is_settled_elsewhere_is_not_spoken_of_any_more() {
    let mut stage = Stage::looking(80, 25);
    let (id, _answer) = stage.ask("rm -r build");
    stage.shows("A question waits");
    stage.tell(TuiEvent::PermissionRetired { id, reason: RetiredReason::Cancelled });
    stage.lacks("A question waits");
}

#[test]
fn without_a_worker_it_says_why() {
    let mut stage = Stage::new();
    stage.screen();
    stage.line("/worker");
    assert_eq!(stage.worker(PaneEvent::Gone), "leave");
    stage.shows("There is no worker's screen to look at.");
    assert_eq!(stage.key("x"), "");
    assert_eq!(stage.draft(), "x");
}

#[test]
fn the_last_picture_of_a_worker_that_ends_stays_until_another_comes() {
    let mut stage = Stage::looking(80, 25);
    assert_eq!(stage.worker(PaneEvent::Gone), "");
    stage.shows("This worker has ended");
    stage.shows("Welcome");
    stage.worker(picture(80, 24, &["the next one"]));
    stage.lacks("has ended");
    stage.shows("the next one");
}

#[test]
fn its_screen_follows_the_size_of_ours_and_is_never_too_small_to_read() {
    let mut stage = Stage::looking(80, 25);
    let resize = |width, height| Inbox::Terminal(Event::Resize(width, height));
    assert_eq!(stage.update(resize(200, 50)), "resize { columns: 200, rows: 49 }");
    assert_eq!(stage.update(resize(30, 8)), "resize { columns: 80, rows: 24 }");
    let mut stage = stage.sized(30, 8);
    let lines: Vec<String> = (0..24).map(|row| format!("line {row}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    stage.worker(picture(80, 24, &lines));
    // What the cursor is on is in view.
    let screen = stage.screen();
    assert!(screen.lines().last().unwrap().starts_with("line 23"), "{screen}");
    assert_eq!(screen.lines().count(), 8);
    stage.key("ctrl+]");
    assert_eq!(stage.update(resize(90, 30)), "");
}

#[test]
fn the_conversation_goes_on_behind_it_and_a_signal_still_ends() {
    let mut stage = Stage::looking(80, 25);
    stage.text(" And more.");
    stage.end();
    stage.lacks("And more.");
    stage.key("ctrl+]");
    stage.shows("An answer. And more.");
    let mut stage = Stage::looking(80, 25);
    assert_eq!(stage.update(Inbox::Signal(Signal::End)), "cancel; quit");
}

#[test]
fn its_key_can_be_another_one() {
    let mut stage = Stage::new();
    stage.app.keymap = Keymap::from_entries([
        ("ctrl+]", "none"),
        ("ctrl+5", "none"),
        ("f1", "toggle-worker-screen"),
    ])
    .unwrap();
    stage.screen();
    stage.key("f1");
    stage.worker(picture(80, 24, &["its own screen"]));
    stage.shows("F1: back");
    assert_eq!(stage.key("ctrl+]"), "type \\u{1d}");
    assert_eq!(stage.key("f1"), "leave");
}

#[test]
fn nothing_wakes_the_loop_while_nothing_changes() {
    let mut stage = Stage::looking(80, 25);
    stage.end();
    stage.wait(10_000);
    assert_eq!(stage.app.next_deadline(stage.now), None);
}
