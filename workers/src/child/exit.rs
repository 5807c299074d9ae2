//! How a process ended.

use std::fmt;

use signal_hook::consts::{SIGHUP, SIGINT, SIGKILL, SIGTERM};

/// The end of a process. Neither is known of one that somebody else reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Exit {
    /// True when it was ended from outside: it had no last words about it.
    pub fn was_killed(self) -> bool {
        self.signal.is_some_and(|signal| [SIGHUP, SIGINT, SIGKILL, SIGTERM].contains(&signal))
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit status {code}"),
            (None, Some(signal)) => write!(f, "killed by signal {signal}"),
            (None, None) => f.write_str("unknown exit status"),
        }
    }
}
