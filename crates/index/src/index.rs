//! The index: a single writer publishes snapshots, and readers load the latest without locking.

use crate::bitmap::Bitmap;
use crate::filter::DocumentAttributes;
use crate::live_segment::LiveSegment;
use crate::segment::{Segment, SegmentId};
use crate::segment_file::{SegmentError, decode, encode};
use crate::snapshot::Snapshot;
use crate::update::{Document, Facet, IndexUpdate, LiveDocument};
use crate::{merge_policy, vectors};
use arc_swap::ArcSwap;
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hybrid search over the chunks of documents.
#[derive(Debug)]
pub struct Index {
    dimension: usize,
    latest: ArcSwap<Snapshot>,
    writer: Mutex<Writer>,
    /// Held while large segments are merged, which does not block other writers.
    merge_lock: Mutex<()>,
}

/// Locations of the documents. Only the writer uses them.
#[derive(Debug, Default)]
struct Writer {
    /// Segment serial and position of each document.
    locations: HashMap<u64, (u64, u32)>,
    next_serial: u64,
    /// Segments that are being merged outside the lock.
    merging: HashSet<u64>,
}

/// Segments to write to files, and the files still in use.
#[derive(Debug, Default)]
pub struct SegmentsToSave {
    pub new_segments: Vec<(SegmentId, Vec<u8>)>,
    /// All other segment files can be deleted.
    pub in_use: Vec<SegmentId>,
}

#[derive(Debug, Default)]
pub struct RestoreReport {
    /// Keys of documents that no segment has. The owner adds them with [`Index::apply`].
    pub missing: Vec<u64>,
    pub rejected: Vec<RejectedSegment>,
}

/// A rejected segment. The owner must delete its file, so that it is not passed to [`Index::save`] as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectedSegment {
    /// Position in the given segments.
    pub position: usize,
    pub error: SegmentError,
}

/// The net effect of a batch of changes.
#[derive(Default)]
struct Batch {
    is_cleared: bool,
    removed: BTreeSet<u64>,
    attributes: BTreeMap<u64, DocumentAttributes>,
    put: BTreeMap<u64, Document>,
}

/// The changes to one segment.
#[derive(Default)]
struct SegmentEdits {
    removed: Vec<u32>,
    attributes: Vec<(u32, DocumentAttributes)>,
}

// === impl Index ===

impl Index {
    /// Creates an empty index for vectors of this dimension. Vectors with more than 4096 dimensions are not searched.
    pub fn new(dimension: usize) -> Index {
        let dimension = if dimension > vectors::MAX_DIMENSIONS { 0 } else { dimension };
        let latest = ArcSwap::from_pointee(Snapshot::new(Vec::new(), dimension));
        Index { dimension, latest, writer: Mutex::default(), merge_lock: Mutex::default() }
    }

    /// The latest state.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.latest.load_full()
    }

    /// Applies all `changes` atomically.
    pub fn apply(&self, changes: Vec<IndexUpdate>) {
        let batch = Batch::new(changes);
        // Text analysis is slow and needs no lock.
        let (documents, details): (Vec<Document>, Vec<DocumentAttributes>) =
            batch.put.into_values().map(split_attributes).unzip();
        let segment = (!documents.is_empty()).then(|| Arc::new(Segment::build(&documents, self.dimension)));
        drop(documents);
        let mut writer = self.lock();
        let mut parts = if batch.is_cleared { Vec::new() } else { self.latest.load().segments.clone() };
        if batch.is_cleared {
            writer.locations.clear();
        }
        let mut edits: BTreeMap<u64, SegmentEdits> = BTreeMap::new();
        for key in batch.removed {
            if let Some((serial, place)) = writer.locations.remove(&key) {
                edits.entry(serial).or_default().removed.push(place);
            }
        }
        for (key, detail) in batch.attributes {
            if let Some((serial, place)) = writer.locations.get(&key) {
                edits.entry(*serial).or_default().attributes.push((*place, detail));
            }
        }
        for part in &mut parts {
            if let Some(SegmentEdits { removed, attributes: described }) = edits.remove(&part.serial) {
                let part = Arc::make_mut(part);
                part.remove(&removed);
                if !described.is_empty() {
                    part.set_attributes(described);
                }
            }
        }
        parts.retain(|part| part.stats.documents > 0);
        if let Some(segment) = segment {
            let serial = writer.next_segment_serial();
            writer.set_locations(serial, &segment);
            parts.push(Arc::new(LiveSegment::new(serial, segment, details)));
        }
        self.publish(parts);
        while let Some(group) = merge_policy::inline_merge(&self.latest.load().segments, &writer.merging) {
            self.replace_segments(&mut writer, &group, merge_group(&group, self.dimension));
        }
    }

    /// Merges small segments, and drops removed documents from all but large ones. Searches and changes are not
    /// blocked.
    pub fn merge_segments(&self) {
        self.merge_up_to(merge_policy::MAX_EAGER_REWRITE_BYTES);
    }

    /// Like [`Index::merge_segments`], and also drops removed documents from large segments. It copies one of them at a time.
    pub fn purge(&self) {
        self.merge_up_to(usize::MAX);
    }

    /// Whether a saved segment would contain removed documents.
    pub fn has_tombstones(&self) -> bool {
        self.snapshot().segments.iter().any(|part| part.has_removed())
    }

    /// Drops removed documents from segments of at most `light` bytes.
    pub(crate) fn merge_up_to(&self, light: usize) {
        let _only_one = self.merge_lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut writer = self.lock();
            let Some(group) = merge_policy::background_merge(&self.latest.load().segments, light) else { return };
            writer.merging = group.iter().map(|part| part.serial).collect();
            drop(writer);
            let joined = merge_group(&group, self.dimension);
            let mut writer = self.lock();
            writer.merging.clear();
            self.replace_segments(&mut writer, &group, joined);
        }
    }

    /// Segments that are not `known`, to write to files, and the segments in use, so that other files can be deleted.
    pub fn save(&self, known: &HashSet<SegmentId>) -> SegmentsToSave {
        let snapshot = self.snapshot();
        let segments = snapshot.segments.iter().map(|part| &part.segment);
        SegmentsToSave {
            in_use: segments.clone().map(|segment| segment.id).collect(),
            new_segments: segments
                .filter(|segment| !known.contains(&segment.id))
                .map(|segment| (segment.id, encode(segment)))
                .collect(),
        }
    }

    /// Replaces the content of the index with the documents of saved segments that the store still has.
    ///
    /// A document is restored if its chunk keys equal the keys in the store. Otherwise it is reported as missing.
    pub fn restore(&self, segments: Vec<Vec<u8>>, live: Vec<LiveDocument>) -> RestoreReport {
        let mut refused = Vec::new();
        let mut decoded = Vec::new();
        for (position, bytes) in segments.into_iter().enumerate() {
            match decode(&bytes, self.dimension) {
                Ok(segment) => decoded.push(segment),
                Err(why) => refused.push(RejectedSegment { position, error: why }),
            }
        }
        // If several segments have a document, the largest wins: the rest have less to search, or nothing.
        decoded.sort_by_key(|segment| std::cmp::Reverse(segment.chunks.len()));
        let mut missing: BTreeMap<u64, LiveDocument> =
            live.into_iter().map(|document| (document.key, document)).collect();
        let mut writer = self.lock();
        writer.locations.clear();
        let mut parts = Vec::new();
        for segment in decoded {
            let serial = writer.next_segment_serial();
            let mut gone = Vec::new();
            let mut details = Vec::new();
            for (place, key) in segment.documents.iter().enumerate() {
                let chunks = &segment.chunks[segment.range(place)];
                let is_live = missing.get(key).is_some_and(|document| document.chunks == chunks);
                match is_live.then(|| missing.remove(key)).flatten() {
                    Some(document) => {
                        writer.locations.insert(*key, (serial, place as u32));
                        details.push(DocumentAttributes { added: document.added, facets: document.facets.into() });
                    }
                    None => {
                        gone.push(place as u32);
                        details.push(DocumentAttributes { added: 0, facets: Arc::new([]) });
                    }
                }
            }
            let mut part = LiveSegment::new(serial, Arc::new(segment), details);
            part.remove(&gone);
            if part.stats.documents > 0 {
                parts.push(Arc::new(part));
            }
        }
        self.publish(parts);
        RestoreReport { missing: missing.into_keys().collect(), rejected: refused }
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic while building a segment leaves the locations of the last snapshot, which are correct.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, parts: Vec<Arc<LiveSegment>>) {
        self.latest.store(Arc::new(Snapshot::new(parts, self.dimension)));
    }

    /// Replaces the segments of a group with the merged segment. Some of its documents may have been removed since.
    fn replace_segments(&self, writer: &mut Writer, group: &[Arc<LiveSegment>], joined: Segment) {
        let serials: HashSet<u64> = group.iter().map(|part| part.serial).collect();
        let latest = self.latest.load_full();
        let (old, mut parts): (Vec<_>, Vec<_>) =
            latest.segments.iter().cloned().partition(|part| serials.contains(&part.serial));
        let old: HashMap<u64, Arc<LiveSegment>> = old.into_iter().map(|part| (part.serial, part)).collect();
        let serial = writer.next_segment_serial();
        let mut gone = Vec::new();
        let mut details = Vec::new();
        let sources = group.iter().flat_map(|part| part.documents.iter().map(move |place| (part, place)));
        for (at, (part, place)) in sources.enumerate() {
            let key = joined.documents[at];
            let is_there = writer.locations.get(&key) == Some(&(part.serial, place as u32));
            if is_there {
                writer.locations.insert(key, (serial, at as u32));
            } else {
                gone.push(at as u32);
            }
            let part = old.get(&part.serial).unwrap_or(part);
            details.push(part.attributes[place].clone());
        }
        let mut part = LiveSegment::new(serial, Arc::new(joined), details);
        part.remove(&gone);
        if part.stats.documents > 0 {
            parts.push(Arc::new(part));
        }
        self.publish(parts);
    }
}

fn merge_group(group: &[Arc<LiveSegment>], dimension: usize) -> Segment {
    let parts: Vec<(&Segment, &Bitmap, &Bitmap)> =
        group.iter().map(|part| (part.segment.as_ref(), &part.documents, &part.chunks)).collect();
    Segment::merge(&parts, dimension)
}

fn split_attributes(mut document: Document) -> (Document, DocumentAttributes) {
    let facets: Vec<Facet> = std::mem::take(&mut document.facets);
    let detail = DocumentAttributes { added: document.added, facets: facets.into() };
    (document, detail)
}

// === impl Writer ===

impl Writer {
    fn next_segment_serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial
    }

    fn set_locations(&mut self, serial: u64, segment: &Segment) {
        for (place, key) in segment.documents.iter().enumerate() {
            self.locations.insert(*key, (serial, place as u32));
        }
    }
}

// === impl Batch ===

impl Batch {
    fn new(changes: Vec<IndexUpdate>) -> Batch {
        let mut batch = Batch::default();
        for change in changes {
            match change {
                IndexUpdate::Put(document) => {
                    batch.remove(document.key);
                    batch.put.insert(document.key, document);
                }
                IndexUpdate::Remove { document } => batch.remove(document),
                IndexUpdate::SetAttributes { document, added, facets } => match batch.put.get_mut(&document) {
                    Some(put) => (put.added, put.facets) = (added, facets),
                    None if batch.removed.contains(&document) || batch.is_cleared => {}
                    None => {
                        batch.attributes.insert(document, DocumentAttributes { added, facets: facets.into() });
                    }
                },
                IndexUpdate::Clear => batch = Batch { is_cleared: true, ..Batch::default() },
            }
        }
        batch
    }

    fn remove(&mut self, key: u64) {
        self.put.remove(&key);
        self.attributes.remove(&key);
        self.removed.insert(key);
    }
}
