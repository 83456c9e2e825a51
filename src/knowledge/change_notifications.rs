//! Change notifications from other instances, forwarded to the clients of this instance.

use tokio::sync::watch;

use super::Knowledge;
use super::store::postgres::ChangeCounters;

/// Forwards notifications until shutdown.
pub(super) async fn forward_remote_changes(knowledge: Knowledge, mut heard: watch::Receiver<ChangeCounters>) {
    let mut documents = heard.borrow_and_update().documents;
    loop {
        tokio::select! {
            changed = heard.changed() => if changed.is_err() { return },
            () = knowledge.stopped() => return,
        }
        let now = heard.borrow_and_update().documents;
        if std::mem::replace(&mut documents, now) != now {
            knowledge.notify_documents_changed();
        }
    }
}
