//! Out-of-scope score: how far a text is from the training data.
//!
//! Sums three features, each standardized by its mean and deviation over held-out examples: the energy of the ensemble
//! (how little the heads respond), the distance to the nearest neighbours, and the distance to the nearest class
//! centroid. Each feature detects out-of-scope texts that the other two miss.

use ndarray::{Array2, ArrayView1, ArrayView2};

use super::Neighbour;
use super::neighbours::{Neighbours, far_from_nearest};
use super::surroundings::{MOST_NEIGHBOURS, Surroundings, far_from_all, middles};
use super::votes::{self, VOTERS};

/// Maximum number of stored scores of held-out examples.
const MOST_KNOWN: usize = 1000;
/// A smaller deviation only means that there were too few examples.
const LEAST_SPREAD: f32 = 1e-3;
/// Statistics of in-scope texts.
#[derive(Clone)]
pub(super) struct Scope {
    /// `None` if there are too many examples.
    pub(super) neighbours: Option<Neighbours>,
    /// One row per class: its centroid, normalized to unit length.
    pub(super) middles: Array2<f32>,
    pub(super) spreads: [Spread; 3],
    /// Scores of held-out examples, ascending and evenly downsampled. Empty without held-out examples.
    pub(super) known: Vec<f32>,
}

/// Energy, distance to the neighbours, distance to the nearest centroid.
type Signs = [f32; 3];

/// Mean and standard deviation of one feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) mean: f32,
    pub(super) deviation: f32,
}

impl Scope {
    /// Fits to the energies and the neighbour features of held-out examples.
    pub(super) fn fit(
        vectors: ArrayView2<'_, f32>,
        class_of: &[usize],
        classes: usize,
        energies: &[f32],
        around: &Surroundings,
    ) -> Scope {
        let signs = energies.iter().zip(&around.neighbours).zip(&around.middles);
        let held_out: Vec<Signs> = signs.map(|((energy, near), middle)| [*energy, *near, *middle]).collect();
        let has_neighbours = vectors.nrows() <= MOST_NEIGHBOURS;
        let mut scope = Scope {
            neighbours: has_neighbours.then(|| Neighbours::of(vectors, class_of)),
            middles: middles(vectors, class_of, classes),
            spreads: std::array::from_fn(|sign| Spread::of(held_out.iter().map(|signs| signs[sign]))),
            known: Vec::new(),
        };
        scope.known = thinned(held_out.into_iter().map(|signs| scope.sum(signs)).collect());
        scope
    }

    /// The neighbours of a vector; empty if there are too many examples.
    pub(super) fn nearest(&self, vector: &[f32]) -> Vec<Neighbour> {
        self.neighbours.as_ref().map(|neighbours| neighbours.nearest(vector, VOTERS)).unwrap_or_default()
    }

    /// The k-NN head; uniform without neighbours.
    pub(super) fn votes(&self, nearest: &[Neighbour]) -> Vec<f32> {
        votes::count(nearest, self.middles.nrows())
    }

    pub(super) fn strangeness(&self, energy: f32, nearest: &[Neighbour], vector: &[f32]) -> f32 {
        let middles = far_from_all(self.middles.dot(&ArrayView1::from(vector)).view());
        self.sum([energy, far_from_nearest(nearest), middles])
    }

    /// The share of held-out examples with a lower score.
    pub(super) fn share_less_strange(&self, strangeness: f32) -> f32 {
        let less = self.known.partition_point(|known| *known < strangeness);
        less as f32 / self.known.len().max(1) as f32
    }

    /// The score at this quantile of the held-out examples.
    pub(super) fn typical_strangeness(&self, share: f32) -> f32 {
        let last = self.known.len().saturating_sub(1);
        self.known.get((share * last as f32) as usize).copied().unwrap_or_default()
    }

    fn sum(&self, signs: Signs) -> f32 {
        self.spreads.iter().zip(signs).map(|(spread, sign)| spread.units(sign)).sum()
    }
}

impl Spread {
    fn of(values: impl ExactSizeIterator<Item = f32> + Clone) -> Spread {
        if values.len() == 0 {
            return Spread { mean: 0.0, deviation: 1.0 };
        }
        let count = values.len() as f64;
        let mean = values.clone().map(f64::from).sum::<f64>() / count;
        let variance = values.map(|value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count;
        Spread { mean: mean as f32, deviation: (variance.sqrt() as f32).max(LEAST_SPREAD) }
    }

    /// Rejects deviations in saved files that would make scores overflow.
    pub(super) fn is_usable(self) -> bool {
        self.deviation >= LEAST_SPREAD
    }

    fn units(self, value: f32) -> f32 {
        (value - self.mean) / self.deviation
    }
}

/// Sorts the scores and downsamples them evenly.
pub(super) fn thinned(mut scores: Vec<f32>) -> Vec<f32> {
    scores.sort_unstable_by(f32::total_cmp);
    if scores.len() <= MOST_KNOWN {
        return scores;
    }
    (0..MOST_KNOWN).map(|index| scores[index * (scores.len() - 1) / (MOST_KNOWN - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_spread_is_never_nothing() {
        assert_eq!(Spread::of([1.0, 3.0].into_iter()), Spread { mean: 2.0, deviation: 1.0 });
        assert_eq!(Spread::of([2.0, 2.0].into_iter()).units(2.0), 0.0);
        assert_eq!(Spread::of([].into_iter()).units(2.0), 2.0);
    }

    #[test]
    fn the_share_counts_what_is_less_strange() {
        let vectors = array![[1.0, 0.0], [0.0, 1.0]];
        let nothing = Surroundings::of(vectors.view(), &[0, 1], 2, &[]);
        let mut scope = Scope::fit(vectors.view(), &[0, 1], 2, &[], &nothing);
        assert_eq!(scope.share_less_strange(100.0), 0.0);
        scope.known = thinned((0..5000).rev().map(|score| score as f32).collect());
        assert_eq!(scope.known.len(), MOST_KNOWN);
        assert_eq!((scope.known[0], scope.known[MOST_KNOWN - 1]), (0.0, 4999.0));
        assert_eq!(scope.share_less_strange(-1.0), 0.0);
        assert!((scope.share_less_strange(4750.0) - 0.95).abs() < 2e-3);
        assert_eq!(scope.share_less_strange(5000.0), 1.0);
    }
}
