//! The order in which messages and their blocks are told.
//!
//! Within a message blocks follow their index; a live message waits until the one before it is
//! recorded and its tools have answered. A record is told at once: nothing is truer or earlier.

use std::collections::BTreeMap;

use claw_runtime::api::StopReason;
use claw_runtime::session::ContentBlock;
use claw_runtime::{StreamSink, TuiEvent};

use super::block::{Block, Kind};
use super::calls::Calls;
use crate::fact::Fact;

/// The messages of one turn as they are told.
#[derive(Default)]
pub(super) struct Telling {
    spoken: Vec<Spoken>,
    displays: Vec<Display>,
}

/// One message of the model.
#[derive(Default)]
struct Spoken {
    id: String,
    blocks: BTreeMap<usize, Block>,
    calls: Vec<String>,
    records: usize,
    /// The end of its stream was heard.
    ended: bool,
    stop_reason: Option<StopReason>,
    /// Its end was told.
    stopped: bool,
    standing: Standing,
    /// Its text came from the second-best source, which does not say which message it is.
    nameless: bool,
}

/// Whether the next message has to wait for this one.
#[derive(Default, PartialEq, Eq)]
enum Standing {
    /// Until it is recorded and its tools have answered.
    #[default]
    Open,
    /// Records of something later came.
    Settled,
    /// It broke off and was asked for again, or became part of another one.
    Gone,
}

/// Text under an id of the second-best source.
struct Display {
    id: String,
    heard: String,
    /// The block that it is, as message and index.
    place: (usize, usize),
}

impl Spoken {
    fn is_recorded(&self) -> bool {
        self.records > 0 && self.blocks.values().all(|block| block.recorded)
    }

    fn is_settled(&self, calls: &Calls) -> bool {
        self.standing != Standing::Open
            || self.nameless
            || (self.is_recorded() && !self.calls.iter().any(|id| calls.is_open(id)))
    }

    /// Its stream was cut: another message begins, and its end was never heard.
    fn is_cut(&self, calls: &Calls) -> bool {
        !self.ended && !self.calls.iter().any(|id| calls.is_open(id))
    }

    /// Tells its end, once, when anything of it was told.
    fn stop(&mut self, reason: Option<StopReason>, sink: &dyn StreamSink) {
        for block in self.blocks.values_mut() {
            block.close(false, sink);
        }
        if !self.stopped && !self.blocks.is_empty() {
            self.stopped = true;
            let stop_reason = reason.unwrap_or_else(|| self.reason());
            sink.emit(TuiEvent::MessageStop { stop_reason });
        }
    }

    fn reason(&self) -> StopReason {
        match &self.stop_reason {
            Some(reason) => reason.clone(),
            None if self.calls.is_empty() => StopReason::EndTurn,
            None => StopReason::ToolUse,
        }
    }

    /// The block that a record belongs to; made when it was not heard of.
    fn place(&self, index: Option<usize>, kind: Kind) -> usize {
        let index = index.unwrap_or(self.records);
        let fits = |block: &Block| block.kind == kind && !block.recorded;
        if self.blocks.get(&index).is_none_or(fits) {
            return index;
        }
        let waiting = self.blocks.iter().find(|(_, block)| fits(block)).map(|(at, _)| *at);
        waiting.unwrap_or_else(|| self.blocks.keys().next_back().map_or(0, |last| last + 1))
    }
}

/// The API's word for it.
pub(super) fn stop_reason_of(word: String) -> StopReason {
    match word.as_str() {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "stop_sequence" => StopReason::StopSequence,
        "max_tokens" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::PauseTurn,
        _ => StopReason::Other(word),
    }
}

impl Telling {
    fn find(&self, message: &str) -> Option<usize> {
        self.spoken.iter().rposition(|spoken| !spoken.nameless && spoken.id == message)
    }

    /// Whether this live fact may be told now, or has to wait for records of what is before it.
    pub fn may_tell(&self, fact: &Fact, calls: &Calls) -> bool {
        let (message, block) = match fact {
            Fact::Lines { display, .. } => {
                return self.displays.iter().any(|known| known.id == *display) || !calls.any_open();
            }
            Fact::MessageBegan { message, .. } | Fact::MessageEnded { message, .. } => {
                (message, None)
            }
            Fact::ThinkingBegan { message, block }
            | Fact::ThinkingDelta { message, block, .. }
            | Fact::TextDelta { message, block, .. }
            | Fact::ToolUseBegan { message, block, .. }
            | Fact::BlockEnded { message, block } => (message, Some(*block)),
            _ => return true,
        };
        match (self.find(message), block) {
            (Some(at), Some(block)) => {
                let blocks = &self.spoken[at].blocks;
                blocks.get(&block).is_some_and(|block| block.recorded)
                    || (0..block).all(|i| blocks.get(&i).is_some_and(|block| block.closed))
            }
            (Some(_), None) => true,
            (None, block) => {
                let begins = matches!(fact, Fact::MessageBegan { .. });
                let over = |last: &Spoken| last.is_settled(calls) || (begins && last.is_cut(calls));
                block.unwrap_or(0) == 0 && self.spoken.last().is_none_or(over)
            }
        }
    }

    /// Tells a live fact.
    pub fn live(&mut self, fact: Fact, calls: &mut Calls, sink: &dyn StreamSink) {
        match fact {
            Fact::Lines { display, text, .. } => self.lines(display, &text, sink),
            Fact::MessageBegan { message, .. } => {
                if self.find(&message).is_none() {
                    self.broke_off(sink);
                }
                self.message(&message, sink);
            }
            Fact::ThinkingBegan { message, block } => {
                if let Some(block) = self.block(&message, block, Kind::Thinking, sink) {
                    block.begin(sink);
                }
            }
            Fact::ThinkingDelta { message, block, text } => {
                if let Some(block) = self.block(&message, block, Kind::Thinking, sink) {
                    block.delta(&text, sink);
                }
            }
            Fact::TextDelta { message, block, text } => {
                if let Some(block) = self.block(&message, block, Kind::Text, sink) {
                    block.delta(&text, sink);
                }
            }
            Fact::ToolUseBegan { message, block, id, name }
                if self.block(&message, block, Kind::Tool, sink).is_some() =>
            {
                self.call(&message, &id);
                calls.begun(&id, &name, self.spoken.len(), sink);
            }
            Fact::BlockEnded { message, block } => {
                let at = self.find(&message);
                if let Some(block) = at.and_then(|at| self.spoken[at].blocks.get_mut(&block)) {
                    block.ended(sink);
                }
            }
            Fact::MessageEnded { message, stop_reason } => {
                if let Some(at) = self.find(&message) {
                    let spoken = &mut self.spoken[at];
                    spoken.ended = true;
                    spoken.stop_reason =
                        stop_reason.map(stop_reason_of).or(spoken.stop_reason.take());
                    self.stop_if_whole(at, sink);
                }
            }
            _ => {}
        }
    }

    /// The message of this id; the ones before it end when it is new.
    fn message(&mut self, id: &str, sink: &dyn StreamSink) -> usize {
        if let Some(at) = self.find(id) {
            return at;
        }
        // Text of a message without a name may be the beginning of this one.
        for spoken in self.spoken.iter_mut().filter(|spoken| !spoken.nameless) {
            spoken.stop(None, sink);
        }
        self.spoken.push(Spoken { id: id.to_owned(), ..Spoken::default() });
        self.spoken.len() - 1
    }

    /// A block to tell live; none when it is told already, or when its time is over.
    fn block(
        &mut self,
        message: &str,
        index: usize,
        kind: Kind,
        sink: &dyn StreamSink,
    ) -> Option<&mut Block> {
        let at = self.message(message, sink);
        let is_new = !self.spoken[at].blocks.contains_key(&index);
        if is_new {
            if self.spoken[at].stopped {
                return None;
            }
            let told = if kind == Kind::Text { self.claim_nameless(at, index, "") } else { None };
            let block = self.add(at, index, kind);
            block.inherit(told.unwrap_or_default());
        }
        let block = self.spoken[at].blocks.get_mut(&index)?;
        (block.kind == kind && !block.recorded && !block.closed).then_some(block)
    }

    fn add(&mut self, at: usize, index: usize, kind: Kind) -> &mut Block {
        self.spoken[at].blocks.entry(index).or_insert_with(|| Block::new(kind))
    }

    fn call(&mut self, message: &str, id: &str) {
        if let Some(at) = self.find(message)
            && !self.spoken[at].calls.iter().any(|known| known == id)
        {
            self.spoken[at].calls.push(id.to_owned());
        }
    }

    /// The text of a message without a name becomes this block. With a `record` only when the
    /// record begins with what was told.
    fn claim_nameless(&mut self, at: usize, index: usize, record: &str) -> Option<String> {
        let fits = |spoken: &Spoken| {
            let told = spoken.blocks.get(&0).map_or("", Block::told);
            spoken.nameless
                && spoken.standing != Standing::Gone
                && (record.is_empty() || record.starts_with(told) || told.trim() == record.trim())
        };
        let nameless = self.spoken.iter().position(fits)?;
        for display in self.displays.iter_mut().filter(|display| display.place.0 == nameless) {
            display.place = (at, index);
        }
        let spoken = &mut self.spoken[nameless];
        spoken.standing = Standing::Gone;
        spoken.stopped = true;
        let block = spoken.blocks.remove(&0)?;
        Some(block.told().to_owned())
    }

    /// Tells whole lines of a reply, unless a better source tells them.
    fn lines(&mut self, display: String, text: &str, sink: &dyn StreamSink) {
        let known = self.displays.iter().position(|known| known.id == display);
        let at = known.unwrap_or_else(|| {
            let place = self.told_as(text).unwrap_or_else(|| {
                let blocks = BTreeMap::from([(0, Block::new(Kind::Text))]);
                self.spoken.push(Spoken { blocks, nameless: true, ..Spoken::default() });
                (self.spoken.len() - 1, 0)
            });
            self.displays.push(Display { id: display, heard: String::new(), place });
            self.displays.len() - 1
        });
        let display = &mut self.displays[at];
        display.heard.push_str(text);
        let (message, index) = display.place;
        if let Some(block) = self.spoken[message].blocks.get_mut(&index) {
            block.lines(text, sink);
        }
    }

    /// The text block that these lines begin, when another source told it; each is found once.
    fn told_as(&self, text: &str) -> Option<(usize, usize)> {
        let text = text.trim_end();
        let taken = |place| self.displays.iter().any(|display| display.place == place);
        self.spoken.iter().enumerate().find_map(|(at, spoken)| {
            let mut blocks = spoken.blocks.iter();
            let found = blocks.find(|(index, block)| {
                let told = block.told();
                block.kind == Kind::Text
                    && !taken((at, **index))
                    && (told.starts_with(text) || (!block.closed && text.starts_with(told)))
            });
            found.map(|(index, _)| (at, *index))
        })
    }

    /// Tells the record of a block.
    pub fn record(
        &mut self,
        message: &str,
        index: Option<usize>,
        content: &ContentBlock,
        stop_reason: Option<StopReason>,
        calls: &mut Calls,
        sink: &dyn StreamSink,
    ) {
        let kind = match content {
            ContentBlock::Text { .. } => Kind::Text,
            ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. } => Kind::Thinking,
            ContentBlock::ToolUse { .. } => Kind::Tool,
            ContentBlock::ToolResult { .. } => return,
        };
        let at = self.message(message, sink);
        let index = self.spoken[at].place(index, kind);
        if !self.spoken[at].blocks.contains_key(&index) {
            let told = match content {
                ContentBlock::Text { text } => self.claim_nameless(at, index, text),
                _ => None,
            };
            self.add(at, index, kind).inherit(told.unwrap_or_default());
        }
        self.close_others(at, index, sink);
        let number = self.spoken.len();
        let is_cut = stop_reason == Some(StopReason::Cancelled);
        let spoken = &mut self.spoken[at];
        spoken.records += 1;
        spoken.stop_reason = stop_reason.or(spoken.stop_reason.take());
        let Some(block) = spoken.blocks.get_mut(&index) else { return };
        match content {
            // What streams is ahead of the CLI, which keeps of it what it had heard at an interrupt.
            ContentBlock::Text { text } if is_cut && block.told().starts_with(text.as_str()) => {
                block.close(false, sink);
                block.recorded = true;
            }
            ContentBlock::Text { text } => block.text_record(text, sink),
            ContentBlock::Thinking { thinking, .. } => block.text_record(thinking, sink),
            ContentBlock::RedactedThinking { .. } => block.hidden_record(sink),
            ContentBlock::ToolUse { id, name, input } => {
                block.closed = true;
                block.recorded = true;
                self.call(message, id);
                calls.made(id, name, input, number, sink);
            }
            ContentBlock::ToolResult { .. } => {}
        }
        self.stop_if_whole(at, sink);
    }

    /// The message and the block that were streaming, when this text is what an interrupt left of
    /// them: an older CLI keeps that as a message that it makes up.
    pub fn cut_off(&self, message: &str, content: &ContentBlock) -> Option<(String, usize)> {
        let ContentBlock::Text { text } = content else { return None };
        if self.find(message).is_some() {
            return None;
        }
        let last = self.spoken.last()?;
        let (index, block) = last.blocks.last_key_value()?;
        let open = !last.ended && !last.nameless && last.standing == Standing::Open;
        let streams = block.kind == Kind::Text && !block.recorded && !block.told().is_empty();
        let told = block.told();
        let same = text.starts_with(told) || (!text.is_empty() && told.starts_with(text.as_str()));
        (open && streams && same).then(|| (last.id.clone(), *index))
    }

    /// Only one block is told at a time.
    fn close_others(&mut self, at: usize, index: usize, sink: &dyn StreamSink) {
        for (message, spoken) in self.spoken.iter_mut().enumerate() {
            for (number, block) in &mut spoken.blocks {
                let other = (message, *number) != (at, index);
                if other && block.kind == Kind::Thinking && !block.closed {
                    block.close(false, sink);
                }
            }
        }
    }

    fn stop_if_whole(&mut self, at: usize, sink: &dyn StreamSink) {
        let spoken = &mut self.spoken[at];
        if spoken.ended && spoken.is_recorded() {
            spoken.stop(None, sink);
        }
    }

    /// A record of something else came: the messages before it are over. One that has no record yet
    /// is not before it; what streams is ahead of its records.
    pub fn stop_messages(&mut self, sink: &dyn StreamSink) {
        for spoken in self.spoken.iter_mut().filter(|spoken| spoken.is_recorded()) {
            spoken.stop(None, sink);
        }
    }

    /// The same, and nothing waits for these messages any more.
    pub fn settle(&mut self) {
        let over = |spoken: &&mut Spoken| spoken.standing == Standing::Open && spoken.is_recorded();
        for spoken in self.spoken.iter_mut().filter(over) {
            spoken.standing = Standing::Settled;
        }
    }

    /// The API is asked again: what streamed without a record will never get one.
    pub fn broke_off(&mut self, sink: &dyn StreamSink) {
        let Some(spoken) = self.spoken.last_mut() else { return };
        let heard_whole = spoken.ended || spoken.records > 0 || spoken.nameless;
        if heard_whole || spoken.standing == Standing::Gone {
            return;
        }
        spoken.standing = Standing::Gone;
        for block in spoken.blocks.values_mut() {
            block.close(false, sink);
        }
        if spoken.blocks.values().any(|block| !block.told().is_empty()) {
            spoken.stopped = true;
            // What comes next is another answer, below the word about this one.
            sink.emit(TuiEvent::MessageStop { stop_reason: StopReason::Cancelled });
            sink.emit(TuiEvent::info("The answer broke off; Claude Code asks for it again."));
        }
    }

    /// Texts that were told and have no record, with the ids of their messages.
    pub fn unrecorded(&self) -> Vec<(String, String)> {
        let last_record = self.spoken.iter().rposition(|spoken| spoken.records > 0).unwrap_or(0);
        let live = self.spoken.iter().enumerate().skip(last_record);
        live.filter(|(_, spoken)| spoken.standing != Standing::Gone)
            .flat_map(|(at, spoken)| {
                let id = if spoken.nameless { format!("live {at}") } else { spoken.id.clone() };
                let blocks = spoken.blocks.values();
                let open = blocks.filter(|block| block.kind == Kind::Text && !block.recorded);
                open.filter(|block| !block.told().trim().is_empty())
                    .map(move |block| (id.clone(), block.told().to_owned()))
            })
            .collect()
    }

    /// Ends all messages; returns why the last one stopped.
    pub fn finish(&mut self, reason: Option<StopReason>, sink: &dyn StreamSink) -> StopReason {
        for spoken in &mut self.spoken {
            spoken.stop(reason.clone(), sink);
        }
        let last = self.spoken.iter().rfind(|spoken| spoken.standing != Standing::Gone);
        reason.or_else(|| last.map(Spoken::reason)).unwrap_or(StopReason::EndTurn)
    }
}
