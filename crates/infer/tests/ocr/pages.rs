//! Single-column pages under all scan conditions.

use corbie_infer::ocr::Rotation;

use crate::page::{
    BOLD, CONDENSED, Face, MONO, OBLIQUE, SANS, SERIF, SERIF_BOLD, SERIF_CONDENSED, SERIF_ITALIC, TestPage, points,
    word_f1,
};
use crate::texts::{CZECH, ENGLISH, FRENCH, GARDEN, GERMAN, HARBOUR, POLISH, SPANISH, TURKISH};
use crate::{check_words, read};

const CLEAN: f64 = 0.985;
const SKEWED: f64 = 0.97;

/// A sheet at 200 dpi with one text.
fn sheet(face: Face, size: f32, text: &str) -> TestPage {
    let mut page = TestPage::a4();
    page.text(face, points(size), 160.0, 1500.0, 150.0, text);
    page
}

/// Each page scores at least `each`, and the mean is at least `mean`.
#[track_caller]
fn check_all(pages: impl IntoIterator<Item = (String, TestPage)>, expected: &str, each: f64, mean: f64) {
    let mut scores = Vec::new();
    for (name, page) in pages {
        let found = read(&page);
        let f1 = word_f1(expected, &found.text());
        assert!(f1 >= each, "{name}: word F1 is {f1:.3}, below {each}\n{}", found.text());
        assert!(!found.low_confidence, "{name} is doubted, confidence {}", found.confidence());
        scores.push(f1);
    }
    let all = scores.iter().sum::<f64>() / scores.len() as f64;
    assert!(all >= mean, "word F1 is {all:.4} over {} pages, below {mean}", scores.len());
}

#[test]
fn clean_text_is_read_in_every_face() {
    let faces = [
        ("sans", SANS),
        ("bold", BOLD),
        ("oblique", OBLIQUE),
        ("condensed", CONDENSED),
        ("mono", MONO),
        ("serif", SERIF),
        ("serif bold", SERIF_BOLD),
        ("serif italic", SERIF_ITALIC),
        ("serif condensed", SERIF_CONDENSED),
    ];
    let pages = faces.map(|(name, face)| (name.to_owned(), sheet(face, 10.0, HARBOUR)));
    check_all(pages, HARBOUR, CLEAN, 0.99);
}

#[test]
fn clean_text_is_read_at_every_size() {
    let sizes = [8.0, 9.0, 11.0, 12.0, 14.0];
    let pages = sizes.map(|size| (format!("sans of {size} points"), sheet(SANS, size, GARDEN)));
    check_all(pages, GARDEN, CLEAN, 0.99);
    let pages = sizes.map(|size| (format!("serif of {size} points"), sheet(SERIF, size, ENGLISH)));
    check_all(pages, ENGLISH, CLEAN, 0.99);
}

#[test]
fn small_print_is_read() {
    let faces = [("sans", SANS), ("serif", SERIF), ("bold", BOLD)];
    check_all(faces.map(|(name, face)| (name.to_owned(), sheet(face, 7.0, ENGLISH))), ENGLISH, 0.97, 0.98);
}

#[test]
fn skewed_pages_are_read() {
    let straight = sheet(SERIF, 10.0, ENGLISH);
    let degrees = [-5.0, -4.0, -3.0, -2.0, -1.0, -0.4, 0.7, 1.5, 2.5, 3.5, 5.0f32];
    check_all(degrees.map(|degrees| (format!("{degrees} degrees"), straight.skewed(degrees))), ENGLISH, SKEWED, 0.98);
    let found = read(&straight.skewed(-2.3));
    assert!((found.skew + 2.3).abs() < 0.3, "skew of -2.3 was taken for {}", found.skew);
}

#[test]
fn pages_on_their_side_and_on_their_head_are_turned() {
    let mut turned = sheet(SANS, 10.0, ENGLISH);
    for turn in [Rotation::ThreeQuarters, Rotation::Half, Rotation::Quarter] {
        turned = turned.turned();
        let found = check_words(&turned, ENGLISH, CLEAN);
        assert_eq!(found.rotation, turn);
        // The first word starts in a different corner of the image each time.
        let begins = found.lines[0].quad.0[0];
        let corner = (begins.x > turned.width as f32 / 2.0, begins.y > turned.height as f32 / 2.0);
        let expected = match turn {
            Rotation::ThreeQuarters => (true, false),
            Rotation::Half => (true, true),
            _ => (false, true),
        };
        assert_eq!(corner, expected, "{begins:?}");
    }
}

#[test]
fn a_page_can_lie_on_its_side_and_be_skewed() {
    let found = check_words(&sheet(SERIF, 10.0, ENGLISH).skewed(2.0).turned(), ENGLISH, SKEWED);
    assert_eq!(found.rotation, Rotation::ThreeQuarters);
    assert!((found.skew - 2.0).abs() < 0.4, "{}", found.skew);
}

#[test]
fn noise_and_compression_cost_few_words() {
    let clean = sheet(SERIF, 10.0, HARBOUR);
    let mut pages = [30, 60].map(|most| (format!("noise of {most}"), clean.noisy(most))).to_vec();
    pages.extend([30, 45, 60].map(|quality| (format!("JPEG of quality {quality}"), clean.jpeg(quality))));
    pages.push(("both".to_owned(), sheet(SANS, 8.0, HARBOUR).noisy(30).jpeg(40)));
    check_all(pages, HARBOUR, 0.97, 0.98);
}

#[test]
fn dust_costs_few_words() {
    check_all([("dust".to_owned(), sheet(SERIF, 10.0, HARBOUR).dusty())], HARBOUR, 0.97, 0.97);
}

#[test]
fn pale_ink_and_white_letters_are_read() {
    let clean = sheet(SANS, 10.0, GARDEN);
    let colours = [(120, 190), (150, 180), (200, 255), (255, 0), (230, 60)];
    let pages = colours.map(|(ink, paper)| (format!("{ink} on {paper}"), clean.coloured(ink, paper)));
    check_all(pages, GARDEN, 0.97, 0.98);
}

#[test]
fn letters_with_accents_are_read() {
    for (text, least) in [(GERMAN, CLEAN), (FRENCH, CLEAN), (SPANISH, CLEAN), (CZECH, 0.95)] {
        let pages = [("sans", SANS), ("serif", SERIF)].map(|(name, face)| (name.to_owned(), sheet(face, 11.0, text)));
        check_all(pages, text, least, least);
    }
}

/// In some fonts the network takes a stroke through a letter for another letter, and a missing dot for a dot.
#[test]
fn polish_and_turkish_lose_some_letters_and_no_words() {
    for (text, bare) in [(POLISH, 'ł'), (TURKISH, 'ı')] {
        let plain =
            |text: &str| text.replace(['ł', 't'], "t").replace(['ı', 'i', 'l', '1', 'İ'], "i").replace('ş', "s");
        let found = read(&sheet(SANS, 11.0, text)).text();
        let f1 = word_f1(&plain(text), &plain(&found));
        assert!(f1 >= 0.95, "word F1 is {f1:.3} but for {bare:?}\n{found}");
    }
}
