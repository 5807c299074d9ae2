//! Going from cell to cell by the keyboard, and opening them.

use super::*;

#[test]
fn the_keyboard_goes_from_one_cell_that_opens_to_the_next() {
    let mut stage = Stage::new();
    for id in ["1", "2"] {
        let input = format!("{{\"command\":\"run {id}\"}}");
        stage.result(id, "bash", &input, outcome("out\n", Some(command(0))), false);
        stage.text(&"filler\n\n".repeat(30));
    }
    stage.screen(40, 10);
    assert!(!stage.transcript.focus_next());
    assert!(stage.transcript.focus_prev());
    assert!(stage.screen(40, 10).contains("run 2"), "it comes into view");
    assert!(stage.transcript.focus_prev());
    assert!(stage.screen(40, 10).contains("run 1"));
    assert!(!stage.transcript.focus_prev());
    let buffer = stage.buffer(40, 10);
    let marked = ratatui::style::Modifier::REVERSED;
    assert!(buffer[(2, 0)].modifier.contains(marked));
    assert!(stage.transcript.focus_next() && stage.transcript.toggle_focused());
    assert!(stage.screen(40, 12).contains("out"));
    stage.transcript.clear_focus();
    assert!(!stage.transcript.toggle_focused());
}

#[test]
fn opening_a_cell_leaves_its_first_line_where_it_is() {
    let mut stage = long_stage(10);
    let input = r#"{"command":"seq 100"}"#;
    let output = (1..=100).map(|line| line.to_string()).collect::<Vec<_>>().join("\n");
    stage.result("1", "bash", input, outcome(&output, Some(command(0))), false);
    stage.text("after");
    let closed = stage.screen(40, 10);
    let row = |screen: &str| screen.lines().position(|line| line.contains("bash"));
    assert!(stage.transcript.focus_prev() && stage.transcript.toggle_focused());
    let open = stage.screen(40, 10);
    assert_eq!(row(&open), row(&closed));
    assert!(open.contains("seq 100\n  1"), "{open}");
    assert!(stage.transcript.toggle_focused());
    assert_eq!(stage.screen(40, 10), closed);
    assert!(stage.transcript.following(), "closed again, the end is followed again");
}

#[test]
fn the_keyboard_begins_with_what_is_on_the_screen() {
    let mut stage = Stage::new();
    for id in 0..40 {
        let input = format!("{{\"command\":\"run {id}\"}}");
        stage.result(&id.to_string(), "bash", &input, outcome("out\n", Some(command(0))), false);
    }
    stage.screen(40, 10);
    assert!(stage.transcript.focus_prev() && stage.transcript.focus_prev());
    assert!(stage.transcript.focused_text().unwrap().starts_with("run 38"));
    stage.transcript.scroll_lines(-20);
    stage.screen(40, 10);
    assert!(stage.transcript.focus_prev());
    assert!(stage.transcript.focused_text().unwrap().starts_with("run 19"));
}
