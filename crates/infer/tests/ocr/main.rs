//! Text in pictures: pages drawn with known text are read.

mod page;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use corbie_infer::ocr::{Engine, Error, Picture, Recognised, Settings, Turn};
use sha2::{Digest, Sha256};

use page::{Face, Page, SANS, SERIF, character_error, picture, word_f1};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::builtin().expect("the networks are whole"));

const ENGLISH: &str = "The committee met on 14 March 2019 and agreed to extend the programme for another two years. \
    Members asked for a clear account of the costs, which had grown by 7.5 percent since the previous review. \
    A written answer was promised before the end of the month. The chair thanked everyone who had taken part in the \
    visits to the northern sites, where the weather had made the work difficult but the people had been generous \
    with their time. Nobody doubted that the bridge would open in spring; whether the road behind it could carry the \
    traffic was another question, and one that the engineers preferred not to answer yet.";
const GERMAN: &str = "Größere Änderungen müssen schriftlich beantragt werden. Für die Prüfung der Anträge gilt eine \
    Frist von sechs Wochen; über Verlängerungen entscheidet der Ausschuss. Die Straße bleibt während der Bauarbeiten \
    für Fußgänger geöffnet.";
const FRENCH: &str = "L'été dernier, nous avons reçu près de trois mille élèves à la bibliothèque. Où était donc la \
    forêt que ma sœur décrivait ? Le garçon a répondu qu'il fallait être patient, même à Noël.";

fn read(page: &Page) -> Recognised {
    ENGINE.recognise(picture(page, &page.rgb()), &Settings::default()).expect("the page can be read")
}

/// A page as it comes at 150 dots an inch.
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
fn the_networks_are_the_ones_their_card_lists() {
    #[derive(serde::Deserialize)]
    struct Card {
        file: Vec<File>,
    }
    #[derive(serde::Deserialize)]
    struct File {
        name: String,
        bytes: u64,
        sha256: String,
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/PP-OCRv6-tiny");
    let card: Card = toml::from_str(&fs::read_to_string(folder.join("MODEL.toml")).unwrap()).unwrap();
    assert_eq!(card.file.len(), 4);
    for file in card.file {
        let bytes = fs::read(folder.join(&file.name)).unwrap();
        let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((bytes.len() as u64, hash), (file.bytes, file.sha256), "{}", file.name);
    }
}

#[test]
fn clean_text_is_read_at_every_usual_size() {
    for size in [17.0, 21.0, 25.0, 34.0] {
        check_words(&page(SANS, size, ENGLISH), ENGLISH, 0.985);
        check_words(&page(SERIF, size, ENGLISH), ENGLISH, 0.985);
    }
    // A page of 200 dots an inch, larger than what is looked at.
    let mut large = Page::blank(1654, 2339);
    let end = large.text(SERIF, 28.0, 160.0, 1500.0, 150.0, ENGLISH);
    large.text(SERIF, 28.0, 160.0, 1500.0, end + 60.0, GERMAN);
    check_words(&large, &format!("{ENGLISH} {GERMAN}"), 0.985);
}

#[test]
fn german_and_french_keep_their_letters() {
    check_words(&page(SANS, 26.0, GERMAN), GERMAN, 0.97);
    check_words(&page(SERIF, 26.0, FRENCH), FRENCH, 0.93);
}

#[test]
fn skewed_pages_are_read() {
    let straight = page(SERIF, 25.0, ENGLISH);
    for degrees in [-5.0, -3.1, -1.2, -0.4, 0.7, 1.2, 2.5, 5.0] {
        let found = check_words(&straight.skewed(degrees), ENGLISH, 0.95);
        assert!((found.skew - degrees).abs() < 0.4, "skew of {degrees} was taken for {}", found.skew);
    }
}

#[test]
fn pages_on_their_side_and_on_their_head_are_turned() {
    let mut turned = page(SANS, 25.0, ENGLISH);
    for turn in [Turn::ThreeQuarters, Turn::Half, Turn::Quarter] {
        turned = turned.turned();
        let found = check_words(&turned, ENGLISH, 0.985);
        assert_eq!(found.turn, turn);
        // The first word begins in another corner of the picture each time.
        let begins = found.lines[0].quad.0[0];
        let corner = (begins.x > turned.width as f32 / 2.0, begins.y > turned.height as f32 / 2.0);
        let expected = match turn {
            Turn::ThreeQuarters => (true, false),
            Turn::Half => (true, true),
            _ => (false, true),
        };
        assert_eq!(corner, expected, "{begins:?}");
    }
}

#[test]
fn a_page_can_lie_on_its_side_and_be_skewed() {
    let found = check_words(&page(SERIF, 25.0, ENGLISH).skewed(2.0).turned(), ENGLISH, 0.95);
    assert_eq!(found.turn, Turn::ThreeQuarters);
    assert!((found.skew - 2.0).abs() < 0.4, "{}", found.skew);
}

#[test]
fn white_letters_on_black_are_read() {
    let mut page = page(SANS, 25.0, ENGLISH);
    page.gray.iter_mut().for_each(|gray| *gray = 255 - *gray);
    check_words(&page, ENGLISH, 0.985);
}

#[test]
fn large_letters_and_small_ones_are_read_on_one_page() {
    let mut page = Page::blank(1654, 1200);
    page.line(SERIF, 120.0, 150.0, 200.0, "Annual report");
    page.line(SANS, 60.0, 150.0, 300.0, "Figures for the year 2018");
    page.text(SERIF, 22.0, 150.0, 1500.0, 400.0, ENGLISH);
    let expected = format!("Annual report Figures for the year 2018 {ENGLISH}");
    check_words(&page, &expected, 0.97);
}

#[test]
fn a_page_that_is_not_to_be_turned_is_not() {
    let settings = Settings { turn: false, ..Settings::default() };
    let page = page(SANS, 25.0, GERMAN).turned();
    let found = ENGINE.recognise(picture(&page, &page.rgb()), &settings).unwrap();
    assert_eq!(found.turn, Turn::None);
}

#[test]
fn noise_costs_few_words() {
    check_words(&page(SERIF, 25.0, ENGLISH).noisy(25), ENGLISH, 0.95);
}

#[test]
fn columns_are_read_one_after_the_other() {
    let mut page = Page::blank(1240, 1000);
    page.line(SANS, 40.0, 110.0, 100.0, "Minutes of the annual meeting of the society");
    page.text(SERIF, 22.0, 110.0, 600.0, 150.0, ENGLISH);
    page.text(SERIF, 22.0, 650.0, 1140.0, 150.0, GERMAN);
    let expected = format!("Minutes of the annual meeting of the society {ENGLISH} {GERMAN}");
    let text = read(&page).text();
    let error = character_error(&expected, &text);
    assert!(error <= 0.05, "character error is {error:.3}\n{text}");
    let text = read(&page.skewed(1.5)).text();
    let error = character_error(&expected, &text);
    assert!(error <= 0.05, "character error is {error:.3} with a skew\n{text}");
}

#[test]
fn a_table_is_read_row_by_row() {
    let rows = [
        ["Article", "Number", "Price", "Total"],
        ["Paper, white", "120", "0.45", "54.00"],
        ["Ink cartridge", "3", "28.90", "86.70"],
        ["Envelope C5", "250", "0.08", "20.00"],
        ["Delivery", "1", "9.50", "9.50"],
    ];
    let mut page = Page::blank(1000, 400);
    for (index, row) in rows.iter().enumerate() {
        for (cell, left) in row.iter().zip([60.0, 420.0, 600.0, 800.0]) {
            page.line(SANS, 24.0, left, 80.0 + index as f32 * 50.0, cell);
        }
    }
    let expected = rows.map(|row| row.join("\t")).join("\n");
    let text = read(&page).text();
    assert_eq!(text.replace("\n\n", "\n"), expected);
}

#[test]
fn paragraphs_stay_apart_and_divided_words_are_joined() {
    let mut page = Page::blank(900, 420);
    let lines =
        ["The first paragraph has a word that is divi-", "ded at the end of a line, and a second that", "is not."];
    for (index, line) in lines.iter().enumerate() {
        page.line(SERIF, 28.0, 80.0, 80.0 + index as f32 * 38.0, line);
    }
    page.line(SERIF, 28.0, 80.0, 280.0, "The second paragraph stands alone.");
    let expected = "The first paragraph has a word that is divided at the end of a line, and a second that is not.\n\n\
                    The second paragraph stands alone.";
    assert_eq!(read(&page).text(), expected);
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
