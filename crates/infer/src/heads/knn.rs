//! k-NN head: distance-weighted votes of the nearest examples. Its result can be explained by showing them.
//!
//! Votes count more the nearer the example is. Shares of votes are underconfident as probabilities: a text with eight
//! of its twenty neighbours in a class is often clearly of that class. When this head decides alone, the shares are
//! therefore raised to a power that is fitted on held-out examples.

use ndarray::ArrayView2;

use super::{Neighbour, ensemble};

/// The k of k-NN.
pub(super) const K: usize = 20;
/// A vote decays by a factor of e over this difference in similarity.
const DISTANCE_SCALE: f32 = 0.1;
/// Prior of each class without votes, so that no probability is zero.
const SMOOTHING: f32 = 0.01;

/// Calibration of the k-NN head.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KnnHead {
    pub(super) power: f32,
}

impl KnnHead {
    /// Default, for use without held-out examples.
    pub(super) const FIXED: KnnHead = KnnHead { power: 1.0 };

    /// Fits the power to the output of [`count_votes`] for held-out examples, one row each.
    pub(super) fn fit(counted: ArrayView2<'_, f32>, class_of: &[usize]) -> KnnHead {
        let [power] = ensemble::fit([counted], class_of, [1.0]).weights;
        KnnHead { power: power as f32 }
    }
}

/// Log shares of the classes, given the nearest examples, nearest first.
pub(super) fn count_votes(nearest: &[Neighbour], classes: usize) -> Vec<f32> {
    let closest = nearest.first().map_or(0.0, |nearest| nearest.similarity);
    let mut shares = vec![SMOOTHING; classes];
    let mut total = SMOOTHING * classes as f32;
    for Neighbour { class, similarity, .. } in nearest {
        let vote = ((similarity - closest) / DISTANCE_SCALE).exp();
        shares[*class] += vote;
        total += vote;
    }
    shares.iter_mut().for_each(|share| *share = (*share / total).ln());
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_examples_count_more_than_far_ones() {
        let near = |class, similarity| Neighbour { example: 0, class, similarity };
        let shares = count_votes(&[near(0, 0.9), near(1, 0.5), near(1, 0.5)], 3);
        assert!(shares[0] > shares[1] && shares[1] > shares[2], "{shares:?}");
        assert!((shares.iter().map(|share| share.exp()).sum::<f32>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn without_votes_all_classes_are_alike() {
        let shares = count_votes(&[], 4);
        assert!(shares.iter().all(|share| (share - 0.25f32.ln()).abs() < 1e-6), "{shares:?}");
    }

    #[test]
    fn shy_votes_are_made_bolder() {
        let counted = ndarray::Array2::from_shape_fn((40, 2), |(text, class)| match class == text % 2 {
            true => 0.6f32.ln(),
            false => 0.4f32.ln(),
        });
        let class_of: Vec<usize> = (0..40).map(|text| text % 2).collect();
        assert!(KnnHead::fit(counted.view(), &class_of).power > 5.0);
    }
}
