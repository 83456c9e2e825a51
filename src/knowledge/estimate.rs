//! How long a file may take, judged by its format, its size and how long others took.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use corbie_extract::Format;

use crate::locked::locked;

/// What was learned in this process.
#[derive(Debug, Default)]
pub(super) struct Estimates {
    /// How many times longer than the first guess files of a format take.
    factors: Mutex<HashMap<Format, f64>>,
}

/// How much the newest file counts.
const NEWEST: f64 = 0.3;

impl Estimates {
    pub(super) fn guess(&self, format: Format, bytes: u64) -> Duration {
        let factor = locked(&self.factors).get(&format).copied().unwrap_or(1.0);
        first_guess(format, bytes).mul_f64(factor)
    }

    pub(super) fn learn(&self, format: Format, bytes: u64, took: Duration) {
        let factor = took.as_secs_f64() / first_guess(format, bytes).as_secs_f64();
        let mut factors = locked(&self.factors);
        let known = factors.entry(format).or_insert(factor);
        *known = (*known * (1.0 - NEWEST) + factor * NEWEST).clamp(0.01, 100.0);
    }
}

/// Vectors take most of the time, so what counts is how much text a format has in its bytes.
fn first_guess(format: Format, bytes: u64) -> Duration {
    let bytes_a_second = match format {
        Format::Pdf | Format::Pptx => 200_000,
        Format::Jpg | Format::Png => 500_000,
        Format::Docx | Format::Xlsx => 50_000,
        Format::Html | Format::Svg => 100_000,
        Format::Markdown | Format::Text | Format::Csv => 50_000,
    };
    Duration::from_millis(200) + Duration::from_secs_f64(bytes as f64 / f64::from(bytes_a_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_follow_what_files_really_take() {
        let estimates = Estimates::default();
        let first = estimates.guess(Format::Text, 1_000_000);
        for _ in 0..10 {
            estimates.learn(Format::Text, 1_000_000, first * 3);
        }
        let later = estimates.guess(Format::Text, 2_000_000);
        assert!(later > first * 5 && later < first * 7, "{first:?} {later:?}");
        assert_eq!(estimates.guess(Format::Csv, 1_000_000), first);
    }
}
