//! What a frame costs: the screen, whatever the conversation holds.

use super::*;

#[test]
fn a_frame_and_a_scroll_cost_the_screen_whatever_the_history() {
    let cost = |cells: usize| {
        let mut stage = long_stage(cells);
        stage.screen(80, 24);
        let first = stage.transcript.layouts();
        for _ in 0..10 {
            stage.screen(80, 24);
        }
        assert_eq!(stage.transcript.layouts(), first, "an unchanged frame lays nothing out");
        stage.transcript.page_up();
        stage.screen(80, 24);
        stage.transcript.scroll_lines(-3);
        stage.screen(80, 24);
        let scrolled = stage.transcript.layouts() - first;
        stage.transcript.to_start();
        stage.screen(80, 24);
        stage.screen(60, 24);
        stage.transcript.to_end();
        stage.screen(60, 24);
        (first, scrolled, stage.transcript.layouts() - first - scrolled)
    };
    let (first, scrolled, jumps) = cost(100);
    assert_eq!(cost(100_000), (first, scrolled, jumps));
    assert!(first <= 24 && scrolled <= 60 && jumps <= 100, "{first} {scrolled} {jumps}");
}

#[test]
fn ten_thousand_deltas_are_laid_out_once_a_frame() {
    let mut stage = long_stage(10);
    stage.screen(80, 24);
    let before = stage.transcript.layouts();
    for index in 0..10_000 {
        stage.text(if index % 50 == 0 { "word\n\n" } else { "word " });
    }
    assert_eq!(stage.transcript.layouts(), before);
    stage.screen(80, 24);
    assert_eq!(stage.transcript.layouts(), before + 1);
}

#[test]
fn lines_of_cells_long_off_the_screen_are_dropped() {
    let mut stage = long_stage(20_000);
    stage.screen(80, 50);
    for _ in 0..400 {
        stage.transcript.page_up();
        stage.screen(80, 50);
    }
    assert!(stage.transcript.cached_lines() < 4_200, "{}", stage.transcript.cached_lines());
}

#[test]
fn the_output_of_a_running_tool_is_bounded() {
    let mut stage = Stage::new();
    stage.start_tool("1", "bash", r#"{"command":"yes"}"#);
    for _ in 0..1000 {
        stage.apply(&TuiEvent::ToolOutput { id: "1".into(), text: "y\n".repeat(1000) });
    }
    stage.apply(&TuiEvent::ToolOutput { id: "1".into(), text: "the end".into() });
    let screen = stage.screen(80, 24);
    assert_eq!(screen.lines().count(), 6);
    assert!(screen.ends_with("the end"));
}

#[test]
fn colours_that_come_later_are_drawn_in_the_next_frame() {
    use crate::markdown::{CodeColours, ColouredCode, Colours};
    use crate::theme::CodeRole;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Later(Arc<AtomicBool>);
    impl CodeColours for Later {
        fn colours(&mut self, _: &str, code: &str, _: bool) -> Colours {
            if !self.0.load(Ordering::Relaxed) {
                return Colours::Pending(None);
            }
            let lines = code.lines().map(|_| vec![(2, CodeRole::Keyword)]).collect();
            Colours::Ready(Arc::new(ColouredCode { lines }))
        }
        fn poll(&mut self) -> u64 {
            u64::from(self.0.load(Ordering::Relaxed))
        }
    }

    let ready = Arc::new(AtomicBool::new(false));
    let theme = Theme::dark();
    let mut stage = Stage::new();
    stage.transcript.set_theme(theme.clone());
    stage.transcript.set_highlighter(Box::new(Later(Arc::clone(&ready))));
    stage.text("```rust\nfn x() {}\n```\n\nafter\n\nmore\n");
    let plain = stage.buffer(40, 9);
    assert_eq!(plain[(0, 1)].fg, ratatui::style::Color::Reset);
    ready.store(true, Ordering::Relaxed);
    let coloured = stage.buffer(40, 9);
    assert_eq!(Some(coloured[(0, 1)].fg), theme.code_role(CodeRole::Keyword).fg);
    let symbols = |buffer: &Buffer| {
        buffer.content().iter().map(|cell| cell.symbol().to_owned()).collect::<String>()
    };
    assert_eq!(symbols(&plain), symbols(&coloured));
}
