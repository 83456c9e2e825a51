//! Verdict cache by text (C-59). It belongs to one snapshot, so a reload clears it.

use std::sync::Arc;

use quick_cache::sync::Cache;

use super::method::Prediction;

/// Longer texts are not cached: they seldom repeat, and this bounds the memory.
const MAX_CACHED_BYTES: usize = 2048;

#[derive(Debug)]
pub(super) struct PredictionCache(Option<Cache<Box<str>, Arc<Prediction>>>);

impl PredictionCache {
    pub(super) fn new(entries: usize) -> PredictionCache {
        PredictionCache((entries > 0).then(|| Cache::new(entries)))
    }

    pub(super) fn get(&self, text: &str) -> Option<Arc<Prediction>> {
        self.0.as_ref()?.get(text)
    }

    pub(super) fn insert(&self, text: &str, verdict: &Arc<Prediction>) {
        if let Some(cache) = self.0.as_ref().filter(|_| text.len() <= MAX_CACHED_BYTES) {
            cache.insert(text.into(), verdict.clone());
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Cache::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::PredictionSource;

    fn verdict(probability: f32) -> Arc<Prediction> {
        Arc::new(Prediction {
            probabilities: vec![probability],
            out_of_scope: 0.0,
            out_of_scope_score: 0.0,
            source: PredictionSource::Rules,
        })
    }

    #[test]
    fn c59_what_was_kept_is_found_and_the_bound_holds() {
        let seen = PredictionCache::new(100);
        seen.insert("a text", &verdict(0.5));
        assert_eq!(seen.get("a text"), Some(verdict(0.5)));
        assert_eq!(seen.get("a tex"), None);
        for number in 0..10_000 {
            seen.insert(&number.to_string(), &verdict(0.1));
        }
        assert!(seen.len() <= 100, "{}", seen.len());
    }

    #[test]
    fn long_texts_are_not_kept_and_zero_entries_keep_none() {
        let seen = PredictionCache::new(100);
        let long = "x".repeat(MAX_CACHED_BYTES + 1);
        seen.insert(&long, &verdict(0.5));
        assert_eq!(seen.get(&long), None);
        let none = PredictionCache::new(0);
        none.insert("a", &verdict(0.5));
        assert_eq!(none.get("a"), None);
    }
}
