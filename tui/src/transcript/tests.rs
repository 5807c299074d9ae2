//! The transcript as the person sees it: events in, screens out.

use super::*;
use claw_runtime::TuiEvent;

/// A transcript with a clock of its own.
struct Stage {
    transcript: Transcript,
    now: Instant,
}

impl Stage {
    fn new() -> Self {
        Self { transcript: Transcript::new(Theme::plain()), now: Instant::now() }
    }

    fn apply(&mut self, event: &TuiEvent) {
        self.transcript.apply(self.now, event);
    }

    fn screen(&mut self, width: u16, height: u16) -> String {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        self.transcript.draw(self.now, area, &mut buffer);
        let rows = (0..height).map(|y| {
            let row: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
            row.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }
}

fn text(text: &str) -> TuiEvent {
    TuiEvent::TextDelta { text: text.to_owned() }
}

#[test]
fn a_turn_is_a_prompt_a_line_of_thinking_and_an_answer() {
    let mut stage = Stage::new();
    stage.transcript.push_user("Why?", false);
    stage.apply(&TuiEvent::ThinkingDelta { text: "Hm.".into() });
    stage.apply(&TuiEvent::ThinkingEnded { char_count: 3, redacted: false });
    stage.apply(&text("Because **it is**.\n\nReally."));
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    > Why?

    ▸ Thinking (3 chars)

    Because it is.

    Really.
    ");
}
