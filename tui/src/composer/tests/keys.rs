//! Keys: which the composer takes, which it leaves, and how one leaves.

use super::*;

#[test]
fn enter_submits_and_leaves_an_empty_draft() {
    let mut rig = Rig::new();
    rig.type_text("hello");
    assert_eq!(rig.keys("enter"), Outcome::Submit("hello".into()));
    assert!(rig.composer.is_empty());
    assert_eq!(rig.keys("enter"), Outcome::Consumed, "an empty draft is not sent");
}

#[test]
fn four_chords_make_a_new_line() {
    for chord in ["ctrl+j", "shift+enter", "alt+enter", "\\ enter"] {
        let mut rig = Rig::new();
        rig.type_text("a");
        assert_eq!(rig.keys(chord), Outcome::Consumed, "{chord}");
        rig.type_text("b");
        assert_eq!(rig.text(), "a\nb", "{chord}");
    }
}

#[test]
fn control_keys_have_the_meanings_of_the_line_editor() {
    let mut rig = Rig::new();
    assert_eq!(rig.keys("ctrl+p"), Outcome::ProviderSwap);
    assert_eq!(rig.keys("ctrl+t"), Outcome::TeamToggle);
    assert_eq!(rig.keys("ctrl+d"), Outcome::Exit);
    rig.type_text("ab");
    rig.keys("home");
    assert_eq!(rig.keys("ctrl+d"), Outcome::Consumed);
    assert_eq!(rig.text(), "b", "with a draft Ctrl+D deletes");
}

#[test]
fn keys_of_the_keymap_are_left_to_it() {
    let mut rig = Rig::new();
    rig.type_text("draft");
    for key in ["esc", "tab", "ctrl+o", "ctrl+g", "ctrl+l", "ctrl+z", "alt+up", "ctrl+home"] {
        assert_eq!(rig.keys(key), Outcome::Ignored, "{key}");
    }
    assert_eq!(rig.press(KeyCode::PageUp, KeyModifiers::NONE), Outcome::Ignored);
    assert_eq!(rig.press(KeyCode::Char('c'), KeyModifiers::SUPER), Outcome::Ignored);
    assert_eq!(rig.text(), "draft");
}

#[test]
fn releases_do_nothing_and_repeats_type() {
    let mut rig = Rig::new();
    let mut key = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
    for (kind, expected) in
        [(KeyEventKind::Press, "x"), (KeyEventKind::Release, "x"), (KeyEventKind::Repeat, "xx")]
    {
        key.kind = kind;
        rig.composer.handle(rig.now, &Event::Key(key));
        assert_eq!(rig.text(), expected);
    }
}

#[test]
fn the_first_ctrl_c_never_loses_the_draft() {
    for back in ["up", "ctrl+y", "ctrl+_"] {
        let mut rig = Rig::with_history(&["older"]);
        rig.type_text("precious").keys("ctrl+j");
        rig.type_text("words");
        assert_eq!(rig.keys("ctrl+c"), Outcome::Cancel);
        assert!(rig.composer.is_empty());
        rig.keys(back);
        assert_eq!(rig.text(), "precious\nwords", "{back}");
    }
}

#[test]
fn ctrl_u_empties_the_whole_draft_and_it_comes_back() {
    for back in ["up", "ctrl+y", "ctrl+7"] {
        let mut rig = Rig::new();
        rig.paste("one\ntwo");
        rig.keys("ctrl+u");
        assert!(rig.composer.is_empty());
        rig.keys(back);
        assert_eq!(rig.text(), "one\ntwo", "{back}");
    }
}

#[test]
fn ctrl_c_twice_on_an_empty_draft_leaves_within_the_window() {
    let mut rig = Rig::new();
    assert_eq!(rig.keys("ctrl+c"), Outcome::Cancel);
    insta::assert_snapshot!(rig.screen(30, 5), @r"
    ❯ ‸Ask for something, or / for
    press Ctrl+C again to quit
    ");
    let deadline = rig.composer.next_deadline().unwrap();
    rig.now = deadline;
    assert_eq!(rig.keys("ctrl+c"), Outcome::Cancel, "too late counts as the first");
    rig.now += Duration::from_millis(1_900);
    assert_eq!(rig.keys("ctrl+c"), Outcome::Exit);
}

#[test]
fn another_key_or_the_time_takes_the_quit_question_back() {
    let mut rig = Rig::new();
    rig.keys("ctrl+c a backspace");
    assert_eq!(rig.keys("ctrl+c"), Outcome::Cancel);
    rig.composer.tick(rig.now);
    assert_eq!(rig.composer.next_deadline(), Some(rig.now + QUIT_WINDOW));
    rig.composer.tick(rig.now + QUIT_WINDOW);
    assert_eq!(rig.composer.next_deadline(), None);
    assert_eq!(rig.keys("ctrl+c"), Outcome::Cancel);
}

#[test]
fn a_modifier_reported_alone_is_no_key() {
    let mut rig = Rig::new();
    rig.keys("ctrl+c");
    let modifier = KeyCode::Modifier(ModifierKeyCode::LeftControl);
    assert_eq!(rig.press(modifier, KeyModifiers::CONTROL), Outcome::Ignored);
    assert_eq!(rig.keys("ctrl+c"), Outcome::Exit);
}
