//! How a turn looks, how it ends, and what is said around it.

use super::*;

#[test]
fn a_turn_is_a_prompt_a_line_of_thinking_and_an_answer() {
    let mut stage = Stage::new();
    stage.transcript.push_user("Why?", false);
    stage.apply(&TuiEvent::TurnStarted { input: "Why?".into(), retry: false });
    stage.apply(&TuiEvent::ThinkingDelta { text: "Hm.".into() });
    stage.apply(&TuiEvent::ThinkingEnded { char_count: 3, redacted: false });
    stage.text("Because **it is**.\n\nReally.");
    stage.end(TurnStop::Finished(StopReason::EndTurn));
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    > Why?

    ▸ Thinking (3 chars)

    Because it is.

    Really.
    ");
}

#[test]
fn text_is_visible_while_it_streams_and_the_same_when_it_ended() {
    let mut stage = Stage::new();
    for delta in ["One", " par", "agraph.\n", "\nAno", "ther **bo", "ld** one.\n\n", "- item\n"] {
        stage.text(delta);
    }
    let streamed = stage.screen(80, 24);
    insta::assert_snapshot!(streamed, @r"
    One paragraph.

    Another bold one.

    • item
    ");
    stage.apply(&TuiEvent::MessageStop { stop_reason: StopReason::EndTurn });
    stage.end(TurnStop::Finished(StopReason::EndTurn));
    assert_eq!(stage.screen(80, 24), streamed, "shown once, with its paragraphs");
}

#[test]
fn thinking_is_live_then_one_line_and_opens_by_key() {
    let mut stage = Stage::new();
    stage.apply(&TuiEvent::ThinkingStarted);
    stage.apply(&TuiEvent::ThinkingDelta { text: "one\ntwo\nthree\nfour\nfi".into() });
    stage.apply(&TuiEvent::ThinkingDelta { text: "ve".into() });
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    ▸ Thinking…
      two
      three
      four
      five
    ");
    stage.apply(&TuiEvent::ThinkingEnded { char_count: 23, redacted: false });
    assert_eq!(stage.screen(80, 24), "▸ Thinking (23 chars)");
    assert!(stage.transcript.toggle_all_thinking());
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    ▾ Thinking (23 chars)
      one
      two
      three
      four
      five
    ");
    assert!(!stage.transcript.toggle_all_thinking());
    assert_eq!(stage.screen(80, 24), "▸ Thinking (23 chars)");
    assert!(stage.transcript.toggle_at(3, 0), "a click opens it");
    assert!(stage.screen(80, 24).contains("three"));
}

#[test]
fn redacted_thinking_says_who_hides_it() {
    let mut stage = Stage::new();
    stage.apply(&TuiEvent::ThinkingStarted);
    stage.apply(&TuiEvent::ThinkingEnded { char_count: 0, redacted: true });
    assert_eq!(stage.screen(80, 5), "▸ Thinking (hidden by the provider)");
    assert!(!stage.transcript.focus_prev(), "there is nothing to open");
}
#[test]
fn blank_text_between_tools_takes_no_room() {
    let mut stage = Stage::new();
    for id in ["1", "2"] {
        stage.text("\n\n");
        stage.use_tool(id, "bash", r#"{"command":"ls"}"#);
    }
    assert_eq!(stage.screen(80, 9), "○ bash ls\n○ bash ls");
}
#[test]
fn what_was_stopped_is_kept_and_marked() {
    let mut stage = Stage::new();
    stage.text("Half an ans");
    stage.end(TurnStop::Cancelled);
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    Half an ans
    — interrupted
    ");

    let mut stage = Stage::new();
    stage.start_tool("1", "bash", r#"{"command":"sleep 9"}"#);
    stage.end(TurnStop::Cancelled);
    assert_eq!(stage.screen(80, 9), "✗ bash sleep 9  interrupted");

    let mut stage = Stage::new();
    stage.end(TurnStop::Cancelled);
    assert_eq!(stage.screen(80, 9), "! Interrupted");
}

#[test]
fn a_cut_stream_is_marked_with_its_reason_and_the_way_on() {
    let mut stage = Stage::new();
    stage.text("Half an ans");
    stage.apply(&TuiEvent::ToolUseIncomplete { id: "1".into(), name: "bash".into() });
    stage.text("More");
    let partial = AssistantTurn { messages: vec![], stop_reason: StopReason::EndTurn };
    let error = RuntimeError::Api(ApiError::StreamCut {
        cause: CutCause::ConnectionClosed,
        partial: Box::new(partial),
    });
    stage.apply(&TuiEvent::TurnFailed { error: error.into(), summary: summary(TurnStop::Failed) });
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    Half an ans

    ✗ bash  cut off inside the call; it was not run

    More
    — cut off: the connection closed before the end of the message; /retry sends it
    again
    ");
}

#[test]
fn a_cut_without_a_text_to_carry_it_has_one_mark() {
    let mut stage = Stage::new();
    let partial = AssistantTurn { messages: vec![], stop_reason: StopReason::EndTurn };
    let error = RuntimeError::Api(ApiError::StreamCut {
        cause: CutCause::ConnectionClosed,
        partial: Box::new(partial),
    });
    stage.apply(&TuiEvent::TurnFailed { error: error.into(), summary: summary(TurnStop::Failed) });
    insta::assert_snapshot!(stage.screen(100, 9), @"✗ Cut off: the connection closed before the end of the message; /retry sends it again");
}

#[test]
fn a_message_without_content_is_shown_as_one() {
    let stop = TuiEvent::MessageStop { stop_reason: StopReason::EndTurn };
    for text in [None, Some("\n\n")] {
        let mut stage = Stage::new();
        stage.apply(&TuiEvent::TurnStarted { input: "Why?".into(), retry: false });
        stage.use_tool("1", "bash", r#"{"command":"ls"}"#);
        stage.apply(&TuiEvent::MessageStop { stop_reason: StopReason::ToolUse });
        stage.result("1", "bash", r#"{"command":"ls"}"#, outcome("", None), false);
        if let Some(text) = text {
            stage.text(text);
        }
        stage.apply(&stop);
        stage.end(TurnStop::Finished(StopReason::EndTurn));
        assert_eq!(stage.screen(80, 9), "> Why?\n\n✓ bash ls  1.2s\n\n(empty answer)");
    }
    let mut stage = Stage::new();
    stage.text("Something.");
    stage.apply(&stop);
    stage.end(TurnStop::Finished(StopReason::EndTurn));
    assert_eq!(stage.screen(80, 9), "Something.");
}

#[test]
fn the_kept_original_is_named_in_one_piece() {
    let id = "0197-4f2c";
    let kept = format!("/home/someone/project/.claw/sessions/{id}.blobs/before-compaction-1.jsonl");
    let mut stage = Stage::new();
    stage.apply(&TuiEvent::Compacted {
        cause: CompactionCause::Requested,
        removed: 42,
        before_tokens: 120_000,
        after_tokens: 9_500,
        original: Some(kept.into()),
    });
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ─ Compacted: 42 messages became a summary, about 120,000 tokens are now 9,500.
      The original is kept in
      .claw/sessions/0197-4f2c.blobs/before-compaction-1.jsonl
    ");
    let narrow = stage.screen(40, 9);
    let last = narrow.lines().next_back().unwrap();
    assert!(last.starts_with("  …") && last.ends_with("/before-compaction-1.jsonl"), "{narrow}");
}

#[test]
fn a_failed_turn_says_what_happened_and_what_to_do() {
    let mut stage = Stage::new();
    let error = RuntimeError::Api(ApiError::Server { status: 500, message: "oh\x1b[2J no".into() });
    stage.apply(&TuiEvent::TurnFailed { error: error.into(), summary: summary(TurnStop::Failed) });
    insta::assert_snapshot!(stage.screen(80, 9), @r"
    ✗ the provider failed (500): oh no
      The conversation is kept; /retry sends it again.
    ");
}

#[test]
fn limits_and_refusals_are_said() {
    for (stop, words) in [
        (TurnStop::Finished(StopReason::MaxTokens), "output limit"),
        (TurnStop::Finished(StopReason::Refusal), "refused"),
        (TurnStop::Finished(StopReason::Other("odd\x07".into())), "odd"),
        (TurnStop::IterationLimit(50), "50 rounds"),
    ] {
        let mut stage = Stage::new();
        stage.end(stop);
        let screen = stage.screen(80, 9);
        assert!(screen.contains(words), "{screen}");
    }
    let mut stage = Stage::new();
    stage.end(TurnStop::Finished(StopReason::EndTurn));
    assert!(stage.transcript.is_empty());
}

#[test]
fn a_compaction_that_only_shortened_says_so() {
    let mut stage = Stage::new();
    stage.apply(&TuiEvent::Compacted {
        cause: CompactionCause::Requested,
        removed: 0,
        before_tokens: 120_000,
        after_tokens: 9_500,
        original: Some(".claw/sessions/a.before.jsonl".into()),
    });
    let screen = stage.screen(100, 4);
    let expected = "Compacted: long tool texts were shortened, about 120,000 tokens are now 9,500";
    assert!(screen.contains(expected), "{screen}");
}

#[test]
fn a_compaction_of_the_backends_own_context_tells_both_numbers_and_no_summary() {
    let mut stage = Stage::new();
    stage.apply(&TuiEvent::Compacted {
        cause: CompactionCause::Automatic,
        removed: 0,
        before_tokens: 90_000,
        after_tokens: 7_000,
        original: None,
    });
    let screen = stage.screen(100, 4);
    let expected = "Compacted (the context was getting full): about 90,000 tokens are now 7,000";
    assert!(screen.contains(expected), "{screen}");
    stage.apply(&TuiEvent::CompactionFailed { error: None });
    assert!(stage.screen(100, 6).contains("The compaction was stopped."));
}

#[test]
fn compaction_replies_and_notices_are_cells() {
    let mut stage = Stage::new();
    for removed in [0, 42] {
        stage.apply(&TuiEvent::Compacted {
            cause: CompactionCause::Automatic,
            removed,
            before_tokens: 120_000,
            after_tokens: if removed == 0 { 120_000 } else { 9_500 },
            original: None,
        });
    }
    stage.apply(&TuiEvent::Reply {
        title: "Cost".into(),
        markdown: "| a | b |\n|-|-|\n|1|2|".into(),
    });
    stage.apply(&TuiEvent::warning("look out"));
    stage.apply(&TuiEvent::Exported { path: "notes.md".into() });
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    ─ Nothing to compact: the context has about 120,000 tokens

    ─ Compacted (the context was getting full): 42 messages became a summary, about
      120,000 tokens are now 9,500

    Cost
    a │ b
    ──┼──
    1 │ 2

    ! look out

    · Conversation written to notes.md
    ");
}
#[test]
fn queued_prompts_wait_at_the_end_and_are_delivered_in_order() {
    let mut stage = Stage::new();
    stage.transcript.push_user("first", false);
    stage.apply(&TuiEvent::TurnStarted { input: "first".into(), retry: false });
    stage.text("Answ");
    stage.transcript.push_user("second", true);
    stage.transcript.push_user("third", true);
    stage.text("er.");
    stage.use_tool("1", "bash", r#"{"command":"ls"}"#);
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    > first

    Answer.

    ○ bash ls

    > second
      queued

    > third
      queued
    ");
    stage.end(TurnStop::Finished(StopReason::EndTurn));
    stage.apply(&TuiEvent::TurnStarted { input: "second".into(), retry: false });
    stage.text("Again.");
    assert_eq!(stage.transcript.queued(), 1);
    stage.transcript.take_queued();
    assert_eq!(stage.transcript.queued(), 0);
    insta::assert_snapshot!(stage.screen(80, 24), @r"
    > first

    Answer.

    ✗ bash ls  interrupted

    > second

    Again.
    ");
}

#[test]
fn a_prompt_is_shown_once_also_when_it_is_tried_again() {
    let mut stage = Stage::new();
    stage.apply(&TuiEvent::TurnStarted { input: "from the command line".into(), retry: false });
    stage.apply(&TuiEvent::TurnStarted { input: "from the command line".into(), retry: true });
    assert_eq!(stage.screen(80, 9), "> from the command line");
}

#[test]
fn a_long_prompt_is_folded() {
    let mut stage = Stage::new();
    stage.transcript.push_user(&"x\n".repeat(100), false);
    assert!(stage.screen(80, 60).ends_with("  … 80 more lines"));
    assert!(stage.transcript.focus_prev() && stage.transcript.toggle_focused());
    assert_eq!(stage.screen(80, 120).lines().count(), 100);
}
