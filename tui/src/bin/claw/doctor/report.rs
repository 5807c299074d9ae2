//! What was found, as data, as text and as JSON. Every text is made safe to show here.

use std::fmt::Write as _;

use claw_tui::sanitise;
use serde_json::json;

/// What keeps claw from being used as it is meant to; the number is the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// A settings file is not understood.
    Settings = 3,
    /// Only the demo could answer.
    NoBackend = 4,
    /// The CLI is wanted and not there.
    ProgramMissing = 5,
    /// The CLI is wanted and does not run, or does not say its version.
    VersionUnknown = 6,
    /// The CLI is wanted and has no login that could be seen.
    NoLogin = 7,
    /// Conversations cannot be saved.
    Sessions = 8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ok,
    /// Not set up, and not needed.
    Unset,
    /// Worth knowing; nothing has to be done.
    Note,
    Problem(Cause),
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unset => "unset",
            Self::Note => "note",
            Self::Problem(_) => "problem",
        }
    }

    /// SGR parameters of its mark.
    fn colour(self) -> &'static str {
        match self {
            Self::Ok => "32",
            Self::Unset => "2",
            Self::Note => "33",
            Self::Problem(_) => "1;31",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Stable, for scripts: `settings`, `backend.anthropic`, ...
    pub id: String,
    pub state: State,
    pub text: String,
    /// What to do about it.
    pub next: Option<String>,
}

impl Check {
    pub fn new(id: impl Into<String>, state: State, text: impl Into<String>) -> Self {
        Self { id: id.into(), state, text: text.into(), next: None }
    }

    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// Everything that was looked at, in groups.
#[derive(Debug, Default)]
pub struct Report {
    checks: Vec<(&'static str, Check)>,
}

impl Report {
    pub fn add(&mut self, group: &'static str, check: Check) {
        let text = sanitise::single_line(&check.text).into_owned();
        let next = check.next.map(|next| sanitise::single_line(&next).into_owned());
        self.checks.push((group, Check { text, next, ..check }));
    }

    /// 0, or the code of the first problem in the order of their codes.
    pub fn exit_code(&self) -> u8 {
        let causes = self.checks.iter().filter_map(|(_, check)| match check.state {
            State::Problem(cause) => Some(cause),
            State::Ok | State::Unset | State::Note => None,
        });
        causes.min().map_or(0, |cause| cause as u8)
    }

    /// For a person. Marks are words, so that they need no colour.
    pub fn text(&self, colours: bool) -> String {
        let mut out = String::new();
        let mut last = "";
        for (group, check) in &self.checks {
            if *group != last {
                let gap = if last.is_empty() { "" } else { "\n" };
                // Writing to a string cannot fail.
                let _ = writeln!(out, "{gap}{group}");
                last = group;
            }
            let name = format!("{:<7}", check.state.name());
            let mark =
                if colours { format!("\x1b[{}m{name}\x1b[0m", check.state.colour()) } else { name };
            let _ = writeln!(out, "  {mark}  {}", check.text);
            if let Some(next) = &check.next {
                let _ = writeln!(out, "           -> {next}");
            }
        }
        let problems = self.checks.iter().filter(|(_, check)| check.state.name() == "problem");
        let verdict = match problems.count() {
            0 => "Everything that is needed works.".to_owned(),
            1 => "One problem was found; it is marked above.".to_owned(),
            count => format!("{count} problems were found; they are marked above."),
        };
        let _ = writeln!(out, "\n{verdict}");
        out
    }

    /// For scripts: an object with the exit code and all checks.
    pub fn json(&self) -> String {
        let checks: Vec<_> = self
            .checks
            .iter()
            .map(|(_, check)| {
                json!({
                    "id": check.id,
                    "state": check.state.name(),
                    "text": check.text,
                    "next": check.next,
                })
            })
            .collect();
        let whole = json!({"exitCode": self.exit_code(), "checks": checks});
        format!("{whole:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(states: &[State]) -> Report {
        let mut report = Report::default();
        for state in states {
            report.add("Group", Check::new("id", *state, "text"));
        }
        report
    }

    #[test]
    fn the_exit_code_is_that_of_the_first_problem_in_their_order() {
        use State::{Note, Ok, Problem};
        for (states, expected) in [
            (vec![], 0),
            (vec![Ok, Note], 0),
            (vec![Ok, Problem(Cause::Settings)], 3),
            (vec![Problem(Cause::NoBackend)], 4),
            (vec![Problem(Cause::ProgramMissing)], 5),
            (vec![Problem(Cause::VersionUnknown)], 6),
            (vec![Problem(Cause::NoLogin)], 7),
            (vec![Problem(Cause::Sessions)], 8),
            (vec![Problem(Cause::Sessions), Note, Problem(Cause::ProgramMissing)], 5),
        ] {
            assert_eq!(report(&states).exit_code(), expected, "{states:?}");
        }
    }

    #[test]
    fn the_text_needs_no_colour_and_says_what_to_do() {
        let mut report = report(&[State::Ok]);
        let check = Check::new("x", State::Problem(Cause::NoBackend), "nothing is set");
        report.add("Back-ends", check.next("set a key"));
        assert_eq!(
            report.text(false),
            "Group\n  ok       text\n\nBack-ends\n  problem  nothing is set\n           -> set a key\n\n\
             One problem was found; it is marked above.\n"
        );
        assert!(report.text(true).contains("\x1b[1;31mproblem\x1b[0m  nothing is set"));
    }

    #[test]
    fn nothing_hostile_is_printed() {
        let mut report = Report::default();
        let check = Check::new("x", State::Note, "a\x1b]0;b\x07\nc\u{202e}d").next("\x1b[2Je");
        report.add("Group", check);
        for text in [report.text(false), report.json()] {
            assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "{text:?}");
        }
    }
}
