//! Tells how well passages are found, from questions whose answers are known.
//!
//! [`Set`] reads such questions, [`Base`] is searched as the knowledge base is, and a [`Report`] tells how good the
//! answers are: by words alone, by vectors alone and by both; whether relevance can be believed; and what is said to
//! questions that nothing answers.

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

/// How well passages are found. What was not measured is `null` in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Passages of a list that count.
    pub top: usize,
    pub sets: Vec<Measured>,
    /// Every set counts the same, however many questions it has.
    pub mean: Modes,
    /// Of all passages found by words and vectors together: is one in ten of those at 0.1 an answer?
    pub reliability: Option<Calibration>,
}

/// What was found in one set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    pub name: String,
    pub passages: usize,
    pub chunks: usize,
    pub queries: usize,
    pub found: Modes,
    /// How often nothing was found: for questions that are answered, and for those that are not.
    pub nothing: Vec<Nothing>,
    /// Relevance of what was found by words and vectors, and whether it was an answer.
    #[serde(skip)]
    pub judged: Vec<(f32, bool)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Modes {
    pub words: Option<Found>,
    pub vectors: Option<Found>,
    pub hybrid: Option<Found>,
}

/// How many of some questions found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Nothing {
    pub kind: Kind,
    pub queries: usize,
    pub nothing: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// There is an answer, and nothing should be lost.
    Answered,
    /// The documents with the answers were taken out.
    AnswersRemoved,
    /// They belong to another set.
    OfOtherSets,
    SmallTalk,
}

/// A question with its vector.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub text: &'a str,
    pub vector: &'a [f32],
}

impl Report {
    pub fn of(sets: Vec<Measured>, top: usize) -> Report {
        let over = |pick: fn(&Modes) -> Option<Found>| {
            let all: Option<Vec<Found>> = sets.iter().map(|set| pick(&set.found)).collect();
            mean(&all.unwrap_or_default())
        };
        let mean = Modes {
            words: over(|found| found.words),
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
            Mode::Words => self.words = found,
            Mode::Vectors => self.vectors = found,
            Mode::Hybrid => self.hybrid = found,
        }
    }

    /// How much better both are than the better of one, as a share of it.
    pub fn gain(&self) -> Option<f64> {
        let alone = self.words?.ndcg.max(self.vectors?.ndcg);
        (alone > 0.0).then_some(self.hybrid?.ndcg / alone - 1.0)
    }
}

/// Asks the questions of a set that have an answer.
pub fn measure(set: &Set, base: &Base, vectors: &[Vec<f32>], modes: &[Mode], top: usize) -> Measured {
    let mut measured = Measured {
        name: set.name.clone(),
        passages: set.passages.len(),
        chunks: base.chunks(),
        queries: set.queries.len(),
        found: Modes::default(),
        nothing: Vec::new(),
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
        measured.found.set(*mode, mean(&all));
        if *mode == Mode::Hybrid {
            measured.nothing.push(Nothing { kind: Kind::Answered, queries: set.queries.len(), nothing });
        }
    }
    measured
}

/// Asks the questions of a set while the documents with their answers are not there.
pub fn without_answers(set: &Set, base: &Base, vectors: &[Vec<f32>]) -> Nothing {
    let mut nothing = 0;
    for (query, vector) in set.queries.iter().zip(vectors) {
        let documents: HashSet<usize> = query.relevant.keys().map(|at| set.passages[*at].document).collect();
        let hits = base.without(&documents, |base| base.search(&query.text, vector, Mode::Hybrid, 1));
        nothing += usize::from(hits.is_empty());
    }
    Nothing { kind: Kind::AnswersRemoved, queries: set.queries.len(), nothing }
}

/// Asks what nothing here is about.
pub fn strangers<'a>(kind: Kind, base: &Base, asked: impl Iterator<Item = Asked<'a>>) -> Nothing {
    let mut counted = Nothing { kind, queries: 0, nothing: 0 };
    for Asked { text, vector } in asked {
        counted.queries += 1;
        counted.nothing += usize::from(base.search(text, vector, Mode::Hybrid, 1).is_empty());
    }
    counted
}

/// Texts that are about no document.
pub fn small_talk() -> Vec<String> {
    STRANGERS.map(str::to_owned).to_vec()
}
