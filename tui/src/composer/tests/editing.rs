//! The text under the hands: characters, words, pastes, the way through an editor.

use super::*;

#[test]
fn moves_and_deletions_go_by_what_a_person_calls_a_character() {
    let family = "👨\u{200d}👩\u{200d}👧";
    for (text, keys, expected) in [
        (format!("a{family}b"), "left backspace", "ab".to_owned()),
        (format!("a{family}b"), "left left x", format!("ax{family}b")),
        (format!("a{family}b"), "home right delete", "ab".to_owned()),
        ("e\u{301}x".to_owned(), "home right y", "e\u{301}yx".to_owned()),
        ("e\u{301}x".to_owned(), "left left z", "ze\u{301}x".to_owned()),
        ("e\u{301}".to_owned(), "backspace", String::new()),
        ("🇩🇪🇫🇷".to_owned(), "backspace", "🇩🇪".to_owned()),
        ("日本".to_owned(), "left backspace", "本".to_owned()),
    ] {
        let mut rig = Rig::new();
        rig.paste(&text);
        rig.keys(keys);
        assert_eq!(rig.text(), expected, "{text:?} after {keys}");
    }
}

#[test]
fn a_character_deletion_leaves_the_kill_buffer_alone() {
    let mut rig = Rig::new();
    rig.type_text("killed kept").keys("ctrl+w");
    rig.paste("e\u{301}");
    rig.keys("backspace ctrl+y");
    assert_eq!(rig.text(), "killed kept");
}

#[test]
fn emacs_keys_edit() {
    for (keys, expected) in [
        ("ctrl+a x", "xone two"),
        ("ctrl+a ctrl+e x", "one twox"),
        ("ctrl+b x", "one twxo"),
        ("ctrl+a ctrl+f x", "oxne two"),
        ("alt+b x", "one xtwo"),
        ("ctrl+a alt+f x", "one xtwo"),
        ("ctrl+w", "one "),
        ("ctrl+left ctrl+w", "two"),
        ("ctrl+a alt+d", " two"),
        ("ctrl+a ctrl+k", ""),
        ("ctrl+w ctrl+a ctrl+y", "twoone "),
        ("ctrl+h", "one tw"),
        ("alt+backspace", "one "),
        ("ctrl+w ctrl+_", "one two"),
        ("ctrl+w ctrl+_ alt+_", "one "),
    ] {
        let mut rig = Rig::new();
        rig.type_text("one two");
        rig.keys(keys);
        assert_eq!(rig.text(), expected, "{keys}");
    }
}

#[test]
fn pasted_newlines_never_submit() {
    let mut rig = Rig::new();
    rig.paste("one\r\ntwo\rthree\n");
    assert_eq!(rig.text(), "one\ntwo\nthree\n");
    rig.paste("\n\n");
    assert_eq!(rig.text(), "one\ntwo\nthree\n\n\n");
}

#[test]
fn large_pastes_become_a_chip_that_acts_as_one_character() {
    let big = "line\n".repeat(5_000);
    let mut rig = Rig::new();
    rig.type_text("see ");
    rig.paste(&big);
    insta::assert_snapshot!(rig.screen(40, 5), @"❯ see [pasted 5,000 lines #1]‸");
    rig.keys("left x");
    insta::assert_snapshot!(rig.screen(40, 5), @"❯ see x‸[pasted 5,000 lines #1]");
    rig.keys("right backspace");
    assert_eq!(rig.text(), "see x");
    rig.keys("ctrl+_");
    assert!(rig.text() == format!("see x{big}"), "undo brings the chip back");
    rig.keys("left delete");
    assert_eq!(rig.text(), "see x");
    rig.keys("ctrl+_");
    assert!(rig.keys("enter") == Outcome::Submit(format!("see x{big}")), "sent whole");
    rig.keys("up");
    assert!(rig.text() == format!("see x{big}"), "history keeps what the chip stands for");
}

#[test]
fn a_draft_of_a_megabyte_is_a_chip_to_edit_and_whole_to_send() {
    let big = "x".repeat(1_000_000);
    let mut rig = Rig::new();
    rig.paste(&big);
    rig.type_text(" and so on");
    insta::assert_snapshot!(rig.screen(50, 5), @"❯ [pasted 1,000,000 characters #1] and so on‸");
    assert!(rig.composer.editor_text() == format!("{big} and so on"));
    rig.composer.set_from_editor(&format!("{big} changed\n"));
    insta::assert_snapshot!(rig.screen(50, 5), @"❯ [pasted 1,000,008 characters #2]‸");
    assert!(rig.composer.take() == format!("{big} changed"));
    assert!(rig.composer.is_empty());
}

#[test]
fn the_editor_round_trip_keeps_the_draft() {
    let mut rig = Rig::new();
    rig.type_text("draft");
    let text = rig.composer.editor_text();
    rig.composer.set_from_editor(&format!("{text}\nmore\n"));
    assert_eq!(rig.text(), "draft\nmore");
    rig.keys("ctrl+_ ctrl+_");
    assert_eq!(rig.text(), "draft", "undo reaches back over it");
}
