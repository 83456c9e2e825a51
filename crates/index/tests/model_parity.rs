//! Model-based test: after any sequence of operations, search returns the same results as an exhaustive scan.

mod model;

use corbie_index::{Chunk, Document, Facet, Filter, Index, IndexUpdate, LiveDocument, Mode, Query, SegmentId};
use model::ReferenceModel;
use proptest::prelude::*;
use std::collections::HashMap;

const DIMENSION: usize = 12;
const WORDS: [&str; 12] =
    ["river", "invoice", "contract", "payment", "7", "rfc", "total", "engine", "valley", "ocean", "letter", "signal"];

#[derive(Debug, Clone)]
enum TestStep {
    Change(Vec<Action>),
    Merge,
    Save,
    Restore,
    Search { words: Vec<usize>, direction: u64, filter: Option<(u8, i64)>, top: usize },
}

#[derive(Debug, Clone)]
enum Action {
    Put { key: u64, chunks: Vec<(Vec<usize>, Vec<usize>, Vec<u64>)>, added: i64, tag: u8 },
    Remove { key: u64 },
    Describe { key: u64, added: i64, tag: u8 },
    Clear,
}

fn words() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..WORDS.len(), 0..12)
}

fn action() -> impl Strategy<Value = Action> {
    let chunk = (words(), prop::collection::vec(0..WORDS.len(), 0..3), prop::collection::vec(any::<u64>(), 0..3));
    prop_oneof![
        12 => (0_u64..15, prop::collection::vec(chunk, 0..5), 0_i64..10, 0_u8..3)
            .prop_map(|(key, chunks, added, tag)| Action::Put { key, chunks, added, tag }),
        3 => (0_u64..15).prop_map(|key| Action::Remove { key }),
        3 => (0_u64..15, 0_i64..10, 0_u8..3).prop_map(|(key, added, tag)| Action::Describe { key, added, tag }),
        1 => Just(Action::Clear),
    ]
}

fn step() -> impl Strategy<Value = TestStep> {
    prop_oneof![
        6 => prop::collection::vec(action(), 1..6).prop_map(TestStep::Change),
        1 => Just(TestStep::Merge),
        1 => Just(TestStep::Save),
        1 => Just(TestStep::Restore),
        6 => (words(), any::<u64>(), prop::option::of((0_u8..3, 0_i64..10)), 1_usize..30)
            .prop_map(|(words, direction, filter, top)| TestStep::Search { words, direction, filter, top }),
    ]
}

fn text(words: &[usize]) -> String {
    words.iter().map(|at| WORDS[*at]).collect::<Vec<_>>().join(" ")
}

fn facets(tag: u8) -> Vec<Facet> {
    vec![Facet { key: "tag".into(), value: tag.to_string() }]
}

/// The store as the source of truth, and the index under test.
struct TestWorld {
    index: Index,
    model: ReferenceModel,
    files: HashMap<SegmentId, Vec<u8>>,
    next_chunk: u64,
}

impl TestWorld {
    fn change(&mut self, actions: &[Action]) {
        let changes: Vec<IndexUpdate> = actions
            .iter()
            .map(|action| match action {
                Action::Put { key, chunks, added, tag } => {
                    let chunks = chunks.iter().map(|(text_words, context, seeds)| {
                        self.next_chunk += 1;
                        Chunk {
                            // Keys are not in ascending order.
                            key: self.next_chunk ^ 5,
                            text: text(text_words),
                            context: text(context),
                            vectors: seeds.iter().map(|seed| model::vector(*seed, DIMENSION)).collect(),
                        }
                    });
                    let chunks = chunks.collect();
                    IndexUpdate::Put(Document { key: *key, added: *added, facets: facets(*tag), chunks })
                }
                Action::Remove { key } => IndexUpdate::Remove { document: *key },
                Action::Describe { key, added, tag } => {
                    IndexUpdate::SetAttributes { document: *key, added: *added, facets: facets(*tag) }
                }
                Action::Clear => IndexUpdate::Clear,
            })
            .collect();
        changes.iter().for_each(|change| self.model.apply(change));
        self.index.apply(changes);
    }

    fn save(&mut self) {
        let saved = self.index.save(&self.files.keys().copied().collect());
        self.files.extend(saved.new_segments);
        self.files.retain(|id, _| saved.in_use.contains(id));
        assert_eq!(self.files.len(), saved.in_use.len());
    }

    /// Restarts from the saved files, which may be older than the store.
    fn restore(&mut self) {
        self.index = Index::new(DIMENSION);
        let live = self.model.documents.values().map(|document| LiveDocument {
            key: document.key,
            added: document.added,
            facets: document.facets.clone(),
            chunks: document.chunks.iter().map(|chunk| chunk.key).collect(),
        });
        let restored = self.index.restore(self.files.values().cloned().collect(), live.collect());
        assert!(restored.rejected.is_empty());
        let missing = restored.missing.iter().map(|key| IndexUpdate::Put(self.model.documents[key].clone()));
        self.index.apply(missing.collect());
    }

    fn search(&self, words: &[usize], direction: u64, filter: Option<(u8, i64)>, top: usize) {
        let filter = filter.map(|(tag, from)| Filter {
            all: vec![("tag".into(), vec![tag.to_string(), "none".into()])],
            added_from: Some(from),
            added_to: Some(from + 5),
        });
        let vector = model::vector(direction, DIMENSION);
        let text = text(words);
        let snapshot = self.index.snapshot();
        let query = |mode| Query { text: &text, vector: Some(&vector), filter: filter.as_ref(), top, mode };

        let hits = snapshot.search(&query(Mode::Words));
        let wanted = self.model.by_words(&text, filter.as_ref());
        assert_eq!(hits.len(), wanted.len().min(top));
        let mut scores: Vec<f32> = hits.iter().map(|hit| hit.words).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        for (score, (wanted, _)) in scores.iter().zip(&wanted) {
            assert!((score - wanted).abs() < 1e-4, "{score} is not {wanted}");
        }
        for hit in &hits {
            let (wanted, _) = wanted.iter().find(|(_, key)| *key == hit.chunk).expect("a chunk with one of the words");
            assert!((hit.words - wanted).abs() < 1e-4);
        }

        let hits = snapshot.search(&query(Mode::Vectors));
        let wanted = self.model.by_vector(&vector, filter.as_ref());
        assert_eq!(hits.len(), wanted.len().min(top));
        let mut similarities: Vec<f32> = hits.iter().map(|hit| hit.similarity).collect();
        similarities.sort_by(|a, b| b.total_cmp(a));
        for (similarity, (wanted, _)) in similarities.iter().zip(&wanted) {
            assert!((similarity - wanted).abs() < 0.01, "{similarity} is not {wanted}");
        }

        let hits = snapshot.search(&query(Mode::Hybrid));
        assert!(hits.is_sorted_by(|a, b| a.relevance >= b.relevance));
        for hit in &hits {
            let document = &self.model.documents[&hit.document];
            assert!(model::allows(filter.as_ref(), document));
            let at = document.chunks.iter().position(|chunk| chunk.key == hit.chunk).expect("a chunk that is there");
            let around = &document.chunks[at.saturating_sub(1)..(at + 3).min(document.chunks.len())];
            assert_eq!(snapshot.neighbours(hit.chunk, 1, 2), around.iter().map(|chunk| chunk.key).collect::<Vec<_>>());
            let words = self.model.by_words(&text, None);
            let wanted = words.iter().find(|(_, key)| *key == hit.chunk).map_or(0.0, |(score, _)| *score);
            assert!((hit.words - wanted).abs() < 1e-4, "{} is not {wanted}", hit.words);
            assert!((0.0..=1.0).contains(&hit.relevance));
        }
    }

    fn count(&self) {
        let snapshot = self.index.snapshot();
        let chunks: Vec<&Chunk> = self.model.documents.values().flat_map(|document| &document.chunks).collect();
        assert_eq!(snapshot.documents(), self.model.documents.len());
        assert_eq!(snapshot.chunks(), chunks.len());
        assert_eq!(snapshot.vectors(), chunks.iter().map(|chunk| chunk.vectors.len()).sum::<usize>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_history_finds_what_looking_at_every_chunk_finds(steps in prop::collection::vec(step(), 1..60)) {
        let mut world =
            TestWorld { index: Index::new(DIMENSION), model: ReferenceModel::default(), files: HashMap::new(), next_chunk: 0 };
        for step in steps {
            match step {
                TestStep::Change(actions) => world.change(&actions),
                TestStep::Merge => world.index.merge_segments(),
                TestStep::Save => world.save(),
                TestStep::Restore => world.restore(),
                TestStep::Search { words, direction, filter, top } => world.search(&words, direction, filter, top),
            }
            world.count();
        }
    }
}
