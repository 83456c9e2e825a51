//! Circuit breaker per provider (P-17). Deterministic except for the lock: callers pass the clock in.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::Error;
use crate::locked::locked;

/// Consecutive failures that open the circuit.
const FAILURES: u32 = 5;
/// How long the circuit stays open.
const REST: Duration = Duration::from_secs(30);

/// Circuit breaker: decides whether a provider may be called.
#[derive(Debug)]
pub struct Breaker {
    /// Consecutive failures that open the circuit.
    failures: u32,
    /// How long the circuit stays open.
    rest: Duration,
    state: Mutex<State>,
}

/// Permit for one call. Dropping it without a result frees the half-open slot for the next call.
#[derive(Debug)]
pub struct Turn<'a> {
    breaker: &'a Breaker,
    /// This call is the half-open probe.
    trial: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    failures: u32,
    /// The circuit is open until this time; then one probe is allowed.
    closed_until: Option<Instant>,
    /// A probe is in flight.
    trying: bool,
}

impl Breaker {
    pub fn new(failures: u32, rest: Duration) -> Breaker {
        Breaker { failures, rest, state: Mutex::default() }
    }

    /// A permit to call now, if the circuit allows it. Hold it until the result is recorded.
    pub fn turn(&self, now: Instant) -> Option<Turn<'_>> {
        let mut state = locked(&self.state);
        match state.closed_until {
            None => Some(Turn { breaker: self, trial: false }),
            Some(until) if now < until || state.trying => None,
            Some(_) => {
                state.trying = true;
                Some(Turn { breaker: self, trial: true })
            }
        }
    }

    /// Whether the circuit is open.
    pub fn is_resting(&self, now: Instant) -> bool {
        locked(&self.state).closed_until.is_some_and(|until| now < until)
    }

    /// Records the result of a call. Only errors that reflect on the provider count; a rejected prompt does not.
    pub fn ended(&self, result: Result<(), &Error>, now: Instant) {
        let failed = matches!(
            result,
            Err(Error::Unavailable { .. }
                | Error::Network(_)
                | Error::Timeout
                | Error::Unreadable(_)
                | Error::BrokenOff)
        );
        self.count(failed, now);
    }

    fn count(&self, failed: bool, now: Instant) {
        let mut state = locked(&self.state);
        if !failed {
            *state = State::default();
            return;
        }
        state.failures = state.failures.saturating_add(1);
        if state.failures >= self.failures {
            state.closed_until = Some(now + self.rest);
        }
    }
}

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker::new(FAILURES, REST)
    }
}

impl Turn<'_> {
    /// Records the result of one request; a permit may cover several.
    pub fn count(&self, failed: bool, now: Instant) {
        self.breaker.count(failed, now);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.trial {
            locked(&self.breaker.state).trying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Error = Error::Unavailable { status: 503, retry_after: None };

    fn fail(breaker: &Breaker, times: u32, now: Instant) {
        (0..times).for_each(|_| breaker.ended(Err(&FAILED), now));
    }

    #[test]
    fn p17_after_five_failures_a_provider_rests_for_half_a_minute() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        fail(&breaker, 4, start);
        assert!(breaker.turn(start).is_some());
        fail(&breaker, 1, start);
        assert!(breaker.turn(start + Duration::from_secs(29)).is_none());
        assert!(breaker.turn(start + Duration::from_secs(30)).is_some());
    }

    #[test]
    fn p17_then_one_call_tries_and_its_end_decides() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        fail(&breaker, 5, start);
        let later = start + REST;
        let trial = breaker.turn(later).unwrap();
        assert!(breaker.turn(later).is_none(), "one is trying already");
        breaker.ended(Err(&FAILED), later);
        drop(trial);
        assert!(breaker.turn(later + Duration::from_secs(1)).is_none());
        let trial = breaker.turn(later + REST).unwrap();
        breaker.ended(Ok(()), later + REST);
        drop(trial);
        assert!(breaker.turn(later + REST).is_some() && breaker.turn(later + REST).is_some());
    }

    #[test]
    fn p17_an_older_call_that_ends_late_lets_no_second_one_try() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        let older = breaker.turn(start).unwrap();
        fail(&breaker, 5, start);
        let _trial = breaker.turn(start + REST).unwrap();
        drop(older);
        assert!(breaker.turn(start + REST).is_none());
    }

    #[test]
    fn p17_what_is_the_callers_fault_does_not_count() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..20 {
            breaker.ended(Err(&Error::BadRequest { kind: "invalid_request_error".into() }), now);
            breaker.ended(Err(&Error::RateLimited { retry_after: None, quota: false }), now);
        }
        assert!(breaker.turn(now).is_some());
    }

    #[test]
    fn c64_a_call_that_is_dropped_while_it_tries_leaves_the_try_to_the_next() {
        let (breaker, start) = (Breaker::new(1, REST), Instant::now());
        breaker.turn(start).unwrap().count(true, start);
        let later = start + REST;
        drop(breaker.turn(later).unwrap());
        let next = breaker.turn(later).unwrap();
        assert!(breaker.turn(later).is_none(), "one is trying already");
        next.count(false, later);
        assert!(breaker.turn(later).is_some() && !breaker.is_resting(later));
    }
}
