//! How many requests a caller may send, and all of them together: a token bucket each, bounded in number (S-09).
//!
//! A request is charged to its caller first. One that is refused there costs the others nothing, so a flood drains its
//! own bucket and not the common one. How deep a caller may reach into the common bucket depends on how much it has left
//! of its own: whoever sends as fast as it may finds it closed while it still serves those who send now and then. A
//! caller that the common bucket refuses is not given its own token back, or a flood would look modest again.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
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
    own: Tokens,
    /// What it shares with everybody else, if there is such a limit.
    global: Option<Arc<Tokens>>,
}

/// Tokens that come back over time.
#[derive(Debug)]
struct Tokens {
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
pub(crate) struct Buckets {
    global: Option<Arc<Tokens>>,
    callers: Mutex<HashMap<Whose, Arc<Bucket>>>,
    /// Holders that have called from an address before it ran out of guesses.
    met: Mutex<HashSet<(Arc<str>, IpAddr)>>,
}

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

/// The part of the common bucket that a caller who has used up its own never gets.
const RESERVED: f64 = 0.5;

impl Tokens {
    fn new(limit: RateLimit) -> Tokens {
        let level = Level { tokens: f64::from(limit.burst), at: Instant::now() };
        Tokens { limit, level: Mutex::new(level) }
    }

    /// The level at this moment.
    fn refilled(&self, now: Instant) -> MutexGuard<'_, Level> {
        let mut level = self.level.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let came = now.saturating_duration_since(level.at).as_secs_f64() * f64::from(self.limit.per_second);
        level.tokens = (level.tokens + came).min(f64::from(self.limit.burst));
        level.at = level.at.max(now);
        level
    }

    /// Takes one token of those above `floor`, or says how long until there is one. Gives how many are left.
    fn take(&self, now: Instant, floor: f64) -> Result<f64, Duration> {
        let mut level = self.refilled(now);
        let missing = floor + 1.0 - level.tokens;
        if missing > 0.0 {
            return Err(Duration::from_secs_f64(missing / f64::from(self.limit.per_second.max(1))));
        }
        level.tokens -= 1.0;
        Ok(level.tokens)
    }

    /// The tokens that are kept from a caller who has used this part of its own.
    fn kept_from(&self, used: f64) -> f64 {
        let most = f64::from(self.limit.burst);
        // One token must be above it, or that caller would never get any.
        (most * used.min(RESERVED)).min(most - 1.0).max(0.0)
    }
}

impl Bucket {
    fn new(limit: RateLimit, global: Option<Arc<Tokens>>) -> Bucket {
        Bucket { own: Tokens::new(limit), global }
    }

    /// Takes one token, or refuses with the time to wait.
    pub(crate) fn charge(&self) -> Result<(), Error> {
        self.charge_at(Instant::now())
    }

    fn charge_at(&self, now: Instant) -> Result<(), Error> {
        let left = self.own.take(now, 0.0).map_err(|wait| Error::busy("too many requests", wait))?;
        let Some(global) = &self.global else { return Ok(()) };
        let used = 1.0 - left / f64::from(self.own.limit.burst.max(1));
        let taken = global.take(now, global.kept_from(used));
        taken.map(drop).map_err(|wait| Error::busy("too many requests of all callers together", wait))
    }

    fn is_full(&self, now: Instant) -> bool {
        self.own.refilled(now).tokens >= f64::from(self.own.limit.burst)
    }
}

impl Buckets {
    pub(crate) fn new(global: Option<RateLimit>) -> Buckets {
        Buckets {
            global: global.map(|limit| Arc::new(Tokens::new(limit))),
            callers: Mutex::default(),
            met: Mutex::default(),
        }
    }

    /// Whether a holder may come in from an address that may be guessing at tokens. While the address has something left
    /// of its own, everybody may, and is remembered; when it has not, only who is remembered may, or a right guess would
    /// be told from wrong ones however fast they come.
    pub(crate) fn meets(&self, holder: &Arc<str>, address: IpAddr, limit: RateLimit) -> Result<(), Error> {
        let met = (holder.clone(), address);
        let mut all = self.met.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if all.contains(&met) {
            return Ok(());
        }
        if self.of(Whose::Address(address), limit).own.refilled(Instant::now()).tokens < 1.0 {
            return Err(Error::busy("too many tokens were tried from this address", Duration::from_secs(1)));
        }
        if all.len() >= MAX_BUCKETS
            && let Some(one) = all.iter().next().cloned()
        {
            all.remove(&one);
        }
        all.insert(met);
        Ok(())
    }

    /// What all callers together may send. It is also the most that one may send who has no limit of its own.
    pub(crate) fn global_limit(&self) -> Option<RateLimit> {
        self.global.as_ref().map(|global| global.limit)
    }

    pub(crate) fn of(&self, whose: Whose, limit: RateLimit) -> Arc<Bucket> {
        let mut buckets = self.callers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match buckets.get(&whose) {
            Some(bucket) if bucket.own.limit == limit => return bucket.clone(),
            // The operator has changed the limit since.
            Some(_) => {}
            None if buckets.len() >= MAX_BUCKETS => {
                let now = Instant::now();
                buckets.retain(|_, bucket| !bucket.is_full(now));
                // All are in use: one begins anew rather than that there be more of them without end.
                if buckets.len() >= MAX_BUCKETS
                    && let Some(one) = buckets.keys().next().cloned()
                {
                    buckets.remove(&one);
                }
            }
            None => {}
        }
        let bucket = Arc::new(Bucket::new(limit, self.global.clone()));
        buckets.insert(whose, bucket.clone());
        bucket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn bucket(per_second: u32, burst: u32, global: Option<&Arc<Tokens>>) -> Bucket {
        Bucket::new(RateLimit { per_second, burst }, global.cloned())
    }

    fn refused(charged: Result<(), Error>) -> Duration {
        match charged {
            Err(Error::Busy { retry_after, .. }) => retry_after,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn s09_a_burst_passes_then_the_rate_holds() {
        let bucket = bucket(10, 3, None);
        let start = bucket.own.level.lock().expect("unpoisoned").at;
        for _ in 0..3 {
            assert!(bucket.charge_at(start).is_ok());
        }
        let wait = refused(bucket.charge_at(start));
        assert_eq!(wait, Duration::from_millis(100));
        assert!(bucket.charge_at(start + wait).is_ok());
        assert!(bucket.charge_at(start + wait).is_err());
        assert!(bucket.is_full(start + SECOND));
    }

    #[test]
    fn s09_a_refused_caller_costs_the_others_nothing() {
        let global = Arc::new(Tokens::new(RateLimit { per_second: 1, burst: 20 }));
        let (greedy, other) = (bucket(1, 3, Some(&global)), bucket(1, 3, Some(&global)));
        let start = global.level.lock().expect("unpoisoned").at + SECOND;
        let served = (0..1000).filter(|_| greedy.charge_at(start).is_ok()).count();
        assert_eq!(served, 3, "its own bucket is all it can empty");
        assert!((0..3).all(|_| other.charge_at(start).is_ok()));
    }

    #[test]
    fn s09_a_flood_leaves_half_of_the_common_bucket_to_others() {
        let global = Arc::new(Tokens::new(RateLimit { per_second: 10, burst: 20 }));
        let (flood, trickle) = (bucket(100, 100, Some(&global)), bucket(100, 100, Some(&global)));
        let start = global.level.lock().expect("unpoisoned").at;
        for second in 1..60 {
            let now = start + SECOND * second;
            for _ in 0..1000 {
                let _ = flood.charge_at(now);
            }
            assert!(trickle.charge_at(now).is_ok(), "second {second}");
        }
        // Nothing is lost for want of others: the flood has what they leave.
        let now = start + SECOND * 100;
        assert!((0..100).filter(|_| flood.charge_at(now).is_ok()).count() >= 9);
    }

    #[test]
    fn s09_the_wait_that_is_told_is_enough() {
        let global = Arc::new(Tokens::new(RateLimit { per_second: 7, burst: 1 }));
        let bucket = bucket(1000, 1000, Some(&global));
        let mut now = global.level.lock().expect("unpoisoned").at + SECOND;
        for _ in 0..50 {
            assert!(bucket.charge_at(now).is_ok());
            now += refused(bucket.charge_at(now));
        }
    }
}
