//! A tool call: what is known of it, and how that is drawn.
//!
//! One line says name, main argument and outcome; diffs, todo lists, failures and denials stand
//! open below it, everything else on demand.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use claw_runtime::tools::{TodoItem, TodoStatus, ToolFacts, ToolOutcome};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::cell::Env;
use super::diff;
use super::output::OutputTail;
use super::source::Source;
use super::summary::{self, Argument};
use crate::markdown::wrap::{Margins, truncate_end, wrap_words};
use crate::sanitise;

/// Lines of live output below a running tool.
const TAIL_LINES: usize = 5;
/// Lines of a diff that stand open.
const DIFF_LINES: usize = 20;
/// Lines of a failure's output that stand open.
const FAILURE_LINES: usize = 10;
/// Lines of an opened output that are laid out; the middle of a longer one is left out.
const OPEN_LINES: usize = 2000;
/// The main argument is not squeezed below this: the outcome goes to a line of its own instead.
const NARROWEST_ARGUMENT: usize = 12;

/// One call of a tool.
#[derive(Debug)]
pub struct Tool {
    name: String,
    input: Source,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The model still writes the input.
    Writing,
    /// The input is complete; it has not begun.
    Ready,
    /// A question to the person is open.
    Waiting,
    Running {
        since: Instant,
        output: OutputTail,
    },
    /// It ran; its result is not there yet.
    Ended {
        is_error: bool,
        elapsed: Duration,
    },
    Done(Outcome),
    /// The stream broke off inside the call.
    Incomplete,
    /// The turn ended without a result.
    Interrupted,
}

#[derive(Debug)]
struct Outcome {
    output: Source,
    is_error: bool,
    denied: bool,
    facts: Option<ToolFacts>,
    elapsed: Option<Duration>,
}

impl Outcome {
    /// From which line on the text is prose for people: the tool's own words, and not what a
    /// command or a file holds.
    fn prose_from(&self, name: &str) -> usize {
        let facts = self.facts.as_ref().or_else(|| self.output.facts());
        match facts {
            _ if self.denied => 0,
            // The tool's notes follow the output, whose columns may mean something.
            Some(ToolFacts::Command { lines: Some(lines), omitted_bytes: 0, .. }) => {
                usize::try_from(*lines).unwrap_or(usize::MAX)
            }
            Some(ToolFacts::Command { .. }) => usize::MAX,
            // Results that came without facts may hold what a command wrote.
            None if name.eq_ignore_ascii_case("bash") => usize::MAX,
            _ if self.is_error => 0,
            _ => usize::MAX,
        }
    }

    /// What is known about a result with this input.
    fn facts(&self, input: &str) -> Option<Cow<'_, ToolFacts>> {
        let known = self.facts.as_ref().or_else(|| self.output.facts()).map(Cow::Borrowed);
        let implied = || summary::implied_facts(input).map(Cow::Owned);
        known.or_else(|| if self.is_error { None } else { implied() })
    }
}

impl Tool {
    pub fn writing(name: &str) -> Self {
        let name = sanitise::single_line(name).into_owned();
        Self { name, input: Source::Own(String::new()), state: State::Writing }
    }

    /// A call of a loaded session; it counts as interrupted until its result is found.
    pub fn loaded(name: &str, input: Source) -> Self {
        let name = sanitise::single_line(name).into_owned();
        Self { name, input, state: State::Interrupted }
    }

    pub fn ready(&mut self, input: &str) {
        self.input = Source::clean(input);
        if matches!(self.state, State::Writing) {
            self.state = State::Ready;
        }
    }

    pub fn incomplete(&mut self) {
        self.state = State::Incomplete;
    }

    pub fn waiting(&mut self) {
        if matches!(self.state, State::Writing | State::Ready) {
            self.state = State::Waiting;
        }
    }

    pub fn answered(&mut self) {
        if matches!(self.state, State::Waiting) {
            self.state = State::Ready;
        }
    }

    pub fn started(&mut self, now: Instant, input: &str) {
        self.input = Source::clean(input);
        self.state = State::Running { since: now, output: OutputTail::new() };
    }

    pub fn output(&mut self, piece: &str) {
        if let State::Running { output, .. } = &mut self.state {
            output.push(piece);
        }
    }

    pub fn ended(&mut self, is_error: bool, elapsed: Duration) {
        self.state = State::Ended { is_error, elapsed };
    }

    pub fn result(&mut self, input: &str, outcome: &ToolOutcome, denied: bool) {
        let elapsed = match &self.state {
            State::Ended { elapsed, .. } => Some(*elapsed),
            _ if denied => None,
            _ => Some(outcome.elapsed),
        };
        self.input = Source::clean(input);
        self.state = State::Done(Outcome {
            output: Source::clean_output(&outcome.output),
            is_error: outcome.is_error,
            denied: denied || outcome.facts == Some(ToolFacts::Denied),
            facts: outcome.facts.clone(),
            elapsed,
        });
    }

    /// The result of a loaded call.
    pub fn loaded_result(&mut self, output: Source, is_error: bool) {
        let denied = matches!(output.facts(), Some(ToolFacts::Denied));
        self.state = State::Done(Outcome { output, is_error, denied, facts: None, elapsed: None });
    }

    /// The turn ended: a call without a result will not get one. True when it had none.
    pub fn interrupt(&mut self) -> bool {
        let open = !matches!(self.state, State::Done(_) | State::Incomplete);
        if open {
            self.state = State::Interrupted;
        }
        open
    }

    /// When it began to run, while it runs.
    pub fn running_since(&self) -> Option<Instant> {
        match &self.state {
            State::Running { since, .. } => Some(*since),
            _ => None,
        }
    }

    /// Input and output, for copying.
    pub fn copy_text(&self) -> String {
        let input = summary::input_text(&self.name, &self.input.text());
        match &self.state {
            State::Done(outcome) => format!("{input}\n\n{}", outcome.output.text()),
            _ => input,
        }
    }

    pub fn lay_out(&self, expanded: bool, env: &mut Env<'_>, out: &mut Vec<Line<'static>>) {
        self.head(env, out);
        if expanded {
            self.opened(env, out);
        } else {
            self.closed(env, out);
        }
    }

    fn mark(&self, env: &Env<'_>) -> (&'static str, Style) {
        match &self.state {
            State::Writing | State::Ready => ("○ ", env.theme.dim),
            State::Waiting => ("? ", env.theme.warning),
            State::Running { .. } => ("● ", env.theme.running),
            State::Ended { is_error: true, .. } | State::Incomplete => ("✗ ", env.theme.error),
            State::Done(outcome) if outcome.is_error || outcome.denied => ("✗ ", env.theme.error),
            State::Ended { .. } | State::Done(_) => ("✓ ", env.theme.success),
            State::Interrupted => ("✗ ", env.theme.warning),
        }
    }

    /// Outcome, or what it is doing, in a few words.
    fn facts(&self, env: &Env<'_>) -> String {
        match &self.state {
            State::Writing => "writing its input…".to_owned(),
            State::Ready => String::new(),
            State::Waiting => "waits for permission".to_owned(),
            State::Running { since, .. } => {
                let seconds =
                    env.now.map_or(0, |now| now.saturating_duration_since(*since).as_secs());
                if seconds == 0 {
                    "running".to_owned()
                } else {
                    format!("running {}", summary::seconds(seconds))
                }
            }
            State::Ended { elapsed, .. } => summary::elapsed(*elapsed),
            State::Incomplete => "cut off inside the call; it was not run".to_owned(),
            State::Interrupted => "interrupted".to_owned(),
            State::Done(outcome) => {
                let mut words = Vec::new();
                if outcome.denied {
                    words.push("denied".to_owned());
                } else {
                    words.extend(summary::facts(
                        &self.name,
                        outcome.facts(&self.input.text()).as_deref(),
                        &outcome.output.text(),
                        outcome.is_error,
                    ));
                    words.extend(
                        outcome.elapsed.map(summary::elapsed).filter(|text| !text.is_empty()),
                    );
                }
                words.join(" · ")
            }
        }
    }

    /// The one-line form: name, main argument, outcome. The argument gives way, the rest does not.
    fn head(&self, env: &Env<'_>, out: &mut Vec<Line<'static>>) {
        let (mark, mark_style) = self.mark(env);
        let facts = self.facts(env);
        let argument = summary::argument(&self.name, &self.input.text());
        let width = usize::from(env.width);
        let taken = 2 + self.name.width() + if facts.is_empty() { 0 } else { facts.width() + 2 };
        let room = width.saturating_sub(taken + 1);
        let wanted = argument.width().min(NARROWEST_ARGUMENT);
        let own_line = room < wanted || taken > width;
        let room = if own_line { width.saturating_sub(3 + self.name.width()) } else { room };
        let mut spans = vec![
            Span::styled(mark, mark_style),
            Span::styled(truncate_end(&self.name, width.saturating_sub(2)), env.theme.tool_name),
        ];
        let argument = match argument {
            Argument::Path(path) => crate::markdown::wrap::truncate_start(&path, room),
            Argument::Text(text) => truncate_end(&text, room),
        };
        if !argument.is_empty() {
            spans.push(Span::raw(" "));
            spans.push(Span::styled(argument, env.theme.tool_argument));
        }
        if !facts.is_empty() && !own_line {
            spans.push(Span::raw("  "));
            spans.push(Span::styled(facts.clone(), self.facts_style(env)));
        }
        out.push(Line::from(spans));
        if !facts.is_empty() && own_line {
            words(&facts, self.facts_style(env), env, out);
        }
    }

    fn facts_style(&self, env: &Env<'_>) -> Style {
        match &self.state {
            State::Waiting | State::Interrupted => env.theme.warning,
            State::Incomplete => env.theme.error,
            State::Done(outcome) if outcome.denied => env.theme.error,
            _ => env.theme.dim,
        }
    }

    /// What stands open below the line without being asked for.
    fn closed(&self, env: &Env<'_>, out: &mut Vec<Line<'static>>) {
        match &self.state {
            State::Running { output, .. } => {
                for line in output.last_lines(TAIL_LINES) {
                    let line = truncate_end(line, usize::from(env.width).saturating_sub(2));
                    out.push(Line::from(vec![
                        Span::raw("  "),
                        Span::styled(line, env.theme.tool_output),
                    ]));
                }
            }
            State::Done(outcome) if outcome.is_error || outcome.denied => {
                let output = outcome.output.text();
                let lines: Vec<&str> = output.trim_end().lines().collect();
                // The end of a failure's output says most about it.
                let from = lines.len().saturating_sub(FAILURE_LINES);
                if from > 0 {
                    words(&format!("… {from} lines above"), env.theme.dim, env, out);
                }
                let prose_from = outcome.prose_from(&self.name);
                for (at, line) in lines.iter().enumerate().skip(from) {
                    output_line(line, at >= prose_from, env.theme.text, env, out);
                }
            }
            State::Done(outcome) => match outcome.facts(&self.input.text()).as_deref() {
                Some(ToolFacts::Diff { diff, .. }) => {
                    let hidden = diff::lay_out(diff, DIFF_LINES, env, out);
                    if hidden > 0 {
                        words(&format!("… {hidden} more lines"), env.theme.dim, env, out);
                    }
                }
                Some(ToolFacts::Todo { items }) => todo(items, env, out),
                _ => {}
            },
            _ => {}
        }
    }

    /// Everything: input and output in full.
    fn opened(&self, env: &mut Env<'_>, out: &mut Vec<Line<'static>>) {
        let input = summary::input_text(&self.name, &self.input.text());
        block(&input, usize::MAX, env.theme.tool_argument, env, out);
        let State::Done(outcome) = &self.state else {
            self.closed(env, out);
            return;
        };
        match outcome.facts(&self.input.text()).as_deref() {
            Some(ToolFacts::Diff { diff, .. }) => {
                let hidden = diff::lay_out(diff, OPEN_LINES, env, out);
                if hidden > 0 {
                    words(&format!("… {hidden} more lines"), env.theme.dim, env, out);
                }
            }
            Some(ToolFacts::Todo { items }) => todo(items, env, out),
            _ => {
                let style = if outcome.is_error { env.theme.text } else { env.theme.tool_output };
                let prose_from = outcome.prose_from(&self.name);
                block(&outcome.output.text(), prose_from, style, env, out);
            }
        }
    }
}

/// A sentence below the head.
fn words(text: &str, style: Style, env: &Env<'_>, out: &mut Vec<Line<'static>>) {
    let margins = Margins { first: vec![Span::raw("  ")], rest: vec![Span::raw("  ")] };
    wrap_words(&[Span::styled(text, style)], usize::from(env.width), &margins, out);
}

/// One line of a result: prose is broken at words, everything else only where the width ends.
fn output_line(
    line: &str,
    is_prose: bool,
    style: Style,
    env: &Env<'_>,
    out: &mut Vec<Line<'static>>,
) {
    if is_prose {
        words(line, style, env, out);
    } else {
        // Compilers point at columns: nothing is moved within a line.
        diff::indented(&[Span::styled(line, style)], env.width, out);
    }
}

/// Lines as they are, from `prose_from` on as prose; of very many the middle is left out.
fn block(text: &str, prose_from: usize, style: Style, env: &Env<'_>, out: &mut Vec<Line<'static>>) {
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return;
    }
    let total = text.lines().count();
    let hidden = total.saturating_sub(OPEN_LINES);
    let head = if hidden > 0 { OPEN_LINES / 2 } else { total };
    for (index, line) in text.lines().enumerate() {
        if index == head && hidden > 0 {
            words(&format!("… {hidden} lines left out here"), env.theme.dim, env, out);
        }
        if index < head || index >= head + hidden {
            output_line(line, index >= prose_from, style, env, out);
        }
    }
}

/// A todo list as checkboxes.
fn todo(items: &[TodoItem], env: &Env<'_>, out: &mut Vec<Line<'static>>) {
    for item in items {
        let (mark, text, style) = match item.status {
            TodoStatus::Completed => ("☑ ", &item.content, env.theme.todo_done),
            TodoStatus::InProgress if !item.active_form.is_empty() => {
                ("▶ ", &item.active_form, env.theme.todo_active)
            }
            TodoStatus::InProgress => ("▶ ", &item.content, env.theme.todo_active),
            TodoStatus::Pending => ("☐ ", &item.content, env.theme.text),
        };
        let margins = Margins {
            first: vec![Span::raw("  "), Span::styled(mark, style)],
            rest: vec![Span::raw("    ")],
        };
        let text = Span::styled(sanitise::single_line(text).into_owned(), style);
        wrap_words(&[text], usize::from(env.width), &margins, out);
    }
}
