//! Duration estimates for files by format and size, corrected by measured durations.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use corbie_extract::Format;

use super::path_policy::{PathPolicy, format_of};
use corbie_util::lock::lock;

/// Estimated duration of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Estimate {
    /// Total of all files, processed sequentially.
    pub sequential: Duration,
    /// Number of files processed concurrently.
    pub concurrency: u32,
}

/// Correction factors measured in this process.
#[derive(Debug, Default)]
pub(super) struct DurationEstimator {
    /// Ratio of the actual to the initial estimate, per format.
    factors: Mutex<HashMap<Format, f64>>,
}

/// Weight of the newest measurement in the moving average.
const SMOOTHING_FACTOR: f64 = 0.3;
/// Estimate for a file or folder that has not been read yet.
const DEFAULT_ESTIMATE: Duration = Duration::from_secs(5);

impl Estimate {
    /// Estimate for one file, or the default if unknown.
    pub(super) fn single(alone: Option<Duration>) -> Estimate {
        Estimate { sequential: alone.unwrap_or(DEFAULT_ESTIMATE), concurrency: 1 }
    }

    /// Estimated duration if no other task runs.
    pub(super) fn duration(self) -> Duration {
        self.sequential / self.concurrency.max(1)
    }
}

impl DurationEstimator {
    pub(super) fn estimate(&self, format: Format, bytes: u64) -> Duration {
        let factor = lock(&self.factors).get(&format).copied().unwrap_or(1.0);
        initial_estimate(format, bytes).mul_f64(factor)
    }

    /// Estimate for several files with bounded concurrency. Blocking file system access.
    pub(super) fn estimate_all<P: AsRef<Path>>(&self, paths: &[P], together: usize, rules: &PathPolicy) -> Estimate {
        let known = |path: &Path| {
            // Paths outside the allowed folders get the default; otherwise the estimate would reveal whether they
            // exist.
            let metadata = rules.resolve(path).ok()?.metadata().ok().filter(Metadata::is_file)?;
            Some(self.estimate(format_of(path).ok()?, metadata.len()))
        };
        let alone = paths.iter().map(|path| known(path.as_ref()).unwrap_or(DEFAULT_ESTIMATE)).sum();
        Estimate { sequential: alone, concurrency: u32::try_from(paths.len().clamp(1, together.max(1))).unwrap_or(1) }
    }

    pub(super) fn record(&self, format: Format, bytes: u64, took: Duration) {
        let factor = took.as_secs_f64() / initial_estimate(format, bytes).as_secs_f64();
        let mut factors = lock(&self.factors);
        let known = factors.entry(format).or_insert(factor);
        *known = (*known * (1.0 - SMOOTHING_FACTOR) + factor * SMOOTHING_FACTOR).clamp(0.01, 100.0);
    }
}

/// Embedding dominates, so the estimate depends on the amount of text per byte of the format.
fn initial_estimate(format: Format, bytes: u64) -> Duration {
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
    fn many_files_take_as_long_as_all_of_them_by_so_many_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["1.txt", "2.txt", "3.txt", "4.txt"].map(|name| folder.path().join(name));
        for file in &files {
            std::fs::write(file, vec![b'a'; 500_000]).unwrap();
        }
        let estimates = DurationEstimator::default();
        let one = estimates.estimate(Format::Text, 500_000);
        let rules = PathPolicy::new(&[], 1 << 20);
        let all = estimates.estimate_all(&files, 2, &rules);
        assert_eq!((all.sequential, all.duration()), (one * 4, one * 2));
        assert_eq!(estimates.estimate_all(&files[..1], 2, &rules).duration(), one);
        let unseen = [folder.path().join("gone.txt"), folder.path().to_owned()];
        assert_eq!(estimates.estimate_all(&unseen, 1, &rules).duration(), DEFAULT_ESTIMATE * 2);
    }

    #[test]
    fn s11_what_is_outside_is_guessed_as_if_it_were_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let (inside, outside) = (inner.join("a.txt"), folder.path().join("a.txt"));
        for file in [&inside, &outside] {
            std::fs::write(file, vec![b'a'; 500_000]).unwrap();
        }
        let (estimates, rules) = (DurationEstimator::default(), PathPolicy::new(&[inner], 1 << 20));
        let guess = |path: &Path| estimates.estimate_all(&[path], 1, &rules).duration();
        assert_eq!(guess(&inside), estimates.estimate(Format::Text, 500_000));
        assert_eq!((guess(&outside), guess(&folder.path().join("gone.txt"))), (DEFAULT_ESTIMATE, DEFAULT_ESTIMATE));
    }

    #[test]
    fn guesses_follow_what_files_really_take() {
        let estimates = DurationEstimator::default();
        let first = estimates.estimate(Format::Text, 1_000_000);
        for _ in 0..10 {
            estimates.record(Format::Text, 1_000_000, first * 3);
        }
        let later = estimates.estimate(Format::Text, 2_000_000);
        assert!(later > first * 5 && later < first * 7, "{first:?} {later:?}");
        assert_eq!(estimates.estimate(Format::Csv, 1_000_000), first);
    }
}
