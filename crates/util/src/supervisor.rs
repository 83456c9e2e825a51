//! Supervisor for long-running tasks: restarts a task that panics.
//!
//! Otherwise a panicked task would disappear silently and the program would run without it: settings would not be
//! reloaded, tasks would not be processed. A task that returns is not restarted.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::lock::lock;

/// Maximum backoff before a restart. A task that ran at least this long starts with the initial backoff again.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
const RESTART_BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), MAX_BACKOFF);
/// How long health reports a failure.
const HEALTH_REPORT_WINDOW: Duration = Duration::from_secs(5 * 60);

/// Restarts in this process. Each task exists once, so this is global.
#[derive(Default)]
struct Restarts {
    counts: Family<[(&'static str, &'static str); 1], Counter>,
    last: Mutex<BTreeMap<&'static str, Instant>>,
}

static RESTARTS: LazyLock<Restarts> = LazyLock::new(Restarts::default);

/// Name of a task in the log, in metrics and in health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskName(pub &'static str);

/// Runs a task while the program runs. The first future is created immediately, so that it may register for signals;
/// after a panic, `make` creates a new one. State that must survive a panic belongs to `make`.
pub fn supervise<Work: Future<Output = ()> + Send>(
    name: TaskName,
    make: impl FnMut() -> Work + Send,
) -> impl Future<Output = ()> + Send {
    supervise_until(CancellationToken::new(), name, make)
}

/// The same for a task that shutdown waits for: after `stop`, a panicked task is not restarted, and the backoff ends.
pub fn supervise_until<Work: Future<Output = ()> + Send>(
    stop: CancellationToken,
    name: TaskName,
    mut make: impl FnMut() -> Work + Send,
) -> impl Future<Output = ()> + Send {
    // Created with 0, so that monitoring sees the increase.
    RESTARTS.counts.get_or_create(&[("task", name.0)]).inc_by(0);
    // The panic hook has already logged message and location.
    let mut made = catch_unwind(AssertUnwindSafe(&mut make));
    async move {
        let mut backoff = RESTART_BACKOFF;
        loop {
            let begun = Instant::now();
            if let Ok(work) = made
                && AssertUnwindSafe(work).catch_unwind().await.is_ok()
            {
                return;
            }
            if begun.elapsed() >= MAX_BACKOFF {
                backoff.reset();
            }
            record_restart(name);
            let delay = backoff.next_delay();
            tracing::error!(task = %name, delay_ms = delay.as_millis() as u64, "background task panicked; restarting");
            tokio::select! {
                () = sleep(delay) => {}
                () = stop.cancelled() => return,
            }
            made = catch_unwind(AssertUnwindSafe(&mut make));
        }
    }
}

/// Records a failure that is followed by a restart, also for threads with their own restart logic.
pub fn record_restart(name: TaskName) {
    RESTARTS.counts.get_or_create(&[("task", name.0)]).inc();
    lock(&RESTARTS.last).insert(name.0, Instant::now());
}

/// Health message for recent failures. The task may be running again, or waiting for its backoff.
pub fn impairment() -> Option<String> {
    let last = lock(&RESTARTS.last);
    let recent = last.iter().filter(|(_, at)| at.elapsed() < HEALTH_REPORT_WINDOW).map(|(name, at)| {
        let seconds = at.elapsed().as_secs();
        format!("`{name}` failed {seconds} s ago and was restarted")
    });
    let recent: Vec<String> = recent.collect();
    (!recent.is_empty()).then(|| format!("{}; see the log for the location", recent.join(", ")))
}

/// Registers the restart counter.
pub fn register(registry: &mut Registry) {
    let help = "Background tasks restarted after a failure";
    registry.register("background_restarts", help, RESTARTS.counts.clone());
}

impl fmt::Display for TaskName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A task that panics `times` times and then returns, and counts its runs.
    fn panicking(times: u32, runs: &Arc<AtomicU32>) -> impl FnMut() -> futures_util::future::BoxFuture<'static, ()> {
        let runs = runs.clone();
        move || {
            let runs = runs.clone();
            Box::pin(async move {
                tokio::task::yield_now().await;
                assert!(runs.fetch_add(1, Ordering::Relaxed) >= times, "on purpose");
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_panics_is_begun_anew_after_a_pause_that_grows_and_has_a_bound() {
        let (runs, begun) = (Arc::new(AtomicU32::new(0)), Instant::now());
        supervise(TaskName("growing"), panicking(12, &runs)).await;
        assert_eq!(runs.load(Ordering::Relaxed), 13, "the last one ended by itself, and stays ended");
        // 0.1 + 0.2 + ... + 51.2 seconds, and then two of a minute each.
        let waited = begun.elapsed().as_millis();
        assert!((102_300 + 120_000..102_300 + 121_000).contains(&waited), "{waited}");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_went_well_for_a_while_is_not_held_to_what_was_before() {
        let pauses = Arc::new(Mutex::new(Vec::new()));
        let (heard, mut runs, mut last) = (pauses.clone(), 0, Instant::now());
        let make = move || {
            heard.lock().expect("held by nobody else").push(last.elapsed());
            (runs, last) = (runs + 1, Instant::now() + MAX_BACKOFF);
            let last_run = runs == 4;
            async move {
                sleep(MAX_BACKOFF).await;
                assert!(last_run, "on purpose");
            }
        };
        supervise(TaskName("steady"), make).await;
        let pauses = pauses.lock().expect("held by nobody else");
        assert!(pauses.iter().skip(1).all(|pause| *pause < 2 * RESTART_BACKOFF.peek()), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_panics_while_it_is_made_is_begun_anew_as_well() {
        let mut makes = 0;
        // The first future is created before it is polled.
        let work = supervise(TaskName("making"), || {
            makes += 1;
            assert!(makes > 3, "on purpose");
            std::future::ready(())
        });
        work.await;
        assert_eq!(makes, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_paused_for_or_begun_anew_when_it_is_time_to_stop() {
        let (stop, runs, begun) = (CancellationToken::new(), Arc::new(AtomicU32::new(0)), Instant::now());
        let stopping = stop.clone();
        // During the backoff of 0.8 seconds, after 0.1, 0.2 and 0.4.
        let work = supervise_until(stop, TaskName("stopped"), panicking(u32::MAX, &runs));
        let stops = async move {
            sleep(Duration::from_millis(900)).await;
            stopping.cancel();
        };
        tokio::join!(work, stops);
        assert_eq!(runs.load(Ordering::Relaxed), 4);
        assert!(begun.elapsed() < Duration::from_millis(1000), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_begun_anew_is_counted_and_health_tells_of_it_for_a_while() {
        let mut registry = Registry::default();
        register(&mut registry);
        assert_eq!(impairment(), None);
        supervise(TaskName("told"), panicking(2, &Arc::default())).await;
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("encoded");
        assert!(text.contains("background_restarts_total{task=\"told\"} 2"), "{text}");
        assert!(impairment().is_some_and(|why| why.contains("`told` failed")), "{:?}", impairment());
        tokio::time::advance(HEALTH_REPORT_WINDOW).await;
        assert_eq!(impairment(), None);
    }
}
