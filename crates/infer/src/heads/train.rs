//! Classifier training: cross-validation, then the final fit.

use std::collections::BTreeSet;

use ndarray::{Array2, ArrayView2, Axis, concatenate};

use super::cross_validation::{self, Split};
use super::dense::DenseHead;
use super::early_exit::{self, EarlyExit};
use super::ensemble::{self, Ensemble};
use super::held_out_neighbours::{NeighbourFeatures, centroids};
use super::knn::KnnHead;
use super::ngrams::{NgramCounts, NgramKind};
use super::out_of_scope::OutOfScope;
use super::softmax::log_sum_exp;
use super::sparse::SparseHead;
use super::{Classifier, Example, TrainError, is_unit};

/// Candidate inverse regularization strengths of the dense head. Cross-validation selects the best.
const INVERSE_REGULARIZATION: [f32; 3] = [2.0, 6.0, 20.0];
/// From this size, one split is enough for the selection.
const MIN_SINGLE_SPLIT_VECTORS: usize = 3000;
/// Minimum improvement in loss for choosing weaker regularization.
const MIN_LOSS_IMPROVEMENT: f64 = 1e-4;
/// From this size, buckets that occur in a single text are dropped: they double the size of the classifier and carry no
/// information.
const MIN_TEXTS_TO_PRUNE: usize = 2000;
/// With fewer held-out examples, fitted weights would be noise.
const MIN_HELD_OUT: usize = 10;
/// From this number of examples times classes, iterative training would take minutes, so only centroids and neighbours
/// are used. Two thousand classes with two examples each reach it.
const MAX_TRAINED_CELLS: usize = 4_000_000;
/// Number of examples times classes that are then held out for fitting the weights.
const MAX_HELD_OUT_CELLS: usize = 2_000_000;

/// Training data in the form that each head needs.
struct TrainingData {
    /// One row per example.
    vectors: Array2<f32>,
    words: Vec<NgramCounts>,
    chars: Vec<NgramCounts>,
    class_of: Vec<usize>,
    classes: usize,
}

/// Log-probabilities of the held-out examples, one row each, in the order of the splits.
struct HeldOut {
    dense: Array2<f32>,
    words: Array2<f32>,
    chars: Array2<f32>,
    /// Vocabulary coverage of each text, the mean of words and characters.
    known_shares: Vec<f32>,
    class_of: Vec<usize>,
}

pub(super) fn train(examples: &[Example<'_>], classes: usize) -> Result<Classifier, TrainError> {
    check(examples, classes)?;
    let material = TrainingData::of(examples, classes);
    let mut splits = cross_validation::splits(&material.class_of, classes);
    if material.is_huge() {
        splits.truncate(1);
        splits.iter_mut().for_each(|split| split.held_out.truncate(MAX_HELD_OUT_CELLS / classes));
    }
    if splits.iter().map(|split| split.held_out.len()).sum::<usize>() < MIN_HELD_OUT {
        splits.clear();
    }
    let everything: Vec<usize> = (0..examples.len()).collect();
    let vectors = material.vectors.view();
    let around = NeighbourFeatures::of(vectors, &material.class_of, classes, &splits);
    let (looseness, product, votes, glance, energies) = if splits.is_empty() {
        // The strongest regularization depends least on the few examples.
        (INVERSE_REGULARIZATION[0], Ensemble::FIXED, KnnHead::FIXED, EarlyExit::NEVER, Vec::new())
    } else {
        let (looseness, held_out) = material.hold_out(&splits);
        let heads = [held_out.dense.view(), held_out.words.view(), held_out.chars.view(), around.votes.view()];
        let product = Ensemble::fit(heads, &held_out.class_of);
        let energies = product.combine_all(heads).rows().into_iter().map(|row| -log_sum_exp(&row.to_vec())).collect();
        let votes = KnnHead::fit(around.votes.view(), &held_out.class_of);
        let glance = EarlyExit::fit([heads[1], heads[2]], &held_out.known_shares, &held_out.class_of);
        (looseness, product, votes, glance, energies)
    };
    Ok(Classifier {
        model: examples[0].embedding.model.clone(),
        dense: material.dense(&everything, looseness),
        words: material.sparse(NgramKind::Words, &everything),
        chars: material.sparse(NgramKind::Chars, &everything),
        ensemble: product,
        knn: votes,
        early_exit: glance,
        out_of_scope: OutOfScope::fit(vectors, &material.class_of, classes, &energies, &around),
    })
}

fn check(examples: &[Example<'_>], classes: usize) -> Result<(), TrainError> {
    let first = examples.first().ok_or(TrainError::NoExamples)?;
    if classes < 2 {
        return Err(TrainError::TooFewClasses { classes });
    }
    let expected = first.embedding.vector.len();
    for (index, Example { embedding, class, .. }) in examples.iter().enumerate() {
        if *class >= classes {
            return Err(TrainError::NoSuchClass { index, class: *class, classes });
        }
        if embedding.model != first.embedding.model {
            let (found, expected) = (embedding.model.clone(), first.embedding.model.clone());
            return Err(TrainError::MixedModels { index, found, expected });
        }
        if embedding.vector.len() != expected {
            return Err(TrainError::MixedDimensions { index, found: embedding.vector.len(), expected });
        }
        if !is_unit(&embedding.vector) {
            return Err(TrainError::NotAUnitVector { index });
        }
    }
    // Memory is proportional to the number of examples, not to the claimed number of classes.
    let seen: BTreeSet<usize> = examples.iter().map(|example| example.class).collect();
    match (0..classes).zip(seen.iter().map(Some).chain([None])).find(|(class, seen)| *seen != Some(class)) {
        Some((class, _)) => Err(TrainError::ClassWithoutExamples { class }),
        None => Ok(()),
    }
}

impl TrainingData {
    fn of(examples: &[Example<'_>], classes: usize) -> TrainingData {
        let dimension = examples[0].embedding.vector.len();
        let counts = |grams: NgramKind| match is_huge(examples.len(), classes) {
            true => Vec::new(),
            false => examples.iter().map(|example| grams.count(example.text)).collect(),
        };
        let numbers = examples.iter().flat_map(|example| &example.embedding.vector).copied().collect();
        TrainingData {
            vectors: Array2::from_shape_vec((examples.len(), dimension), numbers).expect("all are of one dimension"),
            words: counts(NgramKind::Words),
            chars: counts(NgramKind::Chars),
            class_of: examples.iter().map(|example| example.class).collect(),
            classes,
        }
    }

    /// Trains heads on each split and evaluates them on its held-out examples. Also returns the best regularization of
    /// the dense head.
    fn hold_out(&self, splits: &[Split]) -> (f32, HeldOut) {
        let (looseness, dense) = self.hold_out_dense(splits);
        let (words, known_words) = self.hold_out_sparse(NgramKind::Words, splits);
        let (chars, known_chars) = self.hold_out_sparse(NgramKind::Chars, splits);
        let known =
            known_words.iter().zip(known_chars).map(|(words, chars)| early_exit::known_share(*words, chars)).collect();
        (looseness, HeldOut { dense, words, chars, known_shares: known, class_of: self.classes_of(splits) })
    }

    fn is_huge(&self) -> bool {
        is_huge(self.class_of.len(), self.classes)
    }

    fn hold_out_dense(&self, splits: &[Split]) -> (f32, Array2<f32>) {
        let tried = if self.class_of.len() < MIN_SINGLE_SPLIT_VECTORS { splits.len() } else { 1 };
        let (tried, rest) = splits.split_at(tried);
        let class_of = self.classes_of(tried);
        let ask = |split: &Split, looseness| {
            let head = self.dense(&split.training, looseness);
            head.log_probabilities_of(self.vectors.select(Axis(0), &split.held_out).view())
        };
        let mut best: Option<(f64, f32, Array2<f32>)> = None;
        let choices = if self.is_huge() { &INVERSE_REGULARIZATION[..1] } else { &INVERSE_REGULARIZATION };
        for looseness in choices.iter().copied() {
            let logs = stack(tried.iter().map(|split| ask(split, looseness)).collect());
            // Calibrates first; otherwise the loss would mainly reflect miscalibration instead of fit.
            let loss = ensemble::fit([logs.view()], &class_of, [1.0]).loss;
            if best.as_ref().is_none_or(|(lowest, ..)| loss < lowest - MIN_LOSS_IMPROVEMENT) {
                best = Some((loss, looseness, logs));
            }
        }
        let (_, looseness, logs) = best.expect("there is at least one looseness");
        let rest = rest.iter().map(|split| ask(split, looseness));
        (looseness, stack([logs].into_iter().chain(rest).collect()))
    }

    /// Log-probabilities and vocabulary coverage of each text.
    fn hold_out_sparse(&self, grams: NgramKind, splits: &[Split]) -> (Array2<f32>, Vec<f32>) {
        let (mut logs, mut known) = (Vec::new(), Vec::new());
        // With too many examples, n-grams are not counted, because no sparse head is trained.
        let nothing = NgramCounts::new();
        for split in splits {
            let head = self.sparse(grams, &split.training);
            for index in &split.held_out {
                let look = head.predict_counts(self.counts(grams).get(*index).unwrap_or(&nothing));
                logs.extend(look.log_probabilities);
                known.push(look.known_share);
            }
        }
        let logs = Array2::from_shape_vec((known.len(), self.classes), logs).expect("all rows have all classes");
        (logs, known)
    }

    fn dense(&self, training: &[usize], looseness: f32) -> DenseHead {
        let vectors = self.vectors.select(Axis(0), training);
        let class_of = self.classes_at(training);
        match self.is_huge() {
            true => DenseHead::from_centroids(centroids(vectors.view(), &class_of, self.classes)),
            false => DenseHead::train(vectors.view(), &class_of, self.classes, looseness),
        }
    }

    fn sparse(&self, grams: NgramKind, training: &[usize]) -> SparseHead {
        if self.is_huge() {
            return SparseHead::empty(grams, self.classes);
        }
        let texts: Vec<&NgramCounts> = training.iter().map(|index| &self.counts(grams)[*index]).collect();
        // Depends on the number of all examples, so that heads of a split resemble the final heads.
        let fewest_texts = if self.class_of.len() < MIN_TEXTS_TO_PRUNE { 1 } else { 2 };
        SparseHead::train(grams, &texts, &self.classes_at(training), self.classes, fewest_texts)
    }

    fn counts(&self, grams: NgramKind) -> &[NgramCounts] {
        match grams {
            NgramKind::Words => &self.words,
            NgramKind::Chars => &self.chars,
        }
    }

    fn classes_of(&self, splits: &[Split]) -> Vec<usize> {
        splits.iter().flat_map(|split| self.classes_at(&split.held_out)).collect()
    }

    fn classes_at(&self, indices: &[usize]) -> Vec<usize> {
        indices.iter().map(|index| self.class_of[*index]).collect()
    }
}

fn is_huge(examples: usize, classes: usize) -> bool {
    examples * classes >= MAX_TRAINED_CELLS
}

/// Stacks tables with the same columns vertically.
fn stack(tables: Vec<Array2<f32>>) -> Array2<f32> {
    let views: Vec<ArrayView2<'_, f32>> = tables.iter().map(|table| table.view()).collect();
    concatenate(Axis(0), &views).expect("all tables have a column for each class")
}
