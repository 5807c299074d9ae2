//! Turns that do not end well: interrupts, failures of the API, signals.

use claw_tests::mock_api::{Gate, MessagesStream, MockApi, Reply};

use super::{Setup, VERSIONS, results, said};

const ESC: &str = "\x1b";

#[test]
fn escape_while_text_streams_leaves_a_record_and_fires_nothing() {
    for version in VERSIONS {
        let api = MockApi::start();
        let gate = Gate::new();
        api.push(MessagesStream::new().open_text(&["Half"]).wait(&gate).reply());
        let mut fake = Setup::new(version).ready(&api);
        fake.submit("talk");
        gate.wait_reached(1);
        fake.running.wait_for("● Half");
        fake.running.send(ESC);
        fake.wait_record("the interrupt", |record| {
            record["message"]["content"][0]["text"] == "[Request interrupted by user]"
        });
        api.wait_for_hang_ups(1);
        let records = fake.leave();
        assert_eq!((fake.fired("Stop"), fake.fired("StopFailure")), (0, 0));
        assert!(!records.iter().any(|record| record["subtype"] == "turn_duration"));
        assert!(records.iter().any(|record| record["message"]["content"][0]["text"] == "Half"));
    }
}

#[test]
fn escape_in_a_tool_rejects_it() {
    for version in VERSIONS {
        let api = MockApi::start();
        api.push(
            MessagesStream::new()
                .tool_use("toolu_1", "Bash", r#"{"command":"echo $$ > pid; sleep 600"}"#)
                .stop("tool_use", 3)
                .reply(),
        );
        let mut fake = Setup::new(version).ready(&api);
        fake.submit("sleep");
        // Nobody answers the hook, so the dialog stands; Enter means Yes.
        fake.running.wait_for("Do you want to proceed?");
        fake.running.send("\r");
        let pid = fake.running.workspace().join("pid");
        fake.wait_for_file(&pid);
        fake.running.send(ESC);
        fake.wait_record("the interrupt", |record| {
            record["message"]["content"][0]["text"] == "[Request interrupted by user for tool use]"
        });
        let records = fake.leave();
        let results = results(&records);
        assert!(results[0].0.starts_with("The user doesn't want to proceed") && results[0].1);
        assert_eq!((fake.fired("PostToolUse"), fake.fired("PostToolUseFailure")), (0, 0));
    }
}

#[test]
fn escape_before_the_first_output_puts_the_prompt_back() {
    for version in VERSIONS {
        let api = MockApi::start();
        let gate = Gate::new();
        api.push(MessagesStream::say("never").wait_before_head(&gate));
        api.push(MessagesStream::say("Glued."));
        let mut fake = Setup::new(version).ready(&api);
        fake.submit("taken back");
        gate.wait_reached(1);
        fake.running.send(ESC);
        fake.running.wait_gone("Working");
        fake.submit(" and sent again");
        assert_eq!(fake.wait_stop(1), "Glued.");
        let records = fake.leave();
        assert_eq!(said(&records), ["taken back", "taken back and sent again"]);
    }
}

#[test]
fn failures_of_the_api_end_the_turn_with_their_class() {
    let cases = [
        (
            Reply::error(401, "authentication_error", "invalid x-api-key"),
            2,
            "authentication_failed",
        ),
        (Reply::error(400, "invalid_request_error", "bad"), 1, "unknown"),
        (Reply::error(404, "not_found_error", "model"), 2, "model_not_found"),
        (Reply::error(429, "rate_limit_error", "slow down"), 2, "rate_limit"),
        (Reply::error(529, "overloaded_error", "Overloaded"), 2, "server_error"),
    ];
    for version in VERSIONS {
        let api = MockApi::start();
        let mut fake = Setup::new(version).ready(&api);
        for (index, (reply, times, class)) in cases.iter().enumerate() {
            for _ in 0..*times {
                api.push(reply.clone().header("request-id", "req_mock"));
            }
            fake.submit("try");
            let failure = fake.hooks.wait("StopFailure", index + 1);
            assert_eq!(failure["error"], *class);
            fake.running.wait_gone("Working");
        }
        let records = fake.leave();
        let failures = records.iter().filter(|record| record["isApiErrorMessage"] == true);
        assert_eq!(failures.count(), cases.len());
        assert_eq!(fake.fired("Stop"), 0);
    }
}

#[test]
fn a_signal_ends_the_session_with_its_hook() {
    for version in VERSIONS {
        let api = MockApi::start();
        let fake = Setup::new(version).ready(&api);
        fake.running.signal(rustix::process::Signal::TERM);
        assert_eq!(fake.running.wait_back(), 143);
        assert_eq!(fake.hooks.wait("SessionEnd", 1)["reason"], "other");
    }
}
