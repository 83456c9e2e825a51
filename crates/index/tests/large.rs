//! Test with enough chunks for multi-block lists, skipping, and the sketch prefilter.

mod model;

use corbie_index::{Chunk, Document, Facet, Filter, Index, IndexUpdate, Mode, Query};
use model::ReferenceModel;

const DIMENSION: usize = 64;
const DOCUMENTS: u64 = 4_000;
const CHUNKS: u64 = 10;

/// Deterministic pseudo-random numbers.
fn number(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
}

/// Frequent words have low numbers.
fn words(seed: u64) -> String {
    let ranks = (0..12).map(|at| 2000_f32.powf(number(seed * 16 + at) as f32 / (1_u64 << 31) as f32) as u64);
    ranks.map(|rank| format!("{rank}")).collect::<Vec<_>>().join(" ")
}

/// Around one of a few hundred cluster centres.
fn vector(seed: u64) -> Vec<f32> {
    let centre = model::vector(number(seed) % 400, DIMENSION);
    let noise = model::vector(seed + 1000, DIMENSION);
    centre.iter().zip(noise).map(|(centre, noise)| centre + 0.7 * noise).collect()
}

fn world() -> (Index, ReferenceModel) {
    let (index, mut model) = (Index::new(DIMENSION), ReferenceModel::default());
    for batch in 0..8 {
        let documents = (0..DOCUMENTS).filter(|key| key % 8 == batch).map(|key| {
            let chunks = (0..CHUNKS).map(|at| {
                let key = key * CHUNKS + at;
                Chunk { key, text: words(key), context: String::new(), vectors: vec![vector(key)] }
            });
            let facets = vec![
                Facet { key: "half".into(), value: (key % 2).to_string() },
                Facet { key: "rare".into(), value: (key % 200).to_string() },
            ];
            Document { key, added: key as i64, facets, chunks: chunks.collect() }
        });
        let changes: Vec<IndexUpdate> = documents.map(IndexUpdate::Put).collect();
        changes.iter().for_each(|change| model.apply(change));
        index.apply(changes);
    }
    index.merge_segments();
    let gone: Vec<IndexUpdate> = (0..DOCUMENTS / 9).map(|at| IndexUpdate::Remove { document: at * 9 }).collect();
    gone.iter().for_each(|change| model.apply(change));
    index.apply(gone);
    (index, model)
}

#[test]
fn a_large_index_finds_what_looking_at_every_chunk_finds() {
    let (index, model) = world();
    let snapshot = index.snapshot();
    assert_eq!(snapshot.documents(), model.documents.len());
    assert!(snapshot.vectors() > 30_000);
    let filter = |key: &str, value: &str| Filter { all: vec![(key.into(), vec![value.into()])], ..Filter::default() };
    let dates = Filter { added_from: Some(1000), added_to: Some(1500), ..Filter::default() };
    let filters = [None, Some(filter("half", "1")), Some(filter("rare", "7")), Some(dates)];
    for (filter, seed) in filters.iter().flat_map(|filter| (1..4).map(move |seed| (filter.as_ref(), seed))) {
        // A frequent word, rarer ones, and a word without any chunk.
        let text = format!("{} 1 {} nowhere", 40 * seed, 300 + seed);
        let query = Query { text: &text, vector: None, filter, top: 50, mode: Mode::Words };
        let mut scores: Vec<f32> = snapshot.search(&query).iter().map(|hit| hit.words).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        let wanted = model.by_words(&text, filter);
        assert_eq!(scores.len(), 50.min(wanted.len()));
        for (score, (wanted, _)) in scores.iter().zip(&wanted) {
            assert!((score - wanted).abs() < 1e-3, "{score} is not {wanted} for {text} and {filter:?}");
        }

        let mut found = 0;
        for at in 0..10 {
            let vector = vector(7_000_000 + seed * 10 + at);
            let query = Query { text: "", vector: Some(&vector), filter, top: 10, mode: Mode::Vectors };
            let wanted = model.by_vector(&vector, filter);
            let hits = snapshot.search(&query);
            assert_eq!(hits.len(), 10);
            for hit in hits {
                assert!(model::allows(filter, &model.documents[&hit.document]));
                let near = wanted[..10].iter().find(|(_, key)| *key == hit.chunk);
                found += usize::from(near.is_some());
                assert!(near.is_none_or(|(cosine, _)| (cosine - hit.similarity).abs() < 0.002));
            }
        }
        assert!(found >= 95, "{found} of 100 for {filter:?}");
    }
}
