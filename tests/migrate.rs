#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! `corbie knowledge migrate`: lossless round trips, including interruptions. From one file into another, and into
//! PostgreSQL with `CORBIE_TEST_STORE=postgres tests/postgres/server -- cargo nextest run --test migrate`.

#[path = "postgres/database.rs"]
mod database;
#[path = "store/fixture.rs"]
#[allow(dead_code, reason = "shared with the tests of stores")]
mod fixture;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use corbie::knowledge::document::{Origin, Status};
use corbie::knowledge::store::{FileId, FileStamp, IngestState, PageRange, RowUpdate, Store, WatchedFile, sqlite};
use corbie::knowledge::task::{TaskEnd, TaskState};
use serde_json::{Value, json};
use tempfile::TempDir;

use fixture::{
    StoreLocation, base_named, default_base, document, metadata, open_sqlite, put, store_location, task, temp_folder,
};

/// All pages of a document.
const ALL_PAGES: PageRange = PageRange { from: 0, pages: u32::MAX, max_bytes: usize::MAX };

/// A store of a few hundred documents of all kinds, with the other stored state.
async fn populated_store(documents: u32) -> TempDir {
    let home = temp_folder();
    let store = open_sqlite(home.path());
    for number in 0..documents {
        let mut new = document(&format!("{number}.pdf"), number as usize % 5);
        if number % 3 == 0 {
            new.base = base_named("other");
        }
        if number % 4 == 0 {
            (new.path, new.origin, new.title) = (None, Origin::Uploaded, None);
        }
        if number % 5 == 0 {
            (new.status, new.warning) = (Status::Partial, Some("half of it\u{0} is missing".to_owned()));
        }
        new.metadata = metadata(json!({"zebra": number, "apple": [0.1, 1e300, null], "b": {"z": "ü\u{0}", "a": true}}));
        let id = put(&store, new).await.id;
        if number % 7 == 0 {
            store.record_duplicate(id, None).await.unwrap();
            store.record_duplicate(id, Some(format!("/copies/{number}"))).await.unwrap();
            let after = WatchedFile {
                path: format!("/watched/{number}"),
                stamp: FileStamp { modified: Some(-5), size: 9 },
                device: u64::MAX,
                inode: number.into(),
                ctime: None,
                state: IngestState::Done(Some(id)),
            };
            assert_eq!(
                store.update_watched_files(&default_base(), vec![RowUpdate { before: None, after }]).await.unwrap(),
                [true]
            );
        }
    }
    store.record_watched_folder("/watched", FileId { device: u64::MAX, inode: 7 }).await.unwrap();
    let (well, badly) = (task("well.pdf"), task("badly.pdf"));
    for task in [&well, &badly] {
        store.add_task(task).await.unwrap();
        store.start_task(task.id).await.unwrap();
    }
    let result = json!({"z": 0.1, "a": [1, 2], "files": ["x"]});
    store.end_task(TaskEnd::completed(well.id, result)).await.unwrap();
    store.end_task(TaskEnd::failed(badly.id, "unreadable", "it cannot\u{0} be read")).await.unwrap();
    home
}

fn sqlite_address(folder: &TempDir) -> String {
    format!("sqlite:{}", folder.path().display())
}

fn store_address(home: &StoreLocation) -> String {
    match home {
        StoreLocation::Folder(folder) => sqlite_address(folder),
        StoreLocation::Database(database) => database.url(),
    }
}

fn migrate_command(from: &str, to: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corbie"));
    let nowhere = std::env::temp_dir().join("corbie-migrate-has-no-settings");
    command.args(["knowledge", "migrate", "--json", "--from", from, "--to", to]);
    command.env("HOME", &nowhere).env("XDG_CONFIG_HOME", &nowhere).env("XDG_DATA_HOME", &nowhere);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The JSON output and the exit code.
fn json_output(output: &Output) -> (Value, Option<i32>) {
    let err = String::from_utf8_lossy(&output.stderr);
    let told = serde_json::from_slice(&output.stdout);
    (told.unwrap_or_else(|error| panic!("{error}: {output:?} {err}")), output.status.code())
}

#[track_caller]
fn migrate_all(from: &str, to: &str) -> Value {
    let (told, code) = json_output(&migrate_command(from, to).output().unwrap());
    assert_eq!((code, &told["success"]), (Some(0), &json!(true)), "{told}");
    assert_eq!(told["from"], told["to"]);
    told
}

#[track_caller]
fn assert_migration_error(from: &str, to: &str, error: &str) -> String {
    let (told, code) = json_output(&migrate_command(from, to).output().unwrap());
    assert_eq!((&told["error"], told["success"].as_bool()), (&json!(error), Some(false)), "{told}");
    assert_eq!(code, Some(if error == "invalid_parameter" { 2 } else { 1 }));
    told["message"].as_str().unwrap().to_owned()
}

fn replace_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Asserts that two stores have the same contents, as visible to callers.
async fn assert_same(one: &Store, other: &Store) {
    assert_eq!(one.bases().await.unwrap(), other.bases().await.unwrap());
    for base in one.bases().await.unwrap() {
        assert_eq!(one.totals(&base).await.unwrap(), other.totals(&base).await.unwrap());
        let mut watched = [one.watched_files(&base).await.unwrap(), other.watched_files(&base).await.unwrap()];
        watched.iter_mut().for_each(|watched| watched.sort_by(|a, b| a.path.cmp(&b.path)));
        assert_eq!(watched[0], watched[1]);
    }
    let place = "/watched";
    assert_eq!(one.watched_folder(place).await.unwrap(), other.watched_folder(place).await.unwrap());
    let mut tasks = [one.tasks(None, 99).await.unwrap(), other.tasks(None, 99).await.unwrap()];
    for task in tasks.iter_mut().flatten() {
        task.runner = None;
        if let TaskState::Failed { message, .. } = &mut task.state {
            *message = replace_nul(message);
        }
    }
    assert_eq!(tasks[0], tasks[1]);
}

/// Asserts that the documents of two files are equal except for keys. Vectors may have been rounded.
async fn assert_same_documents(one: &sqlite::Store, other: &sqlite::Store) {
    let live = [one.live_snapshot().await.unwrap().documents, other.live_snapshot().await.unwrap().documents];
    assert_eq!(live[0].len(), live[1].len());
    for (a, b) in live[0].iter().zip(&live[1]) {
        assert_eq!(a.id, b.id, "and in the same order");
        let (mut a, mut b) = (
            one.text_and_chunks(&a.base, a.id, ALL_PAGES).await.unwrap().unwrap(),
            other.text_and_chunks(&a.base, a.id, ALL_PAGES).await.unwrap().unwrap(),
        );
        assert_eq!(one.duplicates(a.0.id).await.unwrap(), other.duplicates(b.0.id).await.unwrap());
        assert_eq!(serde_json::to_string(&a.0.metadata).unwrap(), serde_json::to_string(&b.0.metadata).unwrap());
        for document in [&mut a.0, &mut b.0] {
            document.key = 0;
            document.warning = document.warning.as_deref().map(replace_nul);
        }
        assert_eq!(a, b);
    }
    let [a, b] = [stored_vectors(one).await, stored_vectors(other).await];
    assert_eq!(a.len(), b.len());
    let cosine = |a: &[f32], b: &[f32]| {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    assert!(a.iter().zip(&b).all(|(a, b)| cosine(a, b) >= 0.999));
}

async fn stored_vectors(store: &sqlite::Store) -> Vec<Vec<f32>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let each = move |document: sqlite::LoadedDocument| {
        document.chunks.into_iter().flat_map(|chunk| chunk.vectors).for_each(|vector| sender.send(vector).unwrap());
        std::ops::ControlFlow::Continue(())
    };
    store.for_each_document(None, &[], each).await.unwrap();
    receiver.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_everything_moves_there_and_back() {
    let (first, there, back) = (populated_store(200).await, store_location(), temp_folder());
    let went = migrate_all(&sqlite_address(&first), &store_address(&there));
    assert_eq!((&went["documents_written"], &went["from"]["tasks"]), (&json!(200), &json!(2)));
    assert_same(&open_sqlite(first.path()).into(), &there.open().await).await;

    let again = migrate_all(&sqlite_address(&first), &store_address(&there));
    assert_eq!((&again["documents_written"], &again["documents_passed_over"]), (&json!(0), &json!(200)));
    assert_eq!(again["to"], went["to"]);

    let returned = migrate_all(&store_address(&there), &sqlite_address(&back));
    assert_eq!(returned["to"], went["from"]);
    let (one, other) = (open_sqlite(first.path()), open_sqlite(back.path()));
    assert_same_documents(&one, &other).await;
    assert_same(&one.into(), &other.clone().into()).await;
    assert!(other.check().await.unwrap().is_consistent());
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_a_move_that_was_killed_goes_on() {
    let (first, there, back) = (temp_folder(), store_location(), temp_folder());
    let store = open_sqlite(first.path());
    for number in 0..100 {
        put(&store, document(&format!("{number}.pdf"), 200)).await;
    }
    drop(store);
    for (from, to) in [(sqlite_address(&first), store_address(&there)), (store_address(&there), sqlite_address(&back))]
    {
        let mut child = migrate_command(&from, &to).spawn().unwrap();
        wait_for_some(&mut child, if to == sqlite_address(&back) { None } else { Some(&there) }, back.path());
        child.kill().unwrap();
        child.wait().unwrap();
        let told = migrate_all(&from, &to);
        assert_eq!(told["to"]["chunks"], 20_000);
        let (written, passed_over) = (&told["documents_written"], &told["documents_passed_over"]);
        assert_eq!(written.as_u64().unwrap() + passed_over.as_u64().unwrap(), 100);
        assert!(passed_over.as_u64().unwrap() > 0 && written.as_u64().unwrap() > 0, "{told}");
    }
    assert_same_documents(&open_sqlite(first.path()), &open_sqlite(back.path())).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a13_a_move_that_is_interrupted_says_how_to_go_on() {
    let (first, there) = (temp_folder(), store_location());
    let store = open_sqlite(first.path());
    for number in 0..60 {
        put(&store, document(&format!("{number}.pdf"), 100)).await;
    }
    drop(store);
    let mut child = migrate_command(&sqlite_address(&first), &store_address(&there)).spawn().unwrap();
    wait_for_some(&mut child, Some(&there), first.path());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let (told, code) = json_output(&child.wait_with_output().unwrap());
    assert_eq!((code, &told["error"]), (Some(130), &json!("interrupted")), "{told}");
    assert!(told["message"].as_str().unwrap().contains("run the same command to continue"), "{told}");
    let done = told["documents_done"].as_u64().unwrap();
    assert!((1..60).contains(&done), "{done}");
    assert_eq!(migrate_all(&sqlite_address(&first), &store_address(&there))["documents_passed_over"], done);
}

/// Waits until the target of a migration contains some documents.
fn wait_for_some(child: &mut Child, home: Option<&StoreLocation>, folder: &Path) {
    let size = |folder: &Path| {
        let size = |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |found| found.len());
        size("knowledge.db") + size("knowledge.db-wal")
    };
    let is_begun = || match home {
        Some(StoreLocation::Database(database)) => {
            let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'corbie' AND tablename = 'documents'";
            database.query(tables) == ["1"] && database.query("SELECT count(*) > 5 FROM corbie.documents") == ["t"]
        }
        Some(StoreLocation::Folder(folder)) => size(folder.path()) > 3 << 20,
        None => size(folder) > 3 << 20,
    };
    while !is_begun() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended too soon");
        #[allow(clippy::disallowed_methods, reason = "nothing else runs in this thread")]
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_nothing_is_moved_into_what_holds_other_things() {
    let (first, there) = (populated_store(3).await, store_location());
    let other = put(&there.open().await, document("other.pdf", 1)).await.id;
    let message = assert_migration_error(&sqlite_address(&first), &store_address(&there), "storage_not_empty");
    assert!(message.contains("documents (1)") && message.contains("clear it"), "{message}");
    there.open().await.remove_document(&default_base(), other).await.unwrap();

    migrate_all(&sqlite_address(&first), &store_address(&there));
    let id = open_sqlite(first.path()).live_snapshot().await.unwrap().documents[1].id;
    there
        .open()
        .await
        .update_metadata(&default_base(), id, metadata(json!({})), None, corbie::knowledge::task::TaskLink::Standalone)
        .await
        .unwrap();
    let message = assert_migration_error(&sqlite_address(&first), &store_address(&there), "storage_not_empty");
    assert!(message.contains("1.pdf"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_nothing_is_moved_while_somebody_is_at_it() {
    let (first, there) = (populated_store(3).await, store_location());
    let store = open_sqlite(first.path());
    assert_migration_error(&sqlite_address(&first), &store_address(&there), "storage_in_use");
    drop(store);
    let in_use = there.open().await;
    assert_migration_error(&sqlite_address(&first), &store_address(&there), "storage_in_use");
    drop(in_use);
    open_sqlite(first.path()).add_task(&task("waits.pdf")).await.unwrap();
    let message = assert_migration_error(&sqlite_address(&first), &store_address(&there), "unfinished_tasks");
    assert!(message.contains("1 queued") && message.contains("cancel"), "{message}");
}

#[test]
fn a13_an_address_may_stand_in_a_variable_and_is_never_repeated() {
    let (first, there) = (temp_folder(), temp_folder());
    drop(open_sqlite(first.path()));
    let output = migrate_command("env:OLD_HOME", &sqlite_address(&there))
        .env("OLD_HOME", sqlite_address(&first))
        .output()
        .unwrap();
    assert_eq!(json_output(&output).1, Some(0));
    let message = assert_migration_error("env:OLD_HOME_THAT_IS_NOT", &sqlite_address(&there), "invalid_parameter");
    assert!(message.contains("OLD_HOME_THAT_IS_NOT") && message.contains("not set"), "{message}");
    for wrong in ["mysql://ada:secret@h/x", "postgres://ada:secret@h/x?sslmode=often", "secret"] {
        let message = assert_migration_error(&sqlite_address(&first), wrong, "invalid_parameter");
        assert!(message.starts_with("`--to`") && !message.contains("secret"), "{message}");
    }
    assert_migration_error(&sqlite_address(&first), &sqlite_address(&first), "invalid_parameter");
    assert_migration_error("sqlite:/there/is/none", &sqlite_address(&there), "storage_not_found");
}
