//! Rate limits: a token bucket per caller and a global one, bounded in number (S-09).
//!
//! A request is charged to its caller first. A request rejected there costs the global bucket nothing, so a flood
//! drains only its own bucket. The share of the global bucket available to a caller depends on how full its bucket is:
//! a caller at its limit is rejected while occasional callers are still served. A caller rejected by the global bucket
//! does not get its own token back, otherwise a flood would look modest again.
//!
//! Instances may share the usage of callers (`spent.rs`). Usage reported by other instances is subtracted here
//! asynchronously; no request waits for it. The global bucket protects the process, so it is not shared between
//! instances.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::shared_rate_usage::RateUsage;
use crate::error::Error;

/// Sustained requests per second, and burst size after idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RateLimit {
    pub per_second: u32,
    pub burst: u32,
}

/// One caller's token bucket.
#[derive(Debug)]
pub(crate) struct CallerBucket {
    own: TokenBucket,
    /// The global bucket, if configured.
    global: Option<Arc<TokenBucket>>,
}

/// A token that was taken from a bucket, possibly before it was due. It is returned on drop unless it is charged.
#[derive(Debug)]
pub(crate) struct Reservation {
    bucket: Arc<CallerBucket>,
    /// Time until the token is due.
    pub(crate) wait: Duration,
    is_charged: bool,
}

/// A token bucket.
#[derive(Debug)]
struct TokenBucket {
    limit: RateLimit,
    level: Mutex<BucketLevel>,
}

#[derive(Debug, Clone, Copy)]
struct BucketLevel {
    /// Negative when several instances spent the same tokens, and when tokens were reserved ahead of time.
    tokens: f64,
    at: Instant,
    /// Tokens taken and not yet settled with other instances, and since when.
    unreported: u64,
    since: Instant,
}

/// Usage to report: number of tokens, and age of the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnreportedUsage {
    pub(super) tokens: u64,
    pub(super) age: Duration,
}

/// The buckets of all callers of a server.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    global: Option<Arc<TokenBucket>>,
    /// If listeners have different limits, or the operator changed one, a caller has a bucket for each.
    callers: Mutex<HashMap<(RateLimitKey, RateLimit), Arc<CallerBucket>>>,
}

/// The subject a request is charged to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RateLimitKey {
    /// An authenticated caller, from any address.
    Token(Arc<str>),
    /// All unauthenticated callers of one address.
    Address(IpAddr),
    /// Callers of one address without a valid token where one is required.
    Unauthenticated(IpAddr),
    /// Signature checks of tokens from one address that turn out to be wrong.
    SignatureChecks(IpAddr),
}

/// Above this, full buckets are evicted: they are equivalent to new ones.
const MAX_BUCKETS: usize = 10_000;

/// Fraction of the global bucket reserved from callers that used up their own.
const RESERVED_FRACTION: f64 = 0.5;

impl TokenBucket {
    fn new(limit: RateLimit) -> TokenBucket {
        let now = Instant::now();
        let level = BucketLevel { tokens: f64::from(limit.burst), at: now, unreported: 0, since: now };
        TokenBucket { limit, level: Mutex::new(level) }
    }

    /// Refills the bucket and returns its level.
    fn refilled(&self, now: Instant) -> MutexGuard<'_, BucketLevel> {
        let mut level = self.level.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let came = now.saturating_duration_since(level.at).as_secs_f64() * f64::from(self.limit.per_second);
        level.tokens = (level.tokens + came).min(f64::from(self.limit.burst));
        level.at = level.at.max(now);
        level
    }

    /// Takes one token above `floor` and returns how many are left, or the wait until one is available.
    fn take(&self, now: Instant, floor: f64) -> Result<f64, Duration> {
        let mut level = self.refilled(now);
        let missing = floor + 1.0 - level.tokens;
        if missing > 0.0 {
            return Err(Duration::from_secs_f64(missing / f64::from(self.limit.per_second.max(1))));
        }
        level.take(now);
        Ok(level.tokens)
    }

    /// Takes one token, ahead of time if none is left, and returns the wait until it is due. Fails with that wait if it is
    /// longer than `max_wait`.
    fn take_ahead(&self, now: Instant, max_wait: Duration) -> Result<Duration, Duration> {
        let mut level = self.refilled(now);
        let missing = (1.0 - level.tokens).max(0.0);
        let wait = Duration::from_secs_f64(missing / f64::from(self.limit.per_second.max(1)));
        if wait > max_wait {
            return Err(wait);
        }
        level.take(now);
        Ok(wait)
    }

    /// Returns one token.
    fn give_back(&self, now: Instant) {
        let mut level = self.refilled(now);
        level.tokens = (level.tokens + 1.0).min(f64::from(self.limit.burst));
        level.unreported = level.unreported.saturating_sub(1);
    }

    /// Unreported usage; `None` if there is none and the bucket is full.
    fn unreported(&self, now: Instant) -> Option<UnreportedUsage> {
        let level = self.refilled(now);
        match level.unreported {
            0 => (level.tokens < f64::from(self.limit.burst))
                .then_some(UnreportedUsage { tokens: 0, age: Duration::ZERO }),
            tokens => Some(UnreportedUsage { tokens, age: now.saturating_duration_since(level.since) }),
        }
    }

    /// Subtracts the usage of other instances. `told` tokens were reported at `asked`; counted from then, all reported
    /// usage is refilled after `whole_in`.
    ///
    /// It never adds tokens: the local count of local usage is exact.
    fn apply_total(&self, told: u64, asked: Instant, whole_in: Duration, now: Instant) {
        let mut level = self.refilled(now);
        level.unreported = level.unreported.saturating_sub(told);
        // The remaining ones were taken later.
        level.since = asked;
        let most = f64::from(self.limit.burst);
        let missing = whole_in.saturating_sub(now.saturating_duration_since(asked)).as_secs_f64();
        let left = most - missing * f64::from(self.limit.per_second) - level.unreported as f64;
        level.tokens = level.tokens.min(left.max(-most));
    }

    /// The tokens reserved from a caller that has used this fraction of its bucket.
    fn reserved_from(&self, used: f64) -> f64 {
        let most = f64::from(self.limit.burst);
        // Leave at least one token above the floor, or that caller would never get any.
        (most * used.min(RESERVED_FRACTION)).min(most - 1.0).max(0.0)
    }
}

impl BucketLevel {
    fn take(&mut self, now: Instant) {
        self.tokens -= 1.0;
        if self.unreported == 0 {
            self.since = now;
        }
        self.unreported += 1;
    }
}

impl Reservation {
    /// Charges the token. Otherwise it is returned when the reservation is dropped.
    pub(crate) fn charge(mut self) {
        self.is_charged = true;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_charged {
            self.bucket.own.give_back(Instant::now());
        }
    }
}

impl CallerBucket {
    fn new(limit: RateLimit, global: Option<Arc<TokenBucket>>) -> CallerBucket {
        CallerBucket { own: TokenBucket::new(limit), global }
    }

    /// Takes one token, or fails with the time to wait.
    pub(crate) fn charge(&self) -> Result<(), Error> {
        self.charge_at(Instant::now())
    }

    fn charge_at(&self, now: Instant) -> Result<(), Error> {
        let left = self.own.take(now, 0.0).map_err(|wait| Error::busy("rate limit exceeded", wait))?;
        let Some(global) = &self.global else { return Ok(()) };
        let used = 1.0 - left / f64::from(self.own.limit.burst.max(1));
        let taken = global.take(now, global.reserved_from(used));
        taken.map(drop).map_err(|wait| Error::busy("rate limit of the server exceeded", wait))
    }

    /// Reserves a token of the caller's own bucket, ahead of time if none is left. Fails with the time to wait if that is
    /// longer than `max_wait`.
    pub(crate) fn reserve(self: &Arc<CallerBucket>, max_wait: Duration) -> Result<Reservation, Error> {
        self.reserve_at(Instant::now(), max_wait)
    }

    fn reserve_at(self: &Arc<CallerBucket>, now: Instant, max_wait: Duration) -> Result<Reservation, Error> {
        let wait = self.own.take_ahead(now, max_wait).map_err(|wait| Error::busy("rate limit exceeded", wait))?;
        Ok(Reservation { bucket: self.clone(), wait, is_charged: false })
    }

    fn is_full(&self, now: Instant) -> bool {
        self.own.refilled(now).tokens >= f64::from(self.own.limit.burst)
    }

    /// Marks tokens taken before `asked` as reported.
    pub(super) fn mark_reported(&self, told: u64, asked: Instant) {
        let mut level = self.own.refilled(Instant::now());
        level.unreported = level.unreported.saturating_sub(told);
        level.since = asked;
    }

    pub(super) fn apply_total(&self, told: u64, asked: Instant, whole_in: Duration) {
        self.own.apply_total(told, asked, whole_in, Instant::now());
    }
}

impl RateLimitKey {
    /// The name shared among instances; `None` for loopback, which differs on each instance.
    fn shared_name(&self) -> Option<String> {
        match self {
            RateLimitKey::Token(name) => Some(format!("holder {name}")),
            RateLimitKey::Address(address) if address.to_canonical().is_loopback() => None,
            RateLimitKey::Address(address) => Some(format!("address {address}")),
            // Behind a load balancer all callers have its address: guesses at one instance must not lock out callers at
            // all of them.
            RateLimitKey::Unauthenticated(_) | RateLimitKey::SignatureChecks(_) => None,
        }
    }
}

impl RateLimiter {
    pub(crate) fn new(global: Option<RateLimit>) -> RateLimiter {
        RateLimiter { global: global.map(|limit| Arc::new(TokenBucket::new(limit))), callers: Mutex::default() }
    }

    /// The global limit. It is also the limit of callers without their own.
    pub(crate) fn global_limit(&self) -> Option<RateLimit> {
        self.global.as_ref().map(|global| global.limit)
    }

    pub(crate) fn bucket_for(&self, whose: RateLimitKey, limit: RateLimit) -> Arc<CallerBucket> {
        let mut buckets = self.callers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let whose = (whose, limit);
        if let Some(bucket) = buckets.get(&whose) {
            return bucket.clone();
        }
        if buckets.len() >= MAX_BUCKETS {
            let now = Instant::now();
            buckets.retain(|_, bucket| !bucket.is_full(now));
            // All buckets are in use: evict one instead of growing without bound.
            if buckets.len() >= MAX_BUCKETS
                && let Some(one) = buckets.keys().next().cloned()
            {
                buckets.remove(&one);
            }
        }
        // A signature check is part of a request, which is charged to the global bucket itself.
        let global = self.global.clone().filter(|_| !matches!(whose.0, RateLimitKey::SignatureChecks(_)));
        let bucket = Arc::new(CallerBucket::new(limit, global));
        buckets.insert(whose, bucket.clone());
        bucket
    }

    /// Usage not yet reported to other instances, and callers that need an update from them. `number` distinguishes the
    /// buckets of different HTTP servers.
    pub(super) fn unreported_usage(&self, number: usize, now: Instant) -> Vec<RateUsage> {
        let all: Vec<_> = {
            let buckets = self.callers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            buckets.iter().map(|((whose, _), bucket)| (whose.clone(), bucket.clone())).collect()
        };
        let spent = all.into_iter().filter_map(|(whose, bucket)| {
            let untold = bucket.own.unreported(now)?;
            let RateLimit { per_second, burst } = bucket.own.limit;
            let caller = format!("{number} {per_second}/{burst} {}", whose.shared_name()?);
            Some(RateUsage::new(caller, bucket.own.limit, untold, now, bucket))
        });
        spent.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn bucket(per_second: u32, burst: u32, global: Option<&Arc<TokenBucket>>) -> CallerBucket {
        CallerBucket::new(RateLimit { per_second, burst }, global.cloned())
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
        let global = Arc::new(TokenBucket::new(RateLimit { per_second: 1, burst: 20 }));
        let (greedy, other) = (bucket(1, 3, Some(&global)), bucket(1, 3, Some(&global)));
        let start = global.level.lock().expect("unpoisoned").at + SECOND;
        let served = (0..1000).filter(|_| greedy.charge_at(start).is_ok()).count();
        assert_eq!(served, 3, "its own bucket is all it can empty");
        assert!((0..3).all(|_| other.charge_at(start).is_ok()));
    }

    #[test]
    fn s09_a_flood_leaves_half_of_the_common_bucket_to_others() {
        let global = Arc::new(TokenBucket::new(RateLimit { per_second: 10, burst: 20 }));
        let (flood, trickle) = (bucket(100, 100, Some(&global)), bucket(100, 100, Some(&global)));
        let start = global.level.lock().expect("unpoisoned").at;
        for second in 1..60 {
            let now = start + SECOND * second;
            for _ in 0..1000 {
                let _ = flood.charge_at(now);
            }
            assert!(trickle.charge_at(now).is_ok(), "second {second}");
        }
        // No capacity is wasted: without competition the flood gets the rest.
        let now = start + SECOND * 100;
        assert!((0..100).filter(|_| flood.charge_at(now).is_ok()).count() >= 9);
    }

    #[test]
    fn s09_the_wait_that_is_told_is_enough() {
        let global = Arc::new(TokenBucket::new(RateLimit { per_second: 7, burst: 1 }));
        let bucket = bucket(1000, 1000, Some(&global));
        let mut now = global.level.lock().expect("unpoisoned").at + SECOND;
        for _ in 0..50 {
            assert!(bucket.charge_at(now).is_ok());
            now += refused(bucket.charge_at(now));
        }
    }

    /// A bucket of 20 that refills in 2 seconds, with `so_many` tokens taken at creation; and its creation time.
    fn taken(so_many: usize) -> (CallerBucket, Instant) {
        let bucket = bucket(10, 20, None);
        let start = bucket.own.level.lock().expect("unpoisoned").at;
        assert!((0..so_many).all(|_| bucket.charge_at(start).is_ok()));
        (bucket, start)
    }

    /// Number of requests served at a time.
    fn served(bucket: &CallerBucket, now: Instant) -> usize {
        (0..100).take_while(|_| bucket.charge_at(now).is_ok()).count()
    }

    #[test]
    fn s09_reservations_are_due_at_the_rate_and_the_wait_for_them_is_bounded() {
        let bucket = Arc::new(bucket(10, 2, None));
        let start = bucket.own.level.lock().expect("unpoisoned").at;
        let max_wait = Duration::from_millis(300);
        let reserve = || bucket.reserve_at(start, max_wait);
        let reserved: Vec<Reservation> = std::iter::from_fn(|| reserve().ok()).collect();
        let waits: Vec<u128> = reserved.iter().map(|reservation| reservation.wait.as_millis()).collect();
        assert_eq!(waits, [0, 0, 100, 200, 300]);
        assert_eq!(refused(reserve().map(drop)), Duration::from_millis(400));
        reserved.into_iter().for_each(Reservation::charge);
        assert!(reserve().is_err(), "what is charged is not returned");
    }

    #[test]
    fn s09_a_reservation_that_is_dropped_gives_back_no_more_than_was_taken() {
        let bucket = Arc::new(bucket(1, 2, None));
        for _ in 0..100 {
            assert_eq!(bucket.reserve(Duration::ZERO).expect("a token").wait, Duration::ZERO);
        }
        assert!(bucket.charge().is_ok() && bucket.charge().is_ok());
        assert!(bucket.charge().is_err());
    }

    #[test]
    fn s09_a13_what_others_have_spent_is_taken_away() {
        let (bucket, start) = taken(5);
        assert_eq!(bucket.own.unreported(start), Some(UnreportedUsage { tokens: 5, age: Duration::ZERO }));
        // Other instances used ten.
        bucket.own.apply_total(5, start, Duration::from_millis(1500), start);
        assert_eq!(bucket.own.unreported(start), Some(UnreportedUsage { tokens: 0, age: Duration::ZERO }));
        assert_eq!(served(&bucket, start), 5);
    }

    #[test]
    fn s09_a13_what_is_spent_before_the_answer_comes_counts_and_is_told_next() {
        let (bucket, asked) = taken(5);
        let answered = asked + SECOND / 10;
        assert!((0..3).all(|_| bucket.charge_at(answered).is_ok()));
        bucket.own.apply_total(5, asked, Duration::from_millis(1500), answered);
        assert_eq!(bucket.own.unreported(answered), Some(UnreportedUsage { tokens: 3, age: SECOND / 10 }));
        // One token was refilled since the report.
        assert_eq!(served(&bucket, answered), 20 - 15 - 3 + 1);
    }

    #[test]
    fn s09_a13_a_caller_who_had_too_much_elsewhere_waits_for_it_within_bounds() {
        let (bucket, start) = taken(1);
        bucket.own.apply_total(1, start, SECOND * 3, start);
        assert_eq!(refused(bucket.charge_at(start)), Duration::from_millis(1100));
        bucket.own.apply_total(0, start, SECOND * 3600, start);
        assert_eq!(refused(bucket.charge_at(start)), Duration::from_millis(2100), "a burst, and one");
        assert_eq!(served(&bucket, start + SECOND * 4), 20);
    }

    #[test]
    fn s09_a13_nothing_is_given_that_was_not_there() {
        let (bucket, start) = taken(15);
        bucket.own.apply_total(15, start, Duration::ZERO, start);
        assert_eq!(served(&bucket, start), 5, "whatever others say of it");
        let whole = start + SECOND * 2;
        assert_eq!(bucket.own.unreported(whole).map(|untold| untold.tokens), Some(5));
        bucket.own.apply_total(5, start, Duration::ZERO, whole);
        assert_eq!(bucket.own.unreported(whole), None, "nothing to tell, nothing to hear");
        assert_eq!(served(&bucket, whole + SECOND), 20);
    }

    /// Simulates requests distributed round-robin over instances that exchange their usage every quarter of a second,
    /// each at its own offset. Returns the number of requests served in a minute.
    fn served_in_a_minute(instances: &[CallerBucket], per_second: u32) -> usize {
        let start = instances.iter().map(|bucket| bucket.own.level.lock().expect("unpoisoned").at).max();
        let start = start.expect("an instance");
        // Time when all usage is refilled, in seconds from the start. Nothing has been reported yet.
        let mut whole = f64::NEG_INFINITY;
        let mut exchange = |bucket: &CallerBucket, now: Instant| {
            let Some(UnreportedUsage { tokens, age }) = bucket.own.unreported(now) else { return };
            let RateLimit { per_second, burst } = bucket.own.limit;
            let (clock, cost) = ((now - start).as_secs_f64(), tokens as f64 / f64::from(per_second));
            if tokens > 0 {
                let most = clock + 2.0 * f64::from(burst) / f64::from(per_second);
                whole = (whole.max(clock - age.as_secs_f64()) + cost).min(most);
            }
            bucket.own.apply_total(tokens, now, Duration::from_secs_f64((whole - clock).max(0.0)), now);
        };
        let mut next: Vec<Instant> = (1..=instances.len() as u32).map(|number| start + SECOND / 16 * number).collect();
        let mut served = 0;
        for request in 0..60 * per_second {
            let now = start + SECOND * request / per_second;
            for (bucket, next) in instances.iter().zip(&mut next) {
                while *next <= now {
                    exchange(bucket, *next);
                    *next += SECOND / 4;
                }
            }
            served += usize::from(instances[request as usize % instances.len()].charge_at(now).is_ok());
        }
        served
    }

    #[test]
    fn s09_a13_a_flood_over_several_instances_gets_its_rate_and_a_burst_of_each() {
        let instances = [bucket(10, 20, None), bucket(10, 20, None), bucket(10, 20, None)];
        let served = served_in_a_minute(&instances, 300);
        assert!((550..=60 * 10 + 3 * 20).contains(&served), "{served}");
    }

    #[test]
    fn s09_a13_whoever_keeps_to_its_rate_is_not_refused_however_small_the_burst() {
        let instances = [bucket(500, 3, None), bucket(500, 3, None)];
        assert_eq!(served_in_a_minute(&instances, 400), 60 * 400);
        assert_eq!(served_in_a_minute(&instances[..1], 400), 60 * 400);
    }
}
