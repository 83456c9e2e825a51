//! Evaluation of retrieval against queries with known relevant passages.
//!
//! [`Set`] reads the queries, [`Base`] is searched like the knowledge base, and a [`Report`] gives the quality of
//! keyword, vector and hybrid search, the calibration of relevance, and the results for queries without an answer.

mod base;
mod measure;
pub mod set;
mod strangers;
pub mod terminal;

use std::collections::HashSet;

use corbie_index::Mode;
use serde::Serialize;

pub use base::{Base, Hit};
pub use measure::{Found, found, mean};
pub use set::Set;

use super::Calibration;
use strangers::STRANGERS;

/// Retrieval quality. Values that were not measured are `null` in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Cut-off rank of the metrics.
    pub top: usize,
    pub sets: Vec<Measured>,
    /// Mean over sets, each with equal weight.
    pub mean: Modes,
    /// Calibration of relevance over all hybrid results: one in ten of the passages at 0.1 should be an answer.
    pub reliability: Option<Calibration>,
}

/// Results of one set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    pub name: String,
    pub passages: usize,
    pub chunks: usize,
    pub queries: usize,
    pub scores: Modes,
    /// How often the result was empty, for queries with and without an answer.
    pub empty_results: Vec<Nothing>,
    /// Relevance of each hybrid result, and whether it was an answer.
    #[serde(skip)]
    pub judged: Vec<(f32, bool)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Modes {
    pub lexical: Option<Found>,
    pub vectors: Option<Found>,
    pub hybrid: Option<Found>,
}

/// Number of queries of one kind with an empty result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Nothing {
    pub kind: Kind,
    pub queries: usize,
    pub empty_results: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Queries with an answer; an empty result is an error.
    Answered,
    /// The documents with the answers were removed.
    AnswersRemoved,
    /// The queries belong to another set.
    OtherDatasets,
    SmallTalk,
}

/// A query with its embedding.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub text: &'a str,
    pub vector: &'a [f32],
}

impl Report {
    pub fn of(sets: Vec<Measured>, top: usize) -> Report {
        let over = |pick: fn(&Modes) -> Option<Found>| {
            let all: Option<Vec<Found>> = sets.iter().map(|set| pick(&set.scores)).collect();
            mean(&all.unwrap_or_default())
        };
        let mean = Modes {
            lexical: over(|found| found.lexical),
            vectors: over(|found| found.vectors),
            hybrid: over(|found| found.hybrid),
        };
        let judged = sets.iter().flat_map(|set| set.judged.iter().copied());
        let reliability = mean.hybrid.map(|_| Calibration::of_answers(judged));
        Report { top, sets, mean, reliability }
    }
}

impl Modes {
    pub fn set(&mut self, mode: Mode, found: Option<Found>) {
        match mode {
            Mode::Words => self.lexical = found,
            Mode::Vectors => self.vectors = found,
            Mode::Hybrid => self.hybrid = found,
        }
    }

    /// Relative nDCG gain of hybrid search over the better single mode.
    pub fn gain(&self) -> Option<f64> {
        let alone = self.lexical?.ndcg.max(self.vectors?.ndcg);
        (alone > 0.0).then_some(self.hybrid?.ndcg / alone - 1.0)
    }
}

/// Runs the queries of a set that have an answer.
pub fn measure(set: &Set, base: &Base, vectors: &[Vec<f32>], modes: &[Mode], top: usize) -> Measured {
    let mut measured = Measured {
        name: set.name.clone(),
        passages: set.passages.len(),
        chunks: base.chunks(),
        queries: set.queries.len(),
        scores: Modes::default(),
        empty_results: Vec::new(),
        judged: Vec::new(),
    };
    for mode in modes {
        let mut all = Vec::with_capacity(set.queries.len());
        let mut nothing = 0;
        for (query, vector) in set.queries.iter().zip(vectors) {
            let hits = base.search(&query.text, vector, *mode, top);
            let ranked: Vec<usize> = hits.iter().map(|hit| hit.passage).collect();
            all.push(found(&ranked, &query.relevant, top));
            nothing += usize::from(hits.is_empty());
            if *mode == Mode::Hybrid {
                let judged = hits.iter().map(|hit| (hit.relevance, query.relevant.contains_key(&hit.passage)));
                measured.judged.extend(judged);
            }
        }
        measured.scores.set(*mode, mean(&all));
        if *mode == Mode::Hybrid {
            measured.empty_results.push(Nothing {
                kind: Kind::Answered,
                queries: set.queries.len(),
                empty_results: nothing,
            });
        }
    }
    measured
}

/// Runs each query of a set with the documents that answer it removed.
pub fn without_answers(set: &Set, base: &Base, vectors: &[Vec<f32>]) -> Nothing {
    let mut nothing = 0;
    for (query, vector) in set.queries.iter().zip(vectors) {
        let documents: HashSet<usize> = query.relevant.keys().map(|at| set.passages[*at].document).collect();
        let hits = base.without(&documents, |base| base.search(&query.text, vector, Mode::Hybrid, 1));
        nothing += usize::from(hits.is_empty());
    }
    Nothing { kind: Kind::AnswersRemoved, queries: set.queries.len(), empty_results: nothing }
}

/// Runs queries that are unrelated to the passages.
pub fn strangers<'a>(kind: Kind, base: &Base, asked: impl Iterator<Item = Asked<'a>>) -> Nothing {
    let mut counted = Nothing { kind, queries: 0, empty_results: 0 };
    for Asked { text, vector } in asked {
        counted.queries += 1;
        counted.empty_results += usize::from(base.search(text, vector, Mode::Hybrid, 1).is_empty());
    }
    counted
}

/// Queries that are about no document.
pub fn small_talk() -> Vec<String> {
    STRANGERS.map(str::to_owned).to_vec()
}
