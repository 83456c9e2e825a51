//! Tables, headings, and running headers and footers.

use corbie_extract::BlockKind;

use crate::pdf_builder::{Builder, lines, text};
use crate::{check, page, read};

#[test]
fn a_ruled_table_keeps_its_cells() {
    let mut content = String::from("1 w\n");
    for y in [700, 680, 660] {
        content += &format!("100 {y} m 300 {y} l S\n");
    }
    for x in [100, 200, 300] {
        content += &format!("{x} 660 m {x} 700 l S\n");
    }
    content += &text("F2", 10, 105, 686, "Name");
    content += &text("F2", 10, 205, 686, "Price");
    content += &text("F1", 10, 105, 666, "Green apples");
    content += &text("F1", 10, 205, 666, "1.20");
    content += &text("F1", 10, 100, 740, "Above the table");
    content += &text("F1", 10, 100, 620, "Below the table");
    let page = page(&content);
    let texts: Vec<&str> = page.blocks.iter().map(|block| block.text.as_str()).collect();
    assert_eq!(texts, ["Above the table", "Name\tPrice\nGreen apples\t1.20", "Below the table"]);
    let BlockKind::Table(table) = &page.blocks[1].kind else { panic!("{:?} is a table", page.blocks[1]) };
    assert_eq!(table.header_rows, 1);
}

#[test]
fn lines_of_a_table_may_be_rectangles_that_are_filled_at_once() {
    let mut content = String::new();
    for y in [700, 680, 660] {
        content += &format!("100 {y} m 300 {y} l 300 {} l 100 {} l h\n", y + 1, y + 1);
    }
    for x in [100, 200, 300] {
        content += &format!("{x} 660 m {} 660 l {} 700 l {x} 700 l h\n", x + 1, x + 1);
    }
    content += "f\n";
    let cells = [(105, 686, "one"), (205, 686, "two"), (105, 666, "three"), (205, 666, "four")];
    content.extend(cells.map(|(x, y, words)| text("F1", 10, x, y, words)));
    check(&content, &["one\ttwo\nthree\tfour"]);
}

#[test]
fn headers_and_footers_are_furniture() {
    let mut builder = Builder::new();
    for number in 1..=4 {
        let body = format!(
            "This is what page {} of the report is about, and it is different",
            ["one", "two", "three", "four"][number - 1]
        );
        builder.page(
            &(text("F1", 9, 60, 780, "Annual report")
                + &text("F1", 10, 60, 500, &body)
                + &text("F1", 9, 290, 20, &number.to_string())),
        );
    }
    for page in read(builder).pages {
        let furniture: Vec<bool> = page.blocks.iter().map(|block| block.kind == BlockKind::Furniture).collect();
        assert_eq!(furniture, [true, false, true], "page {}", page.number);
    }
}

#[test]
fn headings_are_known_by_size_and_weight_and_are_the_path_of_what_follows() {
    let body =
        ["Words of the text that are many enough to be the", "size that everything else is measured against here."];
    let content = text("F1", 24, 60, 740, "The title")
        + &text("F1", 16, 60, 700, "A chapter")
        + &lines(60, 670, &body)
        + &text("F2", 10, 60, 630, "A section")
        + &lines(60, 610, &body);
    let page = page(&content);
    let kinds: Vec<Option<u8>> = page
        .blocks
        .iter()
        .map(|block| if let BlockKind::Heading { level } = block.kind { Some(level) } else { None })
        .collect();
    assert_eq!(kinds, [Some(1), Some(2), None, Some(3), None]);
    assert_eq!(page.blocks[4].path, ["The title", "A chapter", "A section"]);
}

#[test]
fn bookmarks_make_headings_of_what_looks_like_text() {
    let mut builder = Builder::new();
    let page = builder.page(&(lines(60, 700, &["1 Introduction"]) + &lines(60, 670, &["Some words.", "Some more."])));
    let next = builder.objects();
    builder.object(&format!("<< /Type /Outlines /First {} 0 R >>", next + 2));
    builder.object(&format!("<< /Title (Introduction) /Dest [{page} 0 R /Fit] >>"));
    builder.catalog(&format!("/Outlines {} 0 R", next + 1));
    let document = read(builder);
    assert_eq!(document.pages[0].blocks[0].kind, BlockKind::Heading { level: 1 });
    assert_eq!(document.pages[0].blocks[1].kind, BlockKind::Paragraph);
}
