//! Several processes on the same files, and leftovers of dead ones.

use std::time::Duration;

use corbie::knowledge::store::sqlite::Store;
use corbie::knowledge::store::{Error, Options};
use corbie::knowledge::task::TaskLink;

use crate::crash::start;
use crate::fixture::{default_base, document, open_sqlite, put, temp_folder};

#[tokio::test]
async fn files_of_dead_processes_are_removed() {
    let folder = temp_folder();
    let locks = || std::fs::read_dir(folder.path().join("instances")).unwrap().count();
    let store = open_sqlite(folder.path());
    start(folder.path().to_str().unwrap(), &folder.path().join("acknowledged")).kill().unwrap();
    assert_eq!(locks(), 2);
    drop(store);
    assert_eq!(locks(), 1);
    // The killed process may take some time to exit.
    tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            drop(open_sqlite(folder.path()));
            if locks() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_writer_waits_for_the_other() {
    let folder = temp_folder();
    let stores = [open_sqlite(folder.path()), open_sqlite(folder.path())];
    let mut writing = tokio::task::JoinSet::new();
    for number in 0..40 {
        let store = stores[number % 2].clone();
        writing.spawn(async move { put(&store, document(&format!("{number}.pdf"), 5)).await.sequence });
    }
    let mut sequences = writing.join_all().await;
    sequences.sort_unstable();
    assert_eq!(sequences, (1..=40).collect::<Vec<_>>());
    assert_eq!(stores[0].totals(&default_base()).await.unwrap().chunks, 200);
}

#[tokio::test]
async fn a_writer_that_is_kept_waiting_too_long_says_so() {
    let folder = temp_folder();
    let patience = Options { busy_timeout: Duration::from_millis(20), ..Options::default() };
    let store = Store::open(folder.path(), patience).unwrap();
    let other = rusqlite::Connection::open(folder.path().join("knowledge.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.put_document(document("engine.pdf", 1), TaskLink::Standalone).await.unwrap_err();
    assert!(matches!(error, Error::Busy) && error.is_retryable(), "{error}");
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 0, "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    put(&store, document("engine.pdf", 1)).await;
}
