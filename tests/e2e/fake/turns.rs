//! Turns on the terminal, in both versions.

use claw_tests::mock_api::{MessagesStream, MockApi};

use super::{Setup, VERSIONS};

#[test]
fn a_text_turn_fires_its_hooks_and_is_written_down() {
    for version in VERSIONS {
        let api = MockApi::start();
        api.push(MessagesStream::say("Hello."));
        let mut fake = Setup::new(version).ready(&api);
        fake.submit("please greet me");
        let stop = fake.hooks.wait("Stop", 1);
        assert_eq!(stop["last_assistant_message"], "Hello.");
        let records = fake.leave();
        let end = fake.hooks.wait("SessionEnd", 1);
        assert_eq!(end["reason"], "prompt_input_exit");
        let names = fake.hooks.names();
        assert_eq!(
            names,
            ["SessionStart", "UserPromptSubmit", "MessageDisplay", "Stop", "SessionEnd"]
        );
        let spoken: Vec<_> = records
            .iter()
            .filter(|record| record["type"] == "user" || record["type"] == "assistant")
            .map(|record| record["type"].as_str().unwrap())
            .collect();
        assert_eq!(spoken, ["user", "assistant"]);
        assert!(records.iter().any(|record| record["subtype"] == "turn_duration"));
    }
}
