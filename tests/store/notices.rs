//! Change notifications between instances, and polling when a `NOTIFY` is lost.

use std::time::{Duration, Instant};

use corbie::knowledge::store;
use corbie::knowledge::store::postgres::Heard;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::database::Database;
use crate::fixture::{Home, document, home, put};

/// Poll interval of an instance, and slack for a slow machine.
const LOOK: Duration = Duration::from_secs(4);
const SLACK: Duration = Duration::from_secs(4);

/// Changes of a writer that dies before its `NOTIFY`.
const FILE: &str = "INSERT INTO corbie.files (name, version, content, places, host) \
     SELECT 'taxonomy', count(*) + 1, '', '{}', 'elsewhere' FROM corbie.files";
const DOCUMENT: &str = "INSERT INTO corbie.sums (base, documents, chunks, vectors, size_bytes, length, languages, updated) \
     SELECT key, 0, 0, 0, 0, 0, '{}', 0 FROM corbie.bases";

/// Executes a statement and waits until the change is noticed.
async fn heard_of(
    database: &Database,
    sql: &str,
    heard: &mut watch::Receiver<Heard>,
    number: impl Fn(&Heard) -> u64,
) -> Duration {
    let (before, began) = (number(&heard.borrow()), Instant::now());
    database.ask(sql);
    let told = timeout(LOOK + SLACK, heard.wait_for(|heard| number(heard) > before)).await;
    told.unwrap_or_else(|_| panic!("nobody heard of {sql}")).unwrap();
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_told_is_heard_of_by_looking() {
    let home = home();
    let store::Store::Shared(store) = home.open().await else { return };
    let Home::Database(database) = &home else { return };
    put(&store, document("engine.pdf", 1)).await;
    let mut heard = store.heard();
    // The first change may be found by the poll at connection start, the second only by a later poll.
    heard_of(database, FILE, &mut heard, |heard| heard.files).await;
    heard_of(database, DOCUMENT, &mut heard, |heard| heard.documents).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_while_the_connection_was_lost_is_heard_of() {
    let home = home();
    let store::Store::Shared(store) = home.open().await else { return };
    let Home::Database(database) = &home else { return };
    let mut heard = store.heard();
    // Now the instance is connected.
    heard_of(database, FILE, &mut heard, |heard| heard.files).await;
    let lost = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
    heard_of(database, &format!("{lost}; {FILE}"), &mut heard, |heard| heard.files).await;
    // It has resumed `LISTEN`: polling cannot detect this notification.
    let waited = heard_of(database, "NOTIFY corbie, 'files'", &mut heard, |heard| heard.files).await;
    assert!(waited < Duration::from_secs(2), "{waited:?}");
}
