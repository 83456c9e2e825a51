//! Ensemble of the four heads: a product of their probabilities, each raised to a weight.
//!
//! The weights have two effects: their ratio expresses the relative reliability of the heads, and their size calibrates
//! the probabilities (like a temperature).

use ndarray::{Array2, ArrayView2};

use super::softmax::softmax;

/// Weights of the dense head, the word head, the character head and the nearest neighbours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ensemble {
    pub(super) weights: [f32; 4],
}

/// Fitted weights and their mean loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit<const HEADS: usize> {
    pub(super) weights: [f64; HEADS],
    pub(super) loss: f64,
}

/// Minimum weight of the character head. Held-out examples give it less, because they contain no typos; real user input
/// does.
const MIN_CHARS_WEIGHT: f64 = 0.2;
const MAX_ITERATIONS: usize = 20;
const MIN_IMPROVEMENT: f64 = 1e-7;

impl Ensemble {
    /// Default weights, for use without held-out examples.
    pub(super) const FIXED: Ensemble = Ensemble { weights: [1.0, 0.4, 0.15, 0.0] };

    /// Fits the weights to log-probabilities of held-out examples.
    pub(super) fn fit(heads: [ArrayView2<'_, f32>; 4], class_of: &[usize]) -> Ensemble {
        let mut weights = fit(heads, class_of, [1.0, 0.4, 0.4, 0.4]).weights;
        weights[2] = weights[2].max(MIN_CHARS_WEIGHT);
        let product = Ensemble { weights: weights.map(|weight| weight as f32) };
        let [scale] = fit([product.combine_all(heads).view()], class_of, [1.0]).weights;
        Ensemble { weights: weights.map(|weight| (weight * scale) as f32) }
    }

    /// Unnormalized log-probabilities of the classes.
    pub(super) fn combine(&self, heads: [&[f32]; 4]) -> Vec<f32> {
        let mut scores = vec![0.0; heads[0].len()];
        for (weight, logs) in self.weights.iter().zip(heads) {
            scores.iter_mut().zip(logs).for_each(|(score, log)| *score += weight * log);
        }
        scores
    }

    /// Batch version of `combine`, one row per text.
    pub(super) fn combine_all(&self, heads: [ArrayView2<'_, f32>; 4]) -> Array2<f32> {
        let mut scores = Array2::zeros(heads[0].dim());
        for (weight, logs) in self.weights.iter().zip(heads) {
            scores.scaled_add(*weight, &logs);
        }
        scores
    }
}

/// Fits non-negative weights that minimize the mean negative log-likelihood of the product of `heads`. Uses Newton's
/// method; the loss is convex in the weights.
///
/// If the product classifies every example correctly, larger weights would always reduce the loss. Labels are therefore
/// smoothed by 1/(n + 2), as in Platt scaling.
pub(super) fn fit<const HEADS: usize>(
    heads: [ArrayView2<'_, f32>; HEADS],
    class_of: &[usize],
    start: [f64; HEADS],
) -> Fit<HEADS> {
    let mut weights = start;
    let mut here = LossDerivatives::at(heads, class_of, weights);
    for _ in 0..MAX_ITERATIONS {
        let Some(direction) = solve(here.curvature, here.gradient) else { break };
        let mut length = 1.0;
        let (next, there) = loop {
            let next: [f64; HEADS] = std::array::from_fn(|head| (weights[head] - length * direction[head]).max(0.0));
            let there = LossDerivatives::at(heads, class_of, next);
            if there.loss <= here.loss {
                break (next, there);
            }
            length /= 2.0;
            if length < 1e-4 {
                return Fit { weights, loss: here.loss };
            }
        };
        let gain = here.loss - there.loss;
        (weights, here) = (next, there);
        if gain < MIN_IMPROVEMENT {
            break;
        }
    }
    Fit { weights, loss: here.loss }
}

/// Loss, gradient and Hessian at given weights.
struct LossDerivatives<const HEADS: usize> {
    loss: f64,
    gradient: [f64; HEADS],
    curvature: [[f64; HEADS]; HEADS],
}

impl<const HEADS: usize> LossDerivatives<HEADS> {
    fn at(heads: [ArrayView2<'_, f32>; HEADS], class_of: &[usize], weights: [f64; HEADS]) -> Self {
        let classes = heads[0].ncols();
        let doubt = 1.0 / (class_of.len() as f64 + 2.0);
        let mut local = LossDerivatives { loss: 0.0, gradient: [0.0; HEADS], curvature: [[0.0; HEADS]; HEADS] };
        let mut scores = vec![0.0f32; classes];
        for (index, class) in class_of.iter().enumerate() {
            let rows = heads.each_ref().map(|head| head.row(index));
            for (column, score) in scores.iter_mut().enumerate() {
                *score = (0..HEADS).map(|head| weights[head] as f32 * rows[head][column]).sum();
            }
            // The expected output of each head, under the product's distribution and under the labels.
            let mut seen = [0.0; HEADS];
            let mut products = [[0.0; HEADS]; HEADS];
            let mean_score = scores.iter().map(|score| f64::from(*score)).sum::<f64>() / classes as f64;
            let true_score = (1.0 - doubt) * f64::from(scores[*class]) + doubt * mean_score;
            local.loss += f64::from(softmax(&mut scores)) - true_score;
            for (column, probability) in scores.iter().enumerate() {
                for one in 0..HEADS {
                    let share = f64::from(probability * rows[one][column]);
                    seen[one] += share;
                    for other in 0..HEADS {
                        products[one][other] += share * f64::from(rows[other][column]);
                    }
                }
            }
            for one in 0..HEADS {
                let mean = rows[one].iter().map(|log| f64::from(*log)).sum::<f64>() / classes as f64;
                local.gradient[one] += seen[one] - (1.0 - doubt) * f64::from(rows[one][*class]) - doubt * mean;
                for other in 0..HEADS {
                    local.curvature[one][other] += products[one][other] - seen[one] * seen[other];
                }
            }
        }
        let scale = 1.0 / class_of.len() as f64;
        local.loss *= scale;
        local.gradient.iter_mut().for_each(|slope| *slope *= scale);
        for (head, row) in local.curvature.iter_mut().enumerate() {
            row.iter_mut().for_each(|curvature| *curvature *= scale);
            // Two identical heads would make the system singular.
            row[head] += 1e-9;
        }
        local
    }
}

/// Solves a small linear system by Gaussian elimination. `None` if it has no unique finite solution.
fn solve<const SIZE: usize>(mut matrix: [[f64; SIZE]; SIZE], mut right: [f64; SIZE]) -> Option<[f64; SIZE]> {
    for column in 0..SIZE {
        let pivot = (column..SIZE).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..SIZE {
            let share = matrix[row][column] / matrix[column][column];
            let pivot = matrix[column];
            matrix[row].iter_mut().zip(pivot).for_each(|(value, pivot)| *value -= share * pivot);
            right[row] -= share * right[column];
        }
    }
    for row in (0..SIZE).rev() {
        for known in row + 1..SIZE {
            right[row] -= matrix[row][known] * right[known];
        }
        right[row] /= matrix[row][row];
    }
    right.iter().all(|value| value.is_finite()).then_some(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::softmax::log_softmax;

    /// Four different heads for 40 texts and three classes. Each text occurs 200 times, with class frequencies as given
    /// by a product with these weights.
    fn mixture(weights: [f32; 4]) -> ([Array2<f32>; 4], Vec<usize>) {
        let opinions = std::array::from_fn(|head| {
            let mut logs = Array2::from_shape_fn((40, 3), |(text, class)| {
                2.0 * ((text * 7 + class * 13 + head * 29 + text * class * (head + 2)) as f32).sin()
            });
            logs.rows_mut().into_iter().for_each(|mut row| log_softmax(row.as_slice_mut().unwrap()));
            logs
        });
        let mut scores = Ensemble { weights }.combine_all(opinions.each_ref().map(|head| head.view()));
        let (mut texts, mut class_of) = (Vec::new(), Vec::new());
        for (text, mut row) in scores.rows_mut().into_iter().enumerate() {
            let row = row.as_slice_mut().unwrap();
            softmax(row);
            for (class, probability) in row.iter().enumerate() {
                let times = (probability * 200.0).round() as usize;
                texts.extend(std::iter::repeat_n(text, times));
                class_of.extend(std::iter::repeat_n(class, times));
            }
        }
        (opinions.map(|head| head.select(ndarray::Axis(0), &texts)), class_of)
    }

    #[test]
    fn the_weights_of_a_known_mixture_are_found_again() {
        let (heads, class_of) = mixture([1.2, 0.5, 0.3, 0.8]);
        let found = fit(heads.each_ref().map(|head| head.view()), &class_of, [1.0, 0.4, 0.4, 0.4]);
        for (found, made) in found.weights.iter().zip([1.2, 0.5, 0.3, 0.8]) {
            assert!((found - made).abs() < 0.02, "{found} is not {made}");
        }
    }

    #[test]
    fn letters_keep_some_weight_and_the_whole_stays_calibrated() {
        let (heads, class_of) = mixture([1.5, 0.5, 0.0, 0.2]);
        let heads = heads.each_ref().map(|head| head.view());
        let product = Ensemble::fit(heads, &class_of);
        assert!(product.weights[2] > 0.1, "{product:?}");
        let [scale] = fit([product.combine_all(heads).view()], &class_of, [1.0]).weights;
        assert!((scale - 1.0).abs() < 1e-3, "{scale}");
    }

    #[test]
    fn being_right_every_time_is_no_proof_of_certainty() {
        let sure = ndarray::array![[-0.1, -2.35], [-2.35, -0.1], [-0.1, -2.35], [-2.35, -0.1]];
        let [weight] = fit([sure.view()], &[0, 1, 0, 1], [1.0]).weights;
        let confidence = 1.0 / (1.0 + (-2.25 * weight).exp());
        assert!((confidence - (1.0 - 1.0 / 12.0)).abs() < 1e-3, "{confidence}");
    }

    #[test]
    fn a_head_that_is_always_wrong_gets_no_weight() {
        let wrong = ndarray::array![[-2.35, -0.1], [-0.1, -2.35]];
        assert_eq!(fit([wrong.view()], &[0, 1], [1.0]).weights, [0.0]);
    }

    #[test]
    fn equations_are_solved() {
        let [x, y] = solve([[0.0, 2.0], [4.0, 1.0]], [6.0, 11.0]).unwrap();
        assert_eq!((x, y), (2.0, 3.0));
        assert_eq!(solve([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0]), None);
    }
}
