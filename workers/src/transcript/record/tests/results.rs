use claw_runtime::tools::{TodoStatus, ToolFacts};
use serde_json::{Value, json};

use super::facts;
use crate::fact::{AgentEnd, DeniedBy, Fact};

fn results(content: Value, fields: Value) -> Vec<Fact> {
    let mut value = json!({"type": "user", "message": {}});
    value["message"]["content"] = content;
    let Value::Object(fields) = fields else { panic!("no fields") };
    value.as_object_mut().unwrap().extend(fields);
    facts(&value)
}

fn one(structured: Value) -> Vec<Fact> {
    let block = json!([{"type": "tool_result", "tool_use_id": "t", "content": "out"}]);
    let mut fields = json!({});
    fields["toolUseResult"] = structured;
    results(block, fields)
}

fn tool_facts(structured: Value) -> Option<ToolFacts> {
    match one(structured).pop() {
        Some(Fact::ToolResult { facts, id, output, is_error: false, denied: None }) => {
            assert_eq!((id.as_str(), output.as_str()), ("t", "out"));
            facts
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command() {
    let result = json!({"stdout": "a\nb", "stderr": "c\n", "interrupted": true});
    assert_eq!(
        tool_facts(result),
        Some(ToolFacts::Command {
            exit_code: None,
            signal: None,
            timed_out: false,
            cancelled: true,
            omitted_bytes: 0,
            lines: Some(3)
        })
    );
}

#[test]
fn a_file_that_was_made() {
    let result = json!({"type": "create", "filePath": "/p/new", "content": "one\ntwo\n",
        "structuredPatch": []});
    assert_eq!(
        tool_facts(result),
        Some(ToolFacts::Diff {
            path: "/p/new".into(),
            diff: "@@ -0,0 +1,2 @@\n+one\n+two\n".into(),
            added: 2,
            removed: 0,
            created: true
        })
    );
}

#[test]
fn a_file_that_was_changed() {
    let result = json!({"filePath": "/p/f", "structuredPatch": [{"oldStart": 4, "oldLines": 2,
        "newStart": 4, "newLines": 3, "lines": [" a", "-b", "+c", "+d", "\\ No newline at end of file"]}]});
    let diff = "@@ -4,2 +4,3 @@\n a\n-b\n+c\n+d\n\\ No newline at end of file\n".to_owned();
    assert_eq!(
        tool_facts(result),
        Some(ToolFacts::Diff { path: "/p/f".into(), diff, added: 2, removed: 1, created: false })
    );
}

#[test]
fn a_file_that_was_read_and_searches() {
    let read = json!({"type": "text", "file": {"filePath": "/p/f", "numLines": 3, "startLine": 2,
        "totalLines": 9, "content": "x"}});
    assert_eq!(
        tool_facts(read),
        Some(ToolFacts::Read { path: "/p/f".into(), first_line: 2, lines: 3, total_lines: 9 })
    );
    let glob = json!({"filenames": ["a", "b"], "numFiles": 2, "truncated": true});
    assert_eq!(
        tool_facts(glob),
        Some(ToolFacts::Matches { matches: 2, files: 2, truncated: true })
    );
    let grep = json!({"mode": "content", "numFiles": 1, "numLines": 5, "filenames": []});
    assert_eq!(
        tool_facts(grep),
        Some(ToolFacts::Matches { matches: 5, files: 1, truncated: false })
    );
    assert_eq!(tool_facts(json!({"something": "else"})), None);
}

#[test]
fn a_todo_list() {
    let result = json!({"oldTodos": [], "newTodos": [
        {"content": "Do it", "activeForm": "Doing it", "status": "in_progress"}, {"odd": 1}]});
    let Some(ToolFacts::Todo { items }) = tool_facts(result) else { panic!("no list") };
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].status, TodoStatus::InProgress);
}

#[test]
fn several_results_in_one_record_share_no_structure() {
    let block = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let told = results(
        json!([block("a"), block("b")]),
        json!({"toolUseResult": {"stdout": "", "stderr": ""}}),
    );
    let ids: Vec<_> = told
        .iter()
        .map(|fact| match fact {
            Fact::ToolResult { id, facts: None, .. } => id.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn who_refused() {
    let denied = |fields: Value| {
        let block =
            json!([{"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": "no"}]);
        match results(block, fields).as_slice() {
            [Fact::ToolResult { denied, is_error: true, .. }] => *denied,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(denied(json!({"toolDenialKind": "permission-rule"})), Some(DeniedBy::Rule));
    assert_eq!(denied(json!({"toolDenialKind": "user-rejected"})), Some(DeniedBy::Person));
    assert_eq!(denied(json!({"toolUseResult": "User rejected tool use"})), Some(DeniedBy::Person));
    let decision = json!({"permissionDecision": {"decision": "reject", "source": "config"}});
    assert_eq!(denied(decision), Some(DeniedBy::Rule));
    assert_eq!(denied(json!({"toolUseResult": "Error: Exit code 2"})), None);
}

#[test]
fn receipts_of_sub_agents() {
    let spawned = |agent: &str, kind: Option<&str>| Fact::AgentSpawned {
        agent: agent.into(),
        tool_use_id: Some("t".into()),
        kind: kind.map(str::to_owned),
        background: true,
    };
    // The receipt of a launch comes before the result, and is no end.
    let told = one(json!({"isAsync": true, "agentId": "a1"}));
    assert_eq!(told[0], spawned("a1", None));
    assert!(matches!(told[1], Fact::ToolResult { .. }) && told.len() == 2);
    let told = one(json!({"status": "async_launched", "agentId": "a1"}));
    assert_eq!(told[0], spawned("a1", None));
    let told = one(json!({"taskId": "m1", "timeoutMs": 1000, "persistent": false}));
    assert_eq!(told[0], spawned("m1", Some("Monitor")));
    let told = one(json!({"status": "completed", "agentId": "a1",
        "content": [{"type": "text", "text": "x".repeat(900)}]}));
    assert_eq!(
        told[0],
        Fact::AgentDone {
            agent: "a1".into(),
            tool_use_id: Some("t".into()),
            status: AgentEnd::Completed,
            summary: "x".repeat(500)
        }
    );
}
