//! Malicious files: each is rejected immediately and with little memory.

use std::io::Write;

use corbie_extract::{Error, Format, Limits, Options};
use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::archive::Archive;
use super::docx::{body, docx};
use super::pptx::{pptx, shape, slide};
use super::refused;
use super::xlsx::xlsx;

/// Compressed spaces.
fn blanks(megabytes: usize) -> Vec<u8> {
    let mut deflater = DeflateEncoder::new(Vec::new(), Compression::new(9));
    let chunk = vec![b' '; 1 << 20];
    for _ in 0..megabytes {
        deflater.write_all(&chunk).expect("memory takes everything");
    }
    deflater.finish().expect("memory takes everything")
}

fn limited(bytes: &[u8], format: Format, limits: Limits) -> Error {
    corbie_extract::document(bytes, format, &Options { limits, ..Options::default() }).expect_err("a limit is reached")
}

#[test]
fn a_part_that_inflates_without_end_is_stopped_whatever_it_says_of_itself() {
    let bytes = Archive::of("word/document.xml").packed("word/document.xml", &blanks(64), 10).bytes();
    assert!(bytes.len() < 100_000);
    assert_eq!(refused(&bytes, Format::Docx).kind(), "limit_exceeded");
    let most = Limits { part_bytes: 1 << 20, ..Limits::default() };
    assert_eq!(
        limited(&bytes, Format::Docx, most).to_string(),
        Error::TooMuch { what: "bytes in a part", most: 1 << 20 }.to_string()
    );
}

#[test]
fn parts_are_counted_together() {
    let packed = blanks(2);
    let names: Vec<String> = (0..40).map(|at| format!("media/{at}.png")).collect();
    let relations: Vec<_> = names.iter().map(|name| (name.as_str(), "image", name.as_str())).collect();
    let drawings =
        names.iter().map(|name| format!(r#"<w:p><w:r><a:blip r:embed="{name}"/></w:r></w:p>"#)).collect::<String>();
    let mut archive = docx(&drawings).relations("word/_rels/document.xml.rels", &relations);
    for name in &names {
        archive = archive.packed(&format!("word/{name}"), &packed, 1);
    }
    assert_eq!(refused(&archive.bytes(), Format::Docx).kind(), "limit_exceeded");
}

#[test]
fn too_many_parts_are_refused_before_any_is_read() {
    let mut archive = docx(&body("Text"));
    for at in 0..300 {
        archive = archive.stored(&format!("p{at}"), "");
    }
    let limits = Limits { entries: 200, ..Limits::default() };
    assert_eq!(limited(&archive.bytes(), Format::Docx, limits), Error::TooMuch { what: "parts", most: 200 });
}

#[test]
fn markup_may_not_be_nested_without_end() {
    for (open, close) in [("<w:sdt>", "</w:sdt>"), ("<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"), ("<x>", "</x>")] {
        let deep = open.repeat(20_000) + &close.repeat(20_000);
        assert_eq!(
            refused(&docx(&deep).bytes(), Format::Docx),
            Error::TooMuch { what: "levels of nested elements", most: 256 }
        );
    }
}

#[test]
fn a_document_type_is_refused() {
    let laughs = r#"<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>"#;
    let document = format!("{laughs}<w:document><w:body><w:p><w:r><w:t>&b;</w:t></w:r></w:p></w:body></w:document>");
    let bytes = Archive::of("word/document.xml").part("word/document.xml", document).bytes();
    assert_eq!(refused(&bytes, Format::Docx).kind(), "corrupted_file");
    let strings = format!("{laughs}<sst><si><t>&b;</t></si></sst>");
    let bytes = xlsx("").part("xl/strings.xml", strings).bytes();
    assert_eq!(refused(&bytes, Format::Xlsx).kind(), "corrupted_file");
    let bytes = pptx(&[format!("{laughs}{}", slide(&shape("", &["&b;"])))]).bytes();
    assert_eq!(refused(&bytes, Format::Pptx).kind(), "corrupted_file");
}

#[test]
fn shared_texts_cannot_be_multiplied() {
    let long = "x".repeat(30_000);
    let strings = format!(r#"<sst count="4294967295" uniqueCount="4294967295"><si><t>{long}</t></si></sst>"#);
    let row = format!("<row>{}</row>", r#"<c t="s"><v>0</v></c>"#.repeat(1000));
    let bytes = xlsx(&row.repeat(20)).part("xl/strings.xml", strings).bytes();
    assert_eq!(refused(&bytes, Format::Xlsx), Error::TooMuch { what: "characters of text", most: 50_000_000 });
    let limits = Limits { cells: 10, ..Limits::default() };
    assert_eq!(limited(&bytes, Format::Xlsx, limits), Error::TooMuch { what: "cells", most: 10 });
}

#[test]
fn the_unit_of_a_number_cannot_be_multiplied() {
    let unit = "m".repeat(100_000);
    let forms = format!(r#"<numFmts><numFmt numFmtId="164" formatCode="0&quot;{unit}&quot;"/></numFmts>"#);
    let styles = r#"<xf numFmtId="164"/>"#.repeat(300_000);
    let styles = format!("<styleSheet>{forms}<cellXfs>{styles}</cellXfs></styleSheet>");
    let bytes = xlsx(r#"<row><c s="299999"><v>5</v></c></row>"#).part("xl/styles.xml", styles).bytes();
    let limits = Limits { inflation: 10_000, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let document = corbie_extract::document(&bytes, Format::Xlsx, &options).expect("one number");
    assert_eq!(document.text().len(), "Data\n\n5".len() + 100_000);
}

#[test]
fn wide_cells_cannot_be_multiplied() {
    let cell = r#"<w:tc><w:tcPr><w:gridSpan w:val="4000000000"/></w:tcPr><w:p/></w:tc>"#;
    let table = format!("<w:tbl>{}</w:tbl>", format!("<w:tr>{}</w:tr>", cell.repeat(2)).repeat(100));
    let limits = Limits { cells: 5000, ..Limits::default() };
    let error = limited(&docx(&table).bytes(), Format::Docx, limits);
    assert_eq!(error, Error::TooMuch { what: "cells", most: 5000 });
}

#[test]
fn paragraphs_of_almost_nothing_are_not_kept_without_end() {
    let bytes = docx(&"<w:p/>".repeat(500_001)).bytes();
    let limits = Limits { inflation: 10_000, ..Limits::default() };
    let error = limited(&bytes, Format::Docx, limits);
    assert_eq!(error, Error::TooMuch { what: "paragraphs and tables", most: 500_000 });
}

#[test]
fn fields_that_never_end_do_not_slow_down_what_follows() {
    let begin = r#"<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r></w:p>"#.repeat(20_000);
    let document = super::read(&docx(&(begin + &body("Text"))).bytes(), Format::Docx);
    assert_eq!(super::outline(&document), ["paragraph: Text"]);
}

#[test]
fn headers_without_end_are_each_looked_at_once() {
    let header = |at: usize| format!("<w:hdr>{}</w:hdr>", body(&format!("Header {at:06}")));
    let headers = format!(r#"<x xmlns:w="w">{}</x>"#, (0..50_000).map(header).collect::<String>());
    let archive = docx(&body("Text"))
        .relations("word/_rels/document.xml.rels", &[("a", "header", "h.xml"), ("b", "header", "h.xml")])
        .part("word/h.xml", headers);
    assert_eq!(super::read(&archive.bytes(), Format::Docx).pages[0].blocks.len(), 50_001);
}

#[test]
fn a_long_heading_is_not_repeated_in_full() {
    let heading = format!(
        r#"<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>"#,
        "h".repeat(100_000)
    );
    let document = super::read(&docx(&(heading + &body("a").repeat(1000))).bytes(), Format::Docx);
    assert!(document.pages[0].blocks[1].path[0].len() <= 200);
}

#[test]
fn more_pages_and_pictures_than_allowed_are_not_handed_over() {
    let sheets = r#"<sheet name="a" r:id="s"/>"#.repeat(30);
    let book = format!(r#"<workbook xmlns:r="r"><sheets>{sheets}</sheets></workbook>"#);
    let bytes = Archive::of("xl/workbook.xml").part("xl/workbook.xml", book).bytes();
    let limits = Limits { pages: 20, ..Limits::default() };
    assert_eq!(limited(&bytes, Format::Xlsx, limits), Error::TooMuch { what: "sheets", most: 20 });
    let drawings = r#"<w:p><w:r><a:blip r:embed="a"/><a:blip r:embed="b"/></w:r></w:p>"#;
    let bytes = docx(drawings)
        .relations("word/_rels/document.xml.rels", &[("a", "image", "a.png"), ("b", "image", "b.png")])
        .stored("word/a.png", "a")
        .stored("word/b.png", "b")
        .bytes();
    let options = Options { limits: Limits { images: 1, ..Limits::default() }, ..Options::default() };
    let document = corbie_extract::document(&bytes, Format::Docx, &options).expect("only a picture is left out");
    assert_eq!((document.pages[0].images.len(), document.warnings.len()), (1, 1));
}

#[test]
fn the_bytes_of_pictures_are_kept_for_those_who_ask_and_not_without_end() {
    let drawings = r#"<w:p><w:r><a:blip r:embed="a"/><a:blip r:embed="b"/><a:blip r:embed="c"/></w:r></w:p>"#;
    let names = [("a", "image", "a.bmp"), ("b", "image", "b.bmp"), ("c", "image", "c.bmp")];
    let mut archive = docx(drawings).relations("word/_rels/document.xml.rels", &names);
    for (_, _, name) in names {
        archive = archive.stored(&format!("word/{name}"), vec![0; 16 << 20]);
    }
    let bytes = archive.bytes();
    let read = |pictures: bool, limits: Limits| {
        let options = Options { pictures, limits, ..Options::default() };
        let document = corbie_extract::document(&bytes, Format::Docx, &options)?;
        let kept: Vec<usize> = document.pages[0].images.iter().map(|image| image.bytes.len()).collect();
        Ok((kept, document.warnings.len()))
    };
    assert_eq!(read(false, Limits::default()), Ok((vec![0; 3], 0)));
    assert_eq!(read(true, Limits::default()), Ok((vec![16 << 20, 16 << 20, 0], 1)));
    let most = 20 << 20;
    let limits = Limits { inflated_bytes: most, ..Limits::default() };
    assert_eq!(read(false, limits.clone()), Ok((vec![0; 3], 0)));
    assert_eq!(read(true, limits), Err(Error::TooMuch { what: "bytes when decompressed", most }));
}

/// A file truncated anywhere, or with any byte changed, gives text or an error.
#[test]
fn a_damaged_file_gives_text_or_an_error() {
    let files = [
        (docx(&body("Some text")).bytes(), Format::Docx),
        (pptx(&[slide(&shape("", &["Some text"]))]).bytes(), Format::Pptx),
        (xlsx("<row><c><v>1</v></c><c><v>2</v></c></row>").bytes(), Format::Xlsx),
    ];
    for (bytes, format) in files {
        // The last two bytes are the comment length, which is not required.
        for end in 1..bytes.len() - 2 {
            assert!(corbie_extract::document(&bytes[..end], format, &Options::default()).is_err());
        }
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                let _ = corbie_extract::document(&changed, format, &Options::default());
            }
        }
    }
}
