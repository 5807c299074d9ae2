//! The table between modes and levels, and the grants a person gave for this session.

use std::collections::HashSet;

use super::{PermissionLevel, PermissionMode};
use crate::tools::{Grant, Requirement};

/// What the policy says about a call before anybody is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionVerdict {
    Allow,
    /// The person must be asked; the reason is for them.
    Ask {
        reason: Option<String>,
    },
    /// Denied without asking; the reason is for the model and the person.
    Deny {
        reason: String,
    },
}

/// The mode in force and what was granted for this session.
#[derive(Debug, Clone)]
pub struct PermissionPolicy {
    mode: PermissionMode,
    granted: HashSet<String>,
}

impl PermissionPolicy {
    pub fn new(mode: PermissionMode) -> Self {
        Self { mode, granted: HashSet::new() }
    }

    pub fn mode(&self) -> PermissionMode {
        self.mode
    }

    /// Changes the mode. Grants of the session stay: they were given for named calls.
    pub fn set_mode(&mut self, mode: PermissionMode) {
        self.mode = mode;
    }

    /// Remembers a "for this session" answer.
    pub fn grant(&mut self, grant: &Grant) {
        self.granted.insert(grant.key.clone());
    }

    /// Forgets all grants (another session was opened).
    pub fn clear_grants(&mut self) {
        self.granted.clear();
    }

    /// Decides a call from what it needs.
    pub fn verdict(&self, tool_name: &str, requirement: &Requirement) -> PermissionVerdict {
        let by_mode = self.by_mode(tool_name, requirement.level);
        match (&requirement.always_ask, by_mode) {
            // What the mode denies stays denied; a protected path can only be stricter.
            (_, deny @ PermissionVerdict::Deny { .. }) => deny,
            (Some(why), _) => PermissionVerdict::Ask { reason: Some(why.clone()) },
            (None, PermissionVerdict::Ask { .. })
                if self.granted.contains(&requirement.grant.key) =>
            {
                PermissionVerdict::Allow
            }
            (None, verdict) => verdict,
        }
    }

    fn by_mode(&self, tool_name: &str, level: PermissionLevel) -> PermissionVerdict {
        use PermissionLevel as L;
        use PermissionMode as M;
        match (self.mode, level) {
            (_, L::None)
            | (M::Allow | M::DangerFullAccess, _)
            | (M::ReadOnly | M::WorkspaceWrite, L::ReadOnly)
            | (M::WorkspaceWrite, L::WorkspaceWrite) => PermissionVerdict::Allow,
            (M::Prompt, _) | (M::WorkspaceWrite, L::DangerFullAccess) => {
                PermissionVerdict::Ask { reason: None }
            }
            (M::ReadOnly, L::WorkspaceWrite | L::DangerFullAccess) => PermissionVerdict::Deny {
                reason: format!(
                    "{tool_name} needs {level}, and the mode is read-only; /permissions changes the mode"
                ),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(level: PermissionLevel) -> Requirement {
        Requirement {
            level,
            always_ask: None,
            grant: Grant { key: "bash:ls".into(), words: "`ls`".into() },
        }
    }

    fn letter(verdict: &PermissionVerdict) -> char {
        match verdict {
            PermissionVerdict::Allow => 'A',
            PermissionVerdict::Ask { .. } => '?',
            PermissionVerdict::Deny { .. } => 'D',
        }
    }

    #[test]
    fn each_cell_of_the_mode_table() {
        use PermissionLevel as L;
        let levels = [L::None, L::ReadOnly, L::WorkspaceWrite, L::DangerFullAccess];
        for (mode, row) in [
            (PermissionMode::ReadOnly, "AADD"),
            (PermissionMode::WorkspaceWrite, "AAA?"),
            (PermissionMode::DangerFullAccess, "AAAA"),
            (PermissionMode::Prompt, "A???"),
            (PermissionMode::Allow, "AAAA"),
        ] {
            let policy = PermissionPolicy::new(mode);
            let got: String = levels
                .iter()
                .map(|level| letter(&policy.verdict("tool", &requirement(*level))))
                .collect();
            assert_eq!(got, row, "mode {mode}");
        }
    }

    #[test]
    fn protected_paths_ask_in_every_mode_that_would_allow_them() {
        for (mode, expected) in [
            (PermissionMode::ReadOnly, 'D'),
            (PermissionMode::WorkspaceWrite, '?'),
            (PermissionMode::DangerFullAccess, '?'),
            (PermissionMode::Prompt, '?'),
            (PermissionMode::Allow, '?'),
        ] {
            let mut policy = PermissionPolicy::new(mode);
            let mut needs = requirement(PermissionLevel::WorkspaceWrite);
            needs.always_ask = Some("protected".into());
            policy.grant(&needs.grant); // a grant does not cover what always asks
            assert_eq!(letter(&policy.verdict("write_file", &needs)), expected, "mode {mode}");
        }
    }

    #[test]
    fn a_session_grant_covers_only_its_own_key() {
        let mut policy = PermissionPolicy::new(PermissionMode::WorkspaceWrite);
        let needs = requirement(PermissionLevel::DangerFullAccess);
        policy.grant(&needs.grant);
        assert_eq!(letter(&policy.verdict("bash", &needs)), 'A');
        let mut other = needs.clone();
        other.grant.key = "bash:ls; rm x".into();
        assert_eq!(letter(&policy.verdict("bash", &other)), '?');
        policy.clear_grants();
        assert_eq!(letter(&policy.verdict("bash", &needs)), '?');
    }
}
