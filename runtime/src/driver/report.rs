//! Answers to `/status`, `/cost`, `/context` and `/config`, as markdown.

use super::{DriverParts, ReportTopic, RuntimeStatus};
use crate::usage::UsageReport;

/// Title and text.
pub(super) fn report(
    topic: ReportTopic,
    parts: &DriverParts,
    status: &RuntimeStatus,
) -> (String, String) {
    match topic {
        ReportTopic::Status => ("Status".to_owned(), status_text(parts, status)),
        ReportTopic::Cost => ("Cost".to_owned(), cost_text(parts, &status.usage)),
        ReportTopic::Context => ("Context".to_owned(), context_text(parts, &status.usage)),
        ReportTopic::Config => ("Settings".to_owned(), config_text(parts)),
    }
}

fn status_text(parts: &DriverParts, status: &RuntimeStatus) -> String {
    let session = parts.conversation.session();
    let fork = session.fork.as_ref().map_or_else(String::new, |fork| {
        let branch = fork.branch_name.as_deref().unwrap_or("unnamed");
        format!("| Branch | {branch}, forked from `{}` |\n", fork.parent_session_id)
    });
    let note = status
        .backend_note
        .as_ref()
        .map_or_else(String::new, |note| format!("| Note | {note} |\n"));
    let compacted = session.compaction.as_ref().map_or_else(
        || "never".to_owned(),
        |compaction| {
            let times = match compaction.count {
                1 => "once".to_owned(),
                count => format!("{count} times"),
            };
            format!("{times}, last removed {} messages", compaction.removed_message_count)
        },
    );
    format!(
        "| what | now |\n|---|---|\n| Backend | {} |\n{note}| Model | {} |\n| Permission mode | {}: {} |\n| Session | `{}` |\n{fork}| File | `{}` |\n| Messages | {} |\n| Compacted | {compacted} |\n| Context | {} |\n| Cost | {} |\n",
        status.backend,
        status.model,
        status.mode,
        status.mode.describe(),
        session.id,
        parts.conversation.open_session().path().display(),
        session.messages.len(),
        meter(&status.usage),
        cost(&status.usage),
    )
}

fn cost_text(parts: &DriverParts, usage: &UsageReport) -> String {
    let total = &usage.total;
    let mut text = format!(
        "| what | tokens |\n|---|---:|\n| Input | {} |\n| Cache writes | {} |\n| Cache reads | {} |\n| Output | {} |\n\nCost of this session: {}\n",
        total.input_tokens,
        total.cache_creation_input_tokens,
        total.cache_read_input_tokens,
        total.output_tokens,
        cost(usage),
    );
    text.push_str(&format!("\n{}\n", parts.conversation.usage().price_note()));
    text
}

fn context_text(parts: &DriverParts, usage: &UsageReport) -> String {
    if parts.conversation.backend_owns_context() {
        return format!(
            "{}\n\nThe {} backend keeps its own context and compacts it by itself; `/compact` asks it to. What is on record here is about {} tokens by size.\n",
            meter(usage),
            parts.backend.name,
            parts.conversation.estimated_tokens(),
        );
    }
    format!(
        "{}\n\nThe messages are about {} tokens by size. `/compact` makes room; the conversation is compacted by itself at {} tokens.\n",
        meter(usage),
        parts.conversation.estimated_tokens(),
        parts.conversation.auto_compaction_threshold(),
    )
}

fn config_text(parts: &DriverParts) -> String {
    if parts.config.is_empty() {
        return "No setting is set; everything is at its default.\n".to_owned();
    }
    let mut text = String::from("| setting | value | from |\n|---|---|---|\n");
    for (key, value, from) in &parts.config {
        text.push_str(&format!("| {key} | {value} | {from} |\n"));
    }
    text
}

fn meter(usage: &UsageReport) -> String {
    match usage.context_window {
        Some(window) if window > 0 => format!(
            "{} of {window} tokens ({} %)",
            usage.context_tokens,
            usage.context_tokens.saturating_mul(100) / window
        ),
        _ => format!("{} tokens, window unknown", usage.context_tokens),
    }
}

fn cost(usage: &UsageReport) -> String {
    usage.cost_usd.map_or_else(|| "unknown".to_owned(), |cost| format!("${cost:.4}"))
}
