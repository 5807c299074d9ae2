//! Turns on the terminal, in both versions.

use claw_tests::mock_api::{Gate, MessagesStream, MockApi};

use super::{Setup, VERSIONS, results, said};

const ALLOW: &str = r#"{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}"#;
const DENY: &str = r#"{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "denied because of policy"}}}"#;

fn tool(id: &str, name: &str, input: &str) -> claw_tests::mock_api::Reply {
    MessagesStream::new().tool_use(id, name, input).stop("tool_use", 7).reply()
}

#[test]
fn a_text_turn_fires_its_hooks_and_is_written_down() {
    for version in VERSIONS {
        let api = MockApi::start();
        api.push(
            MessagesStream::new()
                .thinking(&["a ", "thought"], "c2ln")
                .text(&["Hel", "lo."])
                .stop("end_turn", 5)
                .reply(),
        );
        let mut fake = Setup::new(version).ready(&api);
        fake.submit("please greet me");
        assert_eq!(fake.wait_stop(1), "Hello.");
        let records = fake.leave();
        assert_eq!(fake.hooks.wait("SessionEnd", 1)["reason"], "prompt_input_exit");
        assert_eq!(
            fake.hooks.names(),
            ["SessionStart", "UserPromptSubmit", "MessageDisplay", "Stop", "SessionEnd"]
        );
        assert_eq!(said(&records), ["please greet me"]);
        let blocks: Vec<_> = records
            .iter()
            .filter(|record| record["type"] == "assistant")
            .map(|record| record["message"]["content"][0]["type"].clone())
            .collect();
        assert_eq!(blocks, ["thinking", "text"]);
        assert!(records.iter().any(|record| record["subtype"] == "turn_duration"));
        let request = &api.requests().into_iter().find(|one| one.method == "POST").unwrap();
        assert_eq!(request.path, "/v1/messages?beta=true");
        assert_eq!(request.header("x-claude-code-session-id"), Some(super::SESSION));
    }
}

#[test]
fn tools_run_after_a_yes_of_the_hook() {
    for version in VERSIONS {
        let api = MockApi::start();
        let mut fake = Setup::new(version).verdict(ALLOW).ready(&api);
        let note = fake.running.workspace().join("note.txt");
        let at = note.display();
        api.push(tool("toolu_1", "Bash", r#"{"command":"echo alpha && echo beta >&2"}"#));
        let write = format!(r#"{{"file_path":"{at}","content":"line one\nline two\n"}}"#);
        api.push(tool("toolu_2", "Write", &write));
        api.push(tool("toolu_3", "Read", &format!(r#"{{"file_path":"{at}"}}"#)));
        let edit =
            format!(r#"{{"file_path":"{at}","old_string":"line two","new_string":"line 2"}}"#);
        api.push(tool("toolu_4", "Edit", &edit));
        api.push(tool("toolu_5", "Bash", r#"{"command":"ls /nonexistent-dir-xyz"}"#));
        api.push(MessagesStream::say("All done."));
        fake.submit("use your tools");
        assert_eq!(fake.wait_stop(1), "All done.");
        let records = fake.leave();
        assert_eq!(std::fs::read_to_string(&note).unwrap(), "line one\nline 2\n");
        let results = results(&records);
        assert_eq!(results[0], ("alpha\nbeta".to_owned(), false));
        assert!(results[4].0.starts_with("Exit code 2\n") && results[4].1);
        // A harmless command and reading ask nobody.
        assert_eq!(fake.fired("PreToolUse"), 5);
        assert_eq!(fake.fired("PermissionRequest"), 3);
        assert_eq!((fake.fired("PostToolUse"), fake.fired("PostToolUseFailure")), (4, 1));
        let asked = fake.hooks.wait("PermissionRequest", 1);
        assert!(asked["tool_use_id"].is_null());
    }
}

#[test]
fn a_no_of_the_hook_goes_to_the_model_and_the_turn_goes_on() {
    for version in VERSIONS {
        let api = MockApi::start();
        api.push(tool("toolu_1", "Bash", r#"{"command":"touch made.txt"}"#));
        api.push(MessagesStream::say("Then not."));
        let mut fake = Setup::new(version).verdict(DENY).ready(&api);
        fake.submit("make a file");
        assert_eq!(fake.wait_stop(1), "Then not.");
        let records = fake.leave();
        assert_eq!(results(&records), [("denied because of policy".to_owned(), true)]);
        assert!(!fake.running.workspace().join("made.txt").exists());
    }
}

#[test]
fn a_prompt_during_a_tool_is_absorbed_by_the_turn() {
    for version in VERSIONS {
        let api = MockApi::start();
        let mut fake = Setup::new(version).ready(&api);
        let pipe = fake.running.workspace().join("go");
        let wait = format!("cat '{}'", pipe.display());
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        api.push(tool("toolu_1", "Bash", &format!(r#"{{"command":"{wait}"}}"#)));
        api.push(MessagesStream::say("Heard."));
        fake.submit("wait for me");
        fake.hooks.wait("PreToolUse", 1);
        fake.submit("one more thing");
        fake.wait_record("enqueue", |record| record["operation"] == "enqueue");
        std::fs::write(&pipe, "went\n").unwrap();
        assert_eq!(fake.wait_stop(1), "Heard.");
        let records = fake.leave();
        assert!(records.iter().any(|record| record["operation"] == "remove"));
        assert_eq!(said(&records), ["wait for me"]);
        let expected = if version == "332" { 2 } else { 1 };
        assert_eq!(fake.fired("UserPromptSubmit"), expected);
        assert_eq!(api.requests().last().unwrap().last_user_text(), "one more thing");
    }
}

#[test]
fn prompts_during_text_become_the_next_turn_together() {
    for version in VERSIONS {
        let api = MockApi::start();
        let gate = Gate::new();
        api.push(
            MessagesStream::new()
                .open_text(&["Long"])
                .wait(&gate)
                .text_delta(0, " text.")
                .block_stop(0)
                .stop("end_turn", 5)
                .reply(),
        );
        api.push(MessagesStream::say("Both heard."));
        let mut fake = Setup::new(version).ready(&api);
        fake.submit("tell me much");
        gate.wait_reached(1);
        for text in ["second", "third"] {
            fake.submit(text);
            fake.wait_record(text, |record| record["content"] == text);
        }
        gate.release();
        assert_eq!(fake.wait_stop(2), "Both heard.");
        let records = fake.leave();
        assert_eq!(said(&records), ["tell me much", "second", "third"]);
        assert_eq!(fake.fired("UserPromptSubmit"), 3);
    }
}

#[test]
fn compaction_has_hooks_of_its_own_and_no_stop() {
    for version in VERSIONS {
        let api = MockApi::start();
        api.push(MessagesStream::say("First."));
        api.push(MessagesStream::say("<summary>\nAll of it.\n</summary>"));
        let mut fake = Setup::new(version).ready(&api);
        fake.submit("begin");
        fake.wait_stop(1);
        fake.submit("/compact");
        let after = fake.hooks.wait("PostCompact", 1);
        assert_eq!(after["compact_summary"], "<summary>\nAll of it.\n</summary>");
        let records = fake.leave();
        assert!(records.iter().any(|record| record["subtype"] == "compact_boundary"));
        assert_eq!((fake.fired("Stop"), fake.fired("UserPromptSubmit")), (1, 1));
        assert_eq!(fake.hooks.wait("SessionStart", 2)["source"], "compact");
    }
}

#[test]
fn a_sub_agent_reports_as_its_version_does() {
    for version in VERSIONS {
        let api = MockApi::start();
        let mut fake = Setup::new(version).ready(&api);
        api.answer(|request| {
            let agent = request.header("x-claude-code-agent-id").is_some();
            claw_tests::claude::housekeeping(request)
                .or_else(|| agent.then(|| MessagesStream::say("Small job done.")))
        });
        let input =
            r#"{"description":"Small job","prompt":"Do it.","subagent_type":"general-purpose"}"#;
        api.push(tool("toolu_1", "Agent", input));
        api.push(MessagesStream::say("Delegated."));
        api.push(MessagesStream::say("It is done."));
        fake.submit("delegate this");
        assert_eq!(fake.wait_stop(1), "Delegated.");
        let done = fake.hooks.wait("SubagentStop", 1);
        assert_eq!(done["last_assistant_message"], "Small job done.");
        let own = done["agent_transcript_path"].as_str().unwrap();
        if version == "332" {
            assert_eq!(fake.wait_stop(2), "It is done.");
            let prompt = fake.hooks.wait("UserPromptSubmit", 2);
            assert!(prompt["prompt"].as_str().unwrap().starts_with("<task-notification>"));
        }
        fake.leave();
        let sidechain = claw_tests::claude::records(own.as_ref());
        assert!(sidechain.iter().all(|record| record["isSidechain"] == true));
        assert!(
            own.replace(".jsonl", ".meta.json").parse::<std::path::PathBuf>().unwrap().exists()
        );
    }
}
