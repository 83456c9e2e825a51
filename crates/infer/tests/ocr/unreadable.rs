//! Images without text, or with illegible text.

use corbie_infer::ocr::{ImageRef, ImageText, OcrOptions};

use crate::page::{Face, SANS, SERIF, TestPage, points};
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
            let mut page = TestPage::blank(1654, 900);
            page.text(*face, points(size), 160.0, 1500.0, 100.0, text);
            let found = read(&page);
            assert!(found.low_confidence, "{name} of {size} points was taken for\n{}", found.text());
        }
    }
}

#[test]
fn lines_of_an_unknown_script_are_left_out_among_others() {
    let mut page = TestPage::blank(1000, 400);
    let lines = [
        "The ship came from the north",
        "Корабль прибыл в порт утром",
        "Груз отправлен на склад",
        "with timber and salt.",
    ];
    for (index, line) in lines.iter().enumerate() {
        page.line(SANS, 40.0, 60.0, 90.0 + 62.0 * index as f32, line);
    }
    let found = read(&page);
    let texts: Vec<&str> = found.lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!((texts, found.low_confidence), (vec![lines[0], lines[3]], true));
}

#[test]
fn numbers_of_products_code_and_formulas_are_kept() {
    let lines = [
        "SKU-8847 and MEDRPT-2024-PAT-3847",
        "O'Neill, McDonald, iPhone, 3M, H2O",
        "getElementById(\"fooBar\") in x86_64",
        "$1,299.00 for j.doe@mail.example.org",
        "E = mc² and 2πr/λ, 5 kΩ at 20 °C",
    ];
    for face in [SANS, SERIF] {
        let mut page = TestPage::blank(1200, 500);
        for (index, line) in lines.iter().enumerate() {
            page.line(face, 40.0, 60.0, 90.0 + 70.0 * index as f32, line);
        }
        let found = read(&page.noisy(40));
        assert_eq!((found.lines.len(), found.low_confidence), (lines.len(), false), "{}", found.text());
    }
}

/// Gray value by position.
type Texture = fn(f32, f32) -> f32;

#[test]
fn shapes_and_textures_are_no_words() {
    let textures: [(&str, Texture); 8] = [
        ("a gradient", |x, _| x / 4.0),
        ("waves", |x, y| 128.0 + 60.0 * ((x * 0.05).sin() + (y * 0.09 + x * 0.02).cos())),
        ("cloth", |x, y| 128.0 + 100.0 * (x / 9.0).sin() * (y / 13.0).sin()),
        ("rings", |x, y| 128.0 + 40.0 * ((x * x + y * y) / 900.0).sin()),
        ("bricks", |x, y| if x % 40.0 < 20.0 && y % 30.0 < 15.0 { 20.0 } else { 240.0 }),
        ("a fence", |x, _| if x % 12.0 < 3.0 { 0.0 } else { 255.0 }),
        ("a grid", |x, y| if y % 24.0 < 2.0 || x % 90.0 < 2.0 { 0.0 } else { 255.0 }),
        ("a ball", |x, y| if (x - 500.0).hypot(y - 350.0) < 230.0 { 30.0 } else { 220.0 }),
    ];
    for (name, texture) in textures {
        let mut page = TestPage::blank(1000, 700);
        for (index, pixel) in page.gray.iter_mut().enumerate() {
            *pixel = texture((index % 1000) as f32, (index / 1000) as f32).clamp(0.0, 255.0) as u8;
        }
        let found = read(&page);
        assert!(found.lines.is_empty() || found.low_confidence, "{name} says {:?}", found.text());
    }
}

#[test]
fn pictures_without_text_give_none() {
    for (width, height) in [(1, 1), (1, 700), (700, 1), (2, 3), (33, 31), (640, 480)] {
        let found = read(&TestPage::blank(width, height));
        assert_eq!((found.text().as_str(), found.lines.len()), ("", 0), "{width} by {height}");
    }
    let empty = ImageRef { width: 0, height: 0, rgb: &[] };
    assert_eq!(ENGINE.recognize(empty, &OcrOptions::default()).unwrap(), ImageText::default());
}

#[test]
fn extreme_pictures_do_no_harm() {
    for (width, height) in [(1, 1), (5, 3), (20_000, 3), (3, 20_000), (64, 64), (500, 40)] {
        // A checkerboard, noise and black.
        let mut checkered = TestPage::blank(width, height);
        for (index, pixel) in checkered.gray.iter_mut().enumerate() {
            *pixel = 255 * ((index / width + index % width) % 2) as u8;
        }
        read(&checkered);
        read(&checkered.noisy(120));
        checkered.gray.fill(0);
        assert_eq!(read(&checkered).text(), "");
    }
}
