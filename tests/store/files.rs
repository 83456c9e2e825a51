//! Files of the embedded store: permissions and accessibility.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use corbie::knowledge::store::sqlite::Store;
use corbie::knowledge::store::{Error, Options};

use crate::fixture::{default_base, document, open_sqlite, put, temp_folder};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn s14_everything_is_private_to_the_user() {
    let folder = temp_folder();
    let folder = folder.path().join("deep/data");
    let store = open_sqlite(&folder);
    put(&store, document("engine.pdf", 3)).await;
    store.backup(&folder.join("copy.db")).await.unwrap();
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("instances")), 0o700);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().chain(fs::read_dir(folder.join("instances")).unwrap()).collect();
    let mut names = Vec::new();
    for entry in files.into_iter().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    for name in ["knowledge.db", "knowledge.db-wal", "knowledge.db-shm", "copy.db"] {
        assert!(names.iter().any(|found| found == name), "{name} of {names:?}");
    }
}

#[tokio::test]
async fn s14_a_file_that_others_could_read_is_made_private() {
    let folder = temp_folder();
    drop(open_sqlite(folder.path()));
    let database = folder.path().join("knowledge.db");
    fs::set_permissions(&database, fs::Permissions::from_mode(0o644)).unwrap();
    let store = open_sqlite(folder.path());
    put(&store, document("engine.pdf", 1)).await;
    assert_eq!((mode(&database), mode(&folder.path().join("knowledge.db-wal"))), (0o600, 0o600));
}

#[tokio::test]
async fn k105_health_is_measured() {
    let folder = temp_folder();
    let data = folder.path().join("data");
    let store = open_sqlite(&data);
    let health = store.cached_health();
    assert_eq!((health.connected, health.accessible), (Ok(()), Ok(())));
    fs::rename(&data, folder.path().join("elsewhere")).unwrap();
    let health = store.cached_health();
    assert!(health.connected.is_err());
    assert_eq!(health.accessible.unwrap_err(), "Storage directory not accessible: No such file or directory");
    fs::rename(folder.path().join("elsewhere"), &data).unwrap();
    assert!(store.cached_health().connected.is_ok());
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 0);
}

#[test]
fn k102_a_folder_that_cannot_be_written_is_told() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let health = store.cached_health();
    let root = fs::write(folder.path().join("probe"), "").is_ok();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // Permission checks do not apply to root.
    let denied = Err("Storage directory not accessible: Permission denied".to_owned());
    assert_eq!(health.accessible, if root { Ok(()) } else { denied });
}

#[test]
fn a_file_where_the_folder_should_be_is_told() {
    let folder = temp_folder();
    let path = folder.path().join("data");
    fs::write(&path, "not a folder").unwrap();
    let error = Store::open(&path, Options::default()).unwrap_err();
    assert!(matches!(error, Error::Io { .. } | Error::Exists(_)), "{error}");
    assert!(error.to_string().contains("data"), "{error}");
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let folder = temp_folder();
    let database = folder.path().join("knowledge.db");
    rusqlite::Connection::open(&database).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let error = Store::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(error, Error::ForeignFile), "{error}");
    let tables: i64 = rusqlite::Connection::open(&database)
        .unwrap()
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1);
}

#[test]
fn commits_are_on_the_disk_and_space_can_be_given_back() {
    let folder = temp_folder();
    let _store = open_sqlite(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("knowledge.db")).unwrap();
    let pragma =
        |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
    assert_eq!(pragma("journal_mode"), "wal".to_owned().into());
    assert_eq!(pragma("auto_vacuum"), 2.into());
}
