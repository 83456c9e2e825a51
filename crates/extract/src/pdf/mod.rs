//! PDF reader.
//!
//! The `hayro` interpreter draws a page on a device that records glyphs with their positions ([`glyphs`]). They become
//! text runs ([`text_runs`]), regions in reading order ([`columns`]), ruled tables ([`tables`]), lines ([`lines`]) and
//! paragraphs ([`blocks`]). The kind of a paragraph depends on the surrounding pages ([`cross_page`]).

mod accents;
mod annotations;
mod bidi;
mod blocks;
mod bold;
mod bookmarks;
mod cid_collections;
mod columns;
mod cross_page;
mod glyphs;
mod image_device;
mod images;
mod layout;
mod lines;
mod metadata;
mod pages;
#[cfg(feature = "pdfium")]
pub(crate) mod pdfium;
mod ruling_lines;
mod scan;
mod strings;
mod tables;
mod text_runs;
mod unicode;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hayro_interpret::hayro_syntax::page::Page as Source;
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf, PdfData};
use hayro_interpret::kurbo::Rect;
use hayro_interpret::{
    Context, Device, InterpreterCache, InterpreterSettings, RenderContent, TransformExt, interpret_page,
};

use crate::{Error, ExtractionMethod, Limits, Options, Page, Sink, Summary, Warning};
use bold::BoldDetector;
use bookmarks::Bookmarks;
use cross_page::{CrossPageState, PageDraft};
use glyphs::GlyphDevice;
use images::ListedImages;
use unicode::GlyphDecoder;

pub use pages::PdfPages;

/// The file is reopened after this number of pages, because decoded data is cached while the file is open.
const REOPEN_INTERVAL: usize = 400;

pub(crate) fn read(bytes: &[u8], options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let bytes = Arc::new(bytes.to_vec());
    let mut summary = Summary { method: ExtractionMethod::TextExtraction, ..Summary::default() };
    let first = catch_panic(|| open(Arc::clone(&bytes))).ok_or_else(corrupted)??;
    let count = first.pages().len();
    if count == 0 {
        return Err(no_pages());
    }
    check_limit(count as u64, u64::from(options.limits.pages), "pages")?;
    sink.pages(count as u32);
    if !is_whole(&bytes) {
        summary.warnings.push(Warning::new("the file is truncated, so content at its end is missing"));
    }
    summary.metadata = catch_panic(|| metadata::metadata(&first)).unwrap_or_default();
    let mut finish = CrossPageState::new(catch_panic(|| Bookmarks::of(&first)).unwrap_or_default());
    let (room, limits, seen) = (options.limits.characters, &options.limits, ListedImages::default());
    let mut reader = PageReader { remaining_chars: room, limits, finish: &mut finish, listed_images: seen };
    reader.pages(&first, 0, sink, &mut summary.warnings)?;
    drop(first);
    for from in (REOPEN_INTERVAL..count).step_by(REOPEN_INTERVAL) {
        let pdf = catch_panic(|| open(Arc::clone(&bytes))).ok_or_else(corrupted)??;
        reader.pages(&pdf, from, sink, &mut summary.warnings)?;
    }
    while let Some(page) = finish.pop() {
        sink.page(page);
    }
    Ok(summary)
}

/// Reads the pages of an open file.
struct PageReader<'r> {
    /// Remaining characters.
    remaining_chars: u64,
    limits: &'r Limits,
    finish: &'r mut CrossPageState,
    listed_images: ListedImages,
}

impl PageReader<'_> {
    fn pages(&mut self, pdf: &Pdf, from: usize, sink: &mut dyn Sink, warnings: &mut Vec<Warning>) -> Result<(), Error> {
        let cache = InterpreterCache::new();
        let settings = interpreter_settings();
        let mut letters = GlyphDecoder::new(pdf);
        let mut stems = BoldDetector::default();
        for (source, number) in pdf.pages().iter().zip(1..).skip(from).take(REOPEN_INTERVAL) {
            let bounds = bounds(source);
            let mut collector = GlyphDevice::new(&mut letters, &mut stems, self.remaining_chars, bounds);
            let drawn = catch_panic(|| draw(source, bounds, &cache, &settings, &mut collector));
            let drawing = collector.drawing;
            let parts = catch_panic(|| layout::page_parts(&drawing));
            let laid_over = catch_panic(|| annotations::annotations(source, self.remaining_chars));
            if drawing.exceeded_limit {
                warnings.push(Warning::on_page(number, "the page has too much content; the rest was skipped"));
            } else if drawn.is_none() || parts.is_none() || laid_over.is_none() {
                warnings.push(Warning::on_page(number, "a damaged part of the page was skipped"));
            }
            if drawing.ends_early {
                warnings.push(Warning::on_page(number, "an image on the page is truncated"));
            }
            let texts = laid_over.iter().flatten().map(|block| block.text.as_str()).chain([drawing.text.as_str()]);
            let said: usize = texts.map(|text| text.chars().count()).sum();
            let most = self.limits.characters;
            let rest = self.remaining_chars.checked_sub(said as u64).filter(|_| !drawing.cut);
            self.remaining_chars = rest.ok_or(Error::TooMuch { what: "characters", most })?;
            let height = bounds.height() as f32;
            let parts = parts.unwrap_or_default();
            let scanned = drawing.is_scan(&parts, bounds);
            let images = self.listed_images.images(&drawing, &parts, number, scanned, self.limits, warnings);
            let page = Page { number, scanned, images, ..Page::default() };
            let draft = PageDraft { page, height, parts, annotations: laid_over.unwrap_or_default() };
            if let Some(page) = self.finish.push(draft) {
                sink.page(page);
            }
        }
        Ok(())
    }
}

fn open(data: impl Into<PdfData>) -> Result<Pdf, Error> {
    Pdf::new(data).map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => Error::PasswordProtected,
        LoadPdfError::Decryption(_) => Error::Corrupted("unsupported encryption".to_owned()),
        LoadPdfError::Invalid => no_pages(),
    })
}

fn corrupted() -> Error {
    Error::Corrupted("invalid PDF structure".to_owned())
}

fn no_pages() -> Error {
    Error::Corrupted("it has no pages".to_owned())
}

/// Whether the end-of-file marker is present. Some programs write a few bytes after it.
fn is_whole(bytes: &[u8]) -> bool {
    let end = &bytes[bytes.len().saturating_sub(2048)..];
    memchr::memmem::find(end, b"%%EOF").is_some()
}

/// Runs a third-party parser on a hostile file; `None` if it panics. A page that breaks the parser must not affect
/// other pages, and only the results collected before the panic are used afterwards.
fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Interpreter settings without annotations, which are read separately.
fn interpreter_settings() -> InterpreterSettings {
    InterpreterSettings { render_content: RenderContent::PAGE, ..InterpreterSettings::default() }
}

fn draw<'a>(
    source: &'a Source<'a>,
    bounds: Rect,
    cache: &InterpreterCache<'a>,
    settings: &InterpreterSettings,
    device: &mut impl Device<'a>,
) {
    let transform = source.initial_transform(true).to_kurbo();
    let mut context = Context::new(transform, bounds, cache, source.xref(), settings.clone());
    interpret_page(source, &mut context, device);
}

/// The visible page, from its top left corner.
fn bounds(source: &Source<'_>) -> Rect {
    let (width, height) = source.render_dimensions();
    Rect::new(0.0, 0.0, f64::from(width), f64::from(height))
}

fn check_limit(count: u64, most: u64, what: &'static str) -> Result<(), Error> {
    if count > most { Err(Error::TooMuch { what, most }) } else { Ok(()) }
}
