//! Tells how strange a text is beside everything a classifier was trained on.
//!
//! Three signs are added up, each in units of its spread among held-out examples: how little the heads have to say
//! about the text (its energy), how far it is from its nearest neighbours, and how far from the middle of any class.
//! Each misses strangers that the others find.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use super::folds::Split;
use super::neighbours::{Neighbours, far_from_nearest};
use super::softmax::log_sum_exp;

/// Past this many examples the neighbours are left out: to look through them all would take longer than to embed the
/// text, and with so many examples the middles of the classes are well known.
const MOST_NEIGHBOURS: usize = 20_000;
/// How many of the held-out examples' scores are kept, to compare with.
const MOST_KNOWN: usize = 1000;
/// A smaller spread than this says only that there were too few examples.
const LEAST_SPREAD: f32 = 1e-3;
/// Held-out vectors compared with all others at once; bounds the memory for it.
const BLOCK: usize = 256;

/// What is known of texts that are in scope.
#[derive(Clone)]
pub(super) struct Scope {
    /// None where there are too many examples.
    pub(super) neighbours: Option<Neighbours>,
    /// A row for each class: the mean of its examples, of length one.
    pub(super) middles: Array2<f32>,
    pub(super) spreads: [Spread; 3],
    /// Scores of held-out examples, ascending; thinned out evenly. Empty where nothing could be held out.
    pub(super) known: Vec<f32>,
}

/// A text's energy, its distance from its neighbours, and its distance from the nearest middle.
type Signs = [f32; 3];

/// Mean and standard deviation of one sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) mean: f32,
    pub(super) deviation: f32,
}

impl Scope {
    /// Learns from the scores that held-out examples got, a row each in the order of the splits, and from where they
    /// lie beside the others.
    pub(super) fn fit(
        vectors: ArrayView2<'_, f32>,
        class_of: &[usize],
        classes: usize,
        splits: &[Split],
        scores: ArrayView2<'_, f32>,
    ) -> Scope {
        let has_neighbours = vectors.nrows() <= MOST_NEIGHBOURS;
        let mut held_out: Vec<Signs> = Vec::with_capacity(scores.nrows());
        let mut scores = scores.rows().into_iter();
        for split in splits {
            let training = vectors.select(Axis(0), &split.training);
            let class_of: Vec<usize> = split.training.iter().map(|index| class_of[*index]).collect();
            let middles = middles(training.view(), &class_of, classes);
            for block in split.held_out.chunks(BLOCK) {
                // One large product is much quicker than many small ones.
                let block = vectors.select(Axis(0), block);
                let to_middles = block.dot(&middles.t());
                let to_examples = has_neighbours.then(|| block.dot(&training.t()));
                for (row, scores) in scores.by_ref().take(block.nrows()).enumerate() {
                    let neighbours = to_examples.as_ref().map(|all| far_from_nearest(&mut all.row(row).to_vec()));
                    held_out.push([
                        -log_sum_exp(&scores.to_vec()),
                        neighbours.unwrap_or_default(),
                        far_from_all(to_middles.row(row)),
                    ]);
                }
            }
        }
        let mut scope = Scope {
            neighbours: has_neighbours.then(|| Neighbours::of(vectors)),
            middles: middles(vectors, class_of, classes),
            spreads: std::array::from_fn(|sign| Spread::of(held_out.iter().map(|signs| signs[sign]))),
            known: Vec::new(),
        };
        scope.known = thinned(held_out.into_iter().map(|signs| scope.sum(signs)).collect());
        scope
    }

    /// Without anything to compare with: every text is taken as known.
    pub(super) fn unknown(vectors: ArrayView2<'_, f32>, class_of: &[usize], classes: usize) -> Scope {
        Scope::fit(vectors, class_of, classes, &[], Array2::zeros((0, classes)).view())
    }

    pub(super) fn strangeness(&self, energy: f32, vector: &[f32]) -> f32 {
        let neighbours = self.neighbours.as_ref().map(|neighbours| neighbours.distance(vector));
        let middles = far_from_all(self.middles.dot(&ArrayView1::from(vector)).view());
        self.sum([energy, neighbours.unwrap_or_default(), middles])
    }

    /// The share of held-out examples that are less strange than this.
    pub(super) fn share_less_strange(&self, strangeness: f32) -> f32 {
        let less = self.known.partition_point(|known| *known < strangeness);
        less as f32 / self.known.len().max(1) as f32
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

    /// A saved one must not make numbers larger than they can be.
    pub(super) fn is_usable(self) -> bool {
        self.deviation >= LEAST_SPREAD
    }

    fn units(self, value: f32) -> f32 {
        (value - self.mean) / self.deviation
    }
}

fn middles(vectors: ArrayView2<'_, f32>, class_of: &[usize], classes: usize) -> Array2<f32> {
    let mut middles = Array2::zeros((classes, vectors.ncols()));
    for (vector, class) in vectors.rows().into_iter().zip(class_of) {
        middles.row_mut(*class).scaled_add(1.0, &vector);
    }
    for mut middle in middles.rows_mut() {
        let length = middle.dot(&middle).sqrt();
        // Examples that cancel each other out have no middle; zero is then equally far from everything.
        middle.mapv_inplace(|number| number / length.max(1e-9));
    }
    middles
}

/// The largest similarity, turned round.
fn far_from_all(similarities: ArrayView1<'_, f32>) -> f32 {
    -similarities.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// The scores in order, evenly thinned out where there are many.
fn thinned(mut scores: Vec<f32>) -> Vec<f32> {
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
    fn middles_are_means_of_length_one() {
        let vectors = array![[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.6, 0.8], [-0.6, -0.8]];
        let half = 0.5f32.sqrt();
        assert_eq!(middles(vectors.view(), &[0, 0, 1, 2, 2], 3), array![[half, half], [-1.0, 0.0], [0.0, 0.0]]);
    }

    #[test]
    fn held_out_examples_are_seen_without_their_fold() {
        // Each is alone on its side as soon as it is held out, and the scores give all the same energy.
        let vectors = array![[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];
        let split = |held_out: usize| Split {
            training: (0..4).filter(|index| *index != held_out).collect(),
            held_out: vec![held_out],
        };
        let splits: Vec<Split> = (0..4).map(split).collect();
        let scope = Scope::fit(vectors.view(), &[0, 0, 1, 1], 2, &splits, Array2::zeros((4, 2)).view());
        let [energy, neighbours, middles] = scope.spreads;
        assert!((energy.mean + 2f32.ln()).abs() < 1e-6);
        assert!((neighbours.mean - 1.0 / 3.0).abs() < 1e-6);
        assert!(middles.mean.abs() < 1e-6);
        assert_eq!(scope.known.len(), 4);
        // The vectors themselves are in the middle of what is known, and so much less strange.
        assert!(scope.strangeness(energy.mean, &[1.0, 0.0]) < scope.known[0]);
    }

    #[test]
    fn a_spread_is_never_nothing() {
        assert_eq!(Spread::of([1.0, 3.0].into_iter()), Spread { mean: 2.0, deviation: 1.0 });
        assert_eq!(Spread::of([2.0, 2.0].into_iter()).units(2.0), 0.0);
        assert_eq!(Spread::of([].into_iter()).units(2.0), 2.0);
    }

    #[test]
    fn the_share_counts_what_is_less_strange() {
        let vectors = array![[1.0, 0.0], [0.0, 1.0]];
        let mut scope = Scope::unknown(vectors.view(), &[0, 1], 2);
        assert_eq!(scope.share_less_strange(100.0), 0.0);
        scope.known = thinned((0..5000).rev().map(|score| score as f32).collect());
        assert_eq!(scope.known.len(), MOST_KNOWN);
        assert_eq!((scope.known[0], scope.known[MOST_KNOWN - 1]), (0.0, 4999.0));
        assert_eq!(scope.share_less_strange(-1.0), 0.0);
        assert!((scope.share_less_strange(4750.0) - 0.95).abs() < 2e-3);
        assert_eq!(scope.share_less_strange(5000.0), 1.0);
    }
}
