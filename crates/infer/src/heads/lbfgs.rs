//! L-BFGS minimizer with a backtracking line search.
//!
//! For convex functions of many variables with a cheap gradient. The parameters were tuned for the dense head, which is
//! the only user.

use std::collections::VecDeque;

use ndarray::Array1;

const MAX_ITERATIONS: usize = 60;
/// Number of steps in the curvature history.
const HISTORY_LEN: usize = 10;
/// Stops when the gradient norm has fallen to this fraction of the initial one.
const TOLERANCE: f32 = 1e-3;
/// Armijo constant: the fraction of the predicted decrease that a step must achieve.
const ARMIJO_C1: f64 = 1e-4;
/// Shorter steps are lost in rounding.
const MIN_STEP: f32 = 1e-4;
/// Pairs with less curvature only add noise.
const MIN_CURVATURE: f32 = 1e-10;

/// A step and the change of the gradient over it.
struct CurvaturePair {
    step: Array1<f32>,
    gradient_change: Array1<f32>,
    curvature: f32,
}

/// Minimizes from `start`. `evaluate` returns the function value at a point and writes the gradient; the result is
/// never higher than the start.
pub(super) fn minimize(
    start: Array1<f32>,
    evaluate: &mut dyn FnMut(&Array1<f32>, &mut Array1<f32>) -> f64,
) -> Array1<f32> {
    let mut point = start;
    let mut slope = Array1::zeros(point.len());
    let mut value = evaluate(&point, &mut slope);
    let first_steepness = gradient_norm(&slope);
    let mut next = point.clone();
    let mut next_slope = slope.clone();
    let mut steps = VecDeque::with_capacity(HISTORY_LEN + 1);
    for _ in 0..MAX_ITERATIONS {
        if gradient_norm(&slope) <= TOLERANCE * first_steepness {
            break;
        }
        let direction = direction(&slope, &steps);
        let promised = f64::from(slope.dot(&direction));
        let mut length = 1.0;
        let next_value = loop {
            next.assign(&point);
            next.scaled_add(length, &direction);
            let next_value = evaluate(&next, &mut next_slope);
            if next_value <= value + ARMIJO_C1 * f64::from(length) * promised && next_value <= value {
                break next_value;
            }
            length *= 0.5;
            // No step decreases the value: converged to f32 precision.
            if length < MIN_STEP {
                return point;
            }
        };
        let moved = &next - &point;
        let turned = &next_slope - &slope;
        let curvature = moved.dot(&turned);
        if curvature > MIN_CURVATURE {
            steps.push_back(CurvaturePair { step: moved, gradient_change: turned, curvature });
            if steps.len() > HISTORY_LEN {
                steps.pop_front();
            }
        }
        value = next_value;
        std::mem::swap(&mut point, &mut next);
        std::mem::swap(&mut slope, &mut next_slope);
    }
    point
}

/// The search direction: negative gradient, corrected by the curvature of the last steps (two-loop recursion).
fn direction(slope: &Array1<f32>, steps: &VecDeque<CurvaturePair>) -> Array1<f32> {
    let mut direction = -slope;
    let Some(last) = steps.back() else {
        return direction / gradient_norm(slope).max(f32::MIN_POSITIVE);
    };
    let mut shares = Vec::with_capacity(steps.len());
    for step in steps.iter().rev() {
        let share = step.step.dot(&direction) / step.curvature;
        direction.scaled_add(-share, &step.gradient_change);
        shares.push(share);
    }
    direction *= last.curvature / last.gradient_change.dot(&last.gradient_change);
    for (step, share) in steps.iter().zip(shares.iter().rev()) {
        let back = step.gradient_change.dot(&direction) / step.curvature;
        direction.scaled_add(share - back, &step.step);
    }
    direction
}

fn gradient_norm(slope: &Array1<f32>) -> f32 {
    slope.dot(slope).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn the_bottom_of_a_stretched_bowl_is_found() {
        // ½ Σ cᵢ(xᵢ - mᵢ)², with a condition number of 100.
        let steep = array![1.0f32, 10.0, 100.0];
        let bottom = array![3.0f32, -2.0, 0.5];
        let found = minimize(Array1::zeros(3), &mut |point, slope| {
            let off = point - &bottom;
            slope.assign(&(&steep * &off));
            f64::from(0.5 * off.dot(slope))
        });
        for (found, bottom) in found.iter().zip(&bottom) {
            assert!((found - bottom).abs() < 0.02, "{found} is not {bottom}");
        }
    }

    #[test]
    fn a_start_at_the_bottom_is_kept() {
        let found = minimize(Array1::zeros(2), &mut |point, slope| {
            slope.assign(point);
            f64::from(point.dot(point)) / 2.0
        });
        assert_eq!(found, array![0.0, 0.0]);
    }

    #[test]
    fn a_function_without_values_ends_at_its_start() {
        let found = minimize(array![1.0], &mut |_, slope| {
            slope.fill(f32::NAN);
            f64::NAN
        });
        assert_eq!(found, array![1.0]);
    }
}
