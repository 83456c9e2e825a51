//! XLSX tests.

use corbie_extract::Format;

use super::archive::Archive;
use super::{outline, read};

const DIMENSION: &str = r#"<dimension ref="A1:XFD1048576"/>"#;

/// A workbook with these rows in its only sheet, which declares the maximum dimensions.
pub(crate) fn xlsx(rows: &str) -> Archive {
    let book = r#"<workbook xmlns:r="r"><sheets><sheet name="Data" sheetId="1" r:id="s"/></sheets></workbook>"#;
    let relations =
        [("s", "worksheet", "sheet.xml"), ("t", "sharedStrings", "strings.xml"), ("f", "styles", "styles.xml")];
    Archive::of("xl/workbook.xml")
        .part("xl/workbook.xml", book)
        .relations("xl/_rels/workbook.xml.rels", &relations)
        .part("xl/sheet.xml", format!("<worksheet>{DIMENSION}<sheetData>{rows}</sheetData></worksheet>"))
}

/// A row of inline strings and numbers.
fn row(number: u32, cells: &[(&str, &str)]) -> String {
    let cell = |(column, value): &(&str, &str)| match value.parse::<f64>() {
        Ok(_) => format!(r#"<c r="{column}{number}"><v>{value}</v></c>"#),
        Err(_) => format!(r#"<c r="{column}{number}" t="inlineStr"><is><t>{value}</t></is></c>"#),
    };
    format!(r#"<row r="{number}">{}</row>"#, cells.iter().map(cell).collect::<String>())
}

/// Checks the blocks below the sheet name.
fn check(rows: &str, expected: &[&str]) {
    let outline = outline(&read(&xlsx(rows).bytes(), Format::Xlsx));
    assert_eq!(outline[0], "heading 1: Data");
    assert_eq!(outline[1..], *expected);
}

#[test]
fn cells_of_every_kind_are_shown() {
    let strings =
        "<sst><si><t>shared</t></si><si><r><t>ri</t></r><r><t>ch_x000D_</t></r><rPh><t>no</t></rPh></si></sst>";
    let styles = r#"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="0.0%"/></numFmts><cellXfs><xf numFmtId="0"/>
        <xf numFmtId="14"/><xf numFmtId="164"/></cellXfs></styleSheet>"#;
    let rows = r#"<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>99</v></c><c><f>1+1</f><v>2</v></c>
        <c t="str"><f>A1</f><v>formula</v></c><c t="b"><v>1</v></c><c t="e"><v>#DIV/0!</v></c><c s="1"><v>45107</v></c>
        <c s="2"><v>0.125</v></c><c s="99"><v>5</v></c></row>"#;
    let archive = xlsx(rows).part("xl/strings.xml", strings).part("xl/styles.xml", styles);
    let document = read(&archive.bytes(), Format::Xlsx);
    let cells = "table 0: shared,rich,2,formula,TRUE,#DIV/0!,2023-06-30,12.5%,5";
    assert_eq!(outline(&document), ["heading 1: Data", cells]);
    assert_eq!(document.pages[0].name.as_deref(), Some("Data"));
    assert_eq!(document.pages[0].blocks[1].path, ["Data"]);
}

#[test]
fn a_formula_that_nobody_computed_is_shown_itself() {
    let rows = "<row><c><f>SUM(B5,B6)</f><v/></c><c><f>A1&gt;2</f></c><c><f>1+1</f><v>2</v></c>\
        <c t=\"str\"><f>T(A1)</f><v></v></c></row>";
    check(rows, &["table 0: =SUM(B5,B6),=A1>2,2"]);
}

#[test]
fn rows_without_a_gap_are_a_table_below_its_title() {
    let rows = [
        row(1, &[("A", "Cups")]),
        row(2, &[("A", "Team"), ("D", "Won")]),
        row(3, &[("A", "Blues"), ("D", "1")]),
        row(4, &[("D", "2")]),
        row(9, &[("B", "7"), ("C", "8")]),
        row(12, &[("A", "Source")]),
    ];
    check(&rows.concat(), &["paragraph: Cups", "table 1: Team,Won|Blues,1|,2", "table 0: 7,8", "paragraph: Source"]);
}

#[test]
fn an_empty_row_below_a_header_does_not_part_it_from_its_figures() {
    let rows = [
        row(1, &[("A", "In CHF"), ("C", "June")]),
        row(2, &[("B", "Sales"), ("C", "Profit")]),
        row(4, &[("A", "Zone"), ("B", "12"), ("C", "3")]),
        row(6, &[("A", "Note"), ("B", "5")]),
    ];
    check(&rows.concat(), &["table 2: In CHF,,June|,Sales,Profit|Zone,12,3", "table 0: Note,5"]);
}

#[test]
fn every_sheet_is_a_page_also_hidden_and_empty_ones() {
    let book = r#"<workbook xmlns:r="r"><workbookPr date1904="1"/><sheets><sheet name="A" r:id="s" state="hidden"/>
        <sheet name="B" r:id="e"/><sheet name="C" r:id="gone"/></sheets></workbook>"#;
    let archive = Archive::of("xl/workbook.xml")
        .part("xl/workbook.xml", book)
        .relations("xl/_rels/workbook.xml.rels", &[("s", "worksheet", "s.xml"), ("e", "worksheet", "/xl/e.xml")])
        .part(
            "xl/s.xml",
            format!("<worksheet><sheetData>{}</sheetData></worksheet>", row(1, &[("A", "x"), ("B", "1")])),
        )
        .part("xl/e.xml", "<worksheet/>");
    let document = read(&archive.bytes(), Format::Xlsx);
    let pages: Vec<_> = document.pages.iter().map(|page| (page.name.as_deref(), page.blocks.len())).collect();
    assert_eq!(pages, [(Some("A"), 2), (Some("B"), 1), (Some("C"), 1)]);
    assert_eq!(document.warnings[0].page, Some(3));
}

#[test]
fn comments_name_their_cell() {
    let older = r#"<comments><commentList><comment ref="B2"><text><r><t>why?</t></r></text></comment>
        <comment ref="C3"><text><t>[Threaded comment] Your version</t></text></comment></commentList></comments>"#;
    let newer =
        r#"<ThreadedComments><threadedComment ref="C3"><text>newer</text></threadedComment></ThreadedComments>"#;
    let archive = xlsx("")
        .relations("xl/_rels/sheet.xml.rels", &[("a", "comments", "c.xml"), ("b", "threadedComment", "t.xml")])
        .part("xl/c.xml", older)
        .part("xl/t.xml", newer);
    let document = read(&archive.bytes(), Format::Xlsx);
    assert_eq!(outline(&document), ["heading 1: Data", "comment: C3: newer", "comment: B2: why?"]);
}

#[test]
fn pictures_lie_on_their_sheet() {
    let drawing = r#"<wsDr xmlns:r="r"><pic><cNvPr id="1" descr="A seal"/><blip r:embed="p"/></pic></wsDr>"#;
    let archive = xlsx(&row(1, &[("A", "1")]))
        .relations("xl/_rels/sheet.xml.rels", &[("d", "drawing", "drawings/d.xml")])
        .part("xl/drawings/d.xml", drawing)
        .relations("xl/drawings/_rels/d.xml.rels", &[("p", "image", "../media/p.jpeg")])
        .stored("xl/media/p.jpeg", b"\xff\xd8\xff\xc0\0\x11\x08\0\x02\0\x03");
    let document = read(&archive.bytes(), Format::Xlsx);
    let image = &document.pages[0].images[0];
    assert_eq!((image.media_type.as_deref(), image.width, image.height), (Some("image/jpeg"), 3, 2));
    assert_eq!(image.description.as_deref(), Some("A seal"));
    assert_eq!(image.after, document.pages[0].blocks.len(), "behind all cells");
}

#[test]
fn a_sheet_that_says_it_is_huge_takes_no_room() {
    let rows =
        (1..=2000).map(|at| format!(r#"<row r="{0}"><c r="A{0}"><v>{0}</v></c></row>"#, at * 500)).collect::<String>();
    let far = r#"<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>"#;
    let document = read(&xlsx(&(rows + far)).bytes(), Format::Xlsx);
    assert_eq!(document.pages[0].blocks.len(), 2002);
    assert_eq!(document.pages[0].blocks[2001].text, "1");
}

#[test]
fn a_diagonal_is_not_filled_up() {
    let letters = |mut number: u32| {
        let mut name = String::new();
        while number > 0 {
            name.insert(0, char::from(b'A' + ((number - 1) % 26) as u8));
            number = (number - 1) / 26;
        }
        name
    };
    let rows = (1..=3000).map(|at| row(at, &[(&letters(at * 5), "1")])).collect::<String>();
    let document = read(&xlsx(&rows).bytes(), Format::Xlsx);
    let corbie_extract::BlockKind::Table(table) = &document.pages[0].blocks[1].kind else { panic!("a table") };
    assert_eq!(table.rows.len(), 3000);
    assert!(table.rows.iter().all(|row| row.len() == 1));
}
