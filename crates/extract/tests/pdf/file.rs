//! File-level tests: annotations, metadata, passwords, corruption and limits.

use corbie_extract::{BlockKind, Error, Format, Limits, Options, PdfPages, document};

use crate::pdf_builder::{Builder, text};
use crate::read;

#[test]
fn fields_and_comments_are_read() {
    let mut builder = Builder::new();
    let field = builder.object("<< /Subtype /Widget /FT /Tx /TU (Your name) /V (Ada) /Rect [0 0 9 9] >>");
    let empty = builder.object("<< /Subtype /Widget /FT /Tx /T (other) /Rect [0 0 9 9] >>");
    let comment = builder.object("<< /Subtype /Text /Contents (\\376\\377\\000O\\000k) /Rect [0 0 9 9] >>");
    let annotations = format!("/Annots [{field} 0 R {empty} 0 R {comment} 0 R]");
    builder.page_with(text("F1", 10, 60, 700, "A form").as_bytes(), &annotations);
    let page = read(builder).pages.remove(0);
    let blocks: Vec<(&BlockKind, &str)> = page.blocks.iter().map(|block| (&block.kind, block.text.as_str())).collect();
    assert_eq!(
        blocks,
        [(&BlockKind::Paragraph, "A form"), (&BlockKind::Field, "Your name: Ada"), (&BlockKind::Comment, "Ok")]
    );
}

#[test]
fn metadata_are_read() {
    let mut builder = Builder::new();
    builder.page(&text("F1", 10, 60, 700, "Words"));
    let info =
        builder.object("<< /Title (\\376\\377\\000H\\000i) /Author (Ada) /CreationDate (D:20240131120000+01'00') >>");
    builder.trailer(&format!("/Info {info} 0 R"));
    builder.catalog("/Lang (en-GB)");
    let metadata = read(builder).metadata;
    assert_eq!(metadata.title.as_deref(), Some("Hi"));
    assert_eq!(metadata.author.as_deref(), Some("Ada"));
    assert_eq!(metadata.language.as_deref(), Some("en-GB"));
    assert_eq!(metadata.created.as_deref(), Some("2024-01-31T12:00:00+01:00"));
}

#[test]
fn a_page_of_pictures_asks_to_be_read_as_a_picture() {
    let mut builder = Builder::new();
    let image = "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8";
    let image = builder.stream(image, b"\x7f");
    builder.page_with(b"q 600 0 0 800 0 0 cm /I Do Q", &format!("/Resources << /XObject << /I {image} 0 R >> >>"));
    builder.page(&text("F1", 10, 60, 700, "Words"));
    let pages = read(builder).pages;
    assert_eq!([pages[0].scanned, pages[1].scanned], [true, false]);
}

#[test]
fn letters_that_do_not_tell_what_they_say_ask_to_be_read_as_a_picture() {
    let mut builder = Builder::new();
    let map = "begincmap 1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfchar <61> <E001> endbfchar endcmap";
    let map = builder.stream("", map.as_bytes());
    let font = builder.object(&format!("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode {map} 0 R >>"));
    builder.page_with(b"BT /F9 10 Tf 72 700 Td (a) Tj ET", &format!("/Resources << /Font << /F9 {font} 0 R >> >>"));
    assert!(read(builder).pages[0].scanned);
}

#[test]
fn a_file_that_says_and_shows_nothing_is_an_error() {
    let mut builder = Builder::new();
    builder.page("100 100 200 200 re f");
    assert_eq!(document(&builder.build(), Format::Pdf, &Options::default()), Err(Error::NoText));
    let none = document(&Builder::new().build(), Format::Pdf, &Options::default());
    assert!(matches!(none, Err(Error::Corrupted(_))));
    assert_eq!(document(b" \n", Format::Text, &Options::default()), Err(Error::NoText));
}

#[test]
fn a_page_can_be_drawn() {
    let mut builder = Builder::new();
    builder.page("0 0 0 rg 0 400 600 400 re f");
    let mut pages = PdfPages::open(builder.build()).expect("it opens");
    let raster = pages.raster(1, 36.0, &Limits::default()).expect("a picture");
    assert_eq!((raster.width, raster.height, raster.rgb.len()), (300, 400, 300 * 400 * 3));
    assert_eq!((raster.rgb[0], raster.rgb[raster.rgb.len() - 1]), (0, 255));
    let small = pages.raster(1, 300.0, &Limits { pixels: 10_000, ..Limits::default() }).expect("a picture");
    assert!(small.width * small.height <= 10_000);
    assert!(matches!(pages.raster(2, 36.0, &Limits::default()), Err(Error::Corrupted(_))));
}

#[test]
fn a_page_too_thin_for_the_renderer_says_so() {
    let mut builder = Builder::new();
    builder.page_with(b"", "/MediaBox [0 0 1 100000]");
    let drawn = PdfPages::open(builder.build()).expect("it opens").raster(1, 36.0, &Limits::default());
    assert_eq!(drawn, Err(Error::Corrupted("page 1 is too narrow to render".to_owned())));
}

#[test]
fn limits_are_kept() {
    let mut builder = Builder::new();
    builder.page(&text("F1", 10, 60, 700, "Seven words are too many for this"));
    builder.page("");
    let file = builder.build();
    let read = |limits: Limits| document(&file, Format::Pdf, &Options { limits, ..Options::default() });
    assert_eq!(read(Limits { pages: 1, ..Limits::default() }), Err(Error::TooMuch { what: "pages", most: 1 }));
    let few = Limits { characters: 10, ..Limits::default() };
    assert_eq!(read(few), Err(Error::TooMuch { what: "characters", most: 10 }));
}

#[test]
fn a_comment_counts_as_often_as_it_is_laid_over_a_page() {
    let mut builder = Builder::new();
    let comment = builder.object("<< /Subtype /Text /Contents (Four words said again) /Rect [0 0 9 9] >>");
    let choices = builder.object(&format!("<< /Subtype /Widget /V [{}] /Rect [0 0 9 9] >>", "(some words) ".repeat(9)));
    builder.page_with(b"", &format!("/Annots [{}]", format!("{comment} 0 R ").repeat(9)));
    builder.page_with(b"", &format!("/Annots [{choices} 0 R]"));
    let file = builder.build();
    for characters in [100, 250] {
        let limits = Limits { characters, ..Limits::default() };
        let refused = document(&file, Format::Pdf, &Options { limits, ..Options::default() });
        assert_eq!(refused, Err(Error::TooMuch { what: "characters", most: characters }));
    }
    assert!(document(&file, Format::Pdf, &Options::default()).is_ok());
}

/// A file encrypted with 40-bit RC4: owner hash, user hash, and page content.
fn encrypted(owner: &str, user: &str, content: &str) -> Vec<u8> {
    let bytes = |hex: &str| -> Vec<u8> {
        hex.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("two digits"))
            .collect()
    };
    let mut builder = Builder::bare();
    builder.object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    builder.page_with(&bytes(content), "/Resources << /Font << /F1 3 0 R >> >>");
    builder.trailer(&format!(
        "/Encrypt << /Filter /Standard /V 1 /R 2 /O <{owner}> /U <{user}> /P -4 >> \
         /ID [<000102030405060708090a0b0c0d0e0f> <000102030405060708090a0b0c0d0e0f>]"
    ));
    builder.build()
}

#[test]
fn a_file_with_an_empty_password_opens() {
    let file = encrypted(
        "c92422687facee686e373f10b5c7d04738053152f7e2ee30e11c69ec442576ab",
        "19794f9d50ebc9182f8a72bb20274501272fe2bee8bbe219d98cb9360ba26be1",
        "e731039863845f158d83d605197a78d4933bb3e6d680f2b5d33f15e00129eb78e0fc952fa3487e935151175844f37a984d",
    );
    let document = document(&file, Format::Pdf, &Options::default()).expect("it opens");
    assert_eq!(document.text(), "Only for your eyes");
}

#[test]
fn a_file_with_a_password_says_so() {
    let file = encrypted(
        "92fe0f4454ad4c9644693f33c07cb54f587dce1e2682fe9ecea6107a1ef630dd",
        "a2d98dd93474875ec95c60445c51fe1df35ffaac7da1baca629058b1c08a8e39",
        "ab6d3448216ebafa9de331ddcdd5b98bf95ecaddf9075ea2bc313b28ca0a9c1cb31d5669ee46bb20d1454f53154c51086a",
    );
    assert_eq!(document(&file, Format::Pdf, &Options::default()), Err(Error::PasswordProtected));
}

#[test]
fn a_broken_table_of_objects_is_mended() {
    let mut builder = Builder::new();
    builder.page(&text("F1", 10, 60, 700, "Still here"));
    let file = String::from_utf8(builder.build()).unwrap();
    let place = file.rfind("startxref").unwrap();
    let broken = format!("{}startxref\n99999\n%%EOF", &file[..place]);
    assert_eq!(document(broken.as_bytes(), Format::Pdf, &Options::default()).unwrap().text(), "Still here");
}

#[test]
fn a_truncated_file_gives_what_is_left_or_says_that_it_is_broken() {
    let mut builder = Builder::new();
    builder.page(&text("F1", 10, 60, 700, "First page"));
    builder.page(&text("F1", 10, 60, 700, "Second page"));
    let file = builder.build();
    for length in (1..file.len() - 7).step_by(37) {
        match document(&file[..length], Format::Pdf, &Options::default()) {
            Ok(read) => assert!(read.warnings[0].message.contains("the file is truncated"), "{length} bytes"),
            Err(Error::Corrupted(_) | Error::NoText) => {}
            Err(other) => panic!("{length} bytes: {other}"),
        }
    }
    assert!(matches!(document(b"not a file", Format::Pdf, &Options::default()), Err(Error::Corrupted(_))));
}

#[test]
fn pages_come_in_order_however_many_there_are() {
    let mut builder = Builder::new();
    for number in 1..=900 {
        builder.page(&text("F1", 10, 60, 400, &format!("Here is number {number}")));
    }
    let document = read(builder);
    assert_eq!(document.pages.len(), 900);
    for (page, number) in document.pages.iter().zip(1..) {
        assert_eq!((page.number, page.text()), (number, format!("Here is number {number}")));
    }
}
