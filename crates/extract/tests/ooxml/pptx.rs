//! PPTX tests.

use corbie_extract::Format;

use super::archive::Archive;
use super::{outline, read};

fn text(paragraphs: &[&str]) -> String {
    let lines = paragraphs.iter().map(|text| format!("<a:p><a:r><a:t>{text}</a:t></a:r></a:p>")).collect::<String>();
    format!("<p:txBody><a:bodyPr/>{lines}</p:txBody>")
}

pub(crate) fn shape(place: &str, paragraphs: &[&str]) -> String {
    format!("<p:sp><p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr>{}</p:sp>", text(paragraphs))
}

pub(crate) fn slide(shapes: &str) -> String {
    format!(
        r#"<p:sld xmlns:p="p" xmlns:a="a" xmlns:r="r" xmlns:mc="mc" xmlns:c="c" xmlns:dgm="d"><p:cSld><p:spTree>{shapes}
        </p:spTree></p:cSld></p:sld>"#
    )
}

/// A presentation of these slides, stored in reverse order.
pub(crate) fn pptx(slides: &[String]) -> Archive {
    let names: Vec<(String, String)> =
        (0..slides.len()).map(|at| (format!("r{at}"), format!("slides/s{}.xml", 90 - at))).collect();
    let relations: Vec<_> = names.iter().rev().map(|(id, name)| (id.as_str(), "slide", name.as_str())).collect();
    let order = names.iter().map(|(id, _)| format!(r#"<p:sldId id="256" r:id="{id}"/>"#)).collect::<String>();
    let main = format!(r#"<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst>{order}</p:sldIdLst></p:presentation>"#);
    let mut archive = Archive::of("ppt/presentation.xml")
        .part("ppt/presentation.xml", main)
        .relations("ppt/_rels/presentation.xml.rels", &relations);
    for ((_, name), slide) in names.iter().zip(slides) {
        archive = archive.part(&format!("ppt/{name}"), slide);
    }
    archive
}

#[test]
fn slides_come_in_the_order_they_are_shown() {
    let one = slide(&(shape("", &["text"]) + &shape(r#"<p:ph type="ctrTitle"/>"#, &["The", "title"])));
    let two = slide(&shape(r#"<p:ph type="title"/>"#, &["Second"])).replace("<p:sld ", r#"<p:sld show="0" "#);
    let document = read(&pptx(&[one, two]).bytes(), Format::Pptx);
    let names: Vec<_> = document.pages.iter().map(|page| (page.number, page.name.as_deref())).collect();
    assert_eq!(names, [(1, Some("The title")), (2, Some("Second"))]);
    assert_eq!(outline(&document), ["heading 1: The title", "paragraph: text", "heading 1: Second"]);
    assert_eq!(document.pages[0].blocks[1].path, ["The title"]);
}

#[test]
fn a_body_is_a_list_by_level() {
    let body = r#"<p:sp><p:nvSpPr><p:nvPr><p:ph idx="1"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>a</a:t></a:r></a:p>
        <a:p><a:pPr lvl="2"/><a:r><a:t>b</a:t></a:r><a:br/><a:fld><a:t>c</a:t></a:fld></a:p>
        <a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>d</a:t></a:r></a:p></p:txBody></p:sp>"#;
    let number = shape(r#"<p:ph type="sldNum"/>"#, &["7"]);
    let group = format!("<p:grpSp><p:grpSp>{}</p:grpSp></p:grpSp>", shape("", &["grouped"]));
    let document = read(&pptx(&[slide(&format!("{body}{number}{group}"))]).bytes(), Format::Pptx);
    assert_eq!(outline(&document), ["item 0: a", "item 2: b|c", "paragraph: d", "furniture: 7", "paragraph: grouped"]);
}

#[test]
fn tables_and_alternatives_are_read_once() {
    let cell = |words: &str| format!("<a:tc>{}</a:tc>", text(&[words]));
    let table = format!(
        r#"<p:graphicFrame><a:tbl><a:tblPr firstRow="1"/><a:tr>{}{}</a:tr><a:tr>{}{}</a:tr></a:tbl></p:graphicFrame>"#,
        cell("A"),
        cell("B"),
        cell("1"),
        cell("2")
    );
    let twice = format!(
        "<mc:AlternateContent><mc:Choice>{0}</mc:Choice><mc:Fallback>{0}</mc:Fallback></mc:AlternateContent>",
        shape("", &["once"])
    );
    let document = read(&pptx(&[slide(&(table + &twice))]).bytes(), Format::Pptx);
    assert_eq!(outline(&document), ["table 1: A,B|1,2", "paragraph: once"]);
}

#[test]
fn charts_and_diagrams_say_what_they_are_about() {
    let frame = r#"<p:graphicFrame><c:chart r:id="c"/></p:graphicFrame><p:graphicFrame><dgm:relIds r:dm="d"/></p:graphicFrame>"#;
    let chart = r#"<c:chartSpace xmlns:c="c" xmlns:a="a"><c:chart><c:title><c:tx><a:p><a:r><a:t>Ducks</a:t></a:r></a:p></c:tx>
        </c:title><c:ser><c:tx><c:strRef><c:f>Sheet1!B1</c:f><c:pt idx="0"><c:v>Wild</c:v></c:pt></c:strRef></c:tx>
        <c:cat><c:pt idx="0"><c:v>2023</c:v></c:pt><c:pt idx="1"><c:v>2024</c:v></c:pt></c:cat>
        <c:val><c:pt idx="1"><c:v>4.4000000000000004</c:v></c:pt></c:val></c:ser></c:chart></c:chartSpace>"#;
    let diagram = r#"<dgm:dataModel xmlns:dgm="d" xmlns:a="a"><dgm:pt><dgm:t><a:p><a:r><a:t>Plan</a:t></a:r></a:p></dgm:t>
        </dgm:pt></dgm:dataModel>"#;
    let archive = pptx(&[slide(frame)])
        .relations(
            "ppt/slides/_rels/s90.xml.rels",
            &[("c", "chart", "../charts/c.xml"), ("d", "diagramData", "../d.xml")],
        )
        .part("ppt/charts/c.xml", chart)
        .part("ppt/d.xml", diagram);
    assert_eq!(outline(&read(&archive.bytes(), Format::Pptx)), ["caption: Ducks", "item 0: Plan"]);
}

#[test]
fn notes_and_comments_belong_to_their_slide() {
    let notes = slide(&(shape(r#"<p:ph type="body"/>"#, &["say this"]) + &shape(r#"<p:ph type="sldNum"/>"#, &["1"])));
    let archive = pptx(&[slide(&shape("", &["shown"]))])
        .relations(
            "ppt/slides/_rels/s90.xml.rels",
            &[("n", "notesSlide", "../n.xml"), ("c", "comments", "../c.xml"), ("d", "comments", "../d.xml")],
        )
        .part("ppt/n.xml", notes)
        .part("ppt/c.xml", "<p:cmLst><p:cm><p:text>older</p:text></p:cm></p:cmLst>")
        .part("ppt/d.xml", format!("<p:cmLst><p:cm>{}</p:cm></p:cmLst>", text(&["newer"])));
    assert_eq!(
        outline(&read(&archive.bytes(), Format::Pptx)),
        ["paragraph: shown", "note: say this", "comment: older", "comment: newer"]
    );
}

#[test]
fn a_slide_stands_under_its_own_title_or_under_none() {
    let titled = slide(&shape(r#"<p:ph type="title"/>"#, &["First"]));
    let archive = pptx(&[titled, slide(&shape("", &["shown"]))])
        .relations("ppt/slides/_rels/s90.xml.rels", &[("c", "comments", "../c.xml")])
        .part("ppt/c.xml", "<p:cmLst><p:cm><p:text>why?</p:text></p:cm></p:cmLst>");
    let document = read(&archive.bytes(), Format::Pptx);
    assert_eq!(document.pages[0].blocks[1].path, ["First"]);
    assert!(document.pages[1].blocks[0].path.is_empty());
}

#[test]
fn a_broken_slide_gives_what_comes_before_the_break() {
    let broken = slide(&shape("", &["whole"])).replace("</p:cSld>", "<p:cSld");
    let document = read(&pptx(&[broken, slide(&shape("", &["next"]))]).bytes(), Format::Pptx);
    assert_eq!(outline(&document), ["paragraph: whole", "paragraph: next"]);
    assert_eq!(document.warnings[0].page, Some(1));
}
