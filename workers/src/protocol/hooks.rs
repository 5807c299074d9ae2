//! What each hook says to the machine.

use std::time::Instant;

use super::seen::HookSeen;
use super::turns::{Known, Turn};
use super::typing::{Entry, Kind};
use super::{By, Machine, Owner, Phase};
use crate::event::TurnEnd;
use crate::fact::{Fact, FailureKind};

impl Machine {
    pub(super) fn hook(&mut self, now: Instant, hook: HookSeen) {
        match hook {
            HookSeen::SessionStart { session_id, .. } => self.session_started(now, session_id),
            HookSeen::UserPromptSubmit { prompt_id, prompt } => {
                self.prompt_submitted(now, prompt_id, &prompt);
            }
            HookSeen::PreToolUse { prompt_id } | HookSeen::PostToolUse { prompt_id } => {
                if let Some(turn) = self.hooked_turn(prompt_id.as_deref()) {
                    turn.output = true;
                }
            }
            HookSeen::PermissionAsked { by } => self.permissions.asked(by),
            HookSeen::PermissionSettled { by } => {
                self.permissions.settled(by);
                self.look_again();
            }
            HookSeen::Stop { prompt_id, last_message } => {
                self.turn_stopped(now, prompt_id, TurnEnd::Completed { last_message });
            }
            HookSeen::StopFailure { prompt_id, class, text, details } => {
                let kind = failure_kind(&class);
                if matches!(self.phase, Phase::Starting(_)) && kind == FailureKind::Authentication {
                    self.auth_failed_at_start(text);
                } else {
                    let failure =
                        Fact::ApiFailure { kind, status: None, text, details, quota: None };
                    self.turn_stopped(now, prompt_id, TurnEnd::Failed(Box::new(failure)));
                }
            }
            HookSeen::PreCompact { prompt_id, automatic } => {
                if !automatic {
                    self.compaction_began(now, prompt_id);
                }
            }
            HookSeen::PostCompact { automatic, .. } => {
                let until = now + self.timings.transcript_lag;
                if !automatic && let Some(turn) = self.ledger.compaction() {
                    turn.end(TurnEnd::Compacted, until);
                }
            }
            HookSeen::Notification { kind } => {
                // It stands somewhere and waits; a permission question is known by its own hook.
                if kind != "idle_prompt"
                    && !self.permissions.any()
                    && matches!(self.phase, Phase::Up)
                {
                    self.ask_screen();
                }
            }
            HookSeen::SessionEnd { .. } | HookSeen::Other => {}
        }
    }

    fn hooked_turn(&mut self, prompt_id: Option<&str>) -> Option<&mut Turn> {
        match self.ledger.known(prompt_id) {
            Known::Turn(key) => self.ledger.get(key),
            Known::Finished | Known::New => None,
        }
    }

    fn prompt_submitted(&mut self, now: Instant, prompt_id: Option<String>, text: &str) {
        if !matches!(self.phase, Phase::Up) {
            return;
        }
        let known = match self.ledger.known(prompt_id.as_deref()) {
            // Without an id it is the running turn's, or a new one.
            Known::Turn(_) if prompt_id.is_none() && self.ledger.running().is_none() => Known::New,
            known => known,
        };
        match known {
            Known::New => {
                let owner = self.owner_of(prompt_id.as_deref(), text, now);
                self.ledger.begin(prompt_id, owner, text.to_owned());
            }
            // The transcript was faster.
            _ if self.ledger.is_own_hook(prompt_id.as_deref(), text) => {}
            // A prompt that is queued during a turn comes with that turn's id.
            Known::Turn(_) | Known::Finished => self.enqueued(now, text, By::Hook),
        }
    }

    /// A turn is over, as the CLI says; the transcript still lags.
    fn turn_stopped(&mut self, now: Instant, prompt_id: Option<String>, end: TurnEnd) {
        if !matches!(self.phase, Phase::Up | Phase::Leaving { .. }) {
            return;
        }
        let lag = if self.transcript_seen {
            self.timings.transcript_lag
        } else {
            self.timings.transcript_missing
        };
        let (until, grace) = (now + lag, self.timings.transcript_lag / 10);
        match self.ledger.known(prompt_id.as_deref()) {
            Known::Turn(key) => {
                if let Some(turn) = self.ledger.get(key) {
                    turn.end(end, until);
                    turn.hurry(now, grace);
                }
            }
            Known::Finished => return,
            Known::New if prompt_id.is_none() => return,
            Known::New => self.ledger.begin(prompt_id, Owner::Open, String::new()).end(end, until),
        }
        self.permissions.turn_over();
        self.ask_transcript();
    }

    /// Our compaction is under way.
    pub(super) fn compaction_began(&mut self, now: Instant, prompt_id: Option<String>) {
        let ours = |entry: &mut Entry| entry.kind == Kind::Compact && entry.is_in_box();
        if self.keyboard.entry.take_if(ours).is_some() {
            let until = now + self.timings.compaction;
            self.keyboard.box_lines = 0;
            self.ledger.begin(prompt_id, Owner::Ours, "/compact".to_owned()).compaction =
                Some(until);
        }
    }
}

/// The class that a StopFailure hook names.
fn failure_kind(class: &str) -> FailureKind {
    match class {
        "authentication_failed" => FailureKind::Authentication,
        "billing_error" => FailureKind::Billing,
        "rate_limit" => FailureKind::RateLimit,
        "model_not_found" => FailureKind::ModelNotFound,
        "invalid_request" => FailureKind::InvalidRequest,
        "server_error" => FailureKind::Server,
        "max_output_tokens" => FailureKind::MaxOutputTokens,
        other => FailureKind::Unknown(other.to_owned()),
    }
}
