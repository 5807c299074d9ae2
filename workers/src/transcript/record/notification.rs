//! What the CLI tells the model when a background task has ended or has something to say. It is text
//! with tags, and the only place where that is told.

use crate::fact::{AgentEnd, Fact};

/// Characters of a summary that had to be cut out of a result.
const SUMMARY: usize = 500;

/// Whether these are the words of such a notification, from their first character on.
pub(super) fn is_notification(text: &str) -> bool {
    text.trim_start().starts_with("<task-notification>")
}

/// The end of a task, or a word of one that goes on.
pub(super) fn fact(text: &str) -> Option<Fact> {
    if !is_notification(text) {
        return None;
    }
    let agent = tag(text, "task-id")?.to_owned();
    let tool_use_id = tag(text, "tool-use-id").map(str::to_owned);
    let summary = tag(text, "summary").filter(|summary| !summary.is_empty());
    let short = |text: &str| text.chars().take(SUMMARY).collect::<String>();
    let Some(status) = tag(text, "status") else {
        if summary.is_some_and(|summary| summary.contains("Monitor timed out")) {
            let summary = short(summary.unwrap_or_default());
            return Some(Fact::AgentDone {
                agent,
                tool_use_id,
                status: AgentEnd::TimedOut,
                summary,
            });
        }
        let said = tag(text, "event").or(summary)?;
        return Some(Fact::AgentProgress { agent, tool_use_id, text: short(said) });
    };
    let status = match status {
        _ if summary.is_some_and(|summary| summary.contains("Monitor timed out")) => {
            AgentEnd::TimedOut
        }
        "completed" => AgentEnd::Completed,
        "killed" | "stopped" => AgentEnd::Killed,
        "timed_out" | "timeout" => AgentEnd::TimedOut,
        _ => AgentEnd::Failed,
    };
    let summary = short(summary.or_else(|| tag(text, "result")).unwrap_or_default());
    Some(Fact::AgentDone { agent, tool_use_id, status, summary })
}

/// The words in the first such tag.
pub(super) fn tag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("<{name}>"))?;
    let (inside, _) = after.split_once(&format!("</{name}>"))?;
    Some(inside.trim())
}
