//! Following the end, reading back, and changes of size.

use super::*;

#[test]
fn the_end_is_followed_until_the_person_scrolls_away() {
    let mut stage = long_stage(30);
    assert!(stage.transcript.following());
    assert!(stage.screen(40, 5).ends_with("line 29"));
    stage.transcript.scroll_lines(-10);
    let before = stage.screen(40, 5);
    assert!(!stage.transcript.following());
    assert_eq!(stage.transcript.new_lines_below(), 0);
    stage.text("more\n\nand more\n");
    stage.apply(&TuiEvent::warning("one"));
    assert_eq!(stage.screen(40, 5), before, "the view stays where the person put it");
    assert!((4..=6).contains(&stage.transcript.new_lines_below()));
    stage.transcript.to_end();
    assert!(stage.transcript.following());
    assert_eq!(stage.transcript.new_lines_below(), 0);
    assert!(stage.screen(40, 5).ends_with("! one"));
}

#[test]
fn scrolling_down_to_the_end_follows_again() {
    let mut stage = long_stage(30);
    stage.screen(40, 10);
    for _ in 0..3 {
        stage.transcript.page_up();
        stage.screen(40, 10);
    }
    assert!(!stage.transcript.following());
    stage.transcript.page_down();
    stage.screen(40, 10);
    assert!(!stage.transcript.following());
    stage.transcript.page_down();
    stage.transcript.page_down();
    assert!(stage.transcript.following());
    stage.transcript.to_start();
    assert!(stage.screen(40, 10).starts_with("line 0"));
    stage.transcript.page_up();
    assert!(stage.screen(40, 10).starts_with("line 0"));
    stage.transcript.scroll_lines(3);
    assert!(stage.screen(40, 10).starts_with("\nline 2"));
    stage.transcript.scroll_lines(10_000);
    assert!(stage.transcript.following());
}

#[test]
fn a_transcript_that_fits_does_not_scroll() {
    let mut stage = long_stage(3);
    let before = stage.screen(40, 20);
    stage.transcript.scroll_lines(-5);
    stage.transcript.page_up();
    assert!(stage.transcript.following());
    stage.transcript.to_start();
    assert_eq!(stage.screen(40, 20), before);
    assert!(stage.transcript.following());
}

#[test]
fn the_text_at_the_top_stays_through_resizes() {
    let mut stage = Stage::new();
    let words: Vec<String> = (0..2000).map(|word| format!("word{word}")).collect();
    stage.text(&words.join(" "));
    stage.screen(80, 10);
    stage.transcript.scroll_lines(-60);
    let before = stage.screen(80, 10);
    let first = before.split_whitespace().next().unwrap().to_owned();
    for width in [20, 200, 33, 61, 12, 120] {
        let screen = stage.screen(width, 10);
        let row = screen.lines().next().unwrap();
        assert!(row.contains(&first), "{first} at {width}: {row}");
        assert!(!stage.transcript.following());
    }
    assert_eq!(stage.screen(80, 10), before, "and back again");
}

#[test]
fn after_a_storm_of_resizes_the_screen_is_that_of_a_fresh_start() {
    let table = "| name | value |\n|---|---|\n| some words | and some more of them |\n\n";
    let part =
        format!("# Head\n\nprose that is long enough to wrap somewhere\n\n{table}- a\n- b\n\n");
    let source = format!("{}```sh\n{}\n```\n", part.repeat(30), "cargo test ".repeat(20));
    let mut stage = Stage::new();
    let mut fresh = Stage::new();
    for stage in [&mut stage, &mut fresh] {
        let facts = ToolFacts::Diff {
            path: "a".into(),
            diff: "@@ -1 +1 @@\n-old\n+new\n".into(),
            added: 1,
            removed: 1,
            created: false,
        };
        stage.result("1", "edit_file", EDIT, outcome("ok", Some(facts)), false);
    }
    for (index, delta) in source.as_bytes().chunks(40).enumerate() {
        let step = u16::try_from(index).unwrap();
        stage.text(std::str::from_utf8(delta).unwrap());
        stage.screen(20 + step * 37 % 220, 8 + step * 11 % 72);
    }
    fresh.text(&source);
    for (width, height) in [(1, 1), (20, 5), (80, 24), (120, 200)] {
        assert_eq!(stage.screen(width, height), fresh.screen(width, height), "{width}x{height}");
    }
}

#[test]
fn a_delta_changes_the_cells_of_its_words_only() {
    let mut stage = long_stage(30);
    stage.text("Some words");
    let before = stage.buffer(80, 24);
    stage.text(" more");
    let after = stage.buffer(80, 24);
    let changed: Vec<(u16, u16)> =
        before.diff(&after).into_iter().map(|(x, y, _)| (x, y)).collect();
    let row = changed.first().unwrap().1;
    assert!(changed.len() <= 5 && changed.iter().all(|&(_, y)| y == row), "{changed:?}");
}

#[test]
fn a_long_reply_is_read_from_its_beginning_and_a_short_one_keeps_following() {
    let mut stage = Stage::new();
    let reply = |lines: usize| TuiEvent::Reply {
        title: "Help".to_owned(),
        markdown: "- a line\n".repeat(lines),
    };
    stage.screen(40, 10);
    stage.apply(&reply(3));
    assert!(stage.transcript.following());
    stage.apply(&reply(50));
    let screen = stage.screen(40, 10);
    assert!(screen.trim_start().starts_with("Help"), "{screen}");
    assert!(!stage.transcript.following());
    stage.transcript.push_user("next", false);
    assert!(stage.transcript.following());
}
