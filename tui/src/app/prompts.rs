//! Prompts: sent at once, said into the turn that runs, or kept for its end.

use std::collections::VecDeque;
use std::time::Instant;

use claw_runtime::NoticeLevel;
use claw_runtime::api::SteerError;
use claw_runtime::driver::Command;
use tokio_util::sync::CancellationToken;

use super::{App, ENDED, Effect, HINT};
use crate::status::Activity;
use crate::transcript::Standing;

/// Prompts that were given during a turn and are not settled yet.
#[derive(Debug, Default)]
pub(super) struct WaitingPrompts {
    /// Oldest first.
    pub prompts: VecDeque<Waiting>,
    /// What ran last was stopped or failed: what waited for its end is not sent by itself.
    pub held_back: bool,
}

/// A prompt that was given while a turn ran.
#[derive(Debug)]
pub(super) struct Waiting {
    text: String,
    /// It is on its way into the turn; else it waits for the end of the turn.
    sending: bool,
    /// It was given when the turn was being stopped already: it is what comes instead.
    instead: bool,
}

impl App {
    /// Sends a prompt; while a turn runs, into it where the backend takes that, else after it.
    pub(super) fn submit(&mut self, text: String, effects: &mut Vec<Effect>) {
        let takes_none = self.compacting || self.is_stopping() || !self.can_steer();
        if self.turn.is_none() || self.has_ended() || takes_none {
            return self.submit_later(text, effects);
        }
        self.transcript.clear_focus();
        self.transcript.push_steered(&text);
        self.waiting.prompts.push_back(Waiting {
            text: text.clone(),
            sending: true,
            instead: false,
        });
        effects.push(Effect::Send(Command::Steer { input: text }));
    }

    /// Sends a prompt, after the turn if one runs.
    pub(super) fn submit_later(&mut self, text: String, effects: &mut Vec<Effect>) {
        if self.has_ended() {
            return self.composer.refuse(&text, ENDED);
        }
        // What was selected was about what was said before.
        self.transcript.clear_focus();
        self.transcript.push_user(&text, self.turn.is_some());
        if self.turn.is_some() {
            let instead = self.is_stopping();
            self.waiting.prompts.push_back(Waiting { text, sending: false, instead });
            return;
        }
        self.start(text, effects);
    }

    fn start(&mut self, text: String, effects: &mut Vec<Effect>) {
        let cancel = CancellationToken::new();
        self.begin(cancel.clone());
        effects.push(Effect::Send(Command::Submit { input: text, cancel }));
    }

    /// The person has ordered the end of the turn that runs.
    fn is_stopping(&self) -> bool {
        *self.status.activity() == Activity::Stopping
    }

    /// Whether the backend takes prompts during a turn.
    fn can_steer(&self) -> bool {
        self.status.runtime().is_some_and(|status| status.steering)
    }

    /// What came of a prompt that was sent into the turn.
    pub(super) fn steered(
        &mut self,
        now: Instant,
        input: &str,
        outcome: Result<(), SteerError>,
        effects: &mut Vec<Effect>,
    ) {
        let sent = |waiting: &Waiting| waiting.sending && waiting.text == input;
        let Some(at) = self.waiting.prompts.iter().position(sent) else { return };
        match outcome {
            Ok(()) => {
                self.waiting.prompts.remove(at);
                self.transcript.steered(Standing::Taken);
            }
            Err(SteerError::Refused(why)) => {
                // It keeps its place among those that wait.
                self.waiting.prompts[at].sending = false;
                self.transcript.steered(Standing::Queued);
                if self.turn.is_some() {
                    self.hint_for_turn(now, &format!("it goes after this turn: {why}"), HINT);
                }
            }
            Err(SteerError::Uncertain) => {
                self.waiting.prompts.remove(at);
                self.uncertain(now);
            }
        }
        if self.turn.is_none() {
            self.go_on(effects);
        }
    }

    fn uncertain(&mut self, now: Instant) {
        self.transcript.steered(Standing::Uncertain);
        let text = "It is not certain whether the message above was taken, so it is not sent again. /worker shows what the backend made of it.";
        self.notice(now, NoticeLevel::Warning, text);
    }

    /// Nothing runs: what waited goes next. After a stop or a failure it comes back into the composer
    /// instead, because it was written for a turn that went well; what was written after the order to
    /// stop goes all the same. What is still on its way is waited for: until its outcome is known,
    /// nothing behind it goes.
    pub(super) fn go_on(&mut self, effects: &mut Vec<Effect>) {
        if self.waiting.held_back {
            let mut back = Vec::new();
            self.waiting.prompts.retain(|waiting| {
                let stays = waiting.sending || waiting.instead;
                if !stays {
                    back.push(waiting.text.clone());
                }
                stays
            });
            self.transcript.take_queued();
            for waiting in self.waiting.prompts.iter().filter(|waiting| !waiting.sending) {
                self.transcript.push_user(&waiting.text, true);
            }
            if !back.is_empty() {
                self.composer.put_before(&back.join("\n\n"));
            }
        }
        let goes = |next: &Waiting| !next.sending && (next.instead || !self.waiting.held_back);
        if self.waiting.prompts.front().is_some_and(goes)
            && let Some(next) = self.waiting.prompts.pop_front()
        {
            self.start(next.text, effects);
        }
    }

    /// The runtime is gone, and with it the outcome of what was on its way.
    pub(super) fn forget_outcomes(&mut self, now: Instant) {
        let sending = self.waiting.prompts.iter().filter(|waiting| waiting.sending).count();
        self.waiting.prompts.retain(|waiting| !waiting.sending);
        for _ in 0..sending {
            self.uncertain(now);
        }
    }
}
