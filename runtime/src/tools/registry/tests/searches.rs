//! Searches in a small workspace.

use super::*;

fn searchable() -> Bench {
    let bench = bench();
    bench.file(".gitignore", "ignored/\n");
    bench.file("src/a.rs", "fn one() {}\nfn two() {}\n// end\n");
    bench.file("src/b.rs", "one\r\n");
    bench.file("notes.md", "start {\n  one\n}\n");
    bench.file("ignored/c.rs", "one\n");
    bench.file(".hidden/d.rs", "one\n");
    bench.file(".git/e.rs", "one\n");
    fs::write(bench.dir.path().join("binary.rs"), b"one\0\0").unwrap();
    bench
}

#[tokio::test]
async fn glob_finds_newest_first_without_ignored_and_hidden_files() {
    let mut bench = searchable();
    let old = fs::File::open(bench.dir.path().join("src/b.rs")).unwrap();
    old.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let older = fs::File::open(bench.dir.path().join("binary.rs")).unwrap();
    older.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(9)).unwrap();
    for (input, expected) in [
        (json!({"pattern": "*.rs"}), "src/a.rs\nbinary.rs\nsrc/b.rs\n"),
        (json!({"pattern": "src/*.rs"}), "src/a.rs\nsrc/b.rs\n"),
        (json!({"pattern": "a.rs", "path": "src"}), "src/a.rs\n"),
        (json!({"pattern": ".hidden/*"}), ".hidden/d.rs\n"),
        (json!({"pattern": "*", "path": ".hidden"}), ".hidden/d.rs\n"),
        (
            json!({"pattern": "*.py"}),
            "No files match (hidden and ignored files were not looked at).\n",
        ),
    ] {
        let outcome = bench.run("glob_search", input).await;
        assert_eq!((outcome.output.as_str(), outcome.is_error), (expected, false));
    }
    let outcome = bench.run("glob_search", json!({"pattern": "src/[a"})).await;
    assert!(outcome.is_error && outcome.output.contains("character 5"), "{}", outcome.output);
    for n in 0..130 {
        bench.file(&format!("many/{n}.txt"), "");
    }
    let outcome = bench.run("glob_search", json!({"pattern": "many/*"})).await;
    assert_eq!(outcome.output.lines().count(), 101);
    assert!(
        outcome
            .output
            .ends_with("[truncated: the 100 newest of 130 files; use a narrower pattern]\n")
    );
    assert_eq!(
        outcome.facts,
        Some(ToolFacts::Matches { matches: 130, files: 130, truncated: true })
    );
}

#[tokio::test]
async fn grep_shows_files_lines_or_counts_and_no_match_is_success() {
    let mut bench = searchable();
    let all = json!({"pattern": "one"});
    for (input, expected) in [
        (all, "notes.md\nsrc/a.rs\nsrc/b.rs\n"),
        (
            json!({"pattern": "ONE|two", "-i": true, "output_mode": "content", "type": "rust"}),
            "src/a.rs:1:fn one() {}\nsrc/a.rs:2:fn two() {}\nsrc/b.rs:1:one\n",
        ),
        (json!({"pattern": "fn", "output_mode": "count", "glob": "*.rs"}), "src/a.rs:2\n"),
        (
            json!({"pattern": "two", "output_mode": "content", "-C": 1, "path": "src/a.rs"}),
            "src/a.rs-1-fn one() {}\nsrc/a.rs:2:fn two() {}\nsrc/a.rs-3-// end\n",
        ),
        (
            json!({"pattern": "one$", "output_mode": "content", "-n": false, "path": "src"}),
            "src/b.rs:one\n",
        ),
        (
            json!({"pattern": "\\{.*?\\}", "multiline": true, "output_mode": "content", "glob": "*.md"}),
            "notes.md:1:start {\nnotes.md:2:  one\nnotes.md:3:}\n",
        ),
        (
            json!({"pattern": "one", "head_limit": 1}),
            "notes.md\n[truncated after 1 entries; there are more. Narrow the search, or read on with offset]\n",
        ),
        (json!({"pattern": "one", "offset": 2, "head_limit": 1}), "src/b.rs\n"),
        (json!({"pattern": "nowhere"}), "No matches found.\n"),
    ] {
        let outcome = bench.run("grep_search", input.clone()).await;
        assert_eq!((outcome.output.as_str(), outcome.is_error), (expected, false), "{input}");
    }
    for (input, expected) in [
        (json!({"pattern": "a(b"}), "    a(b\n     ^\nerror: unclosed group"),
        (json!({"pattern": "a\\nb"}), "set multiline to match across lines"),
        (json!({"pattern": "a", "type": "cobolt"}), "file type cobolt is not known"),
        (json!({"pattern": "a", "path": "nope"}), "nope does not exist"),
    ] {
        let outcome = bench.run("grep_search", input.clone()).await;
        assert!(outcome.is_error && outcome.output.contains(expected), "{}", outcome.output);
    }
}

#[tokio::test]
async fn grep_stops_at_250_entries_unless_told_otherwise() {
    let mut bench = bench();
    bench.file("a", &"hit\n".repeat(300));
    let input = json!({"pattern": "hit", "output_mode": "content"});
    let outcome = bench.run("grep_search", input).await;
    assert_eq!(outcome.output.lines().count(), 251);
    assert!(matches!(
        outcome.facts,
        Some(ToolFacts::Matches { matches: 250, files: 1, truncated: true })
    ));
    let all = json!({"pattern": "hit", "output_mode": "content", "head_limit": 0});
    let outcome = bench.run("grep_search", all).await;
    assert_eq!(outcome.output.lines().count(), 300);
    assert!(matches!(
        outcome.facts,
        Some(ToolFacts::Matches { matches: 300, files: 1, truncated: false })
    ));
}
