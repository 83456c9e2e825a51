//! JWKS cache with background refresh. Keys are fetched on first use, before they expire, and immediately when a token
//! names an unknown key. A single task fetches them: concurrent requests share the result, and clients cannot trigger
//! frequent fetches.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::CACHE_CONTROL;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::jwks::JwkSet;
use super::jwks_fetch::{FetchedKeys, IssuerDocument, JwksError};
use crate::supervisor::{TaskName, supervise};

pub(super) struct JwksCache {
    inner: Arc<Inner>,
    task: OnceLock<AbortOnDropHandle<()>>,
}

/// The state of the cache.
#[derive(Debug, Clone)]
pub(super) struct JwksState {
    cached: Option<CachedKeys>,
    /// Number of refresh requests that are finished.
    refreshes: u64,
    /// Refresh requests before this time do not fetch.
    next_refresh_allowed: Instant,
}

#[derive(Debug, Clone)]
struct CachedKeys {
    keys: Arc<JwkSet>,
    until: Instant,
}

struct Inner {
    fetch: FetchKeys,
    on_change: OnKeysChanged,
    state: watch::Sender<JwksState>,
    /// The value of `turns` that the latest request waits for.
    requested_refresh: AtomicU64,
    refresh_requested: Notify,
}

type FetchKeys = Box<dyn Fn() -> BoxFuture<'static, Result<FetchedKeys, JwksError>> + Send + Sync>;
type OnKeysChanged = Box<dyn Fn(&JwkSet) + Send + Sync>;

/// Minimum interval of fetches caused by unknown keys, and of retries while the issuer is unavailable.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(30);
/// The same while there are no keys at all.
const MIN_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum age of keys that cannot be refreshed.
const MAX_STALENESS: Duration = Duration::from_secs(24 * 60 * 60);
/// Lifetime of keys without `Cache-Control`.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Bounds of the lifetime: limits the request rate, and how long a withdrawn key is accepted.
const LIFETIME_BOUNDS: [Duration; 2] = [Duration::from_secs(5 * 60), Duration::from_secs(24 * 60 * 60)];

impl JwksCache {
    /// `changed` is called with every fetched JWKS before it is published.
    pub(super) fn new(
        fetch: impl Fn() -> BoxFuture<'static, Result<FetchedKeys, JwksError>> + Send + Sync + 'static,
        changed: impl Fn(&JwkSet) + Send + Sync + 'static,
    ) -> JwksCache {
        let known = JwksState { cached: None, refreshes: 0, next_refresh_allowed: Instant::now() };
        let shared = Inner {
            fetch: Box::new(fetch),
            on_change: Box::new(changed),
            state: watch::Sender::new(known),
            requested_refresh: AtomicU64::new(0),
            refresh_requested: Notify::new(),
        };
        JwksCache { inner: Arc::new(shared), task: OnceLock::new() }
    }

    pub(super) fn state(&self) -> JwksState {
        self.inner.state.borrow().clone()
    }

    /// Requests a refresh and waits until it is finished, whether or not the keys have changed.
    pub(super) async fn refreshed(&self, than: &JwksState) {
        self.task.get_or_init(|| {
            let shared = self.inner.clone();
            AbortOnDropHandle::new(tokio::spawn(supervise(TaskName("issuer_keys"), move || {
                refresh_loop(shared.clone())
            })))
        });
        let mut news = self.inner.state.subscribe();
        self.inner.requested_refresh.fetch_max(than.refreshes + 1, Ordering::Relaxed);
        self.inner.refresh_requested.notify_one();
        // The sender lives as long as `self`.
        let _ = news.wait_for(|known| known.refreshes > than.refreshes).await;
    }
}

impl JwksState {
    /// The keys, unless they are too old.
    pub(super) fn keys(&self) -> Option<&Arc<JwkSet>> {
        self.cached.as_ref().filter(|held| Instant::now() < held.until).map(|held| &held.keys)
    }

    /// Whether a refresh request would fetch now.
    pub(super) fn may_refresh(&self) -> bool {
        Instant::now() >= self.next_refresh_allowed
    }
}

/// Fetches on schedule and on request.
async fn refresh_loop(shared: Arc<Inner>) {
    // After a restart of this task, the schedule of the previous one is lost.
    let has_keys = shared.state.borrow().cached.is_some();
    let mut next = has_keys.then(|| Instant::now() + MIN_REFRESH_INTERVAL);
    // The previous task may also have consumed a notification without handling it.
    if shared.requested_refresh.load(Ordering::Relaxed) > shared.state.borrow().refreshes {
        shared.refresh_requested.notify_one();
    }
    loop {
        let wished = tokio::select! {
            () = shared.refresh_requested.notified() => true,
            () = sleep_until_due(next) => false,
        };
        let before = shared.state.borrow().clone();
        // Requests that arrived during the previous fetch are finished with it.
        if wished && shared.requested_refresh.load(Ordering::Relaxed) <= before.refreshes {
            continue;
        }
        if wished && !before.may_refresh() {
            shared.state.send_modify(|known| known.refreshes += 1);
            continue;
        }
        // A panic while fetching also counts as a failed fetch, so that waiting requests end.
        let fetched = AssertUnwindSafe(shared.fetch_and_notify()).catch_unwind().await;
        let fetched = fetched.unwrap_or(Err(JwksError::Invalid(IssuerDocument::Keys)));
        next = shared.publish(before, wished, fetched);
    }
}

async fn sleep_until_due(next: Option<Instant>) {
    match next {
        Some(next) => sleep_until(next).await,
        None => std::future::pending().await,
    }
}

impl Inner {
    /// Keys are published after `changed` has revoked the tokens of removed keys.
    async fn fetch_and_notify(&self) -> Result<FetchedKeys, JwksError> {
        let fetched = (self.fetch)().await?;
        (self.on_change)(&fetched.keys);
        Ok(fetched)
    }

    /// Publishes the result of a fetch. Returns the time of the next scheduled fetch.
    fn publish(&self, before: JwksState, wished: bool, fetched: Result<FetchedKeys, JwksError>) -> Option<Instant> {
        let now = Instant::now();
        let turns = before.refreshes + 1;
        match fetched {
            Ok(FetchedKeys { keys, lifetime }) => {
                tracing::info!(keys = keys.len(), "fetched the issuer's JWKS");
                let next_wish = match before.cached {
                    // After the first fetch an unknown key may trigger another immediately, because the issuer may just
                    // have rotated its keys.
                    None => now,
                    Some(_) if wished => now + MIN_REFRESH_INTERVAL,
                    Some(_) => before.next_refresh_allowed,
                };
                let held = CachedKeys { keys: Arc::new(keys), until: now + MAX_STALENESS };
                self.state.send_replace(JwksState {
                    cached: Some(held),
                    refreshes: turns,
                    next_refresh_allowed: next_wish,
                });
                Some(now + lifetime * 4 / 5)
            }
            Err(fault) => {
                let has_keys = before.cached.is_some();
                tracing::warn!(error = %fault, using_cached_keys = has_keys, "cannot fetch the issuer's JWKS");
                let pause = if has_keys { MIN_REFRESH_INTERVAL } else { MIN_RETRY_INTERVAL };
                self.state.send_replace(JwksState {
                    cached: before.cached,
                    refreshes: turns,
                    next_refresh_allowed: now + pause,
                });
                has_keys.then_some(now + MIN_REFRESH_INTERVAL)
            }
        }
    }
}

impl std::fmt::Debug for JwksCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("known", &*self.inner.state.borrow()).finish_non_exhaustive()
    }
}

/// How long keys may be cached, by the `Cache-Control` of their response.
pub(super) fn cache_lifetime(headers: &HeaderMap) -> Duration {
    let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut directives =
        directives.flat_map(|value| value.split(',')).map(|directive| directive.trim().to_ascii_lowercase());
    let stated = directives.find_map(|directive| match directive.as_str() {
        "no-store" | "no-cache" => Some(Duration::ZERO),
        directive => {
            let seconds = directive.strip_prefix("max-age=")?.trim_matches('"').parse().ok()?;
            Some(Duration::from_secs(seconds))
        }
    });
    let [shortest, longest] = LIFETIME_BOUNDS;
    stated.unwrap_or(DEFAULT_LIFETIME).clamp(shortest, longest)
}

#[cfg(test)]
mod tests;
