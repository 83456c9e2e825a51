//! Index loading concurrent with writers, and the writer thread when its store is closed.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use corbie::knowledge::document::{DocumentId, NewDocument};
use corbie::knowledge::store::DocumentListQuery;
use corbie::knowledge::task::TaskLink;

use crate::fixture::{default_base, document, open_sqlite, put, temp_folder};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn k09_who_loads_never_sees_half_a_document() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    let first = document("engine.pdf", 7);
    put(&store, first.clone()).await;
    let done = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, done, id) = (store.clone(), Arc::clone(&done), first.id);
        tokio::spawn(async move {
            for round in 0..30 {
                // The document has seven chunks or three; the other document exists only temporarily.
                let chunks = if round % 2 == 0 { 3 } else { 7 };
                let new = NewDocument { replaces: Some(id), ..document("engine.pdf", chunks) };
                put(&store, new).await;
                let other = document(&format!("{round}.pdf"), 5);
                put(&store, other.clone()).await;
                store.remove_document(&default_base(), other.id).await.unwrap();
            }
            done.store(true, Ordering::Relaxed);
        })
    };
    let mut looks = 0;
    while !done.load(Ordering::Relaxed) {
        let live = store.live_snapshot().await.unwrap();
        for seen in &live.documents {
            assert!([3, 5, 7].contains(&seen.chunks.len()), "{} chunks", seen.chunks.len());
            let found = store.chunks(&seen.chunks).await.unwrap();
            assert!(found.is_empty() || found.len() == seen.chunks.len(), "{} of {}", found.len(), seen.chunks.len());
        }
        store
            .for_each_document(None, &[], |loaded| {
                assert!([3, 5, 7].contains(&loaded.chunks.len()) && loaded.chunks.iter().all(|c| c.vectors.len() == 2));
                ControlFlow::Continue(())
            })
            .await
            .unwrap();
        let listed = store.documents(&default_base(), DocumentListQuery::default()).await.unwrap();
        assert_eq!(listed.documents.len() as u64, listed.total);
        looks += 1;
    }
    writer.await.unwrap();
    assert!(looks > 1);
    assert!(store.check().await.unwrap().is_consistent());
}

#[tokio::test]
async fn a_panic_fails_one_call() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    put(&store, document("engine.pdf", 1)).await;
    for _ in 0..6 {
        let failed = store.for_each_document(None, &[], |_| panic!("on purpose")).await.unwrap_err();
        assert_eq!(failed.kind(), "storage_failed");
    }
    assert_eq!(store.live_snapshot().await.unwrap().documents.len(), 1);
    assert_eq!(store.document(&default_base(), DocumentId::random()).await.unwrap(), None);
}

#[tokio::test]
async fn what_was_queued_is_done_before_the_store_is_closed() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    let new = document("engine.pdf", 50);
    let mut putting = Box::pin(store.put_document(new.clone(), TaskLink::Standalone));
    // Polled until the writer has the request, then dropped.
    for _ in 0..1000 {
        if tokio::time::timeout(Duration::from_micros(100), &mut putting).await.is_ok() {
            break;
        }
    }
    drop(putting);
    drop(store);
    let store = open_sqlite(folder.path());
    assert_eq!(store.document(&default_base(), new.id).await.unwrap().unwrap().chunk_count, 50);
}
