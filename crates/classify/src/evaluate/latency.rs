//! Classification latency percentiles.

use serde::Serialize;

use super::EvaluatedText;

/// Percentiles in microseconds. Each is a measured value, without interpolation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

impl Latency {
    /// Over in-scope and out-of-scope texts. Non-finite times mean "not measured" and are ignored.
    pub(super) fn of(judged: &[EvaluatedText]) -> Option<Latency> {
        let mut micros: Vec<f64> = judged.iter().map(|text| text.micros).filter(|time| time.is_finite()).collect();
        micros.sort_unstable_by(f64::total_cmp);
        let max = *micros.last()?;
        // Nearest-rank percentile: the smallest time not exceeded by `percent` % of the texts.
        let percentile = |percent: usize| micros[(micros.len() * percent).div_ceil(100) - 1];
        Some(Latency { p50: percentile(50), p90: percentile(90), p99: percentile(99), max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::tests::known;

    fn latency(micros: impl IntoIterator<Item = f64>) -> Option<Latency> {
        let judged = micros.into_iter().map(|micros| EvaluatedText { micros, ..known(0, 0, 0.9) });
        Latency::of(&judged.collect::<Vec<_>>())
    }

    #[test]
    fn a_percentile_is_the_time_that_so_many_texts_did_not_exceed() {
        let hundred = latency((1..=100).rev().map(f64::from));
        assert_eq!(hundred, Some(Latency { p50: 50.0, p90: 90.0, p99: 99.0, max: 100.0 }));
        let three = latency([30.0, 10.0, 20.0]);
        assert_eq!(three, Some(Latency { p50: 20.0, p90: 30.0, p99: 30.0, max: 30.0 }));
    }

    #[test]
    fn one_text_is_every_percentile() {
        assert_eq!(latency([7.0]), Some(Latency { p50: 7.0, p90: 7.0, p99: 7.0, max: 7.0 }));
    }

    #[test]
    fn without_times_there_is_no_latency() {
        assert_eq!(latency([]), None);
        assert_eq!(latency([f64::NAN, f64::INFINITY]), None);
    }
}
