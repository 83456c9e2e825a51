//! Exponential backoff: the delays between the attempts of a retry loop.

use std::time::Duration;

/// Delays that double from an initial value up to a maximum. A loop takes [`Backoff::next_delay`] after each failure and
/// calls [`Backoff::reset`] after a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    pub const fn new(initial: Duration, max: Duration) -> Backoff {
        Backoff { initial, max, failures: 0 }
    }

    /// The delay after this failure.
    pub fn next_delay(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.delay_after(self.failures)
    }

    /// The delay that the next failure gets.
    pub fn peek(&self) -> Duration {
        self.delay_after(self.failures.saturating_add(1))
    }

    /// The delay after the given number of consecutive failures, for callers that keep the number themselves.
    pub fn delay_after(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.initial.saturating_mul(1 << doublings).min(self.max)
    }

    /// The next failure gets the initial delay again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Whether there was a failure since the last reset.
    pub fn is_active(&self) -> bool {
        self.failures > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn delays_double_up_to_the_maximum_and_start_over_after_a_reset() {
        let mut backoff = Backoff::new(SECOND, 5 * SECOND);
        let delays: Vec<u64> = (0..5).map(|_| backoff.next_delay().as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 5, 5]);
        assert!(backoff.is_active());
        backoff.reset();
        assert!(!backoff.is_active());
        assert_eq!((backoff.peek(), backoff.next_delay(), backoff.peek()), (SECOND, SECOND, 2 * SECOND));
    }

    #[test]
    fn a_million_failures_stay_at_the_maximum() {
        let backoff = Backoff::new(SECOND, Duration::MAX);
        assert_eq!(Backoff::new(SECOND, 60 * SECOND).delay_after(1_000_000), 60 * SECOND);
        assert_eq!(backoff.delay_after(u32::MAX), (1 << 31) * SECOND);
        assert_eq!(backoff.delay_after(0), SECOND);
    }
}
