//! The status line: what answers, in which mode, how full the context is, and what is going on.
//!
//! Owns the facts it shows. When the width does not suffice, the least needed parts go first.

use std::time::{Duration, Instant};

use claw_runtime::driver::RuntimeStatus;
use claw_runtime::usage::UsageReport;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

use crate::sanitise;
use crate::theme::Theme;

/// What the program is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Activity {
    /// The runtime thread is still setting up.
    #[default]
    Starting,
    Idle,
    /// Sent; nothing has come yet.
    Waiting,
    Thinking,
    Writing,
    /// The model writes a call of this tool.
    Preparing(String),
    /// A tool of this name runs.
    Running(String),
    /// A hook with this command runs.
    Hook(String),
    /// A question waits for the person.
    Asking,
    Compacting,
    Stopping,
    /// The runtime thread has ended.
    Ended,
}

/// A request failed and is sent again at this time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Retry {
    attempt: u32,
    max_attempts: u32,
    at: Instant,
    reason: String,
}

/// State of the line.
#[derive(Debug, Default)]
pub struct StatusLine {
    runtime: Option<RuntimeStatus>,
    activity: Activity,
    /// Since when the activity lasts; none between turns.
    since: Option<Instant>,
    retry: Option<Retry>,
    silent_for: Option<Duration>,
    /// Shown in place of the activity until something else happens.
    hint: Option<String>,
}

impl StatusLine {
    pub fn runtime(&self) -> Option<&RuntimeStatus> {
        self.runtime.as_ref()
    }

    pub fn set_runtime(&mut self, status: RuntimeStatus) {
        self.runtime = Some(status);
        if self.activity == Activity::Starting {
            self.activity = Activity::Idle;
        }
    }

    pub fn set_usage(&mut self, report: UsageReport) {
        if let Some(runtime) = &mut self.runtime {
            runtime.usage = report;
        }
    }

    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Something arrived: retries and silence are over.
    pub fn set_activity(&mut self, now: Instant, activity: Activity) {
        if self.since.is_some() && self.activity != activity {
            self.since = Some(now);
        }
        self.activity = activity;
        self.retry = None;
        self.silent_for = None;
    }

    pub fn turn_started(&mut self, now: Instant) {
        self.since = Some(now);
        self.hint = None;
        self.set_activity(now, Activity::Waiting);
    }

    pub fn turn_ended(&mut self, now: Instant) {
        self.since = None;
        self.set_activity(now, Activity::Idle);
    }

    pub fn retrying(&mut self, now: Instant, attempt: u32, max: u32, wait: Duration, reason: &str) {
        self.retry = Some(Retry {
            attempt,
            max_attempts: max,
            at: now + wait,
            reason: sanitise::single_line(reason).into_owned(),
        });
        self.silent_for = None;
    }

    pub fn stalled(&mut self, silent_for: Duration) {
        self.silent_for = Some(silent_for);
    }

    pub fn set_hint(&mut self, hint: Option<String>) {
        self.hint = hint;
    }

    /// The next whole second of the running turn; none when nothing counts.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let since = self.since?;
        let elapsed = now.saturating_duration_since(since);
        Some(since + Duration::from_secs(elapsed.as_secs() + 1))
    }

    /// Draws into one row.
    pub fn draw(&self, now: Instant, area: Rect, buf: &mut Buffer, theme: &Theme) {
        if area.is_empty() {
            return;
        }
        buf.set_style(area, theme.status);
        let (state, style) = self.state(now, theme);
        let state_width = state.width().min(usize::from(area.width));
        let facts = self.facts(usize::from(area.width).saturating_sub(state_width + 2));
        buf.set_stringn(area.x, area.y, &facts, usize::from(area.width), theme.status);
        let x = area.right().saturating_sub(state_width as u16);
        buf.set_stringn(x, area.y, &state, state_width, style);
    }

    /// What is going on, for the right side.
    fn state(&self, now: Instant, theme: &Theme) -> (String, Style) {
        if let Some(hint) = &self.hint {
            return (hint.clone(), theme.warning);
        }
        let elapsed = self.since.map_or(0, |since| now.saturating_duration_since(since).as_secs());
        if let Some(retry) = &self.retry {
            let wait = retry.at.saturating_duration_since(now).as_secs_f32().ceil();
            let text = format!(
                "retry {}/{} in {wait:.0} s: {} · esc stops",
                retry.attempt, retry.max_attempts, retry.reason
            );
            return (text, theme.warning);
        }
        if let Some(silent) = self.silent_for {
            let text = format!("no data for {} s · esc stops", silent.as_secs());
            return (text, theme.warning);
        }
        let text = match &self.activity {
            Activity::Starting => "starting".to_owned(),
            Activity::Idle => "ready".to_owned(),
            Activity::Waiting => format!("waiting {elapsed} s · esc stops"),
            Activity::Thinking => format!("thinking {elapsed} s · esc stops"),
            Activity::Writing => format!("writing {elapsed} s · esc stops"),
            Activity::Preparing(tool) => {
                format!("preparing {} {elapsed} s · esc stops", sanitise::single_line(tool))
            }
            Activity::Running(tool) => {
                format!("running {} {elapsed} s · esc stops", sanitise::single_line(tool))
            }
            Activity::Hook(command) => {
                let command: String = sanitise::single_line(command).chars().take(30).collect();
                format!("hook {command} {elapsed} s · esc stops")
            }
            Activity::Asking => "waiting for your permission".to_owned(),
            Activity::Compacting => "compacting".to_owned(),
            Activity::Stopping => "stopping".to_owned(),
            Activity::Ended => "the runtime has ended · /exit".to_owned(),
        };
        let style = match self.activity {
            Activity::Asking | Activity::Ended => theme.warning,
            Activity::Idle | Activity::Starting => theme.status,
            _ => theme.running,
        };
        (text, style)
    }

    /// Backend, model, mode, context, cost and branch, most needed first, as many as fit.
    fn facts(&self, width: usize) -> String {
        let Some(runtime) = &self.runtime else {
            return String::new();
        };
        let backend = if runtime.backend == "demo" {
            "demo (scripted)".to_owned()
        } else {
            runtime.backend.clone()
        };
        let model = if runtime.backend == "demo" {
            String::new()
        } else {
            sanitise::single_line(&runtime.model).into_owned()
        };
        let mode = runtime.mode.to_string();
        let mut parts = vec![backend, mode, model, context(&runtime.usage), cost(&runtime.usage)];
        if let Some(fork) = &runtime.fork {
            let branch = fork.branch_name.as_deref().unwrap_or("fork");
            parts.push(format!("⎇ {}", sanitise::single_line(branch)));
        }
        let mut line = String::new();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let columns = part.width() + if line.is_empty() { 1 } else { 3 };
            if line.width() + columns > width {
                break;
            }
            line.push_str(if line.is_empty() { " " } else { " · " });
            line.push_str(part);
        }
        line
    }
}

fn context(usage: &UsageReport) -> String {
    let used = tokens(usage.context_tokens);
    match usage.context_window {
        Some(window) if window > 0 => {
            format!("ctx {used} ({} %)", usage.context_tokens.saturating_mul(100) / window)
        }
        _ => format!("ctx {used}"),
    }
}

fn cost(usage: &UsageReport) -> String {
    match usage.cost_usd {
        Some(cost) => format!("${cost:.2}"),
        None => "cost unknown".to_owned(),
    }
}

fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}
