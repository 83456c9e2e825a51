//! Routing decisions in a shared database.

use corbie::knowledge::decision_log::{DecisionScope, StoredDecision};
use corbie::knowledge::store::{Store, postgres};

use crate::fixture::store_location;

fn decision(id: u64, at_ms: u64, caller: Option<&str>) -> StoredDecision {
    StoredDecision { id, at_ms, caller: caller.map(Into::into), record: format!(r#"{{"id":{id},"why":"a\u0000b"}}"#) }
}

/// The ids of the newest decisions.
async fn newest_ids(store: &postgres::Store, whose: DecisionScope<'_>, most: usize) -> Vec<u64> {
    store.latest_decisions(whose, most).await.unwrap().iter().map(|decision| decision.id).collect()
}

#[tokio::test]
async fn a13_decisions_are_kept_once_found_by_whose_they_are_and_forgotten_beyond_a_bound() {
    let home = store_location();
    // The embedded store keeps no decisions.
    let (Store::Shared(one), Store::Shared(other)) = (home.open().await, home.open().await) else { return };
    assert_ne!(one.next_decider_id().await.unwrap(), other.next_decider_id().await.unwrap());

    let kept = [
        decision(1, 10, Some("token:ada")),
        decision(2, 30, Some("token:bob")),
        decision(3, 20, None),
        decision(4, 30, Some("token:ada")),
        decision(5, 5, Some("a\0b")),
    ];
    one.store_decisions(&kept).await.unwrap();
    // A retry after a lost acknowledgement repeats the insert and must not replace existing decisions.
    other.store_decisions(&[decision(1, 99, Some("token:bob")), decision(6, 1, None)]).await.unwrap();
    assert_eq!(other.decision(1, DecisionScope::All).await.unwrap().as_ref(), kept.first());
    assert_eq!(newest_ids(&other, DecisionScope::All, 9).await, [4, 2, 3, 1, 5, 6]);
    assert_eq!(newest_ids(&other, DecisionScope::All, 2).await, [4, 2]);
    assert_eq!(newest_ids(&other, DecisionScope::Caller("token:ada"), 9).await, [4, 1]);
    assert_eq!(newest_ids(&other, DecisionScope::Caller("token:ada"), 1).await, [4]);
    assert_eq!(newest_ids(&other, DecisionScope::Caller(""), 9).await, [] as [u64; 0]);
    assert_eq!(other.decision(2, DecisionScope::Caller("token:ada")).await.unwrap(), None);
    assert!(other.decision(2, DecisionScope::Caller("token:bob")).await.unwrap().is_some());
    // A caller name that the column cannot store is stored as `None`, not as a similar name.
    assert_eq!(other.decision(5, DecisionScope::All).await.unwrap().unwrap().caller, None);

    let (first, second) = tokio::join!(one.prune_decisions(3), other.prune_decisions(3));
    first.and(second).unwrap();
    one.prune_decisions(3).await.unwrap();
    // The decisions inserted last remain, independent of the clocks of the instances.
    assert_eq!(newest_ids(&other, DecisionScope::All, 9).await, [4, 5, 6]);
}
