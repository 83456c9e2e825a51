//! How much processor time one document may take, by its size and format.
//!
//! A small file that keeps a processor busy for minutes was made to do so, so it gets a share of `documents.cpu` and only a
//! large one all of it. Of 257 real files none took more than 0.7 s without OCR, and 2 to 11 MB of text, tables or drawings
//! less than 1.4 s: the smallest budget is about 30 times what honest files need. Time is processor time, so that a slow or
//! busy machine does not matter. What OCR takes is counted apart.

use std::time::Duration;

use corbie_extract::Format;

/// Processor time for one document, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    /// For everything but OCR: the soft limit, raised for each look while it lasts.
    pub(super) reading: u64,
    /// For all of it, however many pictures are read: less than this must not be left of a worker's hard limit.
    pub(super) total: u64,
}

/// Budgets are in shares of this size of `documents.cpu`.
const SHARES: u64 = 24;
/// A picture that OCR reads takes as many bytes of a file at least, with few exceptions.
const BYTES_PER_LOOK: u64 = 8 << 10;
const MIN_LOOKS: u64 = 4;
/// A worker may use so many times `documents.cpu` before it is replaced.
const LIFETIME: u64 = 4;
/// Limits are in whole seconds, and the soft one must be reached before the hard one.
const MARGIN: u64 = 3;

impl Budget {
    /// `look_seconds` is what one look of OCR may take; 0 if there is none.
    pub(super) fn new(cpu: Duration, format: Option<Format>, bytes: u64, look_seconds: u64) -> Budget {
        let (base, per_mib) = match format {
            Some(Format::Svg | Format::Jpg | Format::Png | Format::Text | Format::Markdown | Format::Csv) => (4, 1),
            Some(Format::Docx | Format::Pptx | Format::Xlsx | Format::Html) => (4, 3),
            // Its pages are drawn where OCR reads them.
            Some(Format::Pdf) | None => (8, 4),
        };
        let shares = bytes.div_ceil(1 << 20).saturating_mul(per_mib).saturating_add(base).min(SHARES);
        let reading = (cpu.as_secs().saturating_mul(shares)).div_ceil(SHARES).max(1);
        let looks = match format {
            Some(format) if format.is_picture() => 1,
            _ => MIN_LOOKS + bytes / BYTES_PER_LOOK,
        };
        let total = reading.saturating_add(looks.saturating_mul(look_seconds)).saturating_add(MARGIN);
        Budget { reading, total }
    }

    /// The hard limit of a worker that begins with this document.
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
        // A higher setting gives every file more, so that raising it helps.
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
