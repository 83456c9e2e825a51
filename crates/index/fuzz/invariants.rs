//! Invariants of reading a saved segment, for arbitrary bytes. The fuzzer searches for a counterexample; a test
//! replays the corpus.

use std::collections::{BTreeMap, HashSet};

use corbie_index::{Index, LiveDocument, Mode, Query};

/// File header: magic bytes and format version.
pub(crate) const FILE_HEADER: &[u8] = b"corbieix\x01\0\0\0";
/// Larger dimensions would only make inputs larger.
const MAX_DIMENSIONS: usize = 256;
const TOP: usize = 10;
/// Query texts that share words with the committed segments.
const TEXTS: [&str; 3] = ["the river rose", "invoice thirty days rfc9110", "rivr notes"];

/// Asserts the invariants of the target for these bytes. They are the content of a segment file without header and
/// checksum. Both are added here, so that mutated bytes reach the parser instead of failing the checksum.
pub(crate) fn check_invariants(target: &str, bytes: &[u8]) {
    assert_eq!(target, "segment", "there is one target");
    let mut file = [FILE_HEADER, bytes].concat();
    file.extend(crc32fast::hash(&file).to_le_bytes());
    let mut rest = bytes;
    let dimension = take(&mut rest).map(|bytes: [u8; 4]| u32::from_le_bytes(bytes) as usize).unwrap_or_default();
    if dimension > MAX_DIMENSIONS {
        return;
    }
    let live = live(rest).unwrap_or_default();

    let index = Index::new(dimension);
    let restored = index.restore(vec![file.clone()], live.clone());
    if !restored.rejected.is_empty() {
        assert_eq!(index.snapshot().documents(), 0);
        return;
    }
    check_searches(&index, &live, dimension);
    let saved = index.save(&HashSet::new());
    if let [(_, written)] = saved.new_segments.as_slice() {
        assert_eq!(*written, file, "what was read is written as it was");
    }
    index.purge();
    check_searches(&index, &live, dimension);

    // The segments saved after the purge are accepted and hold the same documents.
    let again = Index::new(dimension);
    let files = index.save(&HashSet::new()).new_segments.into_iter().map(|(_, bytes)| bytes).collect();
    let restored = again.restore(files, live.clone());
    assert!(restored.rejected.is_empty());
    assert_eq!(again.snapshot().documents(), index.snapshot().documents());
    check_searches(&again, &live, dimension);
}

/// Checks that hits are limited to `TOP`, sorted, within their bounds, and belong to live documents.
fn check_searches(index: &Index, live: &[LiveDocument], dimension: usize) {
    let snapshot = index.snapshot();
    let owners: BTreeMap<u64, &[u64]> = live.iter().map(|document| (document.key, &*document.chunks)).collect();
    assert!(snapshot.documents() <= owners.len());
    let vector: Vec<f32> = (0..dimension).map(|at| 1.0 / (at + 1) as f32).collect();
    for text in TEXTS {
        for mode in [Mode::Hybrid, Mode::Words, Mode::Vectors] {
            let hits = snapshot.search(&Query { text, vector: Some(&vector), filter: None, top: TOP, mode });
            assert!(hits.len() <= TOP);
            assert!(hits.is_sorted_by(|one, next| one.relevance >= next.relevance), "{hits:?}");
            for hit in &hits {
                assert!((0.0..=1.0).contains(&hit.relevance), "{hit:?}");
                assert!(hit.words.is_finite() && hit.similarity.is_finite(), "{hit:?}");
                assert!(owners[&hit.document].contains(&hit.chunk), "{hit:?}");
                assert!(snapshot.neighbours(hit.chunk, 1, 1).contains(&hit.chunk));
            }
        }
    }
}

/// The documents listed in a segment, as a store would report them.
fn live(mut rest: &[u8]) -> Option<Vec<LiveDocument>> {
    let keys = numbers(&mut rest, u64::from_le_bytes)?;
    let starts = numbers(&mut rest, u32::from_le_bytes)?;
    let chunks = numbers(&mut rest, u64::from_le_bytes)?;
    let ranges = starts.windows(2).map(|pair| chunks.get(pair[0] as usize..pair[1] as usize));
    let document = |(key, chunks): (&u64, Option<&[u64]>)| {
        Some(LiveDocument { key: *key, added: 0, facets: Vec::new(), chunks: chunks?.to_vec() })
    };
    keys.iter().zip(ranges).map(document).collect()
}

fn numbers<T, const N: usize>(rest: &mut &[u8], number: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
    let count = usize::try_from(u64::from_le_bytes(take(rest)?)).ok()?;
    let (bytes, behind) = rest.split_at_checked(count.checked_mul(N)?)?;
    *rest = behind;
    Some(bytes.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)).collect())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*bytes)
}
