//! File tools on real files.

use super::*;

#[tokio::test]
async fn reading_numbers_lines_and_says_how_to_read_on() {
    let mut bench = bench();
    let lines = (1..=2_500).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
    bench.file("long", &lines);
    bench.file("wide", &format!("{}\nend", "x".repeat(2_500)));
    bench.file("empty", "");
    let outcome = bench.run("read_file", json!({"path": "long"})).await;
    assert!(outcome.output.starts_with("     1\tline 1\n     2\tline 2\n"));
    assert!(outcome.output.ends_with("[lines 1-2000 of 2500; read on with offset 2001]\n"));
    assert_eq!(
        outcome.facts,
        Some(ToolFacts::Read {
            path: "long".into(),
            first_line: 1,
            lines: 2_000,
            total_lines: 2_500
        })
    );
    let outcome = bench.run("read_file", json!({"path": "long", "offset": 2_500})).await;
    assert_eq!(outcome.output, "  2500\tline 2500\n");
    let outcome = bench.run("read_file", json!({"path": "long", "offset": 2_501})).await;
    assert!(outcome.is_error && outcome.output.contains("has 2500 lines"));
    let outcome = bench.run("read_file", json!({"path": "wide"})).await;
    assert!(outcome.output.contains(" [500 more characters of this line]\n     2\tend\n"));
    let outcome = bench.run("read_file", json!({"path": "empty"})).await;
    assert_eq!((outcome.output.as_str(), outcome.is_error), ("(the file is empty)", false));
}

#[tokio::test]
async fn files_outside_the_workspace_are_neither_read_nor_written() {
    let mut bench = bench();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    symlink(outside.path(), bench.dir.path().join("way")).unwrap();
    for path in ["way/secret", "way/new", "../x", "/etc/claw-test"] {
        for (tool, input) in [
            ("read_file", json!({ "path": path })),
            ("write_file", json!({"path": path, "content": "x"})),
            ("edit_file", json!({"path": path, "old_string": "s", "new_string": "x"})),
            ("glob_search", json!({"pattern": "*", "path": path})),
            ("grep_search", json!({"pattern": "s", "path": path})),
        ] {
            let outcome = bench.run(tool, input).await;
            assert!(outcome.is_error && outcome.output.contains("outside the workspace"), "{path}");
        }
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn writing_creates_parents_replaces_whole_files_and_gives_the_diff() {
    let mut bench = bench();
    let outcome = bench.run("write_file", json!({"path": "a/b/c.txt", "content": "x\ny\n"})).await;
    assert_eq!(
        outcome.facts,
        Some(ToolFacts::Diff {
            path: "a/b/c.txt".into(),
            diff: "@@ -0,0 +1,2 @@\n+x\n+y\n".into(),
            added: 2,
            removed: 0,
            created: true,
        })
    );
    let outcome = bench.run("write_file", json!({"path": "a/b/c.txt", "content": "x\nz\n"})).await;
    assert!(outcome.output.starts_with("Replaced a/b/c.txt"));
    assert!(matches!(
        outcome.facts,
        Some(ToolFacts::Diff { added: 1, removed: 1, created: false, .. })
    ));
    assert_eq!(bench.content("a/b/c.txt"), "x\nz\n");
}

#[tokio::test]
async fn an_edit_is_exact_or_says_why_not_and_changes_nothing() {
    let mut bench = bench();
    let original = "one two\n  two\nthree\n";
    bench.file("a", original);
    bench.file("unread", original);
    bench.run("read_file", json!({"path": "a"})).await;
    for (path, old, new, all, expected) in [
        ("a", "four", "x", false, "not found in a; read the file again"),
        ("a", "     1\tone two", "x", false, "line numbers that read_file shows"),
        ("a", "one two\ntwo", "x", false, "would match if white space were ignored"),
        ("a", "two", "x", false, "occurs 2 times in a; take more lines around it"),
        ("a", "one", "one", false, "equal; there is nothing to change"),
        ("a", "", "x", false, "old_string is empty"),
        ("unread", "two", "x", true, "was not read yet; read it first"),
        ("missing", "two", "x", true, "does not exist"),
    ] {
        let input = json!({"path": path, "old_string": old, "new_string": new, "replace_all": all});
        let outcome = bench.run("edit_file", input).await;
        assert!(outcome.is_error && outcome.output.contains(expected), "{}", outcome.output);
    }
    assert_eq!(bench.content("a"), original);
    let all = json!({"path": "a", "old_string": "two", "new_string": "2", "replace_all": true});
    assert_eq!(bench.run("edit_file", all).await.output, "Edited a in 2 places.");
    assert_eq!(bench.content("a"), "one 2\n  2\nthree\n");
    // Unread, but there is no doubt which place is meant.
    let unique = json!({"path": "unread", "old_string": "three", "new_string": "3"});
    assert!(!bench.run("edit_file", unique).await.is_error);
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    let mut bench = bench();
    bench.file("a", "mine\n");
    bench.run("read_file", json!({"path": "a"})).await;
    bench.file("a", "mine\nand theirs\n");
    let edit = json!({"path": "a", "old_string": "mine", "new_string": "x"});
    let write = json!({"path": "a", "content": "x"});
    for (tool, input) in [("edit_file", edit.clone()), ("write_file", write)] {
        let outcome = bench.run(tool, input).await;
        assert!(outcome.is_error && outcome.output.contains("changed since it was read"));
    }
    assert_eq!(bench.content("a"), "mine\nand theirs\n");
    bench.run("read_file", json!({"path": "a"})).await;
    assert!(!bench.run("edit_file", edit).await.is_error);
    // Own changes do not count as foreign.
    let again = json!({"path": "a", "old_string": "theirs", "new_string": "ours"});
    assert!(!bench.run("edit_file", again).await.is_error);
    assert_eq!(bench.content("a"), "x\nand ours\n");
}

#[tokio::test]
async fn crlf_files_keep_crlf() {
    let mut bench = bench();
    bench.file("a", "one\r\ntwo\r\nthree\r\n");
    let edit = json!({"path": "a", "old_string": "one\ntwo", "new_string": "1\n1.5\n2"});
    assert!(!bench.run("edit_file", edit).await.is_error);
    assert_eq!(bench.content("a"), "1\r\n1.5\r\n2\r\nthree\r\n");
    bench.run("write_file", json!({"path": "a", "content": "new\nlines\n"})).await;
    assert_eq!(bench.content("a"), "new\r\nlines\r\n");
}

#[tokio::test]
async fn a_preview_shows_the_diff_and_touches_nothing() {
    let bench = bench();
    bench.file("a", "one\n");
    let edit =
        call("e", "edit_file", &json!({"path": "a", "old_string": "one", "new_string": "1"}));
    assert_eq!(bench.registry.preview(&edit).unwrap(), "@@ -1 +1 @@\n-one\n+1\n");
    let write = call("w", "write_file", &json!({"path": "d/new", "content": "x\n"}));
    assert_eq!(bench.registry.preview(&write).unwrap(), "@@ -0,0 +1 @@\n+x\n");
    assert_eq!(bench.registry.preview(&call("b", "bash", &json!({"command": "ls"}))), None);
    assert_eq!(bench.content("a"), "one\n");
    assert!(!bench.dir.path().join("d").exists());
}
