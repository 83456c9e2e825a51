//! Retry policy with backoff (P-14, X-22). Pure: callers pass in the error and the remaining time.

use std::time::Duration;

use super::Error;

/// Backoff before each retry, per docs/spec.
const BACKOFF: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// Backoff before the next retry after `retries` retries; `None` if the call should not be retried.
///
/// A longer `Retry-After` of the provider wins. If the wait would exceed the deadline there is no retry: an immediate
/// error serves the caller better.
pub fn backoff(error: &Error, retries: usize, left: Duration) -> Option<Duration> {
    let own = *BACKOFF.get(retries)?;
    let wait = error.retry_after().map_or(own, |asked| asked.max(own));
    (error.is_retryable() && wait < left).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetworkError;

    const MINUTE: Duration = Duration::from_secs(60);

    fn waits(error: &Error, left: Duration) -> Vec<u64> {
        (0..10).map_while(|retries| backoff(error, retries, left)).map(|wait| wait.as_secs()).collect()
    }

    #[test]
    fn p14_x22_three_retries_after_one_two_and_four_seconds() {
        for error in [Error::Timeout, Error::Network(NetworkError::Closed)] {
            assert_eq!(waits(&error, MINUTE), [1, 2, 4]);
        }
    }

    #[test]
    fn p14_a_longer_wait_that_the_provider_asks_for_is_respected_within_the_deadline() {
        let limited = |seconds| Error::RateLimited { retry_after: Some(Duration::from_secs(seconds)), quota: false };
        assert_eq!(waits(&limited(3), MINUTE), [3, 3, 4]);
        assert!(waits(&limited(61), MINUTE).is_empty());
        assert_eq!(waits(&limited(0), Duration::from_millis(1500)), [1]);
    }

    #[test]
    fn p15_what_does_not_pass_by_itself_is_not_tried_again() {
        let quota = Error::RateLimited { retry_after: None, quota: true };
        for error in
            [Error::Authentication, Error::ModelNotFound, quota, Error::Unavailable { status: 503, retry_after: None }]
        {
            assert!(waits(&error, MINUTE).is_empty(), "{error}");
        }
    }
}
