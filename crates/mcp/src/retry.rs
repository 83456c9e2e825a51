//! Retry with exponential backoff.
//!
//! For programs that call other servers. A permanent failure is returned immediately; after the last retry its failure
//! is returned unchanged.

use std::time::Duration;

/// One first attempt, then a retry after each of these delays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExponentialBackoff {
    delays: Vec<Duration>,
}

/// Whether and when a failed call can be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Permanent: the same call cannot succeed.
    Permanent,
    /// Transient: retry after the next delay.
    Transient,
    /// Transient, but not before this time: the server's `Retry-After`.
    RetryAfter(Duration),
}

impl Default for ExponentialBackoff {
    /// Three retries, after 1, 2 and 4 seconds.
    fn default() -> ExponentialBackoff {
        ExponentialBackoff::new(3, Duration::from_secs(1))
    }
}

impl ExponentialBackoff {
    /// Retries with doubling delays.
    pub fn new(retries: u32, first: Duration) -> ExponentialBackoff {
        ExponentialBackoff {
            delays: (0..retries).map(|step| first.saturating_mul(2u32.saturating_pow(step))).collect(),
        }
    }

    pub fn delays(&self) -> &[Duration] {
        &self.delays
    }

    /// Runs `attempt` until it succeeds, fails permanently, or the retries are exhausted. Dropping the future stops it.
    pub async fn run<T, E>(
        &self,
        again: impl Fn(&E) -> RetryDecision,
        mut attempt: impl AsyncFnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        for wait in &self.delays {
            let error = match attempt().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            match again(&error) {
                RetryDecision::Permanent => return Err(error),
                RetryDecision::Transient => tokio::time::sleep(*wait).await,
                RetryDecision::RetryAfter(asked) => tokio::time::sleep(asked.max(*wait)).await,
            }
        }
        attempt().await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    async fn fails(again: RetryDecision) -> (u32, Duration) {
        let (calls, start) = (Cell::new(0), Instant::now());
        let ended: Result<(), &str> = ExponentialBackoff::default()
            .run(
                |_| again,
                async || {
                    calls.set(calls.get() + 1);
                    Err("down")
                },
            )
            .await;
        assert_eq!(ended, Err("down"));
        (calls.get(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn x22_one_first_try_and_three_retries_after_one_two_and_four_seconds() {
        assert_eq!(fails(RetryDecision::Transient).await, (4, Duration::from_secs(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn x22_a_failure_for_good_is_not_retried() {
        assert_eq!(fails(RetryDecision::Permanent).await, (1, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn x22_a_longer_wait_that_was_asked_for_is_kept() {
        assert_eq!(fails(RetryDecision::RetryAfter(Duration::from_secs(3))).await, (4, Duration::from_secs(3 + 3 + 4)));
    }

    #[tokio::test(start_paused = true)]
    async fn success_ends_the_trying() {
        let calls = Cell::new(0);
        let ended: Result<u32, &str> = ExponentialBackoff::default()
            .run(
                |_| RetryDecision::Transient,
                async || {
                    calls.set(calls.get() + 1);
                    if calls.get() < 3 { Err("not yet") } else { Ok(calls.get()) }
                },
            )
            .await;
        assert_eq!(ended, Ok(3));
    }
}
