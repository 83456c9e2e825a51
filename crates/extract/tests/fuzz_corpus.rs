//! Replays what fuzzing starts from and what it found.

#[path = "../fuzz/promises.rs"]
mod promises;

use std::panic::catch_unwind;
use std::path::Path;

/// Every input of a target.
fn replay(target: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = std::fs::read_dir(folder).expect("the corpus is committed");
    let paths: Vec<_> = files.map(|file| file.expect("entry").path()).collect();
    assert!(!paths.is_empty());
    for path in paths {
        let input = std::fs::read(&path).expect("readable");
        assert!(catch_unwind(|| promises::hold(target, &input)).is_ok(), "{}", path.display());
    }
}

#[test]
fn pdf_files_keep_their_promises() {
    replay("pdf");
}

#[test]
fn archives_keep_their_promises() {
    replay("ooxml");
}

#[test]
fn parts_of_documents_keep_their_promises() {
    replay("ooxml_parts");
}

#[test]
fn web_pages_keep_their_promises() {
    replay("html");
}

#[test]
fn drawings_keep_their_promises() {
    replay("svg");
}

#[test]
fn pictures_keep_their_promises() {
    replay("picture");
}

#[test]
fn plain_texts_keep_their_promises() {
    replay("plain");
}

#[test]
fn chunks_keep_their_promises() {
    replay("chunk");
}
