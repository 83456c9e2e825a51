//! Change notifications between instances, and polling when a `NOTIFY` is lost.

use std::time::{Duration, Instant};

use corbie::knowledge::store;
use corbie::knowledge::store::postgres::ChangeCounters;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::database::Database;
use crate::fixture::{StoreLocation, document, put, store_location};

/// Poll interval of an instance, and slack for a slow machine.
const POLL_INTERVAL: Duration = Duration::from_secs(4);
const SLACK: Duration = Duration::from_secs(4);

/// Changes of a writer that dies before its `NOTIFY`.
const INSERT_FILE: &str = "INSERT INTO corbie.files (name, version, content, places, host) \
     SELECT 'taxonomy', count(*) + 1, '', '{}', 'elsewhere' FROM corbie.files";
const INSERT_DOCUMENT: &str = "INSERT INTO corbie.sums (base, documents, chunks, vectors, size_bytes, length, languages, updated) \
     SELECT key, 0, 0, 0, 0, 0, '{}', 0 FROM corbie.bases";

/// Executes a statement and waits until the change is noticed.
async fn notification_delay(
    database: &Database,
    sql: &str,
    heard: &mut watch::Receiver<ChangeCounters>,
    number: impl Fn(&ChangeCounters) -> u64,
) -> Duration {
    let (before, began) = (number(&heard.borrow()), Instant::now());
    database.query(sql);
    let told = timeout(POLL_INTERVAL + SLACK, heard.wait_for(|heard| number(heard) > before)).await;
    told.unwrap_or_else(|_| panic!("nobody heard of {sql}")).unwrap();
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_told_is_heard_of_by_looking() {
    let home = store_location();
    let store::Store::Shared(store) = home.open().await else { return };
    let StoreLocation::Database(database) = &home else { return };
    put(&store, document("engine.pdf", 1)).await;
    let mut heard = store.subscribe_changes();
    // The first change may be found by the poll at connection start, the second only by a later poll.
    notification_delay(database, INSERT_FILE, &mut heard, |heard| heard.files).await;
    notification_delay(database, INSERT_DOCUMENT, &mut heard, |heard| heard.documents).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_while_the_connection_was_lost_is_heard_of() {
    let home = store_location();
    let store::Store::Shared(store) = home.open().await else { return };
    let StoreLocation::Database(database) = &home else { return };
    let mut heard = store.subscribe_changes();
    // Now the instance is connected.
    notification_delay(database, INSERT_FILE, &mut heard, |heard| heard.files).await;
    let lost = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
    notification_delay(database, &format!("{lost}; {INSERT_FILE}"), &mut heard, |heard| heard.files).await;
    // It has resumed `LISTEN`: polling cannot detect this notification.
    let waited = notification_delay(database, "NOTIFY corbie, 'files'", &mut heard, |heard| heard.files).await;
    assert!(waited < Duration::from_secs(2), "{waited:?}");
}
