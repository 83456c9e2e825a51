//! What others have changed is heard of, also where nobody told it.

use std::time::{Duration, Instant};

use corbie::knowledge::store;
use corbie::knowledge::store::postgres::Heard;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::database::Database;
use crate::fixture::{Home, document, home, put};

/// Every instance looks so often, and a slow machine takes its time.
const LOOK: Duration = Duration::from_secs(4);
const SLACK: Duration = Duration::from_secs(4);

/// What a writer leaves that dies before it tells anybody.
const FILE: &str = "INSERT INTO corbie.files (name, version, content, places, host) \
     SELECT 'taxonomy', count(*) + 1, '', '{}', 'elsewhere' FROM corbie.files";
const DOCUMENT: &str = "INSERT INTO corbie.sums (base, documents, chunks, vectors, size_bytes, length, languages, updated) \
     SELECT key, 0, 0, 0, 0, 0, '{}', 0 FROM corbie.bases";

/// Has something happen, and waits until it is heard of.
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
    // This may be found by the look that every connection begins with; what comes next is found by a later one.
    heard_of(database, FILE, &mut heard, |heard| heard.files).await;
    heard_of(database, DOCUMENT, &mut heard, |heard| heard.documents).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_while_the_connection_was_lost_is_heard_of() {
    let home = home();
    let store::Store::Shared(store) = home.open().await else { return };
    let Home::Database(database) = &home else { return };
    let mut heard = store.heard();
    // Then it has a connection.
    heard_of(database, FILE, &mut heard, |heard| heard.files).await;
    let lost = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
    heard_of(database, &format!("{lost}; {FILE}"), &mut heard, |heard| heard.files).await;
    // And it listens again: of this there is nothing to be found by looking.
    let waited = heard_of(database, "NOTIFY corbie, 'files'", &mut heard, |heard| heard.files).await;
    assert!(waited < Duration::from_secs(2), "{waited:?}");
}
