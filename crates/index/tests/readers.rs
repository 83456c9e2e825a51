//! Readers see atomic changes under concurrent writes.

use corbie_index::{Chunk, Document, Index, IndexUpdate, Mode, Query};
use std::sync::atomic::{AtomicBool, Ordering};

const CHUNKS: u64 = 5;
const DOCUMENTS: u64 = 12;

/// Each version of a document has its number in all of its chunks.
fn document(key: u64, version: u64) -> Document {
    let chunks = (0..CHUNKS).map(|at| Chunk {
        key: (version * DOCUMENTS + key) * CHUNKS + at,
        text: format!("document d{key} common version{version}"),
        context: String::new(),
        vectors: vec![vec![1.0, key as f32, at as f32]],
    });
    Document { key, added: 0, facets: Vec::new(), chunks: chunks.collect() }
}

#[test]
fn readers_never_see_half_a_document() {
    let index = Index::new(3);
    index.apply((0..DOCUMENTS).map(|key| IndexUpdate::Put(document(key, 0))).collect());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (index, is_done) = (&index, &is_done);
            scope.spawn(move || {
                let mut rounds = 0;
                while !is_done.load(Ordering::Relaxed) || rounds < 3 {
                    rounds += 1;
                    let snapshot = index.snapshot();
                    assert_eq!((snapshot.documents(), snapshot.chunks()), (12, 60));
                    let vector = [1.0, 2.0, reader as f32];
                    let mode = [Mode::Words, Mode::Hybrid, Mode::Vectors][reader];
                    let query = Query { text: "common", vector: Some(&vector), filter: None, top: 100, mode };
                    let hits = snapshot.search(&query);
                    assert_eq!(hits.len(), 60);
                    for key in 0..DOCUMENTS {
                        let mut chunks: Vec<u64> =
                            hits.iter().filter(|hit| hit.document == key).map(|hit| hit.chunk).collect();
                        chunks.sort_unstable();
                        let first = chunks[0];
                        assert_eq!(first % CHUNKS, 0, "chunks of one version");
                        assert_eq!(chunks, (first..first + CHUNKS).collect::<Vec<_>>());
                        assert_eq!(snapshot.neighbours(first + 1, 1, 9).len(), 5);
                    }
                }
            });
        }
        let (index, is_done) = (&index, &is_done);
        let tidier = scope.spawn(move || {
            while !is_done.load(Ordering::Relaxed) {
                index.merge_segments();
                std::thread::yield_now();
            }
        });
        for version in 1..200 {
            index.apply(vec![IndexUpdate::Put(document(version % DOCUMENTS, version))]);
        }
        is_done.store(true, Ordering::Relaxed);
        tidier.join().expect("tidying ends");
    });
}
