//! Structured text extraction from documents.
//!
//! Extraction turns the bytes of a file into pages of blocks: headings, paragraphs, lists, tables. Files may be
//! hostile, so everything that a file can inflate has a [limit](Limits), and the readers never open external
//! references. The caller must bound memory and time: third-party parsers can still use too much of both.
//!
//! The readers deliver pages as they finish, so a caller that stops early keeps the pages so far.

pub mod chunk;
mod document;
mod docx;
mod encoding;
mod error;
mod format;
mod html;
mod image;
mod image_summary;
mod limits;
mod markdown;
mod ooxml;
mod outline;
mod pdf;
mod plain;
mod pptx;
mod sniff;
mod svg;
mod text_quality;
mod xlsx;

pub use document::{Block, BlockKind, Document, ExtractionMethod, Image, Metadata, Page, Raster, Table, Warning};
pub use error::Error;
pub use format::Format;
pub use image::{decode_embedded, decode_image};
pub use image_summary::summarize;
pub use limits::Limits;
pub use markdown::markdown;
pub use outline::outline;
pub use pdf::PdfPages;
#[cfg(feature = "pdfium")]
pub use pdf::pdfium::{Pdfium, PdfiumError as MissingPdfium};
pub use sniff::{is_older_office, resolve, sniff};
pub use svg::svg_raster;
pub use text_quality::{consists_of_words, is_legible};

use outline::OutlineSink;

/// Extraction options.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub limits: Limits,
    /// Extract the full HTML page instead of only its main content.
    pub full: bool,
    /// Include the bytes of embedded images, for OCR. Otherwise only their metadata is included.
    pub pictures: bool,
}

/// Receives pages while a file is read.
pub trait Sink {
    /// The page count, as soon as it is available.
    fn pages(&mut self, _count: u32) {}

    /// A finished page. Pages arrive in order.
    fn page(&mut self, page: Page);
}

/// The result for the whole file, after all pages.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Summary {
    pub metadata: Metadata,
    pub method: ExtractionMethod,
    pub warnings: Vec<Warning>,
}

/// Reads a file of a known format, page by page. Returns [`Error::NoText`] for a file without text and without images
/// for OCR.
pub fn read(bytes: &[u8], format: Format, options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let mut readable = ReadableSink { sink, any: false };
    let summary = match format {
        // These readers assign heading paths themselves: a note belongs to its reference, a slide to its title.
        Format::Pdf => pdf::read(bytes, options, &mut readable),
        Format::Docx => docx::read(bytes, options, &mut readable),
        Format::Pptx => pptx::read(bytes, options, &mut readable),
        Format::Xlsx => xlsx::read(bytes, options, &mut readable),
        Format::Html => html::read(bytes, options, &mut OutlineSink::new(&mut readable)),
        Format::Svg => svg::read(bytes, options, &mut readable),
        Format::Jpg | Format::Png => image::read(bytes, format, options, &mut readable),
        Format::Markdown | Format::Text | Format::Csv => {
            plain::read(bytes, format, options, &mut OutlineSink::new(&mut readable))
        }
    }?;
    // An image file has only pixels, and the caller may still run OCR on them.
    if !readable.any && summary.method != ExtractionMethod::ImageAnalysis {
        return Err(Error::NoText);
    }
    Ok(summary)
}

/// Forwards pages to another sink and records whether any page is readable, as text or by OCR.
struct ReadableSink<'a> {
    sink: &'a mut dyn Sink,
    any: bool,
}

impl Sink for ReadableSink<'_> {
    fn pages(&mut self, count: u32) {
        self.sink.pages(count);
    }

    fn page(&mut self, page: Page) {
        self.any |= page.scanned || !page.images.is_empty() || page.has_text();
        self.sink.page(page);
    }
}

/// Reads a whole file.
pub fn document(bytes: &[u8], format: Format, options: &Options) -> Result<Document, Error> {
    struct PageCollector(Vec<Page>);
    impl Sink for PageCollector {
        fn page(&mut self, page: Page) {
            self.0.push(page);
        }
    }
    let mut pages = PageCollector(Vec::new());
    let Summary { metadata, method, warnings } = read(bytes, format, options, &mut pages)?;
    Ok(Document { format, pages: pages.0, metadata, method, warnings })
}
