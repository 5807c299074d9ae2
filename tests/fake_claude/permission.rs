//! When a tool needs a yes, and what a yes may change.

use serde_json::{Value, json};

use crate::session::Session;

/// Commands that nobody is asked about.
const HARMLESS: [&str; 12] = [
    "cat", "date", "echo", "exit", "false", "head", "printf", "pwd", "sleep", "tail", "true", "wc",
];

/// Tools whose answer is more than a yes.
pub fn needs_person(tool: &str) -> bool {
    matches!(tool, "AskUserQuestion" | "ExitPlanMode")
}

pub fn must_ask(session: &Session, tool: &str, input: &Value) -> bool {
    if needs_person(tool) {
        return true;
    }
    let mode = session.mode();
    if matches!(mode.as_str(), "bypassPermissions" | "auto") || allowed(session, tool, input) {
        return false;
    }
    let edits = mode == "acceptEdits";
    match tool {
        "Bash" => {
            let command = input["command"].as_str().unwrap_or_default();
            !(is_harmless(command) || edits && makes_files(command))
        }
        "Write" | "Edit" => !edits,
        _ => false,
    }
}

fn allowed(session: &Session, tool: &str, input: &Value) -> bool {
    let command = input["command"].as_str().unwrap_or_default();
    let state = session.state.borrow();
    let named = session.options.allowed_tools.iter().map(|rule| parse(rule));
    let all = state.allowed.iter().cloned().chain(named);
    let mut rules = all.filter(|(name, _)| name == tool);
    rules.any(|(_, start)| start.is_empty() || command.starts_with(&start))
}

/// `Bash(touch:*)` and `Bash(git *)` allow what begins so.
fn parse(rule: &str) -> (String, String) {
    match rule.split_once('(') {
        Some((name, content)) => (name.to_owned(), beginning(content.trim_end_matches(')'))),
        None => (rule.to_owned(), String::new()),
    }
}

fn beginning(content: &str) -> String {
    content.trim_end_matches('*').trim_end_matches([':', ' ']).to_owned()
}

fn is_harmless(command: &str) -> bool {
    let written = command.replace(">&2", "").replace("2>&1", "");
    !written.contains(['>', '`', '$']) && words(command).all(|word| HARMLESS.contains(&word))
}

fn makes_files(command: &str) -> bool {
    words(command).all(|word| matches!(word, "touch" | "mkdir" | "cp" | "mv"))
}

/// The first word of each part of a command.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let parts = command.split([';', '&', '|', '\n']).map(str::trim);
    parts.filter(|part| !part.is_empty() && *part != "2").filter_map(|part| {
        part.split_whitespace()
            .next()
            .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// What the payload proposes; none when the payload has no such field.
pub fn suggestions(session: &Session, tool: &str, input: &Value) -> Option<Value> {
    let accept = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    let command = input["command"].as_str().unwrap_or_default();
    match tool {
        "AskUserQuestion" | "ExitPlanMode" => None,
        "Write" | "Edit" => Some(json!([accept])),
        "Bash" if makes_files(command) => Some(json!([
            {"type": "addDirectories", "directories": [session.home.cwd],
                "destination": "session"},
            accept,
        ])),
        _ => Some(json!([])),
    }
}

/// Takes `updatedPermissions`.
pub fn update(session: &Session, updates: &Value) {
    let mut state = session.state.borrow_mut();
    for update in updates.as_array().into_iter().flatten() {
        match update["type"].as_str() {
            Some("setMode") => {
                if let Some(mode) = update["mode"].as_str() {
                    mode.clone_into(&mut state.mode);
                }
            }
            Some("addRules") if update["behavior"] == "allow" => {
                for rule in update["rules"].as_array().into_iter().flatten() {
                    let name = rule["toolName"].as_str().unwrap_or_default().to_owned();
                    let content = rule["ruleContent"].as_str().unwrap_or_default();
                    state.allowed.push((name, beginning(content)));
                }
            }
            _ => {}
        }
    }
}
