//! Page renderer: rasterizes pages and embedded images for OCR.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use corbie_extract::{Error, Format, Image, Limits, Page, PdfPages, Raster, decode_embedded, decode_image, svg_raster};

/// Renderer for one document.
pub(super) struct PageRenderer<'e> {
    bytes: &'e Arc<Vec<u8>>,
    format: Format,
    limits: &'e Limits,
    /// Opened when the first page is rendered.
    pdf: Option<PdfPages>,
}

/// Resolution for OCR in dots per inch: characters of 6 points are 17 pixels high.
const DPI: f32 = 200.0;
/// Longer side of A4 in points. Smaller pages are scaled up to this size, at most by the factor `CLOSEST`.
const A4_LENGTH_POINTS: f32 = 842.0;
const MAX_MAGNIFICATION: f32 = 8.0;
/// Maximum number of pixels of a rendered page: A3 at this resolution.
const MAX_PAGE_PIXELS: u64 = 16_000_000;
/// Minimum size of an image for OCR. Smaller ones contain no useful text.
const MIN_IMAGE_SIZE: (u32, u32) = (64, 16);

impl<'e> PageRenderer<'e> {
    pub(super) fn new(bytes: &'e Arc<Vec<u8>>, format: Format, limits: &'e Limits) -> PageRenderer<'e> {
        PageRenderer { bytes, format, limits, pdf: None }
    }

    /// Whether the last rendered page lacks an image that could not be decoded.
    pub(super) fn has_undecoded_image(&self) -> bool {
        self.pdf.as_ref().is_some_and(PdfPages::has_undecoded_image)
    }

    /// Renders a whole page, for formats that support it.
    pub(super) fn render_page(&mut self, number: u32) -> Result<Raster, Error> {
        match self.format {
            Format::Pdf => {
                let limits = Limits { pixels: self.limits.pixels.min(MAX_PAGE_PIXELS), ..self.limits.clone() };
                let pdf = self.pdf()?;
                // A small page may contain an image of high resolution.
                let closer =
                    pdf.length(number).map_or(1.0, |length| (A4_LENGTH_POINTS / length).clamp(1.0, MAX_MAGNIFICATION));
                pdf.raster(number, DPI * closer, &limits)
            }
            Format::Svg => catch_decoder_panic(|| svg_raster(self.bytes, self.limits)),
            format => catch_decoder_panic(|| decode_image(self.bytes, format, self.limits)),
        }
    }

    /// Decodes the images on a page and passes each with its index. Frees their bytes.
    pub(super) fn render_images(&mut self, page: &mut Page, each: &mut dyn FnMut(usize, Result<Raster, Error>)) {
        if self.format == Format::Pdf && !page.images.is_empty() {
            let limits = self.limits;
            let drawn = self.pdf().and_then(|pdf| pdf.pictures(page, limits, each));
            if let Err(error) = drawn {
                each(0, Err(error));
            }
        }
        for (index, image) in page.images.iter_mut().enumerate() {
            if !image.bytes.is_empty() && !is_small(image) {
                each(index, catch_decoder_panic(|| decode_embedded(image, self.limits)));
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

/// By the declared size, if any.
fn is_small(image: &Image) -> bool {
    image.width > 0 && (image.width < MIN_IMAGE_SIZE.0 || image.height < MIN_IMAGE_SIZE.1)
}

/// Catches a panic of the decoder, so that only this image fails.
fn catch_decoder_panic(draw: impl FnOnce() -> Result<Raster, Error>) -> Result<Raster, Error> {
    let drawn = catch_unwind(AssertUnwindSafe(draw));
    drawn.unwrap_or_else(|_| Err(Error::Corrupted("decoding failed unexpectedly".into())))
}
