//! What the words of a query weigh, and what a chunk is given that has them: BM25 without the lists.
//!
//! How rare a word is and how long chunks are on average is summed over everything that is alive: a document that was
//! removed leaves no trace in the scores of others.

use crate::fuse;
use crate::terms::Term;
use crate::words::TEXT;

/// How soon more of the same word stops to count.
pub(crate) const K1: f32 = 1.2;
/// How much long chunks count less.
const B: f32 = 0.75;
/// Words of a query that are told apart in a set of those that a chunk has.
const TOLD_APART: usize = 32;
/// What a word counts that was probably meant, beside one that was said.
const GUESS: f32 = 0.9;

/// A word of a query, weighed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Weight {
    /// What BM25 is multiplied with.
    pub(crate) weight: f32,
    /// How rare it is; 0 for extra words.
    mass: f32,
    /// What of that a chunk is given that has it.
    worth: f32,
}

/// All words of a query, the rarest first.
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    words: Vec<Weight>,
    /// What all words of the query weigh together, apart from extra ones.
    mass: f32,
}

/// What length does to a count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Norm {
    base: f32,
    slope: f32,
}

// === impl Weight ===

impl Weight {
    /// Of a word that `having` of all chunks have. A chunk that has it in two forms counts twice.
    pub(crate) fn new(term: &Term, chunks: usize, having: usize) -> Weight {
        let trust = if term.is_guess { GUESS } else { 1.0 };
        let weight = rarity(chunks, having) * (1.0 + (term.count as f32).ln()) * trust;
        let mass = if term.is_extra { 0.0 } else { fuse::mass(chunks, having) };
        Weight { weight, mass, worth: mass * trust }
    }
}

/// How much it says that a chunk has a word which `having` of all chunks have.
fn rarity(chunks: usize, having: usize) -> f32 {
    let (chunks, having) = (chunks as f32, having.min(chunks) as f32);
    (1.0 + (chunks - having + 0.5) / (having + 0.5)).ln()
}

// === impl Weights ===

impl Weights {
    /// Sorts words, each with what belongs to it, by what they weigh.
    pub(crate) fn sort<T>(mut words: Vec<(Weight, T)>) -> (Weights, Vec<T>) {
        words.sort_by(|(a, _), (b, _)| b.mass.total_cmp(&a.mass));
        let (words, others): (Vec<Weight>, Vec<T>) = words.into_iter().unzip();
        let mass = words.iter().take(TOLD_APART).map(|word| word.mass).sum();
        (Weights { words, mass }, others)
    }

    /// How many words the query has.
    pub(crate) fn count(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn weight(&self, word: usize) -> f32 {
        self.words[word].weight
    }

    /// Which bit says that a chunk has this word.
    pub(crate) fn bit(&self, word: usize) -> u32 {
        if word < TOLD_APART { 1 << word } else { 0 }
    }

    /// What a chunk would score that had nothing but the query's words, over and over.
    pub(crate) fn most(&self) -> f32 {
        let words = self.words.iter().filter(|word| word.mass > 0.0);
        words.map(|word| word.weight).sum::<f32>() * (K1 + 1.0)
    }

    /// Which share of the query, weighed by rarity, these words are.
    pub(crate) fn share(&self, matched: u32) -> f32 {
        if self.mass <= 0.0 {
            return 0.0;
        }
        let words = self.words.iter().take(TOLD_APART).enumerate();
        words.filter(|(at, _)| matched >> at & 1 == 1).map(|(_, word)| word.worth).sum::<f32>() / self.mass
    }
}

// === impl Norm ===

impl Norm {
    /// `chunks` and `length` are those of all that is alive.
    pub(crate) fn new(chunks: usize, length: u64) -> Norm {
        let average = if chunks == 0 { 1.0 } else { (length as f32 / chunks as f32).max(1.0) };
        // Counts are in halves, and so is what they are compared with.
        Norm { base: TEXT as f32 * K1 * (1.0 - B), slope: TEXT as f32 * K1 * B / average }
    }

    /// What a word counts that a chunk has this often.
    pub(crate) fn count(self, count: u32, length: u16) -> f32 {
        let count = count as f32;
        count * (K1 + 1.0) / (count + self.base + self.slope * f32::from(length))
    }
}
