//! Clock guard: detects jumps of the wall clock.
//!
//! Ages are measured by the wall clock because they must survive a restart. If a machine wakes up with a wrong date, or
//! its clock is set while it runs, everything would expire immediately. Data therefore expires only after the wall
//! clock has agreed with the monotonic clock for a while.

use std::time::{Duration, Instant, SystemTime};

/// How long the clocks must have agreed.
const MIN_STEADY_TIME: Duration = Duration::from_secs(60 * 60);
/// Tolerance for the small steps of clock synchronization.
const MAX_ADJUSTMENT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct ClockGuard {
    steady_since: Instant,
    /// Time of the last check, by both clocks.
    last_check: (Instant, SystemTime),
}

impl ClockGuard {
    pub(super) fn new() -> ClockGuard {
        ClockGuard::starting_at(Instant::now(), SystemTime::now())
    }

    fn starting_at(now: Instant, wall: SystemTime) -> ClockGuard {
        ClockGuard { steady_since: now, last_check: (now, wall) }
    }

    /// Compares the clocks. A jump is detected only if a check happens before it is undone.
    pub(super) fn check(&mut self) {
        self.check_at(Instant::now(), SystemTime::now());
    }

    fn check_at(&mut self, now: Instant, wall: SystemTime) {
        let expected = self.last_check.1 + now.duration_since(self.last_check.0);
        let apart = wall.duration_since(expected).unwrap_or_else(|before| before.duration());
        if apart > MAX_ADJUSTMENT {
            self.steady_since = now;
        }
        self.last_check = (now, wall);
    }

    pub(super) fn is_trustworthy(&self) -> bool {
        self.last_check.0.duration_since(self.steady_since) >= MIN_STEADY_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_believed_after_an_hour_and_not_after_a_jump() {
        let (begin, wall) = (Instant::now(), SystemTime::now());
        let mut steady = ClockGuard::starting_at(begin, wall);
        let minutes = |count: u64| Duration::from_secs(60 * count);
        let month = Duration::from_secs(31 * 24 * 3600);
        for minute in 0..60 {
            steady.check_at(begin + minutes(minute), wall + minutes(minute));
            assert!(!steady.is_trustworthy(), "after {minute} minutes");
        }
        steady.check_at(begin + minutes(60), wall + minutes(60) + Duration::from_secs(2));
        assert!(steady.is_trustworthy(), "two seconds are no jump");
        steady.check_at(begin + minutes(61), wall + month);
        assert!(!steady.is_trustworthy(), "everything would be a month older");
        steady.check_at(begin + minutes(100), wall + month + minutes(39));
        assert!(!steady.is_trustworthy());
        steady.check_at(begin + minutes(121), wall + month + minutes(60));
        assert!(steady.is_trustworthy());
        steady.check_at(begin + minutes(122), wall + minutes(122));
        assert!(!steady.is_trustworthy(), "back again: what ended meanwhile has times to come");
    }
}
