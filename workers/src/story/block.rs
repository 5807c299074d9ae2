//! One block of a message: what was heard of it, what was told of it, and what its record says.

use claw_runtime::{StreamSink, TuiEvent};

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
    Tool,
}

/// A block that is told once, from whatever is known of it first.
#[derive(Debug)]
pub(super) struct Block {
    pub kind: Kind,
    /// What the deltas said; empty without any.
    heard: String,
    /// What was told, from whichever source.
    told: String,
    /// The beginning of a thought was told.
    begun: bool,
    /// Nothing more is told of it while it lives: its end was heard, or its record is here.
    pub closed: bool,
    pub recorded: bool,
}

impl Block {
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            heard: String::new(),
            told: String::new(),
            begun: false,
            closed: false,
            recorded: false,
        }
    }

    pub fn told(&self) -> &str {
        &self.told
    }

    /// Continues a text that another source began to tell.
    pub fn inherit(&mut self, told: String) {
        self.told = told;
    }

    /// More of it streamed.
    pub fn delta(&mut self, text: &str, sink: &dyn StreamSink) {
        if self.recorded {
            return;
        }
        let level = self.heard.len() == self.told.len();
        self.heard.push_str(text);
        if level {
            self.tell(text.to_owned(), sink);
        } else if let Some(rest) = self.heard.strip_prefix(self.told.as_str()) {
            // Another source was ahead, and this one has just passed it.
            self.tell(rest.to_owned(), sink);
        }
    }

    /// Whole lines from the second-best source.
    pub fn lines(&mut self, text: &str, sink: &dyn StreamSink) {
        if !self.recorded && self.heard.is_empty() {
            self.tell(text.to_owned(), sink);
        }
    }

    /// A thought began.
    pub fn begin(&mut self, sink: &dyn StreamSink) {
        if self.kind == Kind::Thinking && !self.begun {
            self.begun = true;
            sink.emit(TuiEvent::ThinkingStarted);
        }
    }

    fn tell(&mut self, text: String, sink: &dyn StreamSink) {
        if text.is_empty() {
            return;
        }
        self.told.push_str(&text);
        match self.kind {
            Kind::Text => sink.emit(TuiEvent::TextDelta { text }),
            Kind::Thinking => {
                self.begin(sink);
                sink.emit(TuiEvent::ThinkingDelta { text });
            }
            Kind::Tool => {}
        }
    }

    /// Its end was heard. A thought without words stays open: only its record says what it was.
    pub fn ended(&mut self, sink: &dyn StreamSink) {
        if self.kind != Kind::Thinking || !self.told.is_empty() {
            self.close(false, sink);
        }
    }

    /// Nothing more is told of it. `redacted`: the provider hides the thought.
    pub fn close(&mut self, redacted: bool, sink: &dyn StreamSink) {
        if !self.closed && self.kind == Kind::Thinking && self.begun {
            let char_count = self.told.chars().count();
            sink.emit(TuiEvent::ThinkingEnded { char_count, redacted });
        }
        self.closed = true;
    }

    /// The record is here: tells what of it was not told, and closes the block.
    pub fn text_record(&mut self, text: &str, sink: &dyn StreamSink) {
        match text.strip_prefix(self.told.as_str()) {
            Some(rest) => {
                if self.closed && !rest.is_empty() {
                    // What lived ended early; a thought opens again for its rest.
                    self.begun = false;
                    self.closed = false;
                }
                self.tell(rest.to_owned(), sink);
            }
            None if text.trim() == self.told.trim() => {}
            None => self.correct(text, sink),
        }
        self.begin(sink);
        self.close(false, sink);
        self.recorded = true;
    }

    /// What streamed is not what was kept. A thought is let be: the session has the right one.
    fn correct(&mut self, text: &str, sink: &dyn StreamSink) {
        if self.kind == Kind::Text {
            sink.emit(TuiEvent::info(
                "What streamed above is not what Claude Code kept; the kept text follows.",
            ));
            self.told.clear();
            self.tell(text.to_owned(), sink);
        }
    }

    /// The record of a thought that the provider hides.
    pub fn hidden_record(&mut self, sink: &dyn StreamSink) {
        self.begin(sink);
        self.close(true, sink);
        self.recorded = true;
    }
}
