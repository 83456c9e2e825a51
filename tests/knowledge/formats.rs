//! Text extraction from documents of every format: text, scanned text, pages, cells and headings.

use serde_json::json;

use crate::fixture::{CROWS, KnowledgeServer, each_transport, each_transport_with};
use crate::sample_files;

const ADD: &str = "knowledge-add";

// === formats ===

#[test]
fn k24_k32_every_format_is_taken_whatever_the_letters_of_its_name() {
    let mut corbie = KnowledgeServer::start();
    let drawn = crate::pictures::render_text(crate::pictures::IMAGE_TEXT);
    for (name, content, method) in [
        ("a.pdf", sample_files::pdf(), "text_extraction"),
        ("b.DOCX", sample_files::docx(), "text_extraction"),
        ("c.pptx", sample_files::pptx(), "text_extraction"),
        ("d.Xlsx", sample_files::xlsx(), "text_extraction"),
        ("e.html", sample_files::html(), "text_extraction"),
        ("f.HTM", b"<p>The same under the shorter name.</p>".to_vec(), "text_extraction"),
        ("g.svg", sample_files::svg(), "image_analysis"),
        ("h.png", crate::pictures::png(&drawn), "image_analysis"),
        ("i.JPEG", crate::pictures::jpeg(&drawn), "image_analysis"),
    ] {
        let added = corbie.add(name, content);
        assert_eq!(added["processing_method"], method, "{name}: {added}");
        assert!(added["chunks_created"].as_u64().is_some_and(|chunks| chunks > 0), "{name}: {added}");
    }
    let shown = corbie.call("knowledge-show", json!({ "sort_by": "filename", "sort_order": "asc" }));
    let formats: Vec<&str> =
        shown["documents"].as_array().unwrap().iter().map(|document| document["format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["pdf", "docx", "pptx", "xlsx", "html", "html", "svg", "png", "jpg"]);
}

#[test]
fn k42_plain_text_is_taken_too() {
    each_transport(|corbie| {
        for (name, format) in [("a.md", "md"), ("b.txt", "txt"), ("c.csv", "csv")] {
            let added = corbie.add(name, format!("{name},{CROWS}\n"));
            assert_eq!(added["processing_method"], "text_extraction");
            let shown = corbie.show();
            let listed = shown["documents"].as_array().unwrap().iter().find(|one| one["filename"] == name).unwrap();
            assert_eq!(listed["format"], format);
        }
    });
}

#[test]
fn k27_a_format_that_is_not_known_is_told_with_those_that_are() {
    each_transport(|corbie| {
        let path = corbie.file("doc.xyz", CROWS);
        let refused = corbie.expect_error(ADD, json!({ "file_path": path }), "unsupported_format");
        assert_eq!(
            refused,
            json!({
                "success": false,
                "error": "unsupported_format",
                "message": "Unsupported file format: .xyz. Use PDF, DOCX, PPTX, XLSX, HTML, JPG, PNG, or SVG",
                "supported_formats": ["pdf", "docx", "pptx", "xlsx", "html", "jpg", "png", "svg"],
                "also_supported": ["md", "txt", "csv"],
            })
        );
        for name in ["doc", "pdf", ".pdf", "doc.", "doc.pdf.exe"] {
            let path = corbie.file(name, CROWS);
            corbie.expect_error(ADD, json!({ "file_path": path }), "unsupported_format");
        }
    });
}

#[test]
fn k44_a_file_is_read_as_what_it_is() {
    each_transport(|corbie| {
        let added = corbie.add("letter.pdf", sample_files::docx());
        assert!(added["warning"].as_str().is_some_and(|warning| !warning.is_empty()), "{added}");
        assert_eq!(corbie.show()["documents"][0]["format"], "docx");
        let noise = corbie.file("noise.pdf", [0u8, 159, 146, 150, 255, 254, 1, 2, 3].repeat(40));
        corbie.expect_error(ADD, json!({ "file_path": noise }), "corrupted_file");
    });
}

// === scanned text ===

#[test]
fn k22_k33_k35_little_text_is_looked_at_and_so_is_what_is_asked_for() {
    use crate::pictures::{IMAGE_TEXT, PageContent, TEXT_LAYER, docx, pdf, png, render_text};
    let mut corbie = KnowledgeServer::start();
    assert_eq!(corbie.add("typed.pdf", pdf(&[PageContent::Text(&TEXT_LAYER)]))["processing_method"], "text_extraction");
    assert_eq!(corbie.add("scan.pdf", pdf(&[PageContent::Scan(IMAGE_TEXT)]))["processing_method"], "ocr");
    let found = corbie.search("seventeen crows on the frozen fence");
    assert_eq!(found["results"][0]["filename"], "scan.pdf", "{found}");
    // The picture in a letter is read in place.
    corbie.add("letter.docx", docx(&png(&render_text("The badger dug a tunnel below the cellar wall"))));
    let found = corbie.search("badger tunnel below the cellar");
    assert_eq!(found["results"][0]["filename"], "letter.docx", "{found}");
    let again = corbie.folder().join("typed.pdf");
    let forced = corbie.call(ADD, json!({ "file_path": again, "force_ocr": true, "async": false }));
    assert!(["ocr", "hybrid"].contains(&forced["processing_method"].as_str().unwrap()), "{forced}");
}

// === pages, cells and headings ===

#[test]
fn k34_pages_slides_and_sheets_keep_their_numbers() {
    each_transport_with(&[("CHUNK_SIZE", "16"), ("CHUNK_OVERLAP", "0")], |corbie| {
        let pages = [
            "The lighthouse keeper polished the great lens every morning before breakfast.",
            "A baker in the village sold warm rye bread to the fishermen at dawn.",
            "The orchestra rehearsed a symphony in the old railway station hall.",
        ];
        corbie.add("pages.pdf", sample_files::pdf_with_pages(&pages));
        let found = corbie.search("rye bread sold by a baker");
        let best = &found["results"][0];
        assert!(best["chunk_text"].as_str().unwrap().contains("baker"), "{found}");
        assert_eq!(best["metadata"]["page_num"], 2, "{found}");
        corbie.add("slides.pptx", sample_files::pptx());
        let found = corbie.search(sample_files::SAMPLE_TEXT);
        assert_eq!(found["results"][0]["metadata"]["page_num"], 1, "{found}");
        corbie.add("plain.txt", "Tulips are planted in autumn and flower in spring.");
        let found = corbie.search("when are tulips planted");
        assert_eq!(found["results"][0]["metadata"].get("page_num"), None, "{found}");
    });
}

#[test]
fn k35_tables_keep_their_cells_and_scripts_are_left_out() {
    each_transport(|corbie| {
        let row = |number: u32, cells: [&str; 2]| {
            let cell = |column: char, text: &str| {
                format!(r#"<c r="{column}{number}" t="inlineStr"><is><t>{text}</t></is></c>"#)
            };
            format!(r#"<row r="{number}">{}{}</row>"#, cell('A', cells[0]), cell('B', cells[1]))
        };
        let rows = row(1, ["bird", "eggs"]) + &row(2, ["magpie", "six"]) + &row(3, ["jackdaw", "five"]);
        let added = corbie.add("nests.xlsx", sample_files::xlsx_with_rows(&rows));
        let got = corbie.call("knowledge-get", json!({ "document_id": added["document_id"] }));
        let text = got["pages"][0]["text"].as_str().unwrap();
        let line = text.lines().find(|line| line.contains("magpie")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains("six") && !line.contains("jackdaw"), "{text}");
        let added = corbie.add("page.html", sample_files::html());
        let got = corbie.call("knowledge-get", json!({ "document_id": added["document_id"] }));
        let text = got["pages"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("Winter") && text.contains(sample_files::SAMPLE_TEXT) && !text.contains("hidden"),
            "{text}"
        );
    });
}
