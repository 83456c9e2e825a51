//! Database timeouts and the resulting errors.

use std::time::Duration;

use corbie::knowledge::document::PutOutcome;
use corbie::knowledge::store::postgres::{Address, Store};
use corbie::knowledge::store::{self, Options};
use corbie::knowledge::task::TaskLink;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::database::{Database, OpenTransaction};
use crate::database_proxy::{DatabaseProxy, ProxyMode};
use crate::fixture::{StoreLocation, default_base, document, eventually, put, store_location};

/// Connections of one instance, without the heartbeat connection.
const CONNECTIONS: usize = 10;

/// Blocks writes to the documents table.
fn lock_documents(database: &Database) -> OpenTransaction {
    database.hold_transaction("LOCK TABLE corbie.documents IN EXCLUSIVE MODE")
}

/// Occupies all connections of a store with writes that block.
async fn exhaust_connections(database: &Database, store: &Store) -> (OpenTransaction, JoinSet<PutOutcome>) {
    // The first put creates the base.
    put(store, document("first.pdf", 1)).await;
    let (held, mut writing) = (lock_documents(database), JoinSet::new());
    for number in 0..CONNECTIONS {
        let (store, new) = (store.clone(), document(&format!("{number}.pdf"), 1));
        writing.spawn(async move { store.put_document(new, TaskLink::Standalone).await.unwrap() });
    }
    let all = format!(
        "SELECT count(*) >= {CONNECTIONS} FROM pg_stat_activity \
         WHERE datname = current_database() AND wait_event_type = 'Lock'"
    );
    eventually("all to wait", async || (database.query(&all) == ["t"]).then_some(())).await;
    (held, writing)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_is_told_how_long_the_server_may_let_it_wait() {
    let home = store_location();
    let store::Store::Shared(store) = home.open().await else { return };
    let StoreLocation::Database(database) = &home else { return };
    database.query(
        "CREATE TABLE public.told (writes text, pid int, limits text); \
         CREATE FUNCTION public.tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         INSERT INTO public.told VALUES (TG_TABLE_NAME, pg_backend_pid(), concat_ws(' ', \
         current_setting('statement_timeout'), current_setting('lock_timeout'), \
         current_setting('idle_in_transaction_session_timeout'))); RETURN NEW; END $$; \
         CREATE TRIGGER tell BEFORE INSERT ON corbie.documents FOR EACH ROW EXECUTE FUNCTION public.tell(); \
         CREATE TRIGGER tell BEFORE INSERT ON corbie.instances FOR EACH ROW EXECUTE FUNCTION public.tell()",
    );
    let (held, writing) = exhaust_connections(database, &store).await;
    drop(held);
    writing.join_all().await;
    let pids = database.query("SELECT DISTINCT pid FROM public.told WHERE writes = 'documents'");
    assert_eq!(pids.len(), CONNECTIONS);
    let limits =
        |writes: &str| database.query(&format!("SELECT DISTINCT limits FROM public.told WHERE writes = '{writes}'"));
    assert_eq!(limits("documents"), ["30s 10s 10s"]);
    // Heartbeats have a separate connection and wait for no lock.
    let beats = eventually("a heartbeat", async || Some(limits("instances")).filter(|limits| !limits.is_empty())).await;
    assert_eq!(beats, ["30s 500ms 10s"]);
}

/// A store whose server enforces a shorter timeout than configured.
async fn store_with_limit(database: &Database, limit: &'static str, shorter: &'static str) -> (DatabaseProxy, Store) {
    // The tables are created without the shorter timeout.
    drop(store::Store::connect(&database.url(), Options::default()).await.unwrap());
    let door = DatabaseProxy::open(database, ProxyMode::Rewrite(limit, shorter)).await;
    let address = Address::parse(&door.url("127.0.0.1", "sslmode=disable")).unwrap();
    let store = Store::connect(&address, &[], Options::default()).await.unwrap();
    (door, store)
}

/// The next put times out, and the one after it succeeds.
async fn assert_busy_until(store: &Store, let_go: impl FnOnce()) {
    let began = Instant::now();
    let error = store.put_document(document("late.pdf", 1), TaskLink::Standalone).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), ("storage_busy", true), "{error}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let_go();
    put(store, document("late.pdf", 1)).await;
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 1, "nothing was left of the first attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_outlasts_its_limit_is_told_as_busy() {
    let Some(database) = Database::if_configured() else { return };
    let (_door, store) = store_with_limit(&database, "statement_timeout = '30s'", "statement_timeout = '03s'").await;
    database.query(
        "CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_sleep(15); RETURN NEW; END $$; \
         CREATE TRIGGER dawdle BEFORE INSERT ON corbie.documents FOR EACH ROW EXECUTE FUNCTION public.dawdle()",
    );
    assert_busy_until(&store, || drop(database.query("DROP TRIGGER dawdle ON corbie.documents"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_not_to_be_had_is_told_as_busy() {
    let Some(database) = Database::if_configured() else { return };
    let (_door, store) = store_with_limit(&database, "lock_timeout = '10s'", "lock_timeout = '02s'").await;
    let held = lock_documents(&database);
    assert_busy_until(&store, || drop(held)).await;
}

/// The ten seconds pass on the paused clock; calls that wait for the server take real time.
#[tokio::test]
async fn who_gets_no_connection_in_time_is_told_that_it_is_busy() {
    let home = store_location();
    let store::Store::Shared(store) = home.open().await else { return };
    let StoreLocation::Database(database) = &home else { return };
    let (held, writing) = exhaust_connections(database, &store).await;
    tokio::time::pause();
    let began = Instant::now();
    let error = store.totals(&default_base()).await.unwrap_err();
    let waited = began.elapsed();
    tokio::time::resume();
    assert_eq!((error.kind(), error.is_retryable()), ("storage_busy", true), "{error}");
    assert!((10..12).contains(&waited.as_secs()), "{waited:?}");
    drop(held);
    let put = writing.join_all().await;
    assert!(put.iter().all(|put| matches!(put, PutOutcome::Written(_))), "{put:?}");
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, CONNECTIONS as u64 + 1);
}
