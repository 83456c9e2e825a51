//! Early exit: decides when the word and character heads alone are certain, so that the text needs no embedding.
//!
//! Two conditions must hold: the two heads are confident, and their vocabulary covers the text. The second condition
//! matters because a head is confident about any text with one strong word. The confidence threshold is calibrated on
//! held-out examples.

use ndarray::ArrayView2;

use super::out_of_scope::downsample;
use super::softmax::softmax;
use super::sparse::SparseHead;
use super::{Prediction, ensemble};

/// Maximum error rate of early-exit decisions.
const MAX_ERROR_RATE: f64 = 0.005;
/// The share of in-scope texts with too little vocabulary coverage for an early exit.
const UNFAMILIAR_QUANTILE: f32 = 0.25;

/// Calibrated early exit without the embedding.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EarlyExit {
    /// Weights of the word head and the character head.
    pub(super) weights: [f32; 2],
    /// Minimum confidence of an early exit. A value above one disables it.
    pub(super) threshold: f32,
    /// Vocabulary coverage of held-out texts, ascending and evenly downsampled.
    pub(super) known_shares: Vec<f32>,
}

impl EarlyExit {
    /// Disabled early exit, for use without held-out examples.
    pub(super) const NEVER: EarlyExit = EarlyExit { weights: [0.0; 2], threshold: 2.0, known_shares: Vec::new() };

    /// Calibrates on the heads' outputs for held-out examples and on their coverage of each example.
    pub(super) fn fit(heads: [ArrayView2<'_, f32>; 2], known: &[f32], class_of: &[usize]) -> EarlyExit {
        let weights = ensemble::fit(heads, class_of, [0.5, 0.5]).weights.map(|weight| weight as f32);
        let mut glance = EarlyExit { weights, threshold: 2.0, known_shares: downsample(known.to_vec()) };
        let mut outcomes = Vec::new();
        for (index, class) in class_of.iter().enumerate() {
            let [words, chars] = heads.each_ref().map(|head| head.row(index).to_vec());
            if !glance.is_unfamiliar(known[index]) {
                let verdict = glance.combine(&words, &chars, known[index]);
                outcomes.push((verdict.confidence(), verdict.class() == *class));
            }
        }
        glance.threshold = confidence_threshold(outcomes);
        glance
    }

    pub(super) fn predict(&self, words: &SparseHead, chars: &SparseHead, text: &str) -> Option<Prediction> {
        if self.threshold > 1.0 {
            return None;
        }
        let words = words.predict(text);
        let chars = chars.predict(text);
        let known = known_share(words.known_share, chars.known_share);
        if self.is_unfamiliar(known) {
            return None;
        }
        let verdict = self.combine(&words.log_probabilities, &chars.log_probabilities, known);
        (verdict.confidence() >= self.threshold).then_some(verdict)
    }

    fn combine(&self, words: &[f32], chars: &[f32], known: f32) -> Prediction {
        let mut scores: Vec<f32> =
            words.iter().zip(chars).map(|(words, chars)| self.weights[0] * words + self.weights[1] * chars).collect();
        softmax(&mut scores);
        Prediction { probabilities: scores, out_of_scope: self.out_of_scope(known), strangeness: 0.0 }
    }

    fn is_unfamiliar(&self, known: f32) -> bool {
        self.out_of_scope(known) > 1.0 - UNFAMILIAR_QUANTILE
    }

    /// The share of held-out texts with higher coverage.
    fn out_of_scope(&self, known: f32) -> f32 {
        let up_to = self.known_shares.partition_point(|other| *other <= known);
        1.0 - up_to as f32 / self.known_shares.len().max(1) as f32
    }
}

/// Mean vocabulary coverage of the two heads.
pub(super) fn known_share(words: f32, chars: f32) -> f32 {
    (words + chars) / 2.0
}

/// The lowest confidence threshold with an acceptable error rate; above one if there is none. Adds one error and two
/// texts to the counts, so that a small sample is not accepted as proof.
fn confidence_threshold(mut outcomes: Vec<(f32, bool)>) -> f32 {
    outcomes.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let (mut wrong, mut sure) = (0, 2.0);
    for (index, (confidence, right)) in outcomes.iter().enumerate() {
        wrong += usize::from(!right);
        if (wrong + 1) as f64 <= MAX_ERROR_RATE * (index + 3) as f64 {
            sure = *confidence;
        }
    }
    sure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_examples_are_never_sure_enough() {
        assert_eq!(confidence_threshold(vec![]), 2.0);
        assert_eq!(confidence_threshold(vec![(1.0, true); 100]), 2.0);
        assert_eq!(confidence_threshold(vec![(1.0, true); 300]), 1.0);
    }

    #[test]
    fn the_border_lies_where_mistakes_begin() {
        let outcome = |index: usize| (1.0 - index as f32 / 1000.0, index < 500 || index.is_multiple_of(2));
        let sure = confidence_threshold((0..1000).map(outcome).collect());
        assert!((0.49..=0.51).contains(&sure), "{sure}");
    }

    #[test]
    fn a_text_of_unknown_pieces_is_strange() {
        let glance =
            EarlyExit { known_shares: (0..100).map(|share| share as f32 / 100.0).collect(), ..EarlyExit::NEVER };
        assert!(glance.is_unfamiliar(0.1));
        assert!(!glance.is_unfamiliar(0.9));
        assert!(glance.combine(&[0.0], &[0.0], 0.9).out_of_scope < glance.combine(&[0.0], &[0.0], 0.5).out_of_scope);
    }
}
