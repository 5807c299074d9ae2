//! When a failed request is sent again, and after how long.
//!
//! The schedule is a library's; what may be repeated is decided here: a refusal that says "later",
//! a failing server, a connection that broke before the first byte of an answer. Never a request
//! that is still alive, however slow, and never an answer of which something was already shown.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use jiff::Timestamp;
use reqwest::header::HeaderMap;

/// How often and how patiently a request is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryConfig {
    /// Repetitions after the first attempt.
    pub max_retries: u32,
    /// The first wait; each later one is about twice as long.
    pub min_wait: Duration,
    /// The longest wait that the schedule reaches.
    pub max_wait: Duration,
    /// Waits are stretched at random, so that many clients do not come back at once.
    pub jitter: bool,
    /// A provider that asks for a longer wait than this is not waited for: the error says how long.
    pub max_retry_after: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_retries: 8,
            min_wait: Duration::from_secs(1),
            max_wait: Duration::from_secs(128),
            jitter: true,
            max_retry_after: Duration::from_mins(10),
        }
    }
}

impl RetryConfig {
    /// The waits of one request, one for each repetition.
    pub(super) fn waits(&self) -> Waits {
        let builder = ExponentialBuilder::new()
            .with_min_delay(self.min_wait)
            .with_max_delay(self.max_wait)
            .with_max_times(self.max_retries as usize);
        let builder = if self.jitter { builder.with_jitter() } else { builder };
        Waits {
            schedule: builder.build(),
            max_wait: self.max_wait,
            max_retry_after: self.max_retry_after,
        }
    }
}

/// Whether a failure may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    GiveUp,
    /// Repeat; the provider may have said when.
    Again {
        after: Option<Duration>,
    },
}

/// The waits that are left to one request.
pub(super) struct Waits {
    schedule: ExponentialBackoff,
    max_wait: Duration,
    max_retry_after: Duration,
}

impl Waits {
    /// How long to wait before the next attempt; none when it is time to give up.
    pub fn next(&mut self, advice: Advice) -> Option<Duration> {
        let Advice::Again { after } = advice else { return None };
        if after.is_some_and(|after| after > self.max_retry_after) {
            return None;
        }
        let scheduled = self.schedule.next()?.min(self.max_wait);
        Some(after.unwrap_or(scheduled))
    }
}

/// Whether a status says that the same request may succeed later. 529 is Anthropic's "overloaded".
pub(super) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// What a refusal says about repeating it, in its headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    /// `retry-after`: how long to wait.
    pub after: Option<Duration>,
    /// `x-should-retry`: whether it makes sense at all, whatever the status.
    pub should_retry: Option<bool>,
}

impl Wishes {
    pub fn read(headers: &HeaderMap, now: Timestamp) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        Self {
            after: text("retry-after").and_then(|value| parse_retry_after(value, now)),
            should_retry: text("x-should-retry").and_then(|value| value.parse().ok()),
        }
    }
}

/// Reads `Retry-After`: seconds, or an HTTP date counted from `now`. A date in the past is zero.
fn parse_retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_an_http_date() {
        let now: Timestamp = "2026-10-21T07:28:00Z".parse().unwrap();
        let check = |value: &str, expected: Option<u64>| {
            let expected = expected.map(Duration::from_secs);
            assert_eq!(parse_retry_after(value, now), expected, "{value}");
        };
        check("7", Some(7));
        check(" 0 ", Some(0));
        check("Wed, 21 Oct 2026 07:28:30 GMT", Some(30));
        check("Wed, 21 Oct 2026 07:00:00 GMT", Some(0));
        check("soon", None);
        check("-1", None);
        check("inf", None);
        check("", None);
    }

    #[test]
    fn overload_and_server_failures_are_transient_and_refusals_are_not() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert!(is_transient(status), "{status}");
        }
        for status in [200, 301, 400, 401, 403, 404, 413, 422] {
            assert!(!is_transient(status), "{status}");
        }
    }

    #[test]
    fn waits_double_from_one_second_to_the_limit_and_end_after_eight() {
        let config = RetryConfig { jitter: false, ..RetryConfig::default() };
        let mut waits = config.waits();
        let again = Advice::Again { after: None };
        let seconds: Vec<u64> =
            std::iter::from_fn(|| waits.next(again)).map(|wait| wait.as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128]);
    }

    #[test]
    fn jitter_stretches_a_wait_and_never_past_the_limit() {
        let mut waits = RetryConfig::default().waits();
        let again = Advice::Again { after: None };
        let all: Vec<Duration> = std::iter::from_fn(|| waits.next(again)).collect();
        assert_eq!(all.len(), 8);
        for (index, wait) in all.iter().enumerate() {
            let least = Duration::from_secs(1 << index);
            assert!(
                *wait >= least && *wait <= (least * 2).min(Duration::from_secs(128)),
                "{all:?}"
            );
        }
    }

    #[test]
    fn the_providers_wait_goes_first_but_counts_and_has_a_limit() {
        let config = RetryConfig { max_retries: 2, ..RetryConfig::default() };
        let after = |seconds| Advice::Again { after: Some(Duration::from_secs(seconds)) };
        let mut waits = config.waits();
        assert_eq!(waits.next(after(7)), Some(Duration::from_secs(7)));
        assert_eq!(waits.next(Advice::GiveUp), None);
        assert_eq!(waits.next(after(3_600)), None);
        assert_eq!(waits.next(after(0)), Some(Duration::ZERO));
        assert_eq!(waits.next(after(7)), None);
    }
}
