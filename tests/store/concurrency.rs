//! Readers concurrent with writers, and cancelled calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use corbie::knowledge::document::NewDocument;
use corbie::knowledge::store::{DocumentListQuery, PageRange};
use corbie::knowledge::task::TaskLink;

use crate::fixture::{default_base, document, eventually, put, store_location};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn k09_readers_never_see_half_a_document() {
    let home = store_location();
    let store = home.open().await;
    let first = document("engine.pdf", 7);
    put(&store, first.clone()).await;
    let done = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, done, id) = (store.clone(), Arc::clone(&done), first.id);
        tokio::spawn(async move {
            for round in 0..30 {
                // The document has seven chunks or three; other documents are added and removed.
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
    let all = PageRange { from: 1, pages: 10, max_bytes: 1 << 20 };
    let mut looks = 0;
    while !done.load(Ordering::Relaxed) {
        let listed = store.documents(&default_base(), DocumentListQuery::default()).await.unwrap();
        assert_eq!(listed.documents.len() as u64, listed.total);
        for seen in &listed.documents {
            let Some((found, pages, chunks)) = store.text_and_chunks(&default_base(), seen.id, all).await.unwrap()
            else {
                assert_ne!(seen.id, first.id, "it is always there");
                continue;
            };
            assert!([3, 5, 7].contains(&found.chunk_count), "{} chunks", found.chunk_count);
            assert_eq!((pages.len(), chunks.len()), (found.page_count as usize, found.chunk_count as usize));
        }
        let totals = store.totals(&default_base()).await.unwrap();
        assert_eq!(totals.vectors, totals.chunks * 2);
        assert!([(1, 3), (1, 7), (2, 8), (2, 12)].contains(&(totals.documents, totals.chunks)), "{totals:?}");
        looks += 1;
    }
    writer.await.unwrap();
    assert!(looks > 1);
    assert!(store.check().await.unwrap().is_consistent());
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_all_or_nothing() {
    let home = store_location();
    let store = home.open().await;
    for number in 0..30 {
        let put = store.put_document(document(&format!("{number}.pdf"), 9), TaskLink::Standalone);
        let patience = Duration::from_micros(number * 50);
        let _ = tokio::time::timeout(patience, put).await;
    }
    // Queued writes precede this one, or were cancelled.
    put(&store, document("last.pdf", 9)).await;
    let report = store.check().await.unwrap();
    assert!(report.is_consistent(), "{report:?}");
    assert_eq!((report.pages, report.chunks), (report.documents * 9, report.documents * 9));
    eventually("what is counted to be what is there", async || {
        let (report, totals) = (store.check().await.unwrap(), store.totals(&default_base()).await.unwrap());
        ((totals.documents, totals.chunks) == (report.documents, report.chunks)).then_some(())
    })
    .await;
}
