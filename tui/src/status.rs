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

use crate::markdown::wrap::truncate_end;
use crate::sanitise;
use crate::theme::Theme;

const SECOND: Duration = Duration::from_secs(1);

/// How long word of silence counts: it is repeated every second, and data that is not shown (a long
/// tool input) ends it without an event.
const SILENCE_LASTS: Duration = Duration::from_millis(2_500);

/// Characters of a reason for a retry: what can be done about it has to fit behind.
const REASON_CHARS: usize = 40;

/// A longer branch is cut when it is narrow.
const BRANCH_COLUMNS: usize = 18;

/// Places of the facts in the line, in the order in which they go when it is narrow. A branch says
/// which conversation this is, which matters more than what answers in it.
const LEAST_NEEDED_FIRST: [usize; 6] = [5, CONTEXT, 2, BRANCH, 1, 0];
const BRANCH: usize = 3;
const CONTEXT: usize = 4;

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

impl Activity {
    /// A backend does something of a turn.
    fn is_work(&self) -> bool {
        matches!(
            self,
            Self::Thinking | Self::Writing | Self::Preparing(_) | Self::Running(_) | Self::Hook(_)
        )
    }
}

/// A request failed and is sent again at this time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Retry {
    attempt: u32,
    max_attempts: u32,
    at: Instant,
    reason: String,
}

/// A tool that has begun and not ended.
#[derive(Debug, Clone)]
struct RunningTool {
    id: String,
    name: String,
    since: Instant,
}

/// State of the line.
#[derive(Debug, Default)]
pub struct StatusLine {
    runtime: Option<RuntimeStatus>,
    activity: Activity,
    /// Since when the activity lasts; none between turns.
    since: Option<Instant>,
    retry: Option<Retry>,
    /// How long nothing has come, and until when that is worth telling.
    silence: Option<(Duration, Instant)>,
    /// Tools that run, in the order in which they began.
    tools: Vec<RunningTool>,
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
        self.silence = None;
    }

    /// As [`Self::set_activity`], for what the turn does: while the person waits for it to stop,
    /// late events must not look like progress.
    pub fn progress(&mut self, now: Instant, activity: Activity) {
        if self.activity != Activity::Stopping {
            self.set_activity(now, activity);
        }
    }

    /// Something was ordered that runs; when its turn begins, its time counts.
    pub fn sent(&mut self) {
        self.activity = Activity::Waiting;
    }

    pub fn tool_started(&mut self, now: Instant, id: &str, name: &str) {
        self.tools.push(RunningTool { id: id.to_owned(), name: name.to_owned(), since: now });
        self.settle(now);
    }

    pub fn tool_ended(&mut self, now: Instant, id: &str) {
        self.tools.retain(|tool| tool.id != id);
        self.settle(now);
    }

    /// Something is over: what still goes on is shown again.
    pub fn settle(&mut self, now: Instant) {
        let Some(RunningTool { name, since, .. }) = self.tools.last() else {
            return self.progress(now, Activity::Waiting);
        };
        let (name, since) = (name.clone(), *since);
        self.progress(now, Activity::Running(name));
        self.since = self.since.map(|_| since);
    }

    pub fn turn_started(&mut self, now: Instant) {
        self.since = Some(now);
        self.hint = None;
        self.set_activity(now, Activity::Waiting);
    }

    pub fn turn_ended(&mut self, now: Instant) {
        self.since = None;
        self.tools.clear();
        self.set_activity(now, Activity::Idle);
    }

    /// Something runs that nobody here began.
    pub fn goes_on_by_itself(&self) -> bool {
        self.since.is_none() && self.activity.is_work()
    }

    pub fn retrying(&mut self, now: Instant, attempt: u32, max: u32, wait: Duration, reason: &str) {
        if self.activity == Activity::Stopping {
            return;
        }
        self.retry = Some(Retry {
            attempt,
            max_attempts: max,
            at: now + wait,
            reason: sanitise::single_line(reason).chars().take(REASON_CHARS).collect(),
        });
        self.silence = None;
    }

    /// Nothing has come for so long; repeated while it lasts.
    pub fn stalled(&mut self, now: Instant, silent_for: Duration) {
        if self.activity != Activity::Stopping {
            self.silence = Some((silent_for, now + SILENCE_LASTS));
        }
    }

    pub fn set_hint(&mut self, hint: Option<String>) {
        self.hint = hint;
    }

    /// When the number on the screen changes next; none when there is no number.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        if let Some(retry) = &self.retry {
            let left = retry.at.saturating_duration_since(now);
            let whole = Duration::from_secs(whole_seconds_up(left));
            return (!left.is_zero()).then(|| now + (left + SECOND).saturating_sub(whole));
        }
        if let Some((_, until)) = self.silence.filter(|(_, until)| now < *until) {
            return Some(until);
        }
        let since = match self.activity {
            Activity::Waiting
            | Activity::Thinking
            | Activity::Writing
            | Activity::Preparing(_)
            | Activity::Running(_)
            | Activity::Hook(_) => self.since,
            _ => None,
        }?;
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
            let when = match whole_seconds_up(retry.at.saturating_duration_since(now)) {
                0 => "now".to_owned(),
                seconds => format!("in {seconds} s"),
            };
            let text = format!(
                "retry {}/{} {when}: {} · esc stops",
                retry.attempt, retry.max_attempts, retry.reason
            );
            return (text, theme.warning);
        }
        if let Some((silent_for, _)) = self.silence.filter(|(_, until)| now < *until) {
            let text = format!("no data for {} s · esc stops", silent_for.as_secs());
            return (text, theme.warning);
        }
        if self.goes_on_by_itself() {
            return ("the backend goes on by itself · esc stops".to_owned(), theme.running);
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
                let others = match self.tools.len() {
                    0 | 1 => String::new(),
                    n => format!(" +{}", n - 1),
                };
                let tool = sanitise::single_line(tool);
                format!("running {tool}{others} {elapsed} s · esc stops")
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

    /// Backend, mode, model, branch, context and cost, as many as fit.
    fn facts(&self, width: usize) -> String {
        let Some(runtime) = &self.runtime else {
            return String::new();
        };
        let mode = runtime.mode.to_string();
        let context = context(&runtime.usage);
        // No model answers in the demo, and nothing is paid for.
        let (backend, model, cost) = if runtime.backend == "demo" {
            ("demo (scripted)".to_owned(), String::new(), String::new())
        } else {
            let model = sanitise::single_line(&runtime.model).into_owned();
            (runtime.backend.clone(), model, cost(&runtime.usage))
        };
        let branch = runtime.fork.as_ref().map_or_else(String::new, |fork| {
            let name = sanitise::single_line(fork.branch_name.as_deref().unwrap_or("fork"));
            format!("⎇ {name}")
        });
        let mut parts = [backend, mode, model, branch, context, cost];
        if joined(&parts).width() > width {
            parts[CONTEXT] = context_share(&runtime.usage);
            parts[BRANCH] = truncate_end(&parts[BRANCH], BRANCH_COLUMNS);
        }
        for part in LEAST_NEEDED_FIRST {
            if joined(&parts).width() <= width {
                break;
            }
            parts[part].clear();
        }
        joined(&parts)
    }
}

/// The parts that say something, with dots between them.
fn joined(parts: &[String]) -> String {
    let said: Vec<&str> =
        parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    if said.is_empty() { String::new() } else { format!(" {}", said.join(" · ")) }
}

fn whole_seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
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

/// As [`context`], shorter.
fn context_share(usage: &UsageReport) -> String {
    match usage.context_window {
        Some(window) if window > 0 => {
            format!("ctx {} %", usage.context_tokens.saturating_mul(100) / window)
        }
        _ => context(usage),
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
