//! Numerically stable softmax.

/// Converts scores to probabilities in place and returns log Σ exp of the scores.
pub(super) fn softmax(scores: &mut [f32]) -> f32 {
    let most = max_score(scores);
    let mut total = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        total += *score;
    }
    let scale = 1.0 / total;
    scores.iter_mut().for_each(|score| *score *= scale);
    most + total.ln()
}

/// Converts scores to log-probabilities in place.
pub(super) fn log_softmax(scores: &mut [f32]) {
    let total = log_sum_exp(scores);
    scores.iter_mut().for_each(|score| *score -= total);
}

pub(super) fn log_sum_exp(scores: &[f32]) -> f32 {
    let most = max_score(scores);
    most + scores.iter().map(|score| (score - most).exp()).sum::<f32>().ln()
}

fn max_score(scores: &[f32]) -> f32 {
    scores.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_scores_do_not_overflow() {
        let mut scores = [1000.0, 1000.0, -1000.0];
        let total = softmax(&mut scores);
        assert_eq!(scores, [0.5, 0.5, 0.0]);
        assert!((total - (1000.0 + 2f32.ln())).abs() < 1e-3);
    }

    #[test]
    fn logarithms_agree_with_probabilities() {
        let mut probabilities = [0.3, -1.2, 2.0];
        let mut logs = probabilities;
        let total = softmax(&mut probabilities);
        assert!((total - log_sum_exp(&logs)).abs() < 1e-6);
        log_softmax(&mut logs);
        for (log, probability) in logs.iter().zip(probabilities) {
            assert!((log.exp() - probability).abs() < 1e-6);
        }
    }
}
