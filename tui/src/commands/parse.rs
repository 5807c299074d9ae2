//! From a submitted line to a prompt, a command, or a refusal that says what to do instead.

use super::{Argument, COMMANDS, CommandAction, CommandSpec};

/// What a submitted line is.
#[derive(Debug)]
pub enum Parsed {
    /// Not a command: send this text to the model.
    Prompt(String),
    Command {
        spec: &'static CommandSpec,
        action: CommandAction,
    },
    /// Looks like a command and is none; the message says what is wrong and what to do next.
    Refused(String),
}

/// Decides what a line is.
///
/// A line that begins with `/` is a command, except that `//` stands for a prompt that begins with
/// one slash, and that a first word with a second slash in it is a path and so a prompt.
#[must_use]
pub fn parse(line: &str) -> Parsed {
    let trimmed = line.trim();
    let Some(body) = trimmed.strip_prefix('/') else {
        return Parsed::Prompt(line.to_owned());
    };
    if body.starts_with('/') {
        return Parsed::Prompt(body.to_owned());
    }
    let first = body.split_whitespace().next().unwrap_or("");
    if first.contains('/') {
        return Parsed::Prompt(line.to_owned());
    }
    if body.is_empty() || body.starts_with(char::is_whitespace) {
        return Parsed::Refused(
            "a command name follows the slash; /help lists them, // begins a prompt with a slash"
                .to_owned(),
        );
    }
    let Some((spec, rest)) = lookup(body) else {
        return Parsed::Refused(unknown(first));
    };
    let argument = (!rest.is_empty()).then_some(rest);
    match (spec.argument, argument) {
        // claw-code asks for this word; here nothing is lost, so nothing has to be confirmed.
        (Argument::None, Some("--confirm")) if spec.name == "clear" => built(spec, None),
        (Argument::None, Some(extra)) => Parsed::Refused(surplus(spec, first, extra)),
        (Argument::Required(label, _), None) => {
            Parsed::Refused(format!("/{} needs a {label}: {}", spec.name, spec.usage()))
        }
        _ => built(spec, argument),
    }
}

fn built(spec: &'static CommandSpec, argument: Option<&str>) -> Parsed {
    match (spec.build)(argument) {
        Ok(action) => Parsed::Command { spec, action },
        Err(wrong) => Parsed::Refused(format!("/{}: {wrong}", spec.name)),
    }
}

/// The row whose name (or alias) begins the line, the longest first, and what follows it.
fn lookup(body: &str) -> Option<(&'static CommandSpec, &str)> {
    let mut best: Option<(usize, &'static CommandSpec, &str)> = None;
    for spec in COMMANDS {
        for name in std::iter::once(spec.name).chain(spec.aliases.iter().copied()) {
            let Some((words, rest)) = after_words(body, name) else { continue };
            if best.as_ref().is_none_or(|(most, _, _)| words > *most) {
                best = Some((words, spec, rest));
            }
        }
    }
    best.map(|(_, spec, rest)| (spec, rest))
}

/// When `body` begins with the words of `name` (letter case aside): how many, and the trimmed rest.
fn after_words<'a>(body: &'a str, name: &str) -> Option<(usize, &'a str)> {
    let mut rest = body;
    let mut count = 0;
    for word in name.split(' ') {
        rest = rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(end);
        if !head.eq_ignore_ascii_case(word) {
            return None;
        }
        rest = tail;
        count += 1;
    }
    Some((count, rest.trim()))
}

fn unknown(first: &str) -> String {
    match nearest(first) {
        Some(name) => {
            format!("unknown command /{first}; did you mean /{name}? /help lists them")
        }
        None => {
            format!("unknown command /{first}; /help lists them, // begins a prompt with a slash")
        }
    }
}

/// A command without an argument got one. Where rows share its first word, the person probably
/// mistyped the second.
fn surplus(spec: &CommandSpec, first: &str, extra: &str) -> String {
    let word = extra.split_whitespace().next().unwrap_or("");
    let group: Vec<&str> =
        COMMANDS.iter().filter_map(|row| row.name.strip_prefix(first)?.strip_prefix(' ')).collect();
    if group.is_empty() {
        return format!("/{} takes no argument", spec.name);
    }
    format!("unknown command /{first} {word}; /{first} takes one of: {}", group.join(", "))
}

/// Slips of the fingers in one word; what is further away is another word.
const SLIPS: usize = 2;

/// The known name closest to a mistyped one, when it is close enough to be worth saying.
#[must_use]
pub fn nearest(typed: &str) -> Option<&'static str> {
    let typed = typed.to_ascii_lowercase();
    let names = COMMANDS
        .iter()
        .flat_map(|spec| std::iter::once(spec.name).chain(spec.aliases.iter().copied()))
        .filter(|name| name.len() > 1);
    names
        .map(|name| {
            let begins = name.starts_with(&typed) || typed.starts_with(name);
            (if begins { 1 } else { distance(&typed, name) }, name)
        })
        .filter(|(distance, name)| *distance <= SLIPS.min(name.len().max(typed.len()) / 2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Insertions, deletions and replacements that lead from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
