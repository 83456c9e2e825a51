//! Circuit breaker per provider (P-17). Deterministic except for the lock: callers pass the clock in.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::Error;
use corbie_util::lock::lock;

/// Consecutive failures that open the circuit.
const FAILURE_THRESHOLD: u32 = 5;
/// How long the circuit stays open.
const OPEN_DURATION: Duration = Duration::from_secs(30);

/// Circuit breaker: decides whether a provider may be called.
#[derive(Debug)]
pub struct CircuitBreaker {
    /// Consecutive failures that open the circuit.
    threshold: u32,
    /// How long the circuit stays open.
    open_duration: Duration,
    state: Mutex<State>,
}

/// Permit for one call. Dropping it without a result frees the half-open slot for the next call.
#[derive(Debug)]
pub struct BreakerPermit<'a> {
    breaker: &'a CircuitBreaker,
    /// This call is the half-open probe.
    is_probe: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    failures: u32,
    /// The circuit is open until this time; then one probe is allowed.
    open_until: Option<Instant>,
    /// A probe is in flight.
    is_probing: bool,
}

impl CircuitBreaker {
    pub fn new(failures: u32, rest: Duration) -> CircuitBreaker {
        CircuitBreaker { threshold: failures, open_duration: rest, state: Mutex::default() }
    }

    /// A permit to call now, if the circuit allows it. Hold it until the result is recorded.
    pub fn try_acquire(&self, now: Instant) -> Option<BreakerPermit<'_>> {
        let mut state = lock(&self.state);
        match state.open_until {
            None => Some(BreakerPermit { breaker: self, is_probe: false }),
            Some(until) if now < until || state.is_probing => None,
            Some(_) => {
                state.is_probing = true;
                Some(BreakerPermit { breaker: self, is_probe: true })
            }
        }
    }

    /// Whether the circuit is open.
    pub fn is_open(&self, now: Instant) -> bool {
        lock(&self.state).open_until.is_some_and(|until| now < until)
    }

    /// Records the result of a call. Only errors that reflect on the provider count; a rejected prompt does not.
    pub fn record_outcome(&self, result: Result<(), &Error>, now: Instant) {
        let failed = matches!(
            result,
            Err(Error::Unavailable { .. }
                | Error::Network(_)
                | Error::Timeout
                | Error::InvalidResponse(_)
                | Error::Truncated)
        );
        self.record_result(failed, now);
    }

    fn record_result(&self, failed: bool, now: Instant) {
        let mut state = lock(&self.state);
        if !failed {
            *state = State::default();
            return;
        }
        state.failures = state.failures.saturating_add(1);
        if state.failures >= self.threshold {
            state.open_until = Some(now + self.open_duration);
        }
    }
}

impl Default for CircuitBreaker {
    fn default() -> CircuitBreaker {
        CircuitBreaker::new(FAILURE_THRESHOLD, OPEN_DURATION)
    }
}

impl BreakerPermit<'_> {
    /// Records the result of one request; a permit may cover several.
    pub fn record_result(&self, failed: bool, now: Instant) {
        self.breaker.record_result(failed, now);
    }
}

impl Drop for BreakerPermit<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            lock(&self.breaker.state).is_probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Error = Error::Unavailable { status: 503, retry_after: None };

    fn fail(breaker: &CircuitBreaker, times: u32, now: Instant) {
        (0..times).for_each(|_| breaker.record_outcome(Err(&FAILED), now));
    }

    #[test]
    fn p17_after_five_failures_a_provider_rests_for_half_a_minute() {
        let (breaker, start) = (CircuitBreaker::default(), Instant::now());
        fail(&breaker, 4, start);
        assert!(breaker.try_acquire(start).is_some());
        fail(&breaker, 1, start);
        assert!(breaker.try_acquire(start + Duration::from_secs(29)).is_none());
        assert!(breaker.try_acquire(start + Duration::from_secs(30)).is_some());
    }

    #[test]
    fn p17_then_one_call_tries_and_its_end_decides() {
        let (breaker, start) = (CircuitBreaker::default(), Instant::now());
        fail(&breaker, 5, start);
        let later = start + OPEN_DURATION;
        let trial = breaker.try_acquire(later).unwrap();
        assert!(breaker.try_acquire(later).is_none(), "one is trying already");
        breaker.record_outcome(Err(&FAILED), later);
        drop(trial);
        assert!(breaker.try_acquire(later + Duration::from_secs(1)).is_none());
        let trial = breaker.try_acquire(later + OPEN_DURATION).unwrap();
        breaker.record_outcome(Ok(()), later + OPEN_DURATION);
        drop(trial);
        assert!(
            breaker.try_acquire(later + OPEN_DURATION).is_some()
                && breaker.try_acquire(later + OPEN_DURATION).is_some()
        );
    }

    #[test]
    fn p17_an_older_call_that_ends_late_lets_no_second_one_try() {
        let (breaker, start) = (CircuitBreaker::default(), Instant::now());
        let older = breaker.try_acquire(start).unwrap();
        fail(&breaker, 5, start);
        let _trial = breaker.try_acquire(start + OPEN_DURATION).unwrap();
        drop(older);
        assert!(breaker.try_acquire(start + OPEN_DURATION).is_none());
    }

    #[test]
    fn p17_what_is_the_callers_fault_does_not_count() {
        let (breaker, now) = (CircuitBreaker::default(), Instant::now());
        for _ in 0..20 {
            breaker.record_outcome(Err(&Error::BadRequest { kind: "invalid_request_error".into() }), now);
            breaker.record_outcome(Err(&Error::RateLimited { retry_after: None, quota: false }), now);
        }
        assert!(breaker.try_acquire(now).is_some());
    }

    #[test]
    fn c64_a_call_that_is_dropped_while_it_tries_leaves_the_try_to_the_next() {
        let (breaker, start) = (CircuitBreaker::new(1, OPEN_DURATION), Instant::now());
        breaker.try_acquire(start).unwrap().record_result(true, start);
        let later = start + OPEN_DURATION;
        drop(breaker.try_acquire(later).unwrap());
        let next = breaker.try_acquire(later).unwrap();
        assert!(breaker.try_acquire(later).is_none(), "one is trying already");
        next.record_result(false, later);
        assert!(breaker.try_acquire(later).is_some() && !breaker.is_open(later));
    }
}
