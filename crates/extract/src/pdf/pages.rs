//! An open PDF file for rendering pages and decoding images (OCR input).

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings};
use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::page::Page as Source;
use hayro_interpret::{InterpreterCache, InterpreterSettings, InterpreterWarning};

use super::image_device::ImageDevice;
use super::{REOPEN_INTERVAL, bounds, catch_panic, corrupted, draw, interpreter_settings, open};
use crate::{Error, Limits, Page, Raster};

/// Points per inch.
const POINTS_PER_INCH: f32 = 72.0;
/// The renderer uses 16-bit pixel coordinates.
const MAX_RASTER_SIDE: f32 = 16_000.0;

/// Renders the pages of an open file.
pub struct PdfPages {
    bytes: Arc<Vec<u8>>,
    pdf: Pdf,
    /// Number of pages processed since the file was opened.
    seen: usize,
    /// Whether decoding an image on the last rendered page failed.
    undecoded: Arc<AtomicBool>,
}

// === impl ===

impl PdfPages {
    pub fn open(bytes: impl Into<Arc<Vec<u8>>>) -> Result<PdfPages, Error> {
        let bytes = bytes.into();
        let pdf = catch_panic(|| open(Arc::clone(&bytes))).ok_or_else(corrupted)??;
        Ok(PdfPages { bytes, pdf, seen: 0, undecoded: Arc::default() })
    }

    /// The longer side of a page in points. Pages are numbered from 1.
    pub fn length(&self, number: u32) -> Option<f32> {
        let page = self.pdf.pages().get((number as usize).checked_sub(1)?)?;
        let (width, height) = page.render_dimensions();
        Some(width.max(height))
    }

    /// Renders a page, numbered from 1, at this resolution. If it exceeds the pixel limit, the resolution is reduced.
    pub fn raster(&mut self, number: u32, dpi: f32, limits: &Limits) -> Result<Raster, Error> {
        self.undecoded.store(false, Relaxed);
        let undecoded = Arc::clone(&self.undecoded);
        let warning_sink = Arc::new(move |warning| {
            undecoded.fetch_or(matches!(warning, InterpreterWarning::ImageDecodeFailure), Relaxed);
        });
        let settings = InterpreterSettings { warning_sink, ..interpreter_settings() };
        self.with_page(number, |source| drawn(source, number, dpi, limits, &settings))?
    }

    /// Whether the last rendered page lacks an image that could not be decoded.
    pub fn has_undecoded_image(&self) -> bool {
        self.undecoded.load(Relaxed)
    }

    /// Decodes the images listed on a page and passes each with its index, oriented as displayed. An image that cannot
    /// be decoded or is too large is passed as an error.
    pub fn pictures(
        &mut self,
        page: &Page,
        limits: &Limits,
        each: &mut dyn FnMut(usize, Result<Raster, Error>),
    ) -> Result<(), Error> {
        if page.images.is_empty() {
            return Ok(());
        }
        let mut decoder = ImageDevice::new(page, limits, each);
        let looked = self.with_page(page.number, |source| {
            draw(source, bounds(source), &InterpreterCache::new(), &interpreter_settings(), &mut decoder);
        });
        // A panic of the callback is not a parser panic and is propagated.
        match decoder.panicked {
            Some(panic) => resume_unwind(panic),
            None if decoder.is_done() => Ok(()),
            None => looked,
        }
    }

    /// Processes a page. Reopens the file after many pages, because decoded data is cached, and after a parser panic,
    /// which may leave inconsistent state.
    fn with_page<T>(&mut self, number: u32, work: impl for<'s> FnOnce(&'s Source<'s>) -> T) -> Result<T, Error> {
        if self.seen >= REOPEN_INTERVAL {
            *self = PdfPages::open(Arc::clone(&self.bytes))?;
        }
        self.seen += 1;
        let looked = catch_panic(|| {
            let index = (number as usize).checked_sub(1);
            index.and_then(|index| self.pdf.pages().get(index)).map(work)
        });
        let Some(looked) = looked else {
            self.seen = REOPEN_INTERVAL;
            return Err(Error::Corrupted(format!("page {number} cannot be rendered")));
        };
        looked.ok_or_else(|| Error::Corrupted(format!("it has no page {number}")))
    }
}

impl fmt::Debug for PdfPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PdfPages").field("bytes", &self.bytes.len()).field("seen", &self.seen).finish_non_exhaustive()
    }
}

fn drawn<'s>(
    source: &'s Source<'s>,
    number: u32,
    dpi: f32,
    limits: &Limits,
    settings: &InterpreterSettings,
) -> Result<Raster, Error> {
    let (width, height) = source.render_dimensions();
    let area = f64::from(width) * f64::from(height);
    let fits = (limits.pixels as f64 / area).sqrt() as f32;
    let scale = (dpi / POINTS_PER_INCH).min(fits).min(MAX_RASTER_SIDE / width.max(height)).max(1.0 / width.min(height));
    // The page is so thin that one pixel across exceeds the maximum length along: the renderer would panic on overflow.
    if scale * width.max(height) > MAX_RASTER_SIDE + 1.0 {
        return Err(Error::Corrupted(format!("page {number} is too narrow to render")));
    }
    let pixmap = hayro::render(
        source,
        &RenderCache::new(),
        settings,
        &RenderSettings::default(),
        &PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE },
    );
    // The background is opaque, so no unpremultiplication is needed.
    let dots = pixmap.data_as_u8_slice();
    let mut rgb = vec![0; dots.len() / 4 * 3];
    for (dot, colours) in dots.chunks_exact(4).zip(rgb.chunks_exact_mut(3)) {
        colours.copy_from_slice(&dot[..3]);
    }
    Ok(Raster { width: u32::from(pixmap.width()), height: u32::from(pixmap.height()), rgb })
}
