//! OCR of pages and images during extraction. Pages are emitted in order.
//!
//! Extraction continues while OCR runs, so a page waits here until its images and all earlier pages are done.

mod dispatcher;
mod merge;
mod page_renderer;

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use corbie_extract::{Block, BlockKind, Error, Format, Page, Raster, Sink, Summary, Warning, consists_of_words};

use super::ipc::IpcChannel;
use super::message::{OcrMode, WorkerJob, WorkerMessage};
use super::ocr_text::TextSource;
use super::ocr_threads::OcrPool;
use dispatcher::{OcrDispatcher, OcrJob};
use merge::{OcrRegion, merge};
use page_renderer::PageRenderer;

pub(super) struct OcrPageSink<'s, 'w> {
    format: Format,
    job: &'s WorkerJob,
    renderer: PageRenderer<'s>,
    dispatcher: OcrDispatcher<'s, 'w>,
    pending: VecDeque<PendingPage>,
    /// The single page of an image file waits for the metadata of the image.
    image_page: Option<(Page, TextSource)>,
    /// Hashes of the images so far: a logo is recognized once, regardless of how often it is stored.
    seen_images: HashSet<u64>,
    summary: OcrSummary,
}

/// Result after all pages are emitted.
#[derive(Debug, Default)]
pub(super) struct OcrSummary {
    pub(super) warnings: Vec<Warning>,
    /// Why OCR failed for some pages, if it did.
    pub(super) error: Option<String>,
    /// Why an image file cannot be decoded.
    pub(super) undecodable: Option<Error>,
    /// Whether the file is an image in which OCR found no text.
    pub(super) wordless: bool,
}

/// A page with its OCR jobs.
struct PendingPage {
    page: Page,
    jobs: Vec<(OcrRegion, OcrJob)>,
}

impl<'s, 'w> OcrPageSink<'s, 'w> {
    pub(super) fn new(
        bytes: &'s Arc<Vec<u8>>,
        format: Format,
        job: &'s WorkerJob,
        eyes: &'s OcrPool,
        wire: &'s mut IpcChannel<'w>,
    ) -> Self {
        let easel = PageRenderer::new(bytes, format, &job.limits);
        let gaze = OcrDispatcher { config: job.ocr, pool: eyes, channel: wire, cpu_time: Duration::ZERO };
        let (waiting, known, seen) = (VecDeque::new(), HashSet::new(), OcrSummary::default());
        OcrPageSink {
            format,
            job,
            renderer: easel,
            dispatcher: gaze,
            pending: waiting,
            image_page: None,
            seen_images: known,
            summary: seen,
        }
    }

    /// Emits all remaining pages. `summary` is `None` if extraction failed.
    pub(super) fn finish(mut self, summary: Option<&Summary>) -> OcrSummary {
        self.emit_ready_pages(true);
        if let Some((mut page, origin)) = self.image_page.take().filter(|_| self.summary.undecodable.is_none()) {
            // The text of a photograph is its metadata; the text of a drawing is part of the drawing.
            let says_something = origin.ocr || (origin.text && self.format == Format::Svg);
            if let Some(summary) = summary.filter(|_| !says_something) {
                let about = corbie_extract::summarize(self.job.name.as_deref(), self.format, &summary.metadata);
                // Removes blocks that the description repeats.
                page.blocks.retain(|block| !about.contains(block.text.as_str()));
                page.blocks.push(Block::new(BlockKind::Caption, about));
            }
            self.dispatcher.channel.send_or_exit(&WorkerMessage::Page { page, origin });
        }
        self.summary
    }

    /// Whether OCR runs on a whole page. A scan with text is excluded, because the existing text is better.
    fn needs_page_ocr(&self, page: &Page) -> bool {
        match (self.job.ocr.mode, self.format) {
            (OcrMode::Force | OcrMode::Auto, Format::Jpg | Format::Png)
            | (OcrMode::Force, Format::Pdf | Format::Svg) => true,
            (OcrMode::Auto, Format::Pdf | Format::Svg) => {
                page.scanned && (page.images.is_empty() || !consists_of_words(&page.text()))
            }
            _ => false,
        }
    }

    /// Emits finished pages, or all pages if `wait` is set.
    fn emit_ready_pages(&mut self, wait: bool) {
        while let Some(mut waiting) = self.pending.pop_front() {
            if !waiting.jobs.iter_mut().all(|(_, look)| look.poll(wait, &mut self.dispatcher)) {
                self.pending.push_front(waiting);
                return;
            }
            self.emit_page(waiting);
        }
    }

    fn emit_page(&mut self, PendingPage { mut page, jobs: looks }: PendingPage) {
        let mut read = Vec::with_capacity(looks.len());
        let looked = !looks.is_empty();
        for (place, look) in looks {
            match look {
                OcrJob::Done(Ok(words)) => {
                    self.summary.warnings.extend(words.warning().map(|warning| Warning::on_page(page.number, warning)));
                    self.summary.wordless = self.format.is_image() && !words.doubtful && !words.has_text();
                    read.push((place, words));
                }
                OcrJob::Done(Err(why)) => self.record_failure(page.number, why),
                OcrJob::NotRendered(error) => match (place, self.format) {
                    (OcrRegion::Page, _) => self.record_failure(page.number, error.to_string()),
                    (_, Format::Jpg | Format::Png) => self.summary.undecodable = Some(error),
                    _ => self.warn_of_error(page.number, &error),
                },
                OcrJob::Pending(_) => {}
            }
        }
        let origin = merge(&mut page, read, self.job.ocr.mode);
        let is_silent = looked && self.format == Format::Pdf && page.text().is_empty();
        if is_silent && !self.summary.warnings.iter().any(|warning| warning.page == Some(page.number)) {
            self.summary.warnings.push(Warning::on_page(page.number, "OCR found no text on the page"));
        }
        match self.format.is_image() {
            true => self.image_page = Some((page, origin)),
            false => self.dispatcher.channel.send_or_exit(&WorkerMessage::Page { page, origin }),
        }
    }

    fn record_failure(&mut self, page: u32, why: String) {
        self.warn(page, &why);
        self.summary.error.get_or_insert(why);
    }

    fn warn_of_error(&mut self, page: u32, error: &Error) {
        match error {
            Error::TooMuch { what: what @ "pixels", most } => {
                self.warn(page, &format!("it has more than {most} {what}; increase `documents.max_pixels`"));
            }
            Error::TooMuch { what, most } => self.warn(page, &format!("it has more than {most} {what}")),
            error => self.warn(page, &error.to_string()),
        }
    }

    fn warn(&mut self, page: u32, why: &str) {
        self.summary.warnings.push(Warning::on_page(page, format!("OCR skipped an image: {why}")));
    }
}

/// Hash that identifies an image.
fn fingerprint(picture: &Raster) -> u64 {
    let mut hasher = DefaultHasher::new();
    (picture.width, picture.height).hash(&mut hasher);
    picture.rgb.hash(&mut hasher);
    hasher.finish()
}

impl Sink for OcrPageSink<'_, '_> {
    fn pages(&mut self, count: u32) {
        self.dispatcher.channel.send_or_exit(&WorkerMessage::Pages { count });
    }

    fn page(&mut self, mut page: Page) {
        let mut looks = Vec::new();
        if self.needs_page_ocr(&page) {
            self.dispatcher.begin_job(page.number);
            let drawn = self.renderer.render_page(page.number);
            if self.renderer.has_undecoded_image() {
                self.warn(page.number, "it cannot be decoded");
            }
            let place = if self.format.is_image() { OcrRegion::Background } else { OcrRegion::Page };
            looks.push((place, self.dispatcher.dispatch(drawn)));
        } else if self.job.ocr.mode != OcrMode::Off && !page.images.is_empty() {
            let (number, is_sheet) = (page.number, page.scanned);
            let places: Vec<usize> = page.images.iter().map(|image| image.after).collect();
            let (easel, gaze, known) = (&mut self.renderer, &mut self.dispatcher, &mut self.seen_images);
            // Decoding counts as OCR time.
            gaze.begin_job(number);
            easel.render_images(&mut page, &mut |index, drawn| {
                if drawn.as_ref().is_ok_and(|picture| !known.insert(fingerprint(picture))) {
                    return;
                }
                gaze.begin_job(number);
                let place = places.get(index).copied().unwrap_or(usize::MAX);
                let place = if is_sheet { OcrRegion::Background } else { OcrRegion::AfterBlock(place) };
                looks.push((place, gaze.dispatch(drawn)));
            });
            gaze.finish_job();
        }
        self.pending.push_back(PendingPage { page, jobs: looks });
        self.emit_ready_pages(false);
    }
}
