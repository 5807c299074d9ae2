//! What the CLI does about an answer that is a failure: it waits and asks again, and nothing but its own
//! screen says so. Told by its rule, not by its word: when it gives up instead, its next record says so.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::RETRY_AFTER;

use crate::fact::{Fact, Quota};

/// How often the CLI asks again, unless its environment says another number.
const MOST: u32 = 10;
/// Its waits double from the first to the longest; a server that names a wait gets that one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(32);

/// What follows from the failure number `attempt` (from 1) of one question; `status` is none when there
/// was no answer. None when the CLI does not ask again.
pub(super) fn retry(
    attempt: u32,
    status: Option<u16>,
    headers: &HeaderMap,
    quota: Option<&Quota>,
) -> Option<Fact> {
    // An account without quota waits for hours, not for a retry.
    if attempt > MOST || quota.is_some_and(Quota::is_hard) {
        return None;
    }
    let reason = match status {
        None => "no connection".to_owned(),
        Some(401) => "authentication failed (401)".to_owned(),
        Some(408) => "timeout (408)".to_owned(),
        Some(409) => "conflict (409)".to_owned(),
        Some(429) => "rate limit (429)".to_owned(),
        Some(529) => "overloaded (529)".to_owned(),
        Some(status @ 500..) => format!("server error ({status})"),
        Some(_) => return None,
    };
    let named = headers.get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    let doubled = FIRST_WAIT * 2_u32.pow(attempt.saturating_sub(1));
    let wait = named.map_or(doubled.min(LONGEST_WAIT), Duration::from_secs);
    Some(Fact::Retry { attempt, max_attempts: MOST, wait, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(attempt: u32, status: Option<u16>, retry_after: Option<&str>) -> Option<(u64, String)> {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(RETRY_AFTER, value.parse().unwrap());
        }
        match retry(attempt, status, &headers, None)? {
            Fact::Retry { wait, reason, .. } => {
                Some((u64::try_from(wait.as_millis()).unwrap(), reason))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failure_that_passes_is_followed_by_another_attempt() {
        let check = |attempt, status, after, wait, reason: &str| {
            assert_eq!(told(attempt, status, after), Some((wait, reason.to_owned())));
        };
        check(1, Some(529), None, 500, "overloaded (529)");
        check(3, Some(500), None, 2000, "server error (500)");
        check(10, Some(502), None, 32_000, "server error (502)");
        check(1, Some(429), Some("7"), 7000, "rate limit (429)");
        check(1, Some(429), Some("tomorrow"), 500, "rate limit (429)");
        check(2, None, None, 1000, "no connection");
        check(1, Some(401), None, 500, "authentication failed (401)");
    }

    #[test]
    fn what_is_final_is_not_followed_by_another_attempt() {
        for status in [200, 204, 307, 400, 403, 404, 413] {
            assert_eq!(told(1, Some(status), None), None, "{status}");
        }
        assert_eq!(told(11, Some(529), None), None);
        let quota = |status: &str| Quota { status: status.to_owned(), resets_at: None, kind: None };
        let headers = HeaderMap::new();
        assert_eq!(retry(1, Some(429), &headers, Some(&quota("rejected"))), None);
        assert!(retry(1, Some(429), &headers, Some(&quota("allowed_warning"))).is_some());
    }
}
