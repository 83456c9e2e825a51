//! Notifications of changes between instances by LISTEN/NOTIFY.
//!
//! Notifications are sent separately from the writes they announce, and at most once per [`NOTIFY_INTERVAL`], because
//! PostgreSQL serializes all commits that contain a NOTIFY. Polling makes up for a notification that is lost with this
//! process or with the connection.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_postgres::Client;

use super::error;
use super::instance::Instance;
use crate::store::Error;
use corbie_util::lock::lock;

/// Minimum delay between two notifications of an instance.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(200);
pub(super) const NOTIFY_CHANNEL: &str = "corbie";

/// Changes by other instances. The numbers count notifications.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChangeCounters {
    pub documents: u64,
    /// The taxonomy and the tokens.
    pub files: u64,
    /// The set of available models. The database stores nothing about it: every instance queries the providers
    /// periodically.
    pub models: u64,
}

/// Values that differ after a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ChangeMarks {
    documents: i64,
    files: i64,
}

/// Changes by this instance that wait for their announcement, and those by others.
#[derive(Debug)]
pub(super) struct ChangeFeed {
    documents: Notify,
    models: Notify,
    counters: watch::Sender<ChangeCounters>,
    /// As of the last poll.
    marks: Mutex<ChangeMarks>,
}

impl ChangeFeed {
    pub(super) fn new() -> ChangeFeed {
        ChangeFeed {
            documents: Notify::new(),
            models: Notify::new(),
            counters: watch::Sender::new(ChangeCounters::default()),
            marks: Mutex::default(),
        }
    }

    /// Notifies other instances that documents have changed.
    pub(super) fn notify_documents_changed(&self) {
        self.documents.notify_one();
    }

    /// Notifies other instances that the set of available models has changed.
    pub(super) fn notify_models_changed(&self) {
        self.models.notify_one();
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<ChangeCounters> {
        self.counters.subscribe()
    }

    /// Waits for a change by this instance; returns its topic.
    pub(super) async fn next_announcement(&self) -> &'static str {
        tokio::select! {
            () = self.documents.notified() => "documents",
            () = self.models.notified() => "models",
        }
    }

    /// Counts a change by another instance.
    pub(super) fn on_notification(&self, payload: &str, instance: &Instance) {
        let (topic, sender) = payload.split_once(' ').unwrap_or((payload, ""));
        if sender == instance.name() {
            return;
        }
        self.counters.send_if_modified(|counters| {
            let before = *counters;
            counters.documents += u64::from(topic == "documents");
            counters.files += u64::from(topic == "files");
            counters.models += u64::from(topic == "models");
            *counters != before
        });
    }

    /// Polls for changes whose notification was missed.
    pub(super) async fn poll(&self, client: &Client) -> Result<(), Error> {
        let sql = "SELECT (SELECT coalesce(bit_xor(mark), 0) FROM sums), \
                   (SELECT coalesce(sum(newest), 0)::bigint FROM (SELECT max(version) AS newest FROM files GROUP BY name) AS f)";
        let row = client.query_one(sql, &[]).await.map_err(error::map_error)?;
        let marks = ChangeMarks { documents: row.get(0), files: row.get(1) };
        let before = std::mem::replace(&mut *lock(&self.marks), marks);
        self.counters.send_if_modified(|counters| {
            counters.documents += u64::from(marks.documents != before.documents);
            counters.files += u64::from(marks.files != before.files);
            marks != before
        });
        Ok(())
    }
}

/// Subscribes a connection to the notifications of other instances.
pub(super) async fn listen(client: &Client) -> Result<(), Error> {
    client.batch_execute(&format!("LISTEN {NOTIFY_CHANNEL}")).await.map_err(error::map_error)
}

/// Sends a notification and then pauses (debounce). Changes during the pause are announced right after it.
pub(super) async fn send_notification(client: &Client, topic: &str, instance: &Instance) -> Result<(), Error> {
    let payload = format!("{topic} {}", instance.name());
    client.execute("SELECT pg_notify($1, $2)", &[&NOTIFY_CHANNEL, &payload]).await.map_err(error::map_error)?;
    sleep(NOTIFY_INTERVAL).await;
    Ok(())
}
