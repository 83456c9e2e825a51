//! Evaluation of retrieval against queries with known relevant passages.
//!
//! [`BeirDataset`] reads the queries, [`SearchCorpus`] is searched like the knowledge base, and a [`RetrievalReport`] gives the quality of
//! keyword, vector and hybrid search, the calibration of relevance, and the results for queries without an answer.

pub mod beir_dataset;
mod corpus;
mod ir_metrics;
mod out_of_domain_queries;
pub mod relevance_fit;
pub mod report_text;

use std::collections::HashSet;

use corbie_index::Mode;
use serde::Serialize;

pub use beir_dataset::BeirDataset;
pub use corpus::{Hit, SearchCorpus};
pub use ir_metrics::{IrMetrics, mean, score_ranking};

use super::Calibration;
use out_of_domain_queries::OUT_OF_DOMAIN_QUERIES;

/// Retrieval quality. Values that were not measured are `null` in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RetrievalReport {
    /// Cut-off rank of the metrics.
    pub top: usize,
    pub sets: Vec<DatasetResult>,
    /// Mean over sets, each with equal weight.
    pub mean: MetricsByMode,
    /// Calibration of relevance over all hybrid results: one in ten of the passages at 0.1 should be an answer.
    pub reliability: Option<Calibration>,
}

/// Results of one set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatasetResult {
    pub name: String,
    pub passages: usize,
    pub chunks: usize,
    pub queries: usize,
    pub scores: MetricsByMode,
    /// How often the result was empty, for queries with and without an answer.
    pub empty_results: Vec<EmptyResultCount>,
    /// Relevance of each hybrid result, and whether it was an answer.
    #[serde(skip)]
    pub relevance_labels: Vec<(f32, bool)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct MetricsByMode {
    pub lexical: Option<IrMetrics>,
    pub vectors: Option<IrMetrics>,
    pub hybrid: Option<IrMetrics>,
}

/// Number of queries of one kind with an empty result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EmptyResultCount {
    pub kind: QueryKind,
    pub queries: usize,
    pub empty_results: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryKind {
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
pub struct EmbeddedQuery<'a> {
    pub text: &'a str,
    pub vector: &'a [f32],
}

impl RetrievalReport {
    pub fn of(sets: Vec<DatasetResult>, top: usize) -> RetrievalReport {
        let over = |pick: fn(&MetricsByMode) -> Option<IrMetrics>| {
            let all: Option<Vec<IrMetrics>> = sets.iter().map(|set| pick(&set.scores)).collect();
            mean(&all.unwrap_or_default())
        };
        let mean = MetricsByMode {
            lexical: over(|found| found.lexical),
            vectors: over(|found| found.vectors),
            hybrid: over(|found| found.hybrid),
        };
        let judged = sets.iter().flat_map(|set| set.relevance_labels.iter().copied());
        let reliability = mean.hybrid.map(|_| Calibration::of_pairs(judged));
        RetrievalReport { top, sets, mean, reliability }
    }
}

impl MetricsByMode {
    pub fn set(&mut self, mode: Mode, found: Option<IrMetrics>) {
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
pub fn evaluate(
    set: &BeirDataset,
    base: &SearchCorpus,
    vectors: &[Vec<f32>],
    modes: &[Mode],
    top: usize,
) -> DatasetResult {
    let mut measured = DatasetResult {
        name: set.name.clone(),
        passages: set.passages.len(),
        chunks: base.chunks(),
        queries: set.queries.len(),
        scores: MetricsByMode::default(),
        empty_results: Vec::new(),
        relevance_labels: Vec::new(),
    };
    for mode in modes {
        let mut all = Vec::with_capacity(set.queries.len());
        let mut nothing = 0;
        for (query, vector) in set.queries.iter().zip(vectors) {
            let hits = base.search(&query.text, vector, *mode, top);
            let ranked: Vec<usize> = hits.iter().map(|hit| hit.passage).collect();
            all.push(score_ranking(&ranked, &query.relevant, top));
            nothing += usize::from(hits.is_empty());
            if *mode == Mode::Hybrid {
                let judged = hits.iter().map(|hit| (hit.relevance, query.relevant.contains_key(&hit.passage)));
                measured.relevance_labels.extend(judged);
            }
        }
        measured.scores.set(*mode, mean(&all));
        if *mode == Mode::Hybrid {
            measured.empty_results.push(EmptyResultCount {
                kind: QueryKind::Answered,
                queries: set.queries.len(),
                empty_results: nothing,
            });
        }
    }
    measured
}

/// Runs each query of a set with the documents that answer it removed.
pub fn evaluate_without_answers(set: &BeirDataset, base: &SearchCorpus, vectors: &[Vec<f32>]) -> EmptyResultCount {
    let mut nothing = 0;
    for (query, vector) in set.queries.iter().zip(vectors) {
        let documents: HashSet<usize> = query.relevant.keys().map(|at| set.passages[*at].document).collect();
        let hits = base.without(&documents, |base| base.search(&query.text, vector, Mode::Hybrid, 1));
        nothing += usize::from(hits.is_empty());
    }
    EmptyResultCount { kind: QueryKind::AnswersRemoved, queries: set.queries.len(), empty_results: nothing }
}

/// Runs queries that are unrelated to the passages.
pub fn evaluate_out_of_domain<'a>(
    kind: QueryKind,
    base: &SearchCorpus,
    asked: impl Iterator<Item = EmbeddedQuery<'a>>,
) -> EmptyResultCount {
    let mut counted = EmptyResultCount { kind, queries: 0, empty_results: 0 };
    for EmbeddedQuery { text, vector } in asked {
        counted.queries += 1;
        counted.empty_results += usize::from(base.search(text, vector, Mode::Hybrid, 1).is_empty());
    }
    counted
}

/// Queries that are about no document.
pub fn small_talk() -> Vec<String> {
    OUT_OF_DOMAIN_QUERIES.map(str::to_owned).to_vec()
}
