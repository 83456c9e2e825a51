//! Work that goes on for as long as the program does: what panics is begun anew.
//!
//! A task that panicked would otherwise be gone without a word, and the program would go on without it: settings that
//! nobody follows, tasks that nobody takes up. What ends by itself has ended.

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

use crate::locked::locked;

/// How long is waited before the first new beginning; twice as long before each one that follows.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// How long at most. Who has worked for as long is not held to what was before.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// So long after a failure, health tells of it.
const TOLD_FOR: Duration = Duration::from_secs(5 * 60);

/// What was begun anew in this process: there is one of each task, so there is one such list.
#[derive(Default)]
struct Restarts {
    counts: Family<[(&'static str, &'static str); 1], Counter>,
    last: Mutex<BTreeMap<&'static str, Instant>>,
}

static RESTARTS: LazyLock<Restarts> = LazyLock::new(Restarts::default);

/// What a part of the work is called in the log, in metrics and in health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) &'static str);

/// Does something for as long as the program runs. It is made at once, so that it may listen for signals from this call
/// on, and made anew whenever it panics: what must outlive a panic is for `make` to keep.
pub(crate) fn supervised<Work: Future<Output = ()> + Send>(
    name: Name,
    make: impl FnMut() -> Work + Send,
) -> impl Future<Output = ()> + Send {
    supervised_until(CancellationToken::new(), name, make)
}

/// The same for work that somebody waits for when the program ends: from `stop` on, what panics is not begun anew, and
/// nothing is paused for.
pub(crate) fn supervised_until<Work: Future<Output = ()> + Send>(
    stop: CancellationToken,
    name: Name,
    mut make: impl FnMut() -> Work + Send,
) -> impl Future<Output = ()> + Send {
    // There from the beginning, so that whoever watches it sees it rise.
    RESTARTS.counts.get_or_create(&[("task", name.0)]).inc_by(0);
    // What it said and where stands in the log already, by the hook that all panics pass.
    let mut made = catch_unwind(AssertUnwindSafe(&mut make));
    async move {
        let mut pause = FIRST_PAUSE;
        loop {
            let begun = Instant::now();
            if let Ok(work) = made
                && AssertUnwindSafe(work).catch_unwind().await.is_ok()
            {
                return;
            }
            if begun.elapsed() >= LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            note(name);
            let milliseconds = pause.as_millis() as u64;
            tracing::error!(task = %name, milliseconds, "background work failed; it is begun anew after a pause");
            tokio::select! {
                () = sleep(pause) => {}
                () = stop.cancelled() => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            made = catch_unwind(AssertUnwindSafe(&mut make));
        }
    }
}

/// Counts a failure that is followed by a new beginning, also one that a thread manages by itself.
pub(crate) fn note(name: Name) {
    RESTARTS.counts.get_or_create(&[("task", name.0)]).inc();
    locked(&RESTARTS.last).insert(name.0, Instant::now());
}

/// What health says of work that failed not long ago. It may be begun already, or wait for the end of its pause.
pub(crate) fn impaired() -> Option<String> {
    let last = locked(&RESTARTS.last);
    let recent = last.iter().filter(|(_, at)| at.elapsed() < TOLD_FOR).map(|(name, at)| {
        let seconds = at.elapsed().as_secs();
        format!("`{name}` failed {seconds} seconds ago, and is begun anew")
    });
    let recent: Vec<String> = recent.collect();
    (!recent.is_empty()).then(|| format!("{}; the log tells where it failed", recent.join(", ")))
}

/// Adds how often work was begun anew to a server's metrics.
pub(crate) fn register(registry: &mut Registry) {
    let help = "Background work that failed and was begun anew";
    registry.register("background_restarts", help, RESTARTS.counts.clone());
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Work that panics so often and then ends, and counts how often it was begun.
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
        supervised(Name("growing"), panicking(12, &runs)).await;
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
            (runs, last) = (runs + 1, Instant::now() + LONGEST_PAUSE);
            let last_run = runs == 4;
            async move {
                sleep(LONGEST_PAUSE).await;
                assert!(last_run, "on purpose");
            }
        };
        supervised(Name("steady"), make).await;
        let pauses = pauses.lock().expect("held by nobody else");
        assert!(pauses.iter().skip(1).all(|pause| *pause < 2 * FIRST_PAUSE), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_panics_while_it_is_made_is_begun_anew_as_well() {
        let mut makes = 0;
        // The first is made before anybody waits for it.
        let work = supervised(Name("making"), || {
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
        // In the pause of 0.8 seconds, after those of 0.1, 0.2 and 0.4.
        let work = supervised_until(stop, Name("stopped"), panicking(u32::MAX, &runs));
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
        assert_eq!(impaired(), None);
        supervised(Name("told"), panicking(2, &Arc::default())).await;
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("encoded");
        assert!(text.contains("background_restarts_total{task=\"told\"} 2"), "{text}");
        assert!(impaired().is_some_and(|why| why.contains("`told` failed")), "{:?}", impaired());
        tokio::time::advance(TOLD_FOR).await;
        assert_eq!(impaired(), None);
    }
}
