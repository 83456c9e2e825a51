//! Local index: the in-process search indexes of all bases, kept in sync with the SQLite store.
//!
//! The store is the source of truth, and several processes may write to it. Each change has a sequence number. The
//! index records the last sequence number that it contains, and catches up before it answers a search. Segments are
//! persisted as files so that a start reads them instead of rebuilding them. The files are only a cache: an unusable
//! file is rebuilt from the store.

mod search;
pub(super) mod segment_files;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use corbie_index::{Chunk, Document, Index, IndexUpdate, LiveDocument, Snapshot};
use tokio::sync::Mutex;

use super::base_stats::BaseStats;
use super::chunk_context::DocumentContext;
use super::document::BaseName;
use super::filter::facets;
use super::store::sqlite::{self, ChangeKind, ChangesSince, LoadedDocument, Store};
use super::{Error, run_blocking};
use corbie_util::lock::lock;

/// Clones share the same indexes.
#[derive(Debug, Clone)]
pub struct LocalIndex(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    folder: PathBuf,
    /// Vector dimension.
    dimension: usize,
    /// Embedding model. Vectors of other models are not indexed because they are not comparable.
    model: String,
    bases: ArcSwap<HashMap<BaseName, Arc<Index>>>,
    /// Sequence number of the last change in the indexes.
    sequence: AtomicU64,
    /// Held by the task that updates the indexes.
    update_lock: Mutex<()>,
    /// Whether changes have not been written to segment files yet.
    unsaved: AtomicBool,
    /// Since when segment files contain terms of removed documents.
    purge_owed_since: std::sync::Mutex<Option<Instant>>,
    /// Documents whose vectors are from another model, with their bases.
    other_model_documents: std::sync::Mutex<HashMap<u64, BaseName>>,
}

/// Number of documents loaded in one batch.
const LOAD_BATCH_SIZE: usize = 32;
/// How long terms of a removed document may remain in a segment file that is too large to be rewritten immediately.
const MAX_PURGE_DELAY: Duration = Duration::from_secs(300);

impl LocalIndex {
    /// Reads the segment files and indexes the missing documents.
    pub async fn open(store: Store, folder: PathBuf, model: String, dimension: usize) -> Result<LocalIndex, Error> {
        let library = LocalIndex(Arc::new(Inner {
            store,
            folder,
            dimension,
            model,
            bases: ArcSwap::default(),
            sequence: AtomicU64::new(0),
            update_lock: Mutex::default(),
            unsaved: AtomicBool::new(false),
            purge_owed_since: std::sync::Mutex::default(),
            other_model_documents: std::sync::Mutex::default(),
        }));
        let turn = library.0.update_lock.lock().await;
        library.rebuild().await?;
        drop(turn);
        let folder = library.0.folder.clone();
        // Without an embedding model, indexes built with a model are kept until that model is available again.
        if dimension > 0 {
            run_blocking(move || segment_files::sweep_other_generations(&folder)).await?;
        }
        Ok(library)
    }

    /// The current snapshot of a base, or `None` if the base never had documents. Contains every change committed
    /// before this call, by any process: another process may already have reported a change that this process has
    /// committed but not indexed.
    pub async fn base_snapshot(&self, name: &BaseName) -> Result<Option<Arc<Snapshot>>, Error> {
        let last = self.0.store.last_change()?;
        if last > self.0.sequence.load(Ordering::Acquire) {
            let _turn = self.0.update_lock.lock().await;
            // The previous holder of the lock may have applied it.
            if last > self.0.sequence.load(Ordering::Acquire) {
                self.apply_changes().await?;
            }
        }
        Ok(self.0.bases.load().get(name).map(|index| index.snapshot()))
    }

    /// Number of documents in a base whose vectors are from a model other than the current one.
    pub async fn documents_of_other_models(&self, base: &BaseName) -> Result<usize, Error> {
        Ok(lock(&self.0.other_model_documents).values().filter(|of| *of == base).count())
    }

    /// Number of documents in all bases.
    pub fn documents(&self) -> usize {
        self.0.bases.load().values().map(|index| index.snapshot().documents()).sum()
    }

    /// Size of each base, largest first.
    pub fn base_stats(&self) -> Vec<BaseStats> {
        let bases = self.0.bases.load();
        let held = bases.iter().map(|(base, index)| {
            let snapshot = index.snapshot();
            let (documents, chunks, memory) = (snapshot.documents(), snapshot.chunks(), snapshot.memory_bytes());
            BaseStats { base: base.clone(), documents, chunks, memory_bytes: memory }
        });
        let mut held: Vec<BaseStats> = held.collect();
        held.sort_by(|a, b| b.chunks.cmp(&a.chunks).then_with(|| a.base.cmp(&b.base)));
        held
    }

    /// Applies all changes that are in the store by now.
    pub async fn catch_up(&self) -> Result<(), Error> {
        let _turn = self.0.update_lock.lock().await;
        self.apply_changes().await
    }

    async fn apply_changes(&self) -> Result<(), Error> {
        let from = self.0.sequence.load(Ordering::Acquire);
        let changes = match self.0.store.changes_since(from).await? {
            ChangesSince::Available(changes) => changes,
            ChangesSince::TooOld => return self.rebuild().await,
        };
        let Some(last) = changes.last().map(|change| change.sequence) else { return Ok(()) };
        // All changes of a base become visible together.
        let mut by_base: HashMap<BaseName, Vec<IndexStep>> = HashMap::new();
        for change in changes {
            let steps = by_base.entry(change.base).or_default();
            match (change.kind, change.document) {
                (ChangeKind::Cleared, _) => {
                    steps.clear();
                    steps.push(IndexStep::Clear);
                }
                (ChangeKind::Put, Some(key)) => steps.push(IndexStep::Put(key)),
                (ChangeKind::MetadataUpdated, Some(key)) => steps.push(IndexStep::UpdateMetadata(key)),
                (ChangeKind::Removed, Some(key)) => {
                    steps.retain(|step| step.loaded_document() != Some(key));
                    steps.push(IndexStep::Remove(key));
                }
                (_, None) => {}
            }
        }
        for (base, steps) in by_base {
            self.apply_to_base(&base, steps).await?;
        }
        self.0.unsaved.store(true, Ordering::Release);
        self.0.sequence.store(last, Ordering::Release);
        Ok(())
    }

    async fn apply_to_base(&self, base: &BaseName, steps: Vec<IndexStep>) -> Result<(), Error> {
        let index = self.base_index(base);
        let wanted: Vec<u64> = steps.iter().filter_map(|step| step.loaded_document()).collect();
        let mut loaded: HashMap<u64, Document> = HashMap::new();
        for keys in wanted.chunks(LOAD_BATCH_SIZE) {
            let documents = self.load(keys.to_vec()).await?;
            loaded.extend(documents.into_iter().map(|(_, document)| (document.key, document)));
        }
        let changes = steps.into_iter().map(|step| match step {
            IndexStep::Clear => {
                lock(&self.0.other_model_documents).retain(|_, of| of != base);
                IndexUpdate::Clear
            }
            IndexStep::Remove(document) => {
                lock(&self.0.other_model_documents).remove(&document);
                IndexUpdate::Remove { document }
            }
            IndexStep::Put(key) => match loaded.get(&key) {
                Some(document) => IndexUpdate::Put(document.clone()),
                // The document was removed since. A later change reports that.
                None => IndexUpdate::Remove { document: key },
            },
            IndexStep::UpdateMetadata(key) => match loaded.get(&key) {
                Some(Document { added, facets, .. }) => {
                    IndexUpdate::SetAttributes { document: key, added: *added, facets: facets.clone() }
                }
                None => IndexUpdate::Remove { document: key },
            },
        });
        let changes: Vec<IndexUpdate> = changes.collect();
        run_blocking(move || index.apply(changes)).await
    }

    /// Builds all indexes, from segment files where possible.
    async fn rebuild(&self) -> Result<(), Error> {
        let shared = &*self.0;
        let sqlite::LiveSnapshot { sequence, documents } = shared.store.live_snapshot().await?;
        let mut by_base: HashMap<BaseName, Vec<LiveDocument>> = HashMap::new();
        let mut foreign = HashMap::new();
        for document in documents {
            if document.model != shared.model {
                foreign.insert(document.key, document.base.clone());
            }
            let facets = facets(&document.format, &document.metadata);
            let sqlite::LiveDocument { base, key, date_added, chunks, .. } = document;
            by_base.entry(base).or_default().push(LiveDocument { key, added: date_added, facets, chunks });
        }
        *lock(&shared.other_model_documents) = foreign;
        let mut bases = HashMap::new();
        let mut missing = Vec::new();
        for (base, live) in by_base {
            let index = Arc::new(Index::new(shared.dimension));
            let (folder, fresh) = (self.folder_of(&base), index.clone());
            let (restored, files) = run_blocking(move || {
                let (files, segments): (Vec<PathBuf>, Vec<Vec<u8>>) =
                    segment_files::read_segments(&folder).into_iter().unzip();
                (fresh.restore(segments, live), files)
            })
            .await?;
            for refused in &restored.rejected {
                // Removed so that the rebuilt segment can use its name.
                if let Some(file) = files.get(refused.position) {
                    let _ = fs::remove_file(file);
                }
                tracing::warn!(%base, why = %refused.error, "index segment file is unusable; rebuilding it");
            }
            missing.extend(restored.missing);
            bases.insert(base, index);
        }
        let (folder, used) = (shared.folder.clone(), bases.keys().map(folder_name).collect());
        run_blocking(move || segment_files::sweep_bases(&folder, &used)).await?;
        if !missing.is_empty() {
            tracing::info!(documents = missing.len(), "indexing documents that are not in a segment file");
        }
        for keys in missing.chunks(LOAD_BATCH_SIZE) {
            let documents = self.load(keys.to_vec()).await?;
            let mut changes: HashMap<BaseName, Vec<IndexUpdate>> = HashMap::new();
            for (base, document) in documents {
                changes.entry(base).or_default().push(IndexUpdate::Put(document));
            }
            for (base, changes) in changes {
                let index = bases.entry(base).or_insert_with(|| Arc::new(Index::new(shared.dimension))).clone();
                run_blocking(move || index.apply(changes)).await?;
            }
        }
        // Segment files may still contain documents that were removed but not saved.
        shared.unsaved.store(true, Ordering::Release);
        shared.bases.store(Arc::new(bases));
        shared.sequence.store(sequence, Ordering::Release);
        Ok(())
    }

    async fn load(&self, keys: Vec<u64>) -> Result<Vec<(BaseName, Document)>, Error> {
        let (documents, model) = (Arc::new(std::sync::Mutex::new(Vec::new())), self.0.model.clone());
        let loaded = documents.clone();
        let take = move |document: LoadedDocument| {
            lock(&loaded).push(to_index_document(document, &model));
            ControlFlow::Continue(())
        };
        self.0.store.for_each_document(None, &keys, take).await?;
        let documents = std::mem::take(&mut *lock(&documents));
        let mut foreign = lock(&self.0.other_model_documents);
        for (base, document, is_foreign) in &documents {
            match is_foreign {
                true => foreign.insert(document.key, base.clone()),
                false => foreign.remove(&document.key),
            };
        }
        Ok(documents.into_iter().map(|(base, document, _)| (base, document)).collect())
    }

    fn base_index(&self, base: &BaseName) -> Arc<Index> {
        if let Some(index) = self.0.bases.load().get(base) {
            return index.clone();
        }
        let index = Arc::new(Index::new(self.0.dimension));
        self.0.bases.rcu(|bases| {
            let mut bases = HashMap::clone(bases);
            bases.entry(base.clone()).or_insert_with(|| index.clone());
            bases
        });
        self.0.bases.load().get(base).cloned().unwrap_or(index)
    }

    /// Merges small segments and writes unsaved ones to files. Afterwards no small file contains terms of removed
    /// documents, and after [`MAX_PURGE_DELAY`] no file does. Searches continue in the meantime.
    pub async fn save(&self) -> io::Result<()> {
        let owed = *lock(&self.0.purge_owed_since);
        let is_overdue = owed.is_some_and(|since| since.elapsed() >= MAX_PURGE_DELAY);
        if !self.0.unsaved.swap(false, Ordering::AcqRel) && !is_overdue {
            return Ok(());
        }
        let library = self.clone();
        let saved = tokio::task::spawn_blocking(move || {
            let mut owes = false;
            for (base, index) in library.0.bases.load().iter() {
                index.merge_segments();
                if is_overdue {
                    index.purge();
                }
                segment_files::write_segments(&library.folder_of(base), index)?;
                owes |= index.has_tombstones();
            }
            *lock(&library.0.purge_owed_since) =
                owes.then(|| owed.filter(|_| !is_overdue).unwrap_or_else(Instant::now));
            Ok(())
        });
        let saved = saved.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        if saved.is_err() {
            self.0.unsaved.store(true, Ordering::Release);
        }
        saved
    }

    fn folder_of(&self, base: &BaseName) -> PathBuf {
        self.0.folder.join(folder_name(base))
    }
}

/// The prefix is needed because a base may be named `..`.
fn folder_name(base: &BaseName) -> String {
    format!("{}{base}", segment_files::BASE_PREFIX)
}

#[derive(Debug, PartialEq, Eq)]
enum IndexStep {
    Clear,
    Put(u64),
    UpdateMetadata(u64),
    Remove(u64),
}

impl IndexStep {
    fn loaded_document(&self) -> Option<u64> {
        match self {
            IndexStep::Put(key) | IndexStep::UpdateMetadata(key) => Some(*key),
            IndexStep::Clear | IndexStep::Remove(_) => None,
        }
    }
}

/// Converts a stored document for the index. The flag is true if its vectors are from another model.
fn to_index_document(loaded: LoadedDocument, model: &str) -> (BaseName, Document, bool) {
    let about = loaded.document;
    let is_foreign = about.model != model;
    let facets = facets(&about.format, &about.metadata);
    let named = DocumentContext::of(&about.filename, about.title.as_deref());
    let chunks = loaded.chunks.into_iter().map(|chunk| Chunk {
        key: chunk.key,
        context: named.for_chunk(&chunk.headings),
        text: chunk.text,
        vectors: if is_foreign { Vec::new() } else { chunk.vectors },
    });
    let document = Document { key: about.key, added: about.date_added, facets, chunks: chunks.collect() };
    (about.base, document, is_foreign)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
