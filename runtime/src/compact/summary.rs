//! What stays of removed messages: a text made by rules.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::redact::Redactor;
use crate::session::{ContentBlock, ConversationMessage, MessageRole};

/// Longest line of the timeline and of a request, in characters.
const LINE_CHARS: usize = 160;
const CURRENT_WORK_CHARS: usize = 200;
const REQUESTS: usize = 3;
const OPEN_POINTS: usize = 6;
const FILES: usize = 8;
/// Longest timeline: a summary that grows with the conversation would be no compaction.
const TIMELINE_LINES: usize = 60;
/// What is carried over of an earlier summary.
const EARLIER_CHARS: usize = 4_000;

/// Lines are cut, and half a secret is no longer recognised when the summary is written to disk: it
/// must go before the cut.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::from_env::<&str>([]));

const FILE_ENDINGS: [&str; 16] = [
    "rs", "ts", "tsx", "js", "jsx", "py", "go", "java", "c", "h", "cpp", "json", "toml", "yaml",
    "sh", "md",
];
const OPEN_WORDS: [&str; 4] = ["todo", "next", "pending", "remaining"];

/// The message that stands where the removed ones were.
pub(super) fn message(summary: &str) -> ConversationMessage {
    let text = format!(
        "The beginning of this conversation was removed to save space. This is a summary of it.\n\n\
         {summary}\n\n\
         The messages after this one are the latest, as they were. Carry on from there; do not \
         answer this summary and do not repeat work that it lists as done."
    );
    ConversationMessage::new(MessageRole::System, vec![ContentBlock::Text { text }])
}

/// Without the tags.
pub(super) fn for_a_person(summary: &str) -> String {
    body(summary).to_owned()
}

fn body(summary: &str) -> &str {
    let start = summary.find("<summary>").map_or(0, |at| at + "<summary>".len());
    let end = summary.rfind("</summary>").unwrap_or(summary.len());
    summary.get(start..end).unwrap_or(summary).trim()
}

/// A summary of `removed`, with what an earlier summary said.
pub(super) fn write(removed: &[&ConversationMessage], earlier: Option<&str>) -> String {
    let mut text = String::from("<summary>\n");
    if let Some(earlier) = earlier.map(body).filter(|earlier| !earlier.is_empty()) {
        section(&mut text, "Before that", [cut(&without_timeline(earlier), EARLIER_CHARS)]);
    }
    let _infallible = writeln!(text, "{}", scope(removed));
    section(&mut text, "Tools used", tools(removed));
    section(&mut text, "Latest requests", requests(removed));
    section(&mut text, "Open points", open_points(removed));
    section(&mut text, "Files", files(removed));
    section(&mut text, "Last state", current_work(removed));
    section(&mut text, TIMELINE, timeline(removed));
    text.push_str("</summary>");
    text
}

const TIMELINE: &str = "Timeline";

fn section(text: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_none() {
        return;
    }
    let _infallible = writeln!(text, "\n{title}:");
    for line in lines {
        let _infallible = writeln!(text, "- {}", line.replace('\n', "\n  "));
    }
}

/// Timelines of timelines would crowd out what matters.
fn without_timeline(earlier: &str) -> String {
    let end = earlier.find(&format!("\n{TIMELINE}:")).unwrap_or(earlier.len());
    earlier[..end].trim_end().to_owned()
}

fn scope(removed: &[&ConversationMessage]) -> String {
    let count = |role| removed.iter().filter(|message| message.role == role).count();
    format!(
        "{} earlier messages: {} of the user, {} of the assistant, {} with tool results.",
        removed.len(),
        count(MessageRole::User),
        count(MessageRole::Assistant),
        count(MessageRole::Tool),
    )
}

fn tools(removed: &[&ConversationMessage]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for message in removed {
        for (_, name, _) in message.tool_uses() {
            *counts.entry(name).or_default() += 1;
        }
    }
    let list: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    if list.is_empty() { Vec::new() } else { vec![list.join(", ")] }
}

fn requests(removed: &[&ConversationMessage]) -> Vec<String> {
    let mut requests: Vec<String> = removed
        .iter()
        .rev()
        .filter(|message| message.role == MessageRole::User)
        .map(|message| one_line(&message.text(), LINE_CHARS))
        .filter(|text| !text.is_empty())
        .take(REQUESTS)
        .collect();
    requests.reverse();
    requests
}

fn open_points(removed: &[&ConversationMessage]) -> Vec<String> {
    let mut points: Vec<String> = Vec::new();
    for message in removed.iter().rev() {
        let text = message.text();
        for line in text.lines().rev() {
            let lower = line.to_lowercase();
            let is_open =
                lower.split(|c: char| !c.is_alphanumeric()).any(|word| OPEN_WORDS.contains(&word));
            let line = one_line(line, LINE_CHARS);
            if is_open && !points.contains(&line) {
                points.push(line);
            }
            if points.len() == OPEN_POINTS {
                break;
            }
        }
    }
    points.truncate(OPEN_POINTS);
    points.reverse();
    points
}

/// Latest first come, so that the files at hand are among them; shown in order of first mention.
fn files(removed: &[&ConversationMessage]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for message in removed.iter().rev() {
        for block in &message.blocks {
            let text = match block {
                ContentBlock::Text { text } => text,
                ContentBlock::ToolUse { input, .. } => input,
                _ => continue,
            };
            for word in text.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;:".contains(c)) {
                if is_file_name(word) && !files.iter().any(|known| known == word) {
                    files.push(word.to_owned());
                }
                if files.len() == FILES {
                    return files;
                }
            }
        }
    }
    files
}

fn is_file_name(word: &str) -> bool {
    let Some((stem, ending)) = word.rsplit_once('.') else { return false };
    let has_name = stem.chars().last().is_some_and(|c| c.is_alphanumeric() || c == '_');
    has_name && word.len() <= 200 && FILE_ENDINGS.contains(&ending)
}

fn current_work(removed: &[&ConversationMessage]) -> Option<String> {
    removed
        .iter()
        .rev()
        .filter(|message| message.role == MessageRole::Assistant)
        .map(|message| one_line(&message.text(), CURRENT_WORK_CHARS))
        .find(|text| !text.is_empty())
}

fn timeline(removed: &[&ConversationMessage]) -> Vec<String> {
    let skipped = removed.len().saturating_sub(TIMELINE_LINES);
    let mut lines = Vec::with_capacity(TIMELINE_LINES + 1);
    if skipped > 0 {
        lines.push(format!("({skipped} older messages left out)"));
    }
    lines.extend(removed[skipped..].iter().map(|message| {
        let text = message.blocks.iter().map(block_line).collect::<Vec<_>>().join(" | ");
        one_line(&format!("{}: {text}", message.role.as_str()), LINE_CHARS)
    }));
    lines
}

fn block_line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text { text } => start_of(text),
        ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. } => "(thought)".into(),
        ContentBlock::ToolUse { name, input, .. } => format!("calls {name} {}", start_of(input)),
        ContentBlock::ToolResult { tool_name, output, is_error, .. } => {
            let outcome = if *is_error { "failed" } else { "answered" };
            format!("{tool_name} {outcome}: {}", start_of(output))
        }
    }
}

/// A megabyte of output need not be folded for one line.
fn start_of(text: &str) -> String {
    let start: String = text.chars().take(LINE_CHARS * 4).collect();
    REDACTOR.redact(&start).into_owned()
}

fn one_line(text: &str, chars: usize) -> String {
    let start: String = text.trim_start().chars().take(chars * 8).collect();
    let start = REDACTOR.redact(&start);
    cut(&start.split_whitespace().collect::<Vec<_>>().join(" "), chars)
}

fn cut(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(chars.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
