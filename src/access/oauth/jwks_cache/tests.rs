use std::sync::atomic::AtomicBool;

use tokio::time::{advance, sleep};

use super::*;

/// An issuer that counts fetches and can be made unavailable.
#[derive(Default)]
struct Issuer {
    fetches: AtomicU64,
    is_down: AtomicBool,
}

const LIFETIME: Duration = Duration::from_secs(1000);

impl Issuer {
    fn keeper(self: &Arc<Issuer>) -> JwksCache {
        let issuer = self.clone();
        let fetch = move || -> BoxFuture<'static, _> {
            let issuer = issuer.clone();
            Box::pin(async move {
                issuer.fetches.fetch_add(1, Ordering::Relaxed);
                // Leaves time for concurrent requests during the fetch.
                sleep(Duration::from_millis(100)).await;
                match issuer.is_down.load(Ordering::Relaxed) {
                    true => Err(JwksError::Invalid(IssuerDocument::Keys)),
                    false => {
                        Ok(FetchedKeys { keys: JwkSet::parse(b"{\"keys\":[]}").expect("keys"), lifetime: LIFETIME })
                    }
                }
            })
        };
        JwksCache::new(fetch, |_| {})
    }

    fn fetches(&self) -> u64 {
        self.fetches.load(Ordering::Relaxed)
    }
}

async fn wish(keeper: &JwksCache) {
    let known = keeper.state();
    keeper.refreshed(&known).await;
}

#[tokio::test(start_paused = true)]
async fn s05_nobody_asks_before_keys_are_needed_and_all_share_one_answer() {
    let issuer = Arc::new(Issuer::default());
    let keeper = issuer.keeper();
    sleep(LIFETIME).await;
    assert_eq!(issuer.fetches(), 0);
    let known = keeper.state();
    futures_util::future::join_all((0..100).map(|_| keeper.refreshed(&known))).await;
    assert_eq!(issuer.fetches(), 1);
    assert!(keeper.state().keys().is_some());
    assert!(keeper.state().may_refresh(), "a key that is not known yet is asked for at once");
}

#[tokio::test(start_paused = true)]
async fn s05_wishes_for_other_keys_are_granted_once_in_half_a_minute() {
    let issuer = Arc::new(Issuer::default());
    let keeper = issuer.keeper();
    for _ in 0..50 {
        wish(&keeper).await;
    }
    assert_eq!(issuer.fetches(), 2, "the first, and one for a key that was not there");
    assert!(!keeper.state().may_refresh());
    advance(MIN_REFRESH_INTERVAL).await;
    wish(&keeper).await;
    wish(&keeper).await;
    assert_eq!(issuer.fetches(), 3);
}

#[tokio::test(start_paused = true)]
async fn s05_a_request_that_goes_away_does_not_stop_the_fetch() {
    let issuer = Arc::new(Issuer::default());
    let keeper = issuer.keeper();
    assert!(tokio::time::timeout(Duration::from_millis(10), wish(&keeper)).await.is_err());
    sleep(Duration::from_millis(200)).await;
    assert!(keeper.state().keys().is_some());
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn s05_keys_are_fetched_anew_before_they_are_old() {
    let issuer = Arc::new(Issuer::default());
    let keeper = issuer.keeper();
    wish(&keeper).await;
    sleep(LIFETIME * 3 / 4).await;
    assert_eq!(issuer.fetches(), 1);
    sleep(LIFETIME / 4).await;
    assert_eq!(issuer.fetches(), 2);
    assert!(keeper.state().may_refresh(), "the clock does not use up what callers have");
}

#[tokio::test(start_paused = true)]
async fn s05_old_keys_are_used_for_a_day_while_the_issuer_is_down() {
    let issuer = Arc::new(Issuer::default());
    let keeper = issuer.keeper();
    wish(&keeper).await;
    issuer.is_down.store(true, Ordering::Relaxed);
    sleep(MAX_STALENESS - Duration::from_secs(60)).await;
    assert!(keeper.state().keys().is_some());
    assert!(issuer.fetches() > 1000, "it is tried all the time: {}", issuer.fetches());
    sleep(Duration::from_secs(120)).await;
    assert!(keeper.state().keys().is_none());
    issuer.is_down.store(false, Ordering::Relaxed);
    sleep(MIN_REFRESH_INTERVAL * 2).await;
    assert!(keeper.state().keys().is_some());
}

#[tokio::test(start_paused = true)]
async fn s05_without_any_keys_it_is_tried_when_somebody_comes_but_not_too_often() {
    let issuer = Arc::new(Issuer::default());
    issuer.is_down.store(true, Ordering::Relaxed);
    let keeper = issuer.keeper();
    for _ in 0..20 {
        wish(&keeper).await;
    }
    assert_eq!(issuer.fetches(), 1);
    sleep(MAX_STALENESS).await;
    assert_eq!(issuer.fetches(), 1, "nobody came");
    issuer.is_down.store(false, Ordering::Relaxed);
    wish(&keeper).await;
    assert!(keeper.state().keys().is_some());
}

#[tokio::test(start_paused = true)]
async fn s05_keys_that_make_us_panic_fail_those_who_wait_and_the_next_are_fetched() {
    let fetches = Arc::new(AtomicU64::new(0));
    let counted = fetches.clone();
    let fetch = move || -> BoxFuture<'static, _> {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            assert!(number > 0, "on purpose");
            Ok(FetchedKeys { keys: JwkSet::parse(b"{\"keys\":[]}").expect("keys"), lifetime: LIFETIME })
        })
    };
    let keeper = JwksCache::new(fetch, |_| {});
    wish(&keeper).await;
    assert!(keeper.state().keys().is_none());
    advance(MIN_RETRY_INTERVAL).await;
    wish(&keeper).await;
    assert!(keeper.state().keys().is_some());
}

#[tokio::test(start_paused = true)]
async fn s05_nobody_waits_for_ever_where_telling_of_new_keys_makes_us_panic() {
    let fails = Arc::new(AtomicBool::new(true));
    let failing = fails.clone();
    let changed = move |_: &JwkSet| assert!(!failing.load(Ordering::Relaxed), "on purpose");
    let fetch = || -> BoxFuture<'static, _> {
        Box::pin(async { Ok(FetchedKeys { keys: JwkSet::parse(b"{\"keys\":[]}").expect("keys"), lifetime: LIFETIME }) })
    };
    let keeper = JwksCache::new(fetch, changed);
    for _ in 0..3 {
        wish(&keeper).await;
        assert!(keeper.state().keys().is_none(), "keys that were not told of are not used");
        advance(MIN_RETRY_INTERVAL).await;
    }
    fails.store(false, Ordering::Relaxed);
    wish(&keeper).await;
    assert!(keeper.state().keys().is_some());
}

#[tokio::test(start_paused = true)]
async fn s05_a_keeper_that_is_begun_anew_grants_the_wish_that_the_one_before_was_at() {
    let issuer = Arc::new(Issuer::default());
    let keeper = issuer.keeper();
    // A request that a terminated task had consumed.
    keeper.inner.requested_refresh.store(1, Ordering::Relaxed);
    let mut news = keeper.inner.state.subscribe();
    let _anew = AbortOnDropHandle::new(tokio::spawn(refresh_loop(keeper.inner.clone())));
    news.wait_for(|known| known.refreshes == 1).await.expect("the keeper is there");
    assert!(keeper.state().keys().is_some());
}

#[test]
fn s05_keys_are_kept_as_long_as_the_issuer_says_within_reason() {
    for (said, seconds) in [
        (None, 3600),
        (Some("public, max-age=900, must-revalidate"), 900),
        (Some("max-age=1"), 300),
        (Some("Max-Age=99999999"), 86_400),
        (Some("no-store"), 300),
        (Some("max-age=soon"), 3600),
    ] {
        let mut headers = HeaderMap::new();
        headers.extend(said.map(|said| (CACHE_CONTROL, said.parse().expect("a header"))));
        assert_eq!(cache_lifetime(&headers), Duration::from_secs(seconds), "{said:?}");
    }
}
