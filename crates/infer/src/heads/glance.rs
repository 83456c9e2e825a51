//! Tells when a text's words and letters alone leave no doubt, so that nobody has to wait for its vector.
//!
//! Two things must come together: the two heads are sure, and the text is made of what they know. The second matters
//! because a head is sure of anything that has one strong word in it. How sure is sure enough is read off held-out
//! examples.

use ndarray::ArrayView2;

use super::scope::thinned;
use super::softmax::softmax;
use super::sparse::SparseHead;
use super::{Verdict, product};

/// How many of its verdicts may be wrong.
const MOST_WRONG: f64 = 0.005;
/// The share of known texts that are too strange for a glance.
const STRANGEST: f32 = 0.25;

/// How far words and letters can be trusted without the vector.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Glance {
    /// How much the words and the letters count.
    pub(super) weights: [f32; 2],
    /// The confidence from which on a verdict stands. Above one, none ever does.
    pub(super) sure: f32,
    /// The known shares of held-out texts, ascending; thinned out evenly.
    pub(super) known: Vec<f32>,
}

impl Glance {
    /// For when there is nothing to learn from.
    pub(super) const NEVER: Glance = Glance { weights: [0.0; 2], sure: 2.0, known: Vec::new() };

    /// Learns from what the two heads said about held-out examples, and from how much of each they knew.
    pub(super) fn fit(heads: [ArrayView2<'_, f32>; 2], known: &[f32], class_of: &[usize]) -> Glance {
        let weights = product::fit(heads, class_of, [0.5, 0.5]).weights.map(|weight| weight as f32);
        let mut glance = Glance { weights, sure: 2.0, known: thinned(known.to_vec()) };
        let mut outcomes = Vec::new();
        for (index, class) in class_of.iter().enumerate() {
            let [words, chars] = heads.each_ref().map(|head| head.row(index).to_vec());
            if !glance.is_strange(known[index]) {
                let verdict = glance.combine(&words, &chars, known[index]);
                outcomes.push((verdict.confidence(), verdict.class() == *class));
            }
        }
        glance.sure = sure_from(outcomes);
        glance
    }

    pub(super) fn look(&self, words: &SparseHead, chars: &SparseHead, text: &str) -> Option<Verdict> {
        if self.sure > 1.0 {
            return None;
        }
        let words = words.look_at(text);
        let chars = chars.look_at(text);
        let known = known(words.known, chars.known);
        if self.is_strange(known) {
            return None;
        }
        let verdict = self.combine(&words.log_probabilities, &chars.log_probabilities, known);
        (verdict.confidence() >= self.sure).then_some(verdict)
    }

    fn combine(&self, words: &[f32], chars: &[f32], known: f32) -> Verdict {
        let mut scores: Vec<f32> =
            words.iter().zip(chars).map(|(words, chars)| self.weights[0] * words + self.weights[1] * chars).collect();
        softmax(&mut scores);
        Verdict { probabilities: scores, out_of_scope: self.out_of_scope(known), strangeness: 0.0 }
    }

    fn is_strange(&self, known: f32) -> bool {
        self.out_of_scope(known) > 1.0 - STRANGEST
    }

    /// The share of held-out texts of which more was known.
    fn out_of_scope(&self, known: f32) -> f32 {
        let up_to = self.known.partition_point(|other| *other <= known);
        1.0 - up_to as f32 / self.known.len().max(1) as f32
    }
}

/// How much of a text is known, from what each head knows of it.
pub(super) fn known(words: f32, chars: f32) -> f32 {
    (words + chars) / 2.0
}

/// The lowest confidence from which on few enough verdicts are wrong; above one if there is none. One wrong verdict
/// more than were seen is counted in two texts more, so that few examples are no proof.
fn sure_from(mut outcomes: Vec<(f32, bool)>) -> f32 {
    outcomes.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let (mut wrong, mut sure) = (0, 2.0);
    for (index, (confidence, right)) in outcomes.iter().enumerate() {
        wrong += usize::from(!right);
        if (wrong + 1) as f64 <= MOST_WRONG * (index + 3) as f64 {
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
        assert_eq!(sure_from(vec![]), 2.0);
        assert_eq!(sure_from(vec![(1.0, true); 100]), 2.0);
        assert_eq!(sure_from(vec![(1.0, true); 300]), 1.0);
    }

    #[test]
    fn the_border_lies_where_mistakes_begin() {
        let outcome = |index: usize| (1.0 - index as f32 / 1000.0, index < 500 || index.is_multiple_of(2));
        let sure = sure_from((0..1000).map(outcome).collect());
        assert!((0.49..=0.51).contains(&sure), "{sure}");
    }

    #[test]
    fn a_text_of_unknown_pieces_is_strange() {
        let glance = Glance { known: (0..100).map(|share| share as f32 / 100.0).collect(), ..Glance::NEVER };
        assert!(glance.is_strange(0.1));
        assert!(!glance.is_strange(0.9));
        assert!(glance.combine(&[0.0], &[0.0], 0.9).out_of_scope < glance.combine(&[0.0], &[0.0], 0.5).out_of_scope);
    }
}
