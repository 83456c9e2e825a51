//! OCR of rendered pages with known text.

mod layout;
mod long;
mod page;
mod pages;
mod strange;
mod texts;
mod threads;

use std::sync::LazyLock;

use corbie_infer::ocr::{Engine, Error, Picture, Recognised, Settings, Turn};

use page::{Face, Page, SANS, picture, word_f1};
use texts::{ENGLISH, GERMAN};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::builtin().expect("the networks are whole"));

fn read(page: &Page) -> Recognised {
    ENGINE.recognise(picture(page, &page.rgb()), &Settings::default()).expect("the page can be read")
}

/// A page at 150 dpi.
fn page(face: Face, size: f32, text: &str) -> Page {
    let mut page = Page::blank(1240, 900);
    page.text(face, size, 110.0, 1130.0, 90.0, text);
    page
}

#[track_caller]
fn check_words(page: &Page, expected: &str, least: f64) -> Recognised {
    let found = read(page);
    let text = found.text();
    let f1 = word_f1(expected, &text);
    assert!(f1 >= least, "word F1 is {f1:.3}, below {least}; turn {:?}, skew {:.2}\n{text}", found.turn, found.skew);
    found
}

#[test]
fn a_page_that_is_not_to_be_turned_is_not() {
    let settings = Settings { turn: false, ..Settings::default() };
    let page = page(SANS, 25.0, GERMAN).turned();
    let found = ENGINE.recognise(picture(&page, &page.rgb()), &settings).unwrap();
    assert_eq!(found.turn, Turn::None);
}

#[test]
fn lines_beyond_the_limits_are_left_out_and_counted() {
    let page = page(SANS, 25.0, ENGLISH);
    let all = read(&page);
    assert_eq!(all.left_out, 0);
    let rgb = page.rgb();
    for settings in [
        Settings { most_lines: 3, ..Settings::default() },
        Settings { most_columns: 4000, ..Settings::default() },
        Settings { most_columns: 0, ..Settings::default() },
    ] {
        let some = ENGINE.recognise(picture(&page, &rgb), &settings).unwrap();
        assert!(some.left_out > 0 && some.lines.len() < all.lines.len(), "{settings:?}");
        assert_eq!(some.lines.len() + some.left_out, all.lines.len(), "{settings:?}");
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
    let wrong = ENGINE.recognise(Picture { width: 4, height: 3, rgb: &rgb }, &Settings::default());
    assert!(matches!(wrong, Err(Error::WrongSize { expected: 36, found: 30, .. })), "{wrong:?}");
    let huge = Picture { width: u32::MAX, height: u32::MAX, rgb: &rgb };
    assert!(matches!(ENGINE.recognise(huge, &Settings::default()), Err(Error::TooLarge { .. })));
    let settings = Settings { most_pixels: 9, ..Settings::default() };
    let large = ENGINE.recognise(Picture { width: 5, height: 2, rgb: &rgb }, &settings);
    assert!(matches!(large, Err(Error::TooLarge { pixels: 10, most: 9 })), "{large:?}");
}
