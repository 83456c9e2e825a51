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

/// The buckets of all callers of a server, by the address they come from.
#[derive(Debug)]
pub(crate) struct Buckets {
    limit: RateLimit,
    by_address: Mutex<HashMap<IpAddr, Arc<Bucket>>>,
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
    pub(crate) fn new(limit: RateLimit) -> Buckets {
        Buckets { limit, by_address: Mutex::default() }
    }

    pub(crate) fn of(&self, address: IpAddr) -> Arc<Bucket> {
        let mut buckets = self.by_address.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&address) {
            let now = Instant::now();
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        buckets.entry(address).or_insert_with(|| Arc::new(Bucket::new(self.limit))).clone()
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
