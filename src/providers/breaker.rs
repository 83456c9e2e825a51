//! Leaves a provider alone for a while that keeps failing (P-17). Pure but for the lock: the clock is handed in.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::Error;
use crate::locked::locked;

/// Failures in a row after which a provider is left alone.
const FAILURES: u32 = 5;
/// For how long.
const REST: Duration = Duration::from_secs(30);

/// Whether a provider is asked at the moment.
#[derive(Debug)]
pub struct Breaker {
    /// Failures in a row after which nobody asks.
    failures: u32,
    /// For how long.
    rest: Duration,
    state: Mutex<State>,
}

/// Leave to make a call. Going away without telling how it ended leaves the try to the next.
#[derive(Debug)]
pub struct Turn<'a> {
    breaker: &'a Breaker,
    /// It is the one call that tries after a rest.
    trial: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    failures: u32,
    /// Nobody asks before this; then one call may try.
    closed_until: Option<Instant>,
    /// Somebody is trying.
    trying: bool,
}

impl Breaker {
    pub fn new(failures: u32, rest: Duration) -> Breaker {
        Breaker { failures, rest, state: Mutex::default() }
    }

    /// Leave to make a call now. To be held until it was told how the call ended.
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

    /// Whether nobody is asked now.
    pub fn is_resting(&self, now: Instant) -> bool {
        locked(&self.state).closed_until.is_some_and(|until| now < until)
    }

    /// Told how a call ended. Only what says something about the provider counts: a refused prompt does not.
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
    /// Told how a request went; a turn may have several.
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
