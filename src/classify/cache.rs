//! Verdict cache by text (C-59). It belongs to one snapshot, so a reload clears it.

use std::sync::Arc;

use quick_cache::sync::Cache;

use super::method::Verdict;

/// Longer texts are not cached: they seldom repeat, and this bounds the memory.
const LONGEST: usize = 2048;

#[derive(Debug)]
pub(super) struct Seen(Option<Cache<Box<str>, Arc<Verdict>>>);

impl Seen {
    pub(super) fn new(entries: usize) -> Seen {
        Seen((entries > 0).then(|| Cache::new(entries)))
    }

    pub(super) fn get(&self, text: &str) -> Option<Arc<Verdict>> {
        self.0.as_ref()?.get(text)
    }

    pub(super) fn keep(&self, text: &str, verdict: &Arc<Verdict>) {
        if let Some(cache) = self.0.as_ref().filter(|_| text.len() <= LONGEST) {
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
    use crate::classify::method::By;

    fn verdict(probability: f32) -> Arc<Verdict> {
        Arc::new(Verdict { probabilities: vec![probability], out_of_scope: 0.0, strangeness: 0.0, by: By::Rules })
    }

    #[test]
    fn c59_what_was_kept_is_found_and_the_bound_holds() {
        let seen = Seen::new(100);
        seen.keep("a text", &verdict(0.5));
        assert_eq!(seen.get("a text"), Some(verdict(0.5)));
        assert_eq!(seen.get("a tex"), None);
        for number in 0..10_000 {
            seen.keep(&number.to_string(), &verdict(0.1));
        }
        assert!(seen.len() <= 100, "{}", seen.len());
    }

    #[test]
    fn long_texts_are_not_kept_and_zero_entries_keep_none() {
        let seen = Seen::new(100);
        let long = "x".repeat(LONGEST + 1);
        seen.keep(&long, &verdict(0.5));
        assert_eq!(seen.get(&long), None);
        let none = Seen::new(0);
        none.keep("a", &verdict(0.5));
        assert_eq!(none.get("a"), None);
    }
}
