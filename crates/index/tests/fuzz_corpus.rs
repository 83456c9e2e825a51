//! Replays the fuzz corpus and a number of new inputs.

#[path = "../fuzz/invariants.rs"]
mod invariants;

use std::collections::HashSet;
use std::path::Path;

use corbie_index::{Chunk, Document, Index, IndexUpdate};

#[test]
fn saved_segments_keep_their_promises() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/segment");
    corbie_test_support::fuzz_replay::replay(&corpus, 20_000, |input| invariants::check_invariants("segment", input));
}

/// The corpus would be useless if its segments were rejected.
#[test]
fn a_segment_as_it_is_saved_today_begins_as_the_target_has_it() {
    let index = Index::new(4);
    let chunk = Chunk { key: 7, text: "The river rose.".into(), context: "Notes".into(), vectors: vec![vec![1.0; 4]] };
    index.apply(vec![IndexUpdate::Put(Document { key: 1, added: 0, facets: Vec::new(), chunks: vec![chunk] })]);
    let (_, bytes) = index.save(&HashSet::new()).new_segments.remove(0);
    assert!(bytes.starts_with(invariants::FILE_HEADER));
    invariants::check_invariants("segment", &bytes[invariants::FILE_HEADER.len()..bytes.len() - 4]);
}
