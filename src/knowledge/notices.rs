//! Change notifications from other instances, forwarded to the clients of this instance.

use tokio::sync::watch;

use super::Knowledge;
use super::store::postgres::Heard;

/// Forwards notifications until shutdown.
pub(super) async fn hear(knowledge: Knowledge, mut heard: watch::Receiver<Heard>) {
    let mut documents = heard.borrow_and_update().documents;
    loop {
        tokio::select! {
            changed = heard.changed() => if changed.is_err() { return },
            () = knowledge.stopping() => return,
        }
        let now = heard.borrow_and_update().documents;
        if std::mem::replace(&mut documents, now) != now {
            knowledge.documents_changed();
        }
    }
}
