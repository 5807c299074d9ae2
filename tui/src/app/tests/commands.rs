//! Every slash command leads somewhere, and Enter works after it.

use claw_runtime::CompactionCause;

use super::*;
use crate::commands::{COMMANDS, CommandSpec, When};

/// What a line leads to.
#[derive(Clone, Copy)]
enum Leads {
    /// These effects.
    Orders(&'static str),
    /// These words on the screen.
    Shows(&'static str),
    /// An open list with this title.
    Lists(&'static str),
}

use Leads::{Lists, Orders, Shows};

/// Name of the row in the table of commands, a line that means it, and what it leads to.
const EXPECTED: &[(&str, &str, Leads)] = &[
    ("help", "/help", Shows("/session fork [branch]")),
    ("help", "/help", Shows("switch to the next backend")),
    ("status", "/status", Orders("report Status")),
    ("model", "/model claude-y", Orders("model claude-y")),
    ("model", "/model", Lists("Model")),
    ("permissions", "/permissions read-only", Orders("mode read-only")),
    ("permissions", "/mode allow", Orders("mode allow")),
    ("permissions", "/permissions", Lists("Permission mode")),
    ("permissions", "/permissions everything", Shows("/permissions:")),
    ("backend", "/backend openai", Orders(r#"backend Some("openai")"#)),
    ("backend", "/backend", Orders("backend None")),
    ("compact", "/compact", Orders("compact")),
    ("clear", "/clear", Orders("clear")),
    ("clear", "/new", Orders("clear")),
    ("session list", "/session list", Orders("list sessions")),
    ("session fork", "/session fork try", Orders(r#"fork Some("try")"#)),
    ("session fork", "/fork", Orders("fork None")),
    ("session switch", "/session switch abc", Orders("open abc")),
    ("session switch", "/session switch", Shows("/session switch <session>")),
    ("resume", "/resume", Orders("list sessions")),
    ("resume", "/resume latest", Orders("open latest")),
    ("export", "/export", Orders("export None")),
    ("export", "/export notes.md", Orders(r#"export Some("notes.md")"#)),
    ("cost", "/cost", Orders("report Cost")),
    ("context", "/context", Orders("report Context")),
    ("config", "/config", Orders("report Config")),
    ("history", "/history", Shows("Last prompts")),
    ("history", "/history none", Shows("whole number")),
    ("retry", "/retry", Orders("retry")),
    ("stop", "/stop", Shows("Nothing is running.")),
    ("copy", "/copy", Shows("There is no answer to copy yet.")),
    ("thinking", "/thinking", Shows("thinking is shown")),
    ("details", "/details", Shows("tool calls are shown")),
    ("worker", "/worker", Orders("look { columns: 80, rows: 24 }")),
    ("theme", "/theme nonsense", Shows("There is no theme \"nonsense\"")),
    ("theme", "/theme", Lists("Theme")),
    ("version", "/version", Shows(concat!("claw ", env!("CARGO_PKG_VERSION")))),
    ("exit", "/exit", Orders("quit")),
    ("exit", "/quit", Orders("quit")),
];

#[test]
fn every_command_has_an_expectation() {
    for spec in COMMANDS {
        let known = EXPECTED.iter().any(|(name, ..)| *name == spec.name);
        assert!(known, "/{} has no row in EXPECTED: add what it leads to", spec.name);
    }
    for (name, ..) in EXPECTED {
        assert!(COMMANDS.iter().any(|spec| spec.name == *name), "{name} is no command any more");
    }
}

#[test]
fn every_command_leads_to_its_effect_or_its_screen() {
    for (_, line, leads) in EXPECTED {
        let mut stage = Stage::new().sized(120, 160);
        let effects = stage.line(line);
        match leads {
            Orders(expected) => assert_eq!(&effects, expected, "{line}"),
            Shows(expected) => {
                assert_eq!(effects, "", "{line}");
                stage.shows(expected);
            }
            Lists(title) => {
                assert_eq!(effects, "", "{line}");
                assert!(stage.app.picker.is_some(), "{line}");
                stage.shows(title);
            }
        }
    }
}

/// What the runtime does for these words, as far as it ends something.
fn answer(stage: &mut Stage, effects: &str) {
    match effects {
        "retry" => {
            stage.tell(TuiEvent::NothingToRetry);
        }
        "compact" => {
            let cause = CompactionCause::Requested;
            stage.tell(TuiEvent::Compacting { cause, round: 1, max_rounds: 1 });
            stage.tell(TuiEvent::Compacted {
                cause,
                removed: 0,
                before_tokens: 1,
                after_tokens: 1,
                original: None,
            });
        }
        _ => {}
    }
}

#[test]
fn enter_is_not_dead_after_any_command() {
    for (name, line, leads) in EXPECTED {
        if *name == "exit" {
            continue;
        }
        let mut stage = Stage::new();
        let effects = stage.line(line);
        answer(&mut stage, &effects);
        if let Lists(_) = leads {
            stage.key("esc");
        }
        // A refused line is given back; it was in the way of nothing.
        stage.key("ctrl+u");
        assert_eq!(stage.line("go on"), "submit go on", "after {line}");
    }
}

#[test]
fn a_prompt_typed_during_a_compaction_or_a_retry_is_sent_after_it() {
    for line in ["/compact", "/retry"] {
        let mut stage = Stage::new();
        let effects = stage.line(line);
        assert_eq!(stage.line("next"), "", "it waits");
        stage.shows("next");
        let cause = CompactionCause::Requested;
        let sent = if effects == "retry" {
            stage.tell(TuiEvent::NothingToRetry)
        } else {
            stage.tell(TuiEvent::Compacted {
                cause,
                removed: 3,
                before_tokens: 9,
                after_tokens: 1,
                original: None,
            })
        };
        assert_eq!(sent, "submit next", "after {line}");
    }
}

#[test]
fn a_retry_that_begins_a_turn_ends_with_it() {
    let mut stage = Stage::new();
    assert_eq!(stage.line("/retry"), "retry");
    stage.tell(TuiEvent::TurnStarted { input: "again".into(), retry: true });
    stage.text("well");
    assert_eq!(stage.activity(), "writing 0 s · esc stops");
    stage.end();
    assert_eq!(stage.activity(), "ready");
}

#[test]
fn an_unknown_command_says_what_is_near_and_gives_the_line_back() {
    let mut stage = Stage::new();
    assert_eq!(stage.line("/stauts now"), "");
    stage.shows("unknown command /stauts; did you mean /status? /help lists them");
    assert_eq!(stage.draft(), "/stauts now");
}

/// A line that means this row, with an argument where one is needed.
fn line_for(spec: &CommandSpec) -> String {
    let known = EXPECTED
        .iter()
        .find(|(name, _, leads)| *name == spec.name && matches!(leads, Orders(_) | Lists(_)));
    known.map_or_else(|| format!("/{}", spec.name), |(_, line, _)| (*line).to_owned())
}

#[test]
fn a_command_for_between_turns_comes_back_with_a_message_during_one() {
    for spec in COMMANDS.iter().filter(|spec| spec.when == When::Idle) {
        let mut stage = Stage::in_a_turn();
        let line = line_for(spec);
        assert_eq!(stage.line(&line), "", "{line}");
        assert_eq!(stage.draft(), line);
        stage.shows(&format!("/{} waits for the end of the turn; Esc interrupts it", spec.name));
    }
}

#[test]
fn a_command_for_any_time_works_during_a_turn() {
    for spec in COMMANDS.iter().filter(|spec| spec.when == When::Always && spec.name != "exit") {
        let mut stage = Stage::in_a_turn();
        let line = line_for(spec);
        let effects = stage.line(&line);
        assert!(!effects.contains("submit"), "{line}");
        stage.lacks("waits for the end of the turn");
        if stage.app.picker.is_some() {
            stage.key("esc");
        }
        assert_eq!(stage.draft(), "", "{line} was taken");
    }
    assert_eq!(Stage::in_a_turn().line("/stop"), "cancel");
    assert_eq!(Stage::in_a_turn().line("/exit"), "cancel; quit");
}

#[test]
fn a_theme_is_taken_at_once() {
    let mut stage = Stage::new();
    assert_eq!(stage.line("/theme light"), "");
    assert_eq!(stage.app.theme.name, "light");
    stage.line("/theme");
    stage.type_text("dark");
    stage.key("enter");
    assert_eq!(stage.app.theme.name, "dark");
    stage.app.depth = ColourDepth::None;
    stage.line("/theme light");
    stage.shows("This terminal shows no colours");
}

#[test]
fn a_list_of_models_orders_the_chosen_one() {
    let mut stage = Stage::new();
    stage.line("/model");
    stage.key("down");
    assert_eq!(stage.key("enter"), "model claude-y");
}

#[test]
fn a_backend_without_a_list_of_models_takes_any_name() {
    let mut stage = Stage::new();
    let mut status = runtime_status();
    status.models.clear();
    stage.tell(TuiEvent::StatusChanged { status });
    assert_eq!(stage.line("/model"), "");
    stage.shows("/model NAME takes any name");
    assert_eq!(stage.line("/model my-own"), "model my-own");
}

#[test]
fn the_history_shows_the_last_prompts_as_they_were_typed() {
    let mut stage = Stage::new();
    let asked = ["first", "1. is `a_b_c` *really* <b>it</b> | [x](y)?", "third"];
    for prompt in asked {
        stage.line(prompt);
        stage.begin(prompt);
        stage.end();
    }
    stage.line("/history 2");
    stage.shows("• 1. is `a_b_c` *really* <b>it</b> | [x](y)?\n• third");
    stage.lacks("• first");
    stage.line("/history 1");
    stage.lacks("• /history");
}

#[test]
fn a_selected_cell_is_copied_by_its_key_only_and_until_the_selection_goes_away() {
    for leave in ["esc", "a prompt"] {
        let mut stage = Stage::in_a_turn();
        stage.start_tool("1", "bash");
        stage.end_tool("1", "bash");
        stage.text("It is done.");
        stage.end();
        stage.screen();
        stage.key("alt+k");
        let copied = stage.key("alt+c");
        assert!(copied.starts_with("copy ") && copied.contains("done"), "{copied}");
        assert_ne!(copied, "copy It is done.");
        assert_eq!(stage.line("/copy"), "copy It is done.", "the command is about the answer");
        if leave == "esc" {
            assert_eq!(stage.key("esc"), "");
        } else {
            stage.line(leave);
        }
        assert_eq!(stage.key("alt+c"), "copy It is done.", "after {leave}");
    }
}

#[test]
fn copying_takes_the_last_answer_as_it_was_written() {
    let mut stage = Stage::in_a_turn();
    stage.text("It is **bold**.");
    stage.end();
    assert_eq!(stage.line("/copy"), "copy It is **bold**.");
    assert_eq!(stage.key("alt+c"), "copy It is **bold**.");
    stage.line("more");
    stage.begin("more");
    stage.text("clean\u{1b}]52;c;x\u{7} text");
    stage.end();
    let copied = stage.line("/copy");
    assert!(!copied.contains(['\u{1b}', '\u{7}']), "{copied:?}");
}

#[test]
fn orders_to_a_runtime_that_has_ended_come_back_with_a_message() {
    for line in ["hello", "/status", "/compact", "/retry", "/clear", "/resume"] {
        let mut stage = Stage::new();
        stage.tell(TuiEvent::error("no such model table"));
        stage.tell(TuiEvent::RuntimeEnded);
        assert_eq!(stage.line(line), "", "{line}");
        assert_eq!(stage.draft(), line);
        stage.shows("the runtime has ended");
        assert_eq!(stage.activity(), "the runtime has ended · /exit", "{line}");
    }
    let mut stage = Stage::new();
    stage.tell(TuiEvent::RuntimeEnded);
    assert_eq!(stage.key("ctrl+p"), "");
    assert_eq!(stage.line("/exit"), "quit");
}
