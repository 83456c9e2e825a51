//! Routing decisions in a shared database.

use corbie::knowledge::decisions::{Decision, Whose};
use corbie::knowledge::store::{Store, postgres};

use crate::fixture::home;

fn decision(id: u64, at_ms: u64, caller: Option<&str>) -> Decision {
    Decision { id, at_ms, caller: caller.map(Into::into), record: format!(r#"{{"id":{id},"why":"a\u0000b"}}"#) }
}

/// The ids of the newest decisions.
async fn newest(store: &postgres::Store, whose: Whose<'_>, most: usize) -> Vec<u64> {
    store.newest_decisions(whose, most).await.unwrap().iter().map(|decision| decision.id).collect()
}

#[tokio::test]
async fn a13_decisions_are_kept_once_found_by_whose_they_are_and_forgotten_beyond_a_bound() {
    let home = home();
    // The embedded store keeps no decisions.
    let (Store::Shared(one), Store::Shared(other)) = (home.open().await, home.open().await) else { return };
    assert_ne!(one.decider().await.unwrap(), other.decider().await.unwrap());

    let kept = [
        decision(1, 10, Some("token:ada")),
        decision(2, 30, Some("token:bob")),
        decision(3, 20, None),
        decision(4, 30, Some("token:ada")),
        decision(5, 5, Some("a\0b")),
    ];
    one.keep_decisions(&kept).await.unwrap();
    // A retry after a lost acknowledgement repeats the insert and must not replace existing decisions.
    other.keep_decisions(&[decision(1, 99, Some("token:bob")), decision(6, 1, None)]).await.unwrap();
    assert_eq!(other.decision(1, Whose::Everybodys).await.unwrap().as_ref(), kept.first());
    assert_eq!(newest(&other, Whose::Everybodys, 9).await, [4, 2, 3, 1, 5, 6]);
    assert_eq!(newest(&other, Whose::Everybodys, 2).await, [4, 2]);
    assert_eq!(newest(&other, Whose::Of("token:ada"), 9).await, [4, 1]);
    assert_eq!(newest(&other, Whose::Of("token:ada"), 1).await, [4]);
    assert_eq!(newest(&other, Whose::Of(""), 9).await, [] as [u64; 0]);
    assert_eq!(other.decision(2, Whose::Of("token:ada")).await.unwrap(), None);
    assert!(other.decision(2, Whose::Of("token:bob")).await.unwrap().is_some());
    // A caller name that the column cannot store is stored as `None`, not as a similar name.
    assert_eq!(other.decision(5, Whose::Everybodys).await.unwrap().unwrap().caller, None);

    let (first, second) = tokio::join!(one.forget_decisions(3), other.forget_decisions(3));
    first.and(second).unwrap();
    one.forget_decisions(3).await.unwrap();
    // The decisions inserted last remain, independent of the clocks of the instances.
    assert_eq!(newest(&other, Whose::Everybodys, 9).await, [4, 5, 6]);
}
