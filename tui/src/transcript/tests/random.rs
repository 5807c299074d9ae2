//! Any sequence of events and keys, at any size.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Text(String),
    Think(String),
    Tool(String),
    Prompt(bool),
    Steer(bool),
    End,
    Scroll(i32),
    Toggle(u16, u16),
    Focus,
    Details(bool),
    Start,
    Draw(u16, u16),
}

fn step() -> impl Strategy<Value = Step> {
    let text = prop::sample::select(vec![
        "plain words ",
        "\n\n",
        "漢字漢字",
        "👩‍👩‍👧",
        "```rust\nfn x() {}\n",
        "```\n",
        "- a\n  - b\n",
        "| a | b |\n|-|-|\n| 1 | 2 |\n",
        "> quote\n",
        "\x1b[31m",
        "\r",
        "a-very-long-word-without-any-place-to-break-it-at-all",
    ]);
    prop_oneof![
        text.clone().prop_map(|text| Step::Text(text.to_owned())),
        text.clone().prop_map(|text| Step::Think(text.to_owned())),
        text.prop_map(|text| Step::Tool(text.to_owned())),
        any::<bool>().prop_map(Step::Prompt),
        any::<bool>().prop_map(Step::Steer),
        Just(Step::End),
        (-40..40i32).prop_map(Step::Scroll),
        (0..80u16, 0..24u16).prop_map(|(x, y)| Step::Toggle(x, y)),
        Just(Step::Focus),
        any::<bool>().prop_map(Step::Details),
        Just(Step::Start),
        (0..30u16, 0..12u16).prop_map(|(width, height)| Step::Draw(width, height)),
        prop::sample::select(vec![(0, 0), (1, 1), (20, 5), (80, 24), (2, 40)])
            .prop_map(|(width, height)| Step::Draw(width, height)),
    ]
}

fn play(stage: &mut Stage, step: Step, index: usize) {
    match step {
        Step::Text(text) => stage.text(&text),
        Step::Think(text) => stage.apply(&TuiEvent::ThinkingDelta { text }),
        Step::Tool(text) => {
            let id = (index / 3).to_string();
            stage.start_tool(&id, "bash", &format!("{{\"command\":{text:?}}}"));
            stage.apply(&TuiEvent::ToolOutput { id: id.clone(), text: text.clone() });
            if index.is_multiple_of(2) {
                stage.result(&id, "bash", &text, ToolOutcome::error(text.clone()), false);
            }
        }
        Step::Steer(sends) if sends => stage.transcript.push_steered("into it"),
        Step::Steer(_) => {
            let all = [Standing::Taken, Standing::Queued, Standing::Uncertain];
            stage.transcript.steered(all[index % all.len()]);
        }
        Step::Prompt(queued) => stage.transcript.push_user("prompt", queued),
        Step::End => {
            stage.end(TurnStop::Cancelled);
            stage.apply(&TuiEvent::TurnStarted { input: "prompt".into(), retry: false });
        }
        Step::Scroll(lines) => stage.transcript.scroll_lines(lines),
        Step::Toggle(x, y) => {
            stage.transcript.toggle_at(x, y);
        }
        Step::Focus => {
            stage.transcript.focus_prev();
        }
        Step::Details(open) => stage.transcript.set_tool_details(open),
        Step::Start => stage.transcript.to_start(),
        Step::Draw(width, height) => {
            stage.screen(width, height);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_sequence_at_any_size_draws_within_its_area(steps in prop::collection::vec(step(), 0..40)) {
        let mut stage = Stage::new();
        for (index, step) in steps.into_iter().enumerate() {
            play(&mut stage, step, index);
        }
        // Drawn into a part of a larger screen, nothing outside of it is touched.
        for (width, height) in [(0, 0), (1, 1), (20, 5), (37, 11)] {
            let whole = Rect::new(0, 0, width + 4, height + 4);
            let mut buffer = Buffer::filled(whole, ratatui::buffer::Cell::new("·"));
            let area = Rect::new(2, 2, width, height);
            stage.transcript.draw(stage.now, area, &mut buffer);
            for y in 0..whole.height {
                for x in 0..whole.width {
                    if !area.contains((x, y).into()) {
                        prop_assert_eq!(buffer[(x, y)].symbol(), "·");
                    }
                }
            }
        }
        // The same frame as one that was drawn at this size from the start of following on.
        stage.transcript.to_end();
        let screen = stage.screen(40, 10);
        prop_assert_eq!(stage.screen(40, 10), screen);
    }
}
