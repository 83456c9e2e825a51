//! Pictures that say nothing, or nothing that can be read.

use corbie_infer::ocr::{Picture, Recognised, Settings};

use crate::page::{Face, Page, SANS, SERIF, points};
use crate::texts::{ARABIC, ARMENIAN, GEORGIAN, GREEK, HEBREW, RUSSIAN};
use crate::{ENGINE, read};

#[test]
fn scripts_that_are_not_known_are_doubted() {
    let scripts: [(&str, &str, &[Face]); 6] = [
        ("Cyrillic", RUSSIAN, &[SANS, SERIF]),
        ("Greek", GREEK, &[SANS, SERIF]),
        ("Arabic", ARABIC, &[SANS]),
        ("Hebrew", HEBREW, &[SANS]),
        ("Georgian", GEORGIAN, &[SANS, SERIF]),
        ("Armenian", ARMENIAN, &[SANS, SERIF]),
    ];
    for (name, text, faces) in scripts {
        for (face, size) in faces.iter().flat_map(|face| [(face, 10.0), (face, 14.0)]) {
            let mut page = Page::blank(1654, 900);
            page.text(*face, points(size), 160.0, 1500.0, 100.0, text);
            let found = read(&page);
            assert!(found.doubtful, "{name} of {size} points was taken for\n{}", found.text());
        }
    }
}

#[test]
fn pictures_without_text_give_none() {
    for (width, height) in [(1, 1), (1, 700), (700, 1), (2, 3), (33, 31), (640, 480)] {
        let found = read(&Page::blank(width, height));
        assert_eq!((found.text().as_str(), found.lines.len()), ("", 0), "{width} by {height}");
    }
    let empty = Picture { width: 0, height: 0, rgb: &[] };
    assert_eq!(ENGINE.recognise(empty, &Settings::default()).unwrap(), Recognised::default());
}

#[test]
fn extreme_pictures_do_no_harm() {
    for (width, height) in [(1, 1), (5, 3), (20_000, 3), (3, 20_000), (64, 64), (500, 40)] {
        // A checkerboard, noise and black.
        let mut checkered = Page::blank(width, height);
        for (index, pixel) in checkered.gray.iter_mut().enumerate() {
            *pixel = 255 * ((index / width + index % width) % 2) as u8;
        }
        read(&checkered);
        read(&checkered.noisy(120));
        checkered.gray.fill(0);
        assert_eq!(read(&checkered).text(), "");
    }
}
