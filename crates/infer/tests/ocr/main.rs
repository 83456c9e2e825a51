//! OCR of rendered pages with known text.

mod layout;
mod long_images;
mod pages;
mod texts;
mod threads;
mod unreadable;

use std::sync::LazyLock;

use corbie_infer::ocr::{Error, ImageRef, ImageText, OcrEngine, OcrOptions, Rotation};

use corbie_test_support::page::{self, Face, SANS, TestPage, word_f1};
use texts::{ENGLISH, GERMAN};

static ENGINE: LazyLock<OcrEngine> = LazyLock::new(|| OcrEngine::builtin().expect("the networks are whole"));

fn picture<'a>(page: &TestPage, rgb: &'a [u8]) -> ImageRef<'a> {
    ImageRef { width: page.width as u32, height: page.height as u32, rgb }
}

fn read(page: &TestPage) -> ImageText {
    ENGINE.recognize(picture(page, &page.rgb()), &OcrOptions::default()).expect("the page can be read")
}

/// A page at 150 dpi.
fn page(face: Face, size: f32, text: &str) -> TestPage {
    let mut page = TestPage::blank(1240, 900);
    page.text(face, size, 110.0, 1130.0, 90.0, text);
    page
}

#[track_caller]
fn check_words(page: &TestPage, expected: &str, least: f64) -> ImageText {
    let found = read(page);
    let text = found.text();
    let f1 = word_f1(expected, &text);
    assert!(
        f1 >= least,
        "word F1 is {f1:.3}, below {least}; turn {:?}, skew {:.2}\n{text}",
        found.rotation,
        found.skew
    );
    found
}

#[test]
fn a_page_that_is_not_to_be_turned_is_not() {
    let settings = OcrOptions { correct_rotation: false, ..OcrOptions::default() };
    let page = page(SANS, 25.0, GERMAN).turned();
    let found = ENGINE.recognize(picture(&page, &page.rgb()), &settings).unwrap();
    assert_eq!(found.rotation, Rotation::None);
}

#[test]
fn lines_beyond_the_limits_are_left_out_and_counted() {
    let page = page(SANS, 25.0, ENGLISH);
    let all = read(&page);
    assert_eq!(all.omitted, 0);
    let rgb = page.rgb();
    for settings in [
        OcrOptions { max_lines: 3, ..OcrOptions::default() },
        OcrOptions { max_columns: 4000, ..OcrOptions::default() },
        OcrOptions { max_columns: 0, ..OcrOptions::default() },
    ] {
        let some = ENGINE.recognize(picture(&page, &rgb), &settings).unwrap();
        assert!(some.omitted > 0 && some.lines.len() < all.lines.len(), "{settings:?}");
        assert_eq!(some.lines.len() + some.omitted, all.lines.len(), "{settings:?}");
    }
}

#[test]
fn the_same_picture_gives_the_same_text() {
    let page = page(SANS, 21.0, ENGLISH).noisy(40).skewed(0.8);
    assert_eq!(read(&page), read(&page));
}

#[test]
fn a_picture_must_be_as_large_as_it_says_and_no_larger_than_allowed() {
    let rgb = [255u8; 30];
    let wrong = ENGINE.recognize(ImageRef { width: 4, height: 3, rgb: &rgb }, &OcrOptions::default());
    assert!(matches!(wrong, Err(Error::WrongSize { expected: 36, found: 30, .. })), "{wrong:?}");
    let huge = ImageRef { width: u32::MAX, height: u32::MAX, rgb: &rgb };
    assert!(matches!(ENGINE.recognize(huge, &OcrOptions::default()), Err(Error::TooLarge { .. })));
    let settings = OcrOptions { max_pixels: 9, ..OcrOptions::default() };
    let large = ENGINE.recognize(ImageRef { width: 5, height: 2, rgb: &rgb }, &settings);
    assert!(matches!(large, Err(Error::TooLarge { pixels: 10, most: 9 })), "{large:?}");
}
