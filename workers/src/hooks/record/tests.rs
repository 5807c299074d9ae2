use proptest::prelude::*;

use super::*;
use crate::testing::{fixture, fixtures};

fn record(name: &str) -> HookRecord {
    HookRecord::parse(fixture(&format!("hooks/{name}.json")).as_bytes()).unwrap()
}

#[test]
fn every_recorded_payload_of_both_versions_is_read() {
    let mut read = 0;
    for version in ["2.1.197", "2.1.332"] {
        for entry in std::fs::read_dir(fixtures().join("hooks").join(version)).unwrap() {
            let path = entry.unwrap().path();
            let record = HookRecord::parse(&std::fs::read(&path).unwrap()).unwrap();
            let file = path.file_stem().unwrap().to_string_lossy().into_owned();
            let event = file.split('-').next().unwrap();
            assert!(!matches!(record.event, HookEvent::Unknown { .. }), "{file}");
            assert!(format!("{:?}", record.event).starts_with(event), "{file}: {:?}", record.event);
            assert_eq!(record.session_id.len(), 36);
            assert!(record.transcript_path.is_some() && record.cwd.is_some());
            read += 1;
        }
    }
    assert!(read >= 76, "{read}");
}

#[test]
fn the_fields_of_each_event_arrive() {
    let start = record("2.1.332/SessionStart-startup");
    let model = Some("claude-opus-5-5".to_owned());
    assert_eq!(start.event, HookEvent::SessionStart { source: "startup".to_owned(), model });
    assert_eq!(start.prompt_id, None);
    let asked = record("2.1.332/PermissionRequest-Bash-with-suggestions");
    let HookEvent::PermissionRequest { tool, suggestions } = &asked.event else { panic!() };
    let pre = record("2.1.332/PreToolUse-Bash");
    let HookEvent::PreToolUse { tool_use_id, .. } = &pre.event else { panic!() };
    assert_eq!(tool_use_id, "toolu_mock_4be35c0423f8");
    assert_eq!(tool.name, "Bash");
    assert_eq!(tool.input, r#"{"command":"touch made-by-bash.txt","description":"Create a file"}"#);
    assert!(suggestions.as_ref().unwrap().starts_with("[{"));
    assert_eq!(
        (asked.effort.as_deref(), asked.permission_mode.as_deref()),
        (Some("medium"), Some("default"))
    );
    let failed = record("2.1.332/PostToolUseFailure").event;
    let HookEvent::PostToolUseFailure { error, is_interrupt, duration, .. } = failed else {
        panic!()
    };
    assert!(error.starts_with("Exit code 2") && !is_interrupt);
    assert_eq!(duration, Some(Duration::from_millis(91)));
    let stop = record("2.1.332/Stop-background-task").event;
    let HookEvent::Stop { background_tasks, last_assistant_message, .. } = stop else { panic!() };
    assert_eq!(background_tasks[0].id, "a86626a257a458d63");
    assert_eq!(background_tasks[0].status.as_deref(), Some("running"));
    assert_eq!(last_assistant_message.as_deref(), Some("The sub-agent has reported."));
    let failure = record("2.1.332/StopFailure-rate_limit").event;
    assert!(matches!(failure, HookEvent::StopFailure { error, .. } if error == "rate_limit"));
    let agent = record("2.1.332/SubagentStop");
    assert_eq!(agent.agent_id.as_deref(), Some("a86626a257a458d63"));
    let display = record("2.1.197/MessageDisplay-final").event;
    assert!(matches!(display, HookEvent::MessageDisplay { index: 2, last: true, .. }));
    assert_eq!(record("2.1.332/PreCompact").event, HookEvent::PreCompact { automatic: false });
}

#[test]
fn what_is_unknown_or_malformed_is_typed() {
    let unknown = HookRecord::parse(br#"{"session_id":"s","hook_event_name":"Setup","x":1}"#);
    assert_eq!(unknown.unwrap().event, HookEvent::Unknown { name: "Setup".to_owned() });
    let table: [(&str, RecordError); 7] = [
        ("", RecordError::NotAnObject),
        ("[1]", RecordError::NotAnObject),
        ("{\"session_id\":\"s\"", RecordError::NotAnObject),
        ("{}", RecordError::Missing("hook_event_name")),
        (r#"{"hook_event_name":"Stop","session_id":7}"#, RecordError::Missing("session_id")),
        (
            r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"B"}"#,
            RecordError::Missing("tool_use_id"),
        ),
        (
            r#"{"hook_event_name":"UserPromptSubmit","session_id":"s"}"#,
            RecordError::Missing("prompt"),
        ),
    ];
    for (payload, error) in table {
        assert_eq!(HookRecord::parse(payload.as_bytes()), Err(error), "{payload}");
    }
    // Extras of another type count as missing.
    let odd = br#"{"hook_event_name":"Stop","session_id":"s","effort":"high","background_tasks":{"a":1},"stop_hook_active":"no","cwd":3}"#;
    let odd = HookRecord::parse(odd).unwrap();
    assert_eq!((odd.effort.as_deref(), odd.cwd), (Some("high"), None));
}

proptest! {
    #[test]
    fn no_payload_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = HookRecord::parse(&bytes);
    }

    #[test]
    fn no_cut_and_no_changed_byte_of_a_real_payload_makes_it_panic(
        cut in 0usize..1600, at in 0usize..1600, byte in any::<u8>(),
    ) {
        let mut payload = fixture("hooks/2.1.332/PostToolUse-Agent.json").into_bytes();
        let at = at % payload.len();
        payload[at] = byte;
        payload.truncate(cut);
        let _ = HookRecord::parse(&payload);
    }
}
