//! Logistic regression by iteratively reweighted least squares, for a few inputs.

/// A row: inputs, label and weight.
pub(super) type Row<const N: usize> = ([f64; N], bool, f64);

const ITERATIONS: usize = 50;
/// Keeps the coefficient of a constant input at 0.
const RIDGE: f64 = 1e-3;

/// The coefficients with the highest likelihood.
pub(super) fn fit<const N: usize>(rows: &[Row<N>]) -> [f64; N] {
    let mut coefficients = [0.0; N];
    for _ in 0..ITERATIONS {
        let mut hessian = [[0.0; N]; N];
        let mut gradient = [0.0; N];
        for at in 0..N {
            (hessian[at][at], gradient[at]) = (RIDGE, -RIDGE * coefficients[at]);
        }
        for (inputs, label, weight) in rows {
            let expected = probability(&coefficients, inputs);
            let curvature = weight * expected * (1.0 - expected);
            let error = weight * (f64::from(u8::from(*label)) - expected);
            for row in 0..N {
                gradient[row] += error * inputs[row];
                for column in 0..N {
                    hessian[row][column] += curvature * inputs[row] * inputs[column];
                }
            }
        }
        let step = solve(hessian, gradient);
        coefficients.iter_mut().zip(step).for_each(|(coefficient, step)| *coefficient += step);
        if step.iter().all(|step| step.abs() < 1e-9) {
            break;
        }
    }
    coefficients
}

pub(super) fn probability<const N: usize>(coefficients: &[f64; N], inputs: &[f64; N]) -> f64 {
    let odds: f64 = coefficients.iter().zip(inputs).map(|(coefficient, input)| coefficient * input).sum();
    1.0 / (1.0 + (-odds).exp())
}

/// Gaussian elimination with pivoting.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> [f64; N] {
    for column in 0..N {
        let pivot = (column..N).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()));
        let pivot = pivot.unwrap_or(column);
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in 0..N {
            let factor = if row == column { 0.0 } else { matrix[row][column] / matrix[column][column] };
            let above = matrix[column];
            matrix[row].iter_mut().zip(above).for_each(|(here, above)| *here -= factor * above);
            right[row] -= factor * right[column];
        }
    }
    std::array::from_fn(|at| right[at] / matrix[at][at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coefficients_that_made_the_data_are_found() {
        let truth = [-1.0, 2.0, 0.5];
        let mut rows = Vec::new();
        for one in 0..20 {
            for other in 0..20 {
                let inputs = [1.0, f64::from(one) / 10.0, f64::from(other) / 10.0 - 1.0];
                let share = probability(&truth, &inputs);
                rows.extend([(inputs, true, share), (inputs, false, 1.0 - share)]);
            }
        }
        let found = fit(&rows);
        assert!(found.iter().zip(truth).all(|(found, truth)| (found - truth).abs() < 0.02), "{found:?}");
    }

    #[test]
    fn an_input_that_is_always_zero_has_no_weight() {
        let rows = [([1.0, 0.0], true, 3.0), ([1.0, 0.0], false, 1.0)];
        let [bias, unused] = fit(&rows);
        assert!((bias - 3.0_f64.ln()).abs() < 0.01 && unused == 0.0, "{bias} {unused}");
    }
}
