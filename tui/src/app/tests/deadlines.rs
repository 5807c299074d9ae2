//! When the application wants to be woken: never without a reason that can be seen.

use super::*;

fn wakes(stage: &mut Stage, millis: u64) -> usize {
    let until = stage.now + Duration::from_millis(millis);
    let mut count = 0;
    while let Some(deadline) = stage.app.next_deadline(stage.now).filter(|at| *at <= until) {
        stage.now = deadline;
        stage.app.tick(stage.now);
        count += 1;
        assert!(count < 1_000, "the loop would spin");
    }
    stage.now = until;
    count
}

#[test]
fn nothing_wakes_an_idle_application() {
    let mut stage = Stage::new();
    assert_eq!(stage.app.next_deadline(stage.now), None);
    stage.type_text("draft");
    assert_eq!(stage.app.next_deadline(stage.now), None);
    stage.key("ctrl+u");
    stage.line("hello");
    stage.begin("hello");
    stage.end();
    assert_eq!(stage.app.next_deadline(stage.now), None);
}

#[test]
fn a_running_turn_is_drawn_once_a_second() {
    let mut stage = Stage::in_a_turn();
    assert_eq!(wakes(&mut stage, 10_000), 10);
    stage.start_tool("t", "bash");
    assert_eq!(wakes(&mut stage, 10_000), 10);
}

#[test]
fn a_number_that_is_not_shown_wakes_nobody() {
    let mut stage = Stage::in_a_turn();
    let (_, _answer) = stage.ask("ls");
    wakes(&mut stage, 1_000);
    assert_eq!(stage.app.next_deadline(stage.now), None, "a question may wait for hours");
    let mut stage = Stage::in_a_turn();
    stage.key("esc");
    assert_eq!(stage.app.next_deadline(stage.now), None);
}

#[test]
fn a_window_that_is_not_in_front_has_no_counters() {
    let mut stage = Stage::in_a_turn();
    stage.start_tool("t", "bash");
    stage.update(Inbox::Terminal(Event::FocusLost));
    assert_eq!(stage.app.next_deadline(stage.now), None);
    stage.wait(60_000);
    stage.update(Inbox::Terminal(Event::FocusGained));
    assert!(stage.app.next_deadline(stage.now).is_some());
    assert_eq!(stage.activity(), "running bash 60 s · esc stops");
}

#[test]
fn a_hint_and_a_first_ctrl_c_wake_once() {
    let mut stage = Stage::new();
    stage.key("ctrl+o");
    assert_eq!(wakes(&mut stage, 60_000), 1);
    stage.key("ctrl+c");
    assert_eq!(wakes(&mut stage, 60_000), 1);
}

#[test]
fn a_retry_wakes_once_for_every_second_that_is_left() {
    let mut stage = Stage::in_a_turn();
    stage.tell(TuiEvent::Retrying {
        attempt: 1,
        max_attempts: 3,
        wait: Duration::from_millis(2_500),
        reason: "overloaded".into(),
    });
    assert_eq!(wakes(&mut stage, 60_000), 3);
}
