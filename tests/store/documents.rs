//! Documents: put, replace, describe, remove.

use corbie::knowledge::document::{BaseName, DocumentId, FoundChunk, Origin, PutOutcome, Status, Totals};
use corbie::knowledge::store::{Error, PageRange};
use corbie::knowledge::task::TaskLink;
use serde_json::json;

use crate::fixture::{base_named, default_base, document, metadata, put, store_location};

#[tokio::test]
async fn k08_a_document_is_there_after_a_restart_with_all_that_was_put() {
    let home = store_location();
    let new = document("engine.pdf", 3);
    let written = put(&home.open().await, new.clone()).await;
    let store = home.open().await;
    let found = store.document(&default_base(), new.id).await.unwrap().unwrap();
    assert_eq!((found.key, found.id, found.base.as_str()), (written.key, new.id, "default"));
    assert_eq!((&found.filename, &found.path, &found.title), (&new.filename, &new.path, &new.title));
    assert_eq!((&found.format, found.size_bytes, found.sha256), (&new.format, new.size_bytes, new.sha256));
    assert_eq!((found.origin, found.status, &found.method), (Origin::Added, Status::Completed, &new.method));
    assert_eq!((&found.metadata, &found.model, &found.warning), (&new.metadata, &new.model, &None));
    assert_eq!((found.page_count, found.chunk_count, found.vector_count), (3, 3, 6));
    assert!(found.date_added > 0 && found.updated >= found.date_added);
    assert_eq!(store.document_by_content(&default_base(), new.sha256).await.unwrap(), Some(found.clone()));
    assert_eq!(store.document_by_path(&default_base(), "/home/ada/engine.pdf").await.unwrap(), Some(found));
}

#[tokio::test]
async fn k08_a_removed_document_stays_removed_after_a_restart() {
    let home = store_location();
    let store = home.open().await;
    let new = document("engine.pdf", 3);
    put(&store, new.clone()).await;
    store.remove_document(&default_base(), new.id).await.unwrap().unwrap();
    drop(store);
    assert_eq!(home.open().await.document(&default_base(), new.id).await.unwrap(), None);
}

#[tokio::test]
async fn k36_the_same_content_is_not_written_twice() {
    let home = store_location();
    let store = home.open().await;
    let first = document("engine.pdf", 3);
    put(&store, first.clone()).await;
    let mut again = document("copy.pdf", 3);
    again.sha256 = first.sha256;
    assert_eq!(
        store.put_document(again.clone(), TaskLink::Standalone).await.unwrap(),
        PutOutcome::DuplicateContent(first.id)
    );
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 1);
    again.base = base_named("other");
    assert!(matches!(store.put_document(again, TaskLink::Standalone).await.unwrap(), PutOutcome::Written(_)));
}

#[tokio::test]
async fn k36_what_is_said_about_a_document_changes_and_its_chunks_do_not() {
    let home = store_location();
    let store = home.open().await;
    let new = document("engine.pdf", 3);
    let written = put(&store, new.clone()).await;
    let said = metadata(json!({"author": "Charles"}));
    let moved = Some("/home/charles/engine.pdf".to_owned());
    let found = store
        .update_metadata(&default_base(), new.id, said.clone(), moved.clone(), TaskLink::Standalone)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((found.metadata, found.path), (said.clone(), moved.clone()));
    let keys: Vec<u64> = written.chunks.collect();
    let chunks = store.chunks(&keys).await.unwrap();
    assert!(chunks.len() == 3 && chunks.iter().all(|chunk| chunk.metadata == said));

    let other = document("other.pdf", 1);
    put(&store, other.clone()).await;
    let kept = store
        .update_metadata(&default_base(), other.id, said.clone(), moved, TaskLink::Standalone)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kept.path, other.path, "a path is not taken from another document");
    let nobody =
        store.update_metadata(&default_base(), DocumentId::random(), said, None, TaskLink::Standalone).await.unwrap();
    assert_eq!(nobody, None);
}

#[tokio::test]
async fn a_document_under_another_name_has_chunks_that_say_the_same() {
    let home = store_location();
    let store = home.open().await;
    let new = document("engine.pdf", 3);
    put(&store, new.clone()).await;
    put(&store, document("loom.pdf", 2)).await;
    let chunks = async || {
        let all = PageRange { from: 1, pages: 10, max_bytes: 1 << 20 };
        let (_, _, placed) = store.text_and_chunks(&default_base(), new.id, all).await.unwrap().unwrap();
        let mut found = Vec::new();
        for chunk in placed {
            found.push(store.chunk(chunk.id).await.unwrap().unwrap());
        }
        found
    };
    let before = chunks().await;
    let moved = Some("/home/ada/loom and engine.pdf".to_owned());
    store
        .update_metadata(&default_base(), new.id, new.metadata.clone(), moved, TaskLink::Standalone)
        .await
        .unwrap()
        .unwrap();
    let after = chunks().await;
    let said = |chunk: &FoundChunk| (chunk.id, chunk.ordinal, chunk.text.clone());
    assert_eq!(after.iter().map(said).collect::<Vec<_>>(), before.iter().map(said).collect::<Vec<_>>());
    assert!(after.len() == 3 && after.iter().all(|chunk| chunk.filename == "loom and engine.pdf"), "{after:?}");
    assert_eq!(store.totals(&default_base()).await.unwrap().vectors, 10);
    let report = store.check().await.unwrap();
    assert!(report.is_consistent(), "{report:?}");
}

#[tokio::test]
async fn k43_a_changed_file_keeps_its_id_and_its_date_and_swaps_the_rest() {
    let home = store_location();
    let store = home.open().await;
    let first = document("engine.pdf", 3);
    let before = put(&store, first.clone()).await;
    let added = store.document(&default_base(), first.id).await.unwrap().unwrap().date_added;
    let mut changed = document("engine.pdf", 2);
    changed.sha256 = [7; 32];
    assert_eq!(
        store.put_document(changed.clone(), TaskLink::Standalone).await.unwrap(),
        PutOutcome::PathTaken(first.id)
    );
    changed.replaces = Some(first.id);
    changed.metadata = metadata(json!({}));
    let after = put(&store, changed).await;
    assert_eq!((after.id, after.key), (first.id, before.key));
    let found = store.document(&default_base(), first.id).await.unwrap().unwrap();
    assert_eq!((found.date_added, found.chunk_count, found.vector_count, found.page_count), (added, 2, 4, 2));
    assert!(found.metadata.is_empty());
    assert!(after.chunks.start >= before.chunks.end, "keys of chunks are never used again");
    let old: Vec<u64> = before.chunks.collect();
    assert_eq!(store.chunks(&old).await.unwrap(), []);
    assert!(store.check().await.unwrap().is_consistent());
}

#[tokio::test]
async fn a_document_that_was_removed_meanwhile_is_not_replaced() {
    let home = store_location();
    let store = home.open().await;
    let first = document("engine.pdf", 3);
    put(&store, first.clone()).await;
    store.remove_document(&default_base(), first.id).await.unwrap();
    let again = corbie::knowledge::document::NewDocument { replaces: Some(first.id), ..first };
    let error = store.put_document(again, TaskLink::Standalone).await.unwrap_err();
    assert!(matches!(error, Error::DocumentNotFound), "{error}");
    assert_eq!(store.totals(&default_base()).await.unwrap().documents, 0);
}

#[tokio::test]
async fn k74_a_removal_takes_chunks_vectors_and_pages_with_it() {
    let home = store_location();
    let store = home.open().await;
    let (first, second) = (document("engine.pdf", 3), document("loom.pdf", 2));
    let gone = put(&store, first.clone()).await;
    let stays = put(&store, second.clone()).await;
    let removed = store.remove_document(&default_base(), first.id).await.unwrap().unwrap();
    assert_eq!((removed.filename.as_str(), removed.chunks, removed.vectors), ("engine.pdf", 3, 6));
    assert_eq!(store.remove_document(&default_base(), first.id).await.unwrap(), None);
    assert_eq!(store.remove_document(&base_named("other"), second.id).await.unwrap(), None, "a base has only its own");
    let keys: Vec<u64> = gone.chunks.chain(stays.chunks.clone()).collect();
    let left: Vec<u64> = store.chunks(&keys).await.unwrap().iter().map(|chunk| chunk.key).collect();
    assert_eq!(left, stays.chunks.collect::<Vec<_>>());
    assert_eq!(
        store.text(&default_base(), first.id, PageRange { from: 1, pages: 10, max_bytes: 1 << 20 }).await.unwrap(),
        None
    );
    let report = store.check().await.unwrap();
    assert_eq!((report.documents, report.pages, report.chunks, report.vectors), (1, 2, 2, 4));
    assert!(report.is_consistent(), "{report:?}");
}

#[tokio::test]
async fn k104_a_base_never_used_is_as_old_as_the_store() {
    let home = store_location();
    let before = now();
    let created = home.open().await.totals(&default_base()).await.unwrap().last_updated.expect("a time");
    assert!((before..=now()).contains(&created), "{before} {created}");
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let store = home.open().await;
    assert_eq!(store.totals(&default_base()).await.unwrap().last_updated, Some(created), "opening changes nothing");
    put(&store, document("engine.pdf", 1)).await;
    assert!(store.totals(&default_base()).await.unwrap().last_updated.unwrap() > created);
    assert_eq!(store.totals(&base_named("kitchen")).await.unwrap().last_updated, Some(created));
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_millis() as i64
}

#[tokio::test]
async fn k90_a_clear_empties_one_base_and_no_other() {
    let home = store_location();
    let store = home.open().await;
    put(&store, document("engine.pdf", 3)).await;
    put(&store, document("loom.pdf", 2)).await;
    let mut other = document("tea.pdf", 1);
    other.base = base_named("kitchen");
    put(&store, other).await;
    let cleared = store.clear(&default_base()).await.unwrap();
    assert_eq!((cleared.documents, cleared.chunks, cleared.vectors), (2, 5, 10));
    let totals = store.totals(&default_base()).await.unwrap();
    assert_eq!(Totals { last_updated: None, ..totals.clone() }, Totals::default());
    assert!(totals.last_updated.is_some());
    assert_eq!(store.totals(&base_named("kitchen")).await.unwrap().chunks, 1);
    assert_eq!(store.bases().await.unwrap(), [default_base(), base_named("kitchen")]);
    let report = store.check().await.unwrap();
    assert_eq!((report.documents, report.pages, report.chunks, report.vectors), (1, 1, 1, 2));
    assert!(report.is_consistent(), "{report:?}");
    store.clear(&base_named("kitchen")).await.unwrap();
    let new = document("again.pdf", 3);
    put(&store, new.clone()).await;
    store.remove_document(&default_base(), new.id).await.unwrap().unwrap();
    let report = store.check().await.unwrap();
    assert_eq!(
        (report.pages, report.chunks, report.vectors),
        (0, 0, 0),
        "what refers is looked at again after a clear"
    );
}

#[tokio::test]
async fn k94_clearing_what_is_empty_gives_zeros() {
    let home = store_location();
    let store = home.open().await;
    assert_eq!(store.clear(&default_base()).await.unwrap(), Default::default());
    let new = document("engine.pdf", 30);
    put(&store, new.clone()).await;
    store.remove_document(&default_base(), new.id).await.unwrap();
    assert_eq!(store.clear(&default_base()).await.unwrap(), Default::default());
}

#[tokio::test]
async fn chunks_come_in_the_order_they_were_asked_for() {
    let home = store_location();
    let store = home.open().await;
    let new = document("engine.pdf", 3);
    let first = put(&store, new.clone()).await.chunks.start;
    let found = store.chunks(&[first + 2, 999, first]).await.unwrap();
    assert_eq!(found.iter().map(|chunk| chunk.ordinal).collect::<Vec<_>>(), [2, 0]);
    let chunk = &found[0];
    assert_eq!((&chunk.text, chunk.pages, &chunk.headings), (&new.chunks[2].text, (3, 3), &new.chunks[2].headings));
    assert_eq!((chunk.document_id, &chunk.filename, &chunk.format), (new.id, &new.filename, &new.format));
    assert_eq!((&chunk.metadata, &chunk.title, chunk.tokens), (&new.metadata, &new.title, 240));
    assert_ne!(found[0].id, found[1].id);
}

#[test]
fn names_of_bases_are_short_and_plain() {
    for good in ["default", "a", "A.b_c-9", &"x".repeat(64)] {
        assert!(good.parse::<BaseName>().is_ok(), "{good}");
    }
    for bad in ["", "a b", "ä", "a/b", "a\0", &"x".repeat(65)] {
        assert!(bad.parse::<BaseName>().is_err(), "{bad}");
    }
}

#[tokio::test]
async fn a_document_without_chunks_is_a_document() {
    let home = store_location();
    let store = home.open().await;
    let new = document("empty.pdf", 0);
    assert!(put(&store, new.clone()).await.chunks.is_empty());
    assert_eq!(store.document(&default_base(), new.id).await.unwrap().unwrap().chunk_count, 0);
}

#[tokio::test]
async fn k37_vectors_that_do_not_belong_together_leave_nothing_behind() {
    let home = store_location();
    let store = home.open().await;
    let mut new = document("engine.pdf", 2);
    new.chunks[1].vectors = vec![vec![1.0, 0.0]];
    assert!(store.put_document(new, TaskLink::Standalone).await.is_err());
    let mut twice = document("loom.pdf", 2);
    twice.pages[1].number = 1;
    assert!(store.put_document(twice, TaskLink::Standalone).await.is_err());
    let report = store.check().await.unwrap();
    assert_eq!((report.documents, report.chunks), (0, 0));
}
