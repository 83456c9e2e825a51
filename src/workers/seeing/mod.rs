//! OCR of pages and images during extraction. Pages are emitted in order.
//!
//! Extraction continues while OCR runs, so a page waits here until its images and all earlier pages are done.

mod easel;
mod look;
mod merge;

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use corbie_extract::{Block, Error, Format, Kind, Page, Raster, Sink, Summary, Warning, is_made_of_words};

use super::eyes::Eyes;
use super::message::{Job, Ocr, Said};
use super::wire::Wire;
use super::words::Origin;
use easel::Easel;
use look::{Gaze, Look};
use merge::{Place, merge};

pub(super) struct Seeing<'s, 'w> {
    format: Format,
    job: &'s Job,
    easel: Easel<'s>,
    gaze: Gaze<'s, 'w>,
    waiting: VecDeque<Waiting>,
    /// The single page of an image file waits for the metadata of the image.
    held: Option<(Page, Origin)>,
    /// Hashes of the images so far: a logo is recognized once, regardless of how often it is stored.
    known: HashSet<u64>,
    seen: Seen,
}

/// Result after all pages are emitted.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) warnings: Vec<Warning>,
    /// Why OCR failed for some pages, if it did.
    pub(super) unread: Option<String>,
    /// Why an image file cannot be decoded.
    pub(super) broken: Option<Error>,
    /// Whether the file is an image in which OCR found no text.
    pub(super) wordless: bool,
}

/// A page with its OCR jobs.
struct Waiting {
    page: Page,
    looks: Vec<(Place, Look)>,
}

impl<'s, 'w> Seeing<'s, 'w> {
    pub(super) fn new(
        bytes: &'s Arc<Vec<u8>>,
        format: Format,
        job: &'s Job,
        eyes: &'s Eyes,
        wire: &'s mut Wire<'w>,
    ) -> Self {
        let easel = Easel::new(bytes, format, &job.limits);
        let gaze = Gaze { sight: job.sight, eyes, wire, took: Duration::ZERO };
        let (waiting, known, seen) = (VecDeque::new(), HashSet::new(), Seen::default());
        Seeing { format, job, easel, gaze, waiting, held: None, known, seen }
    }

    /// Emits all remaining pages. `summary` is `None` if extraction failed.
    pub(super) fn end(mut self, summary: Option<&Summary>) -> Seen {
        self.advance(true);
        if let Some((mut page, origin)) = self.held.take().filter(|_| self.seen.broken.is_none()) {
            // The text of a photograph is its metadata; the text of a drawing is part of the drawing.
            let says_something = origin.sight || (origin.text && self.format == Format::Svg);
            if let Some(summary) = summary.filter(|_| !says_something) {
                let about = corbie_extract::about(self.job.name.as_deref(), self.format, &summary.metadata);
                // Removes blocks that the description repeats.
                page.blocks.retain(|block| !about.contains(block.text.as_str()));
                page.blocks.push(Block::new(Kind::Caption, about));
            }
            self.gaze.wire.tell(&Said::Page { page, origin });
        }
        self.seen
    }

    /// Whether OCR runs on a whole page. A scan with text is excluded, because the existing text is better.
    fn is_looked_at(&self, page: &Page) -> bool {
        match (self.job.sight.ocr, self.format) {
            (Ocr::Force | Ocr::Auto, Format::Jpg | Format::Png) | (Ocr::Force, Format::Pdf | Format::Svg) => true,
            (Ocr::Auto, Format::Pdf | Format::Svg) => {
                page.scanned && (page.images.is_empty() || !is_made_of_words(&page.text()))
            }
            _ => false,
        }
    }

    /// Emits finished pages, or all pages if `wait` is set.
    fn advance(&mut self, wait: bool) {
        while let Some(mut waiting) = self.waiting.pop_front() {
            if !waiting.looks.iter_mut().all(|(_, look)| look.is_done(wait, &mut self.gaze)) {
                self.waiting.push_front(waiting);
                return;
            }
            self.hand_over(waiting);
        }
    }

    fn hand_over(&mut self, Waiting { mut page, looks }: Waiting) {
        let mut read = Vec::with_capacity(looks.len());
        let looked = !looks.is_empty();
        for (place, look) in looks {
            match look {
                Look::Done(Ok(words)) => {
                    self.seen.warnings.extend(words.warning().map(|warning| Warning::on(page.number, warning)));
                    self.seen.wordless = self.format.is_picture() && !words.doubtful && !words.says_anything();
                    read.push((place, words));
                }
                Look::Done(Err(why)) => self.fail(page.number, why),
                Look::Undrawn(error) => match (place, self.format) {
                    (Place::Page, _) => self.fail(page.number, error.to_string()),
                    (_, Format::Jpg | Format::Png) => self.seen.broken = Some(error),
                    _ => self.warn_of(page.number, &error),
                },
                Look::Awaited(_) => {}
            }
        }
        let origin = merge(&mut page, read, self.job.sight.ocr);
        let is_silent = looked && self.format == Format::Pdf && page.text().is_empty();
        if is_silent && !self.seen.warnings.iter().any(|warning| warning.page == Some(page.number)) {
            self.seen.warnings.push(Warning::on(page.number, "no words were found in what the page shows"));
        }
        match self.format.is_picture() {
            true => self.held = Some((page, origin)),
            false => self.gaze.wire.tell(&Said::Page { page, origin }),
        }
    }

    fn fail(&mut self, page: u32, why: String) {
        self.warn(page, &why);
        self.seen.unread.get_or_insert(why);
    }

    fn warn_of(&mut self, page: u32, error: &Error) {
        match error {
            Error::TooMuch { what: what @ "dots", most } => {
                self.warn(page, &format!("it has more than {most} {what}; raise `documents.max_pixels`"));
            }
            Error::TooMuch { what, most } => self.warn(page, &format!("it has more than {most} {what}")),
            error => self.warn(page, &error.to_string()),
        }
    }

    fn warn(&mut self, page: u32, why: &str) {
        self.seen.warnings.push(Warning::on(page, format!("a picture was not read: {why}")));
    }
}

/// Hash that identifies an image.
fn fingerprint(picture: &Raster) -> u64 {
    let mut hasher = DefaultHasher::new();
    (picture.width, picture.height).hash(&mut hasher);
    picture.rgb.hash(&mut hasher);
    hasher.finish()
}

impl Sink for Seeing<'_, '_> {
    fn pages(&mut self, count: u32) {
        self.gaze.wire.tell(&Said::Pages { count });
    }

    fn page(&mut self, mut page: Page) {
        let mut looks = Vec::new();
        if self.is_looked_at(&page) {
            self.gaze.begin(page.number);
            let drawn = self.easel.page(page.number);
            if self.easel.lacks_a_picture() {
                self.warn(page.number, "it cannot be decoded");
            }
            let place = if self.format.is_picture() { Place::Sheet } else { Place::Page };
            looks.push((place, self.gaze.look(drawn)));
        } else if self.job.sight.ocr != Ocr::Off && !page.images.is_empty() {
            let (number, is_sheet) = (page.number, page.scanned);
            let places: Vec<usize> = page.images.iter().map(|image| image.after).collect();
            let (easel, gaze, known) = (&mut self.easel, &mut self.gaze, &mut self.known);
            // Decoding counts as OCR time.
            gaze.begin(number);
            easel.pictures(&mut page, &mut |index, drawn| {
                if drawn.as_ref().is_ok_and(|picture| !known.insert(fingerprint(picture))) {
                    return;
                }
                gaze.begin(number);
                let place = places.get(index).copied().unwrap_or(usize::MAX);
                let place = if is_sheet { Place::Sheet } else { Place::After(place) };
                looks.push((place, gaze.look(drawn)));
            });
            gaze.end();
        }
        self.waiting.push_back(Waiting { page, looks });
        self.advance(false);
    }
}
