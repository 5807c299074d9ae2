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
/// Requests that are carried over from earlier summaries.
const EARLIER_REQUESTS: usize = 9;
/// What is carried over of a summary that another program wrote.
const FOREIGN_CHARS: usize = 4_000;
/// Open points and files are looked for in this many of the latest removed messages, and in this
/// much of each of their texts: older ones are no longer at hand, and a megabyte of output need not
/// be searched for six lines.
const SEARCHED_MESSAGES: usize = 500;
const SEARCHED_BYTES: usize = 16 * 1024;

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

/// A summary of `removed`, merged with an earlier summary: one text of the same shape and the same
/// bounds, never a summary inside a summary. The timeline can be left out where it would be longer
/// than what it is about.
pub(super) fn write(
    removed: &[&ConversationMessage],
    earlier: Option<&str>,
    with_timeline: bool,
) -> String {
    let earlier = Earlier::read(earlier.map(body).unwrap_or_default());
    let mut text = String::from("<summary>\n");
    section(&mut text, FOREIGN, (!earlier.foreign.is_empty()).then_some(earlier.foreign.clone()));
    let _infallible = writeln!(text, "{}", scope(removed, earlier.counts));
    section(&mut text, TOOLS, tools(removed, earlier.line(TOOLS)));
    let mut before: Vec<String> = earlier.lines(EARLIER).chain(earlier.lines(LATEST)).collect();
    before.drain(..before.len().saturating_sub(EARLIER_REQUESTS));
    let latest = requests(removed);
    if latest.is_empty() {
        section(&mut text, LATEST, before);
    } else {
        section(&mut text, EARLIER, before);
        section(&mut text, LATEST, latest);
    }
    section(&mut text, OPEN, merged(earlier.lines(OPEN), open_points(removed), OPEN_POINTS));
    section(&mut text, FILES_AT_HAND, merged(earlier.lines(FILES_AT_HAND), files(removed), FILES));
    section(&mut text, STATE, current_work(removed).or_else(|| earlier.line(STATE)));
    if with_timeline {
        section(&mut text, TIMELINE, timeline(removed));
    }
    text.push_str("</summary>");
    text
}

const FOREIGN: &str = "Before that";
const TOOLS: &str = "Tools used";
const EARLIER: &str = "Earlier requests";
const LATEST: &str = "Latest requests";
const OPEN: &str = "Open points";
const FILES_AT_HAND: &str = "Files";
const STATE: &str = "Last state";
/// Not carried over: timelines of timelines would crowd out what matters.
const TIMELINE: &str = "Timeline";
const TITLES: [&str; 8] = [FOREIGN, TOOLS, EARLIER, LATEST, OPEN, FILES_AT_HAND, STATE, TIMELINE];

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

/// An earlier summary, taken apart.
#[derive(Default)]
struct Earlier {
    counts: [usize; 4],
    sections: Vec<(&'static str, Vec<String>)>,
    /// What is not of our making.
    foreign: String,
}

impl Earlier {
    fn read(text: &str) -> Self {
        let mut earlier = Self::default();
        let mut foreign = String::new();
        for line in text.lines() {
            let title = line.strip_suffix(':').and_then(|line| TITLES.iter().find(|t| **t == line));
            if let Some(title) = title {
                earlier.sections.push((title, Vec::new()));
            } else if let Some(counts) = read_scope(line) {
                earlier.counts = counts;
            } else if let Some((_, lines)) = earlier.sections.last_mut() {
                match (line.strip_prefix("- "), lines.last_mut()) {
                    (Some(item), _) => lines.push(item.to_owned()),
                    (None, Some(item)) if !line.trim().is_empty() => {
                        item.push('\n');
                        item.push_str(line.trim());
                    }
                    _ => {}
                }
            } else {
                foreign.push_str(line);
                foreign.push('\n');
            }
        }
        let carried = earlier.lines(FOREIGN).collect::<Vec<_>>().join("\n");
        earlier.foreign = cut(format!("{carried}\n{foreign}").trim(), FOREIGN_CHARS);
        earlier
    }

    fn lines(&self, title: &str) -> impl Iterator<Item = String> {
        let lines = self.sections.iter().find(|(known, _)| *known == title);
        lines.map_or(&[][..], |(_, lines)| lines).iter().cloned()
    }

    fn line(&self, title: &str) -> Option<String> {
        self.lines(title).next()
    }
}

/// Earlier lines and later ones, each once, the latest `limit` of them.
fn merged(earlier: impl Iterator<Item = String>, later: Vec<String>, limit: usize) -> Vec<String> {
    let mut lines: Vec<String> = earlier.filter(|line| !later.contains(line)).collect();
    lines.extend(later);
    lines.drain(..lines.len().saturating_sub(limit));
    lines
}

fn scope(removed: &[&ConversationMessage], earlier: [usize; 4]) -> String {
    let count = |role| removed.iter().filter(|message| message.role == role).count();
    format!(
        "{} earlier messages: {} of the user, {} of the assistant, {} with tool results.",
        earlier[0].saturating_add(removed.len()),
        earlier[1].saturating_add(count(MessageRole::User)),
        earlier[2].saturating_add(count(MessageRole::Assistant)),
        earlier[3].saturating_add(count(MessageRole::Tool)),
    )
}

/// The numbers of a line that [`scope`] wrote.
fn read_scope(line: &str) -> Option<[usize; 4]> {
    let (total, rest) = line.split_once(" earlier messages: ")?;
    let (user, rest) = rest.split_once(" of the user, ")?;
    let (assistant, rest) = rest.split_once(" of the assistant, ")?;
    let tool = rest.strip_suffix(" with tool results.")?;
    let number = |text: &str| text.parse().ok();
    Some([number(total)?, number(user)?, number(assistant)?, number(tool)?])
}

fn tools(removed: &[&ConversationMessage], earlier: Option<String>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let earlier = earlier.unwrap_or_default();
    for tool in earlier.split(", ") {
        if let Some((name, count)) = tool.strip_suffix(')').and_then(|tool| tool.split_once(" ("))
            && let Ok(count) = count.parse()
        {
            counts.insert(name, count);
        }
    }
    for message in removed {
        for (_, name, _) in message.tool_uses() {
            *counts.entry(name).or_default() += 1;
        }
    }
    let list: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    (!list.is_empty()).then(|| list.join(", "))
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
    let texts = removed.iter().rev().take(SEARCHED_MESSAGES).map(|message| message.text());
    'search: for text in texts {
        let end = &text[text.ceil_char_boundary(text.len().saturating_sub(SEARCHED_BYTES))..];
        for line in end.lines().rev() {
            let is_open = line
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| OPEN_WORDS.iter().any(|open| open.eq_ignore_ascii_case(word)));
            if !is_open {
                continue;
            }
            let line = one_line(line, LINE_CHARS);
            if !points.contains(&line) {
                points.push(line);
            }
            if points.len() == OPEN_POINTS {
                break 'search;
            }
        }
    }
    points.reverse();
    points
}

/// The files that were named last, the latest at the end.
fn files(removed: &[&ConversationMessage]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    'search: for message in removed.iter().rev().take(SEARCHED_MESSAGES) {
        for block in &message.blocks {
            let text = match block {
                ContentBlock::Text { text } => text,
                ContentBlock::ToolUse { input, .. } => input,
                _ => continue,
            };
            let start = &text[..text.floor_char_boundary(SEARCHED_BYTES)];
            for word in start.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;:".contains(c)) {
                if is_file_name(word) && !files.iter().any(|known| known == word) {
                    files.push(word.to_owned());
                }
                if files.len() == FILES {
                    break 'search;
                }
            }
        }
    }
    files.reverse();
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
