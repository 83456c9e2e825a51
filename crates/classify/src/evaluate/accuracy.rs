//! Accuracy, per-category precision, recall and F1, and the most frequent confusions.
//!
//! Only in-scope texts count. An out-of-scope text has no correct category, so predicting one is not an error of that
//! category; [`Scope`](super::OutOfScopeMetrics) measures out-of-scope detection.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{EvaluatedText, in_scope, share};

/// Precision, recall and F1 of one category.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CategoryMetrics {
    pub name: String,
    /// Number of texts labelled with it.
    pub support: usize,
    /// Number of texts predicted as it.
    pub predicted: usize,
    /// Share of the predicted texts that are correct.
    pub precision: Option<f64>,
    /// Share of the labelled texts that were predicted correctly.
    pub recall: Option<f64>,
    /// Harmonic mean of precision and recall; 0 if either is undefined.
    pub f1: f64,
}

/// A pair of true and predicted category, and how often it occurred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confusion {
    pub truth: String,
    pub predicted: String,
    pub count: usize,
}

/// Confidence from which a caller would act without confirmation.
pub(super) const CONFIDENCE_THRESHOLD: f32 = 0.6;

const MAX_CONFUSIONS: usize = 20;

pub(super) fn accuracy(judged: &[EvaluatedText]) -> Option<f64> {
    share_in_scope(judged, EvaluatedText::is_correct)
}

pub(super) fn confident_accuracy(judged: &[EvaluatedText]) -> Option<f64> {
    share_in_scope(judged, |text| text.is_correct() && text.confidence >= CONFIDENCE_THRESHOLD)
}

pub(super) fn categories(judged: &[EvaluatedText], names: &[String]) -> Vec<CategoryMetrics> {
    #[derive(Default)]
    struct Count {
        support: usize,
        predicted: usize,
        right: usize,
    }
    let mut counts: BTreeMap<usize, Count> = BTreeMap::new();
    for (truth, text) in in_scope(judged) {
        counts.entry(truth).or_default().support += 1;
        let given = counts.entry(text.class).or_default();
        given.predicted += 1;
        given.right += usize::from(text.is_correct());
    }
    let category = |(class, count): (usize, Count)| CategoryMetrics {
        name: name(class, names),
        support: count.support,
        predicted: count.predicted,
        precision: share(count.right, count.predicted),
        recall: share(count.right, count.support),
        f1: 2.0 * count.right as f64 / (count.support + count.predicted) as f64,
    };
    counts.into_iter().map(category).collect()
}

pub(super) fn macro_f1(categories: &[CategoryMetrics]) -> Option<f64> {
    let sum: f64 = categories.iter().map(|category| category.f1).sum();
    (!categories.is_empty()).then(|| sum / categories.len() as f64)
}

/// Ties are in the classifier's order, so that two runs can be compared line by line.
pub(super) fn confusions(judged: &[EvaluatedText], names: &[String]) -> Vec<Confusion> {
    let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (truth, text) in in_scope(judged).filter(|(_, text)| !text.is_correct()) {
        *counts.entry((truth, text.class)).or_default() += 1;
    }
    let mut pairs: Vec<_> = counts.into_iter().collect();
    pairs.sort_by_key(|(pair, count)| (Reverse(*count), *pair));
    pairs.truncate(MAX_CONFUSIONS);
    let confusion =
        |((truth, predicted), count)| Confusion { truth: name(truth, names), predicted: name(predicted, names), count };
    pairs.into_iter().map(confusion).collect()
}

fn share_in_scope(judged: &[EvaluatedText], is: impl Fn(&EvaluatedText) -> bool) -> Option<f64> {
    share(in_scope(judged).filter(|(_, text)| is(text)).count(), in_scope(judged).count())
}

fn name(class: usize, names: &[String]) -> String {
    names.get(class).cloned().unwrap_or_else(|| format!("#{class}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::tests::{known, names};

    #[test]
    fn precision_and_recall_look_from_both_sides() {
        // `a`: two correct, one predicted as `b`. `b`: one correct. `c` is predicted once and is the label of no text.
        // `d` does not occur.
        let judged = [known(0, 0, 0.9), known(0, 0, 0.9), known(0, 1, 0.9), known(1, 1, 0.9), known(1, 2, 0.9)];
        let found = categories(&judged, &names(&["a", "b", "c", "d"]));
        let category = |name: &str, support, predicted, precision, recall, f1| CategoryMetrics {
            name: name.to_owned(),
            support,
            predicted,
            precision,
            recall,
            f1,
        };
        let expected = [
            category("a", 3, 2, Some(1.0), Some(2.0 / 3.0), 0.8),
            category("b", 2, 2, Some(0.5), Some(0.5), 0.5),
            category("c", 0, 1, Some(0.0), None, 0.0),
        ];
        assert_eq!(found, expected);
        assert_eq!(macro_f1(&found), Some((0.8 + 0.5) / 3.0));
        assert_eq!(accuracy(&judged), Some(0.6));
    }

    #[test]
    fn a_category_never_given_has_no_precision_and_an_f1_of_zero() {
        let found = categories(&[known(0, 1, 0.9)], &names(&["a", "b"]));
        assert_eq!((found[0].precision, found[0].recall, found[0].f1), (None, Some(0.0), 0.0));
    }

    #[test]
    fn sure_begins_at_exactly_six_tenths() {
        let judged = [known(0, 0, 0.6), known(0, 0, 0.59), known(0, 1, 0.9), known(1, 1, 1.0)];
        assert_eq!(confident_accuracy(&judged), Some(0.5));
    }

    #[test]
    fn a_text_out_of_scope_is_no_mistake_of_the_category_it_is_given() {
        let stranger = EvaluatedText { truth: None, ..known(0, 0, 0.9) };
        let found = categories(&[known(0, 0, 0.9), stranger.clone()], &names(&["a"]));
        assert_eq!((found[0].predicted, found[0].precision), (1, Some(1.0)));
        assert_eq!(confusions(&[stranger], &names(&["a"])), []);
    }

    #[test]
    fn confusions_come_most_frequent_first_and_then_in_the_order_of_categories() {
        let judged = [known(2, 0, 0.5), known(1, 0, 0.5), known(0, 2, 0.5), known(2, 0, 0.5), known(1, 1, 0.5)];
        let found = confusions(&judged, &names(&["a", "b", "c"]));
        let found: Vec<_> = found.iter().map(|pair| (&*pair.truth, &*pair.predicted, pair.count)).collect();
        assert_eq!(found, [("c", "a", 2), ("a", "c", 1), ("b", "a", 1)]);
    }

    #[test]
    fn no_more_than_twenty_confusions_are_listed() {
        let judged: Vec<EvaluatedText> = (0..30).map(|truth| known(truth, 99, 0.5)).collect();
        let found = confusions(&judged, &[]);
        assert_eq!(found.len(), 20);
        assert_eq!((&*found[19].truth, &*found[19].predicted), ("#19", "#99"));
    }
}
