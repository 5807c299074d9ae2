//! Finding, resuming, listing and forking sessions; files that are damaged or foreign.

use std::io::Write as _;

use super::*;
use crate::session::{ContentBlock, MessageRole};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/sessions");

fn store() -> (tempfile::TempDir, SessionStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::open(dir.path()).unwrap();
    (dir, store)
}

fn user(text: &str) -> Arc<ConversationMessage> {
    Arc::new(ConversationMessage::user(text))
}

/// A stored session of these prompts, closed.
fn stored(store: &SessionStore, prompts: &[&str]) -> PathBuf {
    let mut open = store.create("m");
    for prompt in prompts {
        open.push(user(prompt)).unwrap();
    }
    open.path().to_owned()
}

/// A fixture copied to where old versions kept sessions.
fn fixture(store: &SessionStore, name: &str, as_name: &str) -> PathBuf {
    let flat = store.workspace().join(".claw/sessions");
    fs::create_dir_all(&flat).unwrap();
    let path = flat.join(as_name);
    fs::copy(Path::new(FIXTURES).join(name), &path).unwrap();
    path
}

fn texts(open: &OpenSession) -> Vec<String> {
    open.session().messages.iter().map(|message| message.text()).collect()
}

fn append(path: &Path, bytes: &[u8]) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn sessions_live_where_claw_code_keeps_them() {
    let (dir, store) = store();
    let path = stored(&store, &["hi"]);
    let root = dir.path().canonicalize().unwrap();
    let folder = root.join(".claw/sessions").join(fingerprint(&root));
    assert_eq!(path.parent().unwrap(), folder);
    assert_eq!(path.extension().unwrap(), "jsonl");
}

#[test]
fn a_session_of_claw_code_is_read_continued_and_read_again() {
    let (_dir, store) = store();
    let path = fixture(&store, "claw-code.jsonl", "session-1750000000000-0.jsonl");
    let before = fs::read(&path).unwrap();
    let mut open = store.resume("1750000000000").unwrap();
    assert_eq!(open.id(), "session-1750000000000-0");
    assert_eq!(open.prompt_history(), ["Why does the cart lose items?"]);
    assert_eq!(open.session().model.as_deref(), Some("anthropic/claude-opus-4-7"));
    let messages = &open.session().messages;
    assert_eq!(messages.len(), 4);
    assert_eq!(
        messages[1].blocks[0],
        ContentBlock::Thinking {
            thinking: "The cart is kept in a cookie.".into(),
            signature: Some("c2lnbmF0dXJl".into())
        }
    );
    assert_eq!(messages[1].tool_uses().next().unwrap().2, r#"{"path":"src/cart.rs"}"#);
    assert_eq!(messages[3].usage.unwrap().cache_read_input_tokens, 2100);
    assert_eq!(open.warnings().len(), 1, "begun elsewhere: {:?}", open.warnings());
    assert_eq!(fs::read(&path).unwrap(), before, "opening changes nothing");

    open.push(user("Fix it.")).unwrap();
    drop(open);
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before), "only appended to");
    assert_eq!(store.resume("latest").unwrap().session().messages.len(), 5);
}

#[test]
fn a_compacted_fork_of_claw_code_keeps_its_facts() {
    let (_dir, store) = store();
    fixture(&store, "claw-code-compacted.jsonl", "session-1750000100000-1.jsonl");
    let open = store.resume("latest").unwrap();
    assert_eq!(open.session().messages[0].role, MessageRole::System);
    let compaction = open.session().compaction.as_ref().unwrap();
    assert_eq!((compaction.count, compaction.removed_message_count), (1, 6));
    let fork = open.session().fork.as_ref().unwrap();
    assert_eq!(fork.parent_session_id, "session-1750000000000-0");
    assert_eq!(fork.branch_name.as_deref(), Some("cookie-fix"));
    assert_eq!(store.list(None)[0].title, "Now write a test.");
    assert_eq!(store.list(None)[0].message_count, 2);
}

#[test]
fn a_whole_object_file_is_read_and_continues_in_a_new_file() {
    let (_dir, store) = store();
    let path = fixture(&store, "claw-code-object.json", "session-1740000000000-0.json");
    let before = fs::read(&path).unwrap();
    assert_eq!(store.list(None)[0].title, "Say hello.");
    let mut open = store.resume("session-1740000000000-0").unwrap();
    assert_eq!(texts(&open), ["Say hello.", "Hello."]);
    open.push(user("Again.")).unwrap();
    assert_ne!(open.path(), path);
    assert_eq!(fs::read(&path).unwrap(), before);
    drop(open);
    assert_eq!(texts(&store.resume("latest").unwrap()), ["Say hello.", "Hello.", "Again."]);
}

#[test]
fn a_file_cut_at_any_byte_of_its_last_records_shows_every_whole_record_and_can_go_on() {
    let (_dir, store) = store();
    let path = stored(&store, &["one", "two ä", "three", "four"]);
    let whole = fs::read(&path).unwrap();
    let line_ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i).collect();
    let first_cut = line_ends[line_ends.len() - 4] + 1;
    for cut in first_cut..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        // A record is whole without its line end, too.
        let expected = line_ends.iter().filter(|end| **end <= cut).count() - 1;
        let mut open = store.resume("latest").unwrap();
        assert_eq!(open.session().messages.len(), expected, "cut at {cut}");
        let is_torn = !line_ends.contains(&cut) && !line_ends.contains(&(cut - 1));
        assert_eq!(open.warnings().len(), usize::from(is_torn), "cut at {cut}");
        assert_eq!(fs::read(&path).unwrap(), whole[..cut], "opening changes nothing");
        assert_eq!(store.list(None).len(), 1);
        open.push(user("next")).unwrap();
        drop(open);
        assert!(fs::read(&path).unwrap().starts_with(&whole[..cut]), "never shortened");
        let again = store.resume("latest").unwrap();
        assert_eq!(again.session().messages.len(), expected + 1, "cut at {cut}");
        assert_eq!(again.session().messages.last().unwrap().text(), "next");
    }
}

#[test]
fn damaged_lines_are_read_over_and_told_in_one_line() {
    let (_dir, store) = store();
    let path = stored(&store, &["one"]);
    let lines = fs::read_to_string(&path).unwrap();
    let message = lines.lines().last().unwrap().to_owned();
    let oversized = format!("{{\"type\":\"message\",\"x\":\"{}\"}}\n", "y".repeat(17 << 20));
    let cases: [(&str, Vec<u8>); 6] = [
        ("damaged", b"{\"type\":\"message\",\n".to_vec()),
        ("damaged", b"{\"type\":\"message\",\"message\":{\"role\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"\xff\"}]}}\n".to_vec()),
        ("of an unknown kind", b"{\"type\":\"hologram\",\"model\":{}}\n".to_vec()),
        ("written twice", format!("{message}\n").into_bytes()),
        ("filled with zero bytes", vec![0; 4096]),
        ("larger than 16 MiB", oversized.into_bytes()),
    ];
    let clean = fs::read(&path).unwrap();
    for (reason, bytes) in cases {
        fs::write(&path, &clean).unwrap();
        append(&path, &bytes);
        let mut open = store.resume("latest").unwrap();
        assert_eq!(texts(&open), ["one"], "{reason}");
        assert_eq!(open.warnings().len(), 1, "{reason}: {:?}", open.warnings());
        assert!(open.warnings()[0].contains(&format!("1 {reason}")), "{:?}", open.warnings());
        open.push(user("two")).unwrap();
        drop(open);
        assert_eq!(texts(&store.resume("latest").unwrap()), ["one", "two"], "{reason}");
        assert_eq!(store.list(None)[0].title, "one");
    }
}

#[test]
fn a_record_after_zero_bytes_is_found() {
    let (_dir, store) = store();
    let path = stored(&store, &["one"]);
    append(&path, &[0; 512]);
    append(&path, b"{\"type\":\"message\",\"message\":{\"role\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"two\"}]}}\n");
    assert_eq!(texts(&store.resume("latest").unwrap()), ["one", "two"]);
}

#[test]
fn unknown_fields_blocks_and_roles_do_not_cost_the_rest() {
    let (_dir, store) = store();
    let path = stored(&store, &["one"]);
    append(&path, b"{\"type\":\"message\",\"new\":[1],\"message\":{\"role\":\"assistant\",\"new\":{},\"blocks\":[{\"type\":\"text\",\"text\":\"two\",\"new\":1},{\"type\":\"hologram\"}]}}\n");
    append(&path, b"{\"type\":\"message\",\"message\":{\"role\":\"oracle\",\"blocks\":[]}}\n");
    let open = store.resume("latest").unwrap();
    assert_eq!(texts(&open), ["one", "two"]);
    assert_eq!(open.warnings().len(), 2, "{:?}", open.warnings());
}

#[test]
fn tool_input_is_always_a_json_object_after_loading() {
    let (_dir, store) = store();
    for (input, expected) in [
        (r#""{\"a\":1}""#, r#"{"a":1}"#),
        (r#"{"a": 1}"#, r#"{"a": 1}"#),
        (r#""{\"a\":\"cut he""#, r#"{"incomplete_input":"{\"a\":\"cut he"}"#),
        (r#""""#, "{}"),
        (r#""[1]""#, r#"{"incomplete_input":"[1]"}"#),
    ] {
        let path = stored(&store, &["one"]);
        append(&path, format!("{{\"type\":\"message\",\"message\":{{\"role\":\"assistant\",\"blocks\":[{{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"bash\",\"input\":{input}}}]}}}}\n").as_bytes());
        let open = store.resume(path.to_str().unwrap()).unwrap();
        assert_eq!(open.session().messages[1].tool_uses().next().unwrap().2, expected);
    }
}

#[test]
fn a_second_opening_is_refused_while_the_first_lives() {
    let (_dir, store) = store();
    let path = stored(&store, &["one"]);
    let first = store.resume("latest").unwrap();
    let Err(error) = store.resume("latest") else { panic!("opened twice") };
    assert!(matches!(&error, SessionError::Locked { id } if id == first.id()), "{error}");
    assert!(error.to_string().contains("another process"));
    assert!(store.list(None)[0].locked);
    let own = &store.list(Some(first.id()))[0];
    assert!(own.current && !own.locked);
    let fork = store.fork_of(first.id(), None).unwrap();
    assert_eq!(texts(&fork), ["one"], "a fork needs no lock");
    drop(first);
    assert!(!path.with_extension("lock").exists());
    store.resume("latest").unwrap();
}

#[test]
fn the_end_of_a_long_session_is_shown_before_all_of_it_is_read() {
    let (_dir, store) = store();
    let mut session = store.create("m");
    let id = session.id().to_owned();
    for number in 0..300 {
        session.push(user(&format!("{number} {}", "x".repeat(4096)))).unwrap();
    }
    drop(session);
    let mut shown = Vec::new();
    let whole = store.resume_showing(&id, |view| shown = view.messages).unwrap();
    let all = &whole.session().messages;
    assert_eq!(all.len(), 300);
    assert!((10..100).contains(&shown.len()), "{}", shown.len());
    assert_eq!(shown, all[300 - shown.len()..]);
}

#[test]
fn a_session_that_is_read_in_no_time_or_refused_shows_nothing_beforehand() {
    let (_dir, store) = store();
    let mut session = store.create("m");
    let id = session.id().to_owned();
    session.push(user("short")).unwrap();
    let refused = store.resume_showing(&id, |_| panic!("it is open elsewhere"));
    assert!(matches!(refused, Err(SessionError::Locked { .. })));
    drop(session);
    let open = store.resume_showing(&id, |_| panic!("it is short")).unwrap();
    assert_eq!(texts(&open), ["short"]);
}

#[test]
fn references_find_the_session_or_say_why_not() {
    let (_dir, store) = store();
    assert!(matches!(store.resume("latest"), Err(SessionError::NotFound(_))));
    let first = stored(&store, &["first"]);
    let second = stored(&store, &["second"]);
    for alias in ["latest", "last", "recent"] {
        assert_eq!(store.resume(alias).unwrap().path(), second);
    }
    let id = first.file_stem().unwrap().to_str().unwrap();
    assert_eq!(store.resume(id).unwrap().path(), first);
    assert_eq!(store.resume(first.to_str().unwrap()).unwrap().path(), first);
    assert_eq!(store.resume(&id["session-".len()..id.len() - 1]).unwrap().path(), first);
    assert!(matches!(store.resume("session-"), Err(SessionError::Ambiguous { matches: 2, .. })));
    for missing in ["", "nothing", "../../etc/passwd", "no/such.jsonl"] {
        assert!(matches!(store.resume(missing), Err(SessionError::NotFound(_))), "{missing}");
    }
    let note = store.workspace().join("note.json");
    fs::write(&note, "{\"a\":1}").unwrap();
    assert!(matches!(store.resume(note.to_str().unwrap()), Err(SessionError::NotASession { .. })));
    assert_eq!(fs::read_to_string(note).unwrap(), "{\"a\":1}");
}

#[test]
fn the_list_is_newest_first_without_rotated_copies() {
    let (_dir, store) = store();
    let first = stored(&store, &["first prompt\nwith a second line"]);
    stored(&store, &["second", "more"]);
    fs::copy(&first, first.with_extension("rot-1750000000000.jsonl")).unwrap();
    let entries = store.list(None);
    let titles: Vec<&str> = entries.iter().map(|entry| entry.title.as_str()).collect();
    assert_eq!(titles, ["second", "first prompt with a second line"]);
    assert_eq!(entries[0].message_count, 2);
    assert_eq!(entries[0].model.as_deref(), Some("m"));
    let rotated = first.with_extension("rot-1750000000000.jsonl");
    let open = store.resume(rotated.to_str().unwrap()).unwrap();
    assert_eq!(open.session().messages.len(), 1, "a rotated copy is readable by path");
    assert_ne!(open.path(), rotated);
}

#[test]
fn the_list_finds_count_and_title_of_a_large_session_from_its_ends() {
    let (_dir, store) = store();
    let mut open = store.create("m");
    open.push(user("the title")).unwrap();
    for _ in 0..300 {
        open.push(user(&"z".repeat(16_000))).unwrap();
    }
    open.set_model("other").unwrap();
    let entry = &store.list(Some(open.id()))[0];
    assert_eq!((entry.title.as_str(), entry.message_count), ("the title", 301));
    assert_eq!(entry.model.as_deref(), Some("other"));
    assert!(entry.bytes > 4_000_000);
}

#[test]
fn fork_has_its_own_id_and_file_and_both_go_on_independently() {
    let (_dir, store) = store();
    let mut parent = store.create("m");
    parent.record_prompt("one").unwrap();
    parent.push(user("one")).unwrap();
    let long = "l".repeat(20_000);
    parent.push(user(&long)).unwrap();
    let mut fork = store.fork(&parent, Some("idea")).unwrap();
    assert_ne!(fork.id(), parent.id());
    assert!(fork.path().is_file(), "the fork is on disk at once");
    parent.push(user("parent goes on")).unwrap();
    fork.push(user("fork goes on")).unwrap();
    let (parent_id, fork_id) = (parent.id().to_owned(), fork.id().to_owned());
    drop((parent, fork));
    store.delete(&parent_id, None).unwrap();
    let fork = store.resume(&fork_id).unwrap();
    assert_eq!(texts(&fork), ["one", long.as_str(), "fork goes on"]);
    assert_eq!(fork.prompt_history(), ["one"]);
    let origin = fork.session().fork.as_ref().unwrap();
    assert_eq!(origin.parent_session_id, parent_id);
    assert_eq!(origin.branch_name.as_deref(), Some("idea"));
    assert_eq!(store.list(None)[0].fork.as_ref(), Some(origin));
}

#[test]
fn delete_refuses_a_session_in_use_and_removes_its_side_files() {
    let (_dir, store) = store();
    let path = stored(&store, &[&"x".repeat(20_000)]);
    let open = store.resume("latest").unwrap();
    assert!(matches!(store.delete(open.id(), None), Err(SessionError::Locked { .. })));
    let id = open.id().to_owned();
    drop(open);
    assert!(matches!(store.delete(&id, Some(&id)), Err(SessionError::Locked { .. })));
    store.delete(&id, None).unwrap();
    assert!(!path.exists() && !path.with_extension("d").exists());
    assert!(store.list(None).is_empty());
}

#[test]
fn a_session_file_that_came_with_the_project_never_passes_for_the_latest() {
    let (_dir, store) = store();
    let own = stored(&store, &["mine"]);
    let planted = fixture(&store, "claw-code.jsonl", "session-9999999999999-0.jsonl");
    append(&planted, b"{\"type\":\"message\",\"timestamp_ms\":9999999999999,\"message\":{\"role\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"x\"}]}}\n");
    assert_eq!(store.list(None)[0].path, planted, "it is listed");
    assert_eq!(store.resume("latest").unwrap().path(), own);
}

#[test]
fn a_copied_file_is_a_session_of_its_own_name() {
    let (_dir, store) = store();
    let path = stored(&store, &["one"]);
    fs::copy(&path, path.with_file_name("copy.jsonl")).unwrap();
    assert_eq!(store.list(None).len(), 2);
    assert_eq!(store.resume("copy").unwrap().id(), "copy");
}

#[test]
fn a_huge_last_record_does_not_spoil_the_list() {
    let (_dir, store) = store();
    let path = stored(&store, &["one", "two"]);
    append(&path, format!("{{\"type\":\"message\",\"x\":\"{}", "y".repeat(17 << 20)).as_bytes());
    let entry = &store.list(None)[0];
    assert_eq!((entry.title.as_str(), entry.message_count), ("one", 2));
}

#[test]
fn usage_that_cannot_be_read_does_not_cost_the_message() {
    let (_dir, store) = store();
    let path = stored(&store, &["one"]);
    append(&path, b"{\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"usage\":{\"input_tokens\":null},\"blocks\":[{\"type\":\"text\",\"text\":\"two\"}]}}\n");
    let open = store.resume("latest").unwrap();
    assert_eq!(texts(&open), ["one", "two"]);
    assert_eq!(open.session().messages[1].usage, None);
}
