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
    fn keeper(self: &Arc<Issuer>) -> Keeper {
        let issuer = self.clone();
        let fetch = move || -> BoxFuture<'static, _> {
            let issuer = issuer.clone();
            Box::pin(async move {
                issuer.fetches.fetch_add(1, Ordering::Relaxed);
                // Leaves time for concurrent requests during the fetch.
                sleep(Duration::from_millis(100)).await;
                match issuer.is_down.load(Ordering::Relaxed) {
                    true => Err(Fault::Unreadable(Document::Keys)),
                    false => Ok(Fetched { keys: KeySet::read(b"{\"keys\":[]}").expect("keys"), lifetime: LIFETIME }),
                }
            })
        };
        Keeper::new(fetch, |_| {})
    }

    fn fetches(&self) -> u64 {
        self.fetches.load(Ordering::Relaxed)
    }
}

async fn wish(keeper: &Keeper) {
    let known = keeper.known();
    keeper.others(&known).await;
}

#[tokio::test(start_paused = true)]
async fn s05_nobody_asks_before_keys_are_needed_and_all_share_one_answer() {
    let issuer = Arc::new(Issuer::default());
    let keeper = issuer.keeper();
    sleep(LIFETIME).await;
    assert_eq!(issuer.fetches(), 0);
    let known = keeper.known();
    futures_util::future::join_all((0..100).map(|_| keeper.others(&known))).await;
    assert_eq!(issuer.fetches(), 1);
    assert!(keeper.known().keys().is_some());
    assert!(keeper.known().may_wish(), "a key that is not known yet is asked for at once");
}

#[tokio::test(start_paused = true)]
async fn s05_wishes_for_other_keys_are_granted_once_in_half_a_minute() {
    let issuer = Arc::new(Issuer::default());
    let keeper = issuer.keeper();
    for _ in 0..50 {
        wish(&keeper).await;
    }
    assert_eq!(issuer.fetches(), 2, "the first, and one for a key that was not there");
    assert!(!keeper.known().may_wish());
    advance(BETWEEN_WISHES).await;
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
    assert!(keeper.known().keys().is_some());
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
    assert!(keeper.known().may_wish(), "the clock does not use up what callers have");
}

#[tokio::test(start_paused = true)]
async fn s05_old_keys_are_used_for_a_day_while_the_issuer_is_down() {
    let issuer = Arc::new(Issuer::default());
    let keeper = issuer.keeper();
    wish(&keeper).await;
    issuer.is_down.store(true, Ordering::Relaxed);
    sleep(LONGEST_USE - Duration::from_secs(60)).await;
    assert!(keeper.known().keys().is_some());
    assert!(issuer.fetches() > 1000, "it is tried all the time: {}", issuer.fetches());
    sleep(Duration::from_secs(120)).await;
    assert!(keeper.known().keys().is_none());
    issuer.is_down.store(false, Ordering::Relaxed);
    sleep(BETWEEN_WISHES * 2).await;
    assert!(keeper.known().keys().is_some());
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
    sleep(LONGEST_USE).await;
    assert_eq!(issuer.fetches(), 1, "nobody came");
    issuer.is_down.store(false, Ordering::Relaxed);
    wish(&keeper).await;
    assert!(keeper.known().keys().is_some());
}

#[tokio::test(start_paused = true)]
async fn s05_keys_that_make_us_panic_fail_those_who_wait_and_the_next_are_fetched() {
    let fetches = Arc::new(AtomicU64::new(0));
    let counted = fetches.clone();
    let fetch = move || -> BoxFuture<'static, _> {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            assert!(number > 0, "on purpose");
            Ok(Fetched { keys: KeySet::read(b"{\"keys\":[]}").expect("keys"), lifetime: LIFETIME })
        })
    };
    let keeper = Keeper::new(fetch, |_| {});
    wish(&keeper).await;
    assert!(keeper.known().keys().is_none());
    advance(WITHOUT_KEYS).await;
    wish(&keeper).await;
    assert!(keeper.known().keys().is_some());
}

#[tokio::test(start_paused = true)]
async fn s05_nobody_waits_for_ever_where_telling_of_new_keys_makes_us_panic() {
    let fails = Arc::new(AtomicBool::new(true));
    let failing = fails.clone();
    let changed = move |_: &KeySet| assert!(!failing.load(Ordering::Relaxed), "on purpose");
    let fetch = || -> BoxFuture<'static, _> {
        Box::pin(async { Ok(Fetched { keys: KeySet::read(b"{\"keys\":[]}").expect("keys"), lifetime: LIFETIME }) })
    };
    let keeper = Keeper::new(fetch, changed);
    for _ in 0..3 {
        wish(&keeper).await;
        assert!(keeper.known().keys().is_none(), "keys that were not told of are not used");
        advance(WITHOUT_KEYS).await;
    }
    fails.store(false, Ordering::Relaxed);
    wish(&keeper).await;
    assert!(keeper.known().keys().is_some());
}

#[tokio::test(start_paused = true)]
async fn s05_a_keeper_that_is_begun_anew_grants_the_wish_that_the_one_before_was_at() {
    let issuer = Arc::new(Issuer::default());
    let keeper = issuer.keeper();
    // A request that a terminated task had consumed.
    keeper.shared.wish.store(1, Ordering::Relaxed);
    let mut news = keeper.shared.known.subscribe();
    let _anew = AbortOnDropHandle::new(tokio::spawn(keep(keeper.shared.clone())));
    news.wait_for(|known| known.turns == 1).await.expect("the keeper is there");
    assert!(keeper.known().keys().is_some());
}
