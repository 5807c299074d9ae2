//! What the person should know beside the conversation, in words.

use claw_runtime::{CompactionCause, NoticeLevel, StreamSink, TuiEvent};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::fact::{AgentEnd, Quota};

/// Remembers over turns what was said, so that it is said once per change.
pub(super) struct Notices {
    zone: TimeZone,
    quota: Option<Quota>,
}

impl Notices {
    pub fn new(zone: TimeZone) -> Self {
        Self { zone, quota: None }
    }

    /// Says how the account stands when that changed and is worth a word.
    pub fn quota(&mut self, quota: Quota, sink: &dyn StreamSink) {
        if self.quota.as_ref() == Some(&quota) {
            return;
        }
        let limit = limit_name(quota.kind.as_deref());
        let resets = quota.resets_at.and_then(|at| self.time(at));
        let resets = resets.map_or_else(String::new, |time| format!("; it resets {time}"));
        if quota.is_hard() {
            let text = format!("The account's {limit} is reached{resets}.");
            sink.emit(TuiEvent::Notice { level: NoticeLevel::Error, text });
        } else if quota.status == "allowed_warning" {
            sink.emit(TuiEvent::warning(format!("The account is close to its {limit}{resets}.")));
        }
        self.quota = Some(quota);
    }

    fn time(&self, seconds: i64) -> Option<String> {
        let at = Timestamp::from_second(seconds).ok()?.to_zoned_datetime(self.zone.clone());
        Some(at.strftime("on %a %-d %b at %H:%M").to_string())
    }
}

fn limit_name(kind: Option<&str>) -> String {
    match kind {
        Some("five_hour") => "5-hour limit".to_owned(),
        Some("seven_day") => "weekly limit".to_owned(),
        Some(other) => format!("usage limit ({})", other.replace('_', " ")),
        None => "usage limit".to_owned(),
    }
}

/// The CLI compacted its own context.
pub(super) fn compacted(automatic: bool, before: u64, after: u64, sink: &dyn StreamSink) {
    let cause = if automatic { CompactionCause::Automatic } else { CompactionCause::Requested };
    sink.emit(TuiEvent::Compacting { cause, round: 1, max_rounds: 1 });
    sink.emit(TuiEvent::Compacted {
        cause,
        removed: 0,
        before_tokens: before,
        after_tokens: after,
        original: None,
    });
}

/// A word of the CLI to the person.
pub(super) fn words(text: &str, sink: &dyn StreamSink) {
    let text = text.trim();
    if !text.is_empty() {
        sink.emit(TuiEvent::info(text));
    }
}

pub(super) fn agent_done(status: AgentEnd, summary: &str, sink: &dyn StreamSink) {
    let summary = summary.trim();
    let summary = if summary.is_empty() { String::new() } else { format!(": {summary}") };
    let (level, how) = match status {
        AgentEnd::Completed => (NoticeLevel::Info, "is done"),
        AgentEnd::Failed => (NoticeLevel::Warning, "failed"),
        AgentEnd::Killed => (NoticeLevel::Warning, "was stopped"),
        AgentEnd::TimedOut => (NoticeLevel::Warning, "ran out of time"),
        AgentEnd::Lost => (NoticeLevel::Warning, "never told its end and is given up"),
    };
    sink.emit(TuiEvent::Notice { level, text: format!("Sub-agent {how}{summary}") });
}

/// Output comes in whole lines.
pub(super) fn line(text: &str) -> String {
    let mut line = text.trim_end().to_owned();
    line.push('\n');
    line
}
