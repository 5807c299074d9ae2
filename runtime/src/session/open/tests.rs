//! What an open session does to its file.

use std::os::unix::fs::PermissionsExt as _;

use super::super::load::load;
use super::super::{ContentBlock, MessageRole, SessionStore};
use super::*;
use crate::tools::ToolFacts;
use crate::usage::TokenUsage;

fn store() -> (tempfile::TempDir, SessionStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::open(dir.path()).unwrap();
    (dir, store)
}

fn user(text: &str) -> Arc<ConversationMessage> {
    Arc::new(ConversationMessage::user(text))
}

fn assistant(text: &str) -> Arc<ConversationMessage> {
    let text = ContentBlock::Text { text: text.into() };
    Arc::new(ConversationMessage::new(MessageRole::Assistant, vec![text]))
}

fn call(id: &str, input: &str) -> Arc<ConversationMessage> {
    let block =
        ContentBlock::ToolUse { id: id.into(), name: "bash".into(), input: input.to_owned() };
    Arc::new(ConversationMessage::new(MessageRole::Assistant, vec![block]))
}

fn result(id: &str, output: &str, facts: Option<ToolFacts>) -> Arc<ConversationMessage> {
    let block = ContentBlock::ToolResult {
        tool_use_id: id.into(),
        tool_name: "bash".into(),
        output: output.into(),
        is_error: false,
        facts,
    };
    Arc::new(ConversationMessage::new(MessageRole::Tool, vec![block]))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Closes and opens again.
fn reopen(store: &SessionStore, open: OpenSession) -> OpenSession {
    let path = open.path().to_str().unwrap().to_owned();
    drop(open);
    store.resume(&path).unwrap()
}

#[test]
fn a_session_without_a_message_leaves_nothing_behind() {
    let (dir, store) = store();
    let mut open = store.create("m");
    open.set_model("n").unwrap();
    open.record_prompt("/help").unwrap();
    open.sync().unwrap();
    drop(open);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn everything_a_message_holds_survives_the_file() {
    let (_dir, store) = store();
    let mut open = store.create("claude-opus-4-7");
    let mut answer = ConversationMessage::new(
        MessageRole::Assistant,
        vec![
            ContentBlock::Thinking { thinking: "hm".into(), signature: Some("sig==".into()) },
            ContentBlock::RedactedThinking { data: "opaque".into() },
            ContentBlock::Text { text: "line\nline \u{1b}[0m ä 🦀".into() },
            ContentBlock::ToolUse {
                id: "t1".into(),
                name: "bash".into(),
                input: "{\"command\": \"ls\"}".into(),
            },
        ],
    );
    answer.usage = Some(TokenUsage { input_tokens: u64::MAX, ..TokenUsage::default() });
    answer.model = Some("claude-opus-4-7".into());
    answer.partial = Some(super::super::PartialReason::Cancelled);
    let facts = ToolFacts::Read { path: "a".into(), first_line: 1, lines: 2, total_lines: 3 };
    let messages = [user("hello"), Arc::new(answer), result("t1", "out", Some(facts))];
    open.record_prompt("hello").unwrap();
    for message in &messages {
        open.push(Arc::clone(message)).unwrap();
    }
    open.set_model("claude-sonnet-4-6").unwrap();
    open.sync().unwrap();
    let again = reopen(&store, open);
    assert_eq!(again.session().messages, messages);
    assert_eq!(again.session().model.as_deref(), Some("claude-sonnet-4-6"));
    assert_eq!(again.prompt_history(), ["hello"]);
    assert_eq!(again.warnings(), [""; 0]);
}

#[test]
fn records_are_the_ones_that_claw_code_knows_with_input_as_a_string() {
    let (_dir, store) = store();
    let mut open = store.create("m");
    open.record_prompt("go").unwrap();
    open.push(user("go")).unwrap();
    open.push(call("t", "{\"a\":1}")).unwrap();
    let text = fs::read_to_string(open.path()).unwrap();
    let records: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = records.iter().map(|r| r["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["session_meta", "prompt_history", "message", "message"]);
    assert_eq!(records[0]["version"], 1);
    assert_eq!(records[0]["session_id"], open.id());
    assert_eq!(records[3]["message"]["blocks"][0]["input"], "{\"a\":1}");
}

#[test]
fn files_are_readable_by_their_owner_alone_and_not_committed() {
    let (dir, store) = store();
    let mut open = store.create("m");
    open.push(user(&"x".repeat(20_000))).unwrap();
    let sessions = dir.path().canonicalize().unwrap().join(".claw/sessions");
    assert_eq!(mode(open.path()), 0o600);
    assert_eq!(mode(open.path().parent().unwrap()), 0o700);
    assert_eq!(mode(&sessions), 0o700);
    let side = open.path().with_extension("d");
    assert_eq!(mode(&side), 0o700);
    for blob in fs::read_dir(&side).unwrap() {
        assert_eq!(mode(&blob.unwrap().path()), 0o600);
    }
    assert_eq!(fs::read_to_string(sessions.join(".gitignore")).unwrap(), "*\n");
}

#[test]
fn long_fields_are_cut_in_the_record_only_and_come_back_whole() {
    let (_dir, store) = store();
    let mut open = store.create("m");
    let long = "ü".repeat(20_000);
    let input = serde_json::json!({ "content": long }).to_string();
    let facts = ToolFacts::Diff {
        path: "a".into(),
        diff: long.clone(),
        added: 1,
        removed: 0,
        created: true,
    };
    let signature = "s".repeat(30_000);
    let thinking = ContentBlock::Thinking { thinking: long.clone(), signature: Some(signature) };
    let messages = [
        user(&long),
        Arc::new(ConversationMessage::new(MessageRole::Assistant, vec![thinking])),
        call("t", &input),
        result("t", &long, Some(facts)),
    ];
    for message in &messages {
        open.push(Arc::clone(message)).unwrap();
    }
    assert_eq!(open.session().messages, messages, "the model gets the whole");
    let text = fs::read_to_string(open.path()).unwrap();
    assert!(!text.contains(&"ü".repeat(16_385)), "no field in the file is longer");
    assert!(text.contains("[cut here: "));
    assert!(text.contains(&"s".repeat(30_000)), "signatures are never cut");
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(input) = record["message"]["blocks"][0]["input"].as_str() {
            assert!(serde_json::from_str::<serde_json::Value>(input).unwrap().is_object());
        }
    }
    let side = open.path().with_extension("d");
    let again = reopen(&store, open);
    assert_eq!(again.session().messages, messages);

    fs::remove_dir_all(side).unwrap();
    let cut = reopen(&store, again);
    assert!(cut.session().messages[0].text().contains("[cut here: "));
    assert!(cut.warnings()[0].contains("long texts are shown cut"), "{:?}", cut.warnings());
    let (_, _, input) = cut.session().messages[2].tool_uses().next().unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(input).unwrap().is_object());
}

#[test]
fn secrets_reach_no_file() {
    let (dir, store) = store();
    let store = store.with_redactor(crate::redact::Redactor::new(["hunter\"2\"2"]));
    let mut open = store.create("m");
    let input = serde_json::json!({ "command": "login hunter\"2\"2" }).to_string();
    let facts = ToolFacts::Diff {
        path: "a".into(),
        diff: "+hunter\"2\"2".into(),
        added: 1,
        removed: 0,
        created: false,
    };
    open.record_prompt("my hunter\"2\"2").unwrap();
    // The title cuts in the middle of this one.
    open.push(user(&format!("{} hunter\"2\"2", "x".repeat(70)))).unwrap();
    open.push(call("t", &input)).unwrap();
    open.push(result("t", &format!("{}hunter\"2\"2", "x".repeat(16_380)), Some(facts))).unwrap();
    open.set_model("other").unwrap();
    let compaction =
        SessionCompaction { count: 1, removed_message_count: 0, summary: "hunter\"2\"2".into() };
    let messages = open.session().messages.clone();
    open.replace_after_compaction(messages, compaction).unwrap();
    let mut folders = vec![dir.path().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains("hunter"), "{}: {text}", path.display());
        }
    }
    assert!(files >= 4, "session, original, side file, ignore file; found {files}");
    assert!(open.session().messages[0].text().contains("hunter"), "memory is untouched");
    let again = reopen(&store, open);
    let (_, _, input) = again.session().messages[1].tool_uses().next().unwrap();
    assert_eq!(input, r#"{"command":"login [redacted]"}"#);
}

#[test]
fn a_disk_that_refuses_gives_a_typed_error_and_nothing_is_missing_later() {
    let (_dir, store) = store();
    let mut open = store.create("m");
    open.push(user("one")).unwrap();
    let good = open.file.replace(File::options().append(true).open("/dev/full").unwrap());
    for text in ["two", "three"] {
        let error = open.push(user(text)).unwrap_err();
        assert!(matches!(error, SessionError::NotSaved { .. }));
        assert!(error.to_string().contains("in memory only"), "{error}");
    }
    assert_eq!(open.session().messages.len(), 3);
    open.file = good;
    open.push(user("four")).unwrap();
    let again = reopen(&store, open);
    let texts: Vec<String> = again.session().messages.iter().map(|m| m.text()).collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
    assert_eq!(again.warnings(), [""; 0]);
}

#[test]
fn a_file_that_may_not_be_written_still_opens() {
    let (_dir, store) = store();
    let mut open = store.create("m");
    open.push(user("one")).unwrap();
    let path = open.path().to_owned();
    drop(open);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let mut again = store.resume("latest").unwrap();
    assert_eq!(again.session().messages.len(), 1);
    // The superuser may write all the same; then the message must be in the file.
    let saved = again.push(user("two"));
    assert_eq!(again.session().messages.len(), 2);
    let expected = match saved {
        Ok(()) => 2,
        Err(SessionError::NotSaved { .. }) => 1,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(load(&path).unwrap().session.messages.len(), expected);
}

#[test]
fn compaction_keeps_the_original_and_goes_on_in_the_live_file() {
    let (_dir, store) = store();
    let mut open = store.create("m");
    for text in ["the first prompt", "two", "three"] {
        open.push(user(text)).unwrap();
    }
    let before = fs::read(open.path()).unwrap();
    let compaction =
        SessionCompaction { count: 1, removed_message_count: 2, summary: "sum".into() };
    let original = open.replace_after_compaction(vec![user("three")], compaction.clone()).unwrap();
    assert_eq!(fs::read(&original).unwrap(), before);
    open.push(user("four")).unwrap();
    assert_eq!(fs::read(&original).unwrap(), before, "the kept original never changes again");
    let second = open.replace_after_compaction(vec![user("four")], compaction).unwrap();
    assert_ne!(second, original);
    let again = reopen(&store, open);
    assert_eq!(again.session().messages, [user("four")]);
    assert_eq!(again.session().compaction.as_ref().unwrap().summary, "sum");
    let entries = store.list(None);
    assert_eq!(entries.len(), 1, "kept originals are not listed");
    assert_eq!(entries[0].title, "the first prompt", "the title outlives compaction");
    let readable = store.resume(original.to_str().unwrap()).unwrap();
    assert_eq!(readable.session().messages.len(), 3);
    assert_ne!(readable.path(), original);
}

#[test]
fn a_crash_between_any_two_steps_of_a_compaction_leaves_a_whole_session() {
    for stop in [Step::OriginalKept, Step::SnapshotWritten, Step::SnapshotLive] {
        let (_dir, store) = store();
        let mut open = store.create("m");
        for text in ["one", "two", "three"] {
            open.push(user(text)).unwrap();
        }
        open.session.messages = vec![user("compacted")];
        let stopped = open.replace_on_disk(&mut |step| {
            // Whatever the moment: the live name holds a whole session.
            let live = load(&store.list(None)[0].path).unwrap();
            assert!(matches!(live.session.messages.len(), 1 | 3), "after {step:?}");
            assert!(live.warnings.is_empty(), "{:?}", live.warnings);
            if step == stop { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        });
        assert!(stopped.is_err());
        let expected = if stop == Step::SnapshotLive { 1 } else { 3 };
        let again = reopen(&store, open);
        assert_eq!(again.session().messages.len(), expected, "stopped after {stop:?}");
        assert_eq!(store.list(None).len(), 1);
    }
}

#[test]
fn a_compaction_that_cannot_be_written_is_said_and_loses_nothing() {
    let (_dir, store) = store();
    let mut open = store.create("m");
    open.push(user("one")).unwrap();
    open.push(user("two")).unwrap();
    // A file where the side folder must be.
    fs::write(open.path().with_extension("d"), "").unwrap();
    let compaction = SessionCompaction { count: 1, removed_message_count: 1, summary: "s".into() };
    let error = open.replace_after_compaction(vec![user("two")], compaction).unwrap_err();
    assert!(matches!(error, SessionError::NotSaved { .. }), "{error}");
    assert_eq!(open.session().messages.len(), 1);
    open.push(user("three")).unwrap();
    assert_eq!(load(open.path()).unwrap().session.messages.len(), 3);
}

#[test]
fn a_crash_in_the_middle_of_a_tool_leaves_a_conversation_that_can_go_on() {
    let (_dir, store) = store();
    let mut open = store.create("m");
    open.push(user("run it")).unwrap();
    open.push(call("t", "{}")).unwrap();
    let mut again = reopen(&store, open);
    assert!(super::super::unanswered_tool_uses(&again.session().messages).is_empty());
    assert!(again.warnings()[0].contains("tool calls made whole"));
    again.push(user("go on")).unwrap();
    again.push(assistant("yes")).unwrap();
    let third = reopen(&store, again);
    let roles: Vec<MessageRole> = third.session().messages.iter().map(|m| m.role).collect();
    let names: Vec<&str> = roles.into_iter().map(MessageRole::as_str).collect();
    assert_eq!(names, ["user", "assistant", "tool", "user", "assistant"]);
}

#[test]
fn the_cost_of_removed_messages_stays_on_record() {
    let (_dir, store) = store();
    let mut open = store.create("claude-opus-4-7");
    let usage = TokenUsage { input_tokens: 1_000_000, ..TokenUsage::default() };
    for model in ["claude-haiku-4-5", "claude-opus-4-7"] {
        let mut answer = (*assistant("a")).clone();
        answer.usage = Some(usage);
        answer.model = Some(model.into());
        open.push(Arc::new(answer)).unwrap();
    }
    let compaction = SessionCompaction { count: 1, removed_message_count: 2, summary: "s".into() };
    open.replace_after_compaction(vec![user("go on")], compaction).unwrap();
    let again = reopen(&store, open);
    let tracker = crate::usage::UsageTracker::from_session(again.session());
    assert_eq!(tracker.total().input_tokens, 2_000_000);
    assert!((tracker.cost_usd().unwrap() - 6.0).abs() < 1e-9);
    let fork = crate::usage::UsageTracker::from_session(again.fork(None).unwrap().session());
    assert_eq!(fork.total(), tracker.total());
}

#[test]
fn a_session_file_that_was_cleaned_away_is_written_anew() {
    let (dir, store) = store();
    let mut open = store.create("m");
    let long = "l".repeat(20_000);
    open.record_prompt("one").unwrap();
    open.push(user("one")).unwrap();
    open.push(user(&long)).unwrap();
    fs::remove_dir_all(dir.path().join(".claw")).unwrap();
    open.push(user("three")).unwrap();
    fs::remove_dir_all(dir.path().join(".claw")).unwrap();
    open.sync().unwrap();
    let again = reopen(&store, open);
    assert_eq!(again.session().messages, [user("one"), user(&long), user("three")]);
    assert_eq!(again.prompt_history(), ["one"]);
    assert_eq!(again.warnings(), [""; 0]);
}

fn text_piece(text: &str) -> super::super::Piece {
    super::super::Piece { kind: super::super::PieceKind::Text, text: text.to_owned() }
}

#[test]
fn an_answer_that_was_streaming_when_the_program_died_is_there_as_a_cut_one() {
    let (_dir, store) = store();
    let mut open = store.create("m");
    open.push(user("go")).unwrap();
    let file = open.unfinished_file();
    file.write(&[text_piece("Half")]).unwrap();
    file.write(&[text_piece("Half of it")]).unwrap();
    assert_eq!(mode(&file.path), 0o600);
    assert_eq!(mode(file.path.parent().unwrap()), 0o700);
    let before = fs::read(open.path()).unwrap();

    let mut again = reopen(&store, open);
    assert_eq!(fs::read(again.path()).unwrap(), before, "opening changes nothing");
    let last = again.session().messages.last().unwrap().clone();
    assert_eq!((last.text().as_str(), last.role), ("Half of it", MessageRole::Assistant));
    assert_eq!(last.partial, Some(super::super::PartialReason::Cut));
    assert!(again.warnings()[0].contains("cut off"), "{:?}", again.warnings());
    again.push(user("go on")).unwrap();
    assert!(!file.path.parent().unwrap().exists(), "it is in the session now");

    let third = reopen(&store, again);
    let texts: Vec<String> = third.session().messages.iter().map(|m| m.text()).collect();
    assert_eq!(texts, ["go", "Half of it", "go on"]);
    assert_eq!(third.warnings(), [""; 0]);
}

#[test]
fn an_unfinished_answer_does_not_come_back_beside_the_recorded_one() {
    let (_dir, store) = store();
    let mut open = store.create("m");
    open.push(user("go")).unwrap();
    let file = open.unfinished_file();
    file.write(&[text_piece("Half")]).unwrap();
    open.push(assistant("Whole.")).unwrap();
    assert!(!file.path.exists());
    // The program died between the two steps.
    file.write(&[text_piece("Half")]).unwrap();
    let again = reopen(&store, open);
    assert_eq!(again.session().messages, [user("go"), assistant("Whole.")]);
    assert_eq!(again.warnings(), [""; 0]);
}

#[test]
fn a_workspace_that_is_gone_does_not_come_back_as_an_empty_one() {
    let (dir, store) = store();
    let mut open = store.create("m");
    open.push(user("one")).unwrap();
    fs::remove_dir_all(dir.path()).unwrap();
    for text in ["two", "three"] {
        let error = open.push(user(text)).unwrap_err();
        assert!(error.to_string().contains("is gone"), "{error}");
    }
    open.sync().unwrap_err();
    assert!(!dir.path().exists());
    // It is there again: everything is written.
    fs::create_dir(dir.path()).unwrap();
    open.push(user("four")).unwrap();
    let again = reopen(&store, open);
    let texts: Vec<String> = again.session().messages.iter().map(|m| m.text()).collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
}
