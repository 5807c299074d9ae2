//! Stories that no capture has: facts by hand, one rule each.

use std::time::Duration;

use claw_runtime::api::StopReason;
use claw_runtime::session::{ContentBlock, ConversationMessage, PartialReason};

use super::support::{Notebook, answer, completed, outline, story, told};
use crate::fact::{AgentEnd, DeniedBy, Fact, FailureKind, PromptSource, Quota};
use crate::story::Ending;

fn block(message: &str, content: ContentBlock) -> Fact {
    Fact::Block {
        message: message.to_owned(),
        block: None,
        content,
        model: Some("claude-opus-5-5".to_owned()),
        usage: None,
        stop_reason: None,
        aborted: false,
    }
}

fn text(message: &str, text: &str) -> Fact {
    block(message, ContentBlock::Text { text: text.to_owned() })
}

fn call(message: &str, id: &str) -> Fact {
    let (id, input) = (id.to_owned(), "{\"command\":\"ls\"}".to_owned());
    block(message, ContentBlock::ToolUse { id, name: "Bash".to_owned(), input })
}

fn result(id: &str, output: &str) -> Fact {
    let (id, output) = (id.to_owned(), output.to_owned());
    Fact::ToolResult { id, output, is_error: false, facts: None, denied: None }
}

fn lines(display: &str, text: &str) -> Fact {
    let (display, text) = (display.to_owned(), text.to_owned());
    Fact::Lines { display, index: 0, text, last: false }
}

fn delta(message: &str, text: &str) -> Fact {
    Fact::TextDelta { message: message.to_owned(), block: 0, text: text.to_owned() }
}

fn texts(messages: &[ConversationMessage]) -> Vec<String> {
    messages.iter().map(ConversationMessage::text).collect()
}

fn prompt(text: &str, source: PromptSource) -> Fact {
    Fact::Prompt { prompt_id: None, text: text.to_owned(), source }
}

#[test]
fn three_kinds_of_thoughts_are_told_differently() {
    let thinking = |words: &str| ContentBlock::Thinking {
        thinking: words.to_owned(),
        signature: Some("signed".to_owned()),
    };
    let hidden = ContentBlock::RedactedThinking { data: "x".to_owned() };
    let facts = [block("a", thinking("Hm.")), block("a", thinking("")), block("a", hidden)];
    let (book, _) = told(facts, &completed());
    let thoughts: Vec<String> =
        book.lines().into_iter().filter(|line| line.starts_with("thought")).collect();
    assert_eq!(thoughts, ["thought 3", "thought 0", "thought 0 redacted"]);
}

#[test]
fn a_thought_without_words_that_streams_waits_for_its_record() {
    let began = Fact::ThinkingBegan { message: "a".to_owned(), block: 0 };
    let ended = Fact::BlockEnded { message: "a".to_owned(), block: 0 };
    let after = Fact::TextDelta { message: "a".to_owned(), block: 1, text: "Hi".to_owned() };
    let hidden = block("a", ContentBlock::RedactedThinking { data: "x".to_owned() });
    let (book, _) = told([began, ended, after, hidden, text("a", "Hi there")], &completed());
    assert_eq!(
        book.lines(),
        ["think begun", "thought 0 redacted", "text Hi", "text  there", "stop EndTurn"]
    );
}

#[test]
fn a_tool_that_started_before_its_record_is_told_after_it() {
    let started =
        Fact::ToolStarted { id: "t1".to_owned(), input: "{\"command\":\"ls -a\"}".to_owned() };
    let elapsed = Some(Duration::from_millis(40));
    let ended = Fact::ToolEnded { id: "t1".to_owned(), is_error: false, elapsed };
    let (book, messages) =
        told([started, ended, text("a", "So."), call("a", "t1"), result("t1", "ok")], &completed());
    assert_eq!(
        book.lines(),
        [
            "text So.",
            "use begun t1 Bash",
            "use t1 Bash {\"command\":\"ls\"}",
            "started t1 {\"command\":\"ls -a\"} in 1",
            "ended t1 error=false 40ms",
            "stop ToolUse",
            "result t1 Bash {\"command\":\"ls -a\"} -> \"ok\" error=false denied=false",
        ]
    );
    assert_eq!(messages[0].text(), "So.");
}

#[test]
fn results_of_parallel_calls_stand_behind_their_message() {
    let steered = prompt("and be quick", PromptSource::Queued);
    let facts = [
        call("a", "t1"),
        result("t1", "one"),
        steered,
        call("a", "t2"),
        result("t2", "two"),
        text("b", "Done."),
    ];
    let (_, messages) = told(facts, &completed());
    insta::assert_snapshot!(outline(&messages), @r#"
    assistant
      use t1 Bash {"command":"ls"}
      use t2 Bash {"command":"ls"}
    tool
      result t1 Bash "one" error=false
    tool
      result t2 Bash "two" error=false
    user
      text and be quick
    assistant
      text Done.
    "#);
}

#[test]
fn only_words_for_the_model_become_user_messages() {
    let facts = || {
        [
            prompt("mine", PromptSource::Typed),
            prompt("hidden", PromptSource::Hidden),
            prompt("summary", PromptSource::Summary),
            prompt("/cost", PromptSource::Command),
            prompt("steered", PromptSource::Queued),
        ]
    };
    let (_, messages) = told(facts(), &completed());
    assert_eq!(texts(&messages), ["steered"]);

    let (book, mut story) = (Notebook::default(), story());
    story.begin_unasked();
    for fact in facts() {
        story.tell(fact, &book);
    }
    let messages = story.finish(&completed(), &book).messages;
    assert_eq!(texts(&messages), ["mine", "steered"]);
}

#[test]
fn a_record_seen_twice_is_one() {
    let numbered = |text: &str| Fact::Block {
        message: "a".to_owned(),
        block: Some(0),
        content: ContentBlock::Text { text: text.to_owned() },
        model: None,
        usage: None,
        stop_reason: None,
        aborted: false,
    };
    let facts = [
        numbered("Hi."),
        numbered("Hi."),
        call("a", "t1"),
        call("a", "t1"),
        result("t1", "x"),
        result("t1", "x"),
    ];
    let (book, messages) = told(facts, &completed());
    assert_eq!(book.said(), "Hi.");
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].blocks.len(), 2);
}

#[test]
fn a_record_that_disagrees_with_what_streamed_wins_and_says_so() {
    let (book, messages) = told([delta("a", "Hello wor"), text("a", "Good day.")], &completed());
    assert_eq!(answer(&messages), "Good day.");
    assert_eq!(
        book.lines(),
        [
            "text Hello wor",
            "notice Info What streamed above is not what Claude Code kept; the kept text follows.",
            "text Good day.",
            "stop EndTurn",
        ]
    );
}

#[test]
fn whole_lines_are_told_when_nothing_better_comes() {
    let (book, messages) = told(
        [lines("d", "# Head\n"), lines("d", "one\n"), text("a", "# Head\none\ntwo")],
        &completed(),
    );
    assert_eq!(book.lines(), ["text # Head\n", "text one\n", "text two", "stop EndTurn"]);
    assert_eq!(answer(&messages), "# Head\none\ntwo");
}

#[test]
fn deltas_win_over_whole_lines_in_any_order() {
    let all = "one\ntwo\nthree";
    let orders = [
        vec![
            lines("d", "one\n"),
            delta("a", "one\ntw"),
            lines("d", "two\n"),
            delta("a", "o\nthree"),
        ],
        vec![
            delta("a", "one\ntw"),
            lines("d", "one\n"),
            delta("a", "o\nthree"),
            lines("d", "two\nthree"),
        ],
        vec![delta("a", all), text("a", all), lines("d", "one\n"), lines("d", "two\nthree")],
        vec![text("a", all), lines("d", "one\ntwo\n"), lines("d", "three")],
        vec![lines("d", "one\ntwo\n"), lines("d", "three"), delta("a", "one\n"), text("a", all)],
    ];
    for mut facts in orders {
        let seen = format!("{facts:?}");
        if !facts.iter().any(|fact| matches!(fact, Fact::Block { .. })) {
            facts.push(text("a", all));
        }
        let (book, messages) = told(facts, &completed());
        assert_eq!(book.said(), all, "{seen}");
        assert_eq!(answer(&messages), all);
    }
}

#[test]
fn lines_of_a_second_reply_do_not_pass_the_result_before_it() {
    let facts = [
        lines("d1", "I look.\n"),
        text("a", "I look.\nNow."),
        call("a", "t1"),
        lines("d2", "Seen.\n"),
        result("t1", "x"),
        text("b", "Seen.\nBye."),
        lines("d1", "Now."),
    ];
    let (book, _) = told(facts, &completed());
    assert_eq!(book.said(), "I look.\nNow.Seen.\nBye.");
    let lines = book.lines();
    let place = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap();
    assert!(place("result t1") < place("text Seen."), "{lines:?}");
}

#[test]
fn what_streams_waits_for_records_only_so_long() {
    let (book, mut story) = (Notebook::default(), story());
    story.tell(call("a", "t1"), &book);
    for _ in 0..300 {
        story.tell(delta("b", "x"), &book);
    }
    assert_eq!(book.said().len(), 300, "the records are lost, the text is not");
}

#[test]
fn a_stream_that_broke_off_does_not_hold_up_the_second_try() {
    let retry = Fact::Retry {
        attempt: 1,
        max_attempts: 10,
        wait: Duration::from_millis(500),
        reason: "server error (529)".to_owned(),
    };
    let (book, messages) =
        told([delta("a", "Half"), retry, delta("b", "Whole."), text("b", "Whole.")], &completed());
    assert_eq!(
        book.lines(),
        [
            "text Half",
            "stop Cancelled",
            "notice Info The answer broke off; Claude Code asks for it again.",
            "retry 1/10 500ms server error (529)",
            "text Whole.",
            "stop EndTurn",
        ]
    );
    assert_eq!(answer(&messages), "Whole.");
}

#[test]
fn a_stream_that_was_cut_does_not_hold_up_the_next_one() {
    let began = |message: &str| Fact::MessageBegan { message: message.to_owned(), model: None };
    let facts = [began("a"), delta("a", "Half"), began("b"), delta("b", "Wh")];
    let (book, _) = told(facts, &Ending::Interrupted);
    assert_eq!(
        book.lines()[..4],
        [
            "text Half",
            "stop Cancelled",
            "notice Info The answer broke off; Claude Code asks for it again.",
            "text Wh",
        ]
    );
}

#[test]
fn a_whole_message_does_not_break_off_when_the_next_request_fails() {
    let ended = Fact::MessageEnded { message: "a".to_owned(), stop_reason: None };
    let retry =
        Fact::Retry { attempt: 1, max_attempts: 10, wait: Duration::ZERO, reason: String::new() };
    let (book, messages) =
        told([delta("a", "Whole"), ended, retry, text("a", "Whole")], &completed());
    assert!(!book.text().contains("broke off"), "{}", book.text());
    assert_eq!(answer(&messages), "Whole");
}

#[test]
fn an_interrupt_leaves_what_there_is_marked_and_every_call_answered() {
    let (book, messages) = told(
        [text("a", "I run."), call("a", "t1"), call("a", "t2"), result("t2", "x")],
        &Ending::Interrupted,
    );
    assert_eq!(messages.len(), 3, "{}", outline(&messages));
    assert!(book.text().contains(
        "result t1 Bash {\"command\":\"ls\"} -> \"interrupted before it was done\" error=true"
    ));

    let (_, messages) = told([delta("a", "Only stre")], &Ending::Interrupted);
    assert_eq!(answer(&messages), "Only stre");
    assert_eq!(messages[0].partial, Some(PartialReason::Cancelled));
}

#[test]
fn what_an_interrupt_left_is_told_once_whatever_message_it_is_kept_as() {
    let made_up = |content: &str| {
        let mut fact = text("made up", content);
        if let Fact::Block { model, .. } = &mut fact {
            *model = None;
        }
        fact
    };
    let facts = [delta("a", "Only "), made_up("Only stre")];
    let (book, messages) = told(facts, &Ending::Interrupted);
    assert_eq!(book.said(), "Only stre");
    assert_eq!(answer(&messages), "Only stre");
    // Other words of the CLI are told beside it.
    let (book, _) = told([delta("a", "Half"), made_up("No response.")], &Ending::Interrupted);
    assert_eq!(book.said(), "HalfNo response.");
}

#[test]
fn what_streamed_ahead_of_an_interrupt_is_no_contradiction() {
    for made_up in [false, true] {
        let mut kept = text(if made_up { "made up" } else { "a" }, "Only ");
        if let Fact::Block { model, aborted, .. } = &mut kept {
            *aborted = !made_up;
            *model = model.take().filter(|_| !made_up);
        }
        let (book, messages) = told([delta("a", "Only stre"), kept], &Ending::Interrupted);
        assert_eq!(book.lines(), ["text Only stre", "stop Cancelled"], "{made_up}");
        // The session has what the CLI goes on from.
        assert_eq!(answer(&messages), "Only ", "{made_up}");
    }
}

#[test]
fn a_call_that_never_became_whole_is_said_to_be_incomplete() {
    let began = Fact::ToolUseBegan {
        message: "a".to_owned(),
        block: 0,
        id: "t1".to_owned(),
        name: "Bash".to_owned(),
    };
    let (book, messages) = told([began], &Ending::Interrupted);
    assert_eq!(book.lines(), ["use begun t1 Bash", "use incomplete t1", "stop Cancelled"]);
    assert!(messages.is_empty());
}

#[test]
fn a_failure_keeps_what_was_produced() {
    let failure = Fact::ApiFailure {
        kind: FailureKind::Server,
        status: Some(529),
        text: "API Error".to_owned(),
        details: None,
        quota: None,
    };
    let (book, messages) = told([text("a", "Half an ans"), failure], &Ending::Failed);
    assert_eq!(answer(&messages), "Half an ans");
    assert_eq!(messages[0].partial, Some(PartialReason::Cut));
    assert!(!book.text().contains("API Error"), "the failure itself is told by who returns it");
}

#[test]
fn a_last_message_without_a_record_is_kept_from_the_hook() {
    let ending = Ending::Completed { last_message: Some("The end.".to_owned()) };
    let (book, messages) = told([delta("a", "The e")], &ending);
    assert_eq!((book.said().as_str(), answer(&messages).as_str()), ("The end.", "The end."));

    let (book, messages) = told([text("a", "Before. The end.")], &ending);
    assert_eq!(book.said(), "Before. The end.");
    assert_eq!(messages.len(), 1, "it was recorded: it is not kept twice");
}

#[test]
fn nothing_is_left_for_the_runtime_to_run() {
    let (book, mut story) = (Notebook::default(), story());
    story.tell(call("a", "t1"), &book);
    let turn = story.finish(&completed(), &book);
    assert_eq!(turn.stop_reason, StopReason::EndTurn);
    assert_eq!(turn.messages.len(), 2, "the call has a result");
    assert!(story.finish(&completed(), &book).messages.is_empty(), "the next turn is a new one");
}

#[test]
fn a_denied_call_says_so() {
    let denied = Fact::ToolResult {
        id: "t1".to_owned(),
        output: "no".to_owned(),
        is_error: true,
        facts: None,
        denied: Some(DeniedBy::Person),
    };
    let (book, _) = told([call("a", "t1"), denied], &completed());
    assert!(book.text().ends_with("-> \"no\" error=true denied=true"), "{}", book.text());
}

#[test]
fn a_call_that_ran_was_stopped_and_not_denied() {
    let started = Fact::ToolStarted { id: "t1".to_owned(), input: "{}".to_owned() };
    let rejected = Fact::ToolResult {
        id: "t1".to_owned(),
        output: "no".to_owned(),
        is_error: true,
        facts: None,
        denied: Some(DeniedBy::Person),
    };
    let (book, _) = told([call("a", "t1"), started, rejected], &Ending::Interrupted);
    assert!(book.text().ends_with("-> \"no\" error=true denied=false"), "{}", book.text());
}

#[test]
fn a_quota_is_told_once_per_change_and_ends_nothing() {
    let quota = |status: &str| {
        Fact::Quota(Quota {
            status: status.to_owned(),
            resets_at: Some(1_796_090_408),
            kind: Some("five_hour".to_owned()),
        })
    };
    let (book, mut story) = (Notebook::default(), story());
    for status in ["allowed", "allowed_warning", "allowed_warning"] {
        story.tell(quota(status), &book);
    }
    story.finish(&completed(), &book);
    story.tell(quota("allowed_warning"), &book);
    story.tell(quota("rejected"), &book);
    assert_eq!(
        book.lines(),
        [
            "notice Warning The account is close to its 5-hour limit; it resets on Tue 1 Dec at 02:00.",
            "notice Error The account's 5-hour limit is reached; it resets on Tue 1 Dec at 02:00.",
        ]
    );
}

#[test]
fn a_compaction_is_told_with_its_numbers() {
    let facts = [
        Fact::Compacted { automatic: true, before_tokens: 2080, after_tokens: 918 },
        Fact::CommandOutput { text: "Compacted (ctrl+o to see full summary)".to_owned() },
    ];
    let (book, messages) = told(facts, &completed());
    insta::assert_snapshot!(book.text(), @"
    Compacting { cause: Automatic, round: 1, max_rounds: 1 }
    Compacted { cause: Automatic, removed: 0, before_tokens: 2080, after_tokens: 918, original: None }
    ");
    assert!(messages.is_empty());
}

#[test]
fn sub_agents_are_seen_from_their_start_to_their_end() {
    let id = || Some("t1".to_owned());
    let facts = [
        call("a", "t1"),
        Fact::AgentSpawned {
            agent: "a866".to_owned(),
            tool_use_id: id(),
            kind: Some("Explore".to_owned()),
            background: false,
        },
        Fact::AgentProgress {
            agent: "a866".to_owned(),
            tool_use_id: id(),
            text: "Reading".to_owned(),
        },
        Fact::AgentDone {
            agent: "a866".to_owned(),
            tool_use_id: id(),
            status: AgentEnd::Completed,
            summary: "Found it".to_owned(),
        },
        result("t1", "ok"),
    ];
    let (book, _) = told(facts, &completed());
    let seen: Vec<String> = book
        .lines()
        .into_iter()
        .filter(|line| line.starts_with("output") || line.starts_with("notice"))
        .collect();
    assert_eq!(
        seen,
        [
            "output t1 \"sub-agent Explore started and waited for\\n\"",
            "output t1 \"Reading\\n\"",
            "notice Info Sub-agent is done: Found it",
        ]
    );
}
