//! Merge policy: selects the segments to merge.
//!
//! Tiered: segments are merged when there are several of similar size. A chunk is thus copied a few times while the
//! index grows, not once per document.

use crate::live_segment::LiveSegment;
use std::collections::HashSet;
use std::sync::Arc;

/// Segments of a tier that are merged together.
const MERGE_FACTOR: usize = 8;
/// Segments up to this many chunks are merged by the writer inline, which takes milliseconds.
const MAX_INLINE_MERGE_CHUNKS: usize = 4096;
/// More segments slow down searches, so the writer also merges larger ones.
const MAX_SEGMENTS: usize = 64;
/// Larger segments are not merged, because a merge needs memory for a copy.
const MAX_MERGED_CHUNKS: usize = 256 * 1024;
/// A segment is rewritten when more than one in this many chunks is removed.
const MAX_REMOVED_RATIO: usize = 5;

/// A segment of at most this many bytes is rewritten as soon as any document is removed: removed content should
/// disappear soon, and rewriting is fast.
pub(crate) const MAX_EAGER_REWRITE_BYTES: usize = 16 << 20;

type SegmentGroup = Vec<Arc<LiveSegment>>;

/// The group that a writer merges inline after a change.
pub(crate) fn inline_merge(parts: &[Arc<LiveSegment>], busy: &HashSet<u64>) -> Option<SegmentGroup> {
    let largest = if parts.len() > MAX_SEGMENTS { MAX_MERGED_CHUNKS } else { MAX_INLINE_MERGE_CHUNKS };
    let mut sizes: Vec<SegmentGroup> = Vec::new();
    for part in parts.iter().filter(|part| !busy.contains(&part.serial)) {
        let size = part.stats.chunks.max(1).ilog2() as usize / 3;
        sizes.resize(sizes.len().max(size + 1), Vec::new());
        sizes[size].push(Arc::clone(part));
    }
    let fits = |group: &SegmentGroup| group.iter().map(|part| part.stats.chunks).sum::<usize>() <= largest;
    sizes.into_iter().find(|group| group.len() >= MERGE_FACTOR && fits(group))
}

/// The group for a background merge: the smallest segments, as long as the next is not much larger than all before it
/// together; or one segment with many removed chunks, or with any removed document if it has at most `light` bytes.
pub(crate) fn background_merge(parts: &[Arc<LiveSegment>], light: usize) -> Option<SegmentGroup> {
    let mut sorted = parts.to_vec();
    sorted.sort_by_key(|part| part.stats.chunks);
    let mut group = SegmentGroup::new();
    let mut sum = 0;
    for part in &sorted {
        let is_near = group.is_empty() || part.stats.chunks <= 2 * sum.max(64);
        if !is_near || sum + part.stats.chunks > MAX_MERGED_CHUNKS {
            break;
        }
        sum += part.stats.chunks;
        group.push(Arc::clone(part));
    }
    if group.len() > 1 {
        return Some(group);
    }
    let is_due = |part: &Arc<LiveSegment>| {
        let much = part.removed_chunks.len() * MAX_REMOVED_RATIO > part.segment.chunks.len();
        much || (part.has_removed() && part.segment.bytes() <= light)
    };
    sorted.into_iter().find(is_due).map(|part| vec![part])
}

#[cfg(test)]
mod tests {
    use crate::{Chunk, Document, Index, IndexUpdate};
    use std::collections::HashSet;

    #[test]
    fn one_removed_document_is_dropped_from_light_segments_at_once_and_from_all_by_a_purge() {
        let document = |key: u64, text: &str| {
            let chunk = Chunk { key, text: text.into(), context: String::new(), vectors: Vec::new() };
            IndexUpdate::Put(Document { key, added: 0, facets: Vec::new(), chunks: vec![chunk] })
        };
        let filled = || {
            let index = Index::new(2);
            let mut all: Vec<IndexUpdate> = (0..50).map(|key| document(key, "something ordinary")).collect();
            all.push(document(99, "zyzzyva"));
            index.apply(all);
            assert!(!index.has_tombstones());
            index.apply(vec![IndexUpdate::Remove { document: 99 }]);
            assert!(index.has_tombstones());
            index
        };
        let is_saved = |index: &Index| {
            let saved = index.save(&HashSet::new());
            saved.new_segments.iter().any(|(_, bytes)| bytes.windows(7).any(|word| word == b"zyzzyva"))
        };
        let index = filled();
        index.merge_segments();
        assert!(!is_saved(&index) && !index.has_tombstones());
        let index = filled();
        index.merge_up_to(0);
        assert!(is_saved(&index) && index.has_tombstones());
        index.purge();
        assert!(!is_saved(&index) && !index.has_tombstones());
        assert_eq!(index.snapshot().documents(), 50);
    }
}
