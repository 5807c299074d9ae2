//! `claw -p`: the answer on standard output, everything else beside it, and honest exit codes.

use std::process::Output;

use claw_tests::harness::{Harness, fake_claude_binary};
use claw_tests::mock_api::{MessagesStream, MockApi, Reply};
use claw_tests::story::{beside, prompts, tool_result};

fn out(output: &Output) -> (Option<i32>, String, String) {
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn the_answer_is_all_of_standard_output() {
    let api = MockApi::start();
    api.push(MessagesStream::new().text(&["Hel", "lo."]).stop("end_turn", 3).reply());
    let output = beside(&api).run_without_terminal(&["-p", "say hello"], "");
    assert_eq!(out(&output), (Some(0), "Hello.\n".to_owned(), String::new()));
    assert_eq!(prompts(&api.requests()[0]), ["say hello"]);
}

#[test]
fn a_prompt_can_be_piped_in() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Read."));
    let output = beside(&api).run_without_terminal(&["-p"], "from a pipe\n");
    assert_eq!(out(&output).0, Some(0));
    assert_eq!(prompts(&api.requests()[0])[0].trim_end(), "from a pipe");
}

#[test]
fn what_needs_permission_is_denied_and_said() {
    let api = MockApi::start();
    let call = MessagesStream::new().tool_use("toolu_1", "bash", r#"{"command":"touch marker"}"#);
    api.push(call.stop("tool_use", 5).reply());
    api.push(MessagesStream::say("Not without you."));
    let harness = beside(&api);
    let (code, stdout, stderr) = out(&harness.run_without_terminal(&["-p", "go"], ""));
    assert_eq!(code, Some(0));
    assert!(stdout.ends_with("Not without you.\n"), "{stdout}");
    assert!(stderr.contains("bash was denied"), "{stderr}");
    assert!(!harness.workspace().join("marker").exists());
    let (result, is_error) = tool_result(&api.requests()[1], "toolu_1").expect("a result");
    assert!(is_error && result.contains("nobody can be asked"), "{result}");
}

#[test]
fn a_mode_on_the_command_line_allows() {
    let api = MockApi::start();
    let call = MessagesStream::new().tool_use("toolu_1", "bash", r#"{"command":"touch marker"}"#);
    api.push(call.stop("tool_use", 5).reply());
    api.push(MessagesStream::say("Done."));
    let harness = beside(&api);
    let arguments = ["-p", "go", "--permission-mode", "danger-full-access"];
    assert_eq!(out(&harness.run_without_terminal(&arguments, "")).0, Some(0));
    assert!(harness.workspace().join("marker").exists());
}

#[test]
fn failures_have_codes_of_their_own() {
    let api = MockApi::start();
    api.push(Reply::error(401, "authentication_error", "invalid x-api-key"));
    let (code, stdout, stderr) = out(&beside(&api).run_without_terminal(&["-p", "go"], ""));
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("Check ANTHROPIC_API_KEY"), "{stderr}");

    api.push(MessagesStream::new().text(&["Cut"]).stop("max_tokens", 3).reply());
    let (code, stdout, stderr) = out(&beside(&api).run_without_terminal(&["-p", "go"], ""));
    assert_eq!((code, stdout.as_str()), (Some(3), "Cut\n"));
    assert!(stderr.contains("output limit"), "{stderr}");

    let (code, _, stderr) = out(&beside(&api).run_without_terminal(&["-p"], "  \n"));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("the prompt is empty"), "{stderr}");

    let (code, ..) = out(&beside(&api).run_without_terminal(&["--no-such-option"], ""));
    assert_eq!(code, Some(2));
}

#[test]
fn without_a_terminal_the_full_screen_says_so_and_names_the_plain_form() {
    let (code, stdout, stderr) = out(&Harness::new().run_without_terminal(&["tui"], ""));
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("terminal") && stderr.contains("claw -p"), "{stderr}");
}

#[test]
fn a_missing_key_is_named() {
    let arguments = ["-p", "go", "--backend", "anthropic"];
    let (code, _, stderr) = out(&Harness::new().run_without_terminal(&arguments, ""));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("ANTHROPIC_API_KEY is not set"), "{stderr}");
}

#[test]
fn without_any_backend_nothing_is_pretended() {
    let (code, stdout, stderr) = out(&Harness::new().run_without_terminal(&["-p", "go"], ""));
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("no backend is configured"), "{stderr}");
    assert!(stderr.contains("ANTHROPIC_API_KEY") && stderr.contains("--backend"), "{stderr}");
    let demo = Harness::new().env("CLAW_DEMO_PACE_MS", "0");
    let (code, stdout, _) =
        out(&demo.run_without_terminal(&["-p", "hello", "--backend", "demo"], ""));
    assert_eq!(code, Some(0));
    assert!(!stdout.is_empty());
}

#[test]
fn without_the_program_of_claude_code_its_backend_says_what_to_do() {
    let arguments = ["-p", "go", "--backend", "claude"];
    let harness = Harness::new().env("PATH", "/nowhere");
    let (code, stdout, stderr) = out(&harness.run_without_terminal(&arguments, ""));
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("install Claude Code, put it on PATH"), "{stderr}");
}

#[test]
fn in_a_folder_that_nobody_trusted_claude_code_is_not_started() {
    let folder = fake_claude_binary().parent().unwrap().to_str().unwrap();
    let home = tempfile::tempdir().unwrap();
    let settings = home.path().join(".claw.json");
    let program = serde_json::json!({ "workers": { "program": fake_claude_binary() } });
    std::fs::write(settings, program.to_string()).unwrap();
    let arguments = ["-p", "go", "--backend", "claude"];
    let harness = Harness::new().env("PATH", folder).env("HOME", home.path().to_str().unwrap());
    let (code, stdout, stderr) = out(&harness.run_without_terminal(&arguments, ""));
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("is not trusted"), "{stderr}");
}

#[test]
fn a_piped_answer_is_text_alone_whatever_its_pieces() {
    let api = MockApi::start();
    let pieces = ["a\tb \x1b]0;OW", "NED\x07\x1b[3", "1mred\x1b[", "0m.\n"];
    api.push(MessagesStream::new().text(&pieces).stop("end_turn", 3).reply());
    let output = beside(&api).run_without_terminal(&["-p", "go"], "");
    assert_eq!(out(&output).1, "a\tb red.\n\n");
}

#[test]
fn blank_lines_stand_only_between_texts() {
    let api = MockApi::start();
    let read = || MessagesStream::new().tool_use("toolu_1", "glob_search", r#"{"pattern":"*"}"#);
    api.push(read().stop("tool_use", 5).reply());
    api.push(
        MessagesStream::new()
            .text(&["One."])
            .tool_use("toolu_2", "glob_search", r#"{"pattern":"*"}"#)
            .stop("tool_use", 5)
            .reply(),
    );
    api.push(read().stop("tool_use", 5).reply());
    api.push(MessagesStream::say("Two."));
    let output = beside(&api).run_without_terminal(&["-p", "go"], "");
    assert_eq!(out(&output), (Some(0), "One.\n\nTwo.\n".to_owned(), String::new()));
}

#[test]
fn an_answer_without_a_text_is_told() {
    let api = MockApi::start();
    api.push(MessagesStream::new().stop("end_turn", 1).reply());
    let (code, stdout, stderr) = out(&beside(&api).run_without_terminal(&["-p", "go"], ""));
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    assert!(stderr.contains("without a text"), "{stderr}");
}

#[test]
fn an_error_from_outside_brings_no_sequence_and_says_how_long_to_wait() {
    let api = MockApi::start();
    let refusal = Reply::error(429, "rate_limit_error", "\u{1b}[31mslow\u{1b}[0m down");
    api.push(refusal.header("retry-after", "3600"));
    let (code, _, stderr) = out(&beside(&api).run_without_terminal(&["-p", "go"], ""));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("slow down. Try again in 60 min"), "{stderr}");
}

#[test]
fn a_command_that_names_a_protected_file_asks_in_every_mode() {
    let api = MockApi::start();
    let bash = |id: &str, command: &str| {
        let input = serde_json::json!({"command": command}).to_string();
        MessagesStream::new().tool_use(id, "bash", &input).stop("tool_use", 5).reply()
    };
    for mode in ["danger-full-access", "allow"] {
        let harness = beside(&api);
        api.push(bash("toolu_1", "echo x > .env"));
        api.push(MessagesStream::say("Not without you."));
        let arguments = ["-p", "go", "--permission-mode", mode];
        let (_, _, stderr) = out(&harness.run_without_terminal(&arguments, ""));
        assert!(stderr.contains("bash was denied"), "{stderr}");
        assert!(!harness.workspace().join(".env").exists(), "{mode}");
    }
}

#[test]
fn an_unknown_setting_is_told_once() {
    let api = MockApi::start();
    api.push(MessagesStream::say("Hello."));
    let harness = beside(&api).file(".claw/settings.json", r#"{"colour": "green"}"#);
    let (_, _, stderr) = out(&harness.run_without_terminal(&["-p", "go"], ""));
    assert_eq!(stderr.matches("colour").count(), 1, "{stderr}");
}

#[test]
fn a_hook_that_reaches_no_worker_says_nothing_and_is_no_failure() {
    let harness = Harness::new();
    for folder in ["/nonexistent", ""] {
        let arguments = ["hook", folder, "PermissionRequest"];
        let outcome = harness.run_without_terminal(&arguments, r#"{"tool_name": "Bash"}"#);
        assert_eq!(out(&outcome), (Some(0), String::new(), String::new()), "{folder:?}");
    }
}
