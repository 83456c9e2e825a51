//! Files of older and newer schema versions.

use corbie::knowledge::store::sqlite::{Store, VERSION};
use corbie::knowledge::store::{Error, Options};
use corbie::knowledge::task::TaskState;
use rusqlite::Connection;

use crate::fixture::{default_base, document, open_sqlite, put, temp_folder};

const FIRST_MIGRATION: &str = include_str!("../../crates/knowledge/src/store/sqlite/migrations/0001_first.sql");

/// A file as written by the first version, with a document and a running task.
fn write_first_version(path: &std::path::Path) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(FIRST_MIGRATION).unwrap();
    connection
        .execute_batch(
            "PRAGMA application_id = 1668248162; PRAGMA user_version = 1;
             INSERT INTO meta VALUES ('history', 'first');
             INSERT INTO bases VALUES (1, 'default', 1, 2);
             INSERT INTO documents VALUES (1, randomblob(16), 1, 'old.pdf', NULL, 'added', NULL, 'pdf', 10, zeroblob(32), 5, 6,
                 'completed', 'ocr', '{\"a\":1}', 'minilm', 0, 1, 0, NULL);
             INSERT INTO chunks VALUES (1, randomblob(16), 1, 0, 1, 1, 3, '[]', 'old words');
             INSERT INTO changes VALUES (1, 1, 1, 'put', 'somebody');
             INSERT INTO tasks VALUES (1, randomblob(16), 1, 'ada', 'add', '{}', NULL, NULL, NULL, NULL, 'running', 1, 2, NULL,
                 2, 1, 'somebody', NULL, NULL, NULL);",
        )
        .unwrap();
}

#[tokio::test]
async fn a_file_of_the_first_version_is_brought_up_to_date() {
    let folder = temp_folder();
    write_first_version(&folder.path().join("knowledge.db"));
    let store = open_sqlite(folder.path());
    assert_eq!((store.history(), store.sequence().await.unwrap()), ("first", 1));
    assert_eq!(store.chunks(&[1]).await.unwrap()[0].text, "old words");
    let tasks = store.tasks(None, 9).await.unwrap();
    assert_eq!((&tasks[0].state, tasks[0].interrupted), (&TaskState::Queued, true), "it ran in a process that is gone");
    assert_eq!(store.adopt_orphaned_tasks().await.unwrap().len(), 1, "nobody has that name");
    put(&store, document("engine.pdf", 2)).await;
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 2);
    assert!(store.check().await.unwrap().is_consistent());
    drop(store);
    let version: i64 = Connection::open(folder.path().join("knowledge.db"))
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, VERSION);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_left_alone() {
    let folder = temp_folder();
    put(&open_sqlite(folder.path()), document("engine.pdf", 2)).await;
    let path = folder.path().join("knowledge.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", VERSION + 1).unwrap();
    let error = Store::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(error, Error::NewerSchema { found, .. } if found == VERSION + 1), "{error}");
    assert!(error.to_string().contains("update corbie"), "{error}");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", VERSION).unwrap();
    assert_eq!(open_sqlite(folder.path()).totals(&default_base()).await.unwrap().documents, 1);
}

#[test]
fn many_may_open_a_new_store_at_once() {
    let folder = temp_folder();
    let stores: Vec<Store> = std::thread::scope(|scope| {
        let opening: Vec<_> = (0..8).map(|_| scope.spawn(|| open_sqlite(folder.path()))).collect();
        opening.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(stores.iter().all(|store| store.history() == stores[0].history()));
}
