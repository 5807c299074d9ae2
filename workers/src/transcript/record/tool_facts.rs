//! The structured side of a tool's result. Its shape says which tool it was; the record does not.

use claw_runtime::tools::{TodoItem, ToolFacts};
use serde::Deserialize as _;
use serde_json::Value;

use super::{owned, text, words};
use crate::fact::{AgentEnd, Fact};

/// Characters of a sub-agent's result that are passed on as its summary.
const SUMMARY: usize = 500;

pub(crate) fn facts(result: &Value) -> Option<ToolFacts> {
    let fields = result.as_object()?;
    if fields.contains_key("stdout") && fields.contains_key("stderr") {
        return Some(command(result));
    }
    if result["structuredPatch"].is_array() {
        return Some(diff(result));
    }
    if let Some(file) = result["file"].as_object()
        && result["type"] == "text"
    {
        let number = |field: &str| file.get(field).and_then(Value::as_u64);
        return Some(ToolFacts::Read {
            path: file.get("filePath")?.as_str()?.to_owned(),
            first_line: number("startLine").unwrap_or(1),
            lines: number("numLines")?,
            total_lines: number("totalLines")?,
        });
    }
    if let Some(items) = result["newTodos"].as_array() {
        let items = items.iter().filter_map(|item| TodoItem::deserialize(item).ok());
        return Some(ToolFacts::Todo { items: items.collect() });
    }
    search(result)
}

/// The CLI records no exit code: a command that failed is an error without a structured result.
fn command(result: &Value) -> ToolFacts {
    let lines = |field| text(result, field).lines().count() as u64;
    ToolFacts::Command {
        exit_code: None,
        signal: None,
        timed_out: false,
        cancelled: result["interrupted"] == true,
        omitted_bytes: 0,
        lines: Some(lines("stdout").saturating_add(lines("stderr"))),
    }
}

/// A write or an edit. A new file has no hunks: its content is what was added.
fn diff(result: &Value) -> ToolFacts {
    let hunks = result["structuredPatch"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut diff = String::new();
    let (mut added, mut removed) = (0, 0);
    for hunk in hunks {
        let number = |field: &str| hunk[field].as_u64().unwrap_or(0);
        diff.push_str(&format!(
            "@@ -{},{} +{},{} @@\n",
            number("oldStart"),
            number("oldLines"),
            number("newStart"),
            number("newLines")
        ));
        for line in hunk["lines"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            added += u64::from(line.starts_with('+'));
            removed += u64::from(line.starts_with('-'));
            diff.push_str(line);
            diff.push('\n');
        }
    }
    let created = result["type"] == "create";
    if created && hunks.is_empty() {
        let content = text(result, "content");
        added = content.lines().count() as u64;
        if added > 0 {
            diff.push_str(&format!("@@ -0,0 +1,{added} @@\n"));
        }
        for line in content.lines() {
            diff.push('+');
            diff.push_str(line);
            diff.push('\n');
        }
    }
    ToolFacts::Diff { path: text(result, "filePath").to_owned(), diff, added, removed, created }
}

/// Grep in its three modes, and Glob.
fn search(result: &Value) -> Option<ToolFacts> {
    let files = result["numFiles"].as_u64()?;
    let number = |field: &str| result[field].as_u64();
    let matches = number("numMatches").or_else(|| number("numLines")).unwrap_or(files);
    let truncated = result["truncated"] == true || result["appliedLimit"].is_u64();
    Some(ToolFacts::Matches { matches, files, truncated })
}

/// What the receipt of a sub-agent or of another background task says.
pub(crate) fn agent(result: &Value, tool_use_id: &str, output: &str) -> Option<Fact> {
    let tool_use_id = Some(tool_use_id.to_owned());
    if let Some(agent) = owned(result, "agentId") {
        let kind = owned(result, "agentType");
        if result["isAsync"] == true || result["status"] == "async_launched" {
            return Some(Fact::AgentSpawned { agent, tool_use_id, kind, background: true });
        }
        if result["status"] == "completed" {
            let said = words(&result["content"]);
            let said = if said.is_empty() { output } else { said.as_str() };
            let summary = said.chars().take(SUMMARY).collect();
            let status = AgentEnd::Completed;
            return Some(Fact::AgentDone { agent, tool_use_id, status, summary });
        }
        return None;
    }
    // A monitor's result only arms it.
    let armed = result["timeoutMs"].is_u64() || result["persistent"].is_boolean();
    let agent = owned(result, "taskId").filter(|_| armed)?;
    let kind = Some("Monitor".to_owned());
    Some(Fact::AgentSpawned { agent, tool_use_id, kind, background: true })
}
