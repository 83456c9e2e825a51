//! Clock guard: detects jumps of the wall clock.
//!
//! Ages are measured by the wall clock because they must survive a restart. If a machine wakes up with a wrong date, or
//! its clock is set while it runs, everything would expire immediately. Data therefore expires only after the wall
//! clock has agreed with the monotonic clock for a while.

use std::time::{Duration, Instant, SystemTime};

/// How long the clocks must have agreed.
const LONG_ENOUGH: Duration = Duration::from_secs(60 * 60);
/// Tolerance for the small steps of clock synchronization.
const NO_JUMP: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Steady {
    since: Instant,
    /// Time of the last check, by both clocks.
    seen: (Instant, SystemTime),
}

impl Steady {
    pub(super) fn new() -> Steady {
        Steady::from(Instant::now(), SystemTime::now())
    }

    fn from(now: Instant, wall: SystemTime) -> Steady {
        Steady { since: now, seen: (now, wall) }
    }

    /// Compares the clocks. A jump is detected only if a check happens before it is undone.
    pub(super) fn look(&mut self) {
        self.look_at(Instant::now(), SystemTime::now());
    }

    fn look_at(&mut self, now: Instant, wall: SystemTime) {
        let expected = self.seen.1 + now.duration_since(self.seen.0);
        let apart = wall.duration_since(expected).unwrap_or_else(|before| before.duration());
        if apart > NO_JUMP {
            self.since = now;
        }
        self.seen = (now, wall);
    }

    pub(super) fn is_believed(&self) -> bool {
        self.seen.0.duration_since(self.since) >= LONG_ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_believed_after_an_hour_and_not_after_a_jump() {
        let (begin, wall) = (Instant::now(), SystemTime::now());
        let mut steady = Steady::from(begin, wall);
        let minutes = |count: u64| Duration::from_secs(60 * count);
        let month = Duration::from_secs(31 * 24 * 3600);
        for minute in 0..60 {
            steady.look_at(begin + minutes(minute), wall + minutes(minute));
            assert!(!steady.is_believed(), "after {minute} minutes");
        }
        steady.look_at(begin + minutes(60), wall + minutes(60) + Duration::from_secs(2));
        assert!(steady.is_believed(), "two seconds are no jump");
        steady.look_at(begin + minutes(61), wall + month);
        assert!(!steady.is_believed(), "everything would be a month older");
        steady.look_at(begin + minutes(100), wall + month + minutes(39));
        assert!(!steady.is_believed());
        steady.look_at(begin + minutes(121), wall + month + minutes(60));
        assert!(steady.is_believed());
        steady.look_at(begin + minutes(122), wall + minutes(122));
        assert!(!steady.is_believed(), "back again: what ended meanwhile has times to come");
    }
}
