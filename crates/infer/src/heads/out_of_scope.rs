//! Out-of-scope score: how far a text is from the training data.
//!
//! Sums three features, each standardized by its mean and deviation over held-out examples: the energy of the ensemble
//! (how little the heads respond), the distance to the nearest neighbours, and the distance to the nearest class
//! centroid. Each feature detects out-of-scope texts that the other two miss.

use ndarray::{Array2, ArrayView1, ArrayView2};

use super::Neighbour;
use super::held_out_neighbours::{MAX_NEIGHBOUR_EXAMPLES, NeighbourFeatures, centroids, nearest_distance};
use super::knn::{self, K};
use super::neighbours::{Neighbours, neighbour_distance};

/// Maximum number of stored scores of held-out examples.
const MAX_REFERENCE_SCORES: usize = 1000;
/// A smaller deviation only means that there were too few examples.
const MIN_DEVIATION: f32 = 1e-3;
/// Statistics of in-scope texts.
#[derive(Clone)]
pub(super) struct OutOfScope {
    /// `None` if there are too many examples.
    pub(super) neighbours: Option<Neighbours>,
    /// One row per class: its centroid, normalized to unit length.
    pub(super) centroids: Array2<f32>,
    pub(super) standardizers: [Standardizer; 3],
    /// Scores of held-out examples, ascending and evenly downsampled. Empty without held-out examples.
    pub(super) reference_scores: Vec<f32>,
}

/// Energy, distance to the neighbours, distance to the nearest centroid.
type ScopeFeatures = [f32; 3];

/// Mean and standard deviation of one feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standardizer {
    pub(super) mean: f32,
    pub(super) deviation: f32,
}

impl OutOfScope {
    /// Fits to the energies and the neighbour features of held-out examples.
    pub(super) fn fit(
        vectors: ArrayView2<'_, f32>,
        class_of: &[usize],
        classes: usize,
        energies: &[f32],
        around: &NeighbourFeatures,
    ) -> OutOfScope {
        let signs = energies.iter().zip(&around.neighbour_distances).zip(&around.centroid_distances);
        let held_out: Vec<ScopeFeatures> = signs.map(|((energy, near), middle)| [*energy, *near, *middle]).collect();
        let has_neighbours = vectors.nrows() <= MAX_NEIGHBOUR_EXAMPLES;
        let mut scope = OutOfScope {
            neighbours: has_neighbours.then(|| Neighbours::of(vectors, class_of)),
            centroids: centroids(vectors, class_of, classes),
            standardizers: std::array::from_fn(|sign| Standardizer::of(held_out.iter().map(|signs| signs[sign]))),
            reference_scores: Vec::new(),
        };
        scope.reference_scores = downsample(held_out.into_iter().map(|signs| scope.sum(signs)).collect());
        scope
    }

    /// The neighbours of a vector; empty if there are too many examples.
    pub(super) fn nearest(&self, vector: &[f32]) -> Vec<Neighbour> {
        self.neighbours.as_ref().map(|neighbours| neighbours.nearest(vector, K)).unwrap_or_default()
    }

    /// The k-NN head; uniform without neighbours.
    pub(super) fn votes(&self, nearest: &[Neighbour]) -> Vec<f32> {
        knn::count_votes(nearest, self.centroids.nrows())
    }

    pub(super) fn strangeness(&self, energy: f32, nearest: &[Neighbour], vector: &[f32]) -> f32 {
        let middles = nearest_distance(self.centroids.dot(&ArrayView1::from(vector)).view());
        self.sum([energy, neighbour_distance(nearest), middles])
    }

    /// The share of held-out examples with a lower score.
    pub(super) fn reference_quantile(&self, strangeness: f32) -> f32 {
        let less = self.reference_scores.partition_point(|known| *known < strangeness);
        less as f32 / self.reference_scores.len().max(1) as f32
    }

    /// The score at this quantile of the held-out examples.
    pub(super) fn typical_strangeness(&self, share: f32) -> f32 {
        let last = self.reference_scores.len().saturating_sub(1);
        self.reference_scores.get((share * last as f32) as usize).copied().unwrap_or_default()
    }

    fn sum(&self, signs: ScopeFeatures) -> f32 {
        self.standardizers.iter().zip(signs).map(|(spread, sign)| spread.standardize(sign)).sum()
    }
}

impl Standardizer {
    fn of(values: impl ExactSizeIterator<Item = f32> + Clone) -> Standardizer {
        if values.len() == 0 {
            return Standardizer { mean: 0.0, deviation: 1.0 };
        }
        let count = values.len() as f64;
        let mean = values.clone().map(f64::from).sum::<f64>() / count;
        let variance = values.map(|value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count;
        Standardizer { mean: mean as f32, deviation: (variance.sqrt() as f32).max(MIN_DEVIATION) }
    }

    /// Rejects deviations in saved files that would make scores overflow.
    pub(super) fn is_usable(self) -> bool {
        self.deviation >= MIN_DEVIATION
    }

    fn standardize(self, value: f32) -> f32 {
        (value - self.mean) / self.deviation
    }
}

/// Sorts the scores and downsamples them evenly.
pub(super) fn downsample(mut scores: Vec<f32>) -> Vec<f32> {
    scores.sort_unstable_by(f32::total_cmp);
    if scores.len() <= MAX_REFERENCE_SCORES {
        return scores;
    }
    (0..MAX_REFERENCE_SCORES).map(|index| scores[index * (scores.len() - 1) / (MAX_REFERENCE_SCORES - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_spread_is_never_nothing() {
        assert_eq!(Standardizer::of([1.0, 3.0].into_iter()), Standardizer { mean: 2.0, deviation: 1.0 });
        assert_eq!(Standardizer::of([2.0, 2.0].into_iter()).standardize(2.0), 0.0);
        assert_eq!(Standardizer::of([].into_iter()).standardize(2.0), 2.0);
    }

    #[test]
    fn the_share_counts_what_is_less_strange() {
        let vectors = array![[1.0, 0.0], [0.0, 1.0]];
        let nothing = NeighbourFeatures::of(vectors.view(), &[0, 1], 2, &[]);
        let mut scope = OutOfScope::fit(vectors.view(), &[0, 1], 2, &[], &nothing);
        assert_eq!(scope.reference_quantile(100.0), 0.0);
        scope.reference_scores = downsample((0..5000).rev().map(|score| score as f32).collect());
        assert_eq!(scope.reference_scores.len(), MAX_REFERENCE_SCORES);
        assert_eq!((scope.reference_scores[0], scope.reference_scores[MAX_REFERENCE_SCORES - 1]), (0.0, 4999.0));
        assert_eq!(scope.reference_quantile(-1.0), 0.0);
        assert!((scope.reference_quantile(4750.0) - 0.95).abs() < 2e-3);
        assert_eq!(scope.reference_quantile(5000.0), 1.0);
    }
}
