//! Retriever: search over either store backend.
//!
//! A search includes every write that was committed before it. The synchronous statistics are as of the last refresh.

use std::io;

use futures_util::FutureExt;

use super::Error;
use super::base_stats::BaseStats;
use super::document::BaseName;
use super::local_index::LocalIndex;
use super::postgres_retriever::PostgresRetriever;
use super::search::{Passage, SearchRequest};

/// Clones share the same state.
#[derive(Debug, Clone)]
pub enum Retriever {
    /// Local index over the SQLite store.
    Embedded(LocalIndex),
    /// Search in a PostgreSQL database that several instances share.
    Shared(PostgresRetriever),
}

/// Dispatches to the variant. Database futures are boxed, as in the store.
macro_rules! each {
    ($self:expr, $finder:ident => $ask:expr) => {
        match $self {
            Retriever::Embedded($finder) => $ask,
            Retriever::Shared($finder) => async move { $ask }.boxed().await,
        }
    };
}

/// Synchronous dispatch.
macro_rules! each_now {
    ($self:expr, $finder:ident => $ask:expr) => {
        match $self {
            Retriever::Embedded($finder) => $ask,
            Retriever::Shared($finder) => $ask,
        }
    };
}

impl Retriever {
    /// Whether a base has no documents.
    pub async fn is_empty(&self, base: &BaseName) -> Result<bool, Error> {
        each!(self, finder => finder.is_empty(base).await)
    }

    /// The most relevant passages, best first.
    pub async fn search(&self, question: &SearchRequest, vector: Option<&[f32]>) -> Result<Vec<Passage>, Error> {
        each!(self, finder => finder.search(question, vector).await)
    }

    /// Applies all changes that are in the store by now.
    pub async fn catch_up(&self) -> Result<(), Error> {
        each!(self, finder => finder.catch_up().await)
    }

    /// Number of documents in a base whose vectors are from a model other than the current one.
    pub async fn documents_of_other_models(&self, base: &BaseName) -> Result<usize, Error> {
        each!(self, finder => finder.documents_of_other_models(base).await)
    }

    /// Number of documents in all bases, without waiting.
    pub fn documents(&self) -> usize {
        each_now!(self, finder => finder.documents())
    }

    /// Size of each base, largest first, without waiting.
    pub fn base_stats(&self) -> Vec<BaseStats> {
        each_now!(self, finder => finder.base_stats())
    }

    /// Persists the index for a faster start.
    pub async fn save(&self) -> io::Result<()> {
        each!(self, finder => finder.save().await)
    }

    /// The local index, if this backend has one.
    pub fn local_index(&self) -> Option<&LocalIndex> {
        match self {
            Retriever::Embedded(library) => Some(library),
            Retriever::Shared(_) => None,
        }
    }
}
