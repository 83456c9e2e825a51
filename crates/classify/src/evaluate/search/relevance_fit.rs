//! Fits the relevance model of `corbie-index` and measures it.
//!
//! Relevance must not depend on the number of documents. So the queries of each set are searched in bases of several
//! sizes: random parts of the set, and the whole set filled up with documents of the other sets. Every second query is used
//! for fitting, and calibration is measured on the others.

mod bases;
mod logistic_regression;
mod report;

use std::collections::HashMap;

use corbie_index::{Mode, Query, RELEVANCE_INPUTS};

use super::beir_dataset::BeirDataset;
use super::{EmbeddedQuery, SearchCorpus};
use bases::{Base, Pool};
pub use report::{FitReport, ModelFit};

/// Sizes of the bases, in documents.
const BASE_SIZES: [usize; 4] = [10, 100, 1000, 10_000];
/// Number of hits of each search that count.
const TOP: usize = 10;
/// Number of searches per set and base size, about.
const SEARCHES: usize = 1200;
/// One in this many queries without an answer is searched.
const UNANSWERED_RATIO: usize = 40;
/// Number of passages whose relevance is compared between base sizes, per set.
const COMPARED_PAIRS: usize = 200;

/// A set with its corpus and the embeddings of its queries.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedDataset<'a> {
    pub set: &'a BeirDataset,
    pub corpus: &'a SearchCorpus,
    pub vectors: &'a [Vec<f32>],
}

/// A hit of a search.
#[derive(Debug, Clone, Copy)]
struct Example {
    inputs: [f32; RELEVANCE_INPUTS],
    is_answer: bool,
    /// The query is used for fitting.
    is_fitted: bool,
    group: Group,
}

/// Examples with equal weight together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Group {
    set: usize,
    size: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    /// The base has an answer.
    Answered,
    /// The same with unknown words in the place of some words of the query.
    Paraphrased,
    /// The base has none.
    Unanswered,
    /// Queries of other sets and small talk.
    OutOfDomain,
}

/// The features that a search has. Each has a model of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Features {
    WordsAndVector,
    Vector,
    Words,
}

/// Examples by model, and the relevance of passages by base size.
#[derive(Default)]
struct Samples {
    examples: HashMap<Features, Vec<Example>>,
    /// By set, query and passage.
    pairs: HashMap<(usize, usize, usize), HashMap<usize, f32>>,
}

/// Searches all bases, fits the models and measures them.
pub fn fit(sets: &[EmbeddedDataset<'_>], small_talk: &[EmbeddedQuery<'_>]) -> FitReport {
    let pool = Pool::new(sets);
    let mut samples = Samples::default();
    for set in 0..sets.len() {
        for size in BASE_SIZES {
            let mut searches = 0;
            for base in pool.bases(set, size) {
                if searches >= SEARCHES {
                    break;
                }
                searches += samples.search(sets, &base, small_talk);
            }
        }
    }
    let names: Vec<&str> = sets.iter().map(|set| set.set.name.as_str()).collect();
    FitReport::of(&names, samples)
}

// === impl Samples ===

impl Samples {
    /// Runs the queries of a set in one base. Returns the number of queries with an answer.
    fn search(&mut self, sets: &[EmbeddedDataset<'_>], base: &Base<'_>, small_talk: &[EmbeddedQuery<'_>]) -> usize {
        let mut random = Random(base.size as u64);
        let EmbeddedDataset { set, vectors, .. } = sets[base.set];
        let mut answered = 0;
        for (number, (query, vector)) in set.queries.iter().zip(vectors).enumerate() {
            let is_answered = query.relevant.keys().any(|passage| base.has(*passage));
            if !is_answered && random.below(UNANSWERED_RATIO) > 0 {
                continue;
            }
            answered += usize::from(is_answered);
            let kind = if is_answered { Kind::Answered } else { Kind::Unanswered };
            let is_relevant = |passage: usize| query.relevant.contains_key(&passage);
            let is_fitted = number.is_multiple_of(2);
            let asked = EmbeddedQuery { text: &query.text, vector };
            let mut add = |features, kind, asked| self.add(base, features, kind, is_fitted, asked, &is_relevant);
            add(Features::WordsAndVector, kind, asked);
            if random.below(3) == 0 {
                add(Features::Words, kind, asked);
                add(Features::Vector, kind, asked);
                let text = paraphrase(&query.text, &mut random);
                let kind = if is_answered { Kind::Paraphrased } else { Kind::Unanswered };
                add(Features::WordsAndVector, kind, EmbeddedQuery { text: &text, vector });
            }
            if is_answered {
                self.compare(base, number, asked, &is_relevant);
            }
        }
        let others = sets.iter().enumerate().filter(|(other, _)| *other != base.set && !base.has_set(*other));
        let foreign = others.flat_map(|(_, other)| other.set.queries.iter().zip(other.vectors));
        let foreign = foreign.map(|(query, vector)| EmbeddedQuery { text: &query.text, vector });
        for (number, asked) in foreign.chain(small_talk.iter().copied()).enumerate() {
            if random.below(UNANSWERED_RATIO) == 0 {
                let is_fitted = number.is_multiple_of(2);
                self.add(base, Features::WordsAndVector, Kind::OutOfDomain, is_fitted, asked, &|_| false);
            }
        }
        answered
    }

    fn add(
        &mut self,
        base: &Base<'_>,
        features: Features,
        kind: Kind,
        is_fitted: bool,
        asked: EmbeddedQuery<'_>,
        is_relevant: &dyn Fn(usize) -> bool,
    ) {
        let text = if features == Features::Vector { "" } else { asked.text };
        let vector = (features != Features::Words).then_some(asked.vector);
        let query = Query { text, vector, filter: None, top: TOP, mode: Mode::Hybrid };
        let group = Group { set: base.set, size: base.size, kind };
        let examples = self.examples.entry(features).or_default();
        for hit in base.snapshot.features(&query).iter().take(TOP) {
            let is_answer = base.passage(hit.chunk).is_some_and(is_relevant);
            examples.push(Example { inputs: hit.inputs, is_answer, is_fitted, group });
        }
    }

    /// Records the relevance that a search shows for each answer.
    fn compare(
        &mut self,
        base: &Base<'_>,
        number: usize,
        asked: EmbeddedQuery<'_>,
        is_relevant: &dyn Fn(usize) -> bool,
    ) {
        let EmbeddedQuery { text, vector } = asked;
        let query = Query { text, vector: Some(vector), filter: None, top: 5 * TOP, mode: Mode::Hybrid };
        for hit in base.snapshot.search(&query) {
            if let Some(passage) = base.passage(hit.chunk).filter(|passage| is_relevant(*passage)) {
                let sizes = self.pairs.entry((base.set, number, passage)).or_default();
                sizes.entry(base.size).or_insert(hit.relevance);
            }
        }
    }
}

/// Replaces every second longer word with an unknown one.
fn paraphrase(text: &str, random: &mut Random) -> String {
    let words = text.split_whitespace().enumerate().map(|(at, word)| match word.len() > 3 && random.below(2) == 0 {
        true => format!("zq{at}xv"),
        false => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Pseudo-random numbers from a seed, so that every fit gives the same coefficients.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
