//! JWKS cache with background refresh. Keys are fetched on first use, before they expire, and immediately when a token
//! names an unknown key. A single task fetches them: concurrent requests share the result, and clients cannot trigger
//! frequent fetches.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::keys::KeySet;
use super::source::{Document, Fault, Fetched};
use crate::supervised::{Name, supervised};

pub(super) struct Keeper {
    shared: Arc<Shared>,
    task: OnceLock<AbortOnDropHandle<()>>,
}

/// The state of the cache.
#[derive(Debug, Clone)]
pub(super) struct Known {
    held: Option<Held>,
    /// Number of refresh requests that are finished.
    turns: u64,
    /// Refresh requests before this time do not fetch.
    next_wish: Instant,
}

#[derive(Debug, Clone)]
struct Held {
    keys: Arc<KeySet>,
    until: Instant,
}

struct Shared {
    fetch: Fetch,
    changed: Changed,
    known: watch::Sender<Known>,
    /// The value of `turns` that the latest request waits for.
    wish: AtomicU64,
    wished: Notify,
}

type Fetch = Box<dyn Fn() -> BoxFuture<'static, Result<Fetched, Fault>> + Send + Sync>;
type Changed = Box<dyn Fn(&KeySet) + Send + Sync>;

/// Minimum interval of fetches caused by unknown keys, and of retries while the issuer is unavailable.
const BETWEEN_WISHES: Duration = Duration::from_secs(30);
/// The same while there are no keys at all.
const WITHOUT_KEYS: Duration = Duration::from_secs(2);
/// Maximum age of keys that cannot be refreshed.
const LONGEST_USE: Duration = Duration::from_secs(24 * 60 * 60);

impl Keeper {
    /// `changed` is called with every fetched JWKS before it is published.
    pub(super) fn new(
        fetch: impl Fn() -> BoxFuture<'static, Result<Fetched, Fault>> + Send + Sync + 'static,
        changed: impl Fn(&KeySet) + Send + Sync + 'static,
    ) -> Keeper {
        let known = Known { held: None, turns: 0, next_wish: Instant::now() };
        let shared = Shared {
            fetch: Box::new(fetch),
            changed: Box::new(changed),
            known: watch::Sender::new(known),
            wish: AtomicU64::new(0),
            wished: Notify::new(),
        };
        Keeper { shared: Arc::new(shared), task: OnceLock::new() }
    }

    pub(super) fn known(&self) -> Known {
        self.shared.known.borrow().clone()
    }

    /// Requests a refresh and waits until it is finished, whether or not the keys have changed.
    pub(super) async fn others(&self, than: &Known) {
        self.task.get_or_init(|| {
            let shared = self.shared.clone();
            AbortOnDropHandle::new(tokio::spawn(supervised(Name("issuer_keys"), move || keep(shared.clone()))))
        });
        let mut news = self.shared.known.subscribe();
        self.shared.wish.fetch_max(than.turns + 1, Ordering::Relaxed);
        self.shared.wished.notify_one();
        // The sender lives as long as `self`.
        let _ = news.wait_for(|known| known.turns > than.turns).await;
    }
}

impl Known {
    /// The keys, unless they are too old.
    pub(super) fn keys(&self) -> Option<&Arc<KeySet>> {
        self.held.as_ref().filter(|held| Instant::now() < held.until).map(|held| &held.keys)
    }

    /// Whether a refresh request would fetch now.
    pub(super) fn may_wish(&self) -> bool {
        Instant::now() >= self.next_wish
    }
}

/// Fetches on schedule and on request.
async fn keep(shared: Arc<Shared>) {
    // After a restart of this task, the schedule of the previous one is lost.
    let has_keys = shared.known.borrow().held.is_some();
    let mut next = has_keys.then(|| Instant::now() + BETWEEN_WISHES);
    // The previous task may also have consumed a notification without handling it.
    if shared.wish.load(Ordering::Relaxed) > shared.known.borrow().turns {
        shared.wished.notify_one();
    }
    loop {
        let wished = tokio::select! {
            () = shared.wished.notified() => true,
            () = until(next) => false,
        };
        let before = shared.known.borrow().clone();
        // Requests that arrived during the previous fetch are finished with it.
        if wished && shared.wish.load(Ordering::Relaxed) <= before.turns {
            continue;
        }
        if wished && !before.may_wish() {
            shared.known.send_modify(|known| known.turns += 1);
            continue;
        }
        // A panic while fetching also counts as a failed fetch, so that waiting requests end.
        let fetched = AssertUnwindSafe(shared.fetch_and_tell()).catch_unwind().await;
        let fetched = fetched.unwrap_or(Err(Fault::Unreadable(Document::Keys)));
        next = shared.publish(before, wished, fetched);
    }
}

async fn until(next: Option<Instant>) {
    match next {
        Some(next) => sleep_until(next).await,
        None => std::future::pending().await,
    }
}

impl Shared {
    /// Keys are published after `changed` has revoked the tokens of removed keys.
    async fn fetch_and_tell(&self) -> Result<Fetched, Fault> {
        let fetched = (self.fetch)().await?;
        (self.changed)(&fetched.keys);
        Ok(fetched)
    }

    /// Publishes the result of a fetch. Returns the time of the next scheduled fetch.
    fn publish(&self, before: Known, wished: bool, fetched: Result<Fetched, Fault>) -> Option<Instant> {
        let now = Instant::now();
        let turns = before.turns + 1;
        match fetched {
            Ok(Fetched { keys, lifetime }) => {
                tracing::info!(keys = keys.len(), "fetched the issuer's keys");
                let next_wish = match before.held {
                    // After the first fetch an unknown key may trigger another immediately, because the issuer may just
                    // have rotated its keys.
                    None => now,
                    Some(_) if wished => now + BETWEEN_WISHES,
                    Some(_) => before.next_wish,
                };
                let held = Held { keys: Arc::new(keys), until: now + LONGEST_USE };
                self.known.send_replace(Known { held: Some(held), turns, next_wish });
                Some(now + lifetime * 4 / 5)
            }
            Err(fault) => {
                let has_keys = before.held.is_some();
                tracing::warn!(error = %fault, old_keys_are_used = has_keys, "cannot fetch the issuer's keys");
                let pause = if has_keys { BETWEEN_WISHES } else { WITHOUT_KEYS };
                self.known.send_replace(Known { held: before.held, turns, next_wish: now + pause });
                has_keys.then_some(now + BETWEEN_WISHES)
            }
        }
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("known", &*self.shared.known.borrow()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
