//! Evaluation of a classifier against labelled texts.
//!
//! Pure functions: they take classified texts and return a [`EvaluationReport`], which can be saved as JSON, printed in a
//! [`report_text`] or rendered as a [`reliability_diagram`]. Reading the texts, classifying and timing happen elsewhere.

mod accuracy;
mod calibration;
mod confusion_matrix;
pub mod cross_validation;
pub mod dataset;
mod latency;
mod out_of_scope;
pub mod reliability_diagram;
pub mod report_text;
pub mod search;
pub mod suggest;
pub mod typos;

use serde::Serialize;

pub use accuracy::{CategoryMetrics, Confusion};
pub use calibration::{Bin, Calibration};
pub use confusion_matrix::ConfusionMatrix;
pub use latency::Latency;
pub use out_of_scope::{OutOfScopeMetrics, RejectionPoint, ThresholdPoint};

/// One classified text.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluatedText {
    /// The true category; `None` means out of scope.
    pub truth: Option<usize>,
    /// The predicted category. Out-of-scope texts have one too; whether they are rejected is measured separately.
    pub class: usize,
    /// Probability that the classifier assigns to that category.
    pub confidence: f32,
    /// Share of in-scope training texts with a lower out-of-scope score.
    pub out_of_scope: f32,
    /// The score behind `out_of_scope`; higher is more likely out of scope.
    pub out_of_scope_score: f32,
    /// Classification time in microseconds.
    pub micros: f64,
}

/// Quality of a classifier. Shares are between 0 and 1; values that cannot be computed from the texts are `null` in
/// JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluationReport {
    pub texts: usize,
    pub in_scope: usize,
    pub out_of_scope: usize,
    /// Share of in-scope texts that were predicted correctly.
    pub accuracy: Option<f64>,
    /// Mean F1 of `categories`, each with equal weight.
    pub macro_f1: Option<f64>,
    /// Share of in-scope texts that were predicted correctly with a confidence of 0.6 or more.
    pub confident_accuracy: Option<f64>,
    pub calibration: Calibration,
    /// The categories that are the label or the prediction of an in-scope text, in the classifier's order.
    pub categories: Vec<CategoryMetrics>,
    /// The 20 most frequent mistakes, most frequent first.
    pub confusions: Vec<Confusion>,
    /// Requires both in-scope and out-of-scope texts.
    pub scope: Option<OutOfScopeMetrics>,
    pub latency_micros: Option<Latency>,
}

impl EvaluationReport {
    /// `categories` are the class names by index; a class without a name is shown by its number.
    pub fn of(judged: &[EvaluatedText], categories: &[String]) -> EvaluationReport {
        let known = in_scope(judged).count();
        let per_category = accuracy::categories(judged, categories);
        EvaluationReport {
            texts: judged.len(),
            in_scope: known,
            out_of_scope: judged.len() - known,
            accuracy: accuracy::accuracy(judged),
            macro_f1: accuracy::macro_f1(&per_category),
            confident_accuracy: accuracy::confident_accuracy(judged),
            calibration: Calibration::of(judged),
            categories: per_category,
            confusions: accuracy::confusions(judged, categories),
            scope: OutOfScopeMetrics::of(judged),
            latency_micros: Latency::of(judged),
        }
    }
}

impl EvaluatedText {
    fn is_correct(&self) -> bool {
        self.truth == Some(self.class)
    }
}

/// The in-scope texts, each with its true category.
fn in_scope(judged: &[EvaluatedText]) -> impl Iterator<Item = (usize, &EvaluatedText)> {
    judged.iter().filter_map(|text| text.truth.map(|truth| (truth, text)))
}

/// `None` if the denominator is 0.
fn share(count: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| count as f64 / of as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn known(truth: usize, class: usize, confidence: f32) -> EvaluatedText {
        EvaluatedText { truth: Some(truth), class, confidence, out_of_scope: 0.0, out_of_scope_score: 0.0, micros: 1.0 }
    }

    pub(super) fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn nothing_judged_is_told_as_nothing_known() {
        let report = serde_json::to_value(EvaluationReport::of(&[], &[])).unwrap();
        for unknown in ["accuracy", "macro_f1", "confident_accuracy", "scope", "latency_micros"] {
            assert!(report[unknown].is_null(), "{unknown}");
        }
        assert!(report["calibration"]["error"].is_null());
        assert_eq!(report["texts"], 0);
        assert_eq!(report["categories"], serde_json::json!([]));
    }

    #[test]
    fn texts_of_both_kinds_are_counted_apart() {
        let stranger = EvaluatedText { truth: None, ..known(0, 0, 0.9) };
        let report = EvaluationReport::of(&[known(0, 0, 0.9), stranger, known(1, 0, 0.9)], &names(&["a", "b"]));
        assert_eq!((report.texts, report.in_scope, report.out_of_scope), (3, 2, 1));
        assert_eq!(report.accuracy, Some(0.5));
    }

    fn any_number() -> impl Strategy<Value = f32> {
        prop_oneof![0.0_f32..=1.0, proptest::num::f32::ANY, Just(0.6), Just(0.95)]
    }

    prop_compose! {
        fn any_text()(
            truth in proptest::option::of(0_usize..4),
            class in 0_usize..4,
            confidence in any_number(),
            out_of_scope in any_number(),
            strangeness in any_number(),
            micros in proptest::num::f64::ANY,
        ) -> EvaluatedText {
            EvaluatedText { truth, class, confidence, out_of_scope, out_of_scope_score: strangeness, micros }
        }
    }

    fn shares(report: &EvaluationReport) -> Vec<f64> {
        let mut shares: Vec<f64> = Vec::new();
        shares.extend([report.accuracy, report.macro_f1, report.confident_accuracy].iter().flatten());
        shares.extend(report.calibration.error);
        for bin in &report.calibration.bins {
            shares.extend([bin.lower, bin.upper]);
            shares.extend([bin.confidence, bin.accuracy].iter().flatten());
        }
        for category in &report.categories {
            shares.extend([Some(category.f1), category.precision, category.recall].iter().flatten());
        }
        if let Some(scope) = &report.scope {
            shares.extend([scope.area_under_roc, scope.at_threshold.false_rejections, scope.at_threshold.detected]);
            shares.extend(scope.at_rejection_rate.iter().flat_map(|at| [at.allowed, at.false_rejections, at.detected]));
        }
        shares
    }

    proptest! {
        #[test]
        fn every_share_is_a_share_whatever_was_judged(judged in proptest::collection::vec(any_text(), 0..40)) {
            let report = EvaluationReport::of(&judged, &names(&["a", "b", "c"]));
            for share in shares(&report) {
                prop_assert!((0.0..=1.0).contains(&share), "{share} in {report:?}");
            }
            for at in report.scope.iter().flat_map(|scope| &scope.at_rejection_rate) {
                prop_assert!(at.false_rejections <= at.allowed);
            }
            for text in [report_text::render(&report, "t"), reliability_diagram::svg(&report.calibration, "t")] {
                prop_assert!(!text.contains("NaN"), "{text}");
            }
        }
    }
}
