//! Backup, integrity check and repair, including damaged files.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use corbie::knowledge::document::Status;
use corbie::knowledge::store::sqlite::{Changes, Glance, Loss, Store, glance};
use corbie::knowledge::store::{Error, Listing, Look, Options, Standing, Turn, Watched};
use rusqlite::Connection;

use crate::fixture::{base, document, folder, open, put};

fn database(folder: &Path) -> PathBuf {
    folder.join("knowledge.db")
}

/// A closed store with this many documents of ten chunks.
async fn filled(folder: &Path, documents: usize) {
    let store = open(folder);
    for number in 0..documents {
        put(&store, document(&format!("{number}.pdf"), 10)).await;
    }
}

/// Overwrites some bytes, like a failing disk.
fn spoil(path: &Path, at: u64, bytes: usize) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&vec![0xA5; bytes]).unwrap();
}

#[tokio::test]
async fn a_backup_is_made_while_the_store_is_in_use_and_put_back() {
    let folder = folder();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy.db"));
    let store = open(&data);
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
    store.clear(&base()).await.unwrap();
    let (history, sequence) = (store.history().to_owned(), store.sequence().await.unwrap());
    assert!(matches!(Store::restore(&data, &copy), Err(Error::InUse)), "while it is open");
    drop(store);

    let aside = Store::restore(&data, &copy).unwrap().unwrap();
    let store = open(&data);
    assert!(store.document(&base(), first.id).await.unwrap().is_some());
    assert!(store.check().await.unwrap().is_sound());
    assert_ne!(store.history(), history, "numbers of changes mean something else now");
    assert_eq!(store.changes_since(sequence).await.unwrap(), Changes::TooOld);
    put(&store, document("new.pdf", 3)).await;
    let old: i64 =
        Connection::open(aside).unwrap().query_row("SELECT count(*) FROM documents", [], |r| r.get(0)).unwrap();
    assert_eq!(old, 0, "the store there was is kept");
    assert!(copy.exists());
}

#[tokio::test]
async fn a_backup_overwrites_nothing() {
    let folder = folder();
    let store = open(&folder.path().join("data"));
    let there = folder.path().join("there");
    fs::write(&there, "mine").unwrap();
    let error = store.backup(&there).await.unwrap_err();
    assert!(matches!(error, Error::Exists(_)), "{error}");
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
    assert!(store.backup(&folder.path().join("no/such/folder.db")).await.is_err());
}

#[tokio::test]
async fn a_damaged_or_foreign_backup_is_refused_and_the_store_stays() {
    let folder = folder();
    let data = folder.path().join("data");
    filled(&data, 20).await;
    let backup = async |name: &str| {
        let path = folder.path().join(name);
        open(&data).backup(&path).await.unwrap();
        path
    };
    let damaged = backup("damaged").await;
    spoil(&damaged, fs::metadata(&damaged).unwrap().len() / 2, 20_000);
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
    assert_eq!((left.count(), open(&data).totals(&base()).await.unwrap().documents), (0, 20));
}

#[tokio::test]
async fn a_backup_is_restored_where_there_was_nothing() {
    let folder = folder();
    let copy = folder.path().join("copy.db");
    let store = open(&folder.path().join("data"));
    put(&store, document("engine.pdf", 3)).await;
    store.backup(&copy).await.unwrap();
    let elsewhere = folder.path().join("elsewhere");
    assert_eq!(Store::restore(&elsewhere, &copy).unwrap(), None);
    assert_eq!(open(&elsewhere).totals(&base()).await.unwrap().chunks, 3);
}

#[tokio::test]
async fn a_sound_store_is_left_as_it_is() {
    let folder = folder();
    filled(folder.path(), 3).await;
    let history = open(folder.path()).history().to_owned();
    let repaired = Store::repair(folder.path()).unwrap();
    assert_eq!((repaired.problems, repaired.set_aside, repaired.documents, repaired.chunks), (vec![], None, 3, 30));
    let store = open(folder.path());
    assert_eq!(store.history(), history);
    assert!(matches!(Store::repair(folder.path()), Err(Error::InUse)));
}

#[tokio::test]
async fn a_check_finds_what_does_not_agree_and_a_repair_mends_it() {
    let folder = folder();
    filled(folder.path(), 3).await;
    Connection::open(database(folder.path()))
        .unwrap()
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             UPDATE documents SET chunk_count = 99 WHERE key = 1;
             DELETE FROM chunks WHERE document = 2 AND ordinal = 4;
             DELETE FROM documents WHERE key = 3;
             UPDATE vectors SET codes = x'0102' WHERE chunk = 1;",
        )
        .unwrap();
    let store = open(folder.path());
    let report = store.check().await.unwrap();
    let has =
        |words: &str| assert!(report.problems.iter().any(|problem| problem.contains(words)), "{words}: {report:?}");
    has("belongs to no row of documents");
    has("belongs to no row of chunks");
    has("`1.pdf` has (10, 9, 18)");
    has("the vectors of chunk 1 cannot be read");
    drop(store);

    let repaired = Store::repair(folder.path()).unwrap();
    assert_eq!((repaired.set_aside, repaired.documents, repaired.chunks), (None, 2, 19));
    let incomplete: Vec<&str> = repaired.loss.incomplete.iter().map(|document| document.filename.as_str()).collect();
    assert_eq!((incomplete, repaired.loss.lost, repaired.loss.unnamed), (vec!["0.pdf", "1.pdf"], vec![], 1));
    let store = open(folder.path());
    assert!(store.check().await.unwrap().is_sound());
    let listed = store.documents(&base(), Listing::default()).await.unwrap();
    assert!(listed.documents.iter().all(|document| document.warning.is_some()));
}

#[tokio::test]
async fn an_index_that_lies_is_made_anew() {
    let folder = folder();
    filled(folder.path(), 5).await;
    // An index without rows, as if its writes had been lost.
    let connection = Connection::open(database(folder.path())).unwrap();
    connection
        .execute_batch(
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, '(base, sha256)', '(base, filename)') WHERE name = 'documents_content';
             PRAGMA writable_schema = RESET;",
        )
        .unwrap();
    drop(connection);
    assert!(!open(folder.path()).check().await.unwrap().is_sound());
    let repaired = Store::repair(folder.path()).unwrap();
    assert_eq!((repaired.set_aside.is_some(), repaired.documents, repaired.loss), (true, 5, Loss::default()));
    assert!(open(folder.path()).check().await.unwrap().is_sound());
}

#[tokio::test]
async fn damaged_pages_cost_what_stood_on_them_and_no_more() {
    let folder = folder();
    filled(folder.path(), 60).await;
    let path = database(folder.path());
    let size = fs::metadata(&path).unwrap().len();
    // Three pages in the middle of the file, far from the schema.
    spoil(&path, (size / 2) / 8192 * 8192, 3 * 8192);
    let damaged = fs::read(&path).unwrap();
    let found = match Store::open(folder.path(), Options::default()) {
        Ok(store) => store.check().await.is_ok_and(|report| report.is_sound()),
        Err(_) => false,
    };
    assert!(!found, "the damage is noticed");

    let repaired = Store::repair(folder.path()).unwrap();
    let aside = repaired.set_aside.unwrap();
    assert!(fs::read(aside).unwrap() == damaged, "the damaged file is kept as it was");
    assert!(repaired.documents >= 55 && repaired.chunks >= 500, "{} {}", repaired.documents, repaired.chunks);
    let store = open(folder.path());
    assert!(store.check().await.unwrap().is_sound());
    let mut keys = 0;
    for live in store.live().await.unwrap().documents {
        keys += store.chunks(&live.chunks).await.unwrap().len() as u64;
        let document = store.document(&base(), live.id).await.unwrap().unwrap();
        let whole = document.chunk_count == 10 && document.vector_count == 20 && document.page_count == 10;
        assert_eq!(document.status, if whole { Status::Completed } else { Status::Partial });
    }
    assert_eq!(keys, repaired.chunks);
    assert_eq!(put(&store, document("new.pdf", 10)).await.chunks, 601..611, "keys are never used again");
}

#[tokio::test]
async fn a_file_that_was_cut_off_gives_what_is_left() {
    let folder = folder();
    filled(folder.path(), 60).await;
    let path = database(folder.path());
    let size = fs::metadata(&path).unwrap().len();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(size * 3 / 4 / 8192 * 8192).unwrap();
    let repaired = Store::repair(folder.path()).unwrap();
    assert!(repaired.set_aside.is_some() && repaired.chunks > 100, "{repaired:?}");
    assert!(open(folder.path()).check().await.unwrap().is_sound());
}

#[tokio::test]
async fn a_file_that_cannot_be_read_at_all_is_set_aside() {
    let folder = folder();
    filled(folder.path(), 3).await;
    spoil(&database(folder.path()), 0, 8192);
    let error = Store::open(folder.path(), Options::default()).unwrap_err();
    assert_eq!(error.kind(), "storage_corrupt", "{error}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
    let repaired = Store::repair(folder.path()).unwrap();
    assert!(repaired.set_aside.unwrap().exists());
    assert_eq!((repaired.documents, repaired.problems.len(), repaired.unreadable), (0, 1, true));
    put(&open(folder.path()), document("new.pdf", 2)).await;
}

#[tokio::test]
async fn what_belongs_to_tasks_and_documents_that_are_gone_goes_with_them() {
    let folder = folder();
    filled(folder.path(), 1).await;
    Connection::open(database(folder.path()))
        .unwrap()
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO imported (task, document, replaced) VALUES (99, x'01', 0);
             INSERT INTO copies (document, path) VALUES (99, '/gone.pdf');",
        )
        .unwrap();
    assert!(!open(folder.path()).check().await.unwrap().is_sound());
    let repaired = Store::repair(folder.path()).unwrap();
    assert_eq!((repaired.set_aside, repaired.documents, repaired.unreadable), (None, 1, false));
    assert!(open(folder.path()).check().await.unwrap().is_sound());
}

/// The check stops at its deadline, even in the middle; damage is reported if found in time.
#[tokio::test]
async fn a_glance_ends_with_its_time() {
    let folder = folder();
    filled(folder.path(), 20).await;
    let long = Duration::from_secs(600);
    assert_eq!(glance(folder.path(), None, Duration::ZERO).unwrap(), Glance::Unfinished);
    assert_eq!(glance(folder.path(), None, long).unwrap(), Glance::Whole);
    let length = fs::metadata(database(folder.path())).unwrap().len();
    spoil(&database(folder.path()), length / 2, 8192);
    assert!(matches!(glance(folder.path(), None, long), Err(Error::Corrupt(_))));
}

#[tokio::test]
async fn documents_that_were_lost_are_wanted_again_and_those_that_were_removed_are_not() {
    let folder = folder();
    let store = open(folder.path());
    let (removed, lost, kept) = (document("removed", 1), document("lost", 1), document("kept", 1));
    for new in [&removed, &lost, &kept] {
        put(&store, new.clone()).await;
        let look = Look { modified: None, size: new.size_bytes };
        let (path, standing) = (new.filename.clone(), Standing::Settled(Some(new.id)));
        let after = Watched { path, look, device: 1, inode: 1, changed: None, standing };
        assert_eq!(store.turn_watched(&base(), vec![Turn { before: None, after }]).await.unwrap(), [true]);
    }
    store.remove_document(&base(), removed.id).await.unwrap().unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(folder.path().join("knowledge.db")).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM documents WHERE filename = 'lost';").unwrap();
    drop(connection);
    Store::repair(folder.path()).unwrap();
    let store = open(folder.path());
    let rows = store.watched(&base()).await.unwrap();
    let standing = |path: &str| rows.iter().find(|row| row.path == path).unwrap().standing;
    assert_eq!(standing("removed"), Standing::Settled(None));
    assert_eq!(standing("lost"), Standing::Waiting);
    assert_eq!(standing("kept"), Standing::Settled(Some(kept.id)));
}
