//! Migration of files of every released schema version: the contents are complete afterwards, and a crash during the
//! migration changes nothing.

use std::path::Path;
use std::process::Command;

use corbie::knowledge::document::{BaseName, DocumentId, DocumentRecord};
use corbie::knowledge::store::sqlite::{Store, VERSION};
use corbie::knowledge::store::{DocumentListQuery, IngestState};
use corbie::knowledge::task::TaskState;
use rusqlite::Connection;
use rusqlite::types::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::fixture::{base_named, default_base, document, open_sqlite, put, temp_folder};

/// A schema version: its migration, and rows that earlier versions could not store.
struct SchemaVersion {
    migration: &'static str,
    /// SHA-256 of the migration at its release.
    sha256: &'static str,
    rows: &'static str,
}

/// All schema versions, oldest first. A new version needs a new row.
const VERSIONS: [SchemaVersion; 8] = [
    SchemaVersion {
        migration: include_str!("../../crates/knowledge/src/store/sqlite/migrations/0001_first.sql"),
        sha256: "c7dd3290159273c0087d8d6671fa84335b79ea4d75e2634f14f0e27be7b01b53",
        rows: "PRAGMA application_id = 1668248162;
            INSERT INTO meta (name, value) VALUES ('history', 'as it was');
            INSERT INTO bases (key, name, created, updated) VALUES (1, 'default', 1, 2), (2, 'letters', 3, 4);
            INSERT INTO documents (key, id, base, filename, path, origin, title, format, size_bytes, sha256, date_added, updated,
                status, method, metadata, model, page_count, chunk_count, vector_count, warning) VALUES
                (1, X'00000000000000000000000000000001', 1, 'rivers.pdf', '/home/ada/rivers.pdf', 'added', 'On rivers', 'pdf',
                    1234, X'0000000000000000000000000000000000000000000000000000000000000001', 5, 6, 'completed', 'text_extraction', '{\"author\":\"Ada\"}', 'minilm', 2, 2, 3, NULL),
                (2, X'00000000000000000000000000000002', 1, 'scan.png', NULL, 'uploaded', NULL, 'png',
                    99, X'0000000000000000000000000000000000000000000000000000000000000002', 7, 8, 'partial', 'ocr', '{}', 'minilm', 1, 1, 1, 'one page could not be read'),
                (4, X'00000000000000000000000000000004', 2, 'letter.txt', '/home/ada/letter.txt', 'watched', NULL, 'txt',
                    50, X'0000000000000000000000000000000000000000000000000000000000000004', 9, 10, 'completed', 'text_extraction', '{}', 'minilm', 1, 1, 0, NULL);
            INSERT INTO pages (document, number, label, text) VALUES
                (1, 1, 'i', 'The Danube rises in the Black Forest.'), (1, 2, NULL, 'It ends in the Black Sea.'),
                (2, 1, NULL, 'Invoice of the zeppelin works.'), (4, 1, NULL, 'Dear Charles, the engine sings.');
            INSERT INTO chunks (key, id, document, ordinal, page_first, page_last, tokens, path, text) VALUES
                (1, X'0000000000000000000000000000000A', 1, 0, 1, 1, 9, '[\"Rivers\"]', 'The Danube rises in the Black Forest.'),
                (2, X'0000000000000000000000000000000B', 1, 1, 2, 2, 7, '[]', 'It ends in the Black Sea.'),
                (3, X'0000000000000000000000000000000C', 2, 0, 1, 1, 6, '[]', 'Invoice of the zeppelin works.'),
                (7, X'0000000000000000000000000000000D', 4, 0, 1, 1, 7, '[]', 'Dear Charles, the engine sings.');
            INSERT INTO vectors (chunk, dimensions, windows, codes) VALUES
                (1, 4, 2, X'010000803F7F000000010000803F007F0000'), (2, 4, 1, X'010000803F00007F00'),
                (3, 4, 1, X'020000803F0100020003000400');
            INSERT INTO changes (sequence, base, document, kind, writer) VALUES
                (1, 1, 1, 'put', 'somebody'), (2, 1, 2, 'put', 'somebody'), (3, 2, 3, 'put', 'somebody'),
                (4, 2, 3, 'removed', 'somebody'), (5, 2, 4, 'put', 'somebody'), (6, 1, 1, 'described', 'somebody');
            INSERT INTO tasks (key, id, base, owner, kind, request, document, filename, format, size_bytes, state, created, started,
                ended, updated, attempts, runner, result, error_code, error_message) VALUES
                (1, X'00000000000000000000000000000011', 1, 'ada', 'add', '{\"file_path\":\"/home/ada/a.pdf\"}',
                    X'00000000000000000000000000000021', 'a.pdf', 'pdf', 7, 'queued', 1, NULL, NULL, 1, 0, 'gone', NULL, NULL, NULL),
                (2, X'00000000000000000000000000000012', 2, 'ada', 'import', '{\"paths\":[\"/home/ada\"]}', NULL, NULL, NULL, NULL,
                    'running', 2, 3, NULL, 3, 1, 'gone', NULL, NULL, NULL),
                (3, X'00000000000000000000000000000013', 1, 'ada', 'add', 'null', X'00000000000000000000000000000001', 'rivers.pdf',
                    'pdf', 1234, 'completed', 1, 2, 5, 5, 1, NULL, '{\"chunk_count\":2}', NULL, NULL),
                (4, X'00000000000000000000000000000014', 1, 'bob', 'add', 'null', NULL, 'b.pdf', 'pdf', 8, 'failed', 1, 2, 5, 5, 1,
                    NULL, NULL, 'corrupted_file', 'The file is damaged'),
                (5, X'00000000000000000000000000000015', 1, 'bob', 'add', 'null', NULL, 'c.pdf', 'pdf', 9, 'cancelled', 1, NULL, 5,
                    5, 0, NULL, NULL, NULL, NULL);",
    },
    SchemaVersion {
        migration: include_str!("../../crates/knowledge/src/store/sqlite/migrations/0002_progress.sql"),
        sha256: "a487932b6f34acfdb92bbfde34401e9be8a1f1b97008cd7d7f3407be910fcc9d",
        rows: "UPDATE tasks SET step = 'Adding documents', done = 2, total = 5 WHERE state = 'running';",
    },
    SchemaVersion {
        migration: include_str!("../../crates/knowledge/src/store/sqlite/migrations/0003_watched.sql"),
        sha256: "11c6082b84a302b765f4e73ca46b4f62499b763337f876f47455e777b2087c41",
        rows: "INSERT INTO watched_folders (path, device, inode) VALUES ('/home/ada', 7, 8);
            INSERT INTO watched (key, base, path, modified, size_bytes, device, inode, changed, state, task, document) VALUES
                (1, 2, '/home/ada/letter.txt', 11, 50, 7, 12, 13, 'settled', NULL, X'00000000000000000000000000000004'),
                (2, 2, '/home/ada/broken.pdf', NULL, 51, 7, 0, NULL, 'waiting', NULL, NULL);",
    },
    SchemaVersion {
        migration: include_str!("../../crates/knowledge/src/store/sqlite/migrations/0004_imports.sql"),
        sha256: "6ed180c0e5397fbdc60fd58b1bffb80daf694f7dd08d95b2a20796e57dfb56de",
        rows: "INSERT INTO imported (task, document, replaced) VALUES (2, X'00000000000000000000000000000004', 1);",
    },
    SchemaVersion {
        migration: include_str!("../../crates/knowledge/src/store/sqlite/migrations/0005_copies.sql"),
        sha256: "bef9088303c081aee76f17e40eeab0eaeb15693544182b2f72fc264e0efc915a",
        rows: "INSERT INTO copies (document, path) VALUES (1, '/home/ada/copy.pdf'), (1, '');
            UPDATE tasks SET share = 400 WHERE state = 'running';",
    },
    SchemaVersion {
        migration: include_str!("../../crates/knowledge/src/store/sqlite/migrations/0006_stretches.sql"),
        sha256: "e7c21ce5cb05be011efb8a1ecde9195e095c1b98ff09c397d27b89ddb388a024",
        rows: "UPDATE chunks SET stretches = '[{\"page\":1,\"start\":0,\"end\":37}]' WHERE key = 1;",
    },
    SchemaVersion {
        migration: include_str!("../../crates/knowledge/src/store/sqlite/migrations/0007_checksums.sql"),
        sha256: "cd1304666acf6cf26dc22b1b9fe0aca57d4cedc12086473e33aa61a37bd56265",
        rows: "UPDATE vectors SET checksum = -1166505395 WHERE chunk = 2;",
    },
    SchemaVersion {
        migration: include_str!("../../crates/knowledge/src/store/sqlite/migrations/0008_base_checksums.sql"),
        sha256: "d43f863c4bff88320abab4352d014d203ec910b9fa34c8e2bb3cd9f1b2a4a39d",
        rows: "",
    },
];

/// Writes a file as this version did.
fn write_version(version: usize, path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "foreign_keys", true).unwrap();
    for SchemaVersion { migration, rows, .. } in &VERSIONS[..version] {
        connection.execute_batch(migration).unwrap();
        connection.execute_batch(rows).unwrap();
    }
    connection.pragma_update(None, "user_version", version as i64).unwrap();
    connection
}

/// All column values of all tables.
fn table_contents(connection: &Connection) -> Vec<(String, String, Vec<Value>)> {
    let texts = |query: &str| -> Vec<String> {
        let mut statement = connection.prepare(query).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let tables = texts("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name");
    let mut all = Vec::new();
    for table in tables {
        for column in texts(&format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid")) {
            let mut statement = connection.prepare(&format!("SELECT {column} FROM {table} ORDER BY 1")).unwrap();
            let values = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            all.push((table.clone(), column, values));
        }
    }
    all
}

fn version_of(path: &Path) -> i64 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn document_id(number: u128) -> DocumentId {
    DocumentId(uuid::Uuid::from_u128(number))
}

#[test]
fn every_version_has_rows_of_its_own_to_be_brought_up_to_date() {
    assert_eq!(VERSIONS.len() as i64, VERSION, "a new version needs its rows and its hash in `VERSIONS`");
    let folder = temp_folder();
    let written = table_contents(&write_version(VERSIONS.len(), &folder.path().join("knowledge.db")));
    let empty = written.iter().filter(|(.., values)| values.is_empty()).map(|(table, ..)| table);
    assert_eq!(empty.collect::<Vec<_>>(), Vec::<&String>::new(), "no table goes untested");
}

#[test]
fn no_migration_says_anything_else_than_when_it_was_released() {
    for (number, SchemaVersion { migration, sha256: released, .. }) in VERSIONS.iter().enumerate() {
        let found: String = Sha256::digest(migration).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            found,
            *released,
            "migration {} was changed after its release, and files of that version are not as it says now: \
             bring the old text back, and add a new migration that makes the change",
            number + 1
        );
    }
}

#[tokio::test]
async fn a_file_of_any_version_is_brought_up_to_date_with_all_that_is_in_it() {
    for version in 1..=VERSIONS.len() {
        let folder = temp_folder();
        let path = folder.path().join("knowledge.db");
        let before = table_contents(&write_version(version, &path));
        drop(open_sqlite(folder.path()));
        assert_eq!(version_of(&path), VERSION, "from version {version}");
        let after = table_contents(&Connection::open(&path).unwrap());
        // Tables that get checksums with a later version are added there.
        for column @ (table, name, values) in before.iter().filter(|(table, ..)| table != "unchecked") {
            // Later versions note more about a store.
            let has_more = |(t, n, all): &(String, String, Vec<Value>)| {
                table == "meta" && (t, n) == (table, name) && values.iter().all(|value| all.contains(value))
            };
            assert!(after.contains(column) || after.iter().any(has_more), "from version {version}: {column:?}");
        }
        let store = open_sqlite(folder.path());
        assert_contents(&store, version).await;
        // Documents can still be added and removed.
        let added = put(&store, document("engine.pdf", 2)).await;
        let removed = store.remove_document(&default_base(), document_id(1)).await.unwrap().unwrap();
        assert_eq!(removed.chunks, 2, "from version {version}");
        assert!(store.document(&default_base(), added.id).await.unwrap().is_some());
        let report = store.check().await.unwrap();
        assert!(report.is_consistent(), "from version {version}: {report:?}");
        assert_eq!((report.documents, report.tasks), (3, 5), "from version {version}");
    }
}

/// All rows written are visible through the current store.
async fn assert_contents(store: &Store, version: usize) {
    let letters: BaseName = base_named("letters");
    assert_eq!((store.history(), store.sequence().await.unwrap()), ("as it was", 6));
    assert_eq!(store.bases().await.unwrap(), [default_base(), letters.clone()]);
    let totals = store.totals(&default_base()).await.unwrap();
    assert_eq!((totals.documents, totals.chunks), (2, 3), "{totals:?}");
    let rivers: DocumentRecord = store.document(&default_base(), document_id(1)).await.unwrap().unwrap();
    assert_eq!((rivers.title.as_deref(), &rivers.metadata["author"]), (Some("On rivers"), &"Ada".into()));
    let listed = store.documents(&letters, DocumentListQuery::default()).await.unwrap();
    assert_eq!(listed.documents.len(), 1, "{listed:?}");
    let chunks = store.chunks(&[1, 2, 3, 7]).await.unwrap();
    let texts: Vec<&str> = chunks.iter().map(|chunk| &*chunk.text).collect();
    assert!(texts[0].contains("Danube") && texts[3].contains("engine sings"), "{texts:?}");
    let report = store.check().await.unwrap();
    assert!(report.is_consistent() && report.vectors == 4, "from version {version}: {report:?}");
    // Every task has ended or waits to be resumed.
    let mut tasks = store.tasks(None, 9).await.unwrap();
    tasks.sort_by_key(|task| task.id);
    let states: Vec<&str> = tasks.iter().map(|task| task.state.name()).collect();
    assert_eq!(states, ["queued", "queued", "completed", "failed", "cancelled"], "from version {version}");
    assert!(matches!(&tasks[3].state, TaskState::Failed { code, .. } if code == "corrupted_file"));
    assert_eq!(tasks.iter().filter(|task| task.interrupted).count(), 2, "{tasks:?}");
    let orphaned = store.adopt_orphaned_tasks().await.unwrap();
    assert_eq!(orphaned.len(), 2, "{orphaned:?}");
    let imported = store.import_checkpoint(tasks[1].id).await.unwrap();
    assert_eq!(imported.get(&document_id(4)), (version >= 4).then_some(&true));
    assert_eq!(store.duplicates(document_id(1)).await.unwrap().len(), if version >= 5 { 2 } else { 0 });
    let watched = store.watched_files(&letters).await.unwrap();
    assert_eq!(watched.len(), if version >= 3 { 2 } else { 0 }, "{watched:?}");
    assert!(
        version < 3 || watched.iter().any(|row| row.state == IngestState::Done(Some(document_id(4)))),
        "{watched:?}"
    );
}

#[test]
fn a_file_of_any_version_is_searched_by_its_words() {
    for version in 1..=VERSIONS.len() {
        let folder = temp_folder();
        drop(write_version(version, &folder.path().join("knowledge.db")));
        let searched = Command::new(env!("CARGO_BIN_EXE_corbie"))
            .args(["search", "--json", "where does the Danube rise"])
            .env_clear()
            .env("CORBIE_KNOWLEDGE__STORAGE_PATH", folder.path())
            .env("HOME", folder.path())
            .output()
            .unwrap();
        let (said, complaint) = (String::from_utf8_lossy(&searched.stdout), String::from_utf8_lossy(&searched.stderr));
        assert!(said.contains("The Danube rises in the Black Forest"), "from version {version}: {said} {complaint}");
    }
}

/// The files on disk during a migration, as a crash at that time leaves them.
fn interrupted_migration(version: usize, journal: &str) -> TempDir {
    let (living, killed) = (temp_folder(), temp_folder());
    let path = living.path().join("knowledge.db");
    let connection = write_version(version, &path);
    connection.pragma_update_and_check(None, "journal_mode", journal, |_| Ok(())).unwrap();
    // A small cache, so that changes reach the disk before the commit.
    connection.execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE;").unwrap();
    for SchemaVersion { migration, .. } in &VERSIONS[version..] {
        connection.execute_batch(migration).unwrap();
    }
    connection.execute_batch("UPDATE chunks SET text = 'half ' || hex(zeroblob(9000)); DELETE FROM pages;").unwrap();
    connection.pragma_update(None, "user_version", VERSION).unwrap();
    let mut beside = 0;
    for ending in ["", "-journal", "-wal"] {
        let file = living.path().join(format!("knowledge.db{ending}"));
        if file.exists() {
            beside += 1;
            std::fs::copy(&file, killed.path().join(format!("knowledge.db{ending}"))).unwrap();
        }
    }
    assert_eq!(beside, 2, "what is not kept yet stands beside the file");
    killed
}

#[tokio::test]
async fn killed_while_a_file_is_brought_up_to_date_the_old_version_is_there_and_the_next_start_does_it() {
    for version in 1..VERSIONS.len() {
        for journal in ["delete", "wal"] {
            let folder = temp_folder();
            let before = table_contents(&write_version(version, &folder.path().join("knowledge.db")));
            let killed = interrupted_migration(version, journal);
            let path = killed.path().join("knowledge.db");
            let found = Connection::open(&path).unwrap();
            assert_eq!(table_contents(&found), before, "version {version}, {journal}");
            drop(found);
            assert_eq!(version_of(&path), version as i64, "{journal}");
            assert_contents(&open_sqlite(killed.path()), version).await;
            assert_eq!(version_of(&path), VERSION, "{journal}");
        }
    }
}
