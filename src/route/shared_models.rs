//! Has instances that share a database hear of models that one of them has found. What there is, each asks for itself:
//! what an instance can reach is its own matter.

use std::time::Duration;

use super::router::Router;

/// Tells others of models that have become others here, and looks anew when somebody else tells so. A notice that is lost
/// is made up for by the look that every instance takes now and then.
pub(super) async fn share(router: &Router) {
    let Some(knowledge) = router.knowledge() else { return };
    // It may be long before a database is there.
    if knowledge.when_open().await.is_none() {
        return;
    }
    let Some(store) = knowledge.shared_store() else { return };
    let pool = router.pool();
    let (mut heard, mut changes) = (store.heard(), pool.changes());
    let mut known = heard.borrow_and_update().models;
    loop {
        tokio::select! {
            changed = changes.changed() => match changed {
                Ok(()) => store.tell_models(),
                Err(_) => return,
            },
            changed = heard.changed() => if changed.is_err() { return },
        }
        let now = heard.borrow_and_update().models;
        if std::mem::replace(&mut known, now) == now {
            continue;
        }
        match pool.was_listed().await {
            true => pool.list(Duration::ZERO).await,
            false => pool.detect().await,
        }
        // What came of it is known to whoever told of it.
        changes.mark_unchanged();
    }
}
