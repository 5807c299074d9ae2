//! Keys in; lists and choices out.

use std::path::PathBuf;

use claw_runtime::session::SessionFork;

use super::*;
use crate::testing::shown;

fn screen<T: Clone>(picker: &mut Picker<T>, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    let caret = picker.draw(area, &mut buf, &Theme::plain());
    shown(&buf, caret)
}

fn press<T: Clone>(picker: &mut Picker<T>, code: KeyCode) -> PickerOutcome<T> {
    picker.handle(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn names() -> Picker<String> {
    let names = ["opus", "sonnet", "haiku"].map(str::to_owned);
    Picker::new("model", name_rows(names, Some("sonnet")))
}

fn entry(title: &str, minutes: u64, bytes: u64) -> SessionEntry {
    SessionEntry {
        id: title.into(),
        path: PathBuf::from("x.jsonl"),
        title: title.into(),
        updated_at_ms: 10_000_000_000 - minutes * 60_000,
        bytes,
        message_count: 12,
        fork: None,
        model: None,
        current: false,
        locked: false,
    }
}

#[test]
fn the_row_in_force_is_selected_and_enter_takes_it() {
    let mut picker = names();
    insta::assert_snapshot!(screen(&mut picker, 60, 8).trim_start(), @r"
    ╭ model ───────────────────────────────────────────────────╮
    │ / ‸                                                3 of 3 │
    │   opus                                                   │
    │ › sonnet                                                 │
    │   haiku                                                  │
    │ type to narrow · ↑↓ choose · Enter takes it · Esc closes │
    ╰──────────────────────────────────────────────────────────╯
    ");
    assert_eq!(press(&mut picker, KeyCode::Enter), PickerOutcome::Chosen("sonnet".into()));
    press(&mut picker, KeyCode::Up);
    press(&mut picker, KeyCode::Up);
    assert_eq!(press(&mut picker, KeyCode::Enter), PickerOutcome::Chosen("opus".into()));
    assert_eq!(press(&mut picker, KeyCode::Esc), PickerOutcome::Closed);
}

#[test]
fn typing_narrows_and_backspace_widens() {
    let mut picker = names();
    for c in "hk".chars() {
        press(&mut picker, KeyCode::Char(c));
    }
    assert_eq!(press(&mut picker, KeyCode::Enter), PickerOutcome::Chosen("haiku".into()));
    press(&mut picker, KeyCode::Char('z'));
    assert!(screen(&mut picker, 60, 8).contains("nothing matches"));
    assert_eq!(press(&mut picker, KeyCode::Enter), PickerOutcome::Consumed);
    press(&mut picker, KeyCode::Backspace);
    assert_eq!(press(&mut picker, KeyCode::Enter), PickerOutcome::Chosen("haiku".into()));
}

#[test]
fn sessions_show_title_age_size_and_branch() {
    let mut forked = entry("try the other way", 180, 1_234_567);
    forked.fork =
        Some(SessionFork { parent_session_id: "p".into(), branch_name: Some("alt".into()) });
    let mut locked = entry("fix the parser", 3, 42_000);
    locked.locked = true;
    let old =
        entry("a title that is much too long for the row that it has to share", 60 * 24 * 9, 512);
    let mut picker = Picker::new("sessions", session_rows(&[locked, forked, old], 10_000_000_000));
    insta::assert_snapshot!(screen(&mut picker, 80, 9).trim_start(), @r"
    ╭ sessions ────────────────────────────────────────────────────────────────────╮
    │ / ‸                                                                    3 of 3 │
    │ › fix the parser                          3 min ago · 42 kB · open elsewhere │
    │   try the other way                            3 h ago · 1.2 MB · branch alt │
    │   a title that is much too long for the row that it has…  9 days ago · 512 B │
    │ type to narrow · ↑↓ choose · Enter takes it · Esc closes                     │
    ╰──────────────────────────────────────────────────────────────────────────────╯
    ");
    press(&mut picker, KeyCode::End);
    assert!(
        matches!(press(&mut picker, KeyCode::Enter), PickerOutcome::Chosen(id) if id.starts_with("a title"))
    );
}

#[test]
fn ages_and_sizes_are_said_as_people_say_them() {
    for (minutes, expected) in [
        (0, "just now"),
        (59, "59 min ago"),
        (60, "1 h ago"),
        (1_500, "yesterday"),
        (4_320, "3 days ago"),
    ] {
        assert_eq!(age(minutes * 60_000), expected);
    }
    for (bytes, expected) in [(999, "999 B"), (1_000, "1 kB"), (2_560_000, "2.5 MB")] {
        assert_eq!(size(bytes), expected);
    }
}

#[test]
fn a_long_list_scrolls_with_the_selection() {
    let mut picker = Picker::new("many", name_rows((0..1_000).map(|n| format!("row {n}")), None));
    screen(&mut picker, 40, 10);
    press(&mut picker, KeyCode::End);
    assert!(screen(&mut picker, 40, 10).contains("› row 999"));
    press(&mut picker, KeyCode::PageUp);
    assert!(screen(&mut picker, 40, 10).contains("› row 993"));
}

proptest::proptest! {
    #[test]
    fn any_size_draws_without_a_panic(width in 1u16..60, height in 1u16..20, typed in "[a-z日]{0,6}") {
        let mut picker = names();
        for c in typed.chars() {
            press(&mut picker, KeyCode::Char(c));
        }
        screen(&mut picker, width, height);
    }
}
