//! Reference model: a map of documents, searched exhaustively.

use corbie_index::{Chunk, Document, Filter, IndexUpdate};
use std::collections::{BTreeMap, HashMap};

#[derive(Debug, Default)]
pub(crate) struct ReferenceModel {
    pub(crate) documents: BTreeMap<u64, Document>,
}

impl ReferenceModel {
    pub(crate) fn apply(&mut self, change: &IndexUpdate) {
        match change {
            IndexUpdate::Put(document) => {
                self.documents.insert(document.key, document.clone());
            }
            IndexUpdate::Remove { document } => {
                self.documents.remove(document);
            }
            IndexUpdate::SetAttributes { document, added, facets } => {
                if let Some(document) = self.documents.get_mut(document) {
                    document.added = *added;
                    document.facets = facets.clone();
                }
            }
            IndexUpdate::Clear => self.documents.clear(),
        }
    }

    /// BM25 of all chunks that have a word of the query, best first. The words of these tests are identical to their
    /// stems.
    pub(crate) fn by_words(&self, query: &str, filter: Option<&Filter>) -> Vec<(f32, u64)> {
        let chunks: Vec<&Chunk> = self.documents.values().flat_map(|document| &document.chunks).collect();
        let counted: HashMap<u64, (HashMap<&str, f32>, f32)> = chunks
            .iter()
            .map(|chunk| {
                let mut counts: HashMap<&str, f32> = HashMap::new();
                let mut length = 0.0;
                for (text, weight) in [(&chunk.text, 1.0), (&chunk.context, 0.5)] {
                    for word in text.split_whitespace() {
                        *counts.entry(word).or_default() += weight;
                        length += weight;
                    }
                }
                (chunk.key, (counts, length))
            })
            .collect();
        let all = chunks.len() as f32;
        let average = (counted.values().map(|(_, length)| length).sum::<f32>() / all.max(1.0)).max(0.5);
        let mut words: BTreeMap<&str, f32> = BTreeMap::new();
        query.split_whitespace().for_each(|word| *words.entry(word).or_default() += 1.0);
        let rarity: BTreeMap<&str, f32> = words
            .keys()
            .map(|word| {
                let having = counted.values().filter(|(counts, _)| counts.contains_key(word)).count() as f32;
                (*word, (1.0 + (all - having + 0.5) / (having + 0.5)).ln())
            })
            .collect();
        let mut found: Vec<(f32, u64)> = Vec::new();
        for document in self.documents.values().filter(|document| allows(filter, document)) {
            for chunk in &document.chunks {
                let (counts, length) = &counted[&chunk.key];
                let mut score = 0.0;
                for (word, times) in &words {
                    if let Some(count) = counts.get(word) {
                        let norm = 1.2 * (0.25 + 0.75 * length / average);
                        score += (1.0 + times.ln()) * rarity[word] * count * 2.2 / (count + norm);
                    }
                }
                if score > 0.0 {
                    found.push((score, chunk.key));
                }
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found
    }

    /// Cosine of the best window of all chunks with vectors, nearest first.
    pub(crate) fn by_vector(&self, query: &[f32], filter: Option<&Filter>) -> Vec<(f32, u64)> {
        let documents = self.documents.values().filter(|document| allows(filter, document));
        let mut found: Vec<(f32, u64)> = documents
            .flat_map(|document| &document.chunks)
            .filter_map(|chunk| {
                let best = chunk.vectors.iter().map(|vector| cosine(vector, query)).reduce(f32::max)?;
                Some((best, chunk.key))
            })
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found
    }
}

pub(crate) fn allows(filter: Option<&Filter>, document: &Document) -> bool {
    filter.is_none_or(|filter| {
        let has = |key: &String, values: &Vec<String>| {
            document.facets.iter().any(|facet| facet.key == *key && values.contains(&facet.value))
        };
        filter.all.iter().all(|(key, values)| has(key, values))
            && filter.added_from.is_none_or(|from| document.added >= from)
            && filter.added_to.is_none_or(|to| document.added <= to)
    })
}

pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    (product(a, b) / (product(a, a) * product(b, b)).sqrt()) as f32
}

/// A vector derived from its seed.
pub(crate) fn vector(seed: u64, dimension: usize) -> Vec<f32> {
    let mut state = seed;
    (0..dimension)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as f32 / (1_u64 << 31) as f32) - 0.5
        })
        .collect()
}
