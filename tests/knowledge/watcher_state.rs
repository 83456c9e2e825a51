//! Persistent state of watched folders: restarts, unmounted disks, and user removals.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use corbie::knowledge::document::BaseName;
use corbie::knowledge::store::IngestState;
use corbie::knowledge::task::TaskRecord;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{CROWS, KnowledgeServer, Storage, StoreHandle, long_text, path_string};
use crate::process::wait_for;
use crate::watcher::wait_for_documents;

const BEES: &str = "Bees gather nectar and make honey.";
const WASPS: &str = "Wasps build nests of paper that they chew from wood.";

/// A storage that outlives the program, and watched folders.
struct WatchedFolders {
    store: OnceCell<StoreHandle>,
    storage: Storage,
    parent: TempDir,
    watch: Value,
}

impl WatchedFolders {
    /// Creates folders by name, such as `a` and `a/b`.
    fn new(folders: &[&str]) -> WatchedFolders {
        let parent = tempfile::tempdir().unwrap();
        for folder in folders {
            fs::create_dir_all(parent.path().join(folder)).unwrap();
        }
        let watch = folders.iter().map(|folder| json!({ "path": parent.path().join(folder) })).collect();
        WatchedFolders { store: OnceCell::new(), storage: Storage::new(), parent, watch }
    }

    fn start(&self) -> KnowledgeServer {
        KnowledgeServer::with_storage(&self.storage, &[("WATCH", &self.watch.to_string()), ("WATCH_INTERVAL", "100ms")])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.parent.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// The store, opened by another process.
    fn store(&self) -> &StoreHandle {
        self.store.get_or_init(|| self.storage.open_store())
    }

    /// Number of tasks that match a condition, including ended ones.
    fn watch_tasks(&self, condition: impl Fn(&TaskRecord) -> bool) -> usize {
        let tasks = self.store().run(async |store| store.tasks(None, 1000).await.unwrap());
        tasks.iter().filter(|task| task.owner == "watch" && condition(task)).count()
    }

    fn tasks_of(&self, filename: &str) -> usize {
        self.watch_tasks(|task| task.filename.as_deref() == Some(filename))
    }

    fn tasks_in_state(&self, state: &str) -> usize {
        self.watch_tasks(|task| task.state.name() == state)
    }

    /// Number of stored files that are waiting, in progress and settled.
    fn state_counts(&self) -> [usize; 3] {
        let rows = self.store().run(async |store| store.watched_files(&BaseName::default()).await.unwrap());
        let count = |fits: fn(IngestState) -> bool| rows.iter().filter(|row| fits(row.state)).count();
        [
            count(|standing| matches!(standing, IngestState::Pending)),
            count(|standing| matches!(standing, IngestState::InProgress(_))),
            count(|standing| matches!(standing, IngestState::Done(_))),
        ]
    }

    /// Waits until this many files are stored and none has pending work.
    #[track_caller]
    fn wait_until_settled(&self, files: usize) {
        wait_for("all files to be settled", || (self.state_counts() == [0, 0, files]).then_some(()));
    }
}

fn stop(mut corbie: KnowledgeServer) {
    corbie.running.close_stdin();
    corbie.running.terminate();
    wait_for("the program to end", || corbie.running.has_exited().then_some(()));
}

#[track_caller]
fn remove_document(corbie: &mut KnowledgeServer, document: &Value) {
    let removed = corbie.call("knowledge-remove", json!({ "document_id": document["id"], "confirm": true }));
    assert_eq!(removed["success"], true, "{removed}");
}

/// Waits until the best passage for a question is from this file and contains this word.
#[track_caller]
fn wait_for_passage(corbie: &mut KnowledgeServer, question: &str, filename: &str, word: &str) {
    wait_for(&format!("{word} in {filename}"), || {
        let found = corbie.search(question);
        let best = &found["results"][0];
        let has_word = best["chunk_text"].as_str().is_some_and(|text| text.contains(word));
        (best["filename"] == filename && has_word).then_some(())
    });
}

#[test]
fn k43_what_a_user_removed_stays_away_until_its_file_changes() {
    let place = WatchedFolders::new(&["docs"]);
    place.write("docs/bees.txt", BEES);
    place.write("docs/crows.txt", CROWS);
    let mut corbie = place.start();
    let documents = wait_for_documents(&mut corbie, &["bees.txt", "crows.txt"]);
    place.wait_until_settled(2);
    remove_document(&mut corbie, &documents[1]);
    // A scan picks up files in name order, so `crows.txt` would have been added by then.
    place.write("docs/later.txt", "Herons stand in shallow water.");
    wait_for_documents(&mut corbie, &["bees.txt", "later.txt"]);
    place.wait_until_settled(3);
    stop(corbie);
    let mut corbie = place.start();
    place.write("docs/latest.txt", "Owls hear a mouse under the snow.");
    wait_for_documents(&mut corbie, &["bees.txt", "later.txt", "latest.txt"]);
    place.write("docs/crows.txt", WASPS);
    wait_for_documents(&mut corbie, &["bees.txt", "crows.txt", "later.txt", "latest.txt"]);
}

#[test]
fn k93_what_was_cleared_stays_away_until_it_changes() {
    let place = WatchedFolders::new(&["docs"]);
    place.write("docs/bees.txt", BEES);
    place.write("docs/crows.txt", CROWS);
    let mut corbie = place.start();
    wait_for_documents(&mut corbie, &["bees.txt", "crows.txt"]);
    place.wait_until_settled(2);
    corbie.call("knowledge-clear", json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
    place.write("docs/later.txt", "Herons stand in shallow water.");
    wait_for_documents(&mut corbie, &["later.txt"]);
    drop(corbie);
    let mut corbie = place.start();
    place.write("docs/latest.txt", "Owls hear a mouse under the snow.");
    wait_for_documents(&mut corbie, &["later.txt", "latest.txt"]);
    place.write("docs/crows.txt", WASPS);
    wait_for_documents(&mut corbie, &["crows.txt", "later.txt", "latest.txt"]);
}

#[test]
fn a_disk_that_is_not_mounted_at_the_start_costs_no_documents() {
    let place = WatchedFolders::new(&["disk", "other"]);
    place.write("disk/crows.txt", CROWS);
    place.write("other/bees.txt", BEES);
    let mut corbie = place.start();
    wait_for_documents(&mut corbie, &["bees.txt", "crows.txt"]);
    place.wait_until_settled(2);
    stop(corbie);
    // The folder exists, but is a different, empty one.
    fs::rename(place.path("disk"), place.path("unmounted")).unwrap();
    fs::create_dir(place.path("disk")).unwrap();
    let mut corbie = place.start();
    corbie.running.wait_for_log("keeping its documents");
    // A deletion in another folder takes as many scans as this one would have taken.
    place.remove("other/bees.txt");
    place.write("other/wasps.txt", WASPS);
    wait_for_documents(&mut corbie, &["crows.txt", "wasps.txt"]);
    place.remove("other/wasps.txt");
    place.write("other/herons.txt", "Herons stand in shallow water.");
    wait_for_documents(&mut corbie, &["crows.txt", "herons.txt"]);
    fs::remove_dir(place.path("disk")).unwrap();
    fs::rename(place.path("unmounted"), place.path("disk")).unwrap();
    place.remove("disk/crows.txt");
    wait_for_documents(&mut corbie, &["herons.txt"]);
}

#[test]
fn k43_what_was_deleted_while_nobody_looked_is_removed() {
    let place = WatchedFolders::new(&["docs"]);
    place.write("docs/crows.txt", CROWS);
    place.write("docs/bees.txt", BEES);
    let mut corbie = place.start();
    wait_for_documents(&mut corbie, &["bees.txt", "crows.txt"]);
    place.wait_until_settled(2);
    stop(corbie);
    place.remove("docs/crows.txt");
    let mut corbie = place.start();
    wait_for_documents(&mut corbie, &["bees.txt"]);
    place.wait_until_settled(1);
    stop(corbie);
    // If the empty folder is the same directory, its files are really deleted.
    place.remove("docs/bees.txt");
    wait_for_documents(&mut place.start(), &[]);
}

#[test]
fn k43_a_file_with_an_older_time_has_changed() {
    let place = WatchedFolders::new(&["docs"]);
    place.write("docs/birds.txt", CROWS);
    let mut corbie = place.start();
    let before = wait_for_documents(&mut corbie, &["birds.txt"]);
    place.wait_until_settled(1);
    // Same length, and older than its document: a restored backup.
    let older = CROWS.replace("Crows", "Storks").replace("clever birds", "clever bird");
    assert_eq!(older.len(), CROWS.len());
    let restored = place.path("restored");
    fs::write(&restored, older).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::options().write(true).open(&restored).unwrap().set_modified(time).unwrap();
    fs::rename(restored, place.path("docs/birds.txt")).unwrap();
    wait_for_passage(&mut corbie, "clever storks remember faces", "birds.txt", "Storks");
    assert_eq!(wait_for_documents(&mut corbie, &["birds.txt"])[0]["id"], before[0]["id"]);
}

#[test]
fn a_task_that_was_cancelled_is_tried_again_and_one_that_a_user_removed_is_not() {
    let place = WatchedFolders::new(&["docs"]);
    place.write("docs/long.txt", &long_text());
    let mut corbie = place.start();
    let going = |corbie: &mut KnowledgeServer| {
        wait_for("a task that runs", || {
            let shown = corbie.show()["documents"][0].clone();
            (shown["processing_status"] == "processing").then_some(shown)
        })
    };
    let first = going(&mut corbie);
    // Another process cancels the task.
    let id = first["task_id"].as_str().unwrap().parse().unwrap();
    assert!(place.store().run(async |store| store.cancel_task(id).await.unwrap()));
    let second = wait_for("another task", || Some(going(&mut corbie)).filter(|shown| shown["id"] != first["id"]));
    remove_document(&mut corbie, &second);
    place.write("docs/short.txt", CROWS);
    wait_for_documents(&mut corbie, &["short.txt"]);
    place.wait_until_settled(2);
    assert_eq!((place.tasks_of("long.txt"), place.tasks_in_state("cancelled")), (2, 2));
}

#[test]
fn k43_what_cannot_be_read_is_not_tried_again_before_it_changes() {
    let place = WatchedFolders::new(&["docs"]);
    place.write("docs/page.html", "<!DOCTYPE html><html><body></body></html>");
    let corbie = place.start();
    place.wait_until_settled(1);
    assert_eq!(place.tasks_in_state("failed"), 1);
    stop(corbie);
    let mut corbie = place.start();
    place.write("docs/crows.txt", CROWS);
    place.wait_until_settled(2);
    assert_eq!(place.tasks_in_state("failed"), 1);
    place.write("docs/page.html", "<!DOCTYPE html><html><body><p>Storks and herons wade.</p></body></html>");
    wait_for_passage(&mut corbie, "storks and herons wade", "page.html", "Storks");
}

#[test]
fn k36_what_a_user_adds_does_not_go_with_the_watched_file() {
    let place = WatchedFolders::new(&["docs"]);
    place.write("docs/bees.txt", BEES);
    place.write("docs/crows.txt", CROWS);
    place.write("docs/wasps.txt", WASPS);
    let mut corbie = place.start();
    let before = wait_for_documents(&mut corbie, &["bees.txt", "crows.txt", "wasps.txt"]);
    place.wait_until_settled(3);
    let ids: Vec<Value> = before.iter().map(|document| document["id"].clone()).collect();
    // Claimed by an upload, by the watched path, and from another folder.
    let upload = corbie.client.call_bytes("POST", "/files?filename=sent.txt", BEES.as_bytes()).json();
    let added = corbie.add_path(upload["file_path"].as_str().unwrap(), json!({}));
    assert_eq!((&added["document_id"], &added["duplicate"]), (&ids[0], &json!(true)), "{added}");
    let added = corbie.add_path(&path_string(&place.path("docs/crows.txt")), json!({}));
    assert_eq!(added["document_id"], ids[1], "{added}");
    let added = corbie.add("mine.txt", WASPS);
    assert_eq!(added["document_id"], ids[2], "{added}");
    wait_for_documents(&mut corbie, &["crows.txt", "mine.txt", "sent.txt"]);
    // Later contents of a watched file become new documents, except if the user added the same path.
    place.write("docs/bees.txt", "Storks nest on chimneys.");
    place.write("docs/crows.txt", "Crows drop nuts on roads.");
    wait_for_documents(&mut corbie, &["bees.txt", "crows.txt", "mine.txt", "sent.txt"]);
    wait_for_passage(&mut corbie, "crows drop nuts on roads", "crows.txt", "nuts");
    wait_for_passage(&mut corbie, "bees make honey of nectar", "sent.txt", "honey");
    place.wait_until_settled(3);
    for name in ["docs/bees.txt", "docs/crows.txt", "docs/wasps.txt"] {
        place.remove(name);
    }
    place.wait_until_settled(0);
    let after = wait_for_documents(&mut corbie, &["crows.txt", "mine.txt", "sent.txt"]);
    assert_eq!(after.iter().map(|document| &document["id"]).collect::<Vec<_>>(), [&ids[1], &ids[2], &ids[0]]);
}

#[test]
fn k43_folders_that_share_files_do_not_fight() {
    let place = WatchedFolders::new(&["docs", "docs/deeper"]);
    place.write("docs/deeper/crows.txt", CROWS);
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.path("docs/deeper/crows.txt"), place.path("docs/linked.txt")).unwrap();
    let mut corbie = place.start();
    wait_for_documents(&mut corbie, &["crows.txt"]);
    place.wait_until_settled(1);
    assert_eq!(place.watch_tasks(|_| true), 1);
    place.write("docs/deeper/crows.txt", WASPS);
    wait_for_passage(&mut corbie, "wasps chew wood for paper nests", "crows.txt", "Wasps");
    place.wait_until_settled(1);
    assert_eq!(place.watch_tasks(|_| true), 2);
    place.remove("docs/deeper/crows.txt");
    wait_for_documents(&mut corbie, &[]);
    place.wait_until_settled(0);
}

#[test]
fn k43_a_copy_takes_the_document_of_a_file_that_goes() {
    let place = WatchedFolders::new(&["docs", "copies"]);
    place.write("docs/first.txt", CROWS);
    let mut corbie = place.start();
    let before = wait_for_documents(&mut corbie, &["first.txt"]);
    place.write("copies/second.txt", CROWS);
    place.wait_until_settled(2);
    stop(corbie);
    let mut corbie = place.start();
    place.remove("docs/first.txt");
    place.wait_until_settled(1);
    let after = wait_for_documents(&mut corbie, &["second.txt"]);
    assert_eq!(after[0]["id"], before[0]["id"]);
    // The first location leaves no trace.
    place.remove("copies/second.txt");
    wait_for_documents(&mut corbie, &[]);
}

#[test]
fn k08_a_file_whose_task_outlives_its_process_is_added_once() {
    let place = WatchedFolders::new(&["docs"]);
    place.write("docs/long.txt", &long_text());
    let corbie = place.start();
    wait_for("the task", || (place.state_counts()[1] == 1).then_some(()));
    corbie.running.signal("KILL");
    drop(corbie);
    let corbie = place.start();
    wait_for("the task to go on", || (place.tasks_in_state("running") == 1).then_some(()));
    // A scan unaware of the running task would have started another by then.
    place.write("docs/short.txt", CROWS);
    wait_for("the next file", || (place.tasks_of("short.txt") == 1).then_some(()));
    assert_eq!(place.tasks_of("long.txt"), 1);
    drop(corbie);
}

/// State after a repair of the files.
mod embedded {
    use rusqlite::Connection;

    use super::{BEES, WatchedFolders, stop};
    use crate::fixture::CROWS;
    use crate::watcher::wait_for_documents;

    #[test]
    fn k43_a_document_whose_file_nobody_remembers_goes_with_it() {
        let place = WatchedFolders::new(&["docs"]);
        place.write("docs/bees.txt", BEES);
        place.write("docs/crows.txt", CROWS);
        let mut corbie = place.start();
        let before = wait_for_documents(&mut corbie, &["bees.txt", "crows.txt"]);
        place.wait_until_settled(2);
        stop(corbie);
        // As a repair may leave it.
        let store = Connection::open(place.storage.path().join("knowledge.db")).unwrap();
        store.execute_batch("DELETE FROM watched; DELETE FROM watched_folders;").unwrap();
        drop(store);
        place.remove("docs/crows.txt");
        let mut corbie = place.start();
        let after = wait_for_documents(&mut corbie, &["bees.txt"]);
        assert_eq!(after[0]["id"], before[0]["id"]);
        place.wait_until_settled(1);
    }
}
