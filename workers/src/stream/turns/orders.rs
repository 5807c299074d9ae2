//! Orders: what may be written when, and what becomes of it.

use std::time::Instant;

use tokio::sync::oneshot;

use super::super::process::NotTaken;
use super::{COMPACT, Compaction, Kind, Steered, Step, Submission, Turn, Turns, Why, write};
use crate::error::WorkerError;
use crate::event::SteerError;
use crate::prompt;
use crate::worker::Order;

impl Turns {
    /// Takes an order. `Stop`, `Type` and `Resize` are not for this machine.
    pub fn order(&mut self, now: Instant, order: Order) {
        match order {
            Order::Submit { text, taken } => self.submit(now, text, taken),
            Order::Steer { text, taken } => self.steer(text, taken),
            Order::Interrupt => self.interrupt(now),
            Order::Compact if self.compaction == Compaction::None => {
                self.compaction = Compaction::Ordered;
                self.go_on(now);
            }
            _ => {}
        }
    }

    fn submit(
        &mut self,
        now: Instant,
        text: String,
        taken: oneshot::Sender<Result<(), WorkerError>>,
    ) {
        let refused = match (&self.submission, self.input_broken) {
            (_, Some(line)) => Some(self.not_reading(line)),
            (Some(_), _) => Some(WorkerError::RefusedPrompt(
                "another prompt waits for its turn; send this one after it".to_owned(),
            )),
            _ => prompt::prepare(&text).err(),
        };
        if let Some(error) = refused {
            let _ = taken.send(Err(error));
            return;
        }
        self.submission =
            Some(Submission { text, taken, since: now, written: None, refused: false });
        self.go_on(now);
    }

    /// Hands over what waits, when nothing runs.
    pub(super) fn go_on(&mut self, now: Instant) {
        if self.turn.is_some() || self.swallow || !self.ready {
            return;
        }
        if self.compaction == Compaction::Ordered {
            self.compaction = Compaction::Written(now);
            self.write(write::user(COMPACT), Why::Compact);
        }
        if self.compaction != Compaction::None {
            return;
        }
        let Some(waiting) = self.submission.as_mut() else { return };
        if waiting.written.is_none() {
            waiting.written = Some(now);
            let line = write::user(&waiting.text);
            self.write(line, Why::Prompt);
        }
    }

    fn steer(&mut self, text: String, taken: oneshot::Sender<Result<(), SteerError>>) {
        let may_steer = |turn: &Turn| turn.kind == Kind::Prompt && turn.interrupted_at.is_none();
        let refused = if !self.turn.as_ref().is_some_and(may_steer) {
            Some("no turn of yours runs that takes it".to_owned())
        } else if let Some(line) = self.input_broken {
            Some(self.not_reading(line).to_string())
        } else {
            prompt::prepare_steer(&text).err().map(|error| error.to_string())
        };
        if let Some(reason) = refused {
            let _ = taken.send(Err(SteerError::Refused(reason)));
            return;
        }
        let line = write::user(&text);
        self.count += 1;
        self.steers.push(Steered { number: self.count, text, taken });
        self.write(line, Why::Steer(self.count));
    }

    fn interrupt(&mut self, now: Instant) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.interrupted_at.is_none()) else {
            return;
        };
        turn.interrupted_at = Some(now);
        let over = turn.over.take();
        if let Some((_, end)) = over {
            self.end(now, end);
            return;
        }
        self.count += 1;
        let line = write::interrupt(&format!("interrupt-{}", self.count));
        self.write(line, Why::Interrupt);
    }

    /// What became of a line.
    pub fn written(&mut self, now: Instant, why: Why, outcome: Result<(), NotTaken>) {
        let Err(line) = outcome else { return };
        // Half a line cannot be taken, and nothing may follow it.
        self.input_broken.get_or_insert(line);
        let error = || self.not_reading(line);
        match why {
            Why::Steer(number) => {
                let reason = error().to_string();
                if let Some(at) = self.steers.iter().position(|known| known.number == number) {
                    let _ = self.steers.remove(at).taken.send(Err(SteerError::Refused(reason)));
                }
            }
            // What is said at its end is a better reason, and comes by itself or by a deadline.
            Why::Prompt if line.closed => {
                if let Some(waiting) = self.submission.as_mut() {
                    waiting.refused = true;
                }
            }
            _ if line.closed => {}
            Why::Prompt | Why::Compact | Why::Opening => {
                let (told, end) = (error(), error());
                if let Some(waiting) = self.submission.take() {
                    let _ = waiting.taken.send(Err(told));
                }
                self.steps.push(Step::GiveUp(end));
            }
            // The turn goes on as it can; it ends by its own end or for want of any sign.
            Why::Answer | Why::Interrupt => {}
        }
        if self.turn.is_none() {
            self.go_on(now);
        }
    }

    pub(super) fn not_reading(&self, line: NotTaken) -> WorkerError {
        let NotTaken { accepted, total, .. } = line;
        WorkerError::NotReading { accepted, total, after: self.timings.write }
    }
}
