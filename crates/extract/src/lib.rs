//! Text with its structure out of documents.
//!
//! The bytes of a file become pages of blocks: headings, paragraphs, lists, tables. Files may be hostile, so everything
//! they can make grow has a [limit](Limits), and nothing they name outside themselves is ever opened. Memory and time are
//! bounded by whoever calls this: parsers of others can still take too much of both.
//!
//! Pages are handed over as they are done, so that a caller who ends the work early keeps those.

mod about;
pub mod chunk;
mod document;
mod docx;
mod encoding;
mod error;
mod format;
mod html;
mod legible;
mod limits;
mod markdown;
mod ooxml;
mod outline;
mod pdf;
mod picture;
mod plain;
mod pptx;
mod sniff;
mod svg;
mod xlsx;

pub use about::about;
pub use document::{Block, Document, Image, Kind, Metadata, Method, Page, Raster, Table, Warning};
pub use error::Error;
pub use format::Format;
pub use legible::{is_legible, is_made_of_words};
pub use limits::Limits;
pub use markdown::markdown;
pub use outline::outline;
pub use pdf::PdfPages;
#[cfg(feature = "pdfium")]
pub use pdf::pdfium::{Missing as MissingPdfium, Pdfium};
pub use picture::{embedded_raster, picture_raster};
pub use sniff::{is_older_office, resolve, sniff};
pub use svg::svg_raster;

use outline::Outline;

/// What is wanted of a file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub limits: Limits,
    /// Everything an HTML page says, and not only its main part.
    pub full: bool,
    /// The bytes of pictures inside documents, for those who look for words in them. Else only what they are is told.
    pub pictures: bool,
}

/// What is told while a file is read.
pub trait Sink {
    /// How many pages there are, as soon as that is known.
    fn pages(&mut self, _count: u32) {}

    /// A page is done. They come in order.
    fn page(&mut self, page: Page);
}

/// What is known of a file once all pages are done.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Summary {
    pub metadata: Metadata,
    pub method: Method,
    pub warnings: Vec<Warning>,
}

/// Reads a file of a known format, page by page. A file that says nothing, and shows nothing that may be read as a picture,
/// is [`Error::NoText`].
pub fn read(bytes: &[u8], format: Format, options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let mut readable = Readable { sink, any: false };
    let summary = match format {
        // These say themselves what stands under which heading: a note, where it is referred to; a slide, its own title.
        Format::Pdf => pdf::read(bytes, options, &mut readable),
        Format::Docx => docx::read(bytes, options, &mut readable),
        Format::Pptx => pptx::read(bytes, options, &mut readable),
        Format::Xlsx => xlsx::read(bytes, options, &mut readable),
        Format::Html => html::read(bytes, options, &mut Outline::new(&mut readable)),
        Format::Svg => svg::read(bytes, options, &mut readable),
        Format::Jpg | Format::Png => picture::read(bytes, format, options, &mut readable),
        Format::Markdown | Format::Text | Format::Csv => {
            plain::read(bytes, format, options, &mut Outline::new(&mut readable))
        }
    }?;
    // A picture is all dots, and whoever asked for it may still find words in them.
    if !readable.any && summary.method != Method::ImageAnalysis {
        return Err(Error::NoText);
    }
    Ok(summary)
}

/// Sees whether any page can be read, as text or as a picture, on its way to another sink.
struct Readable<'a> {
    sink: &'a mut dyn Sink,
    any: bool,
}

impl Sink for Readable<'_> {
    fn pages(&mut self, count: u32) {
        self.sink.pages(count);
    }

    fn page(&mut self, page: Page) {
        self.any |= page.scanned || !page.images.is_empty() || page.says_something();
        self.sink.page(page);
    }
}

/// Reads a whole file.
pub fn document(bytes: &[u8], format: Format, options: &Options) -> Result<Document, Error> {
    struct Pages(Vec<Page>);
    impl Sink for Pages {
        fn page(&mut self, page: Page) {
            self.0.push(page);
        }
    }
    let mut pages = Pages(Vec::new());
    let Summary { metadata, method, warnings } = read(bytes, format, options, &mut pages)?;
    Ok(Document { format, pages: pages.0, metadata, method, warnings })
}
