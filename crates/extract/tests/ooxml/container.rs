//! Container tests: properties, part names, both namespace forms, misleading files.

use corbie_extract::{Error, Format};

use super::archive::{Archive, HEAD};
use super::docx::{body, docx};
use super::{outline, read, refused};

#[test]
fn core_properties_become_metadata() {
    let core = r#"<cp:coreProperties xmlns:cp="c" xmlns:dc="d" xmlns:dcterms="t"><dc:title>A &amp; B</dc:title>
        <dc:creator>Ann</dc:creator><dc:subject/><dc:language>de</dc:language>
        <dcterms:created>2024-01-02T03:04:05Z</dcterms:created></cp:coreProperties>"#;
    let metadata = read(&docx(&body("Text")).part("docProps/core.xml", core).bytes(), Format::Docx).metadata;
    assert_eq!(metadata.title.as_deref(), Some("A & B"));
    assert_eq!(metadata.author.as_deref(), Some("Ann"));
    assert_eq!(metadata.subject, None);
    assert_eq!(metadata.language.as_deref(), Some("de"));
    assert_eq!(metadata.created.as_deref(), Some("2024-01-02T03:04:05Z"));
}

#[test]
fn a_part_that_only_adds_may_be_broken() {
    let document = read(&docx(&body("Text")).part("docProps/core.xml", "<open>").bytes(), Format::Docx);
    assert_eq!(outline(&document), ["paragraph: Text"]);
    assert_eq!(document.warnings.len(), 1);
}

#[test]
fn strict_namespaces_and_other_prefixes_are_read_alike() {
    let markup = format!(
        r#"{HEAD}<x:document xmlns:x="http://purl.oclc.org/ooxml/wordprocessingml/main"><x:body><x:p><x:r>
        <x:t>Strict</x:t></x:r></x:p></x:body></x:document>"#
    );
    let relations = r#"<Relationships><Relationship Id="a" Target="/word/main.xml"
        Type="http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument"/></Relationships>"#;
    let bytes = Archive::default().part("_rels/.rels", relations).stored("word\\Main.xml", markup).bytes();
    assert_eq!(outline(&read(&bytes, Format::Docx)), ["paragraph: Strict"]);
}

#[test]
fn markup_may_be_written_in_sixteen_bits() {
    let markup = r#"<w:document xmlns:w="w"><w:body><w:p><w:r><w:t>Grüße</w:t></w:r></w:p></w:body></w:document>"#;
    let mut wide = vec![0xff, 0xfe];
    wide.extend(markup.encode_utf16().flat_map(u16::to_le_bytes));
    let bytes = Archive::of("word/document.xml").part("word/document.xml", wide).bytes();
    assert_eq!(outline(&read(&bytes, Format::Docx)), ["paragraph: Grüße"]);
}

#[test]
fn something_before_the_archive_does_no_harm() {
    let mut bytes = b"PK is what this begins with".to_vec();
    bytes.extend(docx(&body("Text")).bytes());
    assert_eq!(outline(&read(&bytes, Format::Docx)), ["paragraph: Text"]);
}

#[test]
fn of_two_parts_with_one_name_the_first_counts() {
    let bytes = docx(&body("First")).part("word/document.xml", "<w:document/>").bytes();
    assert_eq!(outline(&read(&bytes, Format::Docx)), ["paragraph: First"]);
}

#[test]
fn names_that_lead_outside_are_no_parts() {
    let bytes = docx(&body("Text")).part("../../etc/passwd", "x").part("//host/share", "x").bytes();
    assert_eq!(outline(&read(&bytes, Format::Docx)), ["paragraph: Text"]);
}

#[test]
fn an_encrypted_document_asks_for_a_copy_without_a_password() {
    let mut bytes = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    bytes.resize(1536, 0);
    bytes.extend("EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes));
    assert_eq!(refused(&bytes, Format::Xlsx), Error::PasswordProtected);
}

#[test]
fn an_older_document_is_told_what_it_is() {
    let mut bytes = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    bytes.resize(1536, 0);
    let error = refused(&bytes, Format::Docx).to_string();
    assert!(error.contains("legacy Office"), "{error}");
}

#[test]
fn a_document_of_another_kind_is_refused() {
    let workbook = Archive::of("xl/workbook.xml").part("xl/workbook.xml", "<workbook/>").bytes();
    for format in [Format::Docx, Format::Pptx] {
        assert_eq!(refused(&workbook, format).kind(), "corrupted_file");
    }
    for bytes in [b"PK".as_slice(), b"plain text", b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"] {
        assert_eq!(refused(bytes, Format::Docx).kind(), "corrupted_file");
    }
}
