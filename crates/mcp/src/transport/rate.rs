//! How many requests a caller may send: a token bucket each, bounded in number (S-09).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::error::Error;

/// So many requests a second over time, and so many at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    pub per_second: u32,
    pub burst: u32,
}

/// One caller's allowance.
#[derive(Debug)]
pub(crate) struct Bucket {
    limit: RateLimit,
    level: Mutex<Level>,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    tokens: f64,
    at: Instant,
}

/// The buckets of all callers of a server.
#[derive(Debug, Default)]
pub(crate) struct Buckets(Mutex<HashMap<Whose, Arc<Bucket>>>);

/// Whom a request is charged to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Whose {
    /// Who has proved who they are, wherever they come from.
    Holder(Arc<str>),
    /// Everybody else behind one address.
    Address(IpAddr),
}

/// Past this, buckets that have filled up again are forgotten: they say nothing a new one would not.
const MAX_BUCKETS: usize = 10_000;

impl Bucket {
    pub(crate) fn new(limit: RateLimit) -> Bucket {
        let level = Level { tokens: f64::from(limit.burst), at: Instant::now() };
        Bucket { limit, level: Mutex::new(level) }
    }

    /// Takes one token, or says how long until there is one.
    fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut level = self.level.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let refilled = level.tokens + now.duration_since(level.at).as_secs_f64() * f64::from(self.limit.per_second);
        level.tokens = refilled.min(f64::from(self.limit.burst));
        level.at = now;
        if level.tokens < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - level.tokens) / f64::from(self.limit.per_second.max(1))));
        }
        level.tokens -= 1.0;
        Ok(())
    }

    /// Takes one token, or refuses with the time to wait.
    pub(crate) fn charge(&self) -> Result<(), Error> {
        self.take(Instant::now())
            .map_err(|wait| Error::RateLimited(format!("too many requests; try again in {} ms", wait.as_millis() + 1)))
    }

    fn is_full(&self, now: Instant) -> bool {
        let level = self.level.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let refilled = level.tokens + now.duration_since(level.at).as_secs_f64() * f64::from(self.limit.per_second);
        refilled >= f64::from(self.limit.burst)
    }
}

impl Buckets {
    pub(crate) fn of(&self, whose: Whose, limit: RateLimit) -> Arc<Bucket> {
        let mut buckets = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match buckets.get(&whose) {
            Some(bucket) if bucket.limit == limit => return bucket.clone(),
            // The operator has changed the limit since.
            Some(_) => {}
            None if buckets.len() >= MAX_BUCKETS => {
                let now = Instant::now();
                buckets.retain(|_, bucket| !bucket.is_full(now));
            }
            None => {}
        }
        let bucket = Arc::new(Bucket::new(limit));
        buckets.insert(whose, bucket.clone());
        bucket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s09_a_burst_passes_then_the_rate_holds() {
        let bucket = Bucket::new(RateLimit { per_second: 10, burst: 3 });
        let start = bucket.level.lock().expect("unpoisoned").at;
        for _ in 0..3 {
            assert_eq!(bucket.take(start), Ok(()));
        }
        let wait = bucket.take(start).expect_err("empty");
        assert_eq!(wait, Duration::from_millis(100));
        assert_eq!(bucket.take(start + wait), Ok(()));
        assert!(bucket.take(start + wait).is_err());
        assert!(bucket.is_full(start + Duration::from_secs(1)));
    }
}
