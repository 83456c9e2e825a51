//! Out-of-scope detection: ROC AUC, and recall at fixed false rejection rates.

use serde::Serialize;

use super::{EvaluatedText, in_scope, share};

/// How well out-of-scope texts are separated from in-scope ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutOfScopeMetrics {
    /// Probability that an out-of-scope text has a higher score than an in-scope one; a tie counts half.
    pub area_under_roc: f64,
    /// Recall at fixed shares of falsely rejected in-scope texts.
    pub at_rejection_rate: Vec<RejectionPoint>,
    /// Recall with the threshold that an operator would set.
    pub at_threshold: ThresholdPoint,
}

/// Rejects texts with a score over `threshold`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RejectionPoint {
    /// Share of in-scope texts that may be rejected.
    pub allowed: f64,
    /// The smallest score that rejects no more than that. A text with exactly this score is not rejected.
    pub threshold: f64,
    /// Share of in-scope texts that are rejected: less than `allowed` if scores tie.
    pub false_rejections: f64,
    /// Share of out-of-scope texts that are rejected (recall).
    pub detected: f64,
}

/// Rejects texts whose `out_of_scope` is `threshold` or more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThresholdPoint {
    pub threshold: f64,
    /// Share of in-scope texts that are rejected.
    pub false_rejections: f64,
    /// Share of out-of-scope texts that are rejected (recall).
    pub detected: f64,
}

const ALLOWED_REJECTION_PERCENT: [usize; 5] = [1, 2, 5, 10, 20];
const REJECTION_THRESHOLD: f64 = 0.95;

impl OutOfScopeMetrics {
    /// `None` unless there are both in-scope and out-of-scope texts.
    pub(super) fn of(judged: &[EvaluatedText]) -> Option<OutOfScopeMetrics> {
        let known: Vec<&EvaluatedText> = in_scope(judged).map(|(_, text)| text).collect();
        let strange: Vec<&EvaluatedText> = judged.iter().filter(|text| text.truth.is_none()).collect();
        let at_threshold = ThresholdPoint {
            threshold: REJECTION_THRESHOLD,
            false_rejections: rejection_rate(&known)?,
            detected: rejection_rate(&strange)?,
        };
        let (known, strange) = (sorted_scores(&known), sorted_scores(&strange));
        Some(OutOfScopeMetrics {
            area_under_roc: area_under_roc(&known, &strange),
            at_rejection_rate: ALLOWED_REJECTION_PERCENT
                .map(|percent| at_rejection(&known, &strange, percent))
                .to_vec(),
            at_threshold,
        })
    }
}

fn rejection_rate(texts: &[&EvaluatedText]) -> Option<f64> {
    // Compared as `f32`: widened to `f64`, an `out_of_scope` of 0.95 would be slightly below the threshold.
    let refused = texts.iter().filter(|text| text.out_of_scope >= REJECTION_THRESHOLD as f32).count();
    share(refused, texts.len())
}

/// The out-of-scope scores, sorted. NaN counts as out of scope, because it is no evidence that the text is in scope.
fn sorted_scores(texts: &[&EvaluatedText]) -> Vec<f32> {
    let strangeness = texts.iter().map(|text| text.out_of_scope_score);
    let mut scores: Vec<f32> = strangeness.map(|score| if score.is_nan() { f32::INFINITY } else { score }).collect();
    scores.sort_unstable_by(f32::total_cmp);
    scores
}

/// Both slices are sorted and not empty.
fn area_under_roc(known: &[f32], strange: &[f32]) -> f64 {
    let wins = strange.iter().map(|score| {
        let below = known.partition_point(|other| other < score);
        let up_to = known.partition_point(|other| other <= score);
        (below + up_to) as f64 / 2.0
    });
    wins.sum::<f64>() / (known.len() as f64 * strange.len() as f64)
}

/// Both slices are sorted and not empty.
fn at_rejection(known: &[f32], strange: &[f32], percent: usize) -> RejectionPoint {
    // Integer arithmetic in texts and percent, because a hundredth is not exact in binary. Any smaller threshold would
    // reject this text and the `may_be_refused` ones after it, which is one too many.
    let may_be_refused = known.len() * percent / 100;
    let threshold = known[known.len() - 1 - may_be_refused];
    let share_over = |scores: &[f32]| {
        let over = scores.len() - scores.partition_point(|score| *score <= threshold);
        over as f64 / scores.len() as f64
    };
    RejectionPoint {
        allowed: percent as f64 / 100.0,
        threshold: f64::from(threshold),
        false_rejections: share_over(known),
        detected: share_over(strange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::tests::known;

    fn text(truth: Option<usize>, strangeness: f32) -> EvaluatedText {
        EvaluatedText { truth, out_of_scope_score: strangeness, ..known(0, 0, 0.9) }
    }

    fn scope(known: &[f32], strange: &[f32]) -> OutOfScopeMetrics {
        let known = known.iter().map(|score| text(Some(0), *score));
        let strange = strange.iter().map(|score| text(None, *score));
        OutOfScopeMetrics::of(&known.chain(strange).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_area_counts_won_pairs_and_half_of_the_ties() {
        // 3 beats both; 2 beats 1 and ties with 2; 0 beats none: 2 + 1.5 + 0 of 6 pairs.
        assert_eq!(scope(&[2.0, 1.0], &[3.0, 2.0, 0.0]).area_under_roc, 3.5 / 6.0);
        assert_eq!(scope(&[1.0], &[2.0]).area_under_roc, 1.0);
        assert_eq!(scope(&[1.0], &[1.0]).area_under_roc, 0.5);
        assert_eq!(scope(&[0.0], &[-0.0]).area_under_roc, 0.5);
    }

    #[test]
    fn a_share_of_texts_in_scope_may_be_refused_and_no_more() {
        let known: Vec<f32> = (0..20).map(|score| score as f32).collect();
        let scope = scope(&known, &[15.5, 17.5, 18.5, 30.0]);
        let found: Vec<_> =
            scope.at_rejection_rate.iter().map(|at| (at.threshold, at.false_rejections, at.detected)).collect();
        let none = (19.0, 0.0, 0.25);
        assert_eq!(found, [none, none, (18.0, 0.05, 0.5), (17.0, 0.1, 0.75), (15.0, 0.2, 1.0)]);
    }

    #[test]
    fn equally_strange_texts_are_all_refused_or_none() {
        // One in five may be rejected, but the two highest scores tie.
        let scope = scope(&[0.0, 1.0, 2.0, 7.0, 7.0], &[7.0, 8.0]);
        let at = &scope.at_rejection_rate[4];
        assert_eq!((at.allowed, at.threshold, at.false_rejections, at.detected), (0.2, 7.0, 0.0, 0.5));
    }

    #[test]
    fn refusing_begins_at_exactly_nineteen_in_twenty() {
        let text = |truth, out_of_scope| EvaluatedText { truth, out_of_scope, ..known(0, 0, 0.9) };
        let judged = [
            text(Some(0), 0.95),
            text(Some(0), 0.94),
            text(Some(0), 0.1),
            text(Some(0), 0.2),
            text(None, 0.96),
            text(None, 0.949),
        ];
        let at = OutOfScopeMetrics::of(&judged).unwrap().at_threshold;
        assert_eq!((at.threshold, at.false_rejections, at.detected), (0.95, 0.25, 0.5));
    }

    #[test]
    fn one_kind_of_texts_tells_nothing() {
        assert_eq!(OutOfScopeMetrics::of(&[]), None);
        assert_eq!(OutOfScopeMetrics::of(&[text(Some(0), 1.0)]), None);
        assert_eq!(OutOfScopeMetrics::of(&[text(None, 1.0)]), None);
    }

    #[test]
    fn a_strangeness_that_is_no_number_is_the_strangest() {
        assert_eq!(scope(&[5.0], &[f32::NAN]).area_under_roc, 1.0);
    }
}
