//! Scan detection.

use corbie_extract::Page;

use crate::pdf_builder::{Builder, lines, text};
use crate::{page, read};

/// More than a hundred characters.
const PROSE: [&str; 3] = [
    "A page that says this much of itself is read as text,",
    "and what is shown beside that text is a picture,",
    "which may have words of its own.",
];

/// A page with this text and an image that covers this percentage of it.
fn beside_picture(text: &str, hundredths: u32) -> Page {
    let mut builder = Builder::new();
    let picture = "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8";
    let picture = builder.stream(picture, b"\x7f");
    let content = format!("{text} q 600 0 0 {} 0 0 cm /I Do Q", 8 * hundredths);
    let resources = format!("/Resources << /Font << /F1 3 0 R >> /XObject << /I {picture} 0 R >> >>");
    builder.page_with(content.as_bytes(), &resources);
    read(builder).pages.remove(0)
}

#[test]
fn k33_little_text_beside_a_picture_asks_to_be_read() {
    let little = lines(60, 700, &PROSE[..1]);
    assert!(beside_picture(&little, 4).scanned);
    assert!(!beside_picture(&little, 2).scanned, "an ornament");
    assert!(!beside_picture(&lines(60, 700, &PROSE), 90).scanned, "there is enough text");
}

#[test]
fn k33_little_text_beside_many_shapes_asks_to_be_read() {
    let little = text("F1", 10, 60, 700, "Page 7");
    let shapes = |count: usize| page(&(little.clone() + &"0 0 m 5 5 l 9 0 l f ".repeat(count))).scanned;
    assert!(shapes(301));
    assert!(!shapes(300));
}

#[test]
fn k33_text_without_words_asks_to_be_read() {
    let symbols = lines(60, 700, &["#$%&*+-/:;<=>?@[]^_{|}~ a few words"; 4]);
    assert!(page(&symbols).scanned);
    let figures = lines(60, 700, &["Sum 1,234.50 EUR (2024: 1,199.00)"; 4]);
    assert!(!page(&figures).scanned);
}

#[test]
fn k33_a_short_page_and_a_blank_one_do_not_ask() {
    let mut builder = Builder::new();
    builder.page(&text("F1", 10, 60, 700, "This page is left blank"));
    builder.page("");
    builder.page("100 100 200 200 re f");
    assert!(read(builder).pages.iter().all(|page| !page.scanned));
}
