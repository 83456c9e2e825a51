//! Search in PostgreSQL: vector index, filters that match many documents, and misspelt words.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use corbie::knowledge::document::{ChunkId, NewChunk, NewDocument};
use corbie::knowledge::store::Store;
use corbie::knowledge::store::postgres::{self, ModelRow, SearchQuery};
use corbie_index::Filter;
use serde_json::json;

use crate::fixture::{StoreLocation, default_base, document, eventually, metadata, put, store_location};

const DIMENSIONS: usize = 32;

/// Seeded random numbers.
struct VectorRng(u64);

impl VectorRng {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1_u64 << 24) as f32 * 2.0 - 1.0
    }

    /// A random vector near `center`; a higher `close` means closer.
    fn near(&mut self, center: &[f32], close: f32) -> Vec<f32> {
        let numbers: Vec<f32> = center.iter().map(|number| number * close + self.next()).collect();
        let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
        numbers.iter().map(|number| number / length).collect()
    }
}

/// A store with documents of two hundred chunks each, whose vectors lie around some centers.
struct ClusteredVectors {
    store: postgres::Store,
    home: StoreLocation,
    centers: Vec<Vec<f32>>,
    /// Document number, position in it, vector.
    all: Vec<(usize, u32, Vec<f32>)>,
    rng: VectorRng,
}

const CHUNKS: u32 = 200;

impl ClusteredVectors {
    async fn new(documents: usize) -> Option<ClusteredVectors> {
        let home = store_location();
        let Store::Shared(store) = home.open().await else { return None };
        let mut numbers = VectorRng(7);
        let none = vec![0.0; DIMENSIONS];
        let centers: Vec<Vec<f32>> = (0..300).map(|_| numbers.near(&none, 0.0)).collect();
        let mut all = Vec::new();
        for number in 0..documents {
            let chunks = (0..CHUNKS).map(|place| {
                let center = &centers[(number * 7 + place as usize) % centers.len()];
                let direction = numbers.near(center, 3.0);
                all.push((number, place, direction.clone()));
                chunk(direction)
            });
            put(&store, document_with_chunks(number, chunks.collect())).await;
        }
        Some(ClusteredVectors { store, home, centers, all, rng: numbers })
    }

    /// Recall of the ten nearest neighbours among the documents that pass the filter.
    async fn recall(&mut self, model: ModelRow, filter: Option<&Filter>, is_wanted: impl Fn(usize) -> bool) -> f32 {
        let (mut found_of_all, mut asked) = (0, 0);
        for center in (0..self.centers.len()).step_by(6) {
            let direction = self.rng.near(&self.centers[center], 3.0);
            let mut wanted: Vec<(f32, usize, u32)> = self
                .all
                .iter()
                .filter(|(document, _, _)| is_wanted(*document))
                .map(|(document, place, other)| {
                    (direction.iter().zip(other).map(|(a, b)| a * b).sum::<f32>(), *document, *place)
                })
                .collect();
            wanted.sort_by(|a, b| b.0.total_cmp(&a.0));
            let wanted: HashSet<(String, u32)> =
                wanted[..10].iter().map(|(_, document, place)| (format!("{document}.pdf"), *place)).collect();
            let sought = SearchQuery { text: "", vector: Some(&direction), filter, top_k: 10 };
            let found = self.store.search(&default_base(), model, sought).await.unwrap();
            assert_eq!(found.len(), 10);
            found_of_all +=
                found.iter().filter(|hit| wanted.contains(&(hit.chunk.filename.clone(), hit.chunk.ordinal))).count();
            asked += 10;
        }
        found_of_all as f32 / asked as f32
    }
}

fn chunk(direction: Vec<f32>) -> NewChunk {
    NewChunk {
        text: "A passage.".to_owned(),
        pages: (1, 1),
        spans: Vec::new(),
        headings: Vec::new(),
        tokens: 3,
        vectors: vec![direction],
    }
}

/// Every fifth document has a different author.
fn document_with_chunks(number: usize, chunks: Vec<NewChunk>) -> NewDocument {
    let author = if number.is_multiple_of(5) { "Grace" } else { "Ada" };
    NewDocument {
        pages: Vec::new(),
        chunks,
        metadata: metadata(json!({"author": author})),
        ..document(&format!("{number}.pdf"), 0)
    }
}

fn author_filter(author: &str) -> Filter {
    Filter { all: vec![("metadata.author".into(), vec![format!("\"{author}\"")])], ..Filter::default() }
}

/// With more vectors than the exact scan handles, the index finds the same as an exact scan.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_over_vectors_misses_next_to_nothing() {
    let Some(mut directions) = ClusteredVectors::new(66).await else { return };
    let begun = Instant::now();
    let model = directions.store.prepare_model("minilm", DIMENSIONS).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "a large index is made aside: {:?}", begun.elapsed());
    let StoreLocation::Database(database) = &directions.home else { return };
    let whole = "SELECT count(*) FROM pg_index WHERE indisvalid AND indexrelid::regclass::text ~ 'vectors_model_'";
    eventually("the index", async || (database.query(whole) == ["1"]).then_some(())).await;
    let scans = "SELECT sum(idx_scan) FROM pg_stat_all_indexes WHERE indexrelname LIKE 'vectors_%_model_%'";

    let recall = directions.recall(model, None, |_| true).await;
    assert!(recall >= 0.98, "{recall}");
    // Ada's vectors exceed the limit of the exact scan, Grace's do not.
    let recall = directions.recall(model, Some(&author_filter("Ada")), |number| !number.is_multiple_of(5)).await;
    assert!(recall >= 0.98, "{recall}");
    let recall = directions.recall(model, Some(&author_filter("Grace")), |number| number.is_multiple_of(5)).await;
    assert!(recall >= 0.999, "{recall}");
    let StoreLocation::Database(database) = &directions.home else { return };
    // PostgreSQL reports its statistics with a delay after a transaction.
    eventually("the index to be used", async || {
        database.query(scans)[0].parse::<u64>().is_ok_and(|scans| scans >= 100).then_some(())
    })
    .await;
}

/// The process that created the index may have been killed before it was complete, even with few vectors.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_somebody_began_is_gone_on_with() {
    let home = store_location();
    let Store::Shared(store) = home.open().await else { return };
    let StoreLocation::Database(database) = &home else { return };
    put(&store, document_with_chunks(0, vec![chunk(vec![1.0; DIMENSIONS])])).await;
    store.prepare_model("minilm", DIMENSIONS).await.unwrap();
    let begun = database
        .query("SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid::regclass::text ~ 'vectors_model_'");
    database.query(&format!("DROP INDEX corbie.{}", begun[0].split_whitespace().nth(2).unwrap()));
    // The index as it is before its partitions are attached.
    let begun = begun[0].replacen(" ON corbie.", " ON ONLY corbie.", 1);
    assert!(begun.contains(" ON ONLY "), "{begun}");
    database.query(&begun);
    store.prepare_model("minilm", DIMENSIONS).await.unwrap();
    let whole = "SELECT count(*) FROM pg_index WHERE indisvalid AND indexrelid::regclass::text ~ 'vectors_model_'";
    eventually("the index", async || (database.query(whole) == ["1"]).then_some(())).await;
}

/// Words of three documents among many documents without words.
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_very_many_documents_pass_finds_what_a_small_one_does() {
    let home = store_location();
    let Store::Shared(store) = home.open().await else { return };
    let StoreLocation::Database(database) = &home else { return };
    for number in [0, 1, 2] {
        put(&store, document_with_chunks(number, vec![chunk(vec![1.0; DIMENSIONS])])).await;
    }
    let model = store.prepare_model("minilm", DIMENSIONS).await.unwrap();
    let found = async |vector: Option<&[f32]>| -> Vec<(ChunkId, String)> {
        let filter = author_filter("Ada");
        let sought = SearchQuery { text: "passage", vector, filter: Some(&filter), top_k: 10 };
        let found = store.search(&default_base(), model, sought).await.unwrap();
        found.into_iter().map(|hit| (hit.chunk.id, hit.chunk.filename)).collect()
    };
    let (words, both) = (found(None).await, found(Some(&[1.0; DIMENSIONS])).await);
    assert_eq!(words.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["1.pdf", "2.pdf"]);
    database.query(
        "INSERT INTO corbie.documents (id, base, writing, filename, origin, format, size_bytes, sha256, date_added, updated, \
         status, method, metadata, facets, model, page_count, chunk_count, vector_count, length, languages) \
         SELECT gen_random_uuid(), base, nextval('corbie.writing'), 'many', origin, format, 0, '', 0, 0, status, method, '{}', \
         facets, model, 0, 0, 0, 0, '{}' FROM corbie.documents, generate_series(1, 10001) WHERE filename = '1.pdf'",
    );
    let added = "INSERT INTO corbie.sums SELECT base, 10001, 0, 0, 0, 0, '{}', 0 FROM corbie.sums LIMIT 1";
    database.query(added);
    assert_eq!(found(None).await, words);
    assert_eq!(found(Some(&[1.0; DIMENSIONS])).await, both);
}

#[tokio::test]
async fn a_misspelt_word_stands_for_the_nearest_that_is_still_there() {
    let home = store_location();
    let Store::Shared(store) = home.open().await else { return };
    let with = |number: usize, text: &str| {
        document_with_chunks(number, vec![NewChunk { text: text.to_owned(), ..chunk(vec![1.0; DIMENSIONS]) }])
    };
    let near = [put(&store, with(1, "the bravodax")).await, put(&store, with(2, "a bravodux, and a castle")).await];
    put(&store, with(3, "brevodux")).await;
    let model = store.prepare_model("minilm", DIMENSIONS).await.unwrap();
    let found = async || -> Vec<String> {
        let sought = SearchQuery { text: "bravodox", vector: None, filter: None, top_k: 10 };
        let found = store.search(&default_base(), model, sought).await.unwrap();
        let mut names: Vec<String> = found.into_iter().map(|hit| hit.chunk.filename).collect();
        names.sort();
        names
    };
    assert_eq!(found().await, ["1.pdf", "2.pdf"], "each has one letter that is wrong");
    store.remove_document(&default_base(), near[0].id).await.unwrap();
    assert_eq!(found().await, ["2.pdf"]);
    store.remove_document(&default_base(), near[1].id).await.unwrap();
    assert_eq!(found().await, ["3.pdf"], "two are wrong, and nothing is nearer any more");
    put(&store, with(4, "the bravodox")).await;
    assert_eq!(found().await, ["4.pdf"], "it is spelt so by somebody");
}
