//! When to draw: pure arithmetic on instants that are passed in.
//!
//! Nothing changed means no deadline, so no timer and no wake-up. The first change after a pause
//! is drawn at once; what streams in later waits for the next frame. What the person does is drawn
//! at once too, also in the middle of a frame, but a flood of keys cannot cause more draws than
//! the limit. Refuses to read a clock.

use std::time::{Duration, Instant};

/// The shortest time between two draws of what arrives by itself: 60 a second.
pub const FRAME: Duration = Duration::from_micros(16_667);
/// The shortest time between two draws for the sake of a key: 120 a second.
pub const KEY_FRAME: Duration = Duration::from_micros(8_333);

/// Who wants to see the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// The person did something and looks for its effect.
    Input,
    /// Something arrived or changed by itself.
    Stream,
}

/// Says when the next frame is due.
#[derive(Debug, Default)]
pub struct FrameClock {
    last_draw: Option<Instant>,
    last_input_draw: Option<Instant>,
    due: Option<Instant>,
    input_waits: bool,
}

impl FrameClock {
    /// Something visible changed.
    pub fn dirty(&mut self, now: Instant, urgency: Urgency) {
        let (last, gap) = match urgency {
            Urgency::Input => (self.last_input_draw, KEY_FRAME),
            Urgency::Stream => (self.last_draw, FRAME),
        };
        self.input_waits |= urgency == Urgency::Input;
        let due = last.map_or(now, |last| now.max(last + gap));
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// When the next frame is due; none while nothing changed.
    pub fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// True when a frame should be drawn now.
    pub fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// A frame was drawn: everything is shown.
    pub fn drawn(&mut self, now: Instant) {
        self.last_draw = Some(now);
        if self.input_waits {
            self.last_input_draw = Some(now);
        }
        self.input_waits = false;
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use super::Urgency::{Input, Stream};
    use super::*;

    /// Feeds changes at the given microseconds to a clock that draws exactly when due, and returns
    /// the instants of the draws.
    fn draws(changes: &[(u64, Urgency)]) -> Vec<u64> {
        let start = Instant::now();
        let mut clock = FrameClock::default();
        let mut drawn = Vec::new();
        let mut draw_until = |clock: &mut FrameClock, limit: Option<Instant>| {
            while let Some(due) = clock.deadline().filter(|due| limit.is_none_or(|l| *due <= l)) {
                assert!(clock.is_due(due));
                clock.drawn(due);
                drawn.push(u64::try_from((due - start).as_micros()).unwrap());
            }
        };
        for &(at, urgency) in changes {
            let now = start + Duration::from_micros(at);
            draw_until(&mut clock, Some(now));
            clock.dirty(now, urgency);
        }
        draw_until(&mut clock, None);
        drawn
    }

    #[track_caller]
    fn check(changes: &[(u64, Urgency)], expected: &[u64]) {
        assert_eq!(draws(changes), expected);
    }

    #[test]
    fn nothing_changed_means_no_timer() {
        let mut clock = FrameClock::default();
        assert_eq!(clock.deadline(), None);
        let now = Instant::now();
        clock.dirty(now, Stream);
        clock.drawn(now);
        assert_eq!(clock.deadline(), None);
    }

    #[test]
    fn draws_happen_when_they_should() {
        // The first change after a pause is drawn at once.
        check(&[(0, Stream)], &[0]);
        check(&[(0, Stream), (900_000, Stream)], &[0, 900_000]);
        // Later ones wait out the frame, and share it.
        check(&[(0, Stream), (1_000, Stream), (2_000, Stream)], &[0, 16_667]);
        // A key is drawn at once in the middle of a frame.
        check(&[(0, Stream), (1_000, Stream), (5_000, Input)], &[0, 5_000]);
        check(&[(0, Stream), (5_000, Input), (6_000, Stream)], &[0, 5_000, 21_667]);
        // Keys that come faster than the limit share a draw.
        check(&[(0, Input), (1_000, Input), (2_000, Input)], &[0, 8_333]);
        check(&[(0, Input), (10_000, Input), (20_000, Input)], &[0, 10_000, 20_000]);
        // A key that waits for its limit does not delay what was due earlier.
        check(&[(0, Input), (1_000, Stream), (16_000, Input)], &[0, 16_000]);
    }

    #[test]
    fn floods_of_both_kinds_stay_under_their_limits() {
        let second = |urgency, step: usize| {
            (0..1_000_000).step_by(step).map(|at| (at, urgency)).collect::<Vec<_>>()
        };
        assert!(draws(&second(Stream, 100)).len() <= 61);
        assert!(draws(&second(Input, 100)).len() <= 121);
    }
}
