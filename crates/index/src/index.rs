//! The index: one writer at a time makes new snapshots, readers take the latest and never wait.

use crate::bitmap::Bitmap;
use crate::change::{Change, Document, Facet, LiveDocument};
use crate::file::{Damage, decode, encode};
use crate::filter::Detail;
use crate::part::Part;
use crate::segment::{Segment, SegmentId};
use crate::snapshot::Snapshot;
use crate::{tidy, vectors};
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
    /// Held while large segments are joined, which others need not wait for.
    tidying: Mutex<()>,
}

/// Where the documents are. Only the writer needs to know.
#[derive(Debug, Default)]
struct Writer {
    /// Part and place of each document.
    places: HashMap<u64, (u64, u32)>,
    next_serial: u64,
    /// Parts that are being joined outside the lock.
    busy: HashSet<u64>,
}

/// What is to be written to files, and which files are still needed.
#[derive(Debug, Default)]
pub struct Saved {
    pub fresh: Vec<(SegmentId, Vec<u8>)>,
    /// Files of all other segments can be deleted.
    pub in_use: Vec<SegmentId>,
}

#[derive(Debug, Default)]
pub struct Restored {
    /// Keys of documents that no segment has: to be fed with [`Index::apply`].
    pub missing: Vec<u64>,
    pub refused: Vec<Refused>,
}

/// Bytes that were not taken. Their file is to be deleted, lest it is counted among those known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Which of the segments given.
    pub position: usize,
    pub why: Damage,
}

/// What a batch of changes comes to.
#[derive(Default)]
struct Batch {
    is_cleared: bool,
    removed: BTreeSet<u64>,
    described: BTreeMap<u64, Detail>,
    put: BTreeMap<u64, Document>,
}

/// What changes in one part.
#[derive(Default)]
struct Edits {
    removed: Vec<u32>,
    described: Vec<(u32, Detail)>,
}

// === impl Index ===

impl Index {
    /// An empty index for vectors of this many numbers. More than 4096 are not searched.
    pub fn new(dimension: usize) -> Index {
        let dimension = if dimension > vectors::MOST_DIMENSIONS { 0 } else { dimension };
        let latest = ArcSwap::from_pointee(Snapshot::new(Vec::new(), dimension));
        Index { dimension, latest, writer: Mutex::default(), tidying: Mutex::default() }
    }

    /// The latest state.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.latest.load_full()
    }

    /// Makes all of `changes` visible at once.
    pub fn apply(&self, changes: Vec<Change>) {
        let batch = Batch::new(changes);
        // Reading the texts takes long and needs no lock.
        let (documents, details): (Vec<Document>, Vec<Detail>) = batch.put.into_values().map(split_detail).unzip();
        let segment = (!documents.is_empty()).then(|| Arc::new(Segment::build(&documents, self.dimension)));
        drop(documents);
        let mut writer = self.lock();
        let mut parts = if batch.is_cleared { Vec::new() } else { self.latest.load().parts.clone() };
        if batch.is_cleared {
            writer.places.clear();
        }
        let mut edits: BTreeMap<u64, Edits> = BTreeMap::new();
        for key in batch.removed {
            if let Some((serial, place)) = writer.places.remove(&key) {
                edits.entry(serial).or_default().removed.push(place);
            }
        }
        for (key, detail) in batch.described {
            if let Some((serial, place)) = writer.places.get(&key) {
                edits.entry(*serial).or_default().described.push((*place, detail));
            }
        }
        for part in &mut parts {
            if let Some(Edits { removed, described }) = edits.remove(&part.serial) {
                let part = Arc::make_mut(part);
                part.remove(&removed);
                if !described.is_empty() {
                    part.describe(described);
                }
            }
        }
        parts.retain(|part| part.sums.documents > 0);
        if let Some(segment) = segment {
            let serial = writer.serial();
            writer.place(serial, &segment);
            parts.push(Arc::new(Part::new(serial, segment, details)));
        }
        self.publish(parts);
        while let Some(group) = tidy::small(&self.latest.load().parts, &writer.busy) {
            self.replace(&mut writer, &group, join(&group, self.dimension));
        }
    }

    /// Joins small segments, and drops what was removed from all but large ones. Searches and changes go on meanwhile.
    pub fn tidy(&self) {
        self.tidy_up_to(tidy::LIGHT);
    }

    /// The same, and drops what was removed from large ones too, of which a copy is made one at a time.
    pub fn purge(&self) {
        self.tidy_up_to(usize::MAX);
    }

    /// Whether anything that was removed would be saved.
    pub fn holds_removed(&self) -> bool {
        self.snapshot().parts.iter().any(|part| part.is_partly_gone())
    }

    /// Drops what was removed from segments of at most `light` bytes.
    pub(crate) fn tidy_up_to(&self, light: usize) {
        let _only_one = self.tidying.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut writer = self.lock();
            let Some(group) = tidy::any(&self.latest.load().parts, light) else { return };
            writer.busy = group.iter().map(|part| part.serial).collect();
            drop(writer);
            let joined = join(&group, self.dimension);
            let mut writer = self.lock();
            writer.busy.clear();
            self.replace(&mut writer, &group, joined);
        }
    }

    /// Segments that are not `known`, to be written to files, and those in use, so that other files can be deleted.
    pub fn save(&self, known: &HashSet<SegmentId>) -> Saved {
        let snapshot = self.snapshot();
        let segments = snapshot.parts.iter().map(|part| &part.segment);
        Saved {
            in_use: segments.clone().map(|segment| segment.id).collect(),
            fresh: segments
                .filter(|segment| !known.contains(&segment.id))
                .map(|segment| (segment.id, encode(segment)))
                .collect(),
        }
    }

    /// Replaces all there is by what saved segments have of the documents that the store has.
    ///
    /// A document counts where its chunks have the keys that the store says, and is missing otherwise.
    pub fn restore(&self, segments: Vec<Vec<u8>>, live: Vec<LiveDocument>) -> Restored {
        let mut refused = Vec::new();
        let mut decoded = Vec::new();
        for (position, bytes) in segments.into_iter().enumerate() {
            match decode(&bytes, self.dimension) {
                Ok(segment) => decoded.push(segment),
                Err(why) => refused.push(Refused { position, why }),
            }
        }
        // Of a document that lies in several, the largest keeps it: the others are then less to search, or nothing.
        decoded.sort_by_key(|segment| std::cmp::Reverse(segment.chunks.len()));
        let mut missing: BTreeMap<u64, LiveDocument> =
            live.into_iter().map(|document| (document.key, document)).collect();
        let mut writer = self.lock();
        writer.places.clear();
        let mut parts = Vec::new();
        for segment in decoded {
            let serial = writer.serial();
            let mut gone = Vec::new();
            let mut details = Vec::new();
            for (place, key) in segment.documents.iter().enumerate() {
                let chunks = &segment.chunks[segment.range(place)];
                let is_live = missing.get(key).is_some_and(|document| document.chunks == chunks);
                match is_live.then(|| missing.remove(key)).flatten() {
                    Some(document) => {
                        writer.places.insert(*key, (serial, place as u32));
                        details.push(Detail { added: document.added, facets: document.facets.into() });
                    }
                    None => {
                        gone.push(place as u32);
                        details.push(Detail { added: 0, facets: Arc::new([]) });
                    }
                }
            }
            let mut part = Part::new(serial, Arc::new(segment), details);
            part.remove(&gone);
            if part.sums.documents > 0 {
                parts.push(Arc::new(part));
            }
        }
        self.publish(parts);
        Restored { missing: missing.into_keys().collect(), refused }
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic while building a segment leaves the places of the last snapshot, which are right.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, parts: Vec<Arc<Part>>) {
        self.latest.store(Arc::new(Snapshot::new(parts, self.dimension)));
    }

    /// Puts a joined segment in the place of those it was made of. Some of its documents may be gone by now.
    fn replace(&self, writer: &mut Writer, group: &[Arc<Part>], joined: Segment) {
        let serials: HashSet<u64> = group.iter().map(|part| part.serial).collect();
        let latest = self.latest.load_full();
        let (old, mut parts): (Vec<_>, Vec<_>) =
            latest.parts.iter().cloned().partition(|part| serials.contains(&part.serial));
        let old: HashMap<u64, Arc<Part>> = old.into_iter().map(|part| (part.serial, part)).collect();
        let serial = writer.serial();
        let mut gone = Vec::new();
        let mut details = Vec::new();
        let sources = group.iter().flat_map(|part| part.documents.iter().map(move |place| (part, place)));
        for (at, (part, place)) in sources.enumerate() {
            let key = joined.documents[at];
            let is_there = writer.places.get(&key) == Some(&(part.serial, place as u32));
            if is_there {
                writer.places.insert(key, (serial, at as u32));
            } else {
                gone.push(at as u32);
            }
            let part = old.get(&part.serial).unwrap_or(part);
            details.push(part.details[place].clone());
        }
        let mut part = Part::new(serial, Arc::new(joined), details);
        part.remove(&gone);
        if part.sums.documents > 0 {
            parts.push(Arc::new(part));
        }
        self.publish(parts);
    }
}

fn join(group: &[Arc<Part>], dimension: usize) -> Segment {
    let parts: Vec<(&Segment, &Bitmap, &Bitmap)> =
        group.iter().map(|part| (part.segment.as_ref(), &part.documents, &part.chunks)).collect();
    Segment::join(&parts, dimension)
}

fn split_detail(mut document: Document) -> (Document, Detail) {
    let facets: Vec<Facet> = std::mem::take(&mut document.facets);
    let detail = Detail { added: document.added, facets: facets.into() };
    (document, detail)
}

// === impl Writer ===

impl Writer {
    fn serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial
    }

    fn place(&mut self, serial: u64, segment: &Segment) {
        for (place, key) in segment.documents.iter().enumerate() {
            self.places.insert(*key, (serial, place as u32));
        }
    }
}

// === impl Batch ===

impl Batch {
    fn new(changes: Vec<Change>) -> Batch {
        let mut batch = Batch::default();
        for change in changes {
            match change {
                Change::Put(document) => {
                    batch.remove(document.key);
                    batch.put.insert(document.key, document);
                }
                Change::Remove { document } => batch.remove(document),
                Change::Describe { document, added, facets } => match batch.put.get_mut(&document) {
                    Some(put) => (put.added, put.facets) = (added, facets),
                    None if batch.removed.contains(&document) || batch.is_cleared => {}
                    None => {
                        batch.described.insert(document, Detail { added, facets: facets.into() });
                    }
                },
                Change::Clear => batch = Batch { is_cleared: true, ..Batch::default() },
            }
        }
        batch
    }

    fn remove(&mut self, key: u64) {
        self.put.remove(&key);
        self.described.remove(&key);
        self.removed.insert(key);
    }
}
