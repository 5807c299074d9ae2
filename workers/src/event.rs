//! What a worker tells whoever holds it, in one ordered stream.

use tokio::sync::oneshot;

use crate::error::WorkerError;
use crate::fact::Fact;

/// How a turn of the CLI ended. Each turn ends once.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    Completed {
        /// `last_assistant_message` of the Stop hook, or the stream's result text.
        last_message: Option<String>,
    },
    /// The person stopped it.
    Interrupted,
    /// It was stopped before any output; the prompt was taken back out of the input box.
    Withdrawn,
    /// The API failed: see the `ApiFailure` fact, repeated here.
    Failed(Box<Fact>),
    /// The CLI's own compaction is done (it has no Stop).
    Compacted,
}

/// A sub-agent that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingAgent {
    pub id: String,
    /// `Explore`, `general-purpose`, ... where that is known.
    pub kind: Option<String>,
}

/// A question of the CLI: may this tool run with this input?
#[derive(Debug)]
pub struct Asked {
    /// The tool use it belongs to, where that is known.
    pub tool_use_id: Option<String>,
    /// The CLI's own name of the tool.
    pub tool_name: String,
    /// Effective input, JSON text.
    pub input: String,
    /// The sub-agent that asks; none when the turn itself does. One in the background asks on after
    /// the turn.
    pub agent: Option<AskingAgent>,
    /// Consumed by the answer; dropping it leaves the question to the CLI's own dialog (pty) or
    /// denies it (stream).
    pub reply: oneshot::Sender<Verdict>,
}

/// Our answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow { updated_input: Option<String> },
    Deny { message: String, interrupt: bool },
}

/// What a worker tells.
#[derive(Debug)]
pub enum WorkerEvent {
    /// It can take a prompt.
    Ready {
        session_id: String,
        version: String,
    },
    /// Our prompt was taken: said with evidence only.
    Delivered {
        prompt_id: Option<String>,
    },
    /// A turn that nobody here asked for began (a background task has ended).
    UnaskedBegan {
        text: String,
    },
    /// In the order of the story. `unasked` marks facts of a turn that nobody here asked for.
    Fact {
        fact: Fact,
        unasked: bool,
    },
    Asked(Asked),
    /// The question is settled elsewhere (its own dialog, the end of the turn): the reply is dead.
    AskedRetired {
        tool_use_id: Option<String>,
    },
    TurnEnded {
        end: TurnEnd,
        unasked: bool,
    },
    /// It goes on in another session (`/clear` typed into it).
    SessionChanged {
        session_id: String,
    },
    /// It stands at a dialog that is not ours to answer.
    AtDialog {
        title: String,
        screen: String,
    },
    /// A person typed into its screen.
    Typed,
    /// Continuity of the transcript is not certain any more (it was replaced or cut).
    TranscriptRestarted,
    /// It ended; nothing follows.
    Ended(WorkerError),
}

/// What came of a prompt that was sent during a turn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SteerError {
    /// Nothing was written; the caller may send it as the next prompt.
    #[error("not sent: {0}")]
    Refused(String),
    /// It was written, and nothing shows that it was taken. Must not be sent again.
    #[error("it is not certain whether Claude Code took it; it is not sent again")]
    Uncertain,
}
