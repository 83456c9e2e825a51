//! Neighbour features of held-out examples: distances and k-NN votes, in one pass over all pairs.
//!
//! The out-of-scope score and the k-NN head both need them. The products of all pairs of vectors are the most expensive
//! part of training, so they are computed only once.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use super::cross_validation::Split;
use super::knn::{self, K};
use super::neighbours::{nearest, neighbour_distance};

/// With more examples, neighbours are disabled: a scan of all would take longer than embedding the text, and with this
/// amount of data the class centroids are reliable.
pub(super) const MAX_NEIGHBOUR_EXAMPLES: usize = 20_000;
/// Number of held-out vectors per matrix product; bounds its memory.
const BLOCK: usize = 256;

/// Neighbour features of each held-out example, in the order of the splits.
pub(super) struct NeighbourFeatures {
    /// Distance to the nearest examples; zero if there are too many examples.
    pub(super) neighbour_distances: Vec<f32>,
    /// Distance to the nearest class centroid.
    pub(super) centroid_distances: Vec<f32>,
    /// Votes of the nearest examples, one row each; zeros if there are too many examples.
    pub(super) votes: Array2<f32>,
}

impl NeighbourFeatures {
    pub(super) fn of(
        vectors: ArrayView2<'_, f32>,
        class_of: &[usize],
        classes: usize,
        splits: &[Split],
    ) -> NeighbourFeatures {
        let has_neighbours = vectors.nrows() <= MAX_NEIGHBOUR_EXAMPLES;
        let (mut neighbours, mut to_middle, mut votes) = (Vec::new(), Vec::new(), Vec::new());
        for split in splits {
            let training = vectors.select(Axis(0), &split.training);
            let class_of: Vec<usize> = split.training.iter().map(|index| class_of[*index]).collect();
            let middles = centroids(training.view(), &class_of, classes);
            for block in split.held_out.chunks(BLOCK) {
                // One large matrix product is much faster than many small ones.
                let block = vectors.select(Axis(0), block);
                let to_middles = block.dot(&middles.t());
                to_middle.extend(to_middles.rows().into_iter().map(nearest_distance));
                if !has_neighbours {
                    neighbours.extend(std::iter::repeat_n(0.0, block.nrows()));
                    votes.extend(std::iter::repeat_n(0.0, block.nrows() * classes));
                    continue;
                }
                for similarities in block.dot(&training.t()).rows() {
                    let nearest = nearest(&similarities.to_vec(), K, |index| class_of[index]);
                    votes.extend(knn::count_votes(&nearest, classes));
                    neighbours.push(neighbour_distance(&nearest));
                }
            }
        }
        let votes = Array2::from_shape_vec((votes.len() / classes, classes), votes).expect("whole rows");
        NeighbourFeatures { neighbour_distances: neighbours, centroid_distances: to_middle, votes }
    }
}

/// Class centroids, normalized to unit length, one row each.
pub(super) fn centroids(vectors: ArrayView2<'_, f32>, class_of: &[usize], classes: usize) -> Array2<f32> {
    let mut middles = Array2::zeros((classes, vectors.ncols()));
    for (vector, class) in vectors.rows().into_iter().zip(class_of) {
        middles.row_mut(*class).scaled_add(1.0, &vector);
    }
    for mut middle in middles.rows_mut() {
        let length = middle.dot(&middle).sqrt();
        // Examples that cancel out have no centroid; the zero vector is equally far from every vector.
        middle.mapv_inplace(|number| number / length.max(1e-9));
    }
    middles
}

/// The largest similarity, negated.
pub(super) fn nearest_distance(similarities: ArrayView1<'_, f32>) -> f32 {
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
        assert_eq!(centroids(vectors.view(), &[0, 0, 1, 2, 2], 3), array![[half, half], [-1.0, 0.0], [0.0, 0.0]]);
    }

    #[test]
    fn held_out_examples_are_seen_without_their_fold() {
        // Once held out, no other example is on its side.
        let vectors = array![[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];
        let split = |held_out: usize| Split {
            training: (0..4).filter(|index| *index != held_out).collect(),
            held_out: vec![held_out],
        };
        let splits: Vec<Split> = (0..4).map(split).collect();
        let around = NeighbourFeatures::of(vectors.view(), &[0, 0, 1, 1], 2, &splits);
        assert!(
            around.neighbour_distances.iter().all(|far| (far - 1.0 / 3.0).abs() < 1e-6),
            "{:?}",
            around.neighbour_distances
        );
        assert!(around.centroid_distances.iter().all(|far| far.abs() < 1e-6), "{:?}", around.centroid_distances);
        assert_eq!(around.votes.dim(), (4, 2));
        // The other class has two examples left, its own class one, at the same distance.
        assert!(around.votes[[0, 1]] > around.votes[[0, 0]]);
    }
}
