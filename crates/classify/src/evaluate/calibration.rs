//! Calibration of confidence: of texts classified with confidence 0.8, 80 % should be correct.

use serde::Serialize;

use super::{EvaluatedText, in_scope, share};

/// Calibration over in-scope texts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// Expected calibration error: the mean gap between confidence and accuracy of a bin, weighted by its number of
    /// texts.
    pub error: Option<f64>,
    /// Fifteen bins of equal width from 0 to 1, including empty ones.
    pub bins: Vec<Bin>,
}

/// Texts with confidence from `lower` (inclusive) to `upper` (exclusive); the last bin includes 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bin {
    pub lower: f64,
    pub upper: f64,
    pub count: usize,
    /// Mean confidence of its texts.
    pub confidence: Option<f64>,
    /// Share of its texts that are correct.
    pub accuracy: Option<f64>,
}

/// The number used in papers on calibration, so that figures are comparable.
const BINS: usize = 15;

impl Calibration {
    pub(super) fn of(judged: &[EvaluatedText]) -> Calibration {
        Calibration::of_pairs(in_scope(judged).map(|(_, text)| (text.confidence, text.is_correct())))
    }

    /// Calibration of any predictions, each given as its confidence and whether it was correct.
    pub fn of_pairs(answers: impl Iterator<Item = (f32, bool)>) -> Calibration {
        #[derive(Clone, Copy, Default)]
        struct Sum {
            count: usize,
            right: usize,
            confidence: f64,
        }
        let mut sums = [Sum::default(); BINS];
        for (confidence, is_right) in answers {
            let confidence = probability(confidence);
            let sum = &mut sums[((confidence * BINS as f64) as usize).min(BINS - 1)];
            sum.count += 1;
            sum.right += usize::from(is_right);
            sum.confidence += confidence;
        }
        let texts: usize = sums.iter().map(|sum| sum.count).sum();
        let gaps: f64 = sums.iter().map(|sum| (sum.right as f64 - sum.confidence).abs()).sum();
        let bin = |(index, sum): (usize, &Sum)| Bin {
            lower: index as f64 / BINS as f64,
            upper: (index + 1) as f64 / BINS as f64,
            count: sum.count,
            confidence: (sum.count > 0).then(|| sum.confidence / sum.count as f64),
            accuracy: share(sum.right, sum.count),
        };
        Calibration {
            error: (texts > 0).then(|| gaps / texts as f64),
            bins: sums.iter().enumerate().map(bin).collect(),
        }
    }
}

/// Clamps to 0..=1 and maps NaN to 0: a broken classifier is reported as badly calibrated and does not break the
/// report.
fn probability(confidence: f32) -> f64 {
    if confidence.is_nan() { 0.0 } else { f64::from(confidence).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::tests::known;

    #[test]
    fn the_error_is_the_gap_of_each_bin_weighted_by_its_texts() {
        // Three texts at 0.75 of which two are correct, one at 0.5 that is wrong:
        // 3/4 · |2/3 − 0.75| + 1/4 · |0 − 0.5| = 0.0625 + 0.125
        let judged = [known(0, 0, 0.75), known(0, 0, 0.75), known(0, 1, 0.75), known(0, 1, 0.5)];
        let calibration = Calibration::of(&judged);
        assert_eq!(calibration.error, Some(0.1875));
        let bin = &calibration.bins[11];
        assert_eq!((bin.count, bin.confidence, bin.accuracy), (3, Some(0.75), Some(2.0 / 3.0)));
        assert_eq!((bin.lower, bin.upper), (11.0 / 15.0, 12.0 / 15.0));
    }

    #[test]
    fn gaps_of_different_bins_do_not_cancel_out() {
        let judged = [known(0, 0, 0.5), known(0, 1, 0.5 + 1.0 / 8.0)];
        assert_eq!(Calibration::of(&judged).error, Some((0.5 + 0.625) / 2.0));
    }

    #[test]
    fn a_confidence_on_an_edge_is_in_the_bin_above_and_one_in_the_last() {
        let calibration = Calibration::of(&[known(0, 0, 0.0), known(0, 0, 0.2), known(0, 0, 0.6), known(0, 0, 1.0)]);
        let filled: Vec<usize> = (0..BINS).filter(|bin| calibration.bins[*bin].count > 0).collect();
        assert_eq!(filled, [0, 3, 9, 14]);
    }

    #[test]
    fn bins_without_texts_are_there_and_say_nothing() {
        let calibration = Calibration::of(&[]);
        assert_eq!((calibration.error, calibration.bins.len()), (None, 15));
        assert!(calibration.bins.iter().all(|bin| (bin.confidence, bin.accuracy) == (None, None)));
        assert_eq!((calibration.bins[0].lower, calibration.bins[14].upper), (0.0, 1.0));
    }

    #[test]
    fn texts_out_of_scope_say_nothing_about_calibration() {
        let stranger = EvaluatedText { truth: None, ..known(0, 0, 0.9) };
        assert_eq!(Calibration::of(&[stranger]).error, None);
    }

    #[test]
    fn a_confidence_that_is_no_probability_counts_as_the_nearest_one() {
        let judged = [known(0, 1, f32::NAN), known(0, 1, -3.0), known(0, 0, 7.0)];
        let calibration = Calibration::of(&judged);
        assert_eq!(calibration.error, Some(0.0));
        assert_eq!((calibration.bins[0].count, calibration.bins[14].count), (2, 1));
    }
}
