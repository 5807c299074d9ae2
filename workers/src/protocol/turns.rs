//! The ledger of turns: which ran, whose they are, how far the transcript has told them, and how
//! they ended. Hooks and records come in any order between each other; the ledger brings them
//! together by the id of the prompt.
//!
//! It decides nothing about keys and tells nobody anything.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use claw_runtime::session::ContentBlock;

use crate::event::TurnEnd;
use crate::fact::Fact;
use crate::prompt::receipt_matches;

/// So many turns that are over are remembered, for evidence that comes late.
const FINISHED: usize = 64;

/// Who asked for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Ours,
    Unasked,
    /// Only its end is known so far; its prompt will say.
    Open,
}

/// Where a prompt came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Box,
    /// The CLI's queue, which hands over all it holds at once.
    Queue,
}

/// How much of a turn the transcript has told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Read {
    Nothing,
    Prompt,
    /// Something of the model as well.
    Words,
    All,
}

/// How a turn ended, and until when the transcript is given time to tell the rest of it.
#[derive(Debug)]
pub(super) struct Ending {
    pub end: TurnEnd,
    pub until: Instant,
}

#[derive(Debug)]
pub(super) struct Turn {
    /// Made by the ledger; prompts can share a turn and records may lack an id.
    pub key: u64,
    pub ids: Vec<String>,
    pub owner: Owner,
    pub text: String,
    pub began_told: bool,
    /// The model or a tool did something.
    pub output: bool,
    pub way: Way,
    /// The hook of its prompt was seen.
    pub hooked: bool,
    read: Read,
    /// The text of the last message, as long as nothing came after it.
    last_text: Option<(String, String)>,
    pub ending: Option<Ending>,
    /// The CLI's own compaction, with the time at which it is given up.
    pub compaction: Option<Instant>,
}

impl Turn {
    /// Takes in a record of this turn.
    pub fn note(&mut self, fact: &Fact) {
        if matches!(fact, Fact::Block { .. } | Fact::ToolResult { .. }) {
            self.read = self.read.max(Read::Words);
        }
        match fact {
            Fact::Block { message, content: ContentBlock::Text { text, .. }, .. } => {
                self.output = true;
                match &mut self.last_text {
                    Some((of, whole)) if of == message => whole.push_str(text),
                    last => *last = Some((message.clone(), text.clone())),
                }
            }
            Fact::Block { .. } | Fact::ToolResult { .. } => {
                self.output = true;
                self.last_text = None;
            }
            Fact::Prompt { .. } => self.last_text = None,
            _ => {}
        }
    }

    pub fn is_read(&self) -> bool {
        self.read != Read::Nothing
    }

    pub fn is_done(&self) -> bool {
        self.read == Read::All
    }

    /// The transcript has nothing more to tell about it.
    pub fn set_done(&mut self) {
        self.read = Read::All;
    }

    /// A prompt that leaves the queue now belongs to this turn: the queue hands over all at once.
    pub fn takes_more(&self) -> bool {
        self.way == Way::Queue && self.read == Read::Prompt
    }

    pub fn last_text(&self) -> Option<&str> {
        self.last_text.as_ref().map(|(_, text)| text.as_str())
    }

    /// Puts down its end. The first evidence of a kind of end stands; what comes later only adds what
    /// the first did not know.
    pub fn end(&mut self, end: TurnEnd, until: Instant) {
        match &mut self.ending {
            None => self.ending = Some(Ending { end, until }),
            Some(known) => match (&mut known.end, end) {
                (
                    TurnEnd::Completed { last_message: message @ None },
                    TurnEnd::Completed { last_message },
                ) => {
                    *message = last_message;
                }
                // The record of a failure says more than its hook.
                (TurnEnd::Failed(known), TurnEnd::Failed(record)) => *known = record,
                _ => {}
            },
        }
    }

    /// The transcript has the last words already: only its closing record is missing.
    pub fn hurry(&mut self, now: Instant, grace: Duration) {
        if let Some(Ending { end: TurnEnd::Completed { last_message: Some(message) }, until }) =
            &mut self.ending
            && self.last_text.as_ref().is_some_and(|(_, text)| text.trim() == message.trim())
        {
            *until = (*until).min(now + grace);
        }
    }

    pub fn has(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }
}

/// Where the transcript stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    Nowhere,
    Turn(u64),
    /// Behind a prompt that starts no turn by itself (a command, a hidden one).
    Before(String),
}

/// What is known about a prompt's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// A turn that is not told as ended yet, by its key.
    Turn(u64),
    Finished,
    New,
}

/// What is kept of a turn that was told as ended.
#[derive(Debug)]
struct Finished {
    key: u64,
    ids: Vec<String>,
    owner: Owner,
    /// Its prompt, as long as the hook of it has not come.
    unhooked: Option<String>,
}

impl Finished {
    fn has(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }
}

#[derive(Debug)]
pub(super) struct Ledger {
    turns: VecDeque<Turn>,
    finished: VecDeque<Finished>,
    at: At,
    next: u64,
}

impl Ledger {
    pub fn new() -> Self {
        Self { turns: VecDeque::new(), finished: VecDeque::new(), at: At::Nowhere, next: 0 }
    }

    fn turn(&mut self, id: Option<String>, owner: Owner, text: String) -> Turn {
        self.next += 1;
        Turn {
            key: self.next,
            ids: id.into_iter().collect(),
            owner,
            text,
            began_told: false,
            output: false,
            way: Way::Box,
            hooked: false,
            read: Read::Nothing,
            last_text: None,
            ending: None,
            compaction: None,
        }
    }

    /// A turn began, as a hook says.
    pub fn begin(&mut self, id: Option<String>, owner: Owner, text: String) -> &mut Turn {
        let mut turn = self.turn(id, owner, text);
        turn.hooked = owner != Owner::Open;
        self.turns.push_back(turn);
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }

    /// A turn began, as the transcript says: before all those that it has not reached yet.
    pub fn begin_read(&mut self, id: Option<String>, owner: Owner, text: String) -> u64 {
        let mut turn = self.turn(id, owner, text);
        turn.read = Read::Prompt;
        let key = turn.key;
        let place = self.turns.iter().position(|turn| !turn.is_read()).unwrap_or(self.turns.len());
        self.turns.insert(place, turn);
        self.at = At::Turn(key);
        key
    }

    pub fn known(&self, id: Option<&str>) -> Known {
        let Some(id) = id else {
            return self.turns.back().map_or(Known::New, |turn| Known::Turn(turn.key));
        };
        if let Some(turn) = self.turns.iter().find(|turn| turn.has(id)) {
            return Known::Turn(turn.key);
        }
        if self.finished.iter().any(|turn| turn.has(id)) { Known::Finished } else { Known::New }
    }

    pub fn get(&mut self, key: u64) -> Option<&mut Turn> {
        self.turns.iter_mut().find(|turn| turn.key == key)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter()
    }

    pub fn front(&mut self) -> Option<&mut Turn> {
        self.turns.front_mut()
    }

    /// The turn that runs now.
    pub fn running(&self) -> Option<&Turn> {
        self.turns.back().filter(|turn| turn.ending.is_none())
    }

    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub fn compaction(&mut self) -> Option<&mut Turn> {
        self.turns.iter_mut().find(|turn| turn.compaction.is_some())
    }

    /// The transcript has come to the prompt of this turn: all that were before it are over.
    pub fn reach(&mut self, key: u64, now: Instant) {
        self.at = At::Turn(key);
        let Some(place) = self.turns.iter().position(|turn| turn.key == key) else { return };
        for turn in self.turns.iter_mut().take(place) {
            close(turn, now);
        }
        let turn = &mut self.turns[place];
        turn.read = turn.read.max(Read::Prompt);
    }

    /// The transcript has come to a prompt of a turn that is over already, or to one that starts none.
    pub fn pass(&mut self, id: &str) {
        self.at = match self.finished.iter().find(|turn| turn.has(id)) {
            Some(turn) => At::Turn(turn.key),
            None => At::Before(id.to_owned()),
        };
    }

    /// The turn that the next record belongs to. `starts`: the record can only be part of a turn, so
    /// one is opened when there is none.
    pub fn reading(&mut self, starts: bool) -> Reading {
        match self.at.clone() {
            At::Turn(key) => {
                if self.turns.iter().any(|turn| turn.key == key) {
                    return Reading::Turn(key);
                }
                let owner =
                    self.finished.iter().find(|turn| turn.key == key).map(|turn| turn.owner);
                Reading::Late(owner.unwrap_or(Owner::Unasked))
            }
            At::Before(id) if starts => {
                Reading::Turn(self.begin_read(Some(id), Owner::Unasked, String::new()))
            }
            At::Nowhere if starts => match self.turns.front().map(|turn| turn.key) {
                // An older CLI may write the prompt behind its answer.
                Some(key) => {
                    self.at = At::Turn(key);
                    Reading::Turn(key)
                }
                None => Reading::Turn(self.begin_read(None, Owner::Unasked, String::new())),
            },
            At::Before(_) | At::Nowhere => Reading::None,
        }
    }

    /// Whether this is the hook of the turn's own prompt, which the transcript was faster to tell. It
    /// comes once.
    pub fn is_own_hook(&mut self, id: Option<&str>, text: &str) -> bool {
        let Some(id) = id else { return false };
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.has(id)) {
            let own = !turn.hooked && receipt_matches(&turn.text, text);
            turn.hooked |= own;
            return own;
        }
        let turn = self.finished.iter_mut().find(|turn| turn.has(id));
        turn.is_some_and(|turn| turn.unhooked.take_if(|own| receipt_matches(own, text)).is_some())
    }

    /// The turn that the transcript stands in and that is not over in it.
    pub fn reading_open(&mut self) -> Option<&mut Turn> {
        let At::Turn(key) = self.at else { return None };
        self.get(key).filter(|turn| !turn.is_done())
    }

    /// Prompts that left the queue together are one turn: the later one becomes part of the earlier.
    pub fn merge(&mut self, into: u64, from: u64) {
        if into == from {
            return;
        }
        let Some(place) = self.turns.iter().position(|turn| turn.key == from) else { return };
        let Some(part) = self.turns.remove(place) else { return };
        if let Some(turn) = self.get(into) {
            turn.ids.extend(part.ids);
            turn.output |= part.output;
            if turn.ending.is_none() {
                turn.ending = part.ending;
            }
        }
        self.at = At::Turn(into);
    }

    /// The turn with this prompt that the transcript has not reached.
    pub fn unread_with(&self, text: &str) -> Option<u64> {
        self.turns.iter().find(|turn| !turn.is_read() && turn.text == text).map(|turn| turn.key)
    }

    /// Nobody waits for the turns that were ours any more.
    pub fn disown(&mut self) {
        for turn in &mut self.turns {
            if turn.owner == Owner::Ours && turn.compaction.is_none() {
                turn.owner = Owner::Unasked;
            }
        }
    }

    /// The front turn is over for whoever holds the worker.
    pub fn finish(&mut self) -> Option<Turn> {
        let turn = self.turns.pop_front()?;
        if self.finished.len() == FINISHED {
            self.finished.pop_front();
        }
        let unhooked = (!turn.hooked).then(|| turn.text.clone());
        self.finished.push_back(Finished {
            key: turn.key,
            ids: turn.ids.clone(),
            owner: turn.owner,
            unhooked,
        });
        Some(turn)
    }

    /// Ends that wait for their records wait at least until then.
    pub fn wait_longer(&mut self, until: Instant) {
        for ending in self.turns.iter_mut().filter_map(|turn| turn.ending.as_mut()) {
            ending.until = ending.until.max(until);
        }
    }

    /// A later turn ran to its end and the transcript does not come: those before it are over too.
    pub fn close_before_overdue(&mut self, now: Instant) {
        let overdue = |turn: &Turn| turn.ending.as_ref().is_some_and(|ending| ending.until <= now);
        if let Some(place) = self.turns.iter().rposition(overdue) {
            for turn in self.turns.iter_mut().take(place) {
                close(turn, now);
            }
        }
    }

    /// The session is left: every turn in it is over.
    pub fn close_all(&mut self, now: Instant) {
        self.at = At::Nowhere;
        for turn in &mut self.turns {
            close(turn, now);
        }
    }
}

/// Where a record belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Turn(u64),
    /// A turn that was told as ended.
    Late(Owner),
    None,
}

/// Another turn has begun after this one, so it is over, whatever was missed of its end.
fn close(turn: &mut Turn, now: Instant) {
    turn.set_done();
    let end = if turn.output {
        TurnEnd::Completed { last_message: turn.last_text().map(str::to_owned) }
    } else {
        TurnEnd::Withdrawn
    };
    if turn.ending.is_none() {
        turn.end(end, now);
    }
}
