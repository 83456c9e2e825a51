//! What a document shows, drawn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use corbie_extract::{
    Error, Format, Image, Limits, Page, PdfPages, Raster, embedded_raster, picture_raster, svg_raster,
};

/// Draws the pages of one document and the pictures on them.
pub(super) struct Easel<'e> {
    bytes: &'e Arc<Vec<u8>>,
    format: Format,
    limits: &'e Limits,
    /// Opened when the first page is drawn.
    pdf: Option<PdfPages>,
}

/// Dots per inch of a page that is drawn to be read: letters of 6 points are 17 dots high.
const DPI: f32 = 200.0;
/// The longer side of a sheet of A4, in points. Smaller pages are drawn as large as this one, if that is not too close.
const SHEET: f32 = 842.0;
const CLOSEST: f32 = 8.0;
/// The largest page that is drawn, in dots: A3 has as many at this resolution.
const PAGE_DOTS: u64 = 16_000_000;
/// Pictures smaller than this hold no words anybody would look for.
const SMALLEST: (u32, u32) = (64, 16);

impl<'e> Easel<'e> {
    pub(super) fn new(bytes: &'e Arc<Vec<u8>>, format: Format, limits: &'e Limits) -> Easel<'e> {
        Easel { bytes, format, limits, pdf: None }
    }

    /// Whether the page drawn last lacks a picture that could not be decoded.
    pub(super) fn lacks_a_picture(&self) -> bool {
        self.pdf.as_ref().is_some_and(PdfPages::lacks_a_picture)
    }

    /// All of a page, of those formats whose pages can be drawn.
    pub(super) fn page(&mut self, number: u32) -> Result<Raster, Error> {
        match self.format {
            Format::Pdf => {
                let limits = Limits { pixels: self.limits.pixels.min(PAGE_DOTS), ..self.limits.clone() };
                let pdf = self.pdf()?;
                // The dots of a picture on a small page may stand close together.
                let closer = pdf.length(number).map_or(1.0, |length| (SHEET / length).clamp(1.0, CLOSEST));
                pdf.raster(number, DPI * closer, &limits)
            }
            Format::Svg => shielded(|| svg_raster(self.bytes, self.limits)),
            format => shielded(|| picture_raster(self.bytes, format, self.limits)),
        }
    }

    /// The pictures on a page, each with its index among them. Their bytes are not needed any more.
    pub(super) fn pictures(&mut self, page: &mut Page, each: &mut dyn FnMut(usize, Result<Raster, Error>)) {
        if self.format == Format::Pdf && !page.images.is_empty() {
            let limits = self.limits;
            let drawn = self.pdf().and_then(|pdf| pdf.pictures(page, limits, each));
            if let Err(error) = drawn {
                each(0, Err(error));
            }
        }
        for (index, image) in page.images.iter_mut().enumerate() {
            if !image.bytes.is_empty() && !is_small(image) {
                each(index, shielded(|| embedded_raster(image, self.limits)));
            }
            image.bytes = Vec::new();
        }
    }

    fn pdf(&mut self) -> Result<&mut PdfPages, Error> {
        match &mut self.pdf {
            Some(pdf) => Ok(pdf),
            none => Ok(none.insert(PdfPages::open(Arc::clone(self.bytes))?)),
        }
    }
}

/// By what the picture says of itself, if it does.
fn is_small(image: &Image) -> bool {
    image.width > 0 && (image.width < SMALLEST.0 || image.height < SMALLEST.1)
}

/// A picture that breaks its decoder fails alone.
fn shielded(draw: impl FnOnce() -> Result<Raster, Error>) -> Result<Raster, Error> {
    let drawn = catch_unwind(AssertUnwindSafe(draw));
    drawn.unwrap_or_else(|_| Err(Error::Corrupted("decoding it failed in a way nobody expected".into())))
}
