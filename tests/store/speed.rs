//! Latency bounds that only a regression exceeds.

use std::time::{Duration, Instant};

use corbie::knowledge::store::{DocumentFilter, DocumentListQuery, SortKey};

use crate::fixture::{default_base, document, open_sqlite, put, temp_folder};

/// Minimum of several runs, to exclude unrelated load on the machine.
async fn best_time<T>(mut work: impl AsyncFnMut() -> T) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let begun = Instant::now();
        work().await;
        best = best.min(begun.elapsed());
    }
    best
}

#[tokio::test]
async fn searches_do_not_wait_for_the_store() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    for number in 0..20 {
        put(&store, document(&format!("{number}.pdf"), 250)).await;
    }
    let live = best_time(async || store.live_snapshot().await.unwrap()).await;
    assert!(live < Duration::from_millis(50), "5,000 chunks that are live: {live:?}");
    let keys: Vec<u64> = (1..=10).map(|number| number * 499).collect();
    let chunks = best_time(async || assert_eq!(store.chunks(&keys).await.unwrap().len(), 10)).await;
    assert!(chunks < Duration::from_millis(5), "ten chunks: {chunks:?}");
    let unchanged = best_time(async || assert_eq!(store.last_change().unwrap(), 20)).await;
    assert!(unchanged < Duration::from_micros(500), "nothing changed: {unchanged:?}");
}

#[tokio::test]
async fn ten_thousand_documents_are_listed_at_once() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    put(&store, document("first.pdf", 1)).await;
    let more = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) \
         INSERT INTO documents (id, base, filename, origin, title, format, size_bytes, sha256, date_added, updated, status, \
         method, metadata, model, page_count, chunk_count, vector_count) \
         SELECT randomblob(16), base, 'report ' || i || '.pdf', origin, title, format, i, randomblob(32), i, i, status, \
         method, metadata, model, i % 100, i % 1000, i FROM documents, n";
    let file = rusqlite::Connection::open(folder.path().join("knowledge.db")).unwrap();
    assert_eq!(file.execute(more, []).unwrap(), 9999);
    let list = async |named: Option<&str>, sort, offset| {
        let only = DocumentFilter { name_contains: named.map(str::to_owned), ..DocumentFilter::default() };
        store
            .documents(
                &default_base(),
                DocumentListQuery { filter: only, sort, offset, ..DocumentListQuery::default() },
            )
            .await
            .unwrap()
            .total
    };
    for (named, sort, offset, total) in [
        (None, SortKey::DateAdded, 9900, 10_000),
        (None, SortKey::Filename, 5000, 10_000),
        (Some("REPORT"), SortKey::Size, 5000, 9999),
        (Some("77"), SortKey::Size, 0, 280),
    ] {
        let took = best_time(async || assert_eq!(list(named, sort, offset).await, total)).await;
        assert!(took < Duration::from_millis(500), "{named:?} by {sort:?}: {took:?}");
    }
}
