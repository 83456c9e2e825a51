//! Activation and normalization functions, written for auto-vectorization: no branches, and sums in sixteen lanes.

const LANES: usize = 16;
/// Adding this to a small number leaves its integer part in the low bits, rounded to even.
const TO_INTEGER: f32 = 12_582_912.0;

/// e^x with a relative error of 2e-7.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = x.mul_add(std::f32::consts::LOG2_E, TO_INTEGER);
    let whole = shifted - TO_INTEGER;
    // ln 2 in two parts: the first has few enough bits that the product is exact.
    let rest = whole.mul_add(-0.693_359_4, x);
    let rest = whole.mul_add(2.121_944_4e-4, rest);
    let power = 1.0 / 720.0_f32;
    let power = power.mul_add(rest, 1.0 / 120.0);
    let power = power.mul_add(rest, 1.0 / 24.0);
    let power = power.mul_add(rest, 1.0 / 6.0);
    let power = power.mul_add(rest, 0.5);
    let power = power.mul_add(rest, 1.0);
    let power = power.mul_add(rest, 1.0);
    let exponent = shifted.to_bits().wrapping_sub(TO_INTEGER.to_bits()).wrapping_add(127) << 23;
    power * f32::from_bits(exponent)
}

/// GELU. The error function is formula 7.1.26 of Abramowitz and Stegun, with an error of 1.5e-7.
#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / z.mul_add(0.327_591_1, 1.0);
    let tail = 1.061_405_4_f32;
    let tail = tail.mul_add(t, -1.453_152);
    let tail = tail.mul_add(t, 1.421_413_7);
    let tail = tail.mul_add(t, -0.284_496_74);
    let tail = tail.mul_add(t, 0.254_829_6);
    let erf = (-tail * t).mul_add(exp(-z * z), 1.0);
    let half = 0.5 * x;
    half.mul_add(erf.copysign(x), half)
}

/// Rounds a number of at most a few hundred to the nearest integer, ties to even.
#[inline(always)]
pub(super) fn to_integer(x: f32) -> i32 {
    (x + TO_INTEGER).to_bits().wrapping_sub(TO_INTEGER.to_bits()) as i32
}

#[inline(always)]
pub(super) fn sum(numbers: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    for chunk in numbers.as_chunks::<LANES>().0 {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane += number;
        }
    }
    lanes.iter().sum()
}

#[inline(always)]
pub(super) fn largest(numbers: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [f32::MIN; LANES];
    for chunk in numbers.as_chunks::<LANES>().0 {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            let number = of(*number);
            *lane = if number > *lane { number } else { *lane };
        }
    }
    lanes.into_iter().fold(f32::MIN, f32::max)
}

#[inline(always)]
pub(super) fn layer_norm(row: &mut [f32], weight: &[f32], bias: &[f32]) {
    let mean = sum(row) / row.len() as f32;
    let mut lanes = [0.0; LANES];
    for chunk in row.as_chunks::<LANES>().0 {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            let off = number - mean;
            *lane = off.mul_add(off, *lane);
        }
    }
    let deviation = (lanes.iter().sum::<f32>() / row.len() as f32 + 1e-12).sqrt();
    for ((number, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
        *number = ((*number - mean) / deviation).mul_add(*weight, *bias);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_right_to_the_last_bits() {
        for step in -8700..=8800 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 4e-7, "{x}");
        }
        assert!(exp(-1e30) < 1e-37 && exp(f32::MIN) < 1e-37);
    }

    #[test]
    fn gelu_is_right_to_the_last_bits() {
        // Taylor series of erf, in f64.
        let erf = |x: f64| {
            let (mut term, mut sum) = (x, x);
            for n in 1..200 {
                term *= -x * x / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            sum * std::f64::consts::FRAC_2_SQRT_PI
        };
        for step in -450..=450 {
            let x = step as f32 / 100.0;
            let exact = 0.5 * f64::from(x) * (1.0 + erf(f64::from(x) / std::f64::consts::SQRT_2));
            assert!((f64::from(gelu(x)) - exact).abs() < 1e-6, "{x}: {} is not {exact}", gelu(x));
        }
        assert_eq!((gelu(0.0), gelu(50.0), gelu(-50.0).abs()), (0.0, 50.0, 0.0));
    }

    #[test]
    fn numbers_are_rounded_to_even() {
        for (x, rounded) in [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (126.9, 127), (-127.2, -127)] {
            assert_eq!(to_integer(x), rounded, "{x}");
        }
    }

    #[test]
    fn a_normed_row_has_mean_zero_and_deviation_one() {
        let mut row: Vec<f32> = (0..64).map(|index| (index * index % 17) as f32).collect();
        let (ones, zeros) = ([1.0; 64], [0.0; 64]);
        layer_norm(&mut row, &ones, &zeros);
        assert!(sum(&row).abs() < 1e-4);
        assert!((row.iter().map(|number| number * number).sum::<f32>() / 64.0 - 1.0).abs() < 1e-4);
        assert_eq!(largest(&row, |number| number), row.iter().copied().fold(f32::MIN, f32::max));
    }
}
