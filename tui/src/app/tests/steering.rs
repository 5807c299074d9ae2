//! Prompts that are given while a turn runs, with a backend that takes them during it.

use claw_runtime::api::SteerError;

use super::*;

/// In the middle of a turn of a backend that takes prompts during it.
fn steerable() -> Stage {
    let mut stage = Stage::new();
    let status = RuntimeStatus { steering: true, ..runtime_status() };
    stage.tell(TuiEvent::StatusChanged { status });
    assert_eq!(stage.line("hello"), "submit hello");
    stage.begin("hello");
    stage.text("On it.");
    stage
}

impl Stage {
    fn steered(&mut self, input: &str, outcome: Result<(), SteerError>) -> String {
        self.tell(TuiEvent::Steered { input: input.to_owned(), outcome })
    }

    /// The conversation without what is below it.
    fn conversation(&mut self) -> String {
        let screen = self.screen();
        screen.split("──").next().unwrap_or_default().trim().to_owned()
    }
}

fn refused() -> Result<(), SteerError> {
    Err(SteerError::Refused("a dialog is open".to_owned()))
}

#[test]
fn enter_sends_into_the_turn_and_the_prompt_stands_where_it_was_taken() {
    let mut stage = steerable();
    assert_eq!(stage.line("and this"), "steer and this");
    assert!(stage.draft().is_empty());
    insta::assert_snapshot!(stage.conversation(), @r"
    > hello

    On it.

    > and this
      on its way into this turn
    ");
    stage.start_tool("1", "Bash");
    assert_eq!(stage.steered("and this", Ok(())), "");
    stage.end_tool("1", "Bash");
    stage.text("Both done.");
    insta::assert_snapshot!(stage.conversation(), @r"
    > hello

    On it.

    ✓ Bash  1 line · 1.0s

    > and this
      said into this turn

    Both done.
    ");
    assert_eq!(stage.end(), "", "it is not sent again");
}

#[test]
fn a_prompt_that_was_refused_goes_after_the_turn() {
    let mut stage = steerable();
    stage.line("and this");
    assert_eq!(stage.steered("and this", refused()), "");
    stage.shows("> and this\n  queued");
    stage.shows("it goes after this turn: a dialog is open");
    assert_eq!(stage.end(), "submit and this");
}

#[test]
fn a_prompt_that_was_refused_after_the_end_of_the_turn_goes_at_once() {
    let mut stage = steerable();
    stage.line("and this");
    stage.key("x");
    stage.key("tab");
    assert_eq!(stage.end(), "", "nothing overtakes what is on its way");
    assert_eq!(stage.steered("and this", refused()), "submit and this");
    stage.begin("and this");
    assert_eq!(stage.end(), "submit x");
}

#[test]
fn an_uncertain_prompt_says_so_and_is_never_sent_again() {
    let mut stage = steerable();
    stage.line("and this");
    assert_eq!(stage.steered("and this", Err(SteerError::Uncertain)), "");
    stage.shows("> and this\n  not certain to have arrived; it is not sent again");
    stage.shows("It is not certain whether the message above was taken");
    assert_eq!(stage.end(), "");
    assert_eq!(stage.line("next"), "submit next");
}

#[test]
fn tab_keeps_a_prompt_for_the_end_of_the_turn() {
    let mut stage = steerable();
    stage.type_text("later");
    assert_eq!(stage.key("tab"), "");
    stage.shows("> later\n  queued");
    assert_eq!(stage.line("now"), "steer now");
    assert_eq!(stage.steered("now", Ok(())), "");
    let screen = stage.conversation();
    assert!(screen.find("> now") < screen.find("> later"), "{screen}");
    assert_eq!(stage.end(), "submit later");
}

#[test]
fn tab_is_no_key_of_an_empty_draft_and_commands_are_not_kept_for_later() {
    let mut stage = steerable();
    assert_eq!(stage.key("tab"), "");
    stage.type_text("/cost x");
    assert_eq!(stage.key("tab"), "");
    assert_eq!(stage.draft(), "/cost x");
    assert_eq!(stage.app.transcript.queued(), 0);
}

#[test]
fn without_such_a_backend_enter_queues_as_ever() {
    let mut stage = Stage::in_a_turn();
    assert_eq!(stage.line("second"), "");
    assert_eq!(stage.end(), "submit second");
}

#[test]
fn after_esc_what_was_refused_is_in_the_composer_and_what_was_taken_is_not() {
    let mut stage = steerable();
    stage.line("one");
    stage.line("two");
    assert_eq!(stage.key("esc"), "cancel");
    assert_eq!(stage.steered("one", Ok(())), "");
    assert_eq!(stage.end_by(TurnStop::Cancelled), "");
    assert_eq!(stage.draft(), "", "two is still on its way");
    assert_eq!(stage.steered("two", refused()), "");
    assert_eq!(stage.draft(), "two");
    assert_eq!(stage.app.transcript.queued(), 0);
}

#[test]
fn the_end_of_the_runtime_leaves_no_prompt_on_its_way() {
    let mut stage = steerable();
    stage.line("one");
    stage.tell(TuiEvent::RuntimeEnded);
    stage.shows("> one\n  not certain to have arrived");
    assert_eq!(stage.app.transcript.queued(), 0);
}

#[test]
fn a_compaction_takes_no_prompts() {
    let mut stage = Stage::new();
    let status = RuntimeStatus { steering: true, ..runtime_status() };
    stage.tell(TuiEvent::StatusChanged { status });
    assert_eq!(stage.line("/compact"), "compact");
    assert_eq!(stage.line("after it"), "");
    stage.shows("> after it\n  queued");
}

#[test]
fn a_turn_that_nobody_asked_for_ends_and_a_prompt_goes_as_ever() {
    let mut stage = Stage::new();
    stage.text("The task in the background has ended.");
    assert_eq!(stage.activity(), "the backend goes on by itself · esc stops");
    assert_eq!(stage.key("esc"), "stop unasked");
    assert_eq!(stage.line("/stop"), "stop unasked");
    let summary = summary(TurnStop::Finished(StopReason::EndTurn));
    stage.tell(TuiEvent::UnaskedTurnEnded { summary });
    stage.shows("The task in the background has ended.");
    assert_eq!(stage.activity(), "ready");
    assert_eq!(stage.line("thanks"), "submit thanks");
}
