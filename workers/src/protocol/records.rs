//! What each record of the transcript says to the machine. Records come in the order of the file,
//! late, and are the truth: the events that a record brings about come before or behind its fact as
//! the story has it.

use std::time::Instant;

use super::turns::{Known, Reading, Way};
use super::typing::{Entry, Kind};
use super::{By, Machine, Owner, Phase};
use crate::event::{TurnEnd, WorkerEvent};
use crate::fact::{Fact, FailureKind, PromptSource};
use crate::prompt::receipt_matches;

impl Machine {
    pub(super) fn record(&mut self, now: Instant, fact: Fact) {
        if let (
            Phase::Starting(_),
            Fact::ApiFailure { kind: FailureKind::Authentication, text, .. },
        ) = (&self.phase, &fact)
        {
            self.auth_failed_at_start(text.clone());
            return;
        }
        match &fact {
            Fact::Prompt { prompt_id, text, source } => {
                self.prompt_read(now, prompt_id.as_deref(), text, *source);
            }
            Fact::Enqueued { content } => self.enqueued(now, content, By::Record),
            Fact::Removed { content, absorbed } => self.removed(content.as_deref(), *absorbed),
            Fact::Compacted { automatic: false, .. } => self.compaction_began(now, None),
            _ => {}
        }
        // The ends of turns before this one, and the beginning of its own, come first.
        self.ledger.reading(starts_turn(&fact));
        self.tell_ends(now);
        let at = self.ledger.reading(false);
        let owner = match at {
            Reading::Turn(key) => self.ledger.get(key).map_or(Owner::Unasked, |turn| turn.owner),
            Reading::Late(owner) => owner,
            Reading::None if self.ledger.compaction().is_some() => Owner::Ours,
            Reading::None => Owner::Unasked,
        };
        let late_end = matches!((&at, &fact), (Reading::Late(_), Fact::TurnDuration { .. }));
        if let Reading::Turn(key) = at {
            self.take_into_turn(now, key, &fact);
        }
        let refused = self.take_into_compaction(now, &fact);
        if !late_end {
            self.tell(WorkerEvent::Fact { fact, unasked: owner != Owner::Ours });
        }
        if let Some(text) = refused {
            self.compaction_failed(&text);
        }
    }

    /// What a record changes in its turn. The end is told behind the record.
    fn take_into_turn(&mut self, now: Instant, key: u64, fact: &Fact) {
        let grace = self.timings.transcript_lag / 10;
        let Some(turn) = self.ledger.get(key) else { return };
        turn.note(fact);
        turn.hurry(now, grace);
        let end = match fact {
            Fact::ApiFailure { .. } => TurnEnd::Failed(Box::new(fact.clone())),
            Fact::Interrupted { .. } => TurnEnd::Interrupted,
            Fact::TurnDuration { .. } => {
                TurnEnd::Completed { last_message: turn.last_text().map(str::to_owned) }
            }
            _ => return,
        };
        turn.end(end, now);
        turn.set_done();
        self.permissions.turn_over();
    }

    /// What a record changes in a compaction of ours. Returns the CLI's words when it answered the
    /// order without compacting anything.
    fn take_into_compaction(&mut self, now: Instant, fact: &Fact) -> Option<String> {
        if let Some(compaction) = self.ledger.compaction() {
            match fact {
                Fact::Compacted { automatic: false, .. } => {
                    compaction.output = true;
                    compaction.end(TurnEnd::Compacted, now + self.timings.transcript_lag);
                }
                Fact::CommandOutput { .. } if compaction.output => compaction.set_done(),
                _ => {}
            }
            return None;
        }
        let Fact::CommandOutput { text } = fact else { return None };
        let refused = |entry: &mut Entry| entry.kind == Kind::Compact && entry.cr_written();
        self.keyboard.entry.take_if(refused)?;
        self.keyboard.box_lines = 0;
        Some(text.clone())
    }

    /// The transcript has come to words for the model.
    fn prompt_read(
        &mut self,
        now: Instant,
        prompt_id: Option<&str>,
        text: &str,
        source: PromptSource,
    ) {
        let way = match source {
            PromptSource::Typed => Way::Box,
            PromptSource::Queued | PromptSource::Notification => Way::Queue,
            PromptSource::Hidden | PromptSource::Summary | PromptSource::Command => {
                self.aside_read(prompt_id, now);
                return;
            }
        };
        match prompt_id.map_or(Known::New, |id| self.ledger.known(Some(id))) {
            Known::Turn(key) => self.own_prompt_read(now, key, text, way),
            Known::Finished => {
                // Late, or absorbed into a turn that is told as ended.
                if let Some(id) = prompt_id {
                    self.ledger.pass(id);
                }
            }
            // Taken into the turn that runs; its leaving the queue is told by a record of its own.
            Known::New
                if way == Way::Queue
                    && prompt_id.is_none()
                    && self.ledger.reading_open().is_some() => {}
            Known::New => self.new_prompt_read(now, prompt_id, text, way),
        }
    }

    fn own_prompt_read(&mut self, now: Instant, key: u64, text: &str, way: Way) {
        // A second prompt under the same id was taken into the turn.
        let Some(turn) = self.ledger.get(key).filter(|turn| !turn.is_read()) else { return };
        turn.way = way;
        // A prompt out of the queue may have no hook of its own: the one that came with this id was of
        // a prompt that waits behind it.
        let foreign_hook =
            way == Way::Queue && turn.owner != Owner::Open && !receipt_matches(text, &turn.text);
        if foreign_hook || turn.owner == Owner::Open {
            let (id, hooked) =
                (turn.ids.first().cloned(), std::mem::replace(&mut turn.text, text.to_owned()));
            let was_ours = std::mem::replace(&mut turn.owner, Owner::Unasked) == Owner::Ours;
            turn.hooked = foreign_hook;
            if was_ours {
                self.steering.push(hooked, true, By::Hook);
            }
            if self.owner_of(id.as_deref(), text, now) == Owner::Ours {
                self.adopt(key);
            }
        }
        if way == Way::Queue
            && let Some(before) = self.shared_turn()
        {
            self.merge(before, key);
        } else {
            self.ledger.reach(key, now);
        }
    }

    fn new_prompt_read(&mut self, now: Instant, prompt_id: Option<&str>, text: &str, way: Way) {
        // A record without an id may be the prompt that a hook has told already.
        if prompt_id.is_none()
            && let Some(key) = self.ledger.unread_with(text)
        {
            self.own_prompt_read(now, key, text, way);
            return;
        }
        let before = if way == Way::Queue { self.shared_turn() } else { None };
        let owner = self.owner_of(prompt_id, text, now);
        let id = prompt_id.map(str::to_owned);
        let key = self.ledger.begin_read(id, owner, text.to_owned());
        if let Some(before) = before {
            self.merge(before, key);
            return;
        }
        self.ledger.reach(key, now);
        if let Some(turn) = self.ledger.get(key) {
            turn.way = way;
        }
    }

    /// One turn answers both prompts. It is ours when one of them is.
    fn merge(&mut self, into: u64, from: u64) {
        let ours = self.ledger.get(from).is_some_and(|turn| turn.owner == Owner::Ours);
        self.ledger.merge(into, from);
        if ours {
            self.adopt(into);
        }
    }

    /// The turn that a prompt out of the queue shares: the one before it came out of the queue as
    /// well, and nothing was said in it yet.
    fn shared_turn(&mut self) -> Option<u64> {
        self.ledger.reading_open().filter(|turn| turn.takes_more()).map(|turn| turn.key)
    }

    /// A record that starts no turn by itself.
    fn aside_read(&mut self, prompt_id: Option<&str>, now: Instant) {
        let Some(id) = prompt_id else { return };
        match self.ledger.known(Some(id)) {
            Known::Turn(key) => self.ledger.reach(key, now),
            Known::Finished | Known::New => self.ledger.pass(id),
        }
    }
}

/// Records that can only be a part of a turn.
fn starts_turn(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::Block { .. }
            | Fact::ToolResult { .. }
            | Fact::ApiFailure { .. }
            | Fact::Interrupted { .. }
    )
}
