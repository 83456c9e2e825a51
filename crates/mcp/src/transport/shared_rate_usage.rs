//! Local usage of callers, for instances that share rate limits (S-09, A-13).
//!
//! The program implements the exchange. For each caller, the instances share one value: the time at which its bucket
//! will be full again (GCRA). This value has no start time, depends on a single clock, and expires without cleanup. An
//! instance reports its usage since the previous report asynchronously, so no request waits for the exchange.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::rate_limit::{CallerBucket, RateLimit, RateLimiter, UnreportedUsage};

/// Local usage of a caller, to be added to its usage on other instances.
///
/// The caller's bucket is full again at the later of `age` ago and the shared time, plus `cost`, but at most `most`
/// from now.
#[derive(Debug)]
pub struct RateUsage {
    /// Caller and limit; the same key on all instances.
    pub caller: String,
    /// Time to refill the local usage. Zero to request only the usage of other instances.
    pub cost: Duration,
    /// Time since the first usage.
    pub age: Duration,
    /// Upper bound: a caller owes at most one additional burst.
    pub max: Duration,
    tokens: u64,
    reported_at: Instant,
    bucket: Arc<CallerBucket>,
}

/// The buckets of a server's HTTP servers while these are alive. Usually there is one.
#[derive(Debug, Default)]
pub(crate) struct RateLimiters(Mutex<Vec<Weak<RateLimiter>>>);

impl RateUsage {
    pub(super) fn new(
        caller: String,
        limit: RateLimit,
        untold: UnreportedUsage,
        asked: Instant,
        bucket: Arc<CallerBucket>,
    ) -> RateUsage {
        let per_second = f64::from(limit.per_second.max(1));
        RateUsage {
            caller,
            cost: Duration::from_secs_f64(untold.tokens as f64 / per_second),
            age: untold.age,
            max: Duration::from_secs_f64(2.0 * f64::from(limit.burst) / per_second),
            tokens: untold.tokens,
            reported_at: asked,
            bucket,
        }
    }

    /// Marks the usage as reported. It is not reported again, even after a failure: a message with a lost
    /// acknowledgement may have arrived, and the caller must not be charged twice.
    pub fn mark_reported(&mut self) {
        self.bucket.mark_reported(std::mem::take(&mut self.tokens), self.reported_at);
    }

    /// Applies the shared result: the caller's bucket over all instances is full again after this time. Subtracts the
    /// usage of other instances from the local bucket.
    pub fn apply_total(self, whole_in: Duration) {
        self.bucket.apply_total(self.tokens, self.reported_at, whole_in);
    }
}

impl RateLimiters {
    /// Adds the buckets of an HTTP server. Their index in the list identifies them, the same in all instances of a
    /// program.
    pub(super) fn register(&self, buckets: &Arc<RateLimiter>) {
        let mut all = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let buckets = Arc::downgrade(buckets);
        match all.iter_mut().find(|other| other.strong_count() == 0) {
            Some(free) => *free = buckets,
            None => all.push(buckets),
        }
    }

    pub(crate) fn unreported_usage(&self) -> Vec<RateUsage> {
        let all = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        let now = Instant::now();
        let living = all.iter().enumerate().filter_map(|(number, buckets)| Some((number, buckets.upgrade()?)));
        living.flat_map(|(number, buckets)| buckets.unreported_usage(number, now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::transport::rate_limit::RateLimitKey;

    const LIMIT: RateLimit = RateLimit { per_second: 10, burst: 20 };

    fn server(ledger: &RateLimiters) -> Arc<RateLimiter> {
        let buckets = Arc::new(RateLimiter::new(None));
        ledger.register(&buckets);
        buckets
    }

    fn holder(name: &str) -> RateLimitKey {
        RateLimitKey::Token(name.into())
    }

    fn callers(ledger: &RateLimiters) -> Vec<String> {
        let mut callers: Vec<String> = ledger.unreported_usage().into_iter().map(|spent| spent.caller).collect();
        callers.sort_unstable();
        callers
    }

    #[test]
    fn s09_a13_who_has_spent_something_is_told_once() {
        let ledger = RateLimiters::default();
        let buckets = server(&ledger);
        let ann = buckets.bucket_for(holder("ann"), LIMIT);
        assert!(ledger.unreported_usage().is_empty(), "her allowance is whole");
        (0..5).for_each(|_| ann.charge().expect("a burst"));
        for _ in 0..2 {
            let spent = ledger.unreported_usage();
            assert_eq!(spent.len(), 1);
            assert_eq!(spent[0].caller, "0 10/20 holder ann");
            assert_eq!((spent[0].cost, spent[0].max), (Duration::from_millis(500), Duration::from_secs(4)));
        }
        let mut told = ledger.unreported_usage();
        told.iter_mut().for_each(RateUsage::mark_reported);
        assert_eq!(ledger.unreported_usage()[0].cost, Duration::ZERO, "nothing is told twice");
        told.into_iter().for_each(|spent| spent.apply_total(Duration::from_secs(2)));
        let spent = ledger.unreported_usage();
        assert_eq!(spent.len(), 1, "she waits to hear of others");
        assert_eq!((spent[0].cost, spent[0].age), (Duration::ZERO, Duration::ZERO));
        assert!(ann.charge().is_err(), "others have had all");
    }

    #[test]
    fn s09_a13_limits_and_servers_are_told_apart_and_callers_of_this_machine_are_nobody_elses() {
        let ledger = RateLimiters::default();
        let (one, other) = (server(&ledger), server(&ledger));
        let address = |text: &str| RateLimitKey::Address(text.parse::<IpAddr>().expect("an address"));
        let outside = ["203.0.113.7", "2001:db8::"].map(address);
        let here = ["127.0.0.1", "::1", "::ffff:127.0.0.1"].map(address);
        for whose in outside.into_iter().chain(here) {
            one.bucket_for(whose, LIMIT).charge().expect("a burst");
        }
        one.bucket_for(holder("ann"), RateLimit { per_second: 1, burst: 1 }).charge().expect("a burst");
        one.bucket_for(holder("ann"), LIMIT).charge().expect("another listener, another limit");
        other.bucket_for(holder("ann"), LIMIT).charge().expect("another server");
        let told = [
            "0 1/1 holder ann",
            "0 10/20 address 2001:db8::",
            "0 10/20 address 203.0.113.7",
            "0 10/20 holder ann",
            "1 10/20 holder ann",
        ];
        assert_eq!(callers(&ledger), told);
        drop(one);
        assert_eq!(callers(&ledger), ["1 10/20 holder ann"]);
        let third = server(&ledger);
        third.bucket_for(holder("ben"), LIMIT).charge().expect("a burst");
        assert_eq!(callers(&ledger), ["0 10/20 holder ben", "1 10/20 holder ann"]);
    }
}
