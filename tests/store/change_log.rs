//! Change log: sequence numbers and change notifications.

use corbie::knowledge::document::FoundChunk;
use corbie::knowledge::store::Options;
use corbie::knowledge::store::sqlite::{ChangeKind, ChangesSince, Store};
use corbie::knowledge::task::{TaskEnd, TaskLink};
use serde_json::{Map, json};

use crate::fixture::{default_base, document, open_sqlite, put, task, temp_folder};

async fn changes_since(store: &Store, sequence: u64) -> Vec<(u64, Option<u64>, ChangeKind)> {
    match store.changes_since(sequence).await.unwrap() {
        ChangesSince::Available(changes) => changes.iter().map(|c| (c.sequence, c.document, c.kind)).collect(),
        ChangesSince::TooOld => panic!("too old"),
    }
}

#[tokio::test]
async fn every_write_has_a_number() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    assert_eq!((store.sequence().await.unwrap(), changes_since(&store, 0).await), (0, vec![]));
    let new = document("engine.pdf", 1);
    let first = put(&store, new.clone()).await;
    let second = put(&store, document("loom.pdf", 1)).await;
    store.update_metadata(&default_base(), new.id, Map::new(), None, TaskLink::Standalone).await.unwrap();
    store.remove_document(&default_base(), new.id).await.unwrap();
    store.clear(&default_base()).await.unwrap();
    assert_eq!((first.sequence, second.sequence, store.sequence().await.unwrap()), (1, 2, 5));
    let expected = [
        (1, Some(first.key), ChangeKind::Put),
        (2, Some(second.key), ChangeKind::Put),
        (3, Some(first.key), ChangeKind::MetadataUpdated),
        (4, Some(first.key), ChangeKind::Removed),
        (5, None, ChangeKind::Cleared),
    ];
    assert_eq!(changes_since(&store, 0).await, expected);
    assert_eq!(changes_since(&store, 3).await, expected[3..]);
    assert_eq!(changes_since(&store, 5).await, []);
}

#[tokio::test]
async fn what_writes_nothing_has_no_number() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    let new = document("engine.pdf", 1);
    put(&store, new.clone()).await;
    store.put_document(new, TaskLink::Standalone).await.unwrap();
    store.add_task(&task("loom.pdf")).await.unwrap();
    store.clear(&crate::fixture::base_named("other")).await.unwrap();
    let mut unlike = document("tea.pdf", 2);
    unlike.chunks[1].vectors = vec![vec![1.0, 0.0]];
    assert!(store.put_document(unlike, TaskLink::Standalone).await.is_err());
    let cancelled = task("cancelled.pdf");
    store.add_task(&cancelled).await.unwrap();
    store.cancel_task(cancelled.id).await.unwrap();
    for work in [TaskLink::PartOf(cancelled.id), TaskLink::Ends(TaskEnd::completed(cancelled.id, json!({})))] {
        assert!(store.put_document(document("cancelled.pdf", 1), work).await.is_err());
    }
    assert_eq!(store.sequence().await.unwrap(), 1);
}

#[tokio::test]
async fn a_document_under_another_name_has_other_chunks_that_say_the_same() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    let new = document("engine.pdf", 3);
    let written = put(&store, new.clone()).await;
    let other = put(&store, document("loom.pdf", 2)).await;
    let before = store.chunks(&written.chunks.clone().collect::<Vec<_>>()).await.unwrap();
    let live = store.live_snapshot().await.unwrap();
    let moved = Some("/home/ada/loom and engine.pdf".to_owned());
    store
        .update_metadata(&default_base(), new.id, new.metadata.clone(), moved, TaskLink::Standalone)
        .await
        .unwrap()
        .unwrap();

    let ChangesSince::Available(changes) = store.changes_since(live.sequence).await.unwrap() else { panic!("too old") };
    assert_eq!(changes.iter().map(|change| change.kind).collect::<Vec<_>>(), [ChangeKind::Put]);
    let keys = store.live_snapshot().await.unwrap().documents[0].chunks.clone();
    assert!(keys.iter().all(|key| *key >= other.chunks.end), "{keys:?} are no new keys");
    let after = store.chunks(&keys).await.unwrap();
    let said = |chunk: &FoundChunk| (chunk.id, chunk.ordinal, chunk.text.clone());
    assert_eq!(after.iter().map(said).collect::<Vec<_>>(), before.iter().map(said).collect::<Vec<_>>());
    assert_eq!(after[0].filename, "loom and engine.pdf");
    assert_eq!(store.totals(&default_base()).await.unwrap().vectors, 10);
    let next = put(&store, document("tea.pdf", 1)).await;
    assert!(next.chunks.start > keys[2], "a key was given twice");
    let report = store.check().await.unwrap();
    assert!(report.is_consistent(), "{report:?}");
}

#[tokio::test]
async fn old_changes_are_forgotten_and_that_is_said() {
    let folder = temp_folder();
    let store = Store::open(folder.path(), Options { max_changes: 3, ..Options::default() }).unwrap();
    for number in 0..5 {
        put(&store, document(&format!("{number}.pdf"), 1)).await;
    }
    assert_eq!(store.changes_since(1).await.unwrap(), ChangesSince::TooOld);
    assert_eq!(changes_since(&store, 2).await.len(), 3);
    assert_eq!(store.changes_since(6).await.unwrap(), ChangesSince::TooOld, "a number of another history");
    drop(store);
    assert_eq!(open_sqlite(folder.path()).sequence().await.unwrap(), 5);
}

#[tokio::test]
async fn writes_to_documents_are_noticed_whoever_made_them() {
    let folder = temp_folder();
    let (one, other) = (open_sqlite(folder.path()), open_sqlite(folder.path()));
    assert_eq!(one.last_change().unwrap(), 0);
    put(&one, document("engine.pdf", 1)).await;
    assert_eq!((one.last_change().unwrap(), other.last_change().unwrap()), (1, 1));
    other.add_task(&task("loom.pdf")).await.unwrap();
    assert_eq!(one.last_change().unwrap(), 1, "a task is no document");
    put(&one, document("tea.pdf", 1)).await;
    put(&other, document("loom.pdf", 1)).await;
    assert_eq!(one.last_change().unwrap(), 3);
    assert_eq!(changes_since(&one, 0).await.len(), 3);
}
