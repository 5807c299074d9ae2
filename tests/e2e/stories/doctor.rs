//! `claw doctor` says what is there and what to do, and changes nothing.

use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use claw_tests::claude;
use claw_tests::harness::{Harness, fake_claude_binary};
use claw_tests::story::{KEY, files_below};
use serde_json::{Value, json};

/// A machine without anything: no key, no program but those of the system.
fn bare() -> Harness {
    Harness::without_arguments().env("PATH", "/usr/bin:/bin")
}

fn settings(claw: &Harness, value: &Value) {
    std::fs::create_dir_all(claw.home().join(".claw")).unwrap();
    std::fs::write(claw.home().join(".claw/settings.json"), value.to_string()).unwrap();
}

/// With the stand-in as the CLI, or another program.
fn with_program(program: impl AsRef<Path>) -> Harness {
    let claw = bare();
    settings(&claw, &json!({"workers": {"program": program.as_ref()}}));
    claw
}

fn doctor(claw: &Harness, arguments: &[&str]) -> (Option<i32>, String) {
    let all = [&["doctor"], arguments].concat();
    let Output { status, stdout, stderr } = claw.run_without_terminal(&all, "");
    let text = String::from_utf8(stdout).unwrap();
    assert!(stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    (status.code(), text)
}

#[track_caller]
fn check(claw: &Harness, arguments: &[&str], code: i32, says: &[&str]) -> String {
    let (status, text) = doctor(claw, arguments);
    assert_eq!(status, Some(code), "{text}");
    for words in says {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    text
}

#[test]
fn a_machine_without_anything_is_told_what_to_set() {
    let says = ["only the embedded demo would answer", "set ANTHROPIC_API_KEY", "One problem"];
    check(&bare(), &[], 4, &says);
}

#[test]
fn a_key_is_named_and_never_shown() {
    let claw = bare()
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_BASE_URL", "https://somebody:hidden@example.org/v9?token=hidden");
    let says = [
        "anthropic: ready, by ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL, at https://example.org/v9",
        "anthropic would answer",
        "Everything that is needed works.",
    ];
    for arguments in [&[][..], &["--json"]] {
        let (_, text) = doctor(&claw, arguments);
        assert!(!text.contains("hidden") && !text.contains(&KEY[..12]), "{text}");
    }
    check(&claw, &[], 0, &says);
}

#[test]
fn the_cli_its_version_and_its_login_are_found() {
    let claw = with_program(fake_claude_binary());
    let wanted = ["--backend", "claude"];
    check(&claw, &wanted, 7, &["version 2.1.332 in", "no login can be seen", "/login"]);
    std::fs::create_dir_all(claw.home().join(".claude")).unwrap();
    let secret = json!({"claudeAiOauth": {"accessToken": KEY}}).to_string();
    std::fs::write(claw.home().join(".claude/.credentials.json"), secret).unwrap();
    let text = check(&claw, &wanted, 0, &["logged in by a file of its own", "claude is asked for"]);
    assert!(!text.contains(&KEY[..12]), "{text}");
    assert!(text.contains("this folder is not trusted yet"), "{text}");
    let known = claude::settled(claw.workspace()).to_string();
    std::fs::write(claw.home().join(".claude.json"), known).unwrap();
    check(&claw, &wanted, 0, &["this folder is trusted"]);
    let claw = claw.env("CLAUDE_CODE_OAUTH_TOKEN", KEY);
    check(&claw, &wanted, 0, &["logged in by CLAUDE_CODE_OAUTH_TOKEN"]);
}

#[test]
fn a_cli_that_is_missing_is_a_problem_only_where_it_is_wanted() {
    let claw = with_program("/no/such/claude").env("OPENAI_API_KEY", KEY);
    check(&claw, &[], 0, &["claude: its program is not there", "npm install -g"]);
    check(&claw, &["--backend", "claude"], 5, &["/no/such/claude"]);
}

#[test]
fn a_program_that_is_no_cli_or_does_not_answer_is_told_apart() {
    let claw = bare();
    let other = claw.script("other", "#!/bin/sh\nprintf 'ls (GNU) 9.4\\033]0;x\\007\\n'\n");
    settings(&claw, &json!({"workers": {"program": other}}));
    let text = check(&claw, &["--backend", "claude"], 6, &["ls (GNU) 9.4"]);
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");

    let silent = claw.script("silent", "#!/bin/sh\nsleep 7131 & sleep 7131\n");
    settings(&claw, &json!({"workers": {"program": silent}}));
    let began = Instant::now();
    check(&claw, &["--backend", "claude"], 6, &["nothing within 5 s"]);
    assert!(began.elapsed() < Duration::from_secs(60));
    let is_left = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line == b"sleep\x007131\0"
    };
    // What was killed needs a moment to be gone.
    while Path::new("/proc").read_dir().unwrap().flatten().any(|entry| is_left(&entry)) {
        assert!(began.elapsed() < Duration::from_secs(60), "what it started is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_version_that_was_never_tried_is_noted() {
    for (version, says) in [("2.0.1", "older than 2.1.197"), ("2.9.0", "newer than 2.1.332")] {
        let claw = bare();
        let text = format!("#!/bin/sh\necho '{version} (Claude Code)'\n");
        let program = claw.script("claude", &text);
        settings(&claw, &json!({"workers": {"program": program}}));
        check(&claw, &["--backend", "claude"], 7, &[version, says]);
    }
}

#[test]
fn settings_that_are_not_understood_are_named_with_their_file() {
    let claw = bare().env("ANTHROPIC_API_KEY", KEY);
    std::fs::create_dir_all(claw.home().join(".claw")).unwrap();
    std::fs::write(claw.home().join(".claw/settings.json"), "{\"theme\": \"dark\",,}").unwrap();
    check(&claw, &[], 3, &[".claw/settings.json", "mend the file"]);
}

#[test]
fn a_folder_in_which_nothing_can_be_saved_is_a_problem() {
    let claw = bare().env("ANTHROPIC_API_KEY", KEY).file(".claw/sessions", "in the way");
    check(&claw, &[], 8, &["conversations cannot be saved", "is not a folder"]);
}

#[test]
fn scripts_get_the_same_as_json() {
    let claw = bare().env("ANTHROPIC_API_KEY", KEY);
    let (code, text) = doctor(&claw, &["--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &report["exitCode"]), (Some(0), &json!(0)));
    let checks = report["checks"].as_array().unwrap();
    let state = |id: &str| {
        let check = checks.iter().find(|check| check["id"] == id);
        check.unwrap_or_else(|| panic!("no {id} in {text}"))["state"].clone()
    };
    assert_eq!(state("backend.anthropic"), "ok");
    assert_eq!(state("backend.openai"), "unset");
    assert_eq!(state("claude.program"), "note");
    assert_eq!(state("sessions"), "ok");
}

#[test]
fn it_leaves_everything_as_it_was() {
    let claw = with_program(fake_claude_binary()).env("ANTHROPIC_API_KEY", KEY);
    let all = || (files_below(claw.home()), files_below(claw.workspace()));
    let folders =
        || [claw.home(), claw.workspace()].map(|folder| folder.read_dir().unwrap().count());
    let before = (all(), folders());
    doctor(&claw, &["--backend", "claude"]);
    assert_eq!((all(), folders()), before);
}
