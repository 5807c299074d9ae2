//! Tool calls, from their first word to their outcome.

use super::*;

#[test]
fn a_tool_call_is_shown_from_its_first_word_to_its_outcome() {
    let mut stage = Stage::new();
    let input = r#"{"command":"cargo test -p claw-tui"}"#;
    stage.apply(&TuiEvent::ToolUseStarted { id: "1".into(), name: "bash".into() });
    assert_eq!(stage.screen(80, 9), "○ bash  writing its input…");
    stage.apply(&TuiEvent::ToolUse { id: "1".into(), name: "bash".into(), input: input.into() });
    assert_eq!(stage.screen(80, 9), "○ bash cargo test -p claw-tui");
    stage.start_tool("1", "bash", input);
    assert_eq!(stage.screen(80, 9), "● bash cargo test -p claw-tui  running");
    stage.later(3100);
    stage.apply(&TuiEvent::ToolOutput {
        id: "1".into(),
        text: "1\n2\n3\n4\n5\n6\n10%\r50%\r99%".into(),
    });
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ● bash cargo test -p claw-tui  running 3s
      3
      4
      5
      6
      99%
    ");
    stage.apply(&TuiEvent::ToolEnded {
        id: "1".into(),
        is_error: false,
        elapsed: Duration::from_millis(4200),
    });
    stage.result("1", "bash", input, outcome("a\nb\n", Some(command(0))), false);
    assert_eq!(stage.screen(80, 9), "✓ bash cargo test -p claw-tui  exit 0 · 2 lines · 4.2s");
    assert!(stage.transcript.focus_prev() && stage.transcript.toggle_focused());
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ✓ bash cargo test -p claw-tui  exit 0 · 2 lines · 4.2s
      cargo test -p claw-tui
      a
      b
    ");
}

#[test]
fn only_lines_of_the_output_are_counted() {
    let counted = |lines| ToolFacts::Command {
        exit_code: Some(0),
        signal: None,
        timed_out: false,
        cancelled: false,
        omitted_bytes: 0,
        lines: Some(lines),
    };
    let mut stage = Stage::new();
    let silent = outcome("(succeeded without output)", Some(counted(0)));
    stage.result("1", "bash", r#"{"command":"touch x"}"#, silent, false);
    let left = outcome("started\n[a process is still running]", Some(counted(1)));
    stage.result("2", "bash", r#"{"command":"cmd &"}"#, left, false);
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ✓ bash touch x  exit 0 · 1.2s
    ✓ bash cmd &  exit 0 · 1 line · 1.2s
    ");
}

#[test]
fn prose_is_broken_at_words_and_output_where_the_width_ends() {
    let mut stage = Stage::new();
    let reason = "the file was changed since it was read; read it again";
    stage.result("1", "edit_file", "{}", ToolOutcome::error(reason), false);
    let facts = ToolFacts::Command {
        exit_code: None,
        signal: None,
        timed_out: true,
        cancelled: false,
        omitted_bytes: 0,
        lines: Some(2),
    };
    let text = "some output that is wider\n  ^ here\n[timed out; pass a longer timeout]";
    let failed = ToolOutcome { facts: Some(facts), ..ToolOutcome::error(text) };
    stage.result("2", "bash", "{}", failed, false);
    insta::assert_snapshot!(stage.screen(24, 20), @r"
    ✗ edit_file  failed
      the file was changed
      since it was read;
      read it again
    ✗ bash
      timed out · 2 lines
      some output that is wi
      der
        ^ here
      [timed out; pass a
      longer timeout]
    ");
    stage.transcript.set_tool_details(true);
    assert!(stage.screen(24, 20).contains("since it was read;\n"));
}

#[test]
fn the_one_line_form_always_names_the_file() {
    let mut stage = Stage::new();
    let input = r#"{"path":"/home/someone/project/with/a/long/way/down/to/the/file.rs"}"#;
    let facts =
        ToolFacts::Read { path: String::new(), first_line: 1, lines: 200, total_lines: 340 };
    stage.use_tool("1", "read_file", input);
    stage.result("1", "read_file", input, outcome("x", Some(facts)), false);
    let facts = ToolFacts::Matches { matches: 12, files: 3, truncated: true };
    let input = r#"{"pattern":"fn main","path":"src"}"#;
    stage.result("2", "grep_search", input, outcome("x", Some(facts)), false);
    insta::assert_snapshot!(stage.screen(60, 9), @r#"
    ✓ read_file …/down/to/the/file.rs  lines 1-200 of 340 · 1.2s
    ✓ grep_search "fn main" in src
      12 matches in 3 files (there are more) · 1.2s
    "#);
    insta::assert_snapshot!(stage.screen(24, 9), @r#"
    ✓ read_file …the/file.rs
      lines 1-200 of 340 ·
      1.2s
    ✓ grep_search "fn main"…
      12 matches in 3 files
      (there are more) ·
      1.2s
    "#);
}

#[test]
fn diffs_stand_open_up_to_a_bound() {
    let mut stage = Stage::new();
    let facts = |diff: &str| ToolFacts::Diff {
        path: "src/main.rs".into(),
        diff: diff.into(),
        added: 1,
        removed: 1,
        created: false,
    };
    stage.use_tool("1", "edit_file", EDIT);
    let small = facts("@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    stage.result("1", "edit_file", EDIT, outcome("ok", Some(small)), false);
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ✓ edit_file src/main.rs  +1 -1 · 1.2s
      @@ -1,2 +1,2 @@
       a
      -b
      +c
    ");
    let theme = Theme::dark();
    stage.transcript.set_theme(theme.clone());
    let buffer = stage.buffer(80, 9);
    assert_eq!(Some(buffer[(2, 3)].fg), theme.diff_removed.fg);
    assert_eq!(Some(buffer[(2, 4)].fg), theme.diff_added.fg);

    let mut stage = Stage::new();
    let long = facts(&"+new\n".repeat(50));
    stage.result("1", "edit_file", EDIT, outcome("ok", Some(long)), false);
    let screen = stage.screen(80, 60);
    assert_eq!(screen.matches("+new").count(), 20);
    assert!(screen.ends_with("  … 30 more lines"), "{screen}");
    stage.transcript.set_tool_details(true);
    assert_eq!(stage.screen(80, 60).matches("+new").count(), 50);
}

#[test]
fn failures_and_denials_stand_open_with_their_reason() {
    let mut stage = Stage::new();
    let input = r#"{"command":"make"}"#;
    stage.use_tool("1", "bash", input);
    let lines = (1..=14).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    let failed = ToolOutcome { facts: Some(command(2)), ..ToolOutcome::error(lines) };
    stage.result("1", "bash", input, failed, false);
    stage.use_tool("2", "bash", input);
    stage.result("2", "bash", input, ToolOutcome::error("not now, says the person"), true);
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    ✗ bash make  exit 2 · 14 lines
      … 4 lines above
      line 5
      line 6
      line 7
      line 8
      line 9
      line 10
      line 11
      line 12
      line 13
      line 14
    ✗ bash make  denied
      not now, says the person
    ");
}

#[test]
fn a_call_that_waits_for_permission_says_so() {
    let mut stage = Stage::new();
    let input = r#"{"command":"rm x"}"#;
    stage.use_tool("1", "bash", input);
    let request = PermissionRequest { tool_use_id: "1".into(), ..request("bash", input) };
    let id = request.id;
    let (reply, _answer) = PermissionReply::channel();
    stage.apply(&TuiEvent::PermissionRequired { request, reply });
    assert_eq!(stage.screen(80, 5), "? bash rm x  waits for permission");
    stage.apply(&TuiEvent::PermissionRetired { id, reason: RetiredReason::Answered });
    assert_eq!(stage.screen(80, 5), "○ bash rm x");
}

#[test]
fn a_todo_list_is_drawn_as_checkboxes() {
    let item = |content: &str, active_form: &str, status| TodoItem {
        content: content.into(),
        active_form: active_form.into(),
        status,
    };
    let items = vec![
        item("Read the code", "Reading the code", TodoStatus::Completed),
        item("Fix the bug", "Fixing the bug", TodoStatus::InProgress),
        item("Run the tests", "Running the tests", TodoStatus::Pending),
    ];
    let mut stage = Stage::new();
    let facts = Some(ToolFacts::Todo { items });
    stage.result("1", "TodoWrite", "{}", outcome("ok", facts), false);
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ✓ TodoWrite  1 of 3 done · 1.2s
      ☑ Read the code
      ▶ Fixing the bug
      ☐ Run the tests
    ");
}

#[test]
fn running_tools_wake_the_screen_once_a_second_and_nothing_else_does() {
    let mut stage = Stage::new();
    assert_eq!(stage.transcript.next_deadline(stage.now), None);
    stage.use_tool("1", "bash", "{}");
    assert_eq!(stage.transcript.next_deadline(stage.now), None);
    let begun = stage.now;
    stage.start_tool("1", "bash", "{}");
    stage.later(2300);
    assert_eq!(stage.transcript.next_deadline(stage.now), Some(begun + Duration::from_secs(3)));
    assert_eq!(stage.screen(80, 5), "● bash  running 2s");
    stage.later(700);
    assert_eq!(stage.screen(80, 5), "● bash  running 3s");
    stage.result("1", "bash", "{}", outcome("", None), false);
    assert_eq!(stage.transcript.next_deadline(stage.now), None);
}
