//! Copies of the database that are kept before its schema is migrated.

use std::fs;
use std::path::Path;

use corbie::knowledge::store::sqlite::{Store, VERSION};
use corbie::knowledge::store::{MigrationCopy, Options};
use rusqlite::Connection;

use crate::fixture::{default_base, document, open_sqlite, put, temp_folder};

/// Turns a store into one of schema 6.
fn downgrade(folder: &Path) {
    let connection = Connection::open(folder.join("knowledge.db")).unwrap();
    connection
        .execute_batch(
            "ALTER TABLE documents DROP COLUMN checksum; ALTER TABLE pages DROP COLUMN checksum;
             ALTER TABLE chunks DROP COLUMN checksum; ALTER TABLE vectors DROP COLUMN checksum;
             ALTER TABLE bases DROP COLUMN checksum; DROP TABLE unchecked; PRAGMA user_version = 6;",
        )
        .unwrap();
}

fn copies(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.contains(".schema-")).collect();
    names.sort();
    names
}

fn documents(path: &Path) -> (i64, i64) {
    let connection = Connection::open(path).unwrap();
    let documents = connection.query_row("SELECT count(*) FROM documents", [], |row| row.get(0)).unwrap();
    (documents, connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap())
}

#[tokio::test]
async fn a_copy_is_kept_before_a_migration_also_of_what_is_in_the_write_ahead_log() {
    let folder = temp_folder();
    put(&open_sqlite(folder.path()), document("engine.pdf", 2)).await;
    downgrade(folder.path());
    // An open connection keeps the log from being written back.
    let other = Connection::open(folder.path().join("knowledge.db")).unwrap();
    other.execute_batch("BEGIN; SELECT count(*) FROM bases; COMMIT; PRAGMA wal_autocheckpoint = 0;").unwrap();
    other
        .execute_batch(
            "INSERT INTO documents (id, base, filename, origin, format, size_bytes, sha256, date_added, updated, status, \
             method, metadata, model, page_count, chunk_count, vector_count) VALUES \
             (randomblob(16), 1, 'log.txt', 'added', 'txt', 1, randomblob(32), 1, 1, 'completed', '', '{}', '', 0, 0, 0)",
        )
        .unwrap();
    assert!(fs::metadata(folder.path().join("knowledge.db-wal")).unwrap().len() > 0);
    let store = open_sqlite(folder.path());
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 2);
    assert_eq!(copies(folder.path()), ["knowledge.db.schema-6"]);
    let copy = folder.path().join("knowledge.db.schema-6");
    assert_eq!(documents(&copy), (2, 6));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    }
    drop((store, other));
    // It is a backup like any other, and opening a current file makes no copy.
    drop(open_sqlite(folder.path()));
    fs::rename(&copy, folder.path().join("kept.db")).unwrap();
    drop(open_sqlite(folder.path()));
    assert_eq!(copies(folder.path()), [""; 0]);
    Store::restore(folder.path(), &folder.path().join("kept.db")).unwrap();
    assert_eq!(open_sqlite(folder.path()).totals(&default_base()).await.unwrap().documents, 2);
}

#[tokio::test]
async fn many_processes_that_open_at_once_make_one_copy_and_old_copies_are_removed() {
    let folder = temp_folder();
    put(&open_sqlite(folder.path()), document("engine.pdf", 2)).await;
    downgrade(folder.path());
    for schema in 3..6 {
        fs::write(folder.path().join(format!("knowledge.db.schema-{schema}")), "old").unwrap();
    }
    fs::write(folder.path().join("knowledge.db.schema-6.new"), "of a process that was killed").unwrap();
    let stores: Vec<Store> = std::thread::scope(|scope| {
        let opening: Vec<_> = (0..6).map(|_| scope.spawn(|| open_sqlite(folder.path()))).collect();
        opening.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(stores.len(), 6);
    assert_eq!(copies(folder.path()), ["knowledge.db.schema-5", "knowledge.db.schema-6"]);
    assert_eq!(documents(&folder.path().join("knowledge.db.schema-6")), (1, 6));
}

/// A database that was restored from an old backup into a folder with copies of later migrations.
#[tokio::test]
async fn the_copy_of_this_migration_is_kept_beside_copies_with_higher_schema_versions() {
    let folder = temp_folder();
    put(&open_sqlite(folder.path()), document("engine.pdf", 2)).await;
    downgrade(folder.path());
    let connection = Connection::open(folder.path().join("knowledge.db")).unwrap();
    connection
        .execute_batch(
            "DROP TABLE copies; ALTER TABLE tasks DROP COLUMN share; ALTER TABLE chunks DROP COLUMN stretches;
             PRAGMA user_version = 4;",
        )
        .unwrap();
    drop(connection);
    for schema in [3, 5, 6] {
        fs::write(folder.path().join(format!("knowledge.db.schema-{schema}")), "old").unwrap();
    }
    drop(open_sqlite(folder.path()));
    assert_eq!(copies(folder.path()), ["knowledge.db.schema-4", "knowledge.db.schema-6"]);
    assert_eq!(documents(&folder.path().join("knowledge.db.schema-4")), (1, 4));
}

#[tokio::test]
async fn a_copy_that_cannot_be_made_is_an_error_where_it_is_required() {
    let folder = temp_folder();
    put(&open_sqlite(folder.path()), document("engine.pdf", 2)).await;
    downgrade(folder.path());
    // A non-empty folder has the name of the copy.
    fs::create_dir_all(folder.path().join("knowledge.db.schema-6/in-the-way")).unwrap();
    let with = |migration_copy| Store::open(folder.path(), Options { migration_copy, ..Options::default() });
    let error = with(MigrationCopy::Required).unwrap_err();
    assert_eq!(error.kind(), "storage_not_copied");
    assert!(error.to_string().contains("knowledge.migration_copy"), "{error}");
    assert_eq!(documents(&folder.path().join("knowledge.db")), (1, 6), "nothing was changed");
    assert_eq!(with(MigrationCopy::Auto).unwrap().totals(&default_base()).await.unwrap().documents, 1);
    assert_eq!(documents(&folder.path().join("knowledge.db")), (1, VERSION));
}

#[tokio::test]
async fn no_copy_is_made_where_none_is_wanted() {
    let folder = temp_folder();
    put(&open_sqlite(folder.path()), document("engine.pdf", 2)).await;
    downgrade(folder.path());
    drop(Store::open(folder.path(), Options { migration_copy: MigrationCopy::Off, ..Options::default() }).unwrap());
    assert_eq!(copies(folder.path()), [""; 0]);
}
