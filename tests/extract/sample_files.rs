//! Small files of every format, each with the words `a crow in the snow`.

use crate::archive::{Archive, HEAD};
use crate::pdf_builder::{Builder, text};

pub(crate) const SAMPLE_TEXT: &str = "a crow in the snow";

pub(crate) fn pdf() -> Vec<u8> {
    pdf_with_pages(&[SAMPLE_TEXT])
}

/// A page for each text.
pub(crate) fn pdf_with_pages(texts: &[&str]) -> Vec<u8> {
    let mut builder = Builder::new();
    for words in texts {
        builder.page(&text("F1", 12, 72, 700, words));
    }
    builder.build()
}

pub(crate) fn docx() -> Vec<u8> {
    docx_with_body(&format!("<w:p><w:r><w:t>{SAMPLE_TEXT}</w:t></w:r></w:p>"))
}

/// A document with this body.
pub(crate) fn docx_with_body(body: &str) -> Vec<u8> {
    let word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    Archive::of("word/document.xml")
        .part(
            "word/document.xml",
            format!(r#"{HEAD}<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>"#),
        )
        .bytes()
}

pub(crate) fn pptx() -> Vec<u8> {
    let names = r#"xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;
    let slide = format!(
        "{HEAD}<p:sld {names}><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>{SAMPLE_TEXT}</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
    );
    let deck = format!(
        r#"{HEAD}<p:presentation {names}><p:sldIdLst><p:sldId id="256" r:id="rId1"/></p:sldIdLst></p:presentation>"#
    );
    Archive::of("ppt/presentation.xml")
        .part("ppt/presentation.xml", deck)
        .relations("ppt/_rels/presentation.xml.rels", &[("rId1", "slide", "slides/slide1.xml")])
        .part("ppt/slides/slide1.xml", slide)
        .bytes()
}

pub(crate) fn xlsx() -> Vec<u8> {
    xlsx_with_rows(&format!(r#"<row r="1"><c r="A1" t="inlineStr"><is><t>{SAMPLE_TEXT}</t></is></c></row>"#))
}

/// One sheet with these rows.
pub(crate) fn xlsx_with_rows(rows: &str) -> Vec<u8> {
    let names = r#"xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;
    let book =
        format!(r#"{HEAD}<workbook {names}><sheets><sheet name="Birds" sheetId="1" r:id="rId1"/></sheets></workbook>"#);
    Archive::of("xl/workbook.xml")
        .part("xl/workbook.xml", book)
        .relations("xl/_rels/workbook.xml.rels", &[("rId1", "worksheet", "worksheets/sheet1.xml")])
        .part("xl/worksheets/sheet1.xml", format!("{HEAD}<worksheet {names}><sheetData>{rows}</sheetData></worksheet>"))
        .bytes()
}

pub(crate) fn html() -> Vec<u8> {
    format!("<!doctype html><title>Birds</title><script>var hidden = 1</script><h1>Winter</h1><p>{SAMPLE_TEXT}</p>")
        .into()
}

pub(crate) fn svg() -> Vec<u8> {
    format!(r#"<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><text x="5" y="20">{SAMPLE_TEXT}</text></svg>"#)
        .into()
}

/// A picture without words.
pub(crate) fn png() -> Vec<u8> {
    solid_image(image::ImageFormat::Png)
}

pub(crate) fn jpg() -> Vec<u8> {
    solid_image(image::ImageFormat::Jpeg)
}

fn solid_image(format: image::ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbImage::from_pixel(8, 6, image::Rgb([200, 20, 20])).write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}
