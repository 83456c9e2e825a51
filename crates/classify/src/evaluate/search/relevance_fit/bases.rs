//! Bases of several sizes from the documents of all sets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use corbie_index::{Document, Index, IndexUpdate, Snapshot};

use super::{EmbeddedDataset, Random};

/// The documents of all sets, with keys of their own.
pub(super) struct Pool {
    documents: Vec<(usize, Document)>,
    /// By chunk key: set and passage.
    passages: HashMap<u64, (usize, usize)>,
    dimension: usize,
}

/// An index of documents of one set, filled up with those of others.
pub(super) struct Base<'a> {
    pub(super) set: usize,
    pub(super) size: usize,
    pub(super) snapshot: Arc<Snapshot>,
    passages: &'a HashMap<u64, (usize, usize)>,
    /// Sets and passages in it.
    present: HashSet<(usize, usize)>,
    sets: HashSet<usize>,
}

impl Pool {
    pub(super) fn new(sets: &[EmbeddedDataset<'_>]) -> Pool {
        let dimension = sets.iter().flat_map(|set| set.vectors).map(Vec::len).max().unwrap_or(0);
        let mut pool = Pool { documents: Vec::new(), passages: HashMap::new(), dimension };
        for (number, set) in sets.iter().enumerate() {
            for document in set.corpus.documents() {
                let mut document = document.clone();
                document.key = pool.documents.len() as u64;
                for chunk in &mut document.chunks {
                    let passage = set.corpus.passage(chunk.key);
                    chunk.key = pool.passages.len() as u64;
                    pool.passages.extend(passage.map(|passage| (chunk.key, (number, passage))));
                }
                pool.documents.push((number, document));
            }
        }
        pool
    }

    /// Disjoint random parts of a set, or the whole set with documents of other sets.
    pub(super) fn bases(&self, set: usize, size: usize) -> impl Iterator<Item = Base<'_>> {
        let mut random = Random((size * 31 + set) as u64);
        let (mut own, mut others): (Vec<usize>, Vec<usize>) =
            (0..self.documents.len()).partition(|at| self.documents[*at].0 == set);
        random.shuffle(&mut own);
        random.shuffle(&mut others);
        let parts: Vec<Vec<usize>> = match own.len().checked_sub(size) {
            Some(1..) => own.chunks_exact(size).map(<[usize]>::to_vec).collect(),
            _ => {
                let missing = size.saturating_sub(own.len());
                vec![own.into_iter().chain(others.into_iter().take(missing)).collect()]
            }
        };
        parts.into_iter().map(move |part| self.base(set, size, &part))
    }

    fn base(&self, set: usize, size: usize, part: &[usize]) -> Base<'_> {
        let index = Index::new(self.dimension);
        let documents = || part.iter().map(|at| &self.documents[*at]);
        index.apply(documents().map(|(_, document)| IndexUpdate::Put(document.clone())).collect());
        let chunks = documents().flat_map(|(_, document)| &document.chunks);
        Base {
            set,
            size,
            snapshot: index.snapshot(),
            passages: &self.passages,
            present: chunks.filter_map(|chunk| self.passages.get(&chunk.key).copied()).collect(),
            sets: documents().map(|(set, _)| *set).collect(),
        }
    }
}

impl Base<'_> {
    /// Whether it has this passage of its set.
    pub(super) fn has(&self, passage: usize) -> bool {
        self.present.contains(&(self.set, passage))
    }

    pub(super) fn has_set(&self, set: usize) -> bool {
        self.sets.contains(&set)
    }

    /// The passage of a chunk, if it belongs to the set of the base.
    pub(super) fn passage(&self, chunk: u64) -> Option<usize> {
        self.passages.get(&chunk).filter(|(set, _)| *set == self.set).map(|(_, passage)| *passage)
    }
}
