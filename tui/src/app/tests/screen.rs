//! Any size, any theme, any order of events: a screen, and no panic.

use claw_runtime::CompactionCause;
use claw_runtime::permissions::RetiredReason;
use proptest::prelude::*;
use ratatui::{TerminalOptions, Viewport};

use super::*;

#[test]
fn the_farewell_is_the_conversation_and_clean() {
    let mut stage = Stage::in_a_turn();
    stage.text("An answer\u{1b}[31m in red\u{7}.");
    stage.end();
    let lines = stage.app.farewell(stage.now, 80);
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    > hello

    An answer in red.
    ");
}

#[test]
fn the_farewell_has_no_width_to_fail_at() {
    let mut stage = Stage::in_a_turn();
    stage.text("An answer.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n");
    for width in [0, 1, 2, 9, 400] {
        assert!(!stage.app.farewell(stage.now, width).is_empty());
    }
}

const SIZES: &[(u16, u16)] =
    &[(0, 0), (1, 1), (3, 1), (9, 2), (10, 3), (20, 5), (24, 7), (40, 10), (80, 24), (200, 50)];

/// Everything that can be on the screen at once.
fn crowded(theme: Theme) -> Stage {
    let mut stage = Stage::new();
    stage.app.theme = theme.clone();
    stage.app.transcript.set_theme(theme);
    stage.line("a prompt with wide 漢字 and e\u{301} in it");
    stage.begin("a prompt");
    stage.tell(TuiEvent::ThinkingDelta { text: "thought\n".repeat(5) });
    stage.text(&"# Title\n\n- item\n\n```rust\nfn main() {}\n```\n\n".repeat(8));
    stage.start_tool("t", "bash");
    stage.tell(TuiEvent::ToolOutput { id: "t".into(), text: "output\n".repeat(30) });
    stage.line("it waits");
    stage.type_text("a draft that is longer than many a screen is wide");
    stage
}

#[test]
fn every_size_and_theme_can_be_drawn_in_every_state() {
    for theme in [Theme::dark(), Theme::light(), Theme::plain()] {
        for &(width, height) in SIZES {
            let mut stage = crowded(theme.clone()).sized(width, height);
            stage.screen();
            stage.key("pageup");
            stage.screen();
            let (_, _answer) = stage.ask(&"echo long; ".repeat(100));
            stage.screen();
            stage.wait(1_000);
            stage.screen();
            stage.key("esc");
            stage.line("/theme");
            stage.screen();
            stage.key("esc");
            stage.type_text("/s");
            stage.screen();
            stage.key("f1");
            stage.key("ctrl+end");
            stage.screen();
        }
    }
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    let mut stage = crowded(Theme::plain()).sized(9, 3);
    assert_eq!(stage.screen().lines().next(), Some("too small"));
}

/// One step of a long and thoughtless life.
#[derive(Debug, Clone)]
enum Step {
    Key(&'static str),
    Wheel(bool),
    Click(u16, u16),
    Paste(String),
    Tell(u8),
    Focus(bool),
    Wait(u16),
    Size(usize),
}

const KEYS: &[&str] = &[
    "a",
    " ",
    "/",
    "\\",
    "enter",
    "enter",
    "esc",
    "tab",
    "up",
    "down",
    "home",
    "end",
    "pageup",
    "pagedown",
    "backspace",
    "ctrl+c",
    "ctrl+r",
    "ctrl+u",
    "ctrl+o",
    "ctrl+x",
    "ctrl+end",
    "ctrl+home",
    "ctrl+up",
    "ctrl+down",
    "alt+o",
    "alt+c",
    "alt+k",
    "ctrl+g",
    "ctrl+z",
    "ctrl+p",
    "ctrl+t",
    "ctrl+l",
    "ctrl+y",
    "ctrl+j",
    "f1",
    "f2",
    "f6",
];

const LINES: &[&str] =
    &["/theme", "/model", "/permissions", "/compact", "/retry", "/session list", "/help", "hi"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => prop::sample::select(KEYS).prop_map(Step::Key),
        1 => any::<bool>().prop_map(Step::Wheel),
        1 => (0_u16..90, 0_u16..30).prop_map(|(x, y)| Step::Click(x, y)),
        1 => prop_oneof!["\\PC{0,20}", prop::sample::select(LINES).prop_map(str::to_owned)]
            .prop_map(Step::Paste),
        6 => (0_u8..22).prop_map(Step::Tell),
        1 => any::<bool>().prop_map(Step::Focus),
        3 => (0_u16..3_000).prop_map(Step::Wait),
        2 => (0..SIZES.len()).prop_map(Step::Size),
    ];
    prop::collection::vec(step, 0..60)
}

/// Tells something, whether it fits or not.
fn tell(stage: &mut Stage, which: u8, answers: &mut Vec<Receiver<PermissionPromptDecision>>) {
    let id = || "t".to_owned();
    let event = match which {
        0 => TuiEvent::TurnStarted { input: "asked".into(), retry: false },
        1 => TuiEvent::TurnStarted { input: "asked".into(), retry: true },
        2 => TuiEvent::TurnCompleted { summary: summary(TurnStop::Cancelled) },
        3 => TuiEvent::TurnCompleted { summary: summary(TurnStop::Finished(StopReason::EndTurn)) },
        4 => {
            stage.fail();
            return;
        }
        5 => TuiEvent::TextDelta { text: "some *text* 漢\n\n| a |\n|-|\n".into() },
        6 => TuiEvent::ThinkingDelta { text: "hm\nhm ".into() },
        7 => TuiEvent::ThinkingEnded { char_count: 3, redacted: false },
        8 => TuiEvent::ToolUseStarted { id: id(), name: "bash".into() },
        9 => TuiEvent::ToolUse { id: id(), name: "bash".into(), input: "{\"command\":1}".into() },
        10 => TuiEvent::ToolOutput { id: id(), text: "a\tb\r\nc".into() },
        11 => {
            stage.start_tool("t", "bash");
            return;
        }
        12 => {
            stage.end_tool("t", "bash");
            return;
        }
        13 => {
            let (_, answer) = stage.ask("echo one\\necho two");
            return answers.push(answer);
        }
        14 => match stage.app.permissions.front().map(|request| request.id) {
            Some(id) => TuiEvent::PermissionRetired { id, reason: RetiredReason::Dropped },
            None => TuiEvent::MessageStop { stop_reason: StopReason::EndTurn },
        },
        15 => listed(&[("s-8", "Fix the cart"), ("s-9", "")]),
        16 => opened("s-2", &["asked", "said"], &["asked"]),
        17 => TuiEvent::StatusChanged { status: runtime_status() },
        18 => TuiEvent::Stalled { silent_for: Duration::from_secs(9) },
        19 => TuiEvent::Retrying {
            attempt: 1,
            max_attempts: 2,
            wait: Duration::from_millis(1_500),
            reason: "busy".into(),
        },
        20 => TuiEvent::Compacted {
            cause: CompactionCause::Requested,
            removed: 1,
            before_tokens: 2,
            after_tokens: 1,
            original: None,
        },
        _ => TuiEvent::NothingToRetry,
    };
    stage.tell(event);
}

/// Draws into a part of a larger screen, so that what is drawn beside it panics.
fn draw_in_a_corner(stage: &mut Stage, (width, height): (u16, u16)) {
    let area = Rect::new(3, 2, width, height);
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    let mut terminal =
        Terminal::with_options(TestBackend::new(width + 6, height + 4), options).unwrap();
    let now = stage.now;
    terminal.draw(|frame| stage.app.draw(now, frame)).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_order_of_events_breaks_the_screen_or_the_clock(steps in steps()) {
        let mut stage = Stage::new();
        let mut answers = Vec::new();
        let mut size = (80, 24);
        for step in steps {
            match step {
                Step::Key(key) => {
                    stage.key(key);
                }
                Step::Wheel(up) => {
                    let kind =
                        if up { MouseEventKind::ScrollUp } else { MouseEventKind::ScrollDown };
                    stage.wheel(kind);
                }
                Step::Click(column, row) => {
                    let kind = MouseEventKind::Down(crossterm::event::MouseButton::Left);
                    let mouse = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
                    stage.update(Inbox::Terminal(Event::Mouse(mouse)));
                }
                Step::Paste(text) => {
                    stage.update(Inbox::Terminal(Event::Paste(text)));
                }
                Step::Tell(which) => tell(&mut stage, which, &mut answers),
                Step::Focus(true) => {
                    stage.update(Inbox::Terminal(Event::FocusGained));
                }
                Step::Focus(false) => {
                    stage.update(Inbox::Terminal(Event::FocusLost));
                }
                Step::Wait(millis) => stage.wait(u64::from(millis)),
                Step::Size(which) => size = SIZES[which],
            }
            draw_in_a_corner(&mut stage, size);
        }
        let busy = stage.app.turn.is_some();
        prop_assert!(busy || stage.app.waiting.prompts.is_empty(), "what waits without a turn waits for ever");
    }
}
