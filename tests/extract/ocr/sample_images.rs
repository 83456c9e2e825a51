//! Pictures of text, and documents that contain them.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageFormat};

use crate::archive::{Archive, HEAD};
use crate::page::{SANS, TestPage};
use crate::pdf_builder::{Builder, lines};

/// The text in the pictures.
pub(crate) const IMAGE_TEXT: &str =
    "Seventeen crows sat on the frozen fence and waited for the farmer to bring the grain";
/// Enough text for a page to need no OCR.
pub(crate) const TEXT_LAYER: [&str; 3] = [
    "The minutes of the meeting were read and found to be correct by all who were there.",
    "It was agreed that the bridge would be painted before the end of the coming summer.",
    "The treasurer said that there was money enough for paint, brushes and a small ladder.",
];

/// A page of a generated file.
pub(crate) enum PageContent<'a> {
    Text(&'a [&'a str]),
    /// A picture that fills most of the page.
    Scan(&'a str),
    /// Text and a picture below it.
    Both(&'a [&'a str], &'a str),
    /// A picture over the whole page, and invisible text.
    Layer(&'a [&'a str], &'a str),
    Blank,
}

/// A few lines of text on white.
pub(crate) fn render_text(text: &str) -> TestPage {
    let mut page = TestPage::blank(1000, 300);
    page.text(SANS, 28.0, 60.0, 940.0, 60.0, text);
    page
}

pub(crate) fn png(page: &TestPage) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let (width, height) = (page.width as u32, page.height as u32);
    let gray = image::GrayImage::from_raw(width, height, page.gray.clone()).unwrap();
    gray.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

pub(crate) fn jpeg(page: &TestPage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (width, height) = (page.width as u32, page.height as u32);
    JpegEncoder::new_with_quality(&mut bytes, 80)
        .write_image(&page.gray, width, height, ExtendedColorType::L8)
        .unwrap();
    bytes
}

/// A PDF file with these pages.
pub(crate) fn pdf(pages: &[PageContent<'_>]) -> Vec<u8> {
    let mut builder = Builder::new();
    for page in pages {
        let (content, picture) = match page {
            PageContent::Text(text) => (lines(72, 700, text), None),
            PageContent::Blank => (String::new(), None),
            PageContent::Scan(says) => ("q 560 0 0 168 20 500 cm /Im Do Q".to_owned(), Some(says)),
            PageContent::Both(text, says) => {
                (format!("{} q 400 0 0 120 100 100 cm /Im Do Q", lines(72, 700, text)), Some(says))
            }
            PageContent::Layer(text, says) => {
                (format!("q 560 0 0 168 20 500 cm /Im Do Q 3 Tr {}", lines(30, 650, text)), Some(says))
            }
        };
        let picture = picture.map(|says| {
            let drawn = render_text(says);
            let entries = format!(
                "/Type /XObject /Subtype /Image /Width {} /Height {} /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode",
                drawn.width, drawn.height
            );
            builder.stream(&entries, &jpeg(&drawn))
        });
        let picture = picture.map(|picture| format!("/XObject << /Im {picture} 0 R >>")).unwrap_or_default();
        let resources = format!("/Resources << /Font << /F1 3 0 R >> {picture} >>");
        builder.page_with(content.as_bytes(), &resources);
    }
    builder.build()
}

const WORD_NAMESPACES: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;

/// A letter with a picture between two paragraphs.
pub(crate) fn docx(picture: &[u8]) -> Vec<u8> {
    let paragraph = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
    let drawing = r#"<w:p><w:r><w:drawing><a:graphic><a:graphicData><a:blip r:embed="rId7"/></a:graphicData></a:graphic></w:drawing></w:r></w:p>"#;
    let body = format!("{}{drawing}{}", paragraph("Above the picture."), paragraph("Below the picture."));
    Archive::of("word/document.xml")
        .part("word/document.xml", format!("{HEAD}<w:document {WORD_NAMESPACES}><w:body>{body}</w:body></w:document>"))
        .relations("word/_rels/document.xml.rels", &[("rId7", "image", "media/image1.png")])
        .part("word/media/image1.png", picture)
        .bytes()
}

/// A slide with a title and a picture.
pub(crate) fn pptx(picture: &[u8]) -> Vec<u8> {
    let names = r#"xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;
    let slide = format!(
        r#"{HEAD}<p:sld {names}><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>On the slide</a:t></a:r></a:p></p:txBody></p:sp><p:pic><p:blipFill><a:blip r:embed="rId1"/></p:blipFill></p:pic></p:spTree></p:cSld></p:sld>"#
    );
    let deck = format!(
        r#"{HEAD}<p:presentation {names}><p:sldIdLst><p:sldId id="256" r:id="rId1"/></p:sldIdLst></p:presentation>"#
    );
    Archive::of("ppt/presentation.xml")
        .part("ppt/presentation.xml", deck)
        .relations("ppt/_rels/presentation.xml.rels", &[("rId1", "slide", "slides/slide1.xml")])
        .part("ppt/slides/slide1.xml", slide)
        .relations("ppt/slides/_rels/slide1.xml.rels", &[("rId1", "image", "../media/image1.png")])
        .part("ppt/media/image1.png", picture)
        .bytes()
}
