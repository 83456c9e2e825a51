//! Positions of images between the blocks of a document.

use corbie_extract::Format;

use super::docx::{body, docx};
use super::pptx::{pptx, shape, slide};
use super::read;

/// Positions of the images of a document, in block order.
fn places(body: &str) -> Vec<(String, usize)> {
    let names = ["a", "b", "c", "d"];
    let parts = names.map(|name| format!("{name}.png"));
    let relations: Vec<_> = names.iter().zip(&parts).map(|(name, part)| (*name, "image", part.as_str())).collect();
    let mut archive = docx(body).relations("word/_rels/document.xml.rels", &relations);
    for part in &parts {
        archive = archive.stored(&format!("word/{part}"), b"\x89PNG\r\n\x1a\n");
    }
    let page = read(&archive.bytes(), Format::Docx).pages.remove(0);
    page.images.iter().map(|image| (image.description.clone().unwrap_or_default(), image.after)).collect()
}

fn drawing(name: &str) -> String {
    format!(r#"<w:drawing><wp:docPr descr="{name}"/><a:blip r:embed="{name}"/></w:drawing>"#)
}

fn at(name: &str, after: usize) -> (String, usize) {
    (name.to_owned(), after)
}

#[test]
fn k35_a_picture_stands_between_the_blocks_around_it() {
    let picture = |name: &str| format!("<w:p><w:r>{}</w:r></w:p>", drawing(name));
    let between = [body("one"), picture("a"), body("two"), picture("b")].concat();
    assert_eq!(places(&between), [at("a", 1), at("b", 2)]);
    // Before or after the text of its paragraph.
    let inside = format!("<w:p><w:r>{}<w:t>words</w:t>{}</w:r></w:p>", drawing("a"), drawing("b"));
    assert_eq!(places(&[body("one"), inside].concat()), [at("a", 1), at("b", 2)]);
}

#[test]
fn k35_a_picture_in_a_table_stands_behind_it_and_one_in_a_frame_or_a_box_stands_inside() {
    let cell = |inside: &str| format!("<w:tc>{inside}</w:tc>");
    let picture = format!("<w:p><w:r>{}</w:r></w:p>", drawing("a"));
    let table = format!("<w:tbl><w:tr>{}{}</w:tr></w:tbl>", cell(&picture), cell(&body("x")));
    assert_eq!(places(&[body("one"), table, body("two")].concat()), [at("a", 2)]);
    let framed = [body("x"), picture.clone(), body("y")].concat();
    let frame = format!("<w:tbl><w:tr>{}</w:tr></w:tbl>", cell(&framed));
    assert_eq!(places(&[body("one"), frame].concat()), [at("a", 2)]);
    let boxed = format!("<w:p><w:r><w:t>p</w:t><w:pict><w:txbxContent>{framed}</w:txbxContent></w:pict></w:r></w:p>");
    assert_eq!(places(&[body("one"), boxed].concat()), [at("a", 3)]);
}

#[test]
fn k35_a_picture_in_a_header_stands_behind_its_words() {
    let header = format!("<w:hdr>{}<w:p><w:r>{}</w:r></w:p></w:hdr>", body("Top"), drawing("a"));
    let archive = docx(&(body("one") + &body("two")))
        .relations("word/_rels/document.xml.rels", &[("h", "header", "h.xml")])
        .part("word/h.xml", header)
        .relations("word/_rels/h.xml.rels", &[("a", "image", "a.png")])
        .stored("word/a.png", b"\x89PNG\r\n\x1a\n");
    let page = read(&archive.bytes(), Format::Docx).pages.remove(0);
    assert_eq!((page.blocks.len(), page.images[0].after), (3, 3));
}

#[test]
fn k35_a_picture_stands_between_the_shapes_around_it_and_behind_the_title() {
    let picture = |id: &str| format!(r#"<p:pic><p:blipFill><a:blip r:embed="{id}"/></p:blipFill></p:pic>"#);
    let shapes = [
        picture("a"),
        shape(r#"<p:ph type="title"/>"#, &["Title"]),
        shape("", &["one"]),
        picture("b"),
        shape("", &["two"]),
    ];
    let archive = pptx(&[slide(&shapes.concat())])
        .relations("ppt/slides/_rels/s90.xml.rels", &[("a", "image", "a.png"), ("b", "image", "b.png")])
        .stored("ppt/slides/a.png", b"\x89PNG\r\n\x1a\n")
        .stored("ppt/slides/b.png", b"\x89PNG\r\n\x1a\n");
    let page = read(&archive.bytes(), Format::Pptx).pages.remove(0);
    assert_eq!(page.images.iter().map(|image| image.after).collect::<Vec<_>>(), [1, 2]);
}
