//! User records: what a person or the CLI said to the model, and what tools gave back.

use serde_json::Value;

use super::{notification, owned, text, tool_facts, words};
use crate::fact::{DeniedBy, Fact, PromptSource};

const INTERRUPTED: &str = "[Request interrupted by user]";
const INTERRUPTED_IN_TOOL: &str = "[Request interrupted by user for tool use]";

pub(super) fn facts(value: &Value) -> Vec<Fact> {
    let content = &value["message"]["content"];
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let results: Vec<&Value> =
        blocks.iter().filter(|block| text(block, "type") == "tool_result").collect();
    if !results.is_empty() {
        let facts = results.iter().flat_map(|block| tool_result(block, value, results.len() == 1));
        return facts.collect();
    }
    said(value, words(content))
}

/// Words. Whose they are is read from the record's fields; only records without those are told apart
/// by the tags and marks that the CLI itself writes there.
fn said(value: &Value, text: String) -> Vec<Fact> {
    let prompt = |source| {
        vec![Fact::Prompt { prompt_id: owned(value, "promptId"), text: text.clone(), source }]
    };
    if value["isCompactSummary"] == true {
        return prompt(PromptSource::Summary);
    }
    match stated_source(value) {
        Some(PromptSource::Notification) => return notified(value, text),
        Some(source) => return prompt(source),
        None => {}
    }
    match text.trim() {
        INTERRUPTED => return vec![Fact::Interrupted { in_tool: false }],
        INTERRUPTED_IN_TOOL => return vec![Fact::Interrupted { in_tool: true }],
        _ => {}
    }
    if value["isMeta"] == true {
        return prompt(PromptSource::Hidden);
    }
    if notification::is_notification(&text) {
        return notified(value, text);
    }
    if let Some(text) = command_output(&text) {
        return vec![Fact::CommandOutput { text }];
    }
    if text.starts_with("<command-name>") || text.starts_with("<bash-input>") {
        return prompt(PromptSource::Command);
    }
    prompt(PromptSource::Typed)
}

/// What the record itself says about its source.
fn stated_source(value: &Value) -> Option<PromptSource> {
    let origin = text(&value["origin"], "kind");
    if origin == "task-notification" || text(value, "turnOrigin") == "task_notification" {
        // Its companions are for the model only.
        return Some(if value["isMeta"] == true {
            PromptSource::Hidden
        } else {
            PromptSource::Notification
        });
    }
    match text(value, "promptSource") {
        "typed" => Some(PromptSource::Typed),
        "queued" => Some(PromptSource::Queued),
        _ if origin == "human" => Some(PromptSource::Typed),
        _ => None,
    }
}

fn notified(value: &Value, text: String) -> Vec<Fact> {
    let told = notification::fact(&text);
    let prompt_id = owned(value, "promptId");
    let prompt = Fact::Prompt { prompt_id, text, source: PromptSource::Notification };
    std::iter::once(prompt).chain(told).collect()
}

/// What a command of the CLI or of its shell mode printed, without the tags. It may hold escape
/// sequences.
pub(super) fn command_output(text: &str) -> Option<String> {
    const TAGS: [&str; 4] =
        ["local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"];
    if !TAGS.iter().any(|tag| text.starts_with(&format!("<{tag}>"))) {
        return None;
    }
    let parts = TAGS.iter().filter_map(|tag| notification::tag(text, tag));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    Some(parts.join("\n"))
}

/// `alone`: the record's structured result belongs to this block.
fn tool_result(block: &Value, value: &Value, alone: bool) -> Vec<Fact> {
    let id = text(block, "tool_use_id").to_owned();
    let output = without_tags(words(&block["content"]));
    let is_error = block["is_error"] == true;
    let structured = if alone { &value["toolUseResult"] } else { &Value::Null };
    let mut facts = Vec::new();
    facts.extend(tool_facts::agent(structured, &id, &output));
    facts.push(Fact::ToolResult {
        id,
        output,
        is_error,
        facts: tool_facts::facts(structured),
        denied: denied(value, structured).filter(|_| is_error && alone),
    });
    facts
}

/// The CLI's own mark around errors of a call is meant for the model.
fn without_tags(output: String) -> String {
    let inner = output.trim().strip_prefix("<tool_use_error>");
    match inner.and_then(|rest| rest.strip_suffix("</tool_use_error>")) {
        Some(inner) => inner.trim().to_owned(),
        None => output,
    }
}

fn denied(value: &Value, structured: &Value) -> Option<DeniedBy> {
    match text(value, "toolDenialKind") {
        "permission-rule" => return Some(DeniedBy::Rule),
        "user-rejected" => return Some(DeniedBy::Person),
        _ => {}
    }
    let decision = &value["permissionDecision"];
    if text(decision, "decision") == "reject" {
        let person = text(decision, "source").starts_with("user");
        return Some(if person { DeniedBy::Person } else { DeniedBy::Rule });
    }
    // Versions without the field put this in the place of the structured result.
    (structured.as_str() == Some("User rejected tool use")).then_some(DeniedBy::Person)
}
