//! What is drawn, and where the cursor stands.

use super::*;

#[test]
fn the_cursor_stands_at_the_caret_in_wrapped_and_wide_text() {
    let mut rig = Rig::new();
    insta::assert_snapshot!(rig.screen(20, 5), @"❯ ‸Ask for something,");
    rig.type_text("one two three four five");
    insta::assert_snapshot!(rig.screen(20, 5), @r"
    ❯ one two three
      four five‸
    ");
    rig.keys("ctrl+u");
    let wide = "日本👨\u{200d}👩\u{200d}👧e\u{301}";
    rig.paste(&format!("{wide}x"));
    assert_eq!(rig.screen(20, 5), format!("❯ {wide}x‸"));
    rig.keys("left");
    assert_eq!(rig.screen(20, 5), format!("❯ {wide}‸x"));
    rig.keys("left left");
    assert_eq!(rig.screen(20, 5), "❯ 日本‸👨\u{200d}👩\u{200d}👧e\u{301}x");
}

#[test]
fn a_draft_taller_than_its_room_scrolls_inside() {
    let mut rig = Rig::new();
    rig.paste("1\n2\n3\n4\n5\n6");
    insta::assert_snapshot!(rig.screen(20, 3), @r"
    ↑ 4
      5
      6‸
    ");
    rig.keys("up up up");
    insta::assert_snapshot!(rig.screen(20, 3), @r"
    ↑ 3‸
      4
    ↓ 5
    ");
    assert_eq!(rig.composer.height(20, 3), 3);
    assert_eq!(rig.composer.height(20, 10), 6);
}

#[test]
fn hidden_characters_in_a_draft_are_drawn_as_marks() {
    let mut rig = Rig::new();
    rig.paste("a\u{202e}b\tc");
    insta::assert_snapshot!(rig.screen(20, 3), @"❯ a�b    c‸");
    assert_eq!(rig.text(), "a\u{202e}b\tc");
}
