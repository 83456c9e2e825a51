//! Damage of the write-ahead log: it is reported until a repair, and the repair names the documents that were lost with it.

use std::fs;
use std::path::{Path, PathBuf};

use corbie::knowledge::store::sqlite::Store;
use corbie::knowledge::store::{Error, Options};

use crate::fixture::{document, open_sqlite, put, temp_folder};

/// Bytes of the header of the log, of the header of a frame, and of a page.
const HEADER: usize = 32;
const FRAME: usize = 24 + 8192;

/// A folder with the files of a process that was killed: three documents in the database and three in its log.
async fn killed(to: &Path) -> PathBuf {
    let from = temp_folder();
    let store = open_sqlite(from.path());
    for number in 0..3 {
        put(&store, document(&format!("{number}.pdf"), 2)).await;
    }
    drop(store);
    let store = open_sqlite(from.path());
    for number in 3..6 {
        put(&store, document(&format!("{number}.pdf"), 2)).await;
    }
    for name in ["knowledge.db", "knowledge.db-wal"] {
        fs::copy(from.path().join(name), to.join(name)).unwrap();
    }
    drop(store);
    to.join("knowledge.db-wal")
}

/// Flips a bit in this frame, counted from 0.
fn flip(log: &Path, frame: usize) {
    let mut bytes = fs::read(log).unwrap();
    bytes[HEADER + frame * FRAME + 24 + 4000] ^= 4;
    fs::write(log, bytes).unwrap();
}

fn frames(log: &Path) -> usize {
    (fs::metadata(log).unwrap().len() as usize - HEADER) / FRAME
}

async fn problems(folder: &Path) -> Vec<String> {
    open_sqlite(folder).check().await.unwrap().problems
}

#[tokio::test]
async fn damage_of_the_log_is_reported_by_every_check_until_a_repair_names_the_lost_documents() {
    let folder = temp_folder();
    let log = killed(folder.path()).await;
    let whole = fs::read(&log).unwrap();
    assert_eq!(problems(folder.path()).await, Vec::<String>::new(), "an intact log is merged");

    let folder = crate::fixture::temp_folder();
    let log = killed(folder.path()).await;
    assert!(frames(&log) > 3 && !whole.is_empty());
    flip(&log, 0);
    // SQLite removes the log when the store closes.
    for _ in 0..3 {
        let found = problems(folder.path()).await;
        assert!(found[0].contains("write-ahead log") && found[0].contains("knowledge.db-wal.damaged-1"), "{found:?}");
    }
    let repaired = Store::repair(folder.path()).unwrap();
    let lost: Vec<&str> = repaired.damage.lost.iter().map(|document| document.filename.as_str()).collect();
    assert_eq!((lost, repaired.documents), (vec!["3.pdf", "4.pdf", "5.pdf"], 3));
    let [log] = &repaired.logs[..] else { panic!("{repaired:?}") };
    assert!(log.copy.ends_with("knowledge.db-wal.reported-1") && log.copy.exists() && log.lost >= 3, "{log:?}");
    assert_eq!(problems(folder.path()).await, Vec::<String>::new());
    assert_eq!(Store::repair(folder.path()).unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_flip_in_the_last_commit_of_the_log_is_damage_and_not_an_interrupted_write() {
    let folder = temp_folder();
    let log = killed(folder.path()).await;
    flip(&log, frames(&log) - 1);
    let found = problems(folder.path()).await;
    assert!(found.first().is_some_and(|problem| problem.contains("write-ahead log")), "{found:?}");
}

#[tokio::test]
async fn an_empty_database_beside_a_log_with_documents_is_damage() {
    let folder = temp_folder();
    killed(folder.path()).await;
    fs::write(folder.path().join("knowledge.db"), []).unwrap();
    let error = Store::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(&error, Error::Corrupt(why) if why.contains("write-ahead log")), "{error}");
    let repaired = Store::repair(folder.path()).unwrap();
    assert!(repaired.unreadable && repaired.documents == 0, "{repaired:?}");
    assert!(repaired.damage.lost.iter().any(|document| document.filename == "5.pdf"), "{repaired:?}");
    put(&open_sqlite(folder.path()), document("new.pdf", 1)).await;
}

#[tokio::test]
async fn the_database_of_another_store_beside_an_index_is_refused_until_it_was_restored() {
    let (first, second) = (temp_folder(), temp_folder());
    let index = first.path().join("index");
    let with_index = || Options { index: Some(index.clone()), ..Options::default() };
    let store = open_sqlite(first.path());
    put(&store, document("first.pdf", 1)).await;
    store.bind_index(&index).await.unwrap();
    drop(store);
    drop(Store::open(first.path(), with_index()).unwrap());

    let other = open_sqlite(second.path());
    let backup = second.path().join("backup.db");
    other.backup(&backup).await.unwrap();
    drop(other);
    fs::copy(second.path().join("knowledge.db"), first.path().join("knowledge.db")).unwrap();
    let error = Store::open(first.path(), with_index()).unwrap_err();
    assert_eq!(error.kind(), "storage_mismatch", "{error}");
    assert!(Store::check_index(first.path(), &index).is_err(), "nor does a repair call it intact");

    Store::restore(first.path(), &backup).unwrap();
    let store = Store::open(first.path(), with_index()).unwrap();
    store.bind_index(&index).await.unwrap();
    drop(store);
    drop(Store::open(first.path(), with_index()).unwrap());
}
