//! What the protocol machine is shown, and what it wants done. Plain data: the machine never learns
//! where any of it came from.

use crate::error::WorkerError;
use crate::event::{SteerError, WorkerEvent};
use crate::fact::Fact;

/// Names an order, so that its answer finds the one who gave it. Chosen by the driver, never reused.
pub type Ticket = u64;

/// One thing that happened. Everything goes through the machine, in the order in which it was learnt.
#[derive(Debug)]
pub enum Seen {
    // Orders.
    /// A prompt for an idle worker. Answered with [`Step::SubmitAnswered`].
    Submit {
        ticket: Ticket,
        text: String,
    },
    /// A prompt into the running turn. Answered with [`Step::SteerAnswered`].
    Steer {
        ticket: Ticket,
        text: String,
    },
    /// Stops the turn that runs.
    Interrupt,
    /// The CLI's own compaction. Ends as a turn of ours.
    Compact,
    /// Bytes that a person typed into the worker's screen; the machine writes them in its turn.
    Typed(Vec<u8>),
    /// Nothing more is to be written; open orders are answered.
    Stop,

    // The world.
    Spawned,
    Hook(HookSeen),
    /// A record of the transcript, in the order of the file.
    Record(Fact),
    /// A live fact from a hook or the tap, with the prompt it belongs to where that is known.
    Live {
        fact: Fact,
        prompt_id: Option<String>,
    },
    /// The answer to [`Step::ReadScreen`].
    Screen(Reading),
    /// The screen has changed.
    ScreenChanged,
    /// A request of the CLI to the API was seen to go or to move.
    Traffic,
    /// The oldest [`Step::Write`] that was not answered yet was accepted whole.
    Written,
    /// It was not accepted in time.
    WriteFailed {
        accepted: usize,
        total: usize,
    },
    /// The answer to [`Step::CatchUp`]: every record up to the present end was shown.
    CaughtUp,
    /// The process has ended; `screen` is the last that was seen of it.
    Exited {
        status: String,
        screen: String,
    },
    /// [`super::Machine::deadline`] has passed.
    Tick,
}

/// Who asks for a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBy {
    /// The turn itself: nothing of it asks any more when it is over.
    Turn,
    /// A sub-agent. One in the background goes on after the turn, with its question.
    Agent,
}

/// A hook record, as far as the protocol needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookSeen {
    /// `source`: `startup`, `resume`, `clear`, `compact`, `fork`.
    SessionStart {
        session_id: String,
        source: String,
    },
    UserPromptSubmit {
        prompt_id: Option<String>,
        prompt: String,
    },
    PreToolUse {
        prompt_id: Option<String>,
    },
    PostToolUse {
        prompt_id: Option<String>,
    },
    /// A permission or question dialog may be open from now on.
    PermissionAsked {
        by: AskedBy,
    },
    /// One of those that were asked is settled, whoever settled it.
    PermissionSettled {
        by: AskedBy,
    },
    Stop {
        prompt_id: Option<String>,
        last_message: Option<String>,
    },
    /// `class`: the hook's `error`. `text`: its `last_assistant_message`.
    StopFailure {
        prompt_id: Option<String>,
        class: String,
        text: String,
        details: Option<String>,
    },
    SessionEnd {
        reason: String,
    },
    PreCompact {
        prompt_id: Option<String>,
        automatic: bool,
    },
    PostCompact {
        prompt_id: Option<String>,
        automatic: bool,
    },
    /// `kind`: `permission_prompt`, `idle_prompt`, ...
    Notification {
        kind: String,
    },
    /// Any other hook: a sign of life.
    Other,
}

/// What the screen shows, read by its structure (the selected line of a list), never by its words
/// about success or failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// No dialog. `screen` is its text, for a message.
    Plain { screen: String },
    /// A dialog of the start that we may answer; `key` is the next key towards its safe entry.
    Ours { key: Vec<u8>, title: String, screen: String },
    /// A dialog that only the person may answer.
    Theirs { title: String, screen: String },
    /// It asks how to log in.
    Login { title: String, screen: String },
}

/// What is to be done, in this order.
#[derive(Debug)]
pub enum Step {
    /// Write these bytes, after those that wait already; answer with `Written` or `WriteFailed`.
    Write(Vec<u8>),
    /// Read the screen as it is now; answer each with one `Screen`.
    ReadScreen,
    /// Read the transcript to its present end, show its records, then one `CaughtUp` for each; at once
    /// when there is no file yet.
    CatchUp,
    /// Tell whoever holds the worker.
    Tell(Box<WorkerEvent>),
    SubmitAnswered {
        ticket: Ticket,
        result: Result<(), WorkerError>,
    },
    SteerAnswered {
        ticket: Ticket,
        result: Result<(), SteerError>,
    },
    /// The worker is of no more use: end its processes, then tell `Ended` with this. Comes once, and
    /// nothing follows it.
    GiveUp(WorkerError),
}
