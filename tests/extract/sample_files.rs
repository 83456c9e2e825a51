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
    pptx_with_slides(&[(None, SAMPLE_TEXT)])
}

/// A slide for each title and text.
pub(crate) fn pptx_with_slides(slides: &[(Option<&str>, &str)]) -> Vec<u8> {
    let names = r#"xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;
    let shape = |properties: &str, words: &str| {
        format!("<p:sp>{properties}<p:txBody><a:p><a:r><a:t>{words}</a:t></a:r></a:p></p:txBody></p:sp>")
    };
    let title = r#"<p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr>"#;
    let ids: String = (1..=slides.len()).map(|at| format!(r#"<p:sldId id="{}" r:id="rId{at}"/>"#, 255 + at)).collect();
    let deck = format!("{HEAD}<p:presentation {names}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>");
    let relations: Vec<(String, String)> =
        (1..=slides.len()).map(|at| (format!("rId{at}"), format!("slides/slide{at}.xml"))).collect();
    let relations: Vec<(&str, &str, &str)> =
        relations.iter().map(|(id, target)| (id.as_str(), "slide", target.as_str())).collect();
    let mut archive = Archive::of("ppt/presentation.xml")
        .part("ppt/presentation.xml", deck)
        .relations("ppt/_rels/presentation.xml.rels", &relations);
    for (at, (name, words)) in (1..).zip(slides) {
        let shapes = name.map(|name| shape(title, name)).unwrap_or_default() + &shape("", words);
        let slide = format!("{HEAD}<p:sld {names}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>");
        archive = archive.part(&format!("ppt/slides/slide{at}.xml"), slide);
    }
    archive.bytes()
}

pub(crate) fn xlsx() -> Vec<u8> {
    xlsx_with_rows(&format!(r#"<row r="1">{}</row>"#, cell(SAMPLE_TEXT)))
}

fn cell(words: &str) -> String {
    format!(r#"<c r="A1" t="inlineStr"><is><t>{words}</t></is></c>"#)
}

/// One sheet with these rows.
pub(crate) fn xlsx_with_rows(rows: &str) -> Vec<u8> {
    book_with_rows(&[("Birds", rows.to_owned())])
}

/// A sheet with one cell for each name and text.
pub(crate) fn xlsx_with_sheets(sheets: &[(&str, &str)]) -> Vec<u8> {
    let rows: Vec<(&str, String)> =
        sheets.iter().map(|(name, words)| (*name, format!(r#"<row r="1">{}</row>"#, cell(words)))).collect();
    book_with_rows(&rows)
}

fn book_with_rows(sheets: &[(&str, String)]) -> Vec<u8> {
    let names = r#"xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;
    let list: String = (1..)
        .zip(sheets)
        .map(|(at, (name, _))| format!(r#"<sheet name="{name}" sheetId="{at}" r:id="rId{at}"/>"#))
        .collect();
    let relations: Vec<(String, String)> =
        (1..=sheets.len()).map(|at| (format!("rId{at}"), format!("worksheets/sheet{at}.xml"))).collect();
    let relations: Vec<(&str, &str, &str)> =
        relations.iter().map(|(id, target)| (id.as_str(), "worksheet", target.as_str())).collect();
    let mut archive = Archive::of("xl/workbook.xml")
        .part("xl/workbook.xml", format!("{HEAD}<workbook {names}><sheets>{list}</sheets></workbook>"))
        .relations("xl/_rels/workbook.xml.rels", &relations);
    for (at, (_, rows)) in (1..).zip(sheets) {
        let sheet = format!("{HEAD}<worksheet {names}><sheetData>{rows}</sheetData></worksheet>");
        archive = archive.part(&format!("xl/worksheets/sheet{at}.xml"), sheet);
    }
    archive.bytes()
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
