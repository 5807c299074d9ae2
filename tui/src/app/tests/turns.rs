//! Prompts that wait, and how a turn ends.

use super::*;

#[test]
fn a_turn_from_the_first_key_to_the_end() {
    let mut stage = Stage::new();
    stage.line("hello");
    stage.begin("hello");
    stage.text("Hello.\n\nWhat can I do?");
    insta::assert_snapshot!(stage.screen(), @r"
    > hello

    Hello.

    What can I do?
















    ────────────────────────────────────────────────────────────────────────────────
    ❯ Ask for something, or / for commands
     anthropic · workspace-write · claude-x · ctx 0 %        writing 0 s · esc stops
    ");
    stage.end();
    assert_eq!(stage.activity(), "ready");
}

#[test]
fn what_is_typed_during_a_turn_waits_visibly_and_goes_next() {
    let mut stage = Stage::in_a_turn();
    assert_eq!(stage.line("and then this"), "");
    assert_eq!(stage.line("and that"), "");
    insta::assert_snapshot!(stage.screen(), @r"
    > hello

    > and then this
      queued

    > and that
      queued














    ────────────────────────────────────────────────────────────────────────────────
    ❯ Ask for something, or / for commands
     anthropic · workspace-write · claude-x · ctx 0 %        waiting 0 s · esc stops
    ");
    assert_eq!(stage.end(), "submit and then this");
    stage.begin("and then this");
    assert_eq!(stage.end(), "submit and that");
    stage.begin("and that");
    assert_eq!(stage.end(), "");
    let screen = stage.screen();
    assert_eq!(screen.matches("and then this").count(), 1, "{screen}");
}

#[test]
fn after_esc_what_waited_is_in_the_composer_with_the_draft() {
    let mut stage = Stage::in_a_turn();
    stage.line("second");
    stage.line("third");
    stage.type_text("half");
    assert_eq!(stage.key("esc"), "cancel");
    assert_eq!(stage.end_by(TurnStop::Cancelled), "", "nothing is sent by itself");
    assert_eq!(stage.draft(), "second\n\nthird\n\nhalf");
    assert_eq!(stage.app.transcript.queued(), 0);
    assert_eq!(stage.key("enter"), "submit second\n\nthird\n\nhalf");
}

#[test]
fn what_is_written_after_esc_goes_next_and_what_waited_before_does_not() {
    let mut stage = Stage::in_a_turn();
    stage.line("second");
    assert_eq!(stage.key("esc"), "cancel");
    assert_eq!(stage.line("instead"), "");
    assert_eq!(stage.end_by(TurnStop::Cancelled), "submit instead");
    assert_eq!(stage.draft(), "second");
    let screen = stage.screen();
    assert_eq!(screen.matches("> instead").count(), 1, "{screen}");
    stage.begin("instead");
    assert_eq!(stage.end(), "");
    let screen = stage.screen();
    assert_eq!(screen.matches("> instead").count(), 1, "{screen}");
    assert!(!screen.contains("queued"), "{screen}");
}

#[test]
fn an_answer_that_is_asked_for_again_stands_below_the_broken_one() {
    let mut stage = Stage::in_a_turn();
    stage.text("Half");
    stage.tell(TuiEvent::MessageStop { stop_reason: StopReason::Cancelled });
    stage.tell(TuiEvent::info("The answer broke off."));
    stage.text("Whole.");
    stage.end();
    let screen = stage.screen();
    let said: Vec<&str> = screen.lines().filter(|line| !line.is_empty()).take(4).collect();
    assert_eq!(said, ["> hello", "Half", "· The answer broke off.", "Whole."]);
}

fn farewell(stage: &mut Stage) -> String {
    let lines = stage.app.farewell(stage.now, 60);
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_unfinished_on_leaving_says_so() {
    let mut stage = Stage::in_a_turn();
    stage.text("Half an ans");
    stage.line("and then");
    stage.update(Inbox::Signal(Signal::End));
    insta::assert_snapshot!(farewell(&mut stage), @r"
    > hello

    Half an ans
    — interrupted

    ! Not sent any more:

    > and then
      queued
    ");

    let mut stage = Stage::in_a_turn();
    let input = r#"{"command":"rm x"}"#.to_owned();
    stage.tell(TuiEvent::ToolUse { id: "rm x".into(), name: "bash".into(), input });
    let _answer = stage.ask("rm x");
    stage.shows("waits for permission");
    stage.update(Inbox::Signal(Signal::End));
    insta::assert_snapshot!(farewell(&mut stage), @r"
    > hello

    ✗ bash rm x  interrupted
    ");
}

#[test]
fn what_was_finished_on_leaving_has_no_mark() {
    let mut stage = Stage::in_a_turn();
    stage.text("Whole.");
    stage.end();
    insta::assert_snapshot!(farewell(&mut stage), @r"
    > hello

    Whole.
    ");
}

#[test]
fn after_a_failure_what_waited_is_in_the_composer() {
    let mut stage = Stage::in_a_turn();
    stage.line("second");
    assert_eq!(stage.fail(), "");
    assert_eq!(stage.draft(), "second");
    stage.shows("/retry");
    assert_eq!(stage.activity(), "ready");
}

#[test]
fn a_draft_survives_what_comes_back_also_from_within_a_search() {
    let mut stage = Stage::in_a_turn();
    stage.line("second");
    stage.type_text("half");
    stage.key("ctrl+r");
    stage.type_text("hell");
    stage.end_by(TurnStop::Cancelled);
    assert_eq!(stage.draft(), "second\n\nhalf");
}

#[test]
fn a_draft_that_gave_way_to_an_earlier_prompt_can_be_had_back() {
    let mut stage = Stage::in_a_turn();
    stage.line("second");
    stage.type_text("half");
    stage.key("up");
    assert_eq!(stage.draft(), "second");
    stage.end_by(TurnStop::Cancelled);
    assert_eq!(stage.draft(), "second\n\nsecond");
    stage.key("ctrl+u");
    stage.key("up");
    stage.key("up");
    assert_eq!(stage.draft(), "half");
}

#[test]
fn a_runtime_that_ends_in_a_turn_loses_nothing() {
    let mut stage = Stage::in_a_turn();
    stage.line("second");
    let (_, mut answer) = stage.ask("ls");
    stage.tell(TuiEvent::RuntimeEnded);
    assert_eq!(stage.draft(), "second");
    assert!(answer.try_recv().is_err(), "the question is gone");
    assert_eq!(stage.activity(), "the runtime has ended · /exit");
    assert_eq!(stage.app.next_deadline(stage.now), None);
}

#[test]
fn a_prompt_from_the_command_line_is_sent_at_once() {
    let (_, effects) = App::new(options(Some("do it")));
    assert_eq!(words(&effects), "submit do it");
}

#[test]
fn leaving_cancels_the_turn() {
    assert_eq!(Stage::in_a_turn().update(Inbox::Signal(Signal::End)), "cancel; quit");
    assert_eq!(Stage::new().update(Inbox::Signal(Signal::End)), "quit");
}

#[test]
fn the_cancel_effect_stops_the_turn_that_was_sent() {
    let mut stage = Stage::new();
    stage.type_text("hello");
    let sent = stage.app.update(stage.now, Inbox::Terminal(Event::Key(key("enter"))));
    let stopped = stage.app.update(stage.now, Inbox::Terminal(Event::Key(key("esc"))));
    let [Effect::Send(Command::Submit { cancel: sent, .. })] = sent.as_slice() else {
        panic!("{sent:?}");
    };
    let [Effect::Cancel(stop)] = stopped.as_slice() else { panic!("{stopped:?}") };
    stop.cancel();
    assert!(sent.is_cancelled());
}
