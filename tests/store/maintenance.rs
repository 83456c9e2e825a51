//! Backup, integrity check and repair, including damaged files.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use corbie::knowledge::document::Status;
use corbie::knowledge::store::sqlite::{ChangesSince, DamageReport, QuickCheck, Store, quick_check};
use corbie::knowledge::store::{DocumentListQuery, Error, FileStamp, IngestState, Options, RowUpdate, WatchedFile};
use rusqlite::Connection;

use crate::fixture::{default_base, document, open_sqlite, put, temp_folder};

fn database_path(folder: &Path) -> PathBuf {
    folder.join("knowledge.db")
}

/// A closed store with this many documents of ten chunks.
async fn populate(folder: &Path, documents: usize) {
    let store = open_sqlite(folder);
    for number in 0..documents {
        put(&store, document(&format!("{number}.pdf"), 10)).await;
    }
}

/// Overwrites some bytes, like a failing disk.
fn corrupt(path: &Path, at: u64, bytes: usize) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&vec![0xA5; bytes]).unwrap();
}

#[tokio::test]
async fn a_backup_is_made_while_the_store_is_in_use_and_put_back() {
    let folder = temp_folder();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy.db"));
    let store = open_sqlite(&data);
    let first = document("engine.pdf", 3);
    put(&store, first.clone()).await;
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..20 {
                put(&store, document(&format!("{number}.pdf"), 5)).await;
            }
        })
    };
    store.backup(&copy).await.unwrap();
    writer.await.unwrap();
    store.clear(&default_base()).await.unwrap();
    let (history, sequence) = (store.history().to_owned(), store.sequence().await.unwrap());
    assert!(matches!(Store::restore(&data, &copy), Err(Error::InUse)), "while it is open");
    drop(store);

    let aside = Store::restore(&data, &copy).unwrap().unwrap();
    let store = open_sqlite(&data);
    assert!(store.document(&default_base(), first.id).await.unwrap().is_some());
    assert!(store.check().await.unwrap().is_consistent());
    assert_ne!(store.history(), history, "numbers of changes mean something else now");
    assert_eq!(store.changes_since(sequence).await.unwrap(), ChangesSince::TooOld);
    put(&store, document("new.pdf", 3)).await;
    let old: i64 =
        Connection::open(aside).unwrap().query_row("SELECT count(*) FROM documents", [], |r| r.get(0)).unwrap();
    assert_eq!(old, 0, "the store there was is kept");
    assert!(copy.exists());
}

#[tokio::test]
async fn a_backup_overwrites_nothing() {
    let folder = temp_folder();
    let store = open_sqlite(&folder.path().join("data"));
    let there = folder.path().join("there");
    fs::write(&there, "mine").unwrap();
    let error = store.backup(&there).await.unwrap_err();
    assert!(matches!(error, Error::Exists(_)), "{error}");
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
    assert!(store.backup(&folder.path().join("no/such/folder.db")).await.is_err());
}

#[tokio::test]
async fn a_damaged_or_foreign_backup_is_refused_and_the_store_stays() {
    let folder = temp_folder();
    let data = folder.path().join("data");
    populate(&data, 20).await;
    let backup = async |name: &str| {
        let path = folder.path().join(name);
        open_sqlite(&data).backup(&path).await.unwrap();
        path
    };
    let damaged = backup("damaged").await;
    corrupt(&damaged, fs::metadata(&damaged).unwrap().len() / 2, 20_000);
    let cut = backup("cut").await;
    OpenOptions::new().write(true).open(&cut).unwrap().set_len(30_000).unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "hello ".repeat(9999)).unwrap();
    let newer = backup("newer").await;
    Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    for (from, kind) in [
        (&damaged, "storage_corrupt"),
        (&cut, "storage_corrupt"),
        (&text, "storage_not_a_knowledge_base"),
        (&empty, "storage_not_a_knowledge_base"),
        (&newer, "storage_schema_too_new"),
        (&folder.path().join("none"), "storage_io"),
        (&data, "storage_not_a_knowledge_base"),
    ] {
        let error = Store::restore(&data, from).unwrap_err();
        assert_eq!(error.kind(), kind, "{}: {error}", from.display());
    }
    let left = fs::read_dir(&data)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("restoring"));
    assert_eq!((left.count(), open_sqlite(&data).totals(&default_base()).await.unwrap().documents), (0, 20));
}

#[tokio::test]
async fn a_backup_is_restored_where_there_was_nothing() {
    let folder = temp_folder();
    let copy = folder.path().join("copy.db");
    let store = open_sqlite(&folder.path().join("data"));
    put(&store, document("engine.pdf", 3)).await;
    store.backup(&copy).await.unwrap();
    let elsewhere = folder.path().join("elsewhere");
    assert_eq!(Store::restore(&elsewhere, &copy).unwrap(), None);
    assert_eq!(open_sqlite(&elsewhere).totals(&default_base()).await.unwrap().chunks, 3);
}

#[tokio::test]
async fn a_sound_store_is_left_as_it_is() {
    let folder = temp_folder();
    populate(folder.path(), 3).await;
    let history = open_sqlite(folder.path()).history().to_owned();
    let repaired = Store::repair(folder.path()).unwrap();
    assert_eq!((repaired.problems, repaired.preserved_as, repaired.documents, repaired.chunks), (vec![], None, 3, 30));
    let store = open_sqlite(folder.path());
    assert_eq!(store.history(), history);
    assert!(matches!(Store::repair(folder.path()), Err(Error::InUse)));
}

#[tokio::test]
async fn a_check_finds_what_does_not_agree_and_a_repair_mends_it() {
    let folder = temp_folder();
    populate(folder.path(), 3).await;
    Connection::open(database_path(folder.path()))
        .unwrap()
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             UPDATE documents SET chunk_count = 99 WHERE key = 1;
             DELETE FROM chunks WHERE document = 2 AND ordinal = 4;
             DELETE FROM documents WHERE key = 3;
             UPDATE vectors SET codes = x'0102' WHERE chunk = 1;",
        )
        .unwrap();
    let store = open_sqlite(folder.path());
    let report = store.check().await.unwrap();
    let has =
        |words: &str| assert!(report.problems.iter().any(|problem| problem.contains(words)), "{words}: {report:?}");
    has("has no row in documents");
    has("has no row in chunks");
    has("`1.pdf` has (10, 9, 18)");
    has("vectors of chunk 1 are corrupt");
    drop(store);

    let repaired = Store::repair(folder.path()).unwrap();
    assert_eq!((repaired.preserved_as, repaired.documents, repaired.chunks), (None, 2, 19));
    let incomplete: Vec<&str> = repaired.damage.incomplete.iter().map(|document| document.filename.as_str()).collect();
    assert_eq!((incomplete, repaired.damage.lost, repaired.damage.unnamed_lost), (vec!["0.pdf", "1.pdf"], vec![], 1));
    let store = open_sqlite(folder.path());
    assert!(store.check().await.unwrap().is_consistent());
    let listed = store.documents(&default_base(), DocumentListQuery::default()).await.unwrap();
    assert!(listed.documents.iter().all(|document| document.warning.is_some()));
}

#[tokio::test]
async fn an_index_that_lies_is_made_anew() {
    let folder = temp_folder();
    populate(folder.path(), 5).await;
    // An index without rows, as if its writes had been lost.
    let connection = Connection::open(database_path(folder.path())).unwrap();
    connection
        .execute_batch(
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, '(base, sha256)', '(base, filename)') WHERE name = 'documents_content';
             PRAGMA writable_schema = RESET;",
        )
        .unwrap();
    drop(connection);
    assert!(!open_sqlite(folder.path()).check().await.unwrap().is_consistent());
    let repaired = Store::repair(folder.path()).unwrap();
    assert_eq!(
        (repaired.preserved_as.is_some(), repaired.documents, repaired.damage),
        (true, 5, DamageReport::default())
    );
    assert!(open_sqlite(folder.path()).check().await.unwrap().is_consistent());
}

#[tokio::test]
async fn damaged_pages_cost_what_stood_on_them_and_no_more() {
    let folder = temp_folder();
    populate(folder.path(), 60).await;
    let path = database_path(folder.path());
    let size = fs::metadata(&path).unwrap().len();
    // Three pages in the middle of the file, far from the schema.
    corrupt(&path, (size / 2) / 8192 * 8192, 3 * 8192);
    let damaged = fs::read(&path).unwrap();
    let found = match Store::open(folder.path(), Options::default()) {
        Ok(store) => store.check().await.is_ok_and(|report| report.is_consistent()),
        Err(_) => false,
    };
    assert!(!found, "the damage is noticed");

    let repaired = Store::repair(folder.path()).unwrap();
    let aside = repaired.preserved_as.unwrap();
    assert!(fs::read(aside).unwrap() == damaged, "the damaged file is kept as it was");
    assert!(repaired.documents >= 55 && repaired.chunks >= 500, "{} {}", repaired.documents, repaired.chunks);
    let store = open_sqlite(folder.path());
    assert!(store.check().await.unwrap().is_consistent());
    let mut keys = 0;
    for live in store.live_snapshot().await.unwrap().documents {
        keys += store.chunks(&live.chunks).await.unwrap().len() as u64;
        let document = store.document(&default_base(), live.id).await.unwrap().unwrap();
        let whole = document.chunk_count == 10 && document.vector_count == 20 && document.page_count == 10;
        assert_eq!(document.status, if whole { Status::Completed } else { Status::Partial });
    }
    assert_eq!(keys, repaired.chunks);
    assert_eq!(put(&store, document("new.pdf", 10)).await.chunks, 601..611, "keys are never used again");
}

#[tokio::test]
async fn a_file_that_was_cut_off_gives_what_is_left() {
    let folder = temp_folder();
    populate(folder.path(), 60).await;
    let path = database_path(folder.path());
    let size = fs::metadata(&path).unwrap().len();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(size * 3 / 4 / 8192 * 8192).unwrap();
    let repaired = Store::repair(folder.path()).unwrap();
    assert!(repaired.preserved_as.is_some() && repaired.chunks > 100, "{repaired:?}");
    assert!(open_sqlite(folder.path()).check().await.unwrap().is_consistent());
}

#[tokio::test]
async fn a_file_that_cannot_be_read_at_all_is_set_aside() {
    let folder = temp_folder();
    populate(folder.path(), 3).await;
    corrupt(&database_path(folder.path()), 0, 8192);
    let error = Store::open(folder.path(), Options::default()).unwrap_err();
    assert_eq!(error.kind(), "storage_corrupt", "{error}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
    let repaired = Store::repair(folder.path()).unwrap();
    assert!(repaired.preserved_as.unwrap().exists());
    assert_eq!((repaired.documents, repaired.problems.len(), repaired.unreadable), (0, 1, true));
    put(&open_sqlite(folder.path()), document("new.pdf", 2)).await;
}

#[tokio::test]
async fn what_belongs_to_tasks_and_documents_that_are_gone_goes_with_them() {
    let folder = temp_folder();
    populate(folder.path(), 1).await;
    Connection::open(database_path(folder.path()))
        .unwrap()
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO imported (task, document, replaced) VALUES (99, x'01', 0);
             INSERT INTO copies (document, path) VALUES (99, '/gone.pdf');",
        )
        .unwrap();
    assert!(!open_sqlite(folder.path()).check().await.unwrap().is_consistent());
    let repaired = Store::repair(folder.path()).unwrap();
    assert_eq!((repaired.preserved_as, repaired.documents, repaired.unreadable), (None, 1, false));
    assert!(open_sqlite(folder.path()).check().await.unwrap().is_consistent());
}

/// The check stops at its deadline, even in the middle; damage is reported if found in time.
#[tokio::test]
async fn a_glance_ends_with_its_time() {
    let folder = temp_folder();
    populate(folder.path(), 20).await;
    let long = Duration::from_secs(600);
    assert_eq!(quick_check(folder.path(), None, Duration::ZERO).unwrap(), QuickCheck::TimedOut);
    assert_eq!(quick_check(folder.path(), None, long).unwrap(), QuickCheck::Consistent);
    let length = fs::metadata(database_path(folder.path())).unwrap().len();
    corrupt(&database_path(folder.path()), length / 2, 8192);
    assert!(matches!(quick_check(folder.path(), None, long), Err(Error::Corrupt(_))));
}

#[tokio::test]
async fn documents_that_were_lost_are_wanted_again_and_those_that_were_removed_are_not() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    let (removed, lost, kept) = (document("removed", 1), document("lost", 1), document("kept", 1));
    for new in [&removed, &lost, &kept] {
        put(&store, new.clone()).await;
        let look = FileStamp { modified: None, size: new.size_bytes };
        let (path, standing) = (new.filename.clone(), IngestState::Done(Some(new.id)));
        let after = WatchedFile { path, stamp: look, device: 1, inode: 1, ctime: None, state: standing };
        assert_eq!(
            store.update_watched_files(&default_base(), vec![RowUpdate { before: None, after }]).await.unwrap(),
            [true]
        );
    }
    store.remove_document(&default_base(), removed.id).await.unwrap().unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(folder.path().join("knowledge.db")).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM documents WHERE filename = 'lost';").unwrap();
    drop(connection);
    Store::repair(folder.path()).unwrap();
    let store = open_sqlite(folder.path());
    let rows = store.watched_files(&default_base()).await.unwrap();
    let standing = |path: &str| rows.iter().find(|row| row.path == path).unwrap().state;
    assert_eq!(standing("removed"), IngestState::Done(None));
    assert_eq!(standing("lost"), IngestState::Pending);
    assert_eq!(standing("kept"), IngestState::Done(Some(kept.id)));
}
