//! How many requests a caller may send, and all of them together: a token bucket each, bounded in number (S-09).
//!
//! A request is charged to its caller first. One that is refused there costs the others nothing, so a flood drains its
//! own bucket and not the common one. How deep a caller may reach into the common bucket depends on how much it has left
//! of its own: whoever sends as fast as it may finds it closed while it still serves those who send now and then. A
//! caller that the common bucket refuses is not given its own token back, or a flood would look modest again.
//!
//! Instances may share what a caller may send (`spent.rs`). What others have spent is taken away here when it is known, a
//! moment later, and nobody waits for that. The common bucket protects a process, so each has its own.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::spent::Spent;
use crate::error::Error;

/// So many requests a second over time, and so many at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// Less than none where others have spent what was spent here as well.
    tokens: f64,
    at: Instant,
    /// What was taken and not yet settled with others, and since when.
    untold: u64,
    since: Instant,
}

/// What is to be told of a bucket: so many were taken, the first of them so long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Untold {
    pub(super) tokens: u64,
    pub(super) age: Duration,
}

/// The buckets of all callers of a server.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    global: Option<Arc<Tokens>>,
    /// Where listeners have other limits, or the operator has changed one, a caller has a bucket for each.
    callers: Mutex<HashMap<(Whose, RateLimit), Arc<Bucket>>>,
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
    /// Those behind one address who have shown no token where one is asked for.
    Guesser(IpAddr),
}

/// Past this, buckets that have filled up again are forgotten: they say nothing a new one would not.
const MAX_BUCKETS: usize = 10_000;

/// The part of the common bucket that a caller who has used up its own never gets.
const RESERVED: f64 = 0.5;

impl Tokens {
    fn new(limit: RateLimit) -> Tokens {
        let now = Instant::now();
        let level = Level { tokens: f64::from(limit.burst), at: now, untold: 0, since: now };
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
        if level.untold == 0 {
            level.since = now;
        }
        level.untold += 1;
        Ok(level.tokens)
    }

    /// What others have to hear of, or none if that is nothing and there is nothing to hear from them.
    fn untold(&self, now: Instant) -> Option<Untold> {
        let level = self.refilled(now);
        match level.untold {
            0 => (level.tokens < f64::from(self.limit.burst)).then_some(Untold { tokens: 0, age: Duration::ZERO }),
            tokens => Some(Untold { tokens, age: now.saturating_duration_since(level.since) }),
        }
    }

    /// Takes away what others have spent. So many were told at `asked`, and all that anybody told will have come back
    /// after `whole_in`, reckoned from then.
    ///
    /// It never gives anything: nobody knows better what was taken here.
    fn settle(&self, told: u64, asked: Instant, whole_in: Duration, now: Instant) {
        let mut level = self.refilled(now);
        level.untold = level.untold.saturating_sub(told);
        // Those that are left came after.
        level.since = asked;
        let most = f64::from(self.limit.burst);
        let missing = whole_in.saturating_sub(now.saturating_duration_since(asked)).as_secs_f64();
        let left = most - missing * f64::from(self.limit.per_second) - level.untold as f64;
        level.tokens = level.tokens.min(left.max(-most));
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

    /// So many that were taken before `asked` are not told again.
    pub(super) fn told(&self, told: u64, asked: Instant) {
        let mut level = self.own.refilled(Instant::now());
        level.untold = level.untold.saturating_sub(told);
        level.since = asked;
    }

    pub(super) fn settle(&self, told: u64, asked: Instant, whole_in: Duration) {
        self.own.settle(told, asked, whole_in, Instant::now());
    }
}

impl Whose {
    /// What it is called among instances; none for those of this machine, who are others on each.
    fn among_instances(&self) -> Option<String> {
        match self {
            Whose::Holder(name) => Some(format!("holder {name}")),
            Whose::Address(address) if address.to_canonical().is_loopback() => None,
            Whose::Address(address) => Some(format!("address {address}")),
            // Behind a balancer all have its address: guesses at one instance must not shut out strangers at all of them.
            Whose::Guesser(_) => None,
        }
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
        if self.of(Whose::Guesser(address), limit).own.refilled(Instant::now()).tokens < 1.0 {
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
        let whose = (whose, limit);
        if let Some(bucket) = buckets.get(&whose) {
            return bucket.clone();
        }
        if buckets.len() >= MAX_BUCKETS {
            let now = Instant::now();
            buckets.retain(|_, bucket| !bucket.is_full(now));
            // All are in use: one begins anew rather than that there be more of them without end.
            if buckets.len() >= MAX_BUCKETS
                && let Some(one) = buckets.keys().next().cloned()
            {
                buckets.remove(&one);
            }
        }
        let bucket = Arc::new(Bucket::new(limit, self.global.clone()));
        buckets.insert(whose, bucket.clone());
        bucket
    }

    /// What callers have spent that others have not heard of, and who waits to hear of others. The number tells the
    /// buckets of one HTTP server from those of the next.
    pub(super) fn spent(&self, number: usize, now: Instant) -> Vec<Spent> {
        let all: Vec<_> = {
            let buckets = self.callers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            buckets.iter().map(|((whose, _), bucket)| (whose.clone(), bucket.clone())).collect()
        };
        let spent = all.into_iter().filter_map(|(whose, bucket)| {
            let untold = bucket.own.untold(now)?;
            let RateLimit { per_second, burst } = bucket.own.limit;
            let caller = format!("{number} {per_second}/{burst} {}", whose.among_instances()?);
            Some(Spent::new(caller, bucket.own.limit, untold, now, bucket))
        });
        spent.collect()
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

    /// A bucket of 20 that fills in 2 seconds, from which so many were taken when it was made; and when that was.
    fn taken(so_many: usize) -> (Bucket, Instant) {
        let bucket = bucket(10, 20, None);
        let start = bucket.own.level.lock().expect("unpoisoned").at;
        assert!((0..so_many).all(|_| bucket.charge_at(start).is_ok()));
        (bucket, start)
    }

    /// How many are served at a moment.
    fn served(bucket: &Bucket, now: Instant) -> usize {
        (0..100).take_while(|_| bucket.charge_at(now).is_ok()).count()
    }

    #[test]
    fn s09_a13_what_others_have_spent_is_taken_away() {
        let (bucket, start) = taken(5);
        assert_eq!(bucket.own.untold(start), Some(Untold { tokens: 5, age: Duration::ZERO }));
        // Others have had ten.
        bucket.own.settle(5, start, Duration::from_millis(1500), start);
        assert_eq!(bucket.own.untold(start), Some(Untold { tokens: 0, age: Duration::ZERO }));
        assert_eq!(served(&bucket, start), 5);
    }

    #[test]
    fn s09_a13_what_is_spent_before_the_answer_comes_counts_and_is_told_next() {
        let (bucket, asked) = taken(5);
        let answered = asked + SECOND / 10;
        assert!((0..3).all(|_| bucket.charge_at(answered).is_ok()));
        bucket.own.settle(5, asked, Duration::from_millis(1500), answered);
        assert_eq!(bucket.own.untold(answered), Some(Untold { tokens: 3, age: SECOND / 10 }));
        // One has come back since it was asked.
        assert_eq!(served(&bucket, answered), 20 - 15 - 3 + 1);
    }

    #[test]
    fn s09_a13_a_caller_who_had_too_much_elsewhere_waits_for_it_within_bounds() {
        let (bucket, start) = taken(1);
        bucket.own.settle(1, start, SECOND * 3, start);
        assert_eq!(refused(bucket.charge_at(start)), Duration::from_millis(1100));
        bucket.own.settle(0, start, SECOND * 3600, start);
        assert_eq!(refused(bucket.charge_at(start)), Duration::from_millis(2100), "a burst, and one");
        assert_eq!(served(&bucket, start + SECOND * 4), 20);
    }

    #[test]
    fn s09_a13_nothing_is_given_that_was_not_there() {
        let (bucket, start) = taken(15);
        bucket.own.settle(15, start, Duration::ZERO, start);
        assert_eq!(served(&bucket, start), 5, "whatever others say of it");
        let whole = start + SECOND * 2;
        assert_eq!(bucket.own.untold(whole).map(|untold| untold.tokens), Some(5));
        bucket.own.settle(5, start, Duration::ZERO, whole);
        assert_eq!(bucket.own.untold(whole), None, "nothing to tell, nothing to hear");
        assert_eq!(served(&bucket, whole + SECOND), 20);
    }

    /// So many requests a second come to instances in turn, which exchange what was spent every quarter of a second, each
    /// in its own moment. How many are served in a minute.
    fn served_in_a_minute(instances: &[Bucket], per_second: u32) -> usize {
        let start = instances.iter().map(|bucket| bucket.own.level.lock().expect("unpoisoned").at).max();
        let start = start.expect("an instance");
        // When all will have come back, in seconds from the start. Nobody has told anything yet.
        let mut whole = f64::NEG_INFINITY;
        let mut exchange = |bucket: &Bucket, now: Instant| {
            let Some(Untold { tokens, age }) = bucket.own.untold(now) else { return };
            let RateLimit { per_second, burst } = bucket.own.limit;
            let (clock, cost) = ((now - start).as_secs_f64(), tokens as f64 / f64::from(per_second));
            if tokens > 0 {
                let most = clock + 2.0 * f64::from(burst) / f64::from(per_second);
                whole = (whole.max(clock - age.as_secs_f64()) + cost).min(most);
            }
            bucket.own.settle(tokens, now, Duration::from_secs_f64((whole - clock).max(0.0)), now);
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
