//! S-12: decompression bombs and other files that expand, take long or nest deeply. Each ends soon, with text or an
//! error, in little memory.

use std::time::{Duration, Instant};

use crate::archive::{Archive, HEAD};
use crate::command::ExtractFolder;
use crate::pdf_builder::{Builder, text};
use crate::sample_files::{docx_with_body, xlsx_with_rows};

/// Reads a bomb within 400 MiB of memory.
#[track_caller]
fn extract_bounded(name: &str, bytes: &[u8]) -> String {
    let begun = Instant::now();
    let read =
        ExtractFolder::with_files([(name, bytes)]).setting("memory", "400 MiB").setting("timeout", "30s").json(name);
    assert!(begun.elapsed() < Duration::from_secs(30), "{name} took {:?}", begun.elapsed());
    let error = read["error"].as_str().unwrap_or("read").to_owned();
    assert!(!["time_limit", "memory_limit", "cpu_limit"].contains(&&*error), "{name}: {read}");
    error
}

#[test]
fn s12_zip_bomb_a_part_that_inflates_a_thousandfold() {
    let words = "a".repeat(300 << 20);
    let bomb = docx_with_body(&format!("<w:p><w:r><w:t>{words}</w:t></w:r></w:p>"));
    assert!(bomb.len() < 1 << 20);
    assert_eq!(extract_bounded("a.docx", &bomb), "limit_exceeded");
}

#[test]
fn s12_zip_bomb_an_archive_of_very_many_parts() {
    let mut archive = Archive::of("word/document.xml");
    for part in 0..40_000 {
        archive = archive.stored(&format!("word/media/{part}.png"), b"");
    }
    assert_eq!(extract_bounded("a.docx", &archive.bytes()), "limit_exceeded");
}

#[test]
fn s12_billion_laughs_entities_that_grow_tenfold_ten_times() {
    let mut entities = String::from("<!ENTITY a0 \"ha\">");
    for level in 1..10 {
        let inner = format!("&a{};", level - 1).repeat(10);
        entities += &format!("<!ENTITY a{level} \"{inner}\">");
    }
    let part = format!("{HEAD}<!DOCTYPE w [{entities}]><w:document>&a9;</w:document>");
    let office = Archive::of("word/document.xml").part("word/document.xml", part).bytes();
    assert_eq!(extract_bounded("a.docx", &office), "corrupted_file");
    let names = r#"xmlns="http://www.w3.org/2000/svg""#;
    let drawing = format!("<!DOCTYPE svg [{entities}]><svg {names}><text>&a9;</text></svg>");
    assert_eq!(extract_bounded("a.svg", drawing.as_bytes()), "corrupted_file");
    let page = format!("<!DOCTYPE html [{entities}]><p>&a9;</p>");
    assert_eq!(extract_bounded("a.html", page.as_bytes()), "read");
}

#[test]
fn s12_external_entity_a_file_of_this_machine() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "corbie must not tell").unwrap();
    let entity = format!("<!DOCTYPE svg [<!ENTITY x SYSTEM \"file://{}\">]>", secret.path().display());
    for (name, bytes) in [
        ("a.svg", format!(r#"{entity}<svg xmlns="http://www.w3.org/2000/svg"><text>&x;</text></svg>"#)),
        ("a.html", format!("{entity}<p>&x; and words</p>")),
    ] {
        let ended = ExtractFolder::with_files([(name, bytes.as_bytes())]).run(&format!("--json --full {name}"));
        assert!(!ended.stdout.contains("must not tell"), "{}", ended.stdout);
    }
}

#[test]
fn s12_deep_nesting_of_elements() {
    let deep = "<w:p>".repeat(200_000);
    assert_eq!(extract_bounded("a.docx", &docx_with_body(&deep)), "limit_exceeded");
    extract_bounded("a.html", "<div>".repeat(500_000).as_bytes());
    let groups = "<g>".repeat(300_000);
    extract_bounded("a.svg", format!(r#"<svg xmlns="http://www.w3.org/2000/svg">{groups}"#).as_bytes());
    extract_bounded("a.md", ">".repeat(1_000_000).as_bytes());
}

#[test]
fn s12_far_cells_a_sheet_of_two_cells_at_its_corners() {
    let far = r#"<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>"#;
    assert_eq!(extract_bounded("a.xlsx", &xlsx_with_rows(far)), "read");
}

#[test]
fn s12_pixel_bomb_a_picture_of_forty_gigabytes() {
    let mut bomb = image::ImageBuffer::<image::Luma<u8>, _>::new(1, 1);
    bomb.put_pixel(0, 0, image::Luma([0]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    bomb.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let mut bytes = bytes.into_inner();
    // The size in the header; its checksum is left wrong in one case, and corrected in the other.
    bytes[16..20].copy_from_slice(&200_000u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&200_000u32.to_be_bytes());
    assert_ne!(extract_bounded("a.png", &bytes), "read");
    let sum = png_crc(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(extract_bounded("a.png", &bytes), "limit_exceeded");
}

#[test]
fn s12_pdf_bombs_of_pages_forms_and_streams() {
    let mut shown = Builder::new();
    let mut inner = shown.stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >>",
        text("F1", 8, 10, 10, "words").as_bytes(),
    );
    for _ in 0..7 {
        let entries =
            format!("/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /XObject << /X {inner} 0 R >> >>");
        inner = shown.stream(&entries, "/X Do ".repeat(20).as_bytes());
    }
    shown.page_with(b"/X Do", &format!("/Resources << /XObject << /X {inner} 0 R >> >>"));
    extract_bounded("forms.pdf", &shown.build());

    let mut circle = Builder::new();
    circle.page("BT ET");
    let file = String::from_utf8(circle.build()).unwrap();
    // A page tree that contains itself.
    extract_bounded("circle.pdf", file.replace("/Kids [8 0 R]", "/Kids [2 0 R]").as_bytes());

    let mut inflated = Builder::new();
    let zeros = deflate(&vec![b' '; 300 << 20]);
    let content = inflated.stream("/Filter /FlateDecode", &zeros);
    let page = format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents {content} 0 R >>");
    let page = inflated.object(&page);
    let file = inflated.build();
    let file = replace_bytes(&file, b"/Kids [] /Count 0", format!("/Kids [{page} 0 R] /Count 1").as_bytes());
    let read = ExtractFolder::with_files([("a.pdf", &file as &[u8])])
        .setting("memory", "200 MiB")
        .setting("timeout", "30s")
        .json("a.pdf");
    assert_ne!(read["error"], serde_json::Value::Null, "{read}");
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn replace_bytes(bytes: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let at = bytes.windows(what.len()).position(|part| part == what).unwrap();
    [&bytes[..at], by, &bytes[at + what.len()..]].concat()
}

/// CRC of a PNG chunk.
fn png_crc(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}
