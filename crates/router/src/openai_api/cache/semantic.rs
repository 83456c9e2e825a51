//! Semantic cache index: nearest earlier question by embedding similarity.

use std::collections::VecDeque;
use std::sync::Mutex;

use corbie_infer::Embedding;

use super::CacheKey;
use super::lexical_guard::LexicalSignature;
use corbie_util::lock::lock;

/// Embedding of a question within its conversation.
#[derive(Debug, Clone)]
pub(super) struct SemanticKey {
    /// Hash of the caller, the model and all earlier messages, which must be identical.
    scope: CacheKey,
    embedding: Embedding,
    /// Guards against similar embeddings with different meaning.
    lexical: LexicalSignature,
}

/// The most recently cached questions.
#[derive(Debug, Default)]
pub(super) struct SemanticIndex(Mutex<VecDeque<(SemanticKey, CacheKey)>>);

/// Each entry takes about 2 kB and a few hundred nanoseconds of a search.
const MAX_ENTRIES: usize = 4096;

impl SemanticKey {
    pub(super) fn new(scope: CacheKey, text: &str, embedding: Embedding) -> SemanticKey {
        SemanticKey { scope, embedding, lexical: LexicalSignature::of(text) }
    }
}

impl SemanticIndex {
    /// The most similar question above the threshold.
    pub(super) fn nearest(&self, meaning: &SemanticKey, threshold: f32) -> Option<CacheKey> {
        let kept = lock(&self.0);
        let same = kept.iter().filter(|(other, _)| other.scope == meaning.scope);
        let alike = same.filter_map(|(other, key)| Some((meaning.embedding.similarity(&other.embedding)?, other, key)));
        let near = alike.filter(|(likeness, ..)| *likeness >= threshold);
        let agreeing = near.filter(|(_, other, _)| meaning.lexical.is_compatible(&other.lexical));
        agreeing.max_by(|(a, ..), (b, ..)| a.total_cmp(b)).map(|(.., key)| *key)
    }

    pub(super) fn insert(&self, meaning: SemanticKey, key: CacheKey) {
        let mut kept = lock(&self.0);
        kept.retain(|(_, known)| *known != key);
        if kept.len() >= MAX_ENTRIES {
            kept.pop_front();
        }
        kept.push_back((meaning, key));
    }

    pub(super) fn remove(&self, key: &CacheKey) {
        lock(&self.0).retain(|(_, known)| known != key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(scope: u8, text: &str, vector: [f32; 2]) -> SemanticKey {
        let model = corbie_infer::ModelId::from("test");
        SemanticKey::new([scope; 32], text, Embedding { model, vector: vector.to_vec(), tokens: 1, truncated: false })
    }

    #[test]
    fn the_nearest_in_the_same_conversation_is_found() {
        let meanings = SemanticIndex::default();
        meanings.insert(meaning(1, "a", [1.0, 0.0]), [1; 32]);
        meanings.insert(meaning(1, "b", [0.8, 0.6]), [2; 32]);
        meanings.insert(meaning(2, "c", [0.6, 0.8]), [3; 32]);
        let asked = meaning(1, "d", [0.6, 0.8]);
        assert_eq!(meanings.nearest(&asked, 0.9), Some([2; 32]));
        assert_eq!(meanings.nearest(&asked, 0.99), None);
        assert_eq!(meanings.nearest(&meaning(3, "d", [1.0, 0.0]), 0.5), None);
    }

    #[test]
    fn a_question_that_is_put_otherwise_is_another() {
        let meanings = SemanticIndex::default();
        meanings.insert(meaning(1, "what is 2 + 2?", [1.0, 0.0]), [1; 32]);
        assert_eq!(meanings.nearest(&meaning(1, "what's 2+2", [1.0, 0.0]), 0.9), Some([1; 32]));
        assert_eq!(meanings.nearest(&meaning(1, "what is 2 + 3?", [1.0, 0.0]), 0.9), None);
    }

    #[test]
    fn the_oldest_make_way() {
        let meanings = SemanticIndex::default();
        for number in 0..=MAX_ENTRIES {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_le_bytes());
            meanings.insert(meaning(if number == 0 { 1 } else { 2 }, "", [1.0, 0.0]), key);
        }
        assert_eq!(lock(&meanings.0).len(), MAX_ENTRIES);
        assert_eq!(meanings.nearest(&meaning(1, "", [1.0, 0.0]), 0.9), None);
    }
}
