//! The status line says what is going on, and what can be done about it.

use claw_runtime::CompactionCause;
use claw_runtime::hooks::HookEvent;
use claw_runtime::session::SessionFork;

use super::*;

#[test]
fn every_activity_has_its_words() {
    let mut stage = Stage::before_the_runtime();
    assert_eq!(stage.activity(), "starting");
    stage.tell(TuiEvent::StatusChanged { status: runtime_status() });
    assert_eq!(stage.activity(), "ready");
    stage.line("go");
    assert_eq!(stage.activity(), "waiting 0 s · esc stops", "from the key on");
    stage.begin("go");
    stage.wait(3_500);
    assert_eq!(stage.activity(), "waiting 3 s · esc stops");
    stage.tell(TuiEvent::ThinkingStarted);
    assert_eq!(stage.activity(), "thinking 0 s · esc stops");
    stage.tell(TuiEvent::ThinkingEnded { char_count: 1, redacted: false });
    assert_eq!(stage.activity(), "waiting 0 s · esc stops");
    stage.text("word");
    assert_eq!(stage.activity(), "writing 0 s · esc stops");
    stage.tell(TuiEvent::ToolUseStarted { id: "t".into(), name: "bash".into() });
    assert_eq!(stage.activity(), "preparing bash 0 s · esc stops");
    let hook = |event, command: &str| (event, "bash".to_owned(), command.to_owned());
    let (event, tool_name, command) = hook(HookEvent::PreToolUse, "./check.sh");
    stage.tell(TuiEvent::HookStarted { event, tool_name, command });
    assert_eq!(stage.activity(), "hook ./check.sh 0 s · esc stops");
    let (event, tool_name, command) = hook(HookEvent::PreToolUse, "./check.sh");
    stage.tell(TuiEvent::HookCompleted { event, tool_name, command });
    assert_eq!(stage.activity(), "waiting 0 s · esc stops");
    let (id, _answer) = stage.ask("ls");
    assert_eq!(stage.activity(), "waiting for your permission");
    let reason = claw_runtime::permissions::RetiredReason::Answered;
    stage.tell(TuiEvent::PermissionRetired { id, reason });
    assert_eq!(stage.activity(), "waiting 0 s · esc stops");
    stage.start_tool("t", "bash");
    stage.wait(2_000);
    assert_eq!(stage.activity(), "running bash 2 s · esc stops");
    stage.end_tool("t", "bash");
    assert_eq!(stage.activity(), "waiting 0 s · esc stops");
    stage.key("esc");
    assert_eq!(stage.activity(), "stopping");
    stage.end_by(TurnStop::Cancelled);
    assert_eq!(stage.activity(), "ready");
    stage.tell(TuiEvent::RuntimeEnded);
    assert_eq!(stage.activity(), "the runtime has ended · /exit");
}

#[test]
fn tools_that_run_side_by_side_are_counted_until_the_last_has_ended() {
    let mut stage = Stage::in_a_turn();
    stage.start_tool("a", "bash");
    stage.wait(2_000);
    stage.start_tool("b", "grep");
    assert_eq!(stage.activity(), "running grep +1 0 s · esc stops");
    stage.wait(1_000);
    stage.end_tool("b", "grep");
    assert_eq!(stage.activity(), "running bash 3 s · esc stops", "each has its own time");
    stage.end_tool("a", "bash");
    assert_eq!(stage.activity(), "waiting 0 s · esc stops");
}

#[test]
fn a_retry_says_which_one_when_and_why() {
    let mut stage = Stage::in_a_turn();
    stage.tell(TuiEvent::Retrying {
        attempt: 2,
        max_attempts: 10,
        wait: Duration::from_millis(3_500),
        reason: "overloaded".into(),
    });
    assert_eq!(stage.activity(), "retry 2/10 in 4 s: overloaded · esc stops");
    stage.wait(500);
    assert_eq!(stage.activity(), "retry 2/10 in 3 s: overloaded · esc stops");
    stage.wait(2_900);
    assert_eq!(stage.activity(), "retry 2/10 in 1 s: overloaded · esc stops");
    stage.wait(100);
    assert_eq!(stage.activity(), "retry 2/10 now: overloaded · esc stops");
    stage.text("word");
    assert_eq!(stage.activity(), "writing 0 s · esc stops");
}

#[test]
fn a_long_reason_leaves_room_for_what_can_be_done() {
    let mut stage = Stage::in_a_turn();
    stage.tell(TuiEvent::Retrying {
        attempt: 1,
        max_attempts: 3,
        wait: Duration::from_secs(1),
        reason: "because\n".repeat(40),
    });
    let status = stage.status();
    assert!(status.ends_with("· esc stops"), "{status}");
}

#[test]
fn silence_is_told_until_something_comes_or_nothing_is_said_of_it_any_more() {
    let mut stage = Stage::in_a_turn();
    stage.wait(12_000);
    for seconds in [10, 11, 12] {
        stage.tell(TuiEvent::Stalled { silent_for: Duration::from_secs(seconds) });
        assert_eq!(stage.activity(), format!("no data for {seconds} s · esc stops"));
        stage.wait(1_000);
    }
    stage.text("word");
    assert_eq!(stage.activity(), "writing 0 s · esc stops");

    // The input of a call comes without events.
    stage.tell(TuiEvent::ToolUseStarted { id: "t".into(), name: "write_file".into() });
    stage.tell(TuiEvent::Stalled { silent_for: Duration::from_secs(5) });
    assert_eq!(stage.activity(), "no data for 5 s · esc stops");
    stage.wait(3_000);
    assert_eq!(stage.activity(), "preparing write_file 3 s · esc stops");
}

#[test]
fn what_arrives_while_stopping_is_no_progress() {
    let mut stage = Stage::in_a_turn();
    stage.key("esc");
    stage.text("late");
    stage.start_tool("t", "bash");
    stage.tell(TuiEvent::Stalled { silent_for: Duration::from_secs(10) });
    stage.tell(TuiEvent::Retrying {
        attempt: 1,
        max_attempts: 3,
        wait: Duration::from_secs(1),
        reason: "overloaded".into(),
    });
    assert_eq!(stage.activity(), "stopping");
}

#[test]
fn compacting_is_shown_alone_and_within_a_turn() {
    let compacted = |cause| TuiEvent::Compacted {
        cause,
        removed: 4,
        before_tokens: 10,
        after_tokens: 5,
        original: None,
    };
    let mut stage = Stage::new();
    stage.line("/compact");
    let cause = CompactionCause::Requested;
    stage.tell(TuiEvent::Compacting { cause, round: 1, max_rounds: 1 });
    assert_eq!(stage.activity(), "compacting");
    stage.tell(compacted(cause));
    assert_eq!(stage.activity(), "ready");

    let mut stage = Stage::in_a_turn();
    let cause = CompactionCause::Automatic;
    stage.tell(TuiEvent::Compacting { cause, round: 1, max_rounds: 1 });
    assert_eq!(stage.activity(), "compacting");
    assert_eq!(stage.tell(compacted(cause)), "", "the turn goes on");
    assert_eq!(stage.activity(), "waiting 0 s · esc stops");
}

#[test]
fn facts_change_with_every_usage_update() {
    let mut stage = Stage::in_a_turn();
    let mut status = |report| {
        stage.tell(TuiEvent::UsageUpdate { usage: TokenUsage::default(), report });
        stage.status()
    };
    assert_eq!(
        status(usage(50_000, Some(0.126))),
        "anthropic · workspace-write · claude-x · ctx 25 %       waiting 0 s · esc stops"
    );
    let mut stage = Stage::new().sized(120, 24);
    let mut facts = |report| {
        stage.tell(TuiEvent::UsageUpdate { usage: TokenUsage::default(), report });
        stage.status().split("  ").next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        facts(usage(50_000, Some(0.126))),
        "anthropic · workspace-write · claude-x · ctx 50.0k (25 %) · $0.13"
    );
    assert_eq!(
        facts(usage(100_000, None)),
        "anthropic · workspace-write · claude-x · ctx 100.0k (50 %) · cost unknown"
    );
    let unknown = UsageReport { context_window: None, ..usage(999, Some(1.0)) };
    assert_eq!(facts(unknown), "anthropic · workspace-write · claude-x · ctx 999 · $1.00");
}

#[test]
fn the_demo_says_that_it_is_one() {
    let mut stage = Stage::new();
    let mut status = runtime_status();
    status.backend = "demo".to_owned();
    status.usage = usage(1_400, None);
    stage.tell(TuiEvent::StatusChanged { status });
    let facts = stage.status();
    assert!(facts.starts_with("demo (scripted) · workspace-write · ctx 1.4k (0 %)  "), "{facts}");
}

/// A fork, so that every fact is there.
fn full() -> RuntimeStatus {
    RuntimeStatus {
        fork: Some(SessionFork {
            parent_session_id: "s-0".to_owned(),
            branch_name: Some("try-it".to_owned()),
        }),
        usage: usage(50_000, Some(0.5)),
        ..runtime_status()
    }
}

#[test]
fn what_is_least_needed_goes_first_when_it_is_narrow() {
    let mut seen: Vec<String> = Vec::new();
    for width in (10..=120).rev() {
        let mut stage = Stage::new().sized(width, 10);
        stage.tell(TuiEvent::StatusChanged { status: full() });
        let status = stage.status().split_whitespace().collect::<Vec<_>>().join(" ");
        if seen.last() != Some(&status) {
            seen.push(status);
        }
    }
    insta::assert_snapshot!(seen.join("\n"), @r"
    anthropic · workspace-write · claude-x · ⎇ try-it · ctx 50.0k (25 %) · $0.50 ready
    anthropic · workspace-write · claude-x · ⎇ try-it · ctx 25 % · $0.50 ready
    anthropic · workspace-write · claude-x · ⎇ try-it · ctx 25 % ready
    anthropic · workspace-write · claude-x · ⎇ try-it ready
    anthropic · workspace-write · ⎇ try-it ready
    anthropic · workspace-write ready
    anthropic ready
    ready
    ");
}

#[test]
fn a_branch_is_named_and_a_fork_without_a_name_is_one_too() {
    let mut stage = Stage::new().sized(120, 24);
    stage.tell(TuiEvent::StatusChanged { status: full() });
    stage.shows("⎇ try-it");
    let mut status = full();
    status.fork = Some(SessionFork { parent_session_id: "s-0".to_owned(), branch_name: None });
    stage.tell(TuiEvent::StatusChanged { status });
    stage.shows("⎇ fork");
}

#[test]
fn the_branch_of_a_fork_is_named_at_eighty_columns_also_while_a_turn_runs() {
    let mut stage = Stage::in_a_turn();
    let fork = |name: &str| {
        Some(SessionFork {
            parent_session_id: "s-0".to_owned(),
            branch_name: Some(name.to_owned()),
        })
    };
    let mut status = RuntimeStatus {
        model: "claude-sonnet-4-5-20250929".to_owned(),
        fork: fork("try-it"),
        ..full()
    };
    stage.tell(TuiEvent::StatusChanged { status: status.clone() });
    stage.shows("⎇ try-it");
    status.fork = fork(&"very-".repeat(20));
    stage.tell(TuiEvent::StatusChanged { status });
    stage.shows("⎇ very-very-");
}

#[test]
fn a_hint_about_the_turn_goes_with_the_turn() {
    let mut stage = Stage::in_a_turn();
    stage.key("ctrl+p");
    assert_eq!(stage.activity(), "the backend changes after this turn");
    stage.end();
    assert_eq!(stage.activity(), "ready");
    stage.shows("claude-x · ctx");
}

#[test]
fn the_hint_of_a_first_ctrl_c_says_what_the_second_one_does_by_then() {
    let mut stage = Stage::in_a_turn();
    stage.key("ctrl+c");
    stage.end_by(TurnStop::Cancelled);
    assert_eq!(stage.activity(), "Ctrl+C again leaves");
    assert_eq!(stage.key("ctrl+c"), "quit");

    let mut stage = Stage::in_a_turn();
    stage.line("queued");
    stage.key("ctrl+c");
    stage.end_by(TurnStop::Cancelled);
    assert_eq!(stage.activity(), "ready", "the key would put the draft aside");
}

#[test]
fn names_from_outside_are_cleaned() {
    let mut stage = Stage::in_a_turn();
    let mut status = runtime_status();
    status.model = "claude\u{1b}]0;x\u{7}\u{202e}evil".to_owned();
    stage.tell(TuiEvent::StatusChanged { status });
    stage.start_tool("t", "ba\u{1b}[31msh\u{202e}");
    let status = stage.status();
    assert!(!status.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{status:?}");
}
