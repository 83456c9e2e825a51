//! Retriever: search over either store backend.
//!
//! A search includes every write that was committed before it. The synchronous statistics are as of the last refresh.

use std::io;

use futures_util::FutureExt;

use super::Error;
use super::document::BaseName;
use super::library::Library;
use super::search::{Passage, Question};
use super::shared::Shared;

/// Clones share the same state.
#[derive(Debug, Clone)]
pub enum Finder {
    /// Local index over the SQLite store.
    Library(Library),
    /// Search in a PostgreSQL database that several instances share.
    Shared(Shared),
}

/// Size of one base.
#[derive(Debug, Clone)]
pub struct Held {
    pub base: BaseName,
    pub documents: usize,
    pub chunks: usize,
    /// Memory used by its index in this process, in bytes.
    pub memory: usize,
}

/// Dispatches to the variant. Database futures are boxed, as in the store.
macro_rules! each {
    ($self:expr, $finder:ident => $ask:expr) => {
        match $self {
            Finder::Library($finder) => $ask,
            Finder::Shared($finder) => async move { $ask }.boxed().await,
        }
    };
}

/// Synchronous dispatch.
macro_rules! each_now {
    ($self:expr, $finder:ident => $ask:expr) => {
        match $self {
            Finder::Library($finder) => $ask,
            Finder::Shared($finder) => $ask,
        }
    };
}

impl Finder {
    /// Whether a base has no documents.
    pub async fn is_empty(&self, base: &BaseName) -> Result<bool, Error> {
        each!(self, finder => finder.is_empty(base).await)
    }

    /// The most relevant passages, best first.
    pub async fn find(&self, question: &Question, vector: Option<&[f32]>) -> Result<Vec<Passage>, Error> {
        each!(self, finder => finder.find(question, vector).await)
    }

    /// Applies all changes that are in the store by now.
    pub async fn catch_up(&self) -> Result<(), Error> {
        each!(self, finder => finder.catch_up().await)
    }

    /// Number of documents in a base whose vectors are from a model other than the current one.
    pub async fn foreign(&self, base: &BaseName) -> Result<usize, Error> {
        each!(self, finder => finder.foreign(base).await)
    }

    /// Number of documents in all bases, without waiting.
    pub fn documents(&self) -> usize {
        each_now!(self, finder => finder.documents())
    }

    /// Size of each base, largest first, without waiting.
    pub fn held(&self) -> Vec<Held> {
        each_now!(self, finder => finder.held())
    }

    /// Persists the index for a faster start.
    pub async fn save(&self) -> io::Result<()> {
        each!(self, finder => finder.save().await)
    }

    /// The local index, if this backend has one.
    pub fn library(&self) -> Option<&Library> {
        match self {
            Finder::Library(library) => Some(library),
            Finder::Shared(_) => None,
        }
    }
}
