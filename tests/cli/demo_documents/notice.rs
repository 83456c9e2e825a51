//! Generates a notice as an image: its text is found only by OCR.

use std::io::Cursor;

use image::{ExtendedColorType, ImageEncoder, codecs::png};

use crate::page::{BOLD, SANS, TestPage};

pub(super) fn png() -> Vec<u8> {
    let mut page = TestPage::blank(900, 560);
    for (corner, opposite) in [
        ((30.0, 30.0), (870.0, 36.0)),
        ((30.0, 524.0), (870.0, 530.0)),
        ((30.0, 30.0), (36.0, 530.0)),
        ((864.0, 30.0), (870.0, 530.0)),
    ] {
        page.rule(corner, opposite);
    }
    page.line(BOLD, 60.0, 80.0, 120.0, "Foghorn test");
    let below = page.text(
        SANS,
        36.0,
        80.0,
        830.0,
        150.0,
        "The foghorn is sounded every Thursday at half past two. It is very loud. Please take small children and dogs \
         to the boat house before the test begins.",
    );
    page.text(
        SANS,
        36.0,
        80.0,
        830.0,
        below + 24.0,
        "Ear protectors hang beside the ticket desk. Nobody may stand on the gallery during the test.",
    );
    let mut file = Cursor::new(Vec::new());
    let encoder = png::PngEncoder::new_with_quality(&mut file, png::CompressionType::Best, png::FilterType::Adaptive);
    encoder.write_image(&page.gray, page.width as u32, page.height as u32, ExtendedColorType::L8).unwrap();
    file.into_inner()
}
