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
use corbie::knowledge::store::{Look, Place, Standing, Store, Turn, Wanted, Watched, sqlite};
use corbie::knowledge::task::{TaskEnd, TaskState};
use serde_json::{Value, json};
use tempfile::TempDir;

use fixture::{Home, base, document, folder, home, metadata, named, open, put, task};

/// All pages of a document.
const ALL: Wanted = Wanted { from: 0, pages: u32::MAX, bytes: usize::MAX };

/// A store of a few hundred documents of all kinds, with the other stored state.
async fn filled(documents: u32) -> TempDir {
    let home = folder();
    let store = open(home.path());
    for number in 0..documents {
        let mut new = document(&format!("{number}.pdf"), number as usize % 5);
        if number % 3 == 0 {
            new.base = named("other");
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
            store.note_copy(id, None).await.unwrap();
            store.note_copy(id, Some(format!("/copies/{number}"))).await.unwrap();
            let after = Watched {
                path: format!("/watched/{number}"),
                look: Look { modified: Some(-5), size: 9 },
                device: u64::MAX,
                inode: number.into(),
                changed: None,
                standing: Standing::Settled(Some(id)),
            };
            assert_eq!(store.turn_watched(&base(), vec![Turn { before: None, after }]).await.unwrap(), [true]);
        }
    }
    store.note_watched_folder("/watched", Place { device: u64::MAX, inode: 7 }).await.unwrap();
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

fn at(folder: &TempDir) -> String {
    format!("sqlite:{}", folder.path().display())
}

fn at_home(home: &Home) -> String {
    match home {
        Home::Folder(folder) => at(folder),
        Home::Database(database) => database.url(),
    }
}

fn corbie(from: &str, to: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corbie"));
    let nowhere = std::env::temp_dir().join("corbie-migrate-has-no-settings");
    command.args(["knowledge", "migrate", "--json", "--from", from, "--to", to]);
    command.env("HOME", &nowhere).env("XDG_CONFIG_HOME", &nowhere).env("XDG_DATA_HOME", &nowhere);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The JSON output and the exit code.
fn told(output: &Output) -> (Value, Option<i32>) {
    let err = String::from_utf8_lossy(&output.stderr);
    let told = serde_json::from_slice(&output.stdout);
    (told.unwrap_or_else(|error| panic!("{error}: {output:?} {err}")), output.status.code())
}

#[track_caller]
fn moved(from: &str, to: &str) -> Value {
    let (told, code) = told(&corbie(from, to).output().unwrap());
    assert_eq!((code, &told["success"]), (Some(0), &json!(true)), "{told}");
    assert_eq!(told["from"], told["to"]);
    told
}

#[track_caller]
fn refused(from: &str, to: &str, error: &str) -> String {
    let (told, code) = told(&corbie(from, to).output().unwrap());
    assert_eq!((&told["error"], told["success"].as_bool()), (&json!(error), Some(false)), "{told}");
    assert_eq!(code, Some(if error == "invalid_parameter" { 2 } else { 1 }));
    told["message"].as_str().unwrap().to_owned()
}

fn shown(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Asserts that two stores have the same contents, as visible to callers.
async fn assert_same(one: &Store, other: &Store) {
    assert_eq!(one.bases().await.unwrap(), other.bases().await.unwrap());
    for base in one.bases().await.unwrap() {
        assert_eq!(one.totals(&base).await.unwrap(), other.totals(&base).await.unwrap());
        let mut watched = [one.watched(&base).await.unwrap(), other.watched(&base).await.unwrap()];
        watched.iter_mut().for_each(|watched| watched.sort_by(|a, b| a.path.cmp(&b.path)));
        assert_eq!(watched[0], watched[1]);
    }
    let place = "/watched";
    assert_eq!(one.watched_folder(place).await.unwrap(), other.watched_folder(place).await.unwrap());
    let mut tasks = [one.tasks(None, 99).await.unwrap(), other.tasks(None, 99).await.unwrap()];
    for task in tasks.iter_mut().flatten() {
        task.runner = None;
        if let TaskState::Failed { message, .. } = &mut task.state {
            *message = shown(message);
        }
    }
    assert_eq!(tasks[0], tasks[1]);
}

/// Asserts that the documents of two files are equal except for keys. Vectors may have been rounded.
async fn assert_same_documents(one: &sqlite::Store, other: &sqlite::Store) {
    let live = [one.live().await.unwrap().documents, other.live().await.unwrap().documents];
    assert_eq!(live[0].len(), live[1].len());
    for (a, b) in live[0].iter().zip(&live[1]) {
        assert_eq!(a.id, b.id, "and in the same order");
        let (mut a, mut b) = (
            one.text_and_chunks(&a.base, a.id, ALL).await.unwrap().unwrap(),
            other.text_and_chunks(&a.base, a.id, ALL).await.unwrap().unwrap(),
        );
        assert_eq!(one.copies(a.0.id).await.unwrap(), other.copies(b.0.id).await.unwrap());
        assert_eq!(serde_json::to_string(&a.0.metadata).unwrap(), serde_json::to_string(&b.0.metadata).unwrap());
        for document in [&mut a.0, &mut b.0] {
            document.key = 0;
            document.warning = document.warning.as_deref().map(shown);
        }
        assert_eq!(a, b);
    }
    let [a, b] = [vectors(one).await, vectors(other).await];
    assert_eq!(a.len(), b.len());
    let cosine = |a: &[f32], b: &[f32]| {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    assert!(a.iter().zip(&b).all(|(a, b)| cosine(a, b) >= 0.999));
}

async fn vectors(store: &sqlite::Store) -> Vec<Vec<f32>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let each = move |document: sqlite::LoadedDocument| {
        document.chunks.into_iter().flat_map(|chunk| chunk.vectors).for_each(|vector| sender.send(vector).unwrap());
        std::ops::ControlFlow::Continue(())
    };
    store.load(None, &[], each).await.unwrap();
    receiver.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_everything_moves_there_and_back() {
    let (first, there, back) = (filled(200).await, home(), folder());
    let went = moved(&at(&first), &at_home(&there));
    assert_eq!((&went["documents_written"], &went["from"]["tasks"]), (&json!(200), &json!(2)));
    assert_same(&open(first.path()).into(), &there.open().await).await;

    let again = moved(&at(&first), &at_home(&there));
    assert_eq!((&again["documents_written"], &again["documents_passed_over"]), (&json!(0), &json!(200)));
    assert_eq!(again["to"], went["to"]);

    let returned = moved(&at_home(&there), &at(&back));
    assert_eq!(returned["to"], went["from"]);
    let (one, other) = (open(first.path()), open(back.path()));
    assert_same_documents(&one, &other).await;
    assert_same(&one.into(), &other.clone().into()).await;
    assert!(other.check().await.unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_a_move_that_was_killed_goes_on() {
    let (first, there, back) = (folder(), home(), folder());
    let store = open(first.path());
    for number in 0..100 {
        put(&store, document(&format!("{number}.pdf"), 200)).await;
    }
    drop(store);
    for (from, to) in [(at(&first), at_home(&there)), (at_home(&there), at(&back))] {
        let mut child = corbie(&from, &to).spawn().unwrap();
        wait_for_some(&mut child, if to == at(&back) { None } else { Some(&there) }, back.path());
        child.kill().unwrap();
        child.wait().unwrap();
        let told = moved(&from, &to);
        assert_eq!(told["to"]["chunks"], 20_000);
        let (written, passed_over) = (&told["documents_written"], &told["documents_passed_over"]);
        assert_eq!(written.as_u64().unwrap() + passed_over.as_u64().unwrap(), 100);
        assert!(passed_over.as_u64().unwrap() > 0 && written.as_u64().unwrap() > 0, "{told}");
    }
    assert_same_documents(&open(first.path()), &open(back.path())).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a13_a_move_that_is_interrupted_says_how_to_go_on() {
    let (first, there) = (folder(), home());
    let store = open(first.path());
    for number in 0..60 {
        put(&store, document(&format!("{number}.pdf"), 100)).await;
    }
    drop(store);
    let mut child = corbie(&at(&first), &at_home(&there)).spawn().unwrap();
    wait_for_some(&mut child, Some(&there), first.path());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let (told, code) = told(&child.wait_with_output().unwrap());
    assert_eq!((code, &told["error"]), (Some(130), &json!("interrupted")), "{told}");
    assert!(told["message"].as_str().unwrap().contains("the same command goes on"), "{told}");
    let done = told["documents_done"].as_u64().unwrap();
    assert!((1..60).contains(&done), "{done}");
    assert_eq!(moved(&at(&first), &at_home(&there))["documents_passed_over"], done);
}

/// Waits until the target of a migration contains some documents.
fn wait_for_some(child: &mut Child, home: Option<&Home>, folder: &Path) {
    let size = |folder: &Path| {
        let size = |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |found| found.len());
        size("knowledge.db") + size("knowledge.db-wal")
    };
    let is_begun = || match home {
        Some(Home::Database(database)) => {
            let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'corbie' AND tablename = 'documents'";
            database.ask(tables) == ["1"] && database.ask("SELECT count(*) > 5 FROM corbie.documents") == ["t"]
        }
        Some(Home::Folder(folder)) => size(folder.path()) > 3 << 20,
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
    let (first, there) = (filled(3).await, home());
    let other = put(&there.open().await, document("other.pdf", 1)).await.id;
    let message = refused(&at(&first), &at_home(&there), "storage_not_empty");
    assert!(message.contains("documents (1)") && message.contains("clear it"), "{message}");
    there.open().await.remove_document(&base(), other).await.unwrap();

    moved(&at(&first), &at_home(&there));
    let id = open(first.path()).live().await.unwrap().documents[1].id;
    there
        .open()
        .await
        .describe_document(&base(), id, metadata(json!({})), None, corbie::knowledge::task::Work::Alone)
        .await
        .unwrap();
    let message = refused(&at(&first), &at_home(&there), "storage_not_empty");
    assert!(message.contains("1.pdf"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_nothing_is_moved_while_somebody_is_at_it() {
    let (first, there) = (filled(3).await, home());
    let store = open(first.path());
    refused(&at(&first), &at_home(&there), "storage_in_use");
    drop(store);
    let in_use = there.open().await;
    refused(&at(&first), &at_home(&there), "storage_in_use");
    drop(in_use);
    open(first.path()).add_task(&task("waits.pdf")).await.unwrap();
    let message = refused(&at(&first), &at_home(&there), "unfinished_tasks");
    assert!(message.contains("1 waiting") && message.contains("cancel"), "{message}");
}

#[test]
fn a13_an_address_may_stand_in_a_variable_and_is_never_repeated() {
    let (first, there) = (folder(), folder());
    drop(open(first.path()));
    let output = corbie("env:OLD_HOME", &at(&there)).env("OLD_HOME", at(&first)).output().unwrap();
    assert_eq!(told(&output).1, Some(0));
    let message = refused("env:OLD_HOME_THAT_IS_NOT", &at(&there), "invalid_parameter");
    assert!(message.contains("OLD_HOME_THAT_IS_NOT") && message.contains("not set"), "{message}");
    for wrong in ["mysql://ada:secret@h/x", "postgres://ada:secret@h/x?sslmode=often", "secret"] {
        let message = refused(&at(&first), wrong, "invalid_parameter");
        assert!(message.starts_with("`--to`") && !message.contains("secret"), "{message}");
    }
    refused(&at(&first), &at(&first), "invalid_parameter");
    refused("sqlite:/there/is/none", &at(&there), "storage_not_found");
}
