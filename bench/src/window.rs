//! Measurement window of a round: after the warm-up, bounded in time and in calls.

use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rustix::time::{ClockId, clock_gettime};

use crate::Effort;
use crate::process::{CpuUsage, Process, sleep};

/// Maximum number of counted calls per round, which bounds the memory for latencies.
const MAX_CALLS: usize = 2_000_000;

/// Results of a round.
#[derive(Debug)]
pub(crate) struct LoadResult {
    pub(crate) calls: u64,
    pub(crate) wall: Duration,
    /// Nanoseconds, sorted.
    pub(crate) latencies: Vec<u32>,
    pub(crate) server: CpuUsage,
    /// CPU time of the load generator's threads.
    pub(crate) client: Duration,
    pub(crate) client_threads: usize,
}

/// Counters of one thread of the load generator.
#[derive(Debug)]
pub(crate) struct Meter {
    from: Instant,
    until: Instant,
    max_calls: usize,
    latencies: Vec<u32>,
    /// When the first counted call was answered, and this thread's CPU time at that time.
    began: Option<(Instant, Duration)>,
    ended: Option<(Instant, Duration)>,
    /// Dropped when the window ends.
    open: Option<SyncSender<()>>,
}

/// A thread of the load generator: drives the server until the meter ends the window.
pub(crate) type Driver<'a> = Box<dyn FnOnce(&mut Meter) -> Result<()> + Send + 'a>;

/// Runs the drivers in parallel and samples the server's CPU time at both ends of the window.
pub(crate) fn measure(process: &Process, effort: Effort, drivers: Vec<Driver<'_>>) -> Result<LoadResult> {
    let from = Instant::now() + effort.warm_up;
    let until = from + effort.measure;
    let client_threads = drivers.len();
    let (open, closed) = mpsc::sync_channel(0);
    thread::scope(|scope| {
        let threads: Vec<_> = drivers
            .into_iter()
            .map(|drive| {
                let mut meter = Meter {
                    from,
                    until,
                    max_calls: MAX_CALLS / client_threads,
                    latencies: Vec::with_capacity(1 << 16),
                    began: None,
                    ended: None,
                    open: Some(open.clone()),
                };
                scope.spawn(move || drive(&mut meter).map(|()| meter))
            })
            .collect();
        drop(open);
        sleep(from.saturating_duration_since(Instant::now()));
        let before = process.usage()?;
        // Ends early when every driver has reached its maximum or has failed.
        let waited: Result<(), RecvTimeoutError> = closed.recv_timeout(until.saturating_duration_since(Instant::now()));
        debug_assert!(waited.is_err(), "nobody sends");
        let after = process.usage()?;
        let mut driven = LoadResult {
            calls: 0,
            wall: Duration::ZERO,
            latencies: Vec::new(),
            server: CpuUsage { user: after.user - before.user, system: after.system - before.system },
            client: Duration::ZERO,
            client_threads,
        };
        for thread in threads {
            driven.add(thread.join().map_err(|_| anyhow!("the load generator panicked"))??);
        }
        driven.latencies.sort_unstable();
        Ok(driven)
    })
}

impl Meter {
    /// Records an answered call; false once the window has ended and no further call should be made.
    pub(crate) fn record(&mut self, sent: Instant, answered: Instant) -> bool {
        if answered < self.from {
            return true;
        }
        if self.ended.is_some() {
            return false;
        }
        if answered >= self.until || self.latencies.len() >= self.max_calls {
            self.ended = Some((answered, thread_time()));
            self.open = None;
            return false;
        }
        if self.began.is_none() {
            self.began = Some((answered, thread_time()));
        }
        let nanoseconds = answered.saturating_duration_since(sent).as_nanos();
        self.latencies.push(u32::try_from(nanoseconds).unwrap_or(u32::MAX));
        true
    }
}

impl LoadResult {
    fn add(&mut self, meter: Meter) {
        // A server without a reply in the window has no beginning; its zero calls show it.
        if let (Some((began, busy_before)), Some((ended, busy_after))) = (meter.began, meter.ended) {
            self.calls += meter.latencies.len() as u64;
            self.wall = self.wall.max(ended - began);
            self.client += busy_after - busy_before;
            self.latencies.extend(meter.latencies);
        }
    }

    pub(crate) fn calls_per_second(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.calls as f64 / self.wall.as_secs_f64() }
    }

    pub(crate) fn latency(&self, quantile: f64) -> Duration {
        let at = (self.latencies.len() as f64 * quantile) as usize;
        let nanoseconds =
            self.latencies.get(at.min(self.latencies.len().saturating_sub(1))).copied().unwrap_or_default();
        Duration::from_nanos(nanoseconds.into())
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
