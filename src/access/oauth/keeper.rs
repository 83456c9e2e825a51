//! Keeps an issuer's keys: fetched when they are first needed, anew before they are old, and at once when a token names
//! one that is not known. One task fetches, so whoever waits shares what comes, and nobody can make it ask often.

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

/// What is known at one moment.
#[derive(Debug, Clone)]
pub(super) struct Known {
    held: Option<Held>,
    /// How often somebody's wish for other keys was dealt with.
    turns: u64,
    /// Wishes before this are not granted.
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
    /// The turn that somebody waits for.
    wish: AtomicU64,
    wished: Notify,
}

type Fetch = Box<dyn Fn() -> BoxFuture<'static, Result<Fetched, Fault>> + Send + Sync>;
type Changed = Box<dyn Fn(&KeySet) + Send + Sync>;

/// How often a key that is not known may have all of them fetched. Also how often it is tried while the issuer is down.
const BETWEEN_WISHES: Duration = Duration::from_secs(30);
/// The same while there are no keys at all.
const WITHOUT_KEYS: Duration = Duration::from_secs(2);
/// How long keys are used that cannot be fetched anew.
const LONGEST_USE: Duration = Duration::from_secs(24 * 60 * 60);

impl Keeper {
    /// `changed` is told of all keys whenever they were fetched, before anybody else.
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

    /// Waits until somebody's wish for other keys than these was dealt with, whether there are others now or not.
    pub(super) async fn others(&self, than: &Known) {
        self.task.get_or_init(|| {
            let shared = self.shared.clone();
            AbortOnDropHandle::new(tokio::spawn(supervised(Name("issuer keys"), move || keep(shared.clone()))))
        });
        let mut news = self.shared.known.subscribe();
        self.shared.wish.fetch_max(than.turns + 1, Ordering::Relaxed);
        self.shared.wished.notify_one();
        // Its sender lives as long as this.
        let _ = news.wait_for(|known| known.turns > than.turns).await;
    }
}

impl Known {
    /// The keys, unless they are too old to be believed.
    pub(super) fn keys(&self) -> Option<&Arc<KeySet>> {
        self.held.as_ref().filter(|held| Instant::now() < held.until).map(|held| &held.keys)
    }

    /// Whether a wish for others would be granted.
    pub(super) fn may_wish(&self) -> bool {
        Instant::now() >= self.next_wish
    }
}

/// Fetches when it is time, or when somebody wishes it and may.
async fn keep(shared: Arc<Shared>) {
    // One before this may have been gone before it set itself a time.
    let has_keys = shared.known.borrow().held.is_some();
    let mut next = has_keys.then(|| Instant::now() + BETWEEN_WISHES);
    // And it may have heard of a wish, which is not heard of a second time.
    if shared.wish.load(Ordering::Relaxed) > shared.known.borrow().turns {
        shared.wished.notify_one();
    }
    loop {
        let wished = tokio::select! {
            () = shared.wished.notified() => true,
            () = until(next) => false,
        };
        let before = shared.known.borrow().clone();
        // Wishes that came while the last was granted were granted with it.
        if wished && shared.wish.load(Ordering::Relaxed) <= before.turns {
            continue;
        }
        if wished && !before.may_wish() {
            shared.known.send_modify(|known| known.turns += 1);
            continue;
        }
        // Whoever waits hears that there are no keys, also if it is we who make nothing of what came.
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
    /// Keys count once `changed` knows of them: it takes away what was granted by keys that are gone.
    async fn fetch_and_tell(&self) -> Result<Fetched, Fault> {
        let fetched = (self.fetch)().await?;
        (self.changed)(&fetched.keys);
        Ok(fetched)
    }

    /// Tells what is known now; gives back when to fetch next without being asked.
    fn publish(&self, before: Known, wished: bool, fetched: Result<Fetched, Fault>) -> Option<Instant> {
        let now = Instant::now();
        let turns = before.turns + 1;
        match fetched {
            Ok(Fetched { keys, lifetime }) => {
                tracing::info!(keys = keys.len(), "fetched the issuer's keys");
                let next_wish = match before.held {
                    // A key that came a moment later is no less new than one that comes in a year.
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
