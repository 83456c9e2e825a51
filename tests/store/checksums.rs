//! Checksums: damage to stored rows that SQLite itself does not notice.

use std::fs;
use std::path::{Path, PathBuf};

use corbie::knowledge::document::{DocumentRecord, Status};
use corbie::knowledge::store::sqlite::Store;
use corbie::knowledge::store::{Error, Options, PageRange};
use rusqlite::Connection;

use crate::fixture::{default_base, document, open_sqlite, put, temp_folder};
use crate::rng::SeededRng;

const ALL: PageRange = PageRange { from: 1, pages: u32::MAX, max_bytes: usize::MAX };

fn database(folder: &Path) -> PathBuf {
    folder.join("knowledge.db")
}

async fn filled(folder: &Path, documents: usize) {
    let store = open_sqlite(folder);
    for number in 0..documents {
        put(&store, document(&format!("{number}.pdf"), 10)).await;
    }
}

/// Stored values of all covered tables, as bytes.
fn values(path: &Path) -> Vec<Vec<u8>> {
    let connection = Connection::open(path).unwrap();
    let mut values = Vec::new();
    for query in [
        "SELECT CAST(text AS BLOB) FROM pages",
        "SELECT CAST(label AS BLOB) FROM pages",
        "SELECT CAST(text AS BLOB) FROM chunks",
        "SELECT CAST(stretches AS BLOB) FROM chunks",
        "SELECT codes FROM vectors",
        "SELECT CAST(title AS BLOB) FROM documents",
        "SELECT CAST(metadata AS BLOB) FROM documents",
        "SELECT CAST(status AS BLOB) FROM documents",
        "SELECT sha256 FROM documents",
    ] {
        let mut statement = connection.prepare(query).unwrap();
        values.extend(statement.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap().map(Result::unwrap));
    }
    values
}

/// Whether a store is found to be damaged.
async fn is_noticed(folder: &Path) -> bool {
    match Store::open(folder, Options::default()) {
        Ok(store) => !store.check().await.unwrap().is_consistent(),
        Err(error) => error.kind() == "storage_corrupt",
    }
}

#[tokio::test]
async fn sixty_random_bit_flips_in_the_file_are_all_detected() {
    let folder = temp_folder();
    filled(folder.path(), 12).await;
    let path = database(folder.path());
    let (values, sound) = (values(&path), fs::read(&path).unwrap());
    let mut chance = SeededRng::new(30);
    let mut missed = Vec::new();
    for _ in 0..60 {
        let value = &values[chance.below(values.len())];
        let places: Vec<usize> = sound
            .windows(value.len().min(24))
            .enumerate()
            .filter(|(_, window)| value.starts_with(window))
            .map(|(at, _)| at)
            .collect();
        let at = places[chance.below(places.len())] + chance.below(value.len().min(24));
        let mut damaged = sound.clone();
        damaged[at] ^= 1 << chance.below(8);
        fs::write(&path, &damaged).unwrap();
        if !is_noticed(folder.path()).await {
            missed.push(format!("a flip at {at} of {:?}", String::from_utf8_lossy(value)));
        }
    }
    assert!(missed.is_empty(), "not detected: {missed:#?}");
    fs::write(&path, &sound).unwrap();
    assert!(!is_noticed(folder.path()).await, "the file itself is sound");
}

#[tokio::test]
async fn sixty_random_bit_flips_in_rows_are_all_detected() {
    let folder = temp_folder();
    filled(folder.path(), 12).await;
    let path = database(folder.path());
    let sound = fs::read(&path).unwrap();
    let columns = [
        ("pages", "text", "TEXT"),
        ("pages", "label", "TEXT"),
        ("chunks", "text", "TEXT"),
        ("chunks", "path", "TEXT"),
        ("chunks", "stretches", "TEXT"),
        ("chunks", "tokens", "INTEGER"),
        ("chunks", "page_last", "INTEGER"),
        ("vectors", "codes", "BLOB"),
        ("documents", "filename", "TEXT"),
        ("documents", "metadata", "TEXT"),
        ("documents", "size_bytes", "INTEGER"),
        ("documents", "date_added", "INTEGER"),
        ("documents", "sha256", "BLOB"),
        ("documents", "checksum", "INTEGER"),
        ("bases", "name", "TEXT"),
        ("bases", "created", "INTEGER"),
    ];
    let mut chance = SeededRng::new(60);
    let mut missed = Vec::new();
    for _ in 0..60 {
        fs::write(&path, &sound).unwrap();
        let (table, column, kind) = columns[chance.below(columns.len())];
        let connection = Connection::open(&path).unwrap();
        let rows: usize = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        let row = format!("(SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET {})", chance.below(rows));
        if kind == "INTEGER" {
            let bit = 1_i64 << chance.below(31);
            let sql =
                format!("UPDATE {table} SET {column} = ({column} | {bit}) - ({column} & {bit}) WHERE rowid = {row}");
            assert_eq!(connection.execute(&sql, []).unwrap(), 1);
        } else {
            let sql = format!("SELECT CAST({column} AS BLOB) FROM {table} WHERE rowid = {row}");
            let mut value: Vec<u8> = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
            let place = chance.below(value.len());
            value[place] ^= 1 << chance.below(8);
            let sql = format!("UPDATE {table} SET {column} = CAST(?1 AS {kind}) WHERE rowid = {row}");
            assert_eq!(connection.execute(&sql, [value]).unwrap(), 1);
        }
        drop(connection);
        if !is_noticed(folder.path()).await {
            missed.push(format!("a flip in {column} of {table}"));
        }
    }
    assert!(missed.is_empty(), "not detected: {missed:#?}");
}

fn damage(folder: &Path, sql: &str) {
    Connection::open(database(folder)).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test]
async fn a_damaged_page_is_not_read_and_the_error_names_the_document() {
    let folder = temp_folder();
    let (damaged, sound) = (document("damaged.pdf", 3), document("sound.pdf", 3));
    let store = open_sqlite(folder.path());
    put(&store, damaged.clone()).await;
    put(&store, sound.clone()).await;
    damage(folder.path(), "UPDATE pages SET text = 'bll' || substr(text, 4) WHERE document = 1 AND number = 2");
    let error = store.text(&default_base(), damaged.id, ALL).await.unwrap_err();
    assert_eq!(error.kind(), "document_damaged");
    let said = error.to_string();
    for words in ["damaged.pdf", &damaged.id.to_string(), "corbie knowledge repair", "add the file again"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(store.text_and_chunks(&default_base(), damaged.id, ALL).await.is_err());
    let first = PageRange { from: 1, pages: 1, max_bytes: usize::MAX };
    assert!(store.text(&default_base(), damaged.id, first).await.unwrap().is_some(), "an intact page can be read");
    assert!(store.text(&default_base(), sound.id, ALL).await.unwrap().is_some());
}

#[tokio::test]
async fn a_damaged_chunk_is_left_out_of_results_and_the_others_are_found() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    let keys: Vec<u64> = put(&store, document("engine.pdf", 3)).await.chunks.collect();
    damage(folder.path(), "UPDATE chunks SET text = replace(text, 'Chunk', 'Chunc') WHERE ordinal = 1");
    let found = store.chunks(&keys).await.unwrap();
    assert_eq!(found.iter().map(|chunk| chunk.ordinal).collect::<Vec<_>>(), [0, 2]);
    let id = {
        let connection = Connection::open(database(folder.path())).unwrap();
        let id: [u8; 16] =
            connection.query_row("SELECT id FROM chunks WHERE ordinal = 1", [], |row| row.get(0)).unwrap();
        corbie::knowledge::document::ChunkId(uuid::Uuid::from_bytes(id))
    };
    assert!(matches!(store.chunk(id).await, Err(Error::Damaged { .. })));
}

#[tokio::test]
async fn a_repair_keeps_what_is_intact_and_names_documents_that_lost_something() {
    let folder = temp_folder();
    filled(folder.path(), 6).await;
    damage(
        folder.path(),
        "UPDATE pages SET text = 'x' WHERE document = 1 AND number = 2;
         UPDATE chunks SET tokens = tokens + 1 WHERE document = 2 AND ordinal = 0;
         UPDATE vectors SET codes = zeroblob(length(codes)) WHERE chunk = (SELECT key FROM chunks WHERE document = 3 LIMIT 1);
         UPDATE documents SET title = 'Om' WHERE key = 4;
         UPDATE documents SET status = 'complete' WHERE key = 5;",
    );
    let history = open_sqlite(folder.path()).history().to_owned();
    let repaired = Store::repair(folder.path()).unwrap();
    let names = |documents: &[corbie::knowledge::store::sqlite::LostDocument]| -> Vec<String> {
        documents.iter().map(|document| document.filename.clone()).collect()
    };
    assert_eq!(names(&repaired.damage.incomplete), ["0.pdf", "1.pdf", "2.pdf", "3.pdf"]);
    assert_eq!(names(&repaired.damage.lost), ["4.pdf"], "its row cannot be read");
    assert_eq!((repaired.documents, repaired.preserved_as), (5, None));
    let copy = Connection::open(repaired.copy.expect("a copy from before the repair")).unwrap();
    let documents: i64 = copy.query_row("SELECT count(*) FROM documents", [], |row| row.get(0)).unwrap();
    assert_eq!(documents, 6);
    let store = open_sqlite(folder.path());
    assert!(store.check().await.unwrap().is_consistent());
    assert_ne!(store.history(), history, "indexes are built again");
    let sha256 = document("5.pdf", 10).sha256;
    let last: DocumentRecord = store.document_by_content(&default_base(), sha256).await.unwrap().unwrap();
    assert_eq!((last.status, last.chunk_count), (Status::Completed, 10));
}

#[tokio::test]
async fn a_damaged_document_counts_as_partial_so_that_adding_its_file_replaces_it() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    let new = document("engine.pdf", 3);
    put(&store, new.clone()).await;
    let status = async || store.document_by_content(&default_base(), new.sha256).await.unwrap().unwrap().status;
    assert_eq!(status().await, Status::Completed);
    damage(folder.path(), "UPDATE vectors SET codes = zeroblob(length(codes)) WHERE chunk = 2");
    assert_eq!(status().await, Status::Partial);
}

#[tokio::test]
async fn rows_of_an_older_version_get_checksums_in_the_background_and_are_checked_from_then_on() {
    let folder = temp_folder();
    filled(folder.path(), 30).await;
    damage(
        folder.path(),
        "ALTER TABLE documents DROP COLUMN checksum; ALTER TABLE pages DROP COLUMN checksum;
         ALTER TABLE chunks DROP COLUMN checksum; ALTER TABLE vectors DROP COLUMN checksum;
         ALTER TABLE bases DROP COLUMN checksum; DROP TABLE unchecked; PRAGMA user_version = 6;",
    );
    let store = open_sqlite(folder.path());
    let unchecked = || -> i64 {
        let sql = "SELECT (SELECT count(*) FROM documents WHERE checksum IS NULL) + (SELECT count(*) FROM pages WHERE checksum IS NULL)
             + (SELECT count(*) FROM chunks WHERE checksum IS NULL) + (SELECT count(*) FROM vectors WHERE checksum IS NULL)";
        Connection::open(database(folder.path())).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(unchecked(), 30 + 3 * 300, "opening reads no content");
    assert!(store.check().await.unwrap().is_consistent());
    let new = put(&store, document("new.pdf", 2)).await;
    assert!(store.check().await.unwrap().is_consistent());
    while !store.record_checksums().await.unwrap() {}
    assert_eq!(unchecked(), 0);
    assert!(store.check().await.unwrap().is_consistent());
    damage(folder.path(), "UPDATE pages SET text = text || '!' WHERE document = 1 AND number = 1");
    assert!(!store.check().await.unwrap().is_consistent());
    assert_eq!(new.chunks.count(), 2);
}

#[tokio::test]
async fn an_empty_or_missing_database_beside_an_index_is_not_replaced_by_a_new_one() {
    let folder = temp_folder();
    filled(folder.path(), 2).await;
    let index = folder.path().join("index");
    let options = || Options { index: Some(index.clone()), ..Options::default() };
    assert!(Store::open(folder.path(), options()).is_ok());
    let path = database(folder.path());
    fs::write(&path, "").unwrap();
    let error = Store::open(folder.path(), options()).unwrap_err();
    assert_eq!((error.kind(), fs::metadata(&path).unwrap().len()), ("storage_missing", 0));
    assert!(error.to_string().contains("corbie knowledge restore FILE"), "{error}");
    // A database without tables is as empty.
    Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = WAL; VACUUM;").unwrap();
    assert_eq!(Store::open(folder.path(), options()).unwrap_err().kind(), "storage_missing");
    fs::remove_file(&path).unwrap();
    assert_eq!(Store::open(folder.path(), options()).unwrap_err().kind(), "storage_missing");
    assert!(!path.exists(), "nothing is made");
    assert!(Store::open(folder.path(), Options::default()).is_ok(), "without an index, it is a new knowledge base");
}
