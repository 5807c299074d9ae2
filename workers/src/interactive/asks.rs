//! Questions of the CLI that are open: each is held on its hook's connection until somebody answers,
//! here or in the CLI's own dialog. Fails closed: a question that is dropped prints no verdict, and
//! the dialog stands.

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::event::{Asked, AskingAgent, Verdict};
use crate::hooks::record::ToolUse;
use crate::hooks::server::HookReply;
use crate::protocol::AskedBy;

/// Calls that are remembered to find the id of a question; more than that are never open at once.
const REMEMBERED: usize = 64;

/// How a held question went on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// Our verdict was handed over; with the input that runs in place of the one that was asked about.
    Answered(Option<String>),
    /// It was left to the CLI's own dialog, by us or because its hook is gone.
    Left,
}

struct Question {
    number: u64,
    tool_use_id: Option<String>,
    /// The sub-agent that asks.
    agent: Option<AskingAgent>,
    /// Whoever was asked here has been told, or will be.
    held: Option<CancellationToken>,
}

impl Question {
    fn agent_id(&self) -> Option<&str> {
        self.agent.as_ref().map(|agent| agent.id.as_str())
    }

    fn asker(&self) -> AskedBy {
        if self.agent.is_some() { AskedBy::Agent } else { AskedBy::Turn }
    }
}

/// What the driver has to do about a question that moved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// No dialog is open for it any more.
    Settled(AskedBy),
    /// The same by our answer, which changed the input of the call.
    Changed { by: AskedBy, tool_use_id: Option<String>, input: String },
    /// Nobody here is asked any more; the dialog may stand.
    Retired(Option<String>),
}

/// All of them, for one worker.
#[derive(Default)]
pub(super) struct Questions {
    next: u64,
    open: Vec<Question>,
    held: FuturesUnordered<BoxFuture<'static, (u64, Outcome)>>,
    /// Calls that were announced and not asked about: id, name, input.
    announced: Vec<(String, ToolUse)>,
}

impl Questions {
    /// A call was announced: the next question about the same tool and input is about it.
    pub(super) fn announce(&mut self, id: &str, tool: &ToolUse) {
        if self.announced.len() == REMEMBERED {
            self.announced.remove(0);
        }
        self.announced.push((id.to_owned(), tool.clone()));
    }

    /// Holds a question, and returns it for whoever is to be asked.
    pub(super) fn hold(
        &mut self,
        tool: &ToolUse,
        agent: Option<AskingAgent>,
        reply: HookReply,
    ) -> Asked {
        let same = self.announced.iter().position(|(_, announced)| announced == tool);
        let tool_use_id = same.map(|at| self.announced.remove(at).0);
        let number = self.next;
        self.next += 1;
        let retire = CancellationToken::new();
        let (sender, verdict) = oneshot::channel();
        self.open.push(Question {
            number,
            tool_use_id: tool_use_id.clone(),
            agent: agent.clone(),
            held: Some(retire.clone()),
        });
        self.held.push(Box::pin(async move { (number, settle(verdict, reply, retire).await) }));
        Asked {
            tool_use_id,
            tool_name: tool.name.clone(),
            input: tool.input.clone(),
            agent,
            reply: sender,
        }
    }

    /// The calls that are asked about.
    pub(super) fn ids(&self) -> Vec<String> {
        self.open.iter().filter_map(|question| question.tool_use_id.clone()).collect()
    }

    /// Waits for the next held question that moves. May be dropped at any moment.
    pub(super) async fn next(&mut self) -> Moved {
        loop {
            let Some((number, outcome)) = self.held.next().await else {
                return std::future::pending().await;
            };
            let Some(at) = self.open.iter().position(|question| question.number == number) else {
                continue;
            };
            match outcome {
                Outcome::Answered(input) => {
                    let question = self.open.remove(at);
                    let by = question.asker();
                    return match input {
                        None => Moved::Settled(by),
                        Some(input) => {
                            Moved::Changed { by, tool_use_id: question.tool_use_id, input }
                        }
                    };
                }
                Outcome::Left => {
                    if self.open[at].held.take().is_some() {
                        return Moved::Retired(self.open[at].tool_use_id.clone());
                    }
                }
            }
        }
    }

    /// The call has a result, or ran: its question is over, whoever answered it.
    pub(super) fn settled(&mut self, id: &str) -> Vec<Moved> {
        self.announced.retain(|(announced, _)| announced != id);
        self.take(|question| question.tool_use_id.as_deref() == Some(id))
    }

    /// That sub-agent is over, or whoever asked (none: the turn) goes on to something else: the CLI
    /// asks one thing after the other.
    pub(super) fn asker_moved_on(&mut self, agent: Option<&str>) -> Vec<Moved> {
        self.take(|question| question.agent_id() == agent)
    }

    /// The session is over, and every question with it.
    pub(super) fn all_settled(&mut self) -> Vec<Moved> {
        self.announced.clear();
        self.take(|_| true)
    }

    /// The turn is over, and its questions with it; `goes_on` says which sub-agents do.
    pub(super) fn turn_over(&mut self, goes_on: impl Fn(&str) -> bool) -> Vec<Moved> {
        self.take(|question| !question.agent_id().is_some_and(&goes_on))
    }

    /// A person is about to type into the CLI's own terminal: from here on the dialog is theirs, and
    /// nobody here may answer any more.
    pub(super) fn yield_to_terminal(&mut self) -> Vec<Moved> {
        let mut moved = Vec::new();
        for question in &mut self.open {
            if let Some(held) = question.held.take() {
                held.cancel();
                moved.push(Moved::Retired(question.tool_use_id.clone()));
            }
        }
        moved
    }

    fn take(&mut self, over: impl Fn(&Question) -> bool) -> Vec<Moved> {
        let mut moved = Vec::new();
        self.open.retain(|question| {
            if !over(question) {
                return true;
            }
            if let Some(held) = &question.held {
                held.cancel();
                moved.push(Moved::Retired(question.tool_use_id.clone()));
            }
            moved.push(Moved::Settled(question.asker()));
            false
        });
        moved
    }
}

async fn settle(
    verdict: oneshot::Receiver<Verdict>,
    reply: HookReply,
    retire: CancellationToken,
) -> Outcome {
    let verdict = tokio::select! {
        // What was retired is not answered any more, even by an answer of the same moment.
        biased;
        () = retire.cancelled() => return Outcome::Left,
        () = reply.closed() => return Outcome::Left,
        verdict = verdict => verdict,
    };
    let Ok(verdict) = verdict else { return Outcome::Left };
    match (reply.answer(&verdict), verdict) {
        (Ok(()), Verdict::Allow { updated_input }) => Outcome::Answered(updated_input),
        (Ok(()), Verdict::Deny { .. }) => Outcome::Answered(None),
        (Err(_), _) => Outcome::Left,
    }
}

#[cfg(test)]
mod tests;
