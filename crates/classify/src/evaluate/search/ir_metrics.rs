//! Retrieval metrics: nDCG and recall of a ranked list.

use std::collections::HashMap;

use serde::Serialize;

/// Metrics of one query, or their means over queries.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct IrMetrics {
    /// Normalized discounted cumulative gain: 1 if the best answers are ranked first, in order.
    pub ndcg: f64,
    /// Share of the relevant passages that are in the list.
    pub recall: f64,
}

/// Metrics of one list, best first. Only the first `top` passages count.
pub fn score_ranking(ranked: &[usize], relevant: &HashMap<usize, u32>, top: usize) -> IrMetrics {
    let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let grade = |passage: &usize| relevant.get(passage).copied().unwrap_or(0);
    let gain: f64 = ranked.iter().take(top).enumerate().map(|(rank, at)| f64::from(grade(at)) * discount(rank)).sum();
    let mut ideal: Vec<u32> = relevant.values().copied().collect();
    ideal.sort_unstable_by(|one, other| other.cmp(one));
    let best: f64 = ideal.iter().take(top).enumerate().map(|(rank, grade)| f64::from(*grade) * discount(rank)).sum();
    let there = ranked.iter().take(top).filter(|passage| grade(passage) > 0).count();
    IrMetrics {
        ndcg: if best > 0.0 { gain / best } else { 0.0 },
        recall: if relevant.is_empty() { 0.0 } else { there as f64 / relevant.len() as f64 },
    }
}

/// Mean over several queries; `None` if there are none.
pub fn mean(all: &[IrMetrics]) -> Option<IrMetrics> {
    let count = all.len() as f64;
    let sum = |figure: fn(&IrMetrics) -> f64| all.iter().map(figure).sum::<f64>();
    (!all.is_empty())
        .then(|| IrMetrics { ndcg: sum(|found| found.ndcg) / count, recall: sum(|found| found.recall) / count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_list_has_one_and_an_empty_list_has_nothing() {
        let relevant = HashMap::from([(7, 2), (3, 1)]);
        assert_eq!(score_ranking(&[7, 3, 1], &relevant, 10), IrMetrics { ndcg: 1.0, recall: 1.0 });
        assert_eq!(score_ranking(&[], &relevant, 10), IrMetrics { ndcg: 0.0, recall: 0.0 });
        assert_eq!(score_ranking(&[1], &HashMap::new(), 10), IrMetrics { ndcg: 0.0, recall: 0.0 });
    }

    #[test]
    fn later_places_and_lower_grades_gain_less() {
        let relevant = HashMap::from([(7, 1)]);
        let second = score_ranking(&[1, 7], &relevant, 10).ndcg;
        assert!((second - 1.0 / 3_f64.log2()).abs() < 1e-9, "{second}");
        let graded = HashMap::from([(7, 2), (3, 1)]);
        assert!(score_ranking(&[3, 7], &graded, 10).ndcg < 1.0);
    }

    #[test]
    fn what_stands_below_the_cut_does_not_count() {
        let relevant = HashMap::from([(7, 1), (8, 1)]);
        assert_eq!(score_ranking(&[1, 7, 8], &relevant, 2).recall, 0.5);
        assert_eq!(mean(&[]), None);
        assert_eq!(
            mean(&[IrMetrics { ndcg: 1.0, recall: 1.0 }, IrMetrics::default()]),
            Some(IrMetrics { ndcg: 0.5, recall: 0.5 })
        );
    }
}
