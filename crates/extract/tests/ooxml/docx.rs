//! DOCX tests.

use corbie_extract::{BlockKind, Format};

use super::archive::{Archive, HEAD};
use super::{outline, read};

/// A document with this body.
pub(crate) fn docx(body: &str) -> Archive {
    Archive::of("word/document.xml").part("word/document.xml", document(body))
}

/// A paragraph with this text.
pub(crate) fn body(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

fn document(body: &str) -> String {
    format!(
        r#"{HEAD}<w:document xmlns:w="w" xmlns:r="r" xmlns:a="a" xmlns:m="m" xmlns:mc="mc" xmlns:wp="wp" xmlns:v="v"
        xmlns:wps="wps"><w:body>{body}</w:body></w:document>"#
    )
}

fn check(body: &str, expected: &[&str]) {
    assert_eq!(outline(&read(&docx(body).bytes(), Format::Docx)), expected);
}

#[test]
fn styles_make_headings_through_what_they_are_based_on() {
    let styles = r#"<w:styles xmlns:w="w">
        <w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
        <w:style w:type="paragraph" w:styleId="Kapitel"><w:name w:val="Kapitel"/><w:basedOn w:val="berschrift1"/></w:style>
        <w:style w:type="paragraph" w:styleId="Deep"><w:name w:val="Deep"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
        <w:style w:type="paragraph" w:styleId="Round"><w:name w:val="Round"/><w:basedOn w:val="Round"/></w:style>
        <w:style w:type="paragraph" w:styleId="Src"><w:name w:val="Source Code"/></w:style>
        <w:style w:type="paragraph" w:styleId="Cap"><w:name w:val="caption"/></w:style></w:styles>"#;
    let styled = |style: &str, text: &str| {
        format!(r#"<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#)
    };
    let body = [
        styled("Kapitel", "One"),
        styled("Deep", "Below"),
        styled("Round", "Text"),
        styled("Src", "  let a;"),
        styled("Src", "  let b;"),
        styled("Cap", "Figure"),
        styled("Heading2", "Unknown style"),
    ];
    let archive = docx(&body.concat())
        .relations("word/_rels/document.xml.rels", &[("rId1", "styles", "styles.xml")])
        .part("word/styles.xml", styles);
    let document = read(&archive.bytes(), Format::Docx);
    assert_eq!(
        outline(&document),
        [
            "heading 1: One",
            "heading 3: Below",
            "paragraph: Text",
            "code:   let a;|  let b;",
            "caption: Figure",
            "heading 2: Unknown style"
        ]
    );
    assert_eq!(document.pages[0].blocks[2].path, ["One", "Below"]);
    assert_eq!(document.pages[0].blocks[5].path, ["One"]);
}

#[test]
fn lists_know_how_deep_they_are() {
    let item = |level: &str, list: &str, text: &str| {
        format!(
            r#"<w:p><w:pPr><w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list}"/></w:numPr></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#
        )
    };
    check(
        &[item("0", "1", "a"), item("2", "1", "b"), item("0", "0", "c")].concat(),
        &["item 0: a", "item 2: b", "paragraph: c"],
    );
}

#[test]
fn a_list_of_its_own_is_as_deep_as_the_name_of_its_style_says() {
    let style = |id: &str, name: &str, more: &str| {
        format!(
            r#"<w:style w:styleId="{id}"><w:name w:val="{name}"/>{more}<w:pPr><w:numPr><w:numId w:val="4"/></w:numPr></w:pPr></w:style>"#
        )
    };
    let styles = [
        style("a", "List Bullet", ""),
        style("b", "List Bullet 2", ""),
        style("c", "List Number 3", ""),
        style("d", "Steps", r#"<w:basedOn w:val="c"/>"#),
        style("e", "List 2", ""),
    ];
    let item = |style: &str, level: &str| {
        format!(r#"<w:p><w:pPr><w:pStyle w:val="{style}"/>{level}</w:pPr><w:r><w:t>{style}</w:t></w:r></w:p>"#)
    };
    let level = |level: u8| format!(r#"<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="4"/></w:numPr>"#);
    let body = [item("a", ""), item("b", &level(0)), item("c", ""), item("d", ""), item("e", ""), item("b", &level(3))];
    let archive = docx(&body.concat())
        .relations("word/_rels/document.xml.rels", &[("rId1", "styles", "styles.xml")])
        .part("word/styles.xml", format!(r#"<w:styles xmlns:w="w">{}</w:styles>"#, styles.concat()));
    let found = outline(&read(&archive.bytes(), Format::Docx));
    assert_eq!(found, ["item 0: a", "item 1: b", "item 2: c", "item 2: d", "item 1: e", "item 3: b"]);
}

#[test]
fn tables_keep_their_columns_below_each_other() {
    let cell = |properties: &str, text: &str| format!("<w:tc><w:tcPr>{properties}</w:tcPr>{}</w:tc>", body(text));
    let rows = format!(
        r#"<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr>{}{}</w:tr><w:tr>{}{}{}</w:tr><w:tr>{}{}{}</w:tr>
        <w:tr><w:trPr><w:del/></w:trPr>{}</w:tr></w:tbl>"#,
        cell(r#"<w:gridSpan w:val="2"/>"#, "wide"),
        cell("", "last"),
        cell(r#"<w:vMerge w:val="restart"/>"#, "tall"),
        cell("", "b"),
        cell("", "c"),
        cell("<w:vMerge/>", ""),
        cell("", "d"),
        cell("", "e"),
        cell("", "gone"),
    );
    check(&rows, &["table 1: wide,,last|tall,b,c|,d,e"]);
}

#[test]
fn rows_and_cells_that_were_deleted_are_not_shown() {
    let cell = |properties: &str, text: &str| format!("<w:tc><w:tcPr>{properties}</w:tcPr>{}</w:tc>", body(text));
    let row = format!("<w:tbl><w:tr><w:trPr><w:del/></w:trPr>{}</w:tr></w:tbl>", cell("", "gone"));
    check(&(row + &body("after")), &["paragraph: after"]);
    let gone = cell("<w:cellDel/>", "gone");
    let cells = format!("<w:tbl><w:tr>{gone}{}{}</w:tr></w:tbl>", cell("", "a"), cell("", "b"));
    check(&cells, &["table 0: a,b"]);
    check(&format!("<w:tbl><w:tr>{gone}{}</w:tr></w:tbl>", cell("", "frame")), &["paragraph: frame"]);
}

#[test]
fn a_table_in_a_cell_is_read_in_its_place_and_a_frame_is_no_table() {
    let inner = format!("<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>", body("x"), body("y"));
    let outer = format!("<w:tbl><w:tr><w:tc>{}{inner}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>", body("a"), body("b"));
    let frame = format!("<w:tbl><w:tr><w:tc>{}{}</w:tc></w:tr></w:tbl>", body("one"), body("two"));
    check(&(outer + &frame), &["table 0: a x y,b", "paragraph: one", "paragraph: two"]);
}

#[test]
fn only_what_is_shown_is_read() {
    check(
        r#"<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>
        <w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom><w:r><w:tab/><w:t>tab</w:t><w:br/><w:t>line</w:t></w:r>
        <w:r><w:t>co</w:t><w:softHyphen/><w:t>op</w:t><w:noBreakHyphen/><w:t>x</w:t></w:r>
        <w:hyperlink r:id="x"><w:r><w:t> link</w:t></w:r></w:hyperlink>
        <w:sdt><w:sdtPr><w:alias w:val="no"/></w:sdtPr><w:sdtContent><w:r><w:t> control</w:t></w:r></w:sdtContent></w:sdt>
        <w:r><w:sym w:font="Wingdings" w:char="F0FC"/><w:sym w:font="Symbol" w:char="F061"/></w:r></w:p>"#,
        &["paragraph: new tab|linecoop-x link control✓α"],
    );
}

#[test]
fn hidden_text_is_not_read() {
    let styles = r#"<w:styles xmlns:w="w">
        <w:style w:type="character" w:styleId="H"><w:rPr><w:vanish/></w:rPr></w:style>
        <w:style w:type="character" w:styleId="Based"><w:basedOn w:val="H"/></w:style>
        <w:style w:type="paragraph" w:styleId="Top"><w:rPr><w:vanish/></w:rPr></w:style></w:styles>"#;
    let run = |properties: &str, text: &str| format!("<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>");
    let runs = [
        run("<w:b/>", "a"),
        run("<w:vanish/>", "1"),
        run(r#"<w:vanish w:val="0"/>"#, "b"),
        run(r#"<w:rStyle w:val="Based"/>"#, "2"),
        run(r#"<w:rStyle w:val="Based"/><w:vanish w:val="false"/>"#, "c"),
        r#"<w:r><w:rPr><w:vanish/></w:rPr><w:fldChar w:fldCharType="begin"/></w:r>"#.to_owned(),
        run("", "instruction"),
        r#"<w:r><w:rPr><w:vanish/></w:rPr><w:fldChar w:fldCharType="end"/></w:r>"#.to_owned(),
        run("", "d"),
    ];
    let top = r#"<w:p><w:pPr><w:pStyle w:val="Top"/></w:pPr><w:r><w:t>3</w:t></w:r></w:p>"#;
    let archive = docx(&format!("<w:p>{}</w:p>{top}", runs.concat()))
        .relations("word/_rels/document.xml.rels", &[("s", "styles", "styles.xml")])
        .part("word/styles.xml", styles);
    assert_eq!(outline(&read(&archive.bytes(), Format::Docx)), ["paragraph: abcd"]);
}

#[test]
fn fields_give_their_results_and_not_their_instructions() {
    check(
        r#"<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>IF </w:instrText><w:t>hidden</w:t></w:r>
        <w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>result</w:t></w:r>
        <w:r><w:fldChar w:fldCharType="end"/></w:r><w:fldSimple w:instr="PAGE"><w:r><w:t> 7</w:t></w:r></w:fldSimple></w:p>
        <w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r></w:p><w:p><w:r><w:t>after</w:t></w:r></w:p>"#,
        &["paragraph: result 7", "paragraph: after"],
    );
}

#[test]
fn a_text_box_is_read_once() {
    let inner = format!("<w:txbxContent>{}</w:txbxContent>", body("boxed"));
    check(
        &format!(
            "<w:p><w:r><w:t>around</w:t></w:r><w:r><mc:AlternateContent><mc:Choice><w:drawing><wps:txbx>{inner}</wps:txbx>\
            </w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox>{inner}</v:textbox></w:pict></mc:Fallback>\
            </mc:AlternateContent></w:r></w:p>"
        ),
        &["paragraph: around", "paragraph: boxed"],
    );
}

#[test]
fn formulas_can_be_read_in_a_line() {
    let run = |text: &str| format!("<m:r><m:t>{text}</m:t></m:r>");
    let power = format!("<m:sSup><m:e>{}</m:e><m:sup>{}</m:sup></m:sSup>", run("r"), run("2"));
    let fraction = format!("<m:f><m:num>{}</m:num><m:den>{}</m:den></m:f>", run("a+b"), run("c"));
    let call = format!("{}<m:d><m:e>{}</m:e></m:d>", run("f"), run("x"));
    let sum = format!(
        r#"<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{}</m:sub><m:sup>{}</m:sup><m:e>{}</m:e></m:nary>"#,
        run("n=1"),
        run("9"),
        run("n")
    );
    check(
        &format!("<w:p><m:oMath>{call}{}{power}{}{fraction}{}{sum}</m:oMath></w:p>", run("="), run("+"), run("-")),
        &["paragraph: f(x)=r^2+(a+b)/c-∑_(n=1)^9 n"],
    );
}

#[test]
fn notes_comments_headers_and_footers_are_told_apart() {
    let notes = format!(
        r#"<w:footnotes><w:footnote w:type="separator">{}</w:footnote><w:footnote w:id="2">{}</w:footnote></w:footnotes>"#,
        body("line"),
        body("note")
    );
    let archive = docx(&body("Text"))
        .relations(
            "word/_rels/document.xml.rels",
            &[
                ("a", "footnotes", "footnotes.xml"),
                ("b", "comments", "comments.xml"),
                ("c", "header", "header1.xml"),
                ("d", "header", "header2.xml"),
                ("e", "footer", "missing.xml"),
            ],
        )
        .part("word/footnotes.xml", notes)
        .part("word/comments.xml", format!("<w:comments><w:comment>{}</w:comment></w:comments>", body("really?")))
        .part("word/header1.xml", format!("<w:hdr>{}</w:hdr>", body("Top")))
        .part("word/header2.xml", format!("<w:hdr>{}</w:hdr>", body("Top")));
    let document = read(&archive.bytes(), Format::Docx);
    assert_eq!(outline(&document), ["paragraph: Text", "note: note", "comment: really?", "furniture: Top"]);
}

#[test]
fn a_remark_stands_under_the_headings_of_what_it_is_about() {
    let heading =
        |text: &str| format!(r#"<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#);
    let noted = |element: &str| format!(r#"<w:p><w:r><w:t>text</w:t><w:{element}/></w:r></w:p>"#);
    let note = noted(r#"footnoteReference w:id="2""#);
    let table = format!("<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{note}</w:tc></w:tr></w:tbl>", body("a"));
    let text = [
        noted(r#"endnoteReference w:id="2""#),
        heading("One"),
        table,
        heading("Two"),
        noted(r#"commentReference w:id="0""#),
        heading("Three"),
    ];
    let part = |item: &str, id: u8| format!(r#"<w:x><w:{item} w:id="{id}">{}</w:{item}></w:x>"#, body(item));
    let archive = docx(&text.concat())
        .relations(
            "word/_rels/document.xml.rels",
            &[
                ("a", "footnotes", "f.xml"),
                ("b", "endnotes", "e.xml"),
                ("c", "comments", "c.xml"),
                ("d", "header", "h.xml"),
            ],
        )
        .part("word/f.xml", part("footnote", 2))
        .part("word/e.xml", part("endnote", 2))
        .part("word/c.xml", part("comment", 0))
        .part("word/h.xml", format!("<w:hdr>{}</w:hdr>", body("Top")));
    let document = read(&archive.bytes(), Format::Docx);
    let paths: Vec<_> = document.pages[0].blocks.iter().skip(6).map(|block| block.path.concat()).collect();
    assert_eq!(paths, ["One", "", "Two", ""], "{:?}", outline(&document));
}

#[test]
fn pictures_come_with_what_is_said_about_them() {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend([0, 0, 0, 3, 0, 0, 0, 5]);
    let drawing = r#"<w:p><w:r><w:drawing><wp:inline><wp:docPr id="1" descr="A crow"/><a:graphic><a:blip r:embed="p"/>
        </a:graphic></wp:inline></w:drawing></w:r></w:p>"#;
    let archive = docx(&drawing.repeat(2))
        .relations("word/_rels/document.xml.rels", &[("p", "image", "media/image1.png")])
        .stored("word/media/image1.png", png);
    let document = read(&archive.bytes(), Format::Docx);
    let [image] = document.pages[0].images.as_slice() else { panic!("one picture, used twice") };
    assert_eq!((image.width, image.height, image.media_type.as_deref()), (3, 5, Some("image/png")));
    assert_eq!(image.description.as_deref(), Some("A crow"));
    assert!(document.pages[0].blocks.iter().all(|block| block.kind != BlockKind::Paragraph));
}

#[test]
fn a_file_embedded_in_the_text_is_missed() {
    let archive = docx(&(body("before") + r#"<w:altChunk r:id="c"/>"#))
        .relations("word/_rels/document.xml.rels", &[("c", "aFChunk", "chunk.html")])
        .part("word/chunk.html", "<p>lost</p>");
    let document = read(&archive.bytes(), Format::Docx);
    assert_eq!(outline(&document), ["paragraph: before"]);
    assert!(document.warnings[0].message.contains("another format"));
}

#[test]
fn a_broken_document_gives_what_comes_before_the_break() {
    let document = read(&docx(&(body("whole") + "<w:p><w:r></w:p>")).bytes(), Format::Docx);
    assert_eq!(outline(&document), ["paragraph: whole"]);
    assert_eq!(document.warnings.len(), 1);
}
