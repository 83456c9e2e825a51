//! Lock-free histogram of durations, used on the path of every call.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct DurationHistogram {
    count: AtomicU64,
    total_ns: AtomicU64,
    max_ns: AtomicU64,
    buckets: [AtomicU64; BUCKET_BOUNDS.len()],
}

/// Upper bounds of the buckets, in seconds.
const BUCKET_BOUNDS: [f64; 11] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0];

impl DurationHistogram {
    pub(crate) fn observe(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(ns, Ordering::Relaxed);
        self.max_ns.fetch_max(ns, Ordering::Relaxed);
        let seconds = took.as_secs_f64();
        if let Some(index) = BUCKET_BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn total_ms(&self) -> f64 {
        self.total_ns.load(Ordering::Relaxed) as f64 / 1e6
    }

    pub(crate) fn max_ms(&self) -> f64 {
        self.max_ns.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// Writes the samples of a histogram with this name; `labels` go between the braces.
    pub(crate) fn encode(&self, text: &mut String, name: &str, labels: &str) {
        // Read the buckets before the count, so that a concurrent update cannot make their sum exceed it.
        let mut below = 0;
        let buckets: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let (sum, count) = (self.total_ns.load(Ordering::Relaxed) as f64 / 1e9, self.count());
        let count = count.max(buckets.iter().sum());
        // Writing to a String cannot fail.
        for (bound, bucket) in BUCKET_BOUNDS.iter().zip(buckets) {
            below += bucket;
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
        }
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
    }
}
