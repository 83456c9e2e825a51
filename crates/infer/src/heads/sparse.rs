//! Sparse head: softmax regression over n-gram counts, trained with AdaGrad.

use super::ngrams::{NgramCounts, NgramKind};
use super::shuffle::SplitMix64;
use super::softmax::{log_softmax, softmax};
use super::vocabulary::{Features, Vocabulary};

const EPOCHS: usize = 5;
const LEARNING_RATE: f32 = 0.5;
/// Limits the first steps of a weight.
const ADAGRAD_EPSILON: f32 = 0.01;
const SEED: u64 = 0;
/// Limits a head to 64 MiB, and twice that during training. Only thousands of classes come near it.
const MAX_WEIGHTS: usize = 16 << 20;

/// Has weights only for buckets that occurred in training.
#[derive(Clone)]
pub(super) struct SparseHead {
    pub(super) grams: NgramKind,
    pub(super) vocabulary: Vocabulary,
    /// One row per bucket of the vocabulary, one column per class.
    pub(super) weights: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

/// The output of a head for a text.
pub(super) struct HeadOutput {
    pub(super) log_probabilities: Vec<f32>,
    /// Vocabulary coverage: the share of the text that has weights.
    pub(super) known_share: f32,
}

impl SparseHead {
    pub(super) fn train(
        grams: NgramKind,
        texts: &[&NgramCounts],
        class_of: &[usize],
        classes: usize,
        fewest_texts: u32,
    ) -> SparseHead {
        let vocabulary = Vocabulary::of(texts, fewest_texts, MAX_WEIGHTS / classes);
        let texts: Vec<Features> = texts.iter().map(|counts| vocabulary.features(counts)).collect();
        let mut weights = AdaGradParameters::zeros(vocabulary.len() * classes);
        let mut bias = AdaGradParameters::zeros(classes);
        let mut scores = vec![0.0; classes];
        let mut order: Vec<usize> = (0..texts.len()).collect();
        let mut shuffle = SplitMix64::seeded(SEED);
        for _ in 0..EPOCHS {
            shuffle.shuffle(&mut order);
            for index in &order {
                score(&texts[*index], &weights.values, &bias.values, &mut scores);
                softmax(&mut scores);
                scores[class_of[*index]] -= 1.0;
                bias.update(0, 1.0, &scores);
                for (row, value) in &texts[*index].rows {
                    weights.update(row * classes, *value, &scores);
                }
            }
        }
        SparseHead { grams, vocabulary, weights: weights.values, bias: bias.values }
    }

    /// A head without vocabulary, with uniform output.
    pub(super) fn empty(grams: NgramKind, classes: usize) -> SparseHead {
        SparseHead {
            grams,
            vocabulary: Vocabulary::from_sorted([].into_iter()),
            weights: vec![],
            bias: vec![0.0; classes],
        }
    }

    pub(super) fn predict(&self, text: &str) -> HeadOutput {
        self.predict_counts(&self.grams.count(text))
    }

    pub(super) fn predict_counts(&self, counts: &NgramCounts) -> HeadOutput {
        let mut scores = vec![0.0; self.bias.len()];
        let features = self.vocabulary.features(counts);
        score(&features, &self.weights, &self.bias, &mut scores);
        log_softmax(&mut scores);
        HeadOutput { log_probabilities: scores, known_share: features.known_share }
    }
}

/// Parameters with their accumulated squared gradients: AdaGrad reduces the steps of parameters that moved much.
struct AdaGradParameters {
    values: Vec<f32>,
    squares: Vec<f32>,
}

impl AdaGradParameters {
    fn zeros(count: usize) -> AdaGradParameters {
        AdaGradParameters { values: vec![0.0; count], squares: vec![0.0; count] }
    }

    /// One AdaGrad step for the parameters from `start`, with gradient `value` times `residual`.
    fn update(&mut self, start: usize, value: f32, residual: &[f32]) {
        let values = &mut self.values[start..start + residual.len()];
        let squares = &mut self.squares[start..start + residual.len()];
        for ((parameter, square), residual) in values.iter_mut().zip(squares).zip(residual) {
            let slope = value * residual;
            *square += slope * slope;
            *parameter -= LEARNING_RATE * slope / (*square + ADAGRAD_EPSILON).sqrt();
        }
    }
}

fn score(features: &Features, weights: &[f32], bias: &[f32], scores: &mut [f32]) {
    scores.copy_from_slice(bias);
    for (row, value) in &features.rows {
        let weights = &weights[row * bias.len()..][..bias.len()];
        for (score, weight) in scores.iter_mut().zip(weights) {
            *score += value * weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(texts: &[(&str, usize)], fewest_texts: u32) -> SparseHead {
        let counts: Vec<NgramCounts> = texts.iter().map(|(text, _)| NgramKind::Words.count(text)).collect();
        let class_of: Vec<usize> = texts.iter().map(|(_, class)| *class).collect();
        SparseHead::train(NgramKind::Words, &counts.iter().collect::<Vec<_>>(), &class_of, 2, fewest_texts)
    }

    #[test]
    fn words_that_tell_classes_apart_are_learned() {
        let head = train(&[("red apple", 0), ("red rose", 0), ("blue sky", 1), ("blue sea", 1)], 1);
        let told = |text| head.predict(text).log_probabilities;
        assert!(told("a red car")[0].exp() > 0.8);
        assert!(told("a blue car")[1].exp() > 0.8);
        assert_eq!(told("unheard words"), told(""));
    }

    #[test]
    fn only_buckets_that_occur_often_enough_have_weights() {
        let texts = [("one two", 0), ("one three", 1)];
        assert_eq!(train(&texts, 1).weights.len(), 5 * 2);
        assert_eq!(train(&texts, 2).vocabulary.len(), 1);
    }
}
