//! Keeps on disk what of an answer was shown while it streams. Costs nothing while nothing arrives,
//! writes at most twice a second, and never holds the stream up for more than one write.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::event::{StreamSink, TuiEvent};
use crate::redact::RedactedStream;
use crate::session::{Piece, PieceKind, UnfinishedFile};

const BETWEEN_WRITES: Duration = Duration::from_millis(500);

/// Passes events on and remembers the text among them.
pub(super) struct Draft {
    sink: Arc<dyn StreamSink>,
    file: UnfinishedFile,
    text: Mutex<DraftText>,
    changed: Notify,
}

#[derive(Default)]
struct DraftText {
    pieces: Vec<Piece>,
    /// What the last piece has not let out yet; none when it is complete.
    growing: Option<RedactedStream>,
}

impl Draft {
    pub(super) fn new(sink: Arc<dyn StreamSink>, file: UnfinishedFile) -> Self {
        Self { sink, file, text: Mutex::default(), changed: Notify::new() }
    }

    /// Writes what has come, for as long as it is polled.
    pub(super) async fn keep(&self) -> Infallible {
        loop {
            self.changed.notified().await;
            let pieces = self.text().so_far();
            if let Err(error) = self.file.write(&pieces) {
                tracing::debug!(%error, "the answer that streams is not being kept");
            }
            tokio::time::sleep(BETWEEN_WRITES).await;
        }
    }

    fn text(&self) -> MutexGuard<'_, DraftText> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, kind: PieceKind, delta: &str) {
        if delta.is_empty() {
            return;
        }
        self.text().push(kind, delta, &self.file);
        self.changed.notify_one();
    }
}

impl StreamSink for Draft {
    fn emit(&self, event: TuiEvent) {
        match &event {
            TuiEvent::TextDelta { text } => self.push(PieceKind::Text, text),
            TuiEvent::ThinkingDelta { text } => self.push(PieceKind::Thinking, text),
            TuiEvent::ThinkingStarted
            | TuiEvent::ThinkingEnded { .. }
            | TuiEvent::ToolUseStarted { .. }
            | TuiEvent::ToolUse { .. }
            | TuiEvent::MessageStop { .. } => self.text().end_piece(),
            _ => {}
        }
        self.sink.emit(event);
    }
}

impl DraftText {
    fn push(&mut self, kind: PieceKind, delta: &str, file: &UnfinishedFile) {
        if self.pieces.last().is_some_and(|last| last.kind != kind) {
            self.end_piece();
        }
        if self.growing.is_none() {
            self.growing = Some(file.redactor.stream());
            self.pieces.push(Piece { kind, text: String::new() });
        }
        if let (Some(growing), Some(last)) = (&mut self.growing, self.pieces.last_mut()) {
            last.text.push_str(&growing.push(delta));
        }
    }

    fn end_piece(&mut self) {
        if let (Some(mut growing), Some(last)) = (self.growing.take(), self.pieces.last_mut()) {
            last.text.push_str(&growing.finish());
        }
    }

    /// The pieces as they may be written now: half a secret is held back.
    fn so_far(&mut self) -> Vec<Piece> {
        let mut word = "";
        if let (Some(growing), Some(last)) = (&mut self.growing, self.pieces.last_mut()) {
            last.text.push_str(&growing.flush_partial());
            word = growing.ordinary_word();
        }
        let mut pieces = self.pieces.clone();
        if let Some(last) = pieces.last_mut() {
            last.text.push_str(word);
        }
        pieces
    }
}
