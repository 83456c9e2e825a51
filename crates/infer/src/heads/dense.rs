//! Dense head: multinomial logistic regression on the embedding.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

use super::lbfgs;
use super::softmax::{log_softmax, softmax};

/// How fast the probability falls with the distance from a centroid, before calibration on held-out examples.
const CENTROID_SCALE: f32 = 20.0;

/// A linear layer and a softmax.
#[derive(Clone)]
pub(super) struct DenseHead {
    /// One row per vector component, one column per class.
    pub(super) weights: Array2<f32>,
    pub(super) bias: Vec<f32>,
}

/// The training objective: mean cross-entropy plus an L2 penalty on the weights. The bias has no penalty, because it
/// only reflects class frequency.
struct Objective<'a> {
    vectors: ArrayView2<'a, f32>,
    class_of: &'a [usize],
    classes: usize,
    penalty: f32,
    /// Buffer for the probabilities of all examples, reused between evaluations.
    probabilities: Array2<f32>,
}

impl DenseHead {
    /// Fits the head. A smaller `looseness` gives smaller weights: it is the `C` of scikit-learn, the inverse of the
    /// penalty on a sum over the examples.
    pub(super) fn train(vectors: ArrayView2<'_, f32>, class_of: &[usize], classes: usize, looseness: f32) -> DenseHead {
        let (examples, dimension) = vectors.dim();
        let mut objective = Objective {
            vectors,
            class_of,
            classes,
            penalty: 1.0 / (looseness * examples as f32),
            probabilities: Array2::zeros((examples, classes)),
        };
        let start = Array1::zeros((dimension + 1) * classes);
        let found = lbfgs::minimize(start, &mut |point, slope| objective.evaluate(point, slope));
        let (weights, bias) = split(&found, dimension, classes);
        DenseHead { weights: weights.to_owned(), bias: bias.to_vec() }
    }

    /// An untrained nearest-centroid head: a class is more probable the closer its centroid is to the vector.
    pub(super) fn from_centroids(middles: Array2<f32>) -> DenseHead {
        let bias = vec![0.0; middles.nrows()];
        DenseHead { weights: (middles * CENTROID_SCALE).reversed_axes().as_standard_layout().into_owned(), bias }
    }

    pub(super) fn dimension(&self) -> usize {
        self.weights.nrows()
    }

    pub(super) fn classes(&self) -> usize {
        self.weights.ncols()
    }

    pub(super) fn log_probabilities(&self, vector: &[f32]) -> Vec<f32> {
        let mut scores = self.bias.clone();
        // Row by row, in memory order of the weights.
        for (number, weights) in vector.iter().zip(self.weights.rows()) {
            for (score, weight) in scores.iter_mut().zip(weights) {
                *score += number * weight;
            }
        }
        log_softmax(&mut scores);
        scores
    }

    /// Batch version of `log_probabilities`, one row per vector.
    pub(super) fn log_probabilities_of(&self, vectors: ArrayView2<'_, f32>) -> Array2<f32> {
        let mut scores = vectors.dot(&self.weights);
        for mut row in scores.rows_mut() {
            let row = row.as_slice_mut().expect("a product is laid out row by row");
            row.iter_mut().zip(&self.bias).for_each(|(score, bias)| *score += bias);
            log_softmax(row);
        }
        scores
    }
}

impl Objective<'_> {
    fn evaluate(&mut self, point: &Array1<f32>, slope: &mut Array1<f32>) -> f64 {
        let (examples, dimension) = self.vectors.dim();
        let (weights, bias) = split(point, dimension, self.classes);
        self.probabilities.assign(&bias);
        general_mat_mul(1.0, &self.vectors, &weights, 1.0, &mut self.probabilities);
        let mut loss = 0.0;
        for (mut row, class) in self.probabilities.rows_mut().into_iter().zip(self.class_of) {
            let row = row.as_slice_mut().expect("it is laid out row by row");
            let score = row[*class];
            loss += f64::from(softmax(row) - score);
            // Probabilities minus one-hot labels: the gradient of the cross-entropy with respect to the scores.
            row[*class] -= 1.0;
        }
        let scale = 1.0 / examples as f32;
        let (mut for_weights, mut for_bias) = slope.view_mut().split_at(Axis(0), dimension * self.classes);
        for_bias.assign(&(self.probabilities.sum_axis(Axis(0)) * scale));
        let mut for_weights =
            for_weights.view_mut().into_shape_with_order((dimension, self.classes)).expect("the part is that large");
        for_weights.assign(&weights);
        general_mat_mul(scale, &self.vectors.t(), &self.probabilities, self.penalty, &mut for_weights);
        let weights = point.slice(s![..dimension * self.classes]);
        loss / examples as f64 + f64::from(self.penalty) / 2.0 * f64::from(weights.dot(&weights))
    }
}

/// Splits the flat parameter vector into weights and bias.
fn split(point: &Array1<f32>, dimension: usize, classes: usize) -> (ArrayView2<'_, f32>, ArrayView1<'_, f32>) {
    let (weights, bias) = point.view().split_at(Axis(0), dimension * classes);
    (weights.into_shape_with_order((dimension, classes)).expect("the part is that large"), bias)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn problem() -> (Array2<f32>, Vec<usize>) {
        (array![[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8], [-1.0, 0.0], [0.0, -1.0]], vec![0, 0, 1, 1, 2, 2])
    }

    #[test]
    fn the_slope_is_what_small_steps_say() {
        let (vectors, class_of) = problem();
        let mut objective = Objective {
            vectors: vectors.view(),
            class_of: &class_of,
            classes: 3,
            penalty: 0.3,
            probabilities: Array2::zeros((6, 3)),
        };
        let point = Array1::from_shape_fn(9, |index| (index as f32 * 0.7).sin());
        let mut slope = Array1::zeros(9);
        objective.evaluate(&point, &mut slope);
        for index in 0..9 {
            let mut ignored = Array1::zeros(9);
            let mut value_at = |step: f32| {
                let mut moved = point.clone();
                moved[index] += step;
                objective.evaluate(&moved, &mut ignored)
            };
            let measured = (value_at(1e-2) - value_at(-1e-2)) / 2e-2;
            assert!((measured - f64::from(slope[index])).abs() < 1e-3, "{index}: {measured} and {}", slope[index]);
        }
    }

    #[test]
    fn what_is_plain_is_learned() {
        let (vectors, class_of) = problem();
        let head = DenseHead::train(vectors.view(), &class_of, 3, 20.0);
        let all = head.log_probabilities_of(vectors.view());
        for ((vector, class), row) in vectors.rows().into_iter().zip(class_of).zip(all.rows()) {
            let one = head.log_probabilities(vector.as_slice().unwrap());
            assert!(one[class].exp() > 0.5);
            for (one, all) in one.iter().zip(row) {
                assert!((one - all).abs() < 1e-5);
            }
        }
    }
}
