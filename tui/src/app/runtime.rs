//! What the runtime tells, and which part shows it.

use std::time::Instant;

use claw_runtime::conversation::TurnStop;
use claw_runtime::driver::{Command, RuntimeStatus};
use claw_runtime::session::SessionView;
use claw_runtime::{NoticeLevel, TuiEvent};
use tokio_util::sync::CancellationToken;

use super::{App, Effect};
use crate::commands::Vocabulary;
use crate::status::Activity;
use crate::theme::Theme;

impl App {
    pub(super) fn on_runtime(&mut self, now: Instant, event: TuiEvent, effects: &mut Vec<Effect>) {
        self.note_activity(now, &event);
        self.transcript.apply(now, &event);
        match event {
            TuiEvent::PermissionRequired { request, reply } => {
                self.permissions.push(request, reply, now);
            }
            TuiEvent::PermissionRetired { id, .. } => {
                self.permissions.retire(id, now);
                if self.permissions.is_empty() && *self.status.activity() == Activity::Asking {
                    self.status.settle(now);
                }
            }
            TuiEvent::UsageUpdate { report, .. } => self.status.set_usage(report),
            TuiEvent::StatusChanged { status } => self.set_status(status),
            TuiEvent::SessionOpened { view } => self.open_session(now, &view),
            TuiEvent::SessionsListed { sessions, now_ms } => {
                let known = sessions.iter().map(|entry| (entry.id.clone(), entry.title.clone()));
                self.sessions = known.collect();
                self.offer_values();
                self.pick_session(now, &sessions, now_ms);
            }
            TuiEvent::TurnStarted { .. } => self.resumable = self.session_id.clone(),
            TuiEvent::TurnCompleted { summary } => {
                self.turn_ended(now, summary.stop == TurnStop::Cancelled, effects);
            }
            TuiEvent::TurnFailed { .. } => self.turn_ended(now, true, effects),
            TuiEvent::UnaskedTurnEnded { .. } if self.turn.is_none() => self.status.turn_ended(now),
            TuiEvent::NothingToRetry => self.turn_ended(now, false, effects),
            TuiEvent::CompactionFailed { .. } if self.compacting => {
                self.turn_ended(now, true, effects);
            }
            TuiEvent::Compacted { .. } if self.compacting => self.turn_ended(now, false, effects),
            TuiEvent::Steered { input, outcome } => self.steered(now, &input, outcome, effects),
            TuiEvent::RuntimeEnded => {
                self.forget_outcomes(now);
                self.permissions.clear();
                self.turn_ended(now, true, effects);
                self.status.set_activity(now, Activity::Ended);
            }
            _ => {}
        }
        self.note_waiting(now);
    }

    /// Whatever goes on beside it: what waits for the person is what they should know.
    fn note_waiting(&mut self, now: Instant) {
        let stays = [Activity::Stopping, Activity::Ended, Activity::Asking];
        if self.permissions.is_waiting() && !stays.contains(self.status.activity()) {
            self.status.set_activity(now, Activity::Asking);
        }
    }

    /// The status line's word for what is going on.
    fn note_activity(&mut self, now: Instant, event: &TuiEvent) {
        let activity = match event {
            TuiEvent::TurnStarted { .. } => return self.status.turn_started(now),
            TuiEvent::Retrying { attempt, max_attempts, wait, reason } => {
                return self.status.retrying(now, *attempt, *max_attempts, *wait, reason);
            }
            TuiEvent::Stalled { silent_for } => return self.status.stalled(now, *silent_for),
            TuiEvent::ToolStarted { id, name, .. } => {
                return self.status.tool_started(now, id, name);
            }
            TuiEvent::ToolEnded { id, .. } | TuiEvent::ToolResult { id, .. } => {
                return self.status.tool_ended(now, id);
            }
            // The same events tell of a turn's own compaction and of one that is all there is.
            TuiEvent::ThinkingEnded { .. }
            | TuiEvent::Compacted { .. }
            | TuiEvent::CompactionFailed { .. }
            | TuiEvent::HookCompleted { .. }
            | TuiEvent::HookCancelled { .. } => return self.status.settle(now),
            TuiEvent::TextDelta { .. } => Activity::Writing,
            TuiEvent::ThinkingStarted | TuiEvent::ThinkingDelta { .. } => Activity::Thinking,
            TuiEvent::ToolUseStarted { name, .. } => Activity::Preparing(name.clone()),
            TuiEvent::PermissionRequired { .. } => Activity::Asking,
            TuiEvent::Compacting { .. } => Activity::Compacting,
            TuiEvent::HookStarted { command, .. } => Activity::Hook(command.clone()),
            _ => return,
        };
        self.status.progress(now, activity);
    }

    /// What ran is over; what waited for that goes on.
    fn turn_ended(&mut self, now: Instant, stopped: bool, effects: &mut Vec<Effect>) {
        self.turn = None;
        self.compacting = false;
        self.composer.set_busy(false);
        self.permissions.end_turn(now);
        self.status.turn_ended(now);
        self.waiting.held_back = stopped;
        self.go_on(effects);
        self.hints_after_turn(now);
    }

    /// A hint that speaks of the turn does not outlast it.
    fn hints_after_turn(&mut self, now: Instant) {
        if self.hint.as_ref().is_some_and(|hint| hint.about_turn) {
            self.clear_hint();
        }
        let Some(armed_until) = self.quit_armed_until else { return };
        if self.composer.is_empty() {
            let left = armed_until.saturating_duration_since(now);
            self.hint(now, "Ctrl+C again leaves", left);
        } else {
            // Now that key would be about the draft.
            self.clear_hint();
        }
    }

    fn set_status(&mut self, status: RuntimeStatus) {
        self.status.set_runtime(status);
        self.offer_values();
    }

    /// Tells the composer what can be completed.
    fn offer_values(&mut self) {
        let runtime = self.status.runtime();
        self.composer.set_vocabulary(Vocabulary {
            models: runtime.map(|status| status.models.clone()).unwrap_or_default(),
            themes: Theme::names().map(str::to_owned).collect(),
            backends: runtime.map(|status| status.backends.clone()).unwrap_or_default(),
            sessions: self.sessions.clone(),
        });
    }

    fn open_session(&mut self, now: Instant, view: &SessionView) {
        self.session_id = Some(view.id.clone());
        self.session_file = Some(view.path.clone());
        self.resumable = (!view.messages.is_empty()).then(|| view.id.clone());
        self.transcript.load(view);
        self.composer.load_history(view.prompt_history.clone());
        if view.resumed && !view.messages.is_empty() {
            let text = match &view.fork {
                Some(fork) => format!(
                    "Session {} is branch {} of {}; both go on by themselves.",
                    view.id,
                    fork.branch_name.as_deref().unwrap_or("(unnamed)"),
                    fork.parent_session_id
                ),
                None => format!("Session {} goes on.", view.id),
            };
            self.notice(now, NoticeLevel::Info, &text);
        }
    }

    /// A retry, a compaction: something that runs and can be stopped like a turn. False when a turn
    /// runs already; the line that asked for it is given back then.
    pub(super) fn run(
        &mut self,
        line: &str,
        effects: &mut Vec<Effect>,
        command: impl FnOnce(CancellationToken) -> Command,
    ) -> bool {
        if self.turn.is_some() {
            self.composer.refuse(line, "wait for the end of the turn, or stop it with Esc");
            return false;
        }
        if self.has_ended() {
            self.composer.refuse(line, super::ENDED);
            return false;
        }
        let cancel = CancellationToken::new();
        self.begin(cancel.clone());
        effects.push(Effect::Send(command(cancel)));
        true
    }

    /// Something runs from now on.
    pub(super) fn begin(&mut self, cancel: CancellationToken) {
        self.turn = Some(cancel);
        self.waiting.held_back = false;
        self.composer.set_busy(true);
        self.status.sent();
    }
}
