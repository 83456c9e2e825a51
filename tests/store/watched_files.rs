//! Stored state of watched files.

use corbie::knowledge::document::{Claim, DocumentId, Origin};
use corbie::knowledge::store::{
    DocumentListQuery, FileId, FileStamp, IngestState, RowUpdate, Store, TaskListQuery, WatchedFile,
};
use corbie::knowledge::task::{TaskEnd, TaskId, TaskLink, TaskState};
use serde_json::json;

use crate::fixture::{base_named, default_base, document, metadata, put, store_location, task};

fn watched_file(path: &str, standing: IngestState) -> WatchedFile {
    let look = FileStamp { modified: Some(-5), size: 7 };
    WatchedFile {
        path: path.to_owned(),
        stamp: look,
        device: u64::MAX,
        inode: u64::MAX - 1,
        ctime: Some(-3),
        state: standing,
    }
}

/// Stores the state of a new file.
async fn record_file(store: &Store, path: &str, standing: IngestState) -> WatchedFile {
    let after = watched_file(path, standing);
    let turns = vec![RowUpdate { before: None, after: after.clone() }];
    assert_eq!(store.update_watched_files(&default_base(), turns).await.unwrap(), [true]);
    after
}

async fn file_standing(store: &Store, path: &str) -> IngestState {
    let rows = store.watched_files(&default_base()).await.unwrap();
    rows.into_iter().find(|row| row.path == path).unwrap().state
}

#[tokio::test]
async fn what_was_seen_is_kept_over_a_start_and_forgotten_when_asked() {
    let home = store_location();
    let place = FileId { device: u64::MAX, inode: 1 };
    let store = home.open().await;
    let task = TaskId::random();
    let mut rows = Vec::new();
    for (path, standing) in [
        ("/w/a.txt", IngestState::Pending),
        ("/w/b.txt", IngestState::InProgress(task)),
        ("/w/c.txt", IngestState::Done(None)),
        ("/w/d.txt", IngestState::Done(Some(DocumentId::random()))),
    ] {
        rows.push(record_file(&store, path, standing).await);
    }
    store.record_watched_folder("/w", FileId { inode: 9, ..place }).await.unwrap();
    store.record_watched_folder("/w", place).await.unwrap();
    drop(store);
    let store = home.open().await;
    let mut found = store.watched_files(&default_base()).await.unwrap();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert_eq!(found, rows);
    assert_eq!(store.watched_files(&base_named("other")).await.unwrap(), []);
    assert_eq!(store.watched_folder("/w").await.unwrap(), Some(place));
    assert_eq!(store.watched_folder("/").await.unwrap(), None);
    store.remove_watched_files(&default_base(), vec!["/w/a.txt".to_owned(), "/w/c.txt".to_owned()]).await.unwrap();
    assert_eq!(store.watched_files(&default_base()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn only_who_knows_how_it_is_changes_a_row() {
    let home = store_location();
    let store = home.open().await;
    let before = record_file(&store, "/w/a.txt", IngestState::Pending).await;
    let going = watched_file("/w/a.txt", IngestState::InProgress(TaskId::random()));
    let late = watched_file("/w/a.txt", IngestState::InProgress(TaskId::random()));
    let turn =
        |before: Option<&WatchedFile>, after: &WatchedFile| RowUpdate { before: before.cloned(), after: after.clone() };
    let turns =
        vec![turn(Some(&before), &going), turn(Some(&before), &late), turn(None, &late), turn(Some(&late), &before)];
    assert_eq!(store.update_watched_files(&default_base(), turns).await.unwrap(), [true, false, false, false]);
    assert_eq!(file_standing(&store, "/w/a.txt").await, going.state);
}

#[tokio::test]
async fn k93_a_base_that_is_cleared_waits_for_nothing() {
    let home = store_location();
    let store = home.open().await;
    record_file(&store, "/w/a.txt", IngestState::Pending).await;
    record_file(&store, "/w/b.txt", IngestState::InProgress(TaskId::random())).await;
    store.clear(&default_base()).await.unwrap();
    for path in ["/w/a.txt", "/w/b.txt"] {
        assert_eq!(file_standing(&store, path).await, IngestState::Done(None));
    }
}

#[tokio::test]
async fn a_task_that_is_dismissed_is_not_begun_again_and_one_that_is_cancelled_may_be() {
    let home = store_location();
    let store = home.open().await;
    let (dismissed, cancelled) = (task("a.txt"), task("b.txt"));
    for (path, task) in [("/w/a.txt", &dismissed), ("/w/b.txt", &cancelled)] {
        store.add_task(task).await.unwrap();
        record_file(&store, path, IngestState::InProgress(task.id)).await;
    }
    store.dismiss_task(dismissed.id).await.unwrap();
    store.end_task(TaskEnd::cancelled(cancelled.id)).await.unwrap();
    assert_eq!(file_standing(&store, "/w/a.txt").await, IngestState::Done(None));
    assert_eq!(file_standing(&store, "/w/b.txt").await, IngestState::InProgress(cancelled.id));
}

#[tokio::test]
async fn an_attempt_that_failed_is_listed_until_it_is_forgotten() {
    let home = store_location();
    let store = home.open().await;
    let (failed, waiting) = (task("a.txt"), task("b.txt"));
    for task in [&failed, &waiting] {
        store.add_task(task).await.unwrap();
    }
    assert!(store.end_task(TaskEnd::failed(failed.id, "worker_crashed", "it crashed")).await.unwrap());
    let listed = async || {
        let query = TaskListQuery { bases: vec![default_base()], owner: None, states: Vec::new(), limit: 9 };
        store.latest_tasks(query).await.unwrap().into_iter().map(|task| task.id).collect::<Vec<_>>()
    };
    assert_eq!(listed().await, [waiting.id, failed.id]);
    store.hide_failed_tasks(vec![failed.id, waiting.id]).await.unwrap();
    assert_eq!(listed().await, [waiting.id], "what is not over is listed");
    let documents = store.documents(&default_base(), DocumentListQuery::default()).await.unwrap();
    assert_eq!((documents.total, documents.documents[0].task), (1, Some(waiting.id)));
    let told = store.task(failed.id).await.unwrap().unwrap();
    assert!(matches!(told.state, TaskState::Failed { .. }), "{told:?}");
}

#[tokio::test]
async fn documents_of_watched_folders_are_told_whose_files_nobody_remembers() {
    let home = store_location();
    let store = home.open().await;
    let (mut known, mut stray, mut nowhere) = (document("known", 1), document("stray", 1), document("nowhere", 1));
    for new in [&mut known, &mut stray, &mut nowhere] {
        new.origin = Origin::Watched;
    }
    nowhere.path = None;
    for new in [&known, &stray, &nowhere, &document("added", 1)] {
        put(&store, new.clone()).await;
    }
    record_file(&store, known.path.as_deref().unwrap(), IngestState::Done(Some(known.id))).await;
    let expected = WatchedFile {
        path: stray.path.clone().unwrap(),
        stamp: FileStamp { modified: None, size: stray.size_bytes },
        device: 0,
        inode: 0,
        ctime: None,
        state: IngestState::Done(Some(stray.id)),
    };
    assert_eq!(store.untracked_documents(&default_base()).await.unwrap(), [expected]);
    assert_eq!(store.untracked_documents(&base_named("other")).await.unwrap(), []);
}

#[tokio::test]
async fn a_document_that_a_user_claims_is_not_removed_with_its_file() {
    let home = store_location();
    let store = home.open().await;
    let mut new = document("watched.pdf", 1);
    new.origin = Origin::Watched;
    put(&store, new.clone()).await;
    let other = document("other.pdf", 1);
    put(&store, other.clone()).await;
    let claim = Claim {
        origin: Origin::Added,
        filename: "mine.pdf".to_owned(),
        path: Some("/home/ada/mine.pdf".to_owned()),
        metadata: metadata(json!({ "tags": ["mine"] })),
    };
    let nobody =
        store.claim_document(&default_base(), DocumentId::random(), claim.clone(), TaskLink::Standalone).await.unwrap();
    assert_eq!(nobody, None);
    let claimed =
        store.claim_document(&default_base(), new.id, claim.clone(), TaskLink::Standalone).await.unwrap().unwrap();
    assert_eq!((claimed.origin, &claimed.filename, &claimed.path), (Origin::Added, &claim.filename, &claim.path));
    assert_eq!(claimed.metadata, claim.metadata);
    let path = claim.path.clone().unwrap();
    assert_eq!(store.remove_watched_document(&default_base(), new.id, &path).await.unwrap(), None);
    let taken = Claim { path: other.path.clone(), ..claim };
    let claimed = store.claim_document(&default_base(), new.id, taken, TaskLink::Standalone).await.unwrap().unwrap();
    assert_eq!(claimed.path, None, "another document has it");
}

#[tokio::test]
async fn the_next_version_of_a_users_document_is_the_users() {
    let home = store_location();
    let store = home.open().await;
    for (first, next, expected) in [
        (Origin::Added, Origin::Watched, Origin::Added),
        (Origin::Watched, Origin::Watched, Origin::Watched),
        (Origin::Watched, Origin::Added, Origin::Added),
    ] {
        let mut new = document(&format!("{first:?} {next:?}"), 1);
        new.origin = first;
        put(&store, new.clone()).await;
        (new.replaces, new.origin, new.sha256[0]) = (Some(new.id), next, !new.sha256[0]);
        put(&store, new.clone()).await;
        assert_eq!(store.document(&default_base(), new.id).await.unwrap().unwrap().origin, expected);
    }
}
