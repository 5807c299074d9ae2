//! Names on disk: the id of a session and the fingerprint of a workspace.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970; 0 on a machine whose clock stands before that.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A new id, `session-<epoch ms>-<counter>`.
///
/// Within a process no two ids share their milliseconds, and the counter is the process id, so that
/// two programs that start at the same moment differ as well.
pub(super) fn new_session_id() -> String {
    static LAST_MS: AtomicU64 = AtomicU64::new(0);
    let now = now_ms();
    let previous = LAST_MS
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)))
        .unwrap_or(now);
    format!("session-{}-{}", now.max(previous + 1), std::process::id())
}

/// The folder name of a workspace: FNV-1a with 64 bits over its canonical path, 16 hex digits.
pub(super) fn fingerprint(canonical: &Path) -> String {
    format!("{:016x}", fnv1a(canonical.to_string_lossy().as_bytes()))
}

/// FNV-1a with 64 bits.
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn fingerprint_is_fnv_1a_of_the_path() {
        // Published test vectors of FNV-1a, 64 bits.
        for (input, expected) in
            [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")]
        {
            assert_eq!(fingerprint(Path::new(input)), expected, "{input}");
        }
    }

    #[test]
    fn ids_that_start_in_the_same_millisecond_differ() {
        let ids: HashSet<String> = (0..500).map(|_| new_session_id()).collect();
        assert_eq!(ids.len(), 500);
        assert!(ids.iter().all(|id| id.starts_with("session-") && id.split('-').count() == 3));
    }
}
