use super::*;

/// A local ZIP header without its data.
fn part(name: &str) -> Vec<u8> {
    let mut bytes = b"PK\x03\x04".to_vec();
    bytes.extend([0; 22]);
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend([0; 2]);
    bytes.extend(name.as_bytes());
    bytes
}

fn zip(names: &[&str]) -> Vec<u8> {
    names.iter().flat_map(|name| part(name)).collect()
}

#[test]
fn k24_every_format_is_known_by_its_content() {
    let check = |bytes: &[u8], format| assert_eq!(sniff(bytes), format, "{}", String::from_utf8_lossy(bytes));
    check(b"junk\n%PDF-1.7", Some(Format::Pdf));
    check(b"\x89PNG\r\n\x1a\n...", Some(Format::Png));
    check(b"\xff\xd8\xff\xe0", Some(Format::Jpg));
    check(&zip(&["[Content_Types].xml", "word/document.xml"]), Some(Format::Docx));
    check(&zip(&["[Content_Types].xml", "ppt/presentation.xml"]), Some(Format::Pptx));
    check(&zip(&["[Content_Types].xml", "xl/workbook.xml", "xl/embeddings/word/document.bin"]), Some(Format::Xlsx));
    check(&zip(&["readme.txt"]), None);
    check(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", None);
    check(b"<!-- x --><!DOCTYPE html><p>", Some(Format::Html));
    check(b"\n<HTML lang=en>", Some(Format::Html));
    check(b"<?xml version='1.0'?>\n<!-- made -->\n<svg xmlns=''>", Some(Format::Svg));
    check(b"# a heading", Some(Format::Text));
    check("Größe;Länge".as_bytes(), Some(Format::Text));
    check(b"w\0o\0r\0d\0s\0 \0", Some(Format::Text));
    check(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0", None);
}

#[test]
fn k44_a_misnamed_file_is_read_as_what_it_is_with_a_warning() {
    let (format, warning) = resolve(Some(Format::Pdf), b"<!doctype html><p>x").unwrap();
    assert_eq!(format, Format::Html);
    assert_eq!(warning.unwrap().message, "file extension is pdf, but the content is html; processed as html");
    assert_eq!(resolve(Some(Format::Docx), &zip(&["xl/workbook.xml"])).unwrap().0, Format::Xlsx);
    assert_eq!(resolve(Some(Format::Text), b"%PDF-1.4").unwrap().0, Format::Pdf);
}

#[test]
fn k30_k44_any_other_mismatch_is_a_broken_file() {
    let kind = |named, bytes: &[u8]| resolve(named, bytes).unwrap_err().kind();
    assert_eq!(kind(Some(Format::Pdf), b"just words"), "corrupted_file");
    assert_eq!(kind(Some(Format::Png), b"\0\x01\x02\x03"), "corrupted_file");
    assert_eq!(kind(Some(Format::Text), b"\x7fELF\x02\x01\x01\0\0"), "corrupted_file");
    assert_eq!(kind(Some(Format::Docx), b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "corrupted_file");
    assert_eq!(kind(None, b"\0\0\0\0"), "corrupted_file");
    assert_eq!(kind(Some(Format::Pdf), b""), "empty_file");
}

#[test]
fn an_encrypted_document_is_told_from_an_older_one() {
    let mut bytes = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    bytes.extend("EncryptedPackage".bytes().flat_map(|byte| [byte, 0]));
    assert_eq!(resolve(Some(Format::Xlsx), &bytes), Err(Error::PasswordProtected));
}

#[test]
fn the_name_decides_between_texts() {
    for format in [Format::Markdown, Format::Text, Format::Csv] {
        assert_eq!(resolve(Some(format), b"a,b\n1,2"), Ok((format, None)));
    }
    assert_eq!(resolve(Some(Format::Markdown), b"<p align=center>Hello</p>\n# Title"), Ok((Format::Markdown, None)));
    assert_eq!(resolve(Some(Format::Html), b"Hello, <b>page</b>"), Ok((Format::Html, None)));
    assert_eq!(resolve(Some(Format::Markdown), b"A file begins with `%PDF-`."), Ok((Format::Markdown, None)));
    assert_eq!(resolve(Some(Format::Text), b"<svg width='9'></svg>\n\nwords"), Ok((Format::Text, None)));
    assert_eq!(resolve(Some(Format::Csv), b"junk\0\0%PDF-1.7").unwrap().0, Format::Pdf);
}
