//! Images much longer or wider than a page.

use corbie_infer::ocr::Rotation;

use crate::page::{SANS, SERIF, TestPage, character_error, points};
use crate::read;
use crate::texts::{ENGLISH, GARDEN, HARBOUR};

/// A scrolling screenshot of numbered lines, and its text line by line.
fn scrolled(width: usize, lines: usize) -> (TestPage, Vec<String>) {
    let mut page = TestPage::blank(width, lines * 47 + 60);
    let texts: Vec<String> = (1..=lines).map(|line| format!("Entry {} of the long list", 1000 + 7 * line)).collect();
    for (index, text) in texts.iter().enumerate() {
        page.line(SANS, 28.0, 40.0, 60.0 + 47.0 * index as f32, text);
    }
    (page, texts)
}

fn lines(page: &TestPage) -> Vec<String> {
    read(page).lines.into_iter().map(|line| line.text).collect()
}

#[test]
fn every_line_of_a_long_screenshot_is_read_once_and_in_order() {
    let (page, texts) = scrolled(620, 110);
    let found = read(&page);
    assert_eq!(found.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), texts);
    for (index, line) in found.lines.iter().enumerate() {
        let middle = (line.quad.0[0].y + line.quad.0[2].y) / 2.0;
        assert!((middle - (50.0 + 47.0 * index as f32)).abs() < 12.0, "{line:?}");
        assert_eq!(line.row, index);
    }
    assert_eq!((found.rotation, found.omitted, found.low_confidence), (Rotation::None, 0, false));
}

#[test]
fn lines_that_fall_to_one_side_are_not_cut_in_two() {
    let (page, texts) = scrolled(620, 60);
    assert_eq!(lines(&page.skewed(0.6)), texts);
}

#[test]
fn a_long_picture_is_turned_as_a_page_is() {
    let (page, texts) = scrolled(620, 60);
    let on_its_side = page.turned();
    for turned in [on_its_side.clone(), on_its_side.turned(), on_its_side.turned().turned()] {
        assert_eq!(lines(&turned), texts, "{} by {}", turned.width, turned.height);
    }
}

#[test]
fn a_paragraph_goes_on_across_a_cut() {
    let text = [ENGLISH, HARBOUR, GARDEN].join(" ");
    let mut page = TestPage { leading: 1.2, ..TestPage::blank(560, 2700) };
    page.text(SERIF, points(9.0), 30.0, 530.0, 40.0, &text);
    let found = read(&page);
    assert_eq!(found.paragraphs().len(), 1, "{}", found.text());
    let error = character_error(&text, &found.text());
    assert!(error <= 0.01, "character error is {error:.3}\n{}", found.text());
}

#[test]
fn a_wide_picture_is_looked_at_longer() {
    let mut page = TestPage::blank(6000, 500);
    for (index, text) in [ENGLISH, HARBOUR, GARDEN].into_iter().enumerate() {
        page.text(SANS, 30.0, 60.0 + 2000.0 * index as f32, 1900.0 + 2000.0 * index as f32, 40.0, text);
    }
    let text = read(&page).text();
    let error = character_error(&[ENGLISH, HARBOUR, GARDEN].join(" "), &text);
    assert!(error <= 0.01, "character error is {error:.3}\n{text}");
}
