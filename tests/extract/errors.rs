//! Unreadable files and their errors.

use serde_json::Value;

use crate::command::{ExtractFolder, extract_json, page_texts};
use crate::sample_files::{self, SAMPLE_TEXT};

#[track_caller]
fn assert_error(read: &Value, kind: &str, message: &str) {
    assert_eq!(read["error"], kind, "{read}");
    let said = read["message"].as_str().unwrap();
    assert!(said.contains(message), "{said}");
    assert_eq!(read.get("pages"), None, "{read}");
}

#[test]
fn k27_an_unknown_ending_is_an_unsupported_format() {
    let words = "Unsupported file format: .xyz. Use PDF, DOCX, PPTX, XLSX, HTML, JPG, PNG, or SVG";
    assert_error(&extract_json("a.xyz", b"words"), "unsupported_format", words);
}

#[test]
fn k29_the_format_is_checked_before_anything_else() {
    let files = ExtractFolder::with_files([]);
    assert_error(&files.json("missing.xyz"), "unsupported_format", ".xyz");
    assert_error(&files.json("missing.pdf"), "file_not_found", "file not found");
}

#[test]
fn k28_a_file_may_be_as_large_as_the_limit_and_no_larger() {
    let most = vec![b'a'; 2 << 20];
    let more = vec![b'a'; (2 << 20) + 1];
    let files =
        ExtractFolder::with_files([("most.txt", &most as &[u8]), ("more.txt", &more)]).setting("max_file", "2 MiB");
    assert_eq!(files.json("most.txt")["error"], Value::Null);
    let words = "File size (3 MB) exceeds maximum allowed size (2 MB)";
    assert_error(&files.json("more.txt"), "file_too_large", words);
    let piped = files.run_with_stdin("--json -", &more);
    assert_error(&serde_json::from_str(&piped.stdout).unwrap(), "file_too_large", words);
}

#[test]
fn k31_v14_what_is_wrong_with_a_file_has_a_word() {
    assert_error(&extract_json("a.docx", b""), "empty_file", "empty");
    let whole = sample_files::docx();
    assert_error(&extract_json("a.docx", &whole[..whole.len() / 2]), "corrupted_file", "save it again");
    assert_error(&extract_json("a.pdf", b"%PDF-1.7\n"), "corrupted_file", "no pages");
    let files = ExtractFolder::with_files([]);
    assert_error(&files.json("."), "file_not_readable", "folder");
}

#[test]
fn k44_a_file_is_read_as_what_it_is() {
    let read = extract_json("a.pdf", &sample_files::docx());
    assert_eq!((&read["format"], page_texts(&read)), (&"docx".into(), vec![SAMPLE_TEXT]));
    let warning = read["warnings"][0]["message"].as_str().unwrap();
    assert!(warning.contains("file extension is pdf, but the content is docx"), "{warning}");
    assert_error(&extract_json("a.pdf", b"words"), "corrupted_file", "not a pdf");
    assert_error(
        &extract_json("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and so on"),
        "corrupted_file",
        "legacy Office",
    );
}

/// K-38: no temporary file remains in any case, since none is created.
#[test]
fn k38_no_temporary_file_is_left() {
    let files = ExtractFolder::with_files([("a.pdf", &sample_files::pdf() as &[u8]), ("b.docx", b"broken")]);
    let temporary = tempfile::tempdir().unwrap();
    let mut command = files.command("a.pdf b.docx");
    command.env("TMPDIR", temporary.path()).output().unwrap();
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(files.folder()).unwrap().count(), 2);
}
