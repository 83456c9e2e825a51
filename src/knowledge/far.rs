//! Progress of a task: current step, monotonic fraction, and remaining time (K-111, K-115).

use std::time::{Duration, Instant};

use crate::workers::Told;

/// Visible progress of a running task.
#[derive(Debug, Clone, PartialEq)]
pub struct Far {
    /// From 0 to 1.
    pub share: f64,
    pub step: String,
    pub completed: u32,
    pub total: u32,
}

/// Progress of one document. Each page and each vector is a step; chunking and storing are one step each.
#[derive(Debug, Clone, Default)]
pub struct Document {
    pages: u32,
    page_count: Option<u32>,
    looking: u32,
    vectors: u32,
    vector_count: Option<u32>,
    stored: bool,
    shown: f64,
}

/// Fraction of the progress assigned to extraction: small, unless OCR runs. Embedding is most of the rest.
const READING: f64 = 0.1;
const LOOKING: f64 = 0.9;
/// Fraction for extraction and embedding together. Storing is the rest.
const MAKING: f64 = 0.97;
/// Progress of a document that is stored but not acknowledged yet.
const STORED: f64 = 0.99;

impl Default for Far {
    fn default() -> Far {
        Far { share: 0.0, step: "Waiting".into(), completed: 0, total: 1 }
    }
}

impl Far {
    /// Remaining time, extrapolated from the elapsed time, or from an estimate while the progress is too small.
    pub fn remaining(&self, elapsed: Duration, guess: Duration) -> Duration {
        if self.share < 0.02 {
            return guess.saturating_sub(elapsed).max(Duration::from_millis(100));
        }
        elapsed.mul_f64((1.0 - self.share).max(0.0) / self.share)
    }

    /// Replaces the progress. The fraction never decreases.
    pub fn advance(&mut self, to: Far) {
        let share = to.share.clamp(self.share, 1.0);
        *self = Far { share, completed: to.completed.min(to.total), ..to };
    }
}

impl Document {
    /// Applies a progress message from a worker.
    pub fn told(&mut self, told: Told) {
        match told {
            Told::Pages(count) => self.page_count = Some(count),
            Told::Looking(page) => self.looking = page,
            Told::Done(pages) => self.pages = pages,
        }
    }

    /// Extraction is complete, and this many vectors follow.
    pub fn cut(&mut self, vectors: usize) {
        self.page_count = Some(self.pages);
        self.vector_count = Some(u32::try_from(vectors).unwrap_or(u32::MAX));
    }

    pub fn embedded(&mut self, vectors: usize) {
        self.vectors = u32::try_from(vectors).unwrap_or(u32::MAX);
    }

    pub fn stored(&mut self) {
        self.stored = true;
    }

    pub fn far(&mut self) -> Far {
        let pages = self.page_count.unwrap_or(self.pages + 1).max(self.pages).max(1);
        let share = |done: u32, of: u32| f64::from(done) / f64::from(of.max(1));
        let cut = u32::from(self.vector_count.is_some());
        let vectors = self.vector_count.unwrap_or(pages);
        let reading = if cut == 1 { 1.0 } else { share(self.pages, pages) };
        let embedding = self.vector_count.map_or(0.0, |of| share(self.vectors, of));
        let first = if self.looking > 0 { LOOKING } else { READING };
        let whole = if self.stored { STORED } else { MAKING * (first * reading + (1.0 - first) * embedding) };
        self.shown = whole.max(self.shown);
        Far {
            share: self.shown,
            step: self.step(pages),
            completed: self.pages + cut + self.vectors + u32::from(self.stored),
            total: pages + 1 + vectors + 1,
        }
    }

    fn step(&self, pages: u32) -> String {
        let at = (self.pages + 1).max(self.looking).min(pages);
        match (self.vector_count, self.page_count) {
            (Some(_), _) if self.stored => "Storing".into(),
            (Some(of), _) => format!("Generating embeddings ({} of {of})", self.vectors),
            (None, Some(of)) if of > 1 => format!("Processing page {at} of {of}"),
            (None, _) => "Extracting text".into(),
        }
    }
}

/// Seconds since a time, rounded.
pub fn seconds(since: Instant) -> f64 {
    rounded(since.elapsed().as_secs_f64())
}

/// Rounds to milliseconds.
pub fn rounded(seconds: f64) -> f64 {
    (seconds.max(0.0) * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k115_a_document_only_gets_further() {
        let mut document = Document::default();
        let mut last = document.far();
        assert_eq!((last.share, last.step.as_str()), (0.0, "Extracting text"));
        let mut next = |document: &mut Document| {
            let far = document.far();
            assert!(far.share >= last.share && far.completed <= far.total, "{last:?} {far:?}");
            last = far.clone();
            far
        };
        document.told(Told::Pages(10));
        for page in 1..=4 {
            document.told(Told::Done(page));
            next(&mut document);
        }
        assert_eq!(next(&mut document).step, "Processing page 5 of 10");
        document.told(Told::Looking(6));
        assert_eq!(next(&mut document).step, "Processing page 6 of 10");
        // Fewer pages than announced must not reduce the progress.
        document.told(Told::Done(9));
        document.cut(20);
        for vectors in [0, 8, 16, 20] {
            document.embedded(vectors);
            next(&mut document);
        }
        document.stored();
        let end = next(&mut document);
        assert_eq!((end.completed, end.total), (31, 31));
    }

    #[test]
    fn k115_what_is_shown_never_goes_back() {
        let mut far = Far::default();
        far.advance(Far { share: 0.5, step: "a".into(), completed: 5, total: 10 });
        far.advance(Far { share: 0.2, step: "b".into(), completed: 12, total: 10 });
        assert_eq!(far, Far { share: 0.5, step: "b".into(), completed: 10, total: 10 });
    }

    #[test]
    fn the_rest_is_judged_by_what_was_done() {
        let far = Far { share: 0.25, ..Far::default() };
        assert_eq!(far.remaining(Duration::from_secs(10), Duration::from_secs(1)), Duration::from_secs(30));
        assert_eq!(Far::default().remaining(Duration::from_secs(2), Duration::from_secs(8)), Duration::from_secs(6));
    }
}
