//! The list of commands and argument values that fit a draft beginning with `/`.

use super::fuzzy;
use crate::commands::{Argument, COMMANDS, CommandSpec, Vocabulary};

/// Rows shown at most.
pub const ROWS: u16 = 8;

/// One candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What the list shows, e.g. `/session fork [branch]`.
    pub label: String,
    pub help: String,
    /// The draft once it is taken.
    pub draft: String,
    /// Taking it with Enter runs it: nothing is left to say.
    pub complete: bool,
    /// It begins with what was typed. Enter takes only such a row by itself: a loose match must be
    /// chosen, or a mistyped name would run something else.
    pub begins: bool,
}

/// An open list.
#[derive(Debug, Default)]
pub struct Completion {
    pub candidates: Vec<Candidate>,
    pub selected: usize,
    /// The person moved in the list: Enter takes the selected row whatever was typed.
    pub moved: bool,
}

impl Completion {
    /// The list for this draft; none when the draft is no command or nothing fits.
    pub fn for_draft(draft: &str, vocabulary: &Vocabulary) -> Option<Self> {
        let body = draft.strip_prefix('/')?;
        let first = body.split(' ').next().unwrap_or("");
        if draft.contains('\n') || first.contains('/') {
            return None;
        }
        let mut candidates = names(body);
        if let Some((spec, name, typed)) = argument_of(body) {
            candidates.extend(values(spec, name, typed, vocabulary));
        }
        // A list of nothing but what is typed already would only be in the way.
        if candidates.is_empty() || (candidates.len() == 1 && candidates[0].draft == draft) {
            return None;
        }
        Some(Self { candidates, selected: 0, moved: false })
    }

    pub fn current(&self) -> Option<&Candidate> {
        self.candidates.get(self.selected)
    }

    pub fn up(&mut self) {
        self.moved = true;
        self.selected =
            self.selected.checked_sub(1).unwrap_or(self.candidates.len().saturating_sub(1));
    }

    pub fn down(&mut self) {
        self.moved = true;
        self.selected =
            if self.selected + 1 < self.candidates.len() { self.selected + 1 } else { 0 };
    }

    /// The rows that are on the screen when `height` fit.
    pub fn window(&self, height: usize) -> std::ops::Range<usize> {
        let height = height.max(1);
        let first = (self.selected + 1).saturating_sub(height);
        first..(first + height).min(self.candidates.len())
    }
}

/// Rows of the table whose name, or failing that an alias, fits.
fn names(body: &str) -> Vec<Candidate> {
    let typed = body.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let typed = if body.ends_with(' ') && !typed.is_empty() { format!("{typed} ") } else { typed };
    let mut found: Vec<&CommandSpec> = fuzzy::rank(&typed, COMMANDS.iter().map(|spec| spec.name))
        .into_iter()
        .map(|i| &COMMANDS[i])
        .collect();
    if typed.contains(' ') {
        // After a space the first word is settled: no loose matches.
        found.retain(|spec| spec.name.starts_with(&typed.to_ascii_lowercase()));
    }
    for spec in COMMANDS {
        let by_alias = spec.aliases.iter().any(|alias| alias.starts_with(&typed));
        if by_alias && !found.iter().any(|known| known.name == spec.name) {
            found.push(spec);
        }
    }
    let typed = typed.to_ascii_lowercase();
    found
        .into_iter()
        .map(|spec| {
            let begins = spec.name.starts_with(&typed)
                || spec.aliases.iter().any(|alias| alias.starts_with(&typed));
            let complete = spec.argument == Argument::None;
            let draft =
                if complete { format!("/{}", spec.name) } else { format!("/{} ", spec.name) };
            Candidate { label: spec.usage(), help: spec.help.to_owned(), draft, complete, begins }
        })
        .collect()
}

/// The command whose name is complete and followed by a space, as it was named, and the beginning
/// of its argument.
fn argument_of(body: &str) -> Option<(&'static CommandSpec, &'static str, &str)> {
    COMMANDS
        .iter()
        .flat_map(|spec| {
            std::iter::once(spec.name).chain(spec.aliases.iter().copied()).map(move |n| (spec, n))
        })
        .filter_map(|(spec, name)| {
            Some((spec, name, body.strip_prefix(name)?.strip_prefix(' ')?.trim_start()))
        })
        .max_by_key(|(_, name, _)| name.len())
}

fn values(
    spec: &'static CommandSpec,
    name: &str,
    typed: &str,
    vocabulary: &Vocabulary,
) -> Vec<Candidate> {
    let Some(kind) = spec.values() else { return Vec::new() };
    let known = vocabulary.candidates(kind);
    fuzzy::rank(typed, known.iter().map(|(value, _)| value.as_str()))
        .into_iter()
        .map(|index| {
            let (value, help) = &known[index];
            Candidate {
                label: value.clone(),
                help: help.clone(),
                draft: format!("/{name} {value}"),
                complete: true,
                begins: value.to_lowercase().starts_with(&typed.to_lowercase()),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafts(draft: &str) -> Vec<String> {
        let vocabulary =
            Vocabulary { models: vec!["opus".into(), "sonnet".into()], ..Vocabulary::default() };
        Completion::for_draft(draft, &vocabulary)
            .map(|list| list.candidates.into_iter().map(|c| c.draft).collect())
            .unwrap_or_default()
    }

    #[test]
    fn the_list_follows_what_is_typed() {
        assert_eq!(drafts("/").len(), COMMANDS.len());
        assert_eq!(drafts("/ex"), ["/export ", "/exit", "/context"]);
        assert_eq!(drafts("/session "), ["/session list", "/session fork ", "/session switch "]);
        assert_eq!(drafts("/model "), ["/model opus", "/model sonnet"]);
        assert_eq!(drafts("/model so"), ["/model sonnet"]);
        assert_eq!(drafts("/permissions re")[0], "/permissions read-only");
        assert_eq!(drafts("/quit"), ["/exit"]);
        assert!(drafts("/help").is_empty(), "nothing left to complete");
        assert!(drafts("/usr/bin").is_empty());
        assert!(drafts("//x").is_empty());
        assert!(drafts("help").is_empty());
    }
}
