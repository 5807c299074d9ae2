//! Which dialog stands on a worker's screen, read from its structure: a marked entry among others,
//! a footer, and no input box below. And the next key for the two dialogs that may be answered.
//! Pure over the text of a screen.
//!
//! What it refuses: a key that was not derived from the line that is marked *now*, and any key at
//! all in a dialog that is not the person's own yes (their folder, their key).

use std::path::Path;

use crate::trust::key_tail;

/// A dialog of the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialogKind {
    /// May this folder be worked in?
    Trust,
    /// May the key of the environment be used?
    ApiKey,
    /// The warning before permissions are bypassed.
    Bypass,
    /// A settings file holds something that this version does not know.
    Settings,
    /// How to log in.
    Login,
    /// May this tool run?
    Permission,
    /// A question of the model, or about its plan.
    Question,
    /// One that we do not know.
    Unknown,
}

/// One entry of a dialog, without its mark and number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub label: String,
    pub selected: bool,
}

/// A dialog on a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    pub kind: DialogKind,
    /// Its first line.
    pub title: String,
    /// All of it, as it stands on the screen.
    pub text: String,
    pub entries: Vec<Entry>,
}

/// The mark of the selected entry, and of the input box.
const MARK: char = '❯';

impl Dialog {
    /// The dialog on a screen, when it shows one. Words alone never make one: there is an entry with
    /// the mark, a second entry, and below them nothing but entries and the dialog's own footer. A
    /// conversation always has the input box and its status line below it.
    pub fn on_screen(screen: &str) -> Option<Self> {
        let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
        let last = lines.iter().rposition(|line| !line.trim().is_empty())?;
        let footer = is_footer(lines[last]);
        let body_end = if footer { last } else { last + 1 };
        let (marked, indent) = marked_entry(&lines[..body_end])?;
        let start = first_line(&lines, marked);
        let first = first_entry(&lines, start, marked, indent);
        let body = &lines[first..body_end];
        let entries: Vec<Entry> = body.iter().filter_map(|line| entry(line, indent)).collect();
        // Without a footer only a numbered list right below a rule is a dialog.
        let numbered = number_of(label_of(lines[marked])).is_some();
        let stands = footer || (numbered && start > 0);
        if entries.len() < 2 || !stands {
            return None;
        }
        let heading = &lines[start..first];
        let text: Vec<&str> = lines[start..=last].to_vec();
        let title = heading.iter().map(|line| line.trim()).find(|line| !line.is_empty());
        let title = title.unwrap_or(&entries[0].label).to_owned();
        let kind = kind_of(heading, &entries, footer.then_some(lines[last]));
        Some(Self { kind, title, text: dedented(&text), entries })
    }

    fn selected(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.selected)
    }
}

/// Whether the line is what a dialog ends with: the keys that it takes, separated by dots.
fn is_footer(line: &str) -> bool {
    let keys: Vec<&str> = line.trim().split(" · ").collect();
    let takes = |key: &&str| key.contains(" to ") && key.len() < 60;
    keys.iter().all(takes)
        && keys
            .iter()
            .any(|key| ["Enter to ", "Esc to "].iter().any(|start| key.starts_with(start)))
}

/// The last line with the mark and words behind it, and the column where its words begin. Not the
/// input box, which stands between two rules.
fn marked_entry(lines: &[&str]) -> Option<(usize, usize)> {
    let at = lines.iter().rposition(|line| line.trim_start().starts_with(MARK))?;
    let boxed =
        at > 0 && is_rule(lines[at - 1]) && lines.get(at + 1).is_some_and(|next| is_rule(next));
    let before = lines[at].chars().take_while(|c| *c != MARK).count();
    let words = lines[at].trim_start().trim_start_matches(MARK);
    (!boxed && words.starts_with(' ') && !words.trim().is_empty()).then_some((at, before + 2))
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.chars().count() >= 10 && line.chars().all(|c| "─▔━╌".contains(c))
}

/// Where the dialog begins: below the last heavy rule above its entries, else at the top. The rule
/// inside a list of entries is not one.
fn first_line(lines: &[&str], marked: usize) -> usize {
    let above = lines[..marked].iter().enumerate().rev();
    let mut rules = above.filter(|(_, line)| is_rule(line) && !line.contains('╌'));
    let below = |at: usize| lines[at + 1..marked].iter().any(|line| !line.trim().is_empty());
    // A rule with nothing between it and the mark cuts the list; the heading is further up.
    rules.find(|(at, _)| below(*at)).map_or(0, |(at, _)| at + 1)
}

/// The first of the entries, going up from the marked one: entries, their descriptions (deeper),
/// and rules between them.
fn first_entry(lines: &[&str], start: usize, marked: usize, indent: usize) -> usize {
    let mut first = marked;
    for at in (start..marked).rev() {
        if entry(lines[at], indent).is_some() {
            first = at;
        } else if lines[at].trim().is_empty() || !(is_rule(lines[at]) || depth(lines[at]) > indent)
        {
            break;
        }
    }
    first
}

fn depth(line: &str) -> usize {
    line.chars().take_while(|c| *c == ' ').count()
}

/// The entry that a line is: its words begin in the column of the entries, behind the mark or not.
fn entry(line: &str, indent: usize) -> Option<Entry> {
    let selected = line.trim_start().starts_with(MARK) && depth(line) + 2 == indent;
    if !selected && (depth(line) != indent || is_rule(line)) {
        return None;
    }
    let label = label_of(line);
    let label = number_of(label).map_or(label, |(_, label)| label);
    (!label.is_empty()).then(|| Entry { label: label.to_owned(), selected })
}

fn label_of(line: &str) -> &str {
    line.trim().trim_start_matches(MARK).trim()
}

/// `2. No` is entry 2, `No`.
fn number_of(label: &str) -> Option<(u32, &str)> {
    let (number, rest) = label.split_once(". ")?;
    Some((number.parse().ok()?, rest.trim()))
}

fn kind_of(heading: &[&str], entries: &[Entry], footer: Option<&str>) -> DialogKind {
    let mut said = heading.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    let labels: Vec<&str> = entries.iter().map(|entry| entry.label.as_str()).collect();
    let has = |start: &str| labels.iter().any(|label| label.starts_with(start));
    let two_ways = labels.len() == 2 && has("Yes") && has("No");
    let confirm = footer.is_some_and(|footer| footer.trim().starts_with("Enter to confirm"));
    let mut lines = said.clone();
    if confirm && two_ways && has("Yes, I trust") && said.next() == Some("Accessing workspace:") {
        DialogKind::Trust
    } else if confirm && two_ways && lines.any(|line| line.starts_with("ANTHROPIC_API_KEY: ")) {
        DialogKind::ApiKey
    } else if confirm && two_ways && has("Yes, I accept") {
        DialogKind::Bypass
    } else if has("Continue") && has("Exit and fix") {
        DialogKind::Settings
    } else if heading.iter().any(|line| line.trim().starts_with("Select login method")) {
        DialogKind::Login
    } else if footer.is_some_and(|footer| footer.contains("Tab to amend")) {
        DialogKind::Permission
    } else if footer.is_none_or(|footer| footer.contains("Enter to select")) {
        DialogKind::Question
    } else {
        DialogKind::Unknown
    }
}

/// The lines without what all of them are indented by.
fn dedented(lines: &[&str]) -> String {
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let least = filled.map(|line| depth(line)).min().unwrap_or(0);
    lines.iter().map(|line| line.get(least..).unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// What the person has said, before the start.
#[derive(Clone, Copy, Default)]
pub struct Consent<'a> {
    /// The folder that they trust: its real path, since that is what the dialog shows.
    pub folder: Option<&'a Path>,
    /// The key that they put into the environment.
    pub api_key: Option<&'a str>,
}

/// The next thing to do about a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextKey {
    /// Press [`DOWN`], wait for the redraw, look again.
    Down,
    /// The line with the person's yes is marked: press [`ENTER`], wait, look again.
    Enter,
    /// It is not ours to answer, or cannot be answered: tell the person.
    Leave,
}

/// The bytes of the keys.
pub const DOWN: &[u8] = b"\x1b[B";
pub const ENTER: &[u8] = b"\r";

/// Answers dialogs while a worker starts, and only then: whoever holds it drops it when the worker
/// is ready. One value for the whole start, since it counts.
#[derive(Debug, Default)]
pub struct Answering {
    downs: usize,
    enters: usize,
}

/// A dialog that comes back this often is not understood.
const MOST_ENTERS: usize = 6;

impl Answering {
    /// The key for what is on the screen now.
    pub fn next_key(&mut self, dialog: &Dialog, consent: &Consent) -> NextKey {
        let Some(selected) = dialog.selected().filter(|_| is_consented(dialog, consent)) else {
            return NextKey::Leave;
        };
        if selected.label.starts_with("Yes") {
            self.downs = 0;
            self.enters += 1;
            return if self.enters > MOST_ENTERS { NextKey::Leave } else { NextKey::Enter };
        }
        self.downs += 1;
        // The lists wrap: after one round every line has been marked. The second round is for keys
        // that came before the dialog listened.
        if self.downs > 2 * dialog.entries.len() { NextKey::Leave } else { NextKey::Down }
    }
}

/// Whether the dialog asks for exactly what the person has said yes to.
fn is_consented(dialog: &Dialog, consent: &Consent) -> bool {
    match dialog.kind {
        DialogKind::Trust => consent.folder.is_some_and(|folder| names_folder(dialog, folder)),
        DialogKind::ApiKey => consent.api_key.is_some_and(|key| names_key(dialog, key)),
        _ => false,
    }
}

/// The folder stands below the heading, alone, perhaps over several lines.
fn names_folder(dialog: &Dialog, folder: &Path) -> bool {
    let lines = dialog.text.lines().skip_while(|line| line.trim() != dialog.title).skip(1);
    let lines = lines.map(str::trim).skip_while(|line| line.is_empty());
    let shown: String = lines.take_while(|line| !line.is_empty()).collect();
    // A line may be broken at a space, which then is not shown.
    let plain = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    folder.to_str().is_some_and(|folder| plain(folder) == plain(&shown))
}

/// The dialog shows the end of the key.
fn names_key(dialog: &Dialog, key: &str) -> bool {
    let shown =
        dialog.text.lines().find_map(|line| line.trim().strip_prefix("ANTHROPIC_API_KEY: "));
    let tail = shown.and_then(|shown| shown.rsplit("...").next()).map(str::trim);
    tail.is_some_and(|tail| tail.chars().count() >= 4 && key_tail(key).ends_with(tail))
}

#[cfg(test)]
mod tests;
