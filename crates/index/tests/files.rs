//! Saved segments are restored unchanged, or rejected.

use corbie_index::{Chunk, Document, Facet, Index, IndexUpdate, LiveDocument, Mode, Query, SegmentError};
use std::collections::HashSet;

const DIMENSION: usize = 6;

fn documents() -> Vec<Document> {
    let texts = ["The river rose in the night.", "Invoices are paid in thirty days.", "RFC-9110 describes HTTP."];
    (0..3_u64)
        .map(|key| Document {
            key,
            added: key as i64,
            facets: vec![Facet { key: "kind".into(), value: "note".into() }],
            chunks: vec![Chunk {
                key: key + 100,
                text: texts[key as usize].into(),
                context: "Notes".into(),
                vectors: vec![(0..6).map(|at| if at == key { 1.0 } else { 0.1 }).collect()],
            }],
        })
        .collect()
}

fn live() -> Vec<LiveDocument> {
    let documents = documents().into_iter();
    documents
        .map(|document| LiveDocument {
            key: document.key,
            added: document.added,
            facets: document.facets,
            chunks: document.chunks.iter().map(|chunk| chunk.key).collect(),
        })
        .collect()
}

fn saved() -> Vec<u8> {
    let index = Index::new(DIMENSION);
    index.apply(documents().into_iter().map(IndexUpdate::Put).collect());
    let mut saved = index.save(&HashSet::new());
    assert_eq!((saved.new_segments.len(), saved.in_use.len()), (1, 1));
    saved.new_segments.remove(0).1
}

fn search(index: &Index, text: &str) -> Vec<u64> {
    let query = Query { text, vector: None, filter: None, top: 10, mode: Mode::Words };
    index.snapshot().search(&query).iter().map(|hit| hit.document).collect()
}

#[test]
fn a_segment_comes_back_as_it_was() {
    let index = Index::new(DIMENSION);
    let restored = index.restore(vec![saved()], live());
    assert!(restored.missing.is_empty() && restored.rejected.is_empty());
    assert_eq!(search(&index, "river"), [0]);
    assert_eq!(search(&index, "invoice"), [1]);
    assert_eq!(search(&index, "rfc9110"), [2]);
    let again = index.save(&HashSet::new());
    assert_eq!(again.new_segments[0].1, saved());
    let known = again.in_use.iter().copied().collect();
    assert!(index.save(&known).new_segments.is_empty());
}

#[test]
fn only_documents_that_the_store_has_with_the_same_chunks_count() {
    let index = Index::new(DIMENSION);
    let mut live = live();
    live.remove(0);
    live[0].chunks = vec![999];
    let restored = index.restore(vec![saved(), saved()], live);
    assert_eq!(restored.missing, [1]);
    assert_eq!(index.snapshot().documents(), 1);
    assert!(search(&index, "river").is_empty());
    assert!(search(&index, "invoices").is_empty());
    assert_eq!(search(&index, "http"), [2]);
}

#[test]
fn bytes_damaged_anywhere_are_refused() {
    let good = saved();
    let index = Index::new(DIMENSION);
    let refusal = |bytes: Vec<u8>| {
        let restored = index.restore(vec![bytes], live());
        assert_eq!(restored.missing, [0, 1, 2]);
        assert_eq!(index.snapshot().documents(), 0);
        restored.rejected[0].error
    };
    for at in 0..good.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            refusal(bad);
        }
        refusal(good[..at].to_vec());
    }
    refusal([good.as_slice(), &[0]].concat());
    assert_eq!(refusal(b"something else".to_vec()), SegmentError::InvalidMagic);
    assert_eq!(refusal(Vec::new()), SegmentError::InvalidMagic);
}

/// A valid checksum is easily forged, so the content must be validated nevertheless.
#[test]
fn bytes_damaged_on_purpose_never_make_a_search_fail() {
    let good = saved();
    let (content, _) = good.split_last_chunk::<4>().expect("a checksum");
    let index = Index::new(DIMENSION);
    let vector = [0.5; DIMENSION];
    for at in 8..content.len() {
        for flip in [1, 2, 0x40, 0x80, 0xff] {
            let mut bad = content.to_vec();
            bad[at] ^= flip;
            bad.extend(crc32fast::hash(&bad).to_le_bytes());
            index.restore(vec![bad], live());
            for text in ["river notes", "invoice http rfc9110"] {
                let query = Query { text, vector: Some(&vector), filter: None, top: 10, mode: Mode::Hybrid };
                index.snapshot().search(&query);
            }
            index.merge_segments();
        }
    }
}

#[test]
fn segments_of_other_versions_and_dimensions_are_refused() {
    let mut newer = saved();
    newer[8] += 1;
    let index = Index::new(DIMENSION);
    let restored = index.restore(vec![newer], Vec::new());
    assert!(matches!(restored.rejected[0].error, SegmentError::UnsupportedVersion { .. }));
    let other = Index::new(DIMENSION + 1);
    let restored = other.restore(vec![saved()], live());
    assert_eq!(restored.rejected[0].error, SegmentError::DimensionMismatch { found: 6, wanted: 7 });
    assert_eq!(restored.missing, [0, 1, 2]);
}
