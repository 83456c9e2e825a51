//! Whether texts that belong to no category are found, and what finding them costs.

use serde::Serialize;

use super::{Judged, in_scope, share};

/// How well texts out of scope are told from those in scope.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scope {
    /// The probability that a text out of scope looks stranger than one in scope; a tie is half a win.
    pub area_under_roc: f64,
    /// What is found where only few texts in scope may be refused.
    pub at_rejection: Vec<AtRejection>,
    /// What is found with the limit that an operator would set.
    pub at_out_of_scope: AtOutOfScope,
}

/// Refusing texts stranger than `threshold`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtRejection {
    /// The share of texts in scope that may be refused.
    pub allowed: f64,
    /// The smallest strangeness that refuses no more than that. A text exactly as strange is not refused.
    pub threshold: f64,
    /// The share of texts in scope that are refused: less than allowed where texts are equally strange.
    pub refused: f64,
    /// The share of texts out of scope that are refused, as they should be.
    pub found: f64,
}

/// Refusing texts whose `out_of_scope` is `threshold` or more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtOutOfScope {
    pub threshold: f64,
    /// The share of texts in scope that are refused.
    pub refused: f64,
    /// The share of texts out of scope that are refused, as they should be.
    pub found: f64,
}

const ALLOWED_PERCENT: [usize; 5] = [1, 2, 5, 10, 20];
const REFUSED_FROM: f64 = 0.95;

impl Scope {
    /// Nothing can be told without texts of both kinds.
    pub(super) fn of(judged: &[Judged]) -> Option<Scope> {
        let known: Vec<&Judged> = in_scope(judged).map(|(_, text)| text).collect();
        let strange: Vec<&Judged> = judged.iter().filter(|text| text.truth.is_none()).collect();
        let at_out_of_scope =
            AtOutOfScope { threshold: REFUSED_FROM, refused: share_refused(&known)?, found: share_refused(&strange)? };
        let (known, strange) = (sorted(&known), sorted(&strange));
        Some(Scope {
            area_under_roc: area_under_roc(&known, &strange),
            at_rejection: ALLOWED_PERCENT.map(|percent| at_rejection(&known, &strange, percent)).to_vec(),
            at_out_of_scope,
        })
    }
}

fn share_refused(texts: &[&Judged]) -> Option<f64> {
    // Compared as `f32`: widened, an `out_of_scope` of 0.95 would be a little less than the threshold.
    let refused = texts.iter().filter(|text| text.out_of_scope >= REFUSED_FROM as f32).count();
    share(refused, texts.len())
}

/// The strangeness of each text. One that is not a number is no reason to trust the text.
fn sorted(texts: &[&Judged]) -> Vec<f32> {
    let strangeness = texts.iter().map(|text| text.strangeness);
    let mut scores: Vec<f32> = strangeness.map(|score| if score.is_nan() { f32::INFINITY } else { score }).collect();
    scores.sort_unstable_by(f32::total_cmp);
    scores
}

/// Both are sorted and not empty.
fn area_under_roc(known: &[f32], strange: &[f32]) -> f64 {
    let wins = strange.iter().map(|score| {
        let below = known.partition_point(|other| other < score);
        let up_to = known.partition_point(|other| other <= score);
        (below + up_to) as f64 / 2.0
    });
    wins.sum::<f64>() / (known.len() as f64 * strange.len() as f64)
}

/// Both are sorted and not empty.
fn at_rejection(known: &[f32], strange: &[f32], percent: usize) -> AtRejection {
    // Counted in whole texts and percents, because a hundredth is not exact in binary. Any smaller threshold would
    // refuse this text and the `may_be_refused` ones after it, which is one too many.
    let may_be_refused = known.len() * percent / 100;
    let threshold = known[known.len() - 1 - may_be_refused];
    let share_over = |scores: &[f32]| {
        let over = scores.len() - scores.partition_point(|score| *score <= threshold);
        over as f64 / scores.len() as f64
    };
    AtRejection {
        allowed: percent as f64 / 100.0,
        threshold: f64::from(threshold),
        refused: share_over(known),
        found: share_over(strange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::tests::known;

    fn text(truth: Option<usize>, strangeness: f32) -> Judged {
        Judged { truth, strangeness, ..known(0, 0, 0.9) }
    }

    fn scope(known: &[f32], strange: &[f32]) -> Scope {
        let known = known.iter().map(|score| text(Some(0), *score));
        let strange = strange.iter().map(|score| text(None, *score));
        Scope::of(&known.chain(strange).collect::<Vec<_>>()).unwrap()
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
        let found: Vec<_> = scope.at_rejection.iter().map(|at| (at.threshold, at.refused, at.found)).collect();
        let none = (19.0, 0.0, 0.25);
        assert_eq!(found, [none, none, (18.0, 0.05, 0.5), (17.0, 0.1, 0.75), (15.0, 0.2, 1.0)]);
    }

    #[test]
    fn equally_strange_texts_are_all_refused_or_none() {
        // One in five may be refused, but the two strangest are alike.
        let scope = scope(&[0.0, 1.0, 2.0, 7.0, 7.0], &[7.0, 8.0]);
        let at = &scope.at_rejection[4];
        assert_eq!((at.allowed, at.threshold, at.refused, at.found), (0.2, 7.0, 0.0, 0.5));
    }

    #[test]
    fn refusing_begins_at_exactly_nineteen_in_twenty() {
        let text = |truth, out_of_scope| Judged { truth, out_of_scope, ..known(0, 0, 0.9) };
        let judged = [
            text(Some(0), 0.95),
            text(Some(0), 0.94),
            text(Some(0), 0.1),
            text(Some(0), 0.2),
            text(None, 0.96),
            text(None, 0.949),
        ];
        let at = Scope::of(&judged).unwrap().at_out_of_scope;
        assert_eq!((at.threshold, at.refused, at.found), (0.95, 0.25, 0.5));
    }

    #[test]
    fn one_kind_of_texts_tells_nothing() {
        assert_eq!(Scope::of(&[]), None);
        assert_eq!(Scope::of(&[text(Some(0), 1.0)]), None);
        assert_eq!(Scope::of(&[text(None, 1.0)]), None);
    }

    #[test]
    fn a_strangeness_that_is_no_number_is_the_strangest() {
        assert_eq!(scope(&[5.0], &[f32::NAN]).area_under_roc, 1.0);
    }
}
