//! Replays the fuzz corpus and a number of new inputs.

#[path = "../fuzz/invariants.rs"]
mod invariants;

use std::path::Path;

use corbie_test_support::fuzz_replay;

/// Number of new inputs per target.
const CHANGED: u64 = 300;

fn replay(target: &str) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    fuzz_replay::replay(&corpus, CHANGED, |input| invariants::check_invariants(target, input));
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
