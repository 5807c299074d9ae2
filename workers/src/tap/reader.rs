//! Reads an answer while it passes: bytes in, live facts out, at once and in order.
//!
//! What cannot be read ends the reading and nothing else: the bytes pass all the same.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use sse_stream::SseByteStream;
use tokio::sync::mpsc;

use crate::api_event::ApiEvents;
use crate::fact::{Fact, Quota};

/// Most bytes that may pass without completing an event; an honest one is far smaller.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// The pieces that were fed and not read yet.
struct Fed(mpsc::UnboundedReceiver<Bytes>);

impl Stream for Fed {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // Nobody is woken: whoever feeds also reads.
        match self.0.try_recv() {
            Ok(bytes) => Poll::Ready(Some(Ok(bytes))),
            Err(mpsc::error::TryRecvError::Empty) => Poll::Pending,
            Err(mpsc::error::TryRecvError::Disconnected) => Poll::Ready(None),
        }
    }
}

/// Reads one answer.
pub(super) struct Reader {
    /// None when the reading has ended.
    feed: Option<mpsc::UnboundedSender<Bytes>>,
    blocks: SseByteStream<Fed>,
    events: ApiEvents,
    /// Bytes since the last whole event.
    unread: usize,
}

impl Reader {
    /// None when these headers are not those of a stream of events that can be read.
    pub fn for_answer(headers: &HeaderMap) -> Option<Self> {
        let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let is_stream = content_type.trim_start().starts_with("text/event-stream");
        (is_stream && !headers.contains_key(CONTENT_ENCODING)).then(Self::new)
    }

    fn new() -> Self {
        let (feed, pieces) = mpsc::unbounded_channel();
        Self {
            feed: Some(feed),
            blocks: SseByteStream::new(Fed(pieces)),
            events: ApiEvents::default(),
            unread: 0,
        }
    }

    /// The next piece of the answer, and what it completes.
    pub fn feed(&mut self, bytes: &Bytes, mut tell: impl FnMut(Fact)) {
        let Some(feed) = &self.feed else { return };
        self.unread += bytes.len();
        // Cloned bytes are shared, not copied.
        let mut whole = feed.send(bytes.clone()).is_ok();
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match self.blocks.poll_next_unpin(&mut context) {
                Poll::Ready(Some(Ok(block))) => {
                    self.unread = 0;
                    let fact = block.data.and_then(|data| self.events.read(&data));
                    fact.into_iter().for_each(&mut tell);
                }
                Poll::Ready(Some(Err(_)) | None) => {
                    whole = false;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if !whole || self.unread > MAX_EVENT_BYTES {
            *self = Self { feed: None, ..Self::new() };
        }
    }
}

/// The account's state, from the headers of an answer. None when they do not say it.
pub(super) fn quota(headers: &HeaderMap) -> Option<Quota> {
    let unified: HashMap<&str, &str> = headers
        .iter()
        .filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix("anthropic-ratelimit-unified-")?;
            Some((name, value.to_str().ok()?.trim()))
        })
        .collect();
    Some(Quota {
        status: (*unified.get("status")?).to_owned(),
        resets_at: unified.get("reset").and_then(|reset| reset.parse().ok()),
        kind: unified.get("representative-claim").map(|kind| (*kind).to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &[u8], cut: usize) -> Vec<Fact> {
        let mut reader = Reader::new();
        let mut facts = Vec::new();
        let (head, tail) = answer.split_at(cut);
        for piece in [head, tail] {
            reader.feed(&Bytes::copy_from_slice(piece), |fact| facts.push(fact));
        }
        facts
    }

    #[test]
    fn any_cut_of_an_answer_gives_the_same_facts() {
        let answer = "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\r\n\r\n\
             : comment\n\nevent: x\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"héllo 🎉\"}}\n\n\
             data: {\"type\":\"message_stop\"}\n\n"
            .as_bytes();
        let whole = read(answer, answer.len());
        assert_eq!(whole.len(), 3, "{whole:?}");
        for cut in 0..answer.len() {
            assert_eq!(read(answer, cut), whole, "cut at {cut}");
        }
    }

    #[test]
    fn what_cannot_be_read_ends_the_reading_quietly() {
        let mut reader = Reader::new();
        reader.feed(&Bytes::from_static(b"data: \xff\xfe\n\n"), |fact| panic!("{fact:?}"));
        assert!(reader.feed.is_none());
        let whole = Bytes::from_static(
            b"data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n",
        );
        reader.feed(&whole, |fact| panic!("{fact:?}"));
    }

    #[test]
    fn a_line_without_end_fills_no_memory() {
        let mut reader = Reader::new();
        let piece = Bytes::from(vec![b'x'; 1024 * 1024]);
        for _ in 0..9 {
            reader.feed(&piece, |fact| panic!("{fact:?}"));
        }
        assert!(reader.feed.is_none());
    }

    #[test]
    fn the_state_of_the_account_is_read_from_the_headers() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            headers
        };
        let full = headers(&[
            ("anthropic-ratelimit-unified-status", "allowed_warning"),
            ("anthropic-ratelimit-unified-reset", "1764590400"),
            ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
        ]);
        let expected = Quota {
            status: "allowed_warning".to_owned(),
            resets_at: Some(1_764_590_400),
            kind: Some("five_hour".to_owned()),
        };
        assert_eq!(quota(&full), Some(expected));
        let odd = headers(&[
            ("anthropic-ratelimit-unified-status", "rejected"),
            ("anthropic-ratelimit-unified-reset", "soon"),
        ]);
        assert_eq!(quota(&odd).map(|quota| (quota.resets_at, quota.kind)), Some((None, None)));
        assert_eq!(quota(&headers(&[("anthropic-ratelimit-requests-limit", "5")])), None);
    }

    #[test]
    fn only_a_plain_stream_of_events_is_read() {
        let check = |content_type: &str, encoding: Option<&str>, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
            if let Some(encoding) = encoding {
                headers.insert(CONTENT_ENCODING, encoding.parse().unwrap());
            }
            assert_eq!(Reader::for_answer(&headers).is_some(), expected, "{content_type}");
        };
        check("text/event-stream", None, true);
        check("text/event-stream; charset=utf-8", None, true);
        check("text/event-stream", Some("gzip"), false);
        check("application/json", None, false);
        assert!(Reader::for_answer(&HeaderMap::new()).is_none());
    }
}
