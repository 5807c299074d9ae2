//! What a person sees first.

use super::*;

const NOTE: &str =
    "This is a scripted demo, no model answers. Set ANTHROPIC_API_KEY and start again.";

#[test]
fn an_empty_conversation_says_what_answers_and_how_to_begin() {
    let mut stage = Stage::new();
    stage.shows("claude-x answers, through anthropic.");
    stage.shows("Permission mode workspace-write");
    for hint in ["Enter", "Esc stops", "lists the commands", "F1"] {
        stage.shows(hint);
    }
}

#[test]
fn before_the_runtime_is_ready_there_are_keys_but_no_promises() {
    let mut stage = Stage::before_the_runtime();
    stage.shows("Enter");
    stage.lacks("answers");
}

#[test]
fn the_demo_says_that_nothing_real_answers_and_how_to_change_that() {
    let mut stage = Stage::new();
    let mut status = runtime_status();
    status.backend = "demo".to_owned();
    status.backend_note = Some(NOTE.to_owned());
    stage.tell(TuiEvent::StatusChanged { status });
    stage.shows("scripted demo, no model answers");
    stage.shows("ANTHROPIC_API_KEY");
    stage.shows("demo (scripted)");
    stage.lacks("answers, through");
}

#[test]
fn the_welcome_goes_with_the_first_prompt_and_comes_with_a_fresh_session() {
    let mut stage = Stage::new();
    stage.line("hello");
    stage.lacks("lists the commands");
    stage.begin("hello");
    stage.end();
    stage.tell(opened("s-2", &[], &[]));
    stage.shows("lists the commands");
}

#[test]
fn a_warning_at_the_start_stands_below_the_welcome() {
    let mut stage = Stage::new();
    stage.tell(TuiEvent::warning("settings.json has an unknown key"));
    stage.shows("claude-x answers");
    stage.shows("settings.json has an unknown key");
    // Of many the newest are shown.
    for n in 0..20 {
        stage.tell(TuiEvent::warning(format!("warning {n}")));
    }
    stage.shows("warning 19");
    let mut small = Stage::new().sized(80, 10);
    small.tell(TuiEvent::warning("settings.json has an unknown key"));
    small.shows("settings.json has an unknown key");
    small.lacks("claude-x answers");
}

#[test]
fn help_has_the_whole_screen() {
    let mut stage = Stage::new();
    stage.line("/help");
    stage.lacks("claude-x answers");
}

#[test]
fn a_note_from_outside_is_cleaned() {
    let mut stage = Stage::new();
    let mut status = runtime_status();
    status.backend_note = Some("note\u{1b}[31m\u{202e}\u{7}".to_owned());
    stage.tell(TuiEvent::StatusChanged { status });
    assert!(!stage.screen().contains(['\u{1b}', '\u{202e}', '\u{7}']));
}
