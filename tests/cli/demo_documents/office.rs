//! Generates the rules for loans (DOCX) and the visitor statistics (XLSX).

use crate::archive::{Archive, HEAD};

const MAIN: &str = "http://schemas.openxmlformats.org";
const DOCUMENT: &str = "application/vnd.openxmlformats-officedocument";

const LOANS: [(&str, &str); 11] = [
    ("Heading1", "Lending objects of the collection"),
    ("", "These rules hold for every museum, school and collector who wants to borrow an object from Gull Rock."),
    ("Heading2", "What may be lent"),
    (
        "",
        "Most objects may be lent for twelve months at most. The great Fresnel lens and the weather books of Ingrid \
         Halvorsen never leave the rock; a copy in plaster and photographs may take their place.",
    ),
    ("Heading2", "How to ask"),
    (
        "",
        "Write to the curator, Beatriz Moreau, four months before you need the object. Tell us where it will stand, who \
         looks after it, and how it is insured. The committee decides on the first Wednesday of each month.",
    ),
    ("Heading2", "Climate and light"),
    (
        "",
        "Paper and textiles need a humidity between 45 and 55 per cent and no more than 50 lux. Brass and iron are kept \
         below 40 per cent, since salt has been eating at them for a hundred years.",
    ),
    ("Heading2", "Costs"),
    (
        "",
        "We ask for no fee from schools. Other borrowers pay the boat, the crate and two nights for the courier who comes \
         along. Damage is paid at the value in the loan agreement.",
    ),
    ("", "Agreed by the Friends of the Light in March."),
];

const MONTHS: [(&str, u32, u32, u32); 12] = [
    ("January", 212, 40, 1484),
    ("February", 265, 96, 1855),
    ("March", 530, 210, 3710),
    ("April", 1180, 342, 8260),
    ("May", 1935, 611, 13545),
    ("June", 2870, 705, 20090),
    ("July", 4412, 188, 30884),
    ("August", 4689, 154, 32823),
    ("September", 2240, 530, 15680),
    ("October", 1016, 298, 7112),
    ("November", 388, 120, 2716),
    ("December", 301, 33, 2107),
];

pub(super) fn loans() -> Vec<u8> {
    let paragraphs = LOANS.map(|(style, text)| {
        let style = match style {
            "" => String::new(),
            style => format!(r#"<w:pPr><w:pStyle w:val="{style}"/></w:pPr>"#),
        };
        format!(r#"<w:p>{style}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>"#)
    });
    let style = |id: &str, name: &str, size: u32, level: u32| {
        format!(
            r#"<w:style w:type="paragraph" w:styleId="{id}"><w:name w:val="{name}"/><w:pPr><w:outlineLvl w:val="{level}"/></w:pPr><w:rPr><w:b/><w:sz w:val="{size}"/></w:rPr></w:style>"#
        )
    };
    let space = format!(r#"xmlns:w="{MAIN}/wordprocessingml/2006/main""#);
    Archive::default()
        .part(
            "[Content_Types].xml",
            types(&[
                ("word/document.xml", "wordprocessingml.document.main"),
                ("word/styles.xml", "wordprocessingml.styles"),
            ]),
        )
        .relations("_rels/.rels", &[("rId1", "officeDocument", "word/document.xml")])
        .relations("word/_rels/document.xml.rels", &[("rId1", "styles", "styles.xml")])
        .part(
            "word/document.xml",
            format!("{HEAD}<w:document {space}><w:body>{}</w:body></w:document>", paragraphs.concat()),
        )
        .part(
            "word/styles.xml",
            format!(
                "{HEAD}<w:styles {space}>{}{}</w:styles>",
                style("Heading1", "heading 1", 36, 0),
                style("Heading2", "heading 2", 28, 1)
            ),
        )
        .bytes()
}

pub(super) fn visitors() -> Vec<u8> {
    let text = |cell: String, text: &str| format!(r#"<c r="{cell}" t="inlineStr"><is><t>{text}</t></is></c>"#);
    let number = |cell: String, number: u32| format!(r#"<c r="{cell}"><v>{number}</v></c>"#);
    let heads = [("A", "Month"), ("B", "Visitors"), ("C", "School children among them"), ("D", "Income in crowns")];
    let mut rows =
        format!(r#"<row r="1">{}</row>"#, heads.map(|(column, head)| text(format!("{column}1"), head)).concat());
    for (index, (month, visitors, children, income)) in MONTHS.into_iter().enumerate() {
        let row = index + 2;
        rows += &format!(
            r#"<row r="{row}">{}{}{}{}</row>"#,
            text(format!("A{row}"), month),
            number(format!("B{row}"), visitors),
            number(format!("C{row}"), children),
            number(format!("D{row}"), income),
        );
    }
    let space = format!(r#"xmlns="{MAIN}/spreadsheetml/2006/main""#);
    let relations = format!(r#"xmlns:r="{MAIN}/officeDocument/2006/relationships""#);
    Archive::default()
        .part(
            "[Content_Types].xml",
            types(&[("xl/workbook.xml", "spreadsheetml.sheet.main"), ("xl/worksheets/sheet1.xml", "spreadsheetml.worksheet")]),
        )
        .relations("_rels/.rels", &[("rId1", "officeDocument", "xl/workbook.xml")])
        .relations("xl/_rels/workbook.xml.rels", &[("rId1", "worksheet", "worksheets/sheet1.xml")])
        .part(
            "xl/workbook.xml",
            format!(
                r#"{HEAD}<workbook {space} {relations}><sheets><sheet name="Visitors by month" sheetId="1" r:id="rId1"/></sheets></workbook>"#
            ),
        )
        .part("xl/worksheets/sheet1.xml", format!("{HEAD}<worksheet {space}><sheetData>{rows}</sheetData></worksheet>"))
        .bytes()
}

/// Content types of the parts of an OPC package.
fn types(parts: &[(&str, &str)]) -> String {
    let one =
        |(part, kind): &(&str, &str)| format!(r#"<Override PartName="/{part}" ContentType="{DOCUMENT}.{kind}+xml"/>"#);
    let relations = "application/vnd.openxmlformats-package.relationships+xml";
    format!(
        r#"{HEAD}<Types xmlns="{MAIN}/package/2006/content-types"><Default Extension="rels" ContentType="{relations}"/><Default Extension="xml" ContentType="application/xml"/>{}</Types>"#,
        parts.iter().map(one).collect::<String>()
    )
}
