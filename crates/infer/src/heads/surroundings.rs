//! Where held-out examples lie beside the others, in one pass over all pairs.
//!
//! Both how strange a text is and how its neighbours vote depend on it, and the products of all vectors with all others
//! are the costliest part of training, so they are made once.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use super::folds::Split;
use super::neighbours::{far_from_nearest, nearest};
use super::votes::{self, VOTERS};

/// Past this many examples the neighbours are left out: to look through them all would take longer than to embed the
/// text, and with so many examples the middles of the classes are well known.
pub(super) const MOST_NEIGHBOURS: usize = 20_000;
/// Held-out vectors compared with all others at once; bounds the memory for it.
const BLOCK: usize = 256;

/// What is around each held-out example, in the order of the splits.
pub(super) struct Surroundings {
    /// How far the nearest examples are; zero where there are too many examples to look through.
    pub(super) neighbours: Vec<f32>,
    /// How far the middle of the nearest class is.
    pub(super) middles: Vec<f32>,
    /// How the nearest examples vote, a row each; nothing but zeros where there are too many examples.
    pub(super) votes: Array2<f32>,
}

impl Surroundings {
    pub(super) fn of(
        vectors: ArrayView2<'_, f32>,
        class_of: &[usize],
        classes: usize,
        splits: &[Split],
    ) -> Surroundings {
        let has_neighbours = vectors.nrows() <= MOST_NEIGHBOURS;
        let (mut neighbours, mut to_middle, mut votes) = (Vec::new(), Vec::new(), Vec::new());
        for split in splits {
            let training = vectors.select(Axis(0), &split.training);
            let class_of: Vec<usize> = split.training.iter().map(|index| class_of[*index]).collect();
            let middles = middles(training.view(), &class_of, classes);
            for block in split.held_out.chunks(BLOCK) {
                // One large product is much quicker than many small ones.
                let block = vectors.select(Axis(0), block);
                let to_middles = block.dot(&middles.t());
                to_middle.extend(to_middles.rows().into_iter().map(far_from_all));
                if !has_neighbours {
                    neighbours.extend(std::iter::repeat_n(0.0, block.nrows()));
                    votes.extend(std::iter::repeat_n(0.0, block.nrows() * classes));
                    continue;
                }
                for similarities in block.dot(&training.t()).rows() {
                    let nearest = nearest(&similarities.to_vec(), VOTERS, |index| class_of[index]);
                    votes.extend(votes::count(&nearest, classes));
                    neighbours.push(far_from_nearest(&nearest));
                }
            }
        }
        let votes = Array2::from_shape_vec((votes.len() / classes, classes), votes).expect("whole rows");
        Surroundings { neighbours, middles: to_middle, votes }
    }
}

/// The mean of each class's vectors, of length one, a row each.
pub(super) fn middles(vectors: ArrayView2<'_, f32>, class_of: &[usize], classes: usize) -> Array2<f32> {
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
pub(super) fn far_from_all(similarities: ArrayView1<'_, f32>) -> f32 {
    -similarities.iter().copied().fold(f32::NEG_INFINITY, f32::max)
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
        // Each is alone on its side as soon as it is held out.
        let vectors = array![[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];
        let split = |held_out: usize| Split {
            training: (0..4).filter(|index| *index != held_out).collect(),
            held_out: vec![held_out],
        };
        let splits: Vec<Split> = (0..4).map(split).collect();
        let around = Surroundings::of(vectors.view(), &[0, 0, 1, 1], 2, &splits);
        assert!(around.neighbours.iter().all(|far| (far - 1.0 / 3.0).abs() < 1e-6), "{:?}", around.neighbours);
        assert!(around.middles.iter().all(|far| far.abs() < 1e-6), "{:?}", around.middles);
        assert_eq!(around.votes.dim(), (4, 2));
        // The other class has two examples left beside the one of its own, and as near.
        assert!(around.votes[[0, 1]] > around.votes[[0, 0]]);
    }
}
