//! Request history of the last ten minutes in samples of five seconds, to see changes as they happen.
//!
//! Used on the path of every request: lock-free except for the first update of a sample.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

/// Number of samples.
pub(crate) const SAMPLE_COUNT: usize = 120;
/// Length of a sample in seconds.
pub(crate) const SAMPLE_SECONDS: u64 = 5;

/// Ring of the latest samples.
#[derive(Debug)]
pub(crate) struct History {
    /// Start time by both clocks. Timestamps are derived from the monotonic one.
    began: Instant,
    began_at: SystemTime,
    ring: Box<[Sample]>,
    /// Held while a sample is reset for reuse.
    reset_lock: Mutex<()>,
}

/// Five seconds.
#[derive(Debug)]
struct Sample {
    /// Sequence number of the sample in this slot.
    number: AtomicU64,
    requests: AtomicU32,
    errors: AtomicU32,
    calls: AtomicU32,
    call_errors: AtomicU32,
    durations: [AtomicU32; BUCKET_COUNT],
}

/// Buckets per power of two; limits the error to one eighth.
const BUCKETS_PER_DOUBLING: u32 = 4;
/// Durations below 2^10 ns, about a microsecond, go to the first bucket.
const MIN_EXPONENT: u32 = 10;
/// Durations of 2^36 ns, about a minute, and more go to the last buckets.
const MAX_EXPONENT: u32 = 36;
const BUCKET_COUNT: usize = ((MAX_EXPONENT - MIN_EXPONENT + 1) * BUCKETS_PER_DOUBLING) as usize;

impl History {
    pub(crate) fn new(began: Instant, began_at: SystemTime) -> History {
        History {
            began,
            began_at,
            ring: (0..SAMPLE_COUNT).map(|_| Sample::unused()).collect(),
            reset_lock: Mutex::default(),
        }
    }

    /// Records a finished request.
    pub(crate) fn record_request(&self, ended: Instant, took: Duration, failed: bool) {
        let Some(sample) = self.sample_at(ended) else { return };
        sample.requests.fetch_add(1, Ordering::Relaxed);
        sample.durations[bucket_index(took)].fetch_add(1, Ordering::Relaxed);
        if failed {
            sample.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records a finished tool call, independent of the request's reply.
    pub(crate) fn record_call(&self, ended: Instant, failed: bool) {
        let Some(sample) = self.sample_at(ended) else { return };
        sample.calls.fetch_add(1, Ordering::Relaxed);
        if failed {
            sample.call_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The last `count` samples, oldest first; the last one is incomplete. Includes empty samples, also from before the
    /// start.
    pub(crate) fn latest(&self, now: Instant, count: usize) -> Value {
        let last = self.sample_number(now);
        let first = last + 1 - count.min(SAMPLE_COUNT) as u64;
        let samples: Vec<Value> = (first..=last).map(|number| self.sample_json(number)).collect();
        json!({ "seconds": SAMPLE_SECONDS, "samples": samples })
    }

    /// Sequence number of a sample; starts at one full ring, so that samples before the start have non-negative
    /// numbers.
    fn sample_number(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.began).as_secs() / SAMPLE_SECONDS + SAMPLE_COUNT as u64
    }

    /// The sample for this time; `None` if its slot was reused for a later one.
    fn sample_at(&self, moment: Instant) -> Option<&Sample> {
        let number = self.sample_number(moment);
        let sample = &self.ring[number as usize % SAMPLE_COUNT];
        if sample.number.load(Ordering::Acquire) != number {
            self.reset_sample(sample, number);
        }
        (sample.number.load(Ordering::Acquire) == number).then_some(sample)
    }

    #[cold]
    fn reset_sample(&self, sample: &Sample, number: u64) {
        let _turning = self.reset_lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if sample.number.load(Ordering::Acquire) < number {
            let counts = [&sample.requests, &sample.errors, &sample.calls, &sample.call_errors];
            for count in counts.into_iter().chain(&sample.durations) {
                count.store(0, Ordering::Relaxed);
            }
            sample.number.store(number, Ordering::Release);
        }
    }

    fn sample_json(&self, number: u64) -> Value {
        let (before, after) = (SAMPLE_COUNT as u64 * SAMPLE_SECONDS, number * SAMPLE_SECONDS);
        let whole = Duration::from_secs;
        let at = (self.began_at + whole(after)).checked_sub(whole(before)).unwrap_or(SystemTime::UNIX_EPOCH);
        let sample = &self.ring[number as usize % SAMPLE_COUNT];
        let is_there = sample.number.load(Ordering::Acquire) == number;
        let count = |count: &AtomicU32| if is_there { count.load(Ordering::Relaxed) } else { 0 };
        let durations: Vec<u32> = sample.durations.iter().map(count).collect();
        json!({
            "at": humantime::format_rfc3339_seconds(at).to_string(),
            "requests": count(&sample.requests),
            "errors": count(&sample.errors),
            "calls": count(&sample.calls),
            "call_errors": count(&sample.call_errors),
            "p50_ms": quantile(&durations, 0.50),
            "p95_ms": quantile(&durations, 0.95),
        })
    }
}

impl Sample {
    fn unused() -> Sample {
        Sample {
            number: AtomicU64::new(0),
            requests: AtomicU32::new(0),
            errors: AtomicU32::new(0),
            calls: AtomicU32::new(0),
            call_errors: AtomicU32::new(0),
            durations: [const { AtomicU32::new(0) }; BUCKET_COUNT],
        }
    }
}

fn bucket_index(took: Duration) -> usize {
    let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1 << MIN_EXPONENT);
    let doubling = ns.ilog2();
    let part = (ns >> (doubling - BUCKETS_PER_DOUBLING.ilog2())) as u32 & (BUCKETS_PER_DOUBLING - 1);
    (((doubling - MIN_EXPONENT) * BUCKETS_PER_DOUBLING + part) as usize).min(BUCKET_COUNT - 1)
}

/// The midpoint of a bucket in milliseconds.
fn bucket_midpoint_ms(bucket: usize) -> f64 {
    let (doubling, part) = (bucket as u32 / BUCKETS_PER_DOUBLING + MIN_EXPONENT, bucket as u32 % BUCKETS_PER_DOUBLING);
    let ns = (1_u64 << doubling) as f64 * (1.0 + (f64::from(part) + 0.5) / f64::from(BUCKETS_PER_DOUBLING));
    // Round to a tenth of a microsecond: more digits would be false precision, fewer would be coarser than the shortest
    // buckets.
    (ns / 100.0).round() / 1e4
}

/// The quantile of the durations; `None` if there are none.
fn quantile(durations: &[u32], share: f64) -> Option<f64> {
    let all: u64 = durations.iter().map(|count| u64::from(*count)).sum();
    let wanted = ((all as f64 * share).ceil() as u64).max(1);
    let mut below = 0;
    let found = durations.iter().position(|count| {
        below += u64::from(*count);
        below >= wanted
    });
    found.map(bucket_midpoint_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: SystemTime = SystemTime::UNIX_EPOCH;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn of(told: &Value, name: &str) -> Vec<u64> {
        told["samples"].as_array().unwrap().iter().map(|sample| sample[name].as_u64().unwrap()).collect()
    }

    #[test]
    fn what_happened_is_told_five_seconds_at_a_time() {
        let began = Instant::now();
        let history = History::new(began, AT + Duration::from_secs(1_000_000));
        for (at, failed) in [(0, false), (4999, true), (5000, false), (15_100, false), (15_200, false)] {
            history.record_request(began + ms(at), ms(2), failed);
        }
        history.record_call(began + ms(5001), false);
        history.record_call(began + ms(5002), true);
        let told = history.latest(began + ms(17_000), 5);
        assert_eq!(told["seconds"], 5);
        assert_eq!(of(&told, "requests"), [0, 2, 1, 0, 2], "and nothing from before the beginning");
        assert_eq!(of(&told, "errors"), [0, 1, 0, 0, 0]);
        assert_eq!((of(&told, "calls"), of(&told, "call_errors")), (vec![0, 0, 2, 0, 0], vec![0, 0, 1, 0, 0]));
        assert_eq!(told["samples"][1]["at"], "1970-01-12T13:46:40Z");
        assert_eq!(told["samples"][2]["at"], "1970-01-12T13:46:45Z");
        assert_eq!(told["samples"][3]["p50_ms"], Value::Null);
        assert!(told["samples"][4]["p50_ms"].is_f64());
        assert_eq!(of(&history.latest(began + ms(17_000), 1), "requests"), [2], "the newest");
        assert_eq!(history.latest(began + ms(17_000), 0)["samples"], json!([]));
    }

    #[test]
    fn ten_minutes_are_kept_and_no_more() {
        let began = Instant::now();
        let history = History::new(began, AT);
        let seconds = |seconds| began + Duration::from_secs(seconds);
        history.record_request(seconds(1), ms(1), false);
        assert_eq!(of(&history.latest(seconds(599), SAMPLE_COUNT), "requests")[0], 1);
        assert!(of(&history.latest(seconds(600), SAMPLE_COUNT), "requests").iter().all(|count| *count == 0));
        history.record_request(seconds(601), ms(1), true);
        history.record_request(seconds(2), ms(1), false);
        let told = history.latest(seconds(601), usize::MAX);
        assert_eq!(of(&told, "requests").len(), SAMPLE_COUNT);
        assert_eq!(of(&told, "requests").last(), Some(&1), "what came too late for its sample is in no other");
        assert_eq!(of(&told, "errors").last(), Some(&1));
        assert_eq!(
            of(&history.latest(seconds(1_000_000), SAMPLE_COUNT), "requests"),
            [0; SAMPLE_COUNT],
            "a long silence"
        );
    }

    #[test]
    fn half_and_nineteen_of_twenty_requests_stay_below_what_is_told() {
        let began = Instant::now();
        let history = History::new(began, AT);
        for number in 1..=100 {
            history.record_request(began, ms(number), false);
        }
        let told = history.latest(began, 1);
        for (name, right) in [("p50_ms", 50.0), ("p95_ms", 95.0)] {
            let said = told["samples"][0][name].as_f64().unwrap();
            assert!((said / right - 1.0).abs() <= 0.125, "{name} is {said}");
        }
    }

    #[test]
    fn every_duration_has_a_bucket_whose_middle_is_near() {
        for ns in
            (10..36).flat_map(|doubling| [1, 5, 7].map(|part| (1_u64 << doubling) / 4 * part)).filter(|ns| *ns > 1500)
        {
            let said = bucket_midpoint_ms(bucket_index(Duration::from_nanos(ns))) * 1e6;
            assert!((said / ns as f64 - 1.0).abs() < 0.15, "{ns} ns are told as {said}");
        }
        assert_eq!((bucket_index(Duration::ZERO), bucket_index(Duration::MAX)), (0, BUCKET_COUNT - 1));
    }

    #[test]
    fn nothing_is_lost_where_many_count_at_once() {
        let began = Instant::now();
        let history = History::new(began, AT);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| history.record_request(began + ms(5001), ms(1), false)));
            }
        });
        assert_eq!(of(&history.latest(began + ms(5001), 1), "requests"), [40_000]);
    }
}
