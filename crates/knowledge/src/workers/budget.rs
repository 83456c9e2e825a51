//! CPU time budget of one document, by size and format.
//!
//! A small file that uses minutes of CPU time is hostile, so it gets a fraction of `documents.max_cpu_time`, and only a
//! large file gets all of it. Of 257 real files none took more than 0.7 s without OCR, and 2 to 11 MB of text, tables or
//! drawings took less than 1.4 s: the smallest budget is about 30 times the need of legitimate files. The limit is CPU
//! time and not wall-clock time, so a slow or busy machine does not affect it. OCR is accounted separately.

use std::time::Duration;

use corbie_extract::Format;

/// CPU time for one document, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    /// For everything except OCR: the soft limit, raised during each OCR job.
    pub(super) reading: u64,
    /// Including all OCR jobs. A worker is reused only if its hard limit leaves at least this much.
    pub(super) total: u64,
}

/// Number of shares into which `documents.max_cpu_time` is divided.
const SHARES: u64 = 24;
/// Minimum size in bytes of an image that OCR reads, with few exceptions. Bounds the number of OCR jobs.
const BYTES_PER_LOOK: u64 = 8 << 10;
const MIN_LOOKS: u64 = 4;
/// Hard limit of a worker, as a multiple of `documents.max_cpu_time`. The worker is then replaced.
const LIFETIME: u64 = 4;
/// Limits are whole seconds, and the soft limit must be reached before the hard one.
const MARGIN: u64 = 3;

impl Budget {
    /// `look_seconds` is the budget of one OCR job; 0 without OCR.
    pub(super) fn new(cpu: Duration, format: Option<Format>, bytes: u64, look_seconds: u64) -> Budget {
        let (base, per_mib) = match format {
            Some(Format::Svg | Format::Jpg | Format::Png | Format::Text | Format::Markdown | Format::Csv) => (4, 1),
            Some(Format::Docx | Format::Pptx | Format::Xlsx | Format::Html) => (4, 3),
            // PDF pages are rendered for OCR.
            Some(Format::Pdf) | None => (8, 4),
        };
        let shares = bytes.div_ceil(1 << 20).saturating_mul(per_mib).saturating_add(base).min(SHARES);
        let reading = (cpu.as_secs().saturating_mul(shares)).div_ceil(SHARES).max(1);
        let looks = match format {
            Some(format) if format.is_image() => 1,
            _ => MIN_LOOKS + bytes / BYTES_PER_LOOK,
        };
        let total = reading.saturating_add(looks.saturating_mul(look_seconds)).saturating_add(MARGIN);
        Budget { reading, total }
    }

    /// Hard limit of a worker whose first document has this budget.
    pub(super) fn lifetime(self, cpu: Duration) -> u64 {
        self.total.max(cpu.as_secs().saturating_mul(LIFETIME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Duration = Duration::from_secs(120);

    #[test]
    fn s12_a_small_file_gets_little_processor_time_and_a_large_one_no_more_than_the_setting() {
        let reading = |format, bytes| Budget::new(CPU, format, bytes, 0).reading;
        assert_eq!(reading(Some(Format::Svg), 6_000), 25);
        assert_eq!(reading(Some(Format::Svg), 5 << 20), 45);
        assert_eq!(reading(Some(Format::Docx), 6_000), 35);
        assert_eq!(reading(Some(Format::Pdf), 6_000), 60);
        for format in [Some(Format::Text), Some(Format::Pdf), None] {
            assert_eq!(reading(format, 100 << 20), 120);
            assert_eq!(reading(format, u64::MAX), 120);
        }
        // A higher setting raises the budget of every file.
        assert_eq!(Budget::new(2 * CPU, Some(Format::Svg), 6_000, 0).reading, 50);
        assert_eq!(Budget::new(Duration::from_millis(1), Some(Format::Svg), 6_000, 0).reading, 1);
    }

    #[test]
    fn s12_the_hard_limit_lies_beyond_the_soft_one_with_all_looks() {
        let svg = Budget::new(CPU, Some(Format::Svg), 6_000, 30);
        assert_eq!((svg.total, svg.lifetime(CPU)), (25 + 30 + MARGIN, 480));
        let scan = Budget::new(CPU, Some(Format::Pdf), 8 << 20, 30);
        assert_eq!(scan.total, 120 + (MIN_LOOKS + 1024) * 30 + MARGIN);
        assert_eq!(scan.lifetime(CPU), scan.total);
    }
}
