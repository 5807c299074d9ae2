//! What each slash command does.

use std::time::Instant;

use claw_runtime::driver::{Command, ReportTopic};
use claw_runtime::{NoticeLevel, TuiEvent};

use super::{App, Effect};
use crate::commands::{self, CommandAction, Parsed};
use crate::keymap::Action;
use crate::sanitise;
use crate::theme::Theme;

impl App {
    /// Carries a command out. `line` is what was typed, and comes back when it cannot be done.
    pub(super) fn execute(
        &mut self,
        now: Instant,
        action: CommandAction,
        line: &str,
        effects: &mut Vec<Effect>,
    ) {
        use CommandAction as A;
        // Who asks wants to see the answer, wherever they have read back to.
        if !matches!(
            action,
            A::Copy | A::Thinking | A::Details | A::Theme(_) | A::Stop | A::Worker | A::Exit
        ) {
            self.transcript.to_end();
        }
        let ordered = effects.len();
        let send = Effect::Send;
        let report = |topic| Effect::Send(Command::Report { topic });
        match action {
            A::Help => self.show_help(now),
            A::Status => effects.push(report(ReportTopic::Status)),
            A::Cost => effects.push(report(ReportTopic::Cost)),
            A::Context => effects.push(report(ReportTopic::Context)),
            A::Config => effects.push(report(ReportTopic::Config)),
            A::Version => {
                let text = concat!("claw ", env!("CARGO_PKG_VERSION"));
                self.notice(now, NoticeLevel::Info, text);
            }
            A::Model(Some(model)) => effects.push(send(Command::SetModel { model })),
            A::Model(None) => self.pick_model(now),
            A::Permissions(Some(mode)) => effects.push(send(Command::SetMode { mode })),
            A::Permissions(None) => self.pick_mode(),
            A::Backend(name) => effects.push(send(Command::SetBackend { name })),
            A::Theme(Some(name)) => self.set_theme(now, &name),
            A::Theme(None) => self.pick_theme(),
            A::Compact => {
                if self.run(line, effects, |cancel| Command::Compact { cancel }) {
                    self.compacting = true;
                }
            }
            A::Retry => {
                self.run(line, effects, |cancel| Command::Retry { cancel });
            }
            A::Clear => effects.push(send(Command::Clear)),
            A::SessionList | A::Resume(None) => effects.push(send(Command::ListSessions)),
            A::SessionFork(branch) => effects.push(send(Command::Fork { branch })),
            A::SessionSwitch(reference) | A::Resume(Some(reference)) => {
                effects.push(send(Command::Open { reference }));
            }
            A::Export(path) => effects.push(send(Command::Export { path })),
            A::History(count) => self.show_history(now, count),
            A::Stop if self.status.goes_on_by_itself() => effects.push(send(Command::StopUnasked)),
            A::Stop if self.turn.is_none() => {
                self.notice(now, NoticeLevel::Info, "Nothing is running.");
            }
            A::Stop => self.interrupt(now, effects),
            A::Copy => self.copy(now, self.transcript.last_answer(), effects),
            A::Thinking => self.act(now, Action::ToggleThinking, effects),
            A::Details => self.act(now, Action::ToggleDetails, effects),
            A::Worker => self.look_at_worker(effects),
            A::Exit => self.quit(effects),
        }
        let sends = |effect: &Effect| matches!(effect, Effect::Send(_));
        if self.has_ended() && effects[ordered..].iter().any(sends) {
            effects.truncate(ordered);
            self.composer.refuse(line, super::ENDED);
        }
    }

    pub(super) fn notice(&mut self, now: Instant, level: NoticeLevel, text: &str) {
        let event = TuiEvent::Notice { level, text: text.to_owned() };
        self.transcript.apply(now, &event);
    }

    pub(super) fn show_help(&mut self, now: Instant) {
        let markdown = format!("{}\n{}", commands::help_markdown(), self.keymap.help_markdown());
        let title = "Commands and keys".to_owned();
        self.transcript.apply(now, &TuiEvent::Reply { title, markdown });
    }

    fn show_history(&mut self, now: Instant, count: usize) {
        let history = self.composer.history();
        let mut markdown = String::new();
        let is_prompt = |line: &&String| matches!(commands::parse(line), Parsed::Prompt(_));
        let last: Vec<&String> = history.iter().filter(is_prompt).rev().take(count).collect();
        for prompt in last.into_iter().rev() {
            let first = sanitise::single_line(prompt.trim().lines().next().unwrap_or_default());
            markdown.push_str(&format!("- {}\n", literal(&first)));
        }
        if markdown.is_empty() {
            markdown.push_str("There is no prompt yet.\n");
        }
        let title = "Last prompts".to_owned();
        self.transcript.apply(now, &TuiEvent::Reply { title, markdown });
    }

    /// Switches the colours, keeping what the terminal can show.
    pub(super) fn set_theme(&mut self, now: Instant, name: &str) {
        if let Some(theme) = Theme::named(name, self.depth) {
            if theme.name != name {
                let text = format!("This terminal shows no colours, so \"{name}\" looks plain.");
                self.notice(now, NoticeLevel::Info, &text);
            }
            self.transcript.set_theme(theme.clone());
            self.theme = theme;
            return;
        }
        let known: Vec<&str> = Theme::names().collect();
        let text = format!("There is no theme \"{name}\"; one of {}.", known.join(", "));
        self.notice(now, NoticeLevel::Warning, &text);
    }
}

/// Text as markdown that shows it as it is.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
