//! What the UI thread waits for: one queue, one variant per source (never one per feature).
//!
//! The queue is a mutex and a condition variable. Neighbouring deltas are merged by appending, so
//! that ten thousand of them between two frames cost a string append each. What the runtime says
//! is lossless and bounded: when the UI does not take it (the terminal has stopped reading), the
//! *runtime* waits, never the terminal's own events and never a signal.
//!
//! Refuses to decide anything: it neither drops nor reorders.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use claw_runtime::{StreamSink, TuiEvent};
use crossterm::event::Event;

use crate::pane::PaneEvent;

/// Bytes that the runtime may have waiting in the queue before it has to wait itself.
pub const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;

/// One thing that happened.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would cost every delta an allocation to spare nothing"
)]
pub enum Inbox {
    /// Key, mouse, paste, focus, resize.
    Terminal(Event),
    /// A fact from the runtime.
    Runtime(TuiEvent),
    /// The worker's own screen, while somebody looks at it.
    Worker(PaneEvent),
    /// The process was told something.
    Signal(Signal),
    /// Work that the UI gave away (the colours of code) is ready to be looked at.
    Wake,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM, SIGHUP or SIGINT, or the terminal went away: end now, cleanly.
    End,
    /// SIGCONT: the terminal has to be taken again and redrawn.
    Continued,
    /// SIGTSTP from outside.
    Stop,
}

#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<Inbox>,
    /// Weight of the runtime's entries in bytes; see [`weight`].
    waiting_bytes: usize,
    /// Entries that nobody may keep waiting; see [`is_pressing`].
    pressing: usize,
    /// The receiver sleeps until its deadline and lets all other entries gather.
    gathering: bool,
    /// Nobody will take anything any more.
    closed: bool,
}

impl Queue {
    /// Something is there that cannot wait for the next frame.
    fn may_not_wait(&self, limit: usize) -> bool {
        self.pressing > 0 || self.waiting_bytes >= limit
    }
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    taken: Condvar,
    limit: usize,
}

impl Shared {
    // A panic elsewhere must not silence the UI: the queue itself is consistent between any two calls.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sending end. Cheap to clone.
#[derive(Debug, Clone)]
pub struct InboxSender(Arc<Shared>);

/// The receiving end; dropping it lets every sender go on at once.
#[derive(Debug)]
pub struct InboxReceiver(Arc<Shared>);

/// The runtime's way into the inbox.
#[derive(Debug, Clone)]
pub struct InboxSink(InboxSender);

/// A fresh inbox.
pub fn channel() -> (InboxSender, InboxReceiver) {
    channel_with_limit(MAX_WAITING_BYTES)
}

/// A fresh inbox in which the runtime may have `limit` bytes waiting.
pub fn channel_with_limit(limit: usize) -> (InboxSender, InboxReceiver) {
    let shared = Arc::new(Shared {
        queue: Mutex::default(),
        arrived: Condvar::new(),
        taken: Condvar::new(),
        limit,
    });
    (InboxSender(Arc::clone(&shared)), InboxReceiver(shared))
}

impl InboxSender {
    /// Puts one entry into the queue. Waits only for [`Inbox::Runtime`], and only while the queue
    /// holds more of the runtime's bytes than its limit and somebody still takes them.
    pub fn send(&self, event: Inbox) {
        let mut queue = self.0.lock();
        if matches!(event, Inbox::Runtime(_)) {
            while queue.waiting_bytes >= self.0.limit && !queue.closed {
                queue = self.0.taken.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
        if queue.closed {
            return;
        }
        let Some(event) = replace_picture(&mut queue.entries, event) else { return };
        queue.waiting_bytes += weight(&event);
        let was_empty = queue.entries.is_empty();
        let left = match queue.entries.back_mut() {
            Some(last) => merge(last, event),
            None => Some(event),
        };
        queue.pressing += usize::from(left.as_ref().is_some_and(is_pressing));
        queue.entries.extend(left);
        let wake = if queue.gathering { queue.may_not_wait(self.0.limit) } else { was_empty };
        drop(queue);
        // The receiver takes everything that waits, so it only sleeps on an empty queue, or on one
        // that it lets fill.
        if wake {
            self.0.arrived.notify_one();
        }
    }

    /// The runtime's sink over this inbox.
    pub fn sink(&self) -> InboxSink {
        InboxSink(self.clone())
    }
}

impl StreamSink for InboxSink {
    fn emit(&self, event: TuiEvent) {
        self.0.send(Inbox::Runtime(event));
    }
}

impl InboxReceiver {
    /// Waits until something is there or the deadline has passed; without a deadline for as long
    /// as it takes. Returns none only when the deadline has passed.
    pub fn recv_deadline(&self, deadline: Option<Instant>) -> Option<Inbox> {
        let mut queue = self.0.lock();
        loop {
            if let Some(event) = self.take(&mut queue) {
                return Some(event);
            }
            queue = match deadline {
                None => self.0.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    let waited = self.0.arrived.wait_timeout(queue, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Waits for the deadline and lets what the runtime says gather meanwhile: a frame is due then
    /// anyway, and to be woken for every piece of a fast stream would cost more than the pieces.
    /// What the terminal or a signal says, and a queue that is full, end the wait at once.
    pub fn recv_gathered(&self, deadline: Instant) -> Option<Inbox> {
        let mut queue = self.0.lock();
        while !queue.may_not_wait(self.0.limit) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            queue.gathering = true;
            let waited = self.0.arrived.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            queue.gathering = false;
        }
        self.take(&mut queue)
    }

    /// What is there now, without waiting.
    pub fn try_recv(&self) -> Option<Inbox> {
        let mut queue = self.0.lock();
        self.take(&mut queue)
    }

    fn take(&self, queue: &mut Queue) -> Option<Inbox> {
        let event = queue.entries.pop_front()?;
        let was_full = queue.waiting_bytes >= self.0.limit;
        queue.waiting_bytes -= weight(&event);
        queue.pressing -= usize::from(is_pressing(&event));
        if was_full && queue.waiting_bytes < self.0.limit {
            self.0.taken.notify_all();
        }
        Some(event)
    }
}

impl Drop for InboxReceiver {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.closed = true;
        // Dropping a question denies it: whoever waits for an answer goes on.
        let left = std::mem::take(&mut queue.entries);
        queue.waiting_bytes = 0;
        queue.pressing = 0;
        drop(queue);
        drop(left);
        self.0.taken.notify_all();
    }
}

/// Bytes that count against the limit: only what the runtime produces. Facts without text count a
/// little, so that even they cannot pile up for ever. Merging must keep the sum, hence the weight
/// of a text is its length and nothing else.
fn weight(event: &Inbox) -> usize {
    match event {
        Inbox::Runtime(
            TuiEvent::TextDelta { text }
            | TuiEvent::ThinkingDelta { text }
            | TuiEvent::ToolOutput { text, .. },
        ) => text.len(),
        Inbox::Runtime(TuiEvent::ToolResult { outcome, input, .. }) => {
            outcome.output.len() + input.len()
        }
        Inbox::Runtime(_) => 256,
        Inbox::Terminal(_) | Inbox::Worker(_) | Inbox::Signal(_) | Inbox::Wake => 0,
    }
}

/// What the person or the system does is never kept waiting for a frame.
fn is_pressing(event: &Inbox) -> bool {
    matches!(event, Inbox::Terminal(_) | Inbox::Signal(_))
}

/// Only the newest picture of a worker's screen matters: it takes the place of one that waits, so that
/// a screen that changes all the time needs room for one. Otherwise gives `next` back.
fn replace_picture(waiting: &mut VecDeque<Inbox>, next: Inbox) -> Option<Inbox> {
    let Inbox::Worker(next) = next else { return Some(next) };
    let old = waiting.iter_mut().find_map(|entry| match entry {
        Inbox::Worker(old) => Some(old),
        _ => None,
    });
    match old {
        Some(old) => {
            *old = next;
            None
        }
        None => Some(Inbox::Worker(next)),
    }
}

/// Appends `next` to `last` where they are pieces of one thing; otherwise gives `next` back.
fn merge(last: &mut Inbox, next: Inbox) -> Option<Inbox> {
    use TuiEvent::{TextDelta, ThinkingDelta, ToolOutput};
    match (last, next) {
        (Inbox::Runtime(TextDelta { text }), Inbox::Runtime(TextDelta { text: more }))
        | (Inbox::Runtime(ThinkingDelta { text }), Inbox::Runtime(ThinkingDelta { text: more })) => {
            text.push_str(&more);
        }
        (
            Inbox::Runtime(ToolOutput { id, text }),
            Inbox::Runtime(ToolOutput { id: same, text: more }),
        ) if *id == same => text.push_str(&more),
        (Inbox::Wake, Inbox::Wake) => {}
        // Only the newest size matters; a storm of them must not be replayed one by one.
        (
            Inbox::Terminal(Event::Resize(width, height)),
            Inbox::Terminal(Event::Resize(new_width, new_height)),
        ) => {
            (*width, *height) = (new_width, new_height);
        }
        (_, next) => return Some(next),
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn text(text: &str) -> TuiEvent {
        TuiEvent::TextDelta { text: text.to_owned() }
    }

    fn output(id: &str, text: &str) -> TuiEvent {
        TuiEvent::ToolOutput { id: id.to_owned(), text: text.to_owned() }
    }

    fn drain(receiver: &InboxReceiver) -> Vec<String> {
        std::iter::from_fn(|| receiver.try_recv()).map(|event| format!("{event:?}")).collect()
    }

    #[test]
    fn the_inbox_has_one_variant_per_source() {
        // A ninth variant is a feature that wants to be a fact of one of the sources.
        let sources = |event: &Inbox| match event {
            Inbox::Terminal(_) => 1,
            Inbox::Runtime(_) => 2,
            Inbox::Signal(_) => 3,
            Inbox::Wake => 4,
            Inbox::Worker(_) => 5,
        };
        assert!(sources(&Inbox::Signal(Signal::End)) <= 8);
    }

    #[test]
    fn only_the_newest_picture_of_a_worker_waits() {
        use crate::pane::{PaneModes, Picture};
        let (sender, receiver) = channel();
        let picture = |columns| {
            let picture = Picture::new(columns, 1, PaneModes::default());
            Inbox::Worker(PaneEvent::Shown(Box::new(picture)))
        };
        for columns in 1..100 {
            sender.send(picture(columns));
            sender.send(Inbox::Terminal(Event::FocusGained));
        }
        let all: Vec<Inbox> = std::iter::from_fn(|| receiver.try_recv()).collect();
        let mut pictures = all.iter().filter(|event| matches!(event, Inbox::Worker(_)));
        let Some(Inbox::Worker(PaneEvent::Shown(newest))) = pictures.next() else { panic!() };
        assert_eq!(**newest, Picture::new(99, 1, PaneModes::default()));
        assert!(pictures.next().is_none());
        assert_eq!(all.len(), 100);
    }

    #[test]
    fn neighbouring_pieces_become_one_entry_and_nothing_else_does() {
        let (sender, receiver) = channel();
        let sink = sender.sink();
        sink.emit(text("a"));
        sink.emit(text("b"));
        sink.emit(output("1", "x"));
        sink.emit(output("1", "y"));
        sink.emit(output("2", "z"));
        sink.emit(TuiEvent::ThinkingDelta { text: "t".into() });
        sink.emit(TuiEvent::ThinkingDelta { text: "u".into() });
        sink.emit(text("c"));
        sender.send(Inbox::Signal(Signal::Stop));
        sink.emit(text("d"));
        insta::assert_snapshot!(drain(&receiver).join("\n"), @r#"
        Runtime(TextDelta { text: "ab" })
        Runtime(ToolOutput { id: "1", text: "xy" })
        Runtime(ToolOutput { id: "2", text: "z" })
        Runtime(ThinkingDelta { text: "tu" })
        Runtime(TextDelta { text: "c" })
        Signal(Stop)
        Runtime(TextDelta { text: "d" })
        "#);
    }

    #[test]
    fn ten_thousand_deltas_between_two_frames_are_one_entry() {
        let (sender, receiver) = channel();
        let sink = sender.sink();
        for _ in 0..10_000 {
            sink.emit(text("word "));
        }
        let Some(Inbox::Runtime(TuiEvent::TextDelta { text })) = receiver.try_recv() else {
            panic!("one text delta expected");
        };
        assert_eq!(text.len(), 50_000);
        assert!(receiver.try_recv().is_none());
    }

    #[test]
    fn only_the_last_of_a_storm_of_sizes_waits() {
        let (sender, receiver) = channel();
        for width in 20..80 {
            sender.send(Inbox::Terminal(Event::Resize(width, 10)));
        }
        assert_eq!(drain(&receiver), ["Terminal(Resize(79, 10))"]);
    }

    #[test]
    fn a_full_queue_makes_the_runtime_wait_and_loses_nothing() {
        let (sender, receiver) = channel_with_limit(64);
        let sink = sender.sink();
        let (progress, seen) = mpsc::channel();
        let runtime = thread::spawn(move || {
            for index in 0..100 {
                sink.emit(text("0123456789"));
                progress.send(index).unwrap();
            }
        });
        // Seven pieces of ten bytes reach the limit; the eighth has to wait.
        for expected in 0..7 {
            assert_eq!(seen.recv_timeout(SOON).unwrap(), expected);
        }
        assert!(seen.try_recv().is_err());
        // Keys and signals pass a full queue.
        sender.send(Inbox::Signal(Signal::End));
        let mut bytes = 0;
        let mut signals = 0;
        while bytes < 1000 {
            match receiver.recv_deadline(Some(Instant::now() + SOON)).expect("more text") {
                Inbox::Runtime(TuiEvent::TextDelta { text }) => bytes += text.len(),
                Inbox::Signal(Signal::End) => signals += 1,
                other => panic!("unexpected {other:?}"),
            }
        }
        runtime.join().unwrap();
        assert_eq!((bytes, signals), (1000, 1));
    }

    #[test]
    fn a_receiver_that_is_gone_frees_the_runtime() {
        let (sender, receiver) = channel_with_limit(4);
        let sink = sender.sink();
        sink.emit(text("full!"));
        let (done, ended) = mpsc::channel();
        thread::spawn(move || {
            sink.emit(text("waits"));
            sink.emit(text("returns at once"));
            done.send(()).unwrap();
        });
        drop(receiver);
        ended.recv_timeout(SOON).expect("emit must return when nobody reads any more");
    }

    #[test]
    fn a_question_left_in_a_dropped_inbox_is_denied() {
        use claw_runtime::permissions::PermissionReply;
        let (sender, receiver) = channel();
        let (reply, mut answer) = PermissionReply::channel();
        let request = crate::testing::request("bash", "{}");
        sender.sink().emit(TuiEvent::PermissionRequired { request, reply });
        drop(receiver);
        assert!(answer.try_recv().is_err_and(|error| error.to_string().contains("closed")));
    }

    #[test]
    fn a_deadline_that_passed_returns_none_and_a_waiting_event_wins() {
        let (sender, receiver) = channel();
        assert!(receiver.recv_deadline(Some(Instant::now())).is_none());
        sender.send(Inbox::Signal(Signal::End));
        assert!(receiver.recv_deadline(Some(Instant::now())).is_some());
    }

    #[test]
    fn a_sleeping_receiver_is_woken() {
        let (sender, receiver) = channel();
        let sleeper = thread::spawn(move || receiver.recv_deadline(None));
        sender.send(Inbox::Signal(Signal::Continued));
        let woken = sleeper.join().unwrap();
        assert!(matches!(woken, Some(Inbox::Signal(Signal::Continued))));
    }

    #[test]
    fn pieces_gather_until_the_deadline_and_a_key_ends_the_wait() {
        let (sender, receiver) = channel();
        sender.sink().emit(text("a"));
        assert!(receiver.recv_gathered(Instant::now()).is_some());
        assert!(receiver.recv_gathered(Instant::now()).is_none());
        let sleeper = thread::spawn(move || {
            // The deadline is out of reach: only a key can end this in time.
            let first = receiver.recv_gathered(Instant::now() + SOON * 30);
            (format!("{first:?}"), drain(&receiver))
        });
        sender.sink().emit(text("b"));
        sender.send(Inbox::Wake);
        sender.sink().emit(text("c"));
        sender.send(Inbox::Terminal(Event::FocusGained));
        let (first, _) = sleeper.join().unwrap();
        assert!(first.contains("TextDelta { text: \"b\" }"), "{first}");
    }

    #[test]
    fn a_full_queue_does_not_gather() {
        let (sender, receiver) = channel_with_limit(4);
        let sleeper = thread::spawn(move || {
            let first = receiver.recv_gathered(Instant::now() + SOON * 30);
            (first.is_some(), receiver)
        });
        sender.sink().emit(text("full!"));
        sender.sink().emit(text("waits for room"));
        let (came, receiver) = sleeper.join().unwrap();
        assert!(came);
        assert!(receiver.recv_deadline(Some(Instant::now() + SOON)).is_some());
    }

    proptest! {
        #[test]
        fn any_cut_of_a_text_arrives_whole(pieces in prop::collection::vec(".{0,12}", 0..40)) {
            let (sender, receiver) = channel();
            for piece in &pieces {
                sender.sink().emit(text(piece));
            }
            let mut joined = String::new();
            while let Some(Inbox::Runtime(TuiEvent::TextDelta { text })) = receiver.try_recv() {
                joined.push_str(&text);
            }
            prop_assert_eq!(joined, pieces.concat());
        }
    }
}
