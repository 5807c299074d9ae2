//! Questions of the CLI: each is answered once, or retired, or denied for want of an answer.

use std::time::Instant;

use super::{Step, Turns, Why, write};
use crate::event::{Verdict, WorkerEvent};
use crate::fact::Fact;

pub(super) struct Question {
    pub request_id: String,
    pub tool_use_id: Option<String>,
    pub input: String,
    /// The sub-agent that asks.
    pub agent: Option<String>,
    pub asked: Instant,
}

impl Turns {
    /// Questions that are settled elsewhere.
    pub(super) fn retire(&mut self, which: impl Fn(&Question) -> bool) {
        let (gone, open) = std::mem::take(&mut self.questions).into_iter().partition(which);
        self.questions = open;
        let gone: Vec<Question> = gone;
        for Question { request_id, tool_use_id, .. } in gone {
            self.steps.push(Step::Forget { request_id });
            self.event(WorkerEvent::AskedRetired { tool_use_id });
        }
    }

    /// An answer; none when nobody will give one, which denies.
    pub fn answered(&mut self, now: Instant, request_id: &str, verdict: Option<Verdict>) {
        if let Some(turn) = self.turn.as_mut() {
            turn.last_sign = now;
        }
        let Some(at) = self.questions.iter().position(|known| known.request_id == request_id)
        else {
            return;
        };
        let Question { tool_use_id, input, .. } = self.questions.remove(at);
        match verdict {
            Some(Verdict::Allow { updated_input }) => {
                let input = updated_input.unwrap_or(input);
                self.write(write::allow(request_id, &input), Why::Answer);
                if let Some(id) = tool_use_id {
                    self.tell(Fact::ToolStarted { id, input });
                }
            }
            denied => {
                let (message, interrupt) = match denied {
                    Some(Verdict::Deny { message, interrupt }) => (message, interrupt),
                    _ => ("not allowed: nobody answered the question".to_owned(), false),
                };
                self.denied.extend(tool_use_id);
                self.write(write::deny(request_id, &message, interrupt), Why::Answer);
            }
        }
    }
}
