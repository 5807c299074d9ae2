//! The events of one answer, and its silence: what arrived, how long nothing did, when to give up.
//!
//! Parsing is a library's. What is ours is the clock around it: a cancelled wait ends at once,
//! silence is told, and silence that lasts is a cut. Keep-alives are not data: a provider that only
//! says that it lives says nothing.

use std::error::Error as _;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use sse_stream::{Sse, SseByteStream};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFuture;

use super::CutCause;
use super::transport::{Timing, innermost};
use crate::context::TurnContext;
use crate::event::TuiEvent;

/// How a wait ended.
#[derive(Debug)]
pub(super) enum Waited<T> {
    Came(T),
    Cancelled,
    /// Nothing came for the whole idle limit.
    Idle(Duration),
}

/// How long nothing has come, across all waits of one attempt.
pub(super) struct Silence<'a> {
    timing: &'a Timing,
    cx: &'a TurnContext,
    since: Instant,
    next_notice: Instant,
    /// One timer and one registration for all waits: an answer has a wait for every token. The
    /// timer may go off too early, and is then set again.
    alarm: Pin<Box<Sleep>>,
    cancelled: Pin<Box<WaitForCancellationFuture<'a>>>,
}

impl<'a> Silence<'a> {
    pub fn start(timing: &'a Timing, cx: &'a TurnContext) -> Self {
        let since = Instant::now();
        let next_notice = since + timing.stall_notice_after;
        Self {
            timing,
            cx,
            since,
            next_notice,
            alarm: Box::pin(tokio::time::sleep_until(next_notice)),
            cancelled: Box::pin(cx.cancel.cancelled()),
        }
    }

    /// Something arrived: silence starts anew.
    pub fn heard(&mut self) {
        self.since = Instant::now();
        self.next_notice = self.since + self.timing.stall_notice_after;
    }

    /// Waits for `future`, tells of silence, and gives up when it has lasted too long.
    pub async fn wait<T>(&mut self, future: impl Future<Output = T>) -> Waited<T> {
        let end = self.since + self.timing.idle_timeout;
        tokio::pin!(future);
        loop {
            // A wait for cancelling that has ended cannot be asked again.
            if self.cx.cancel.is_cancelled() {
                return Waited::Cancelled;
            }
            // A flood of keep-alives is always ready, and must not hold this off.
            if Instant::now() >= end {
                return Waited::Idle(self.timing.idle_timeout);
            }
            let due = self.next_notice.min(end);
            if self.alarm.is_elapsed() || self.alarm.deadline() > due {
                self.alarm.as_mut().reset(due);
            }
            // What has come already is taken before the time is looked at.
            tokio::select! {
                biased;
                () = &mut self.cancelled => return Waited::Cancelled,
                came = &mut future => return Waited::Came(came),
                () = &mut self.alarm => {}
            }
            let now = Instant::now();
            if now >= self.next_notice && now < end {
                self.cx.sink.emit(TuiEvent::Stalled { silent_for: now - self.since });
                self.next_notice = now + self.timing.stall_notice_every;
            }
        }
    }
}

/// Most bytes that may come without completing an event.
const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// The events of one response body.
pub(super) struct EventStream {
    events: BoxStream<'static, Result<Sse, sse_stream::Error>>,
    /// Bytes since the last event: a line without end must not fill the memory.
    unread: Arc<AtomicUsize>,
}

impl EventStream {
    pub fn new(response: reqwest::Response) -> Self {
        let unread = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&unread);
        let bytes = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(std::io::Error::other)?;
            if counter.fetch_add(chunk.len(), Ordering::Relaxed) > MAX_EVENT_BYTES {
                return Err(std::io::Error::other("one event has more than 32 MiB"));
            }
            Ok(chunk)
        });
        Self { events: SseByteStream::new(bytes).boxed(), unread }
    }

    /// The next event; none at the end of the body.
    pub async fn next(&mut self) -> Option<Result<Sse, CutCause>> {
        let event = self.events.next().await?;
        self.unread.store(0, Ordering::Relaxed);
        Some(event.map_err(|error| cut_cause(&error)))
    }

    /// Reads the little that is left after the last event, so that the connection can be used again.
    /// Bounded, and nobody waits for it.
    pub fn finish_in_background(mut self) {
        tokio::spawn(async move {
            let rest = async { while self.events.next().await.is_some() {} };
            let _ = tokio::time::timeout(Duration::from_secs(1), rest).await;
        });
    }
}

/// What broke the body off, from the kind of the input error below.
fn cut_cause(error: &sse_stream::Error) -> CutCause {
    let mut cause = error.source();
    while let Some(inner) = cause {
        let io = inner.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == ErrorKind::UnexpectedEof) {
            return CutCause::ConnectionClosed;
        }
        cause = inner.source();
    }
    CutCause::Transport(innermost(error))
}
