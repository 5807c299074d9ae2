//! Earlier prompts: going through them, searching them, and the draft that comes back.

use super::*;

#[test]
fn the_application_can_put_the_draft_aside() {
    let mut rig = Rig::with_history(&["old"]);
    rig.type_text("mine").keys("ctrl+r o l");
    rig.composer.clear();
    assert!(rig.composer.is_empty() && !rig.composer.is_searching());
    rig.keys("up");
    assert_eq!(rig.text(), "mine");
}

#[test]
fn up_brings_the_newest_prompt_first_and_down_the_draft_back() {
    let mut rig = Rig::with_history(&["first", "second\nwith two lines", "third"]);
    rig.type_text("draft");
    for expected in ["third", "second\nwith two lines", "first", "first"] {
        rig.keys("up");
        assert_eq!(rig.text(), expected);
    }
    for expected in ["second\nwith two lines", "third", "draft"] {
        rig.keys("down");
        assert_eq!(rig.text(), expected);
    }
    assert_eq!(rig.keys("down"), Outcome::Ignored);
}

#[test]
fn up_and_down_move_within_several_lines_before_they_leave() {
    let mut rig = Rig::with_history(&["old"]);
    rig.paste("abcdef\nx\nabcdef");
    rig.keys("up up y");
    assert_eq!(rig.text(), "abcdefy\nx\nabcdef", "the column is kept over a short line");
    rig.keys("up");
    assert_eq!(rig.text(), "old");
    rig.keys("down");
    assert_eq!(rig.text(), "abcdefy\nx\nabcdef");
}

#[test]
fn a_submitted_prompt_is_the_newest() {
    let mut rig = Rig::with_history(&["old"]);
    rig.type_text("new").keys("enter");
    rig.keys("up");
    assert_eq!(rig.text(), "new");
    assert_eq!(rig.composer.history(), ["old", "new"]);
}

#[test]
fn ctrl_r_searches_backwards() {
    let mut rig = Rig::with_history(&["fix tests", "add docs", "fix lint"]);
    rig.type_text("mine").keys("ctrl+r");
    rig.type_text("fix");
    insta::assert_snapshot!(rig.screen(60, 5), @r"
    ❯ fix lint
    search: fix‸  (Enter takes it, Ctrl+R older, Esc goes back)
    ");
    rig.keys("ctrl+r");
    assert_eq!(rig.text(), "fix tests");
    rig.keys("ctrl+s");
    assert_eq!(rig.text(), "fix lint");
    rig.keys("esc");
    assert_eq!(rig.text(), "mine", "Esc brings the draft back");
    rig.keys("ctrl+r d o");
    assert_eq!(rig.keys("enter"), Outcome::Consumed, "taking a match does not send it");
    assert_eq!(rig.text(), "add docs");
    rig.keys("ctrl+r z z");
    assert!(rig.screen(60, 5).contains("nothing found"));
    rig.keys("ctrl+c");
    assert_eq!(rig.text(), "add docs");
}
