//! Layout: columns, tables, headings and paragraphs in reading order.

use corbie_infer::ocr::ParagraphKind;

use crate::page::{self, BOLD, SANS, SERIF, TestPage, character_error, points};
use crate::texts::{ENGLISH, FRENCH, GARDEN, GERMAN, HARBOUR, SPANISH};
use crate::{check_words, read};

#[track_caller]
fn check_order(page: &TestPage, expected: &str, name: &str) {
    let text = read(page).text();
    let error = character_error(expected, &text);
    assert!(error <= 0.02, "{name}: character error is {error:.3}\n{text}");
}

#[test]
fn columns_are_read_one_after_the_other() {
    let title = "Minutes of the annual meeting";
    let (left, right) = (format!("{ENGLISH} {HARBOUR}"), format!("{GARDEN} {GERMAN}"));
    for (gutter, skew) in [(30.0, 0.0), (30.0, 1.5), (45.0, -3.0), (70.0, 0.5)] {
        let mut page = TestPage::a4();
        page.line(SANS, points(16.0), 160.0, 140.0, title);
        page.text(SERIF, points(9.0), 160.0, 827.0 - gutter / 2.0, 190.0, &left);
        page.text(SERIF, points(9.0), 827.0 + gutter / 2.0, 1500.0, 190.0, &right);
        let name = format!("gutter {gutter}, skew {skew}");
        check_order(&page.skewed(skew), &format!("{title} {left} {right}"), &name);
    }
}

#[test]
fn three_columns_are_read_one_after_the_other() {
    let columns = [format!("{ENGLISH} {GERMAN}"), HARBOUR.to_owned(), format!("{FRENCH} {SPANISH}")];
    let mut page = TestPage::a4();
    for (text, left) in columns.iter().zip([120.0, 607.0, 1094.0]) {
        page.text(SERIF, points(8.0), left, left + 440.0, 190.0, text);
    }
    check_order(&page, &columns.join(" "), "straight");
    check_order(&page.skewed(2.0), &columns.join(" "), "skewed");
}

#[test]
fn a_heading_across_columns_stands_between_them() {
    let mut page = TestPage::a4();
    page.text(SERIF, points(9.0), 160.0, 800.0, 150.0, ENGLISH);
    page.text(SERIF, points(9.0), 860.0, 1500.0, 150.0, HARBOUR);
    page.line(BOLD, points(15.0), 160.0, 900.0, "Advice for those who keep a garden by the sea");
    page.text(SERIF, points(9.0), 160.0, 800.0, 950.0, GARDEN);
    page.text(SERIF, points(9.0), 860.0, 1500.0, 950.0, GERMAN);
    let expected = format!("{ENGLISH} {HARBOUR} Advice for those who keep a garden by the sea {GARDEN} {GERMAN}");
    check_order(&page, &expected, "two by two");
}

#[test]
fn headings_are_told_from_text_by_their_size() {
    for (size, face) in [(14.0, BOLD), (16.0, SERIF), (24.0, SANS)] {
        let mut page = TestPage::a4();
        let mut top = 150.0;
        for (heading, text) in [("Overview", ENGLISH), ("A summary of costs", HARBOUR), ("ANNEX", GARDEN)] {
            page.line(face, points(size), 160.0, top + points(size), heading);
            top = page.text(SERIF, points(10.0), 160.0, 1500.0, top + 1.5 * points(size), text) + 40.0;
        }
        let found = read(&page).paragraphs();
        let headings: Vec<&str> = found
            .iter()
            .filter(|paragraph| paragraph.kind == ParagraphKind::Heading)
            .map(|paragraph| paragraph.text.as_str())
            .collect();
        assert_eq!(headings, ["Overview", "A summary of costs", "ANNEX"], "{size} points: {found:#?}");
        assert_eq!(found.len(), 6, "{size} points: {found:#?}");
    }
}

#[test]
fn a_page_of_one_size_has_no_headings() {
    for (face, size) in [(SANS, 10.0), (SERIF, 20.0)] {
        let mut page = TestPage::a4();
        let end = page.text(face, points(size), 160.0, 1500.0, 150.0, ENGLISH);
        page.line(face, points(size), 160.0, end + 3.0 * points(size), "Yours sincerely,");
        page.line(face, points(size), 160.0, end + 6.0 * points(size), "Jj Q. Pygmy (by proxy)");
        page.line(face, points(size), 160.0, end + 9.0 * points(size), "see over");
        let found = read(&page).paragraphs();
        let heading = found.iter().find(|paragraph| paragraph.kind == ParagraphKind::Heading);
        assert_eq!(heading, None, "{found:#?}");
    }
}

#[test]
fn large_letters_and_small_ones_are_read_on_one_page() {
    let mut page = TestPage::blank(1654, 1200);
    page.line(SERIF, 120.0, 150.0, 200.0, "Annual report");
    page.line(SANS, 60.0, 150.0, 300.0, "Figures for the year 2018");
    page.text(SERIF, 22.0, 150.0, 1500.0, 400.0, ENGLISH);
    let expected = format!("Annual report Figures for the year 2018 {ENGLISH}");
    check_words(&page, &expected, 0.97);
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
    for skew in [0.0, -2.0] {
        let mut page = TestPage::blank(1000, 400);
        for (index, row) in rows.iter().enumerate() {
            for (cell, left) in row.iter().zip([60.0, 420.0, 600.0, 800.0]) {
                page.line(SANS, 24.0, left, 80.0 + index as f32 * 50.0, cell);
            }
        }
        let found = read(&page.skewed(skew));
        assert_eq!(found.text().replace("\n\n", "\n"), rows.map(|row| row.join("\t")).join("\n"));
        let [table] = &found.paragraphs()[..] else { panic!("{:#?}", found.paragraphs()) };
        let cells = rows.map(|row| row.map(String::from).to_vec()).to_vec();
        assert_eq!(table.kind, ParagraphKind::Table(cells));
    }
}

#[test]
fn a_ruled_table_below_text_is_read_row_by_row_and_cell_by_cell() {
    let rows = [
        ["No.", "Article", "Date", "Pieces", "Price", "Sum"],
        ["1", "Wood glue", "07.06.2020", "94", "884.98", "83,188.12"],
        ["2", "Paint, white", "16.12.2015", "77", "22.18", "1,707.86"],
        ["3", "Hinge, brass", "28.06.2010", "65", "355.40", "23,101.00"],
        ["4", "Window putty", "27.08.1999", "45", "932.93", "41,981.85"],
        ["5", "Copper pipe", "10.12.2013", "24", "789.51", "18,948.24"],
    ];
    let edges = [170.0, 280.0, 650.0, 910.0, 1060.0, 1240.0, 1485.0];
    let mut page = TestPage::a4();
    let top = page.text(SANS, points(10.0), 170.0, 1485.0, 250.0, GARDEN) + 10.0;
    for (index, row) in rows.iter().enumerate() {
        let baseline = top + 36.0 + 50.0 * index as f32;
        for ((cell, left), right) in row.iter().zip(edges).zip(&edges[1..]) {
            let is_number = cell.starts_with(|letter: char| letter.is_ascii_digit()) && cell.len() != 10;
            let width = page::width_of(SANS, points(10.0), cell);
            let start = if is_number || *cell == "No." { right - 12.0 - width } else { left + 12.0 };
            page.line(SANS, points(10.0), start, baseline, cell);
        }
    }
    let bottom = top + 50.0 * rows.len() as f32;
    for index in 0..=rows.len() {
        page.rule((edges[0], top + 50.0 * index as f32), (edges[6], top + 50.0 * index as f32 + 2.0));
    }
    edges.iter().for_each(|edge| page.rule((*edge, top), (edge + 2.0, bottom)));
    let found = read(&page).paragraphs();
    let [text, table] = &found[..] else { panic!("{found:#?}") };
    assert_eq!(text.kind, ParagraphKind::Text);
    assert_eq!(table.kind, ParagraphKind::Table(rows.map(|row| row.map(String::from).to_vec()).to_vec()));
}

#[test]
fn digits_are_read() {
    let numbers: Vec<String> = (0..48u64).map(|index| (index * 7_919_331 % 1_000_003 + 13).to_string()).collect();
    let amounts: Vec<String> =
        (0..32u64).map(|index| format!("{}.{:02}", index * 733 % 9973, index * 37 % 100)).collect();
    let text = format!("{} {}", numbers.join(" "), amounts.join(" "));
    for face in [SANS, SERIF] {
        let mut page = TestPage::a4();
        page.text(face, points(10.0), 160.0, 1500.0, 150.0, &text);
        check_words(&page, &text, 0.985);
    }
}

#[test]
fn paragraphs_stay_apart_and_divided_words_are_joined() {
    let mut page = TestPage::blank(900, 420);
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
