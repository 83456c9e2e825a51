//! Progress of a task: current step, monotonic fraction, and remaining time (K-111, K-115).

use std::time::{Duration, Instant};

use crate::workers::WorkerProgress;

/// Visible progress of a running task.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// From 0 to 1.
    pub fraction: f64,
    pub step: String,
    pub completed: u32,
    pub total: u32,
}

/// Progress of one document. Each page and each vector is a step; chunking and storing are one step each.
#[derive(Debug, Clone, Default)]
pub struct DocumentProgress {
    pages: u32,
    page_count: Option<u32>,
    ocr_page: u32,
    vectors: u32,
    vector_count: Option<u32>,
    stored: bool,
    reported: f64,
}

/// Fraction of the progress assigned to extraction: small, unless OCR runs. Embedding is most of the rest.
const READ_SHARE: f64 = 0.1;
const OCR_READ_SHARE: f64 = 0.9;
/// Fraction for extraction and embedding together. Storing is the rest.
const PREPARE_SHARE: f64 = 0.97;
/// Progress of a document that is stored but not acknowledged yet.
const STORED_SHARE: f64 = 0.99;

impl Default for Progress {
    fn default() -> Progress {
        Progress { fraction: 0.0, step: "Waiting".into(), completed: 0, total: 1 }
    }
}

impl Progress {
    /// Remaining time, extrapolated from the elapsed time, or from an estimate while the progress is too small.
    pub fn remaining(&self, elapsed: Duration, guess: Duration) -> Duration {
        if self.fraction < 0.02 {
            return guess.saturating_sub(elapsed).max(Duration::from_millis(100));
        }
        elapsed.mul_f64((1.0 - self.fraction).max(0.0) / self.fraction)
    }

    /// Replaces the progress. The fraction never decreases.
    pub fn advance(&mut self, to: Progress) {
        let share = to.fraction.clamp(self.fraction, 1.0);
        *self = Progress { fraction: share, completed: to.completed.min(to.total), ..to };
    }
}

impl DocumentProgress {
    /// Applies a progress message from a worker.
    pub fn on_worker_progress(&mut self, told: WorkerProgress) {
        match told {
            WorkerProgress::PageCount(count) => self.page_count = Some(count),
            WorkerProgress::OcrPage(page) => self.ocr_page = page,
            WorkerProgress::PagesDone(pages) => self.pages = pages,
        }
    }

    /// Extraction is complete, and this many vectors follow.
    pub fn set_vector_count(&mut self, vectors: usize) {
        self.page_count = Some(self.pages);
        self.vector_count = Some(u32::try_from(vectors).unwrap_or(u32::MAX));
    }

    pub fn set_embedded(&mut self, vectors: usize) {
        self.vectors = u32::try_from(vectors).unwrap_or(u32::MAX);
    }

    pub fn mark_stored(&mut self) {
        self.stored = true;
    }

    pub fn progress(&mut self) -> Progress {
        let pages = self.page_count.unwrap_or(self.pages + 1).max(self.pages).max(1);
        let share = |done: u32, of: u32| f64::from(done) / f64::from(of.max(1));
        let cut = u32::from(self.vector_count.is_some());
        let vectors = self.vector_count.unwrap_or(pages);
        let reading = if cut == 1 { 1.0 } else { share(self.pages, pages) };
        let embedding = self.vector_count.map_or(0.0, |of| share(self.vectors, of));
        let first = if self.ocr_page > 0 { OCR_READ_SHARE } else { READ_SHARE };
        let whole =
            if self.stored { STORED_SHARE } else { PREPARE_SHARE * (first * reading + (1.0 - first) * embedding) };
        self.reported = whole.max(self.reported);
        Progress {
            fraction: self.reported,
            step: self.step(pages),
            completed: self.pages + cut + self.vectors + u32::from(self.stored),
            total: pages + 1 + vectors + 1,
        }
    }

    fn step(&self, pages: u32) -> String {
        let at = (self.pages + 1).max(self.ocr_page).min(pages);
        match (self.vector_count, self.page_count) {
            (Some(_), _) if self.stored => "Storing".into(),
            (Some(of), _) => format!("Generating embeddings ({} of {of})", self.vectors),
            (None, Some(of)) if of > 1 => format!("Processing page {at} of {of}"),
            (None, _) => "Extracting text".into(),
        }
    }
}

/// Seconds since a time, rounded.
pub fn elapsed_seconds(since: Instant) -> f64 {
    round_to_millis(since.elapsed().as_secs_f64())
}

/// Rounds to milliseconds.
pub fn round_to_millis(seconds: f64) -> f64 {
    (seconds.max(0.0) * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k115_a_document_only_gets_further() {
        let mut document = DocumentProgress::default();
        let mut last = document.progress();
        assert_eq!((last.fraction, last.step.as_str()), (0.0, "Extracting text"));
        let mut next = |document: &mut DocumentProgress| {
            let far = document.progress();
            assert!(far.fraction >= last.fraction && far.completed <= far.total, "{last:?} {far:?}");
            last = far.clone();
            far
        };
        document.on_worker_progress(WorkerProgress::PageCount(10));
        for page in 1..=4 {
            document.on_worker_progress(WorkerProgress::PagesDone(page));
            next(&mut document);
        }
        assert_eq!(next(&mut document).step, "Processing page 5 of 10");
        document.on_worker_progress(WorkerProgress::OcrPage(6));
        assert_eq!(next(&mut document).step, "Processing page 6 of 10");
        // Fewer pages than announced must not reduce the progress.
        document.on_worker_progress(WorkerProgress::PagesDone(9));
        document.set_vector_count(20);
        for vectors in [0, 8, 16, 20] {
            document.set_embedded(vectors);
            next(&mut document);
        }
        document.mark_stored();
        let end = next(&mut document);
        assert_eq!((end.completed, end.total), (31, 31));
    }

    #[test]
    fn k115_what_is_shown_never_goes_back() {
        let mut far = Progress::default();
        far.advance(Progress { fraction: 0.5, step: "a".into(), completed: 5, total: 10 });
        far.advance(Progress { fraction: 0.2, step: "b".into(), completed: 12, total: 10 });
        assert_eq!(far, Progress { fraction: 0.5, step: "b".into(), completed: 10, total: 10 });
    }

    #[test]
    fn the_rest_is_judged_by_what_was_done() {
        let far = Progress { fraction: 0.25, ..Progress::default() };
        assert_eq!(far.remaining(Duration::from_secs(10), Duration::from_secs(1)), Duration::from_secs(30));
        assert_eq!(
            Progress::default().remaining(Duration::from_secs(2), Duration::from_secs(8)),
            Duration::from_secs(6)
        );
    }
}
