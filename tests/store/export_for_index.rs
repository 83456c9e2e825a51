//! Loading documents to build an index.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use corbie::knowledge::document::BaseName;
use corbie::knowledge::store::sqlite::{LoadedDocument, MIN_COSINE_SIMILARITY, Store};

use crate::fixture::{base_named, default_base, document, open_sqlite, put, temp_folder, vector};

async fn load(store: &Store, base: Option<&BaseName>, keys: &[u64], most: usize) -> (u64, Vec<LoadedDocument>) {
    let loaded: Arc<Mutex<Vec<LoadedDocument>>> = Arc::default();
    let into = Arc::clone(&loaded);
    let with = move |document| {
        let mut into = into.lock().unwrap();
        into.push(document);
        if into.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let sequence = store.for_each_document(base, keys, with).await.unwrap();
    let loaded = std::mem::take(&mut *loaded.lock().unwrap());
    (sequence, loaded)
}

fn keys(loaded: &[LoadedDocument]) -> Vec<u64> {
    loaded.iter().map(|document| document.document.key).collect()
}

#[tokio::test]
async fn everything_is_loaded_in_order_with_the_number_of_the_last_change() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    let first = put(&store, document("engine.pdf", 3)).await;
    let mut other = document("tea.pdf", 1);
    other.base = base_named("kitchen");
    let second = put(&store, other).await;
    let third = put(&store, document("loom.pdf", 2)).await;
    let (sequence, all) = load(&store, None, &[], 9).await;
    assert_eq!((sequence, keys(&all)), (3, vec![first.key, second.key, third.key]));
    assert_eq!(all[1].document.base, base_named("kitchen"));
    assert_eq!(keys(&load(&store, Some(&default_base()), &[], 9).await.1), [first.key, third.key]);
    assert_eq!(keys(&load(&store, None, &[third.key, 99, first.key, first.key], 9).await.1), [first.key, third.key]);
    assert!(load(&store, Some(&base_named("none")), &[], 9).await.1.is_empty());
    assert_eq!(keys(&load(&store, None, &[], 2).await.1), [first.key, second.key], "until it is enough");

    let chunks = &all[0].chunks;
    assert_eq!(chunks.iter().map(|chunk| chunk.key).collect::<Vec<_>>(), first.chunks.collect::<Vec<_>>());
    assert_eq!(chunks[2].headings, ["Notes", "Part 3"]);
    for (window, kept) in chunks[2].vectors.iter().enumerate() {
        let was = vector(3, window as u32);
        let cosine: f32 = was.iter().zip(kept).map(|(a, b)| a * b).sum();
        assert!(cosine >= MIN_COSINE_SIMILARITY, "{cosine}");
    }
}

#[tokio::test]
async fn what_is_live_is_what_is_loaded_without_its_text() {
    let folder = temp_folder();
    let store = open_sqlite(folder.path());
    for (name, chunks) in [("engine.pdf", 3), ("empty.pdf", 0), ("loom.pdf", 2)] {
        put(&store, document(name, chunks)).await;
    }
    let gone = document("gone.pdf", 4);
    put(&store, gone.clone()).await;
    put(&store, document("tea.pdf", 1)).await;
    store.remove_document(&default_base(), gone.id).await.unwrap();
    let live = store.live_snapshot().await.unwrap();
    let (sequence, loaded) = load(&store, None, &[], 9).await;
    assert_eq!(live.sequence, sequence);
    assert_eq!(live.documents, loaded.into_iter().map(|document| document.document).collect::<Vec<_>>());
}
