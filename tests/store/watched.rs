//! Stored state of watched files.

use corbie::knowledge::document::{Claim, DocumentId, Origin};
use corbie::knowledge::store::{Listing, Look, Place, Standing, Store, Turn, Watched};
use corbie::knowledge::task::{TaskEnd, TaskId, TaskState, Work};
use serde_json::json;

use crate::fixture::{base, document, home, metadata, named, put, task};

fn watched(path: &str, standing: Standing) -> Watched {
    let look = Look { modified: Some(-5), size: 7 };
    Watched { path: path.to_owned(), look, device: u64::MAX, inode: u64::MAX - 1, changed: Some(-3), standing }
}

/// Stores the state of a new file.
async fn note(store: &Store, path: &str, standing: Standing) -> Watched {
    let after = watched(path, standing);
    let turns = vec![Turn { before: None, after: after.clone() }];
    assert_eq!(store.turn_watched(&base(), turns).await.unwrap(), [true]);
    after
}

async fn standing(store: &Store, path: &str) -> Standing {
    let rows = store.watched(&base()).await.unwrap();
    rows.into_iter().find(|row| row.path == path).unwrap().standing
}

#[tokio::test]
async fn what_was_seen_is_kept_over_a_start_and_forgotten_when_asked() {
    let home = home();
    let place = Place { device: u64::MAX, inode: 1 };
    let store = home.open().await;
    let task = TaskId::random();
    let mut rows = Vec::new();
    for (path, standing) in [
        ("/w/a.txt", Standing::Waiting),
        ("/w/b.txt", Standing::Going(task)),
        ("/w/c.txt", Standing::Settled(None)),
        ("/w/d.txt", Standing::Settled(Some(DocumentId::random()))),
    ] {
        rows.push(note(&store, path, standing).await);
    }
    store.note_watched_folder("/w", Place { inode: 9, ..place }).await.unwrap();
    store.note_watched_folder("/w", place).await.unwrap();
    drop(store);
    let store = home.open().await;
    let mut found = store.watched(&base()).await.unwrap();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert_eq!(found, rows);
    assert_eq!(store.watched(&named("other")).await.unwrap(), []);
    assert_eq!(store.watched_folder("/w").await.unwrap(), Some(place));
    assert_eq!(store.watched_folder("/").await.unwrap(), None);
    store.forget_watched(&base(), vec!["/w/a.txt".to_owned(), "/w/c.txt".to_owned()]).await.unwrap();
    assert_eq!(store.watched(&base()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn only_who_knows_how_it_is_changes_a_row() {
    let home = home();
    let store = home.open().await;
    let before = note(&store, "/w/a.txt", Standing::Waiting).await;
    let going = watched("/w/a.txt", Standing::Going(TaskId::random()));
    let late = watched("/w/a.txt", Standing::Going(TaskId::random()));
    let turn = |before: Option<&Watched>, after: &Watched| Turn { before: before.cloned(), after: after.clone() };
    let turns =
        vec![turn(Some(&before), &going), turn(Some(&before), &late), turn(None, &late), turn(Some(&late), &before)];
    assert_eq!(store.turn_watched(&base(), turns).await.unwrap(), [true, false, false, false]);
    assert_eq!(standing(&store, "/w/a.txt").await, going.standing);
}

#[tokio::test]
async fn k93_a_base_that_is_cleared_waits_for_nothing() {
    let home = home();
    let store = home.open().await;
    note(&store, "/w/a.txt", Standing::Waiting).await;
    note(&store, "/w/b.txt", Standing::Going(TaskId::random())).await;
    store.clear(&base()).await.unwrap();
    for path in ["/w/a.txt", "/w/b.txt"] {
        assert_eq!(standing(&store, path).await, Standing::Settled(None));
    }
}

#[tokio::test]
async fn a_task_that_is_dismissed_is_not_begun_again_and_one_that_is_cancelled_may_be() {
    let home = home();
    let store = home.open().await;
    let (dismissed, cancelled) = (task("a.txt"), task("b.txt"));
    for (path, task) in [("/w/a.txt", &dismissed), ("/w/b.txt", &cancelled)] {
        store.add_task(task).await.unwrap();
        note(&store, path, Standing::Going(task.id)).await;
    }
    store.dismiss_task(dismissed.id).await.unwrap();
    store.end_task(TaskEnd::cancelled(cancelled.id)).await.unwrap();
    assert_eq!(standing(&store, "/w/a.txt").await, Standing::Settled(None));
    assert_eq!(standing(&store, "/w/b.txt").await, Standing::Going(cancelled.id));
}

#[tokio::test]
async fn an_attempt_that_failed_is_listed_until_it_is_forgotten() {
    let home = home();
    let store = home.open().await;
    let (failed, waiting) = (task("a.txt"), task("b.txt"));
    for task in [&failed, &waiting] {
        store.add_task(task).await.unwrap();
    }
    assert!(store.end_task(TaskEnd::failed(failed.id, "worker_crashed", "it crashed")).await.unwrap());
    assert_eq!(store.documents(&base(), Listing::default()).await.unwrap().total, 2);
    store.forget_attempts(vec![failed.id, waiting.id]).await.unwrap();
    let listed = store.documents(&base(), Listing::default()).await.unwrap();
    assert_eq!((listed.total, listed.documents[0].task), (1, Some(waiting.id)), "what is not over is listed");
    let told = store.task(failed.id).await.unwrap().unwrap();
    assert!(matches!(told.state, TaskState::Failed { .. }), "{told:?}");
}

#[tokio::test]
async fn documents_of_watched_folders_are_told_whose_files_nobody_remembers() {
    let home = home();
    let store = home.open().await;
    let (mut known, mut stray, mut nowhere) = (document("known", 1), document("stray", 1), document("nowhere", 1));
    for new in [&mut known, &mut stray, &mut nowhere] {
        new.origin = Origin::Watched;
    }
    nowhere.path = None;
    for new in [&known, &stray, &nowhere, &document("added", 1)] {
        put(&store, new.clone()).await;
    }
    note(&store, known.path.as_deref().unwrap(), Standing::Settled(Some(known.id))).await;
    let expected = Watched {
        path: stray.path.clone().unwrap(),
        look: Look { modified: None, size: stray.size_bytes },
        device: 0,
        inode: 0,
        changed: None,
        standing: Standing::Settled(Some(stray.id)),
    };
    assert_eq!(store.unremembered(&base()).await.unwrap(), [expected]);
    assert_eq!(store.unremembered(&named("other")).await.unwrap(), []);
}

#[tokio::test]
async fn a_document_that_a_user_claims_is_not_removed_with_its_file() {
    let home = home();
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
    let nobody = store.claim_document(&base(), DocumentId::random(), claim.clone(), Work::Alone).await.unwrap();
    assert_eq!(nobody, None);
    let claimed = store.claim_document(&base(), new.id, claim.clone(), Work::Alone).await.unwrap().unwrap();
    assert_eq!((claimed.origin, &claimed.filename, &claimed.path), (Origin::Added, &claim.filename, &claim.path));
    assert_eq!(claimed.metadata, claim.metadata);
    let path = claim.path.clone().unwrap();
    assert_eq!(store.remove_watched_document(&base(), new.id, &path).await.unwrap(), None);
    let taken = Claim { path: other.path.clone(), ..claim };
    let claimed = store.claim_document(&base(), new.id, taken, Work::Alone).await.unwrap().unwrap();
    assert_eq!(claimed.path, None, "another document has it");
}

#[tokio::test]
async fn the_next_version_of_a_users_document_is_the_users() {
    let home = home();
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
        assert_eq!(store.document(&base(), new.id).await.unwrap().unwrap().origin, expected);
    }
}
