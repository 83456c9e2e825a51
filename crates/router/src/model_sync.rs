//! Notifies other instances when the model list changes. Each instance fetches lists itself, because providers
//! reachable from one instance may not be reachable from another.

use std::time::Duration;

use super::router::Router;

/// Publishes changes of the model list, and refreshes the list when another instance publishes one. The periodic
/// refresh compensates for lost notifications.
pub(super) async fn sync_models(router: &Router) {
    let Some(knowledge) = router.knowledge() else { return };
    // The database may become available much later.
    if knowledge.wait_until_open().await.is_none() {
        return;
    }
    let Some(store) = knowledge.shared_store() else { return };
    let pool = router.providers();
    let (mut heard, mut changes) = (store.subscribe_changes(), pool.subscribe());
    let mut known = heard.borrow_and_update().models;
    loop {
        tokio::select! {
            changed = changes.changed() => match changed {
                Ok(()) => store.notify_models_changed(),
                Err(_) => return,
            },
            changed = heard.changed() => if changed.is_err() { return },
        }
        let now = heard.borrow_and_update().models;
        if std::mem::replace(&mut known, now) == now {
            continue;
        }
        match pool.was_listed().await {
            true => pool.refresh_models(Duration::ZERO).await,
            false => pool.detect_local_servers().await,
        }
        // The instance that sent the notification already knows these changes.
        changes.mark_unchanged();
    }
}
