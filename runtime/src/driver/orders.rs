//! Commands in the order in which they came, also while a turn runs: those for the running turn go
//! there at once, all others wait for its end.
//!
//! Refuses to carry an order out: it only says which is next, and hands prompts to the backend's way
//! in.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, OptionFuture};
use tokio::sync::mpsc::UnboundedReceiver;

use super::Command;
use crate::api::{SteerError, Steering};
use crate::event::{StreamSink, TuiEvent};

/// How long the outcome of a prompt that is on its way into a turn is waited for once the turn has
/// ended.
const OUTCOME_AFTER_TURN: Duration = Duration::from_secs(5);

/// The command channel, and what was taken out of it too early.
pub(super) struct Orders {
    commands: UnboundedReceiver<Command>,
    waiting: VecDeque<Command>,
}

type Outcome = Result<(), SteerError>;

/// Prompts for one turn: handed over one after another, so that they keep their order.
struct HandOver<'a> {
    steering: Option<Arc<dyn Steering>>,
    sink: &'a dyn StreamSink,
    waiting: VecDeque<String>,
    /// The one that the backend has, and what will come of it.
    under_way: Option<(String, BoxFuture<'static, Outcome>)>,
    /// Those that were sent, for the history of prompts.
    sent: Vec<String>,
}

impl Orders {
    pub fn new(commands: UnboundedReceiver<Command>) -> Self {
        Self { commands, waiting: VecDeque::new() }
    }

    /// The next command; none when every sender is gone. Nothing is lost when it is dropped.
    pub async fn next(&mut self) -> Option<Command> {
        match self.waiting.pop_front() {
            Some(command) => Some(command),
            None => self.commands.recv().await,
        }
    }

    /// Runs `turn` to its end and hands the prompts that come meanwhile to `steering`. Returns the
    /// prompts that were sent (also those of which it is not known whether they were taken).
    pub async fn during<T>(
        &mut self,
        turn: impl Future<Output = T>,
        steering: Option<Arc<dyn Steering>>,
        sink: &dyn StreamSink,
    ) -> (T, Vec<String>) {
        let mut turn = pin!(turn);
        let mut prompts = HandOver {
            steering,
            sink,
            waiting: VecDeque::new(),
            under_way: None,
            sent: Vec::new(),
        };
        let mut open = true;
        let ended = loop {
            prompts.begin_next();
            tokio::select! {
                biased;
                outcome = prompts.outcome() => prompts.tell(outcome),
                command = self.commands.recv(), if open => match command {
                    Some(Command::Steer { input }) => prompts.waiting.push_back(input),
                    Some(command) => self.waiting.push_back(command),
                    None => open = false,
                },
                ended = &mut turn => break ended,
            }
        };
        prompts.turn_ended(self.is_leaving()).await;
        (ended, prompts.sent)
    }

    /// Whether nothing will be done any more: then nothing is waited for either.
    fn is_leaving(&self) -> bool {
        self.waiting.iter().any(|command| matches!(command, Command::Shutdown))
    }
}

impl HandOver<'_> {
    fn begin_next(&mut self) {
        while self.under_way.is_none()
            && let Some(input) = self.waiting.pop_front()
        {
            match self.steering.clone() {
                Some(steering) => {
                    let text = input.clone();
                    let outcome = async move { steering.steer(text).await };
                    self.under_way = Some((input, Box::pin(outcome)));
                }
                None => self.refuse(input, "this cannot be said into what is running"),
            }
        }
    }

    /// What came of the prompt that is under way; never returns without one.
    async fn outcome(&mut self) -> Outcome {
        match OptionFuture::from(self.under_way.as_mut().map(|(_, outcome)| outcome)).await {
            Some(outcome) => outcome,
            None => std::future::pending().await,
        }
    }

    fn tell(&mut self, outcome: Outcome) {
        let Some((input, _)) = self.under_way.take() else { return };
        if !matches!(outcome, Err(SteerError::Refused(_))) {
            self.sent.push(input.clone());
        }
        self.sink.emit(TuiEvent::Steered { input, outcome });
    }

    fn refuse(&self, input: String, why: &str) {
        let outcome = Err(SteerError::Refused(why.to_owned()));
        self.sink.emit(TuiEvent::Steered { input, outcome });
    }

    /// Every prompt has its outcome after this, in bounded time.
    async fn turn_ended(&mut self, leaving: bool) {
        if self.under_way.is_some() {
            let bound = if leaving { Duration::ZERO } else { OUTCOME_AFTER_TURN };
            let outcome = tokio::time::timeout(bound, self.outcome()).await;
            // What may have been taken must not be sent twice.
            self.tell(outcome.unwrap_or(Err(SteerError::Uncertain)));
        }
        for input in std::mem::take(&mut self.waiting) {
            self.refuse(input, "the turn has ended");
        }
    }
}
