//! Merge policy: selects the segments to merge.
//!
//! Tiered: segments are merged when there are several of similar size. A chunk is thus copied a few times while the
//! index grows, not once per document.

use crate::part::Part;
use std::collections::HashSet;
use std::sync::Arc;

/// Segments of a tier that are merged together.
const ENOUGH: usize = 8;
/// Segments up to this many chunks are merged by the writer inline, which takes milliseconds.
const SMALL: usize = 4096;
/// More segments slow down searches, so the writer also merges larger ones.
const TOO_MANY: usize = 64;
/// Larger segments are not merged, because a merge needs memory for a copy.
const LARGEST: usize = 256 * 1024;
/// A segment is rewritten when more than one in this many chunks is removed.
const GONE: usize = 5;

/// A segment of at most this many bytes is rewritten as soon as any document is removed: removed content should
/// disappear soon, and rewriting is fast.
pub(crate) const LIGHT: usize = 16 << 20;

type Parts = Vec<Arc<Part>>;

/// The group that a writer merges inline after a change.
pub(crate) fn small(parts: &[Arc<Part>], busy: &HashSet<u64>) -> Option<Parts> {
    let largest = if parts.len() > TOO_MANY { LARGEST } else { SMALL };
    let mut sizes: Vec<Parts> = Vec::new();
    for part in parts.iter().filter(|part| !busy.contains(&part.serial)) {
        let size = part.sums.chunks.max(1).ilog2() as usize / 3;
        sizes.resize(sizes.len().max(size + 1), Vec::new());
        sizes[size].push(Arc::clone(part));
    }
    let fits = |group: &Parts| group.iter().map(|part| part.sums.chunks).sum::<usize>() <= largest;
    sizes.into_iter().find(|group| group.len() >= ENOUGH && fits(group))
}

/// The group for a background merge: the smallest segments, as long as the next is not much larger than all before it
/// together; or one segment with many removed chunks, or with any removed document if it has at most `light` bytes.
pub(crate) fn any(parts: &[Arc<Part>], light: usize) -> Option<Parts> {
    let mut sorted = parts.to_vec();
    sorted.sort_by_key(|part| part.sums.chunks);
    let mut group = Parts::new();
    let mut sum = 0;
    for part in &sorted {
        let is_near = group.is_empty() || part.sums.chunks <= 2 * sum.max(64);
        if !is_near || sum + part.sums.chunks > LARGEST {
            break;
        }
        sum += part.sums.chunks;
        group.push(Arc::clone(part));
    }
    if group.len() > 1 {
        return Some(group);
    }
    let is_due = |part: &Arc<Part>| {
        let much = part.dead.len() * GONE > part.segment.chunks.len();
        much || (part.is_partly_gone() && part.segment.bytes() <= light)
    };
    sorted.into_iter().find(is_due).map(|part| vec![part])
}

#[cfg(test)]
mod tests {
    use crate::{Change, Chunk, Document, Index};
    use std::collections::HashSet;

    #[test]
    fn one_removed_document_is_dropped_from_light_segments_at_once_and_from_all_by_a_purge() {
        let document = |key: u64, text: &str| {
            let chunk = Chunk { key, text: text.into(), context: String::new(), vectors: Vec::new() };
            Change::Put(Document { key, added: 0, facets: Vec::new(), chunks: vec![chunk] })
        };
        let filled = || {
            let index = Index::new(2);
            let mut all: Vec<Change> = (0..50).map(|key| document(key, "something ordinary")).collect();
            all.push(document(99, "zyzzyva"));
            index.apply(all);
            assert!(!index.holds_removed());
            index.apply(vec![Change::Remove { document: 99 }]);
            assert!(index.holds_removed());
            index
        };
        let is_saved = |index: &Index| {
            let saved = index.save(&HashSet::new());
            saved.fresh.iter().any(|(_, bytes)| bytes.windows(7).any(|word| word == b"zyzzyva"))
        };
        let index = filled();
        index.tidy();
        assert!(!is_saved(&index) && !index.holds_removed());
        let index = filled();
        index.tidy_up_to(0);
        assert!(is_saved(&index) && index.holds_removed());
        index.purge();
        assert!(!is_saved(&index) && !index.holds_removed());
        assert_eq!(index.snapshot().documents(), 50);
    }
}
