//! Finds the chunks that answer a question, whatever a knowledge base is kept in.
//!
//! What is found follows what is stored: nothing that was written before a question is missed by it. What is told without
//! waiting is as it was when somebody last looked.

use std::io;

use futures_util::FutureExt;

use super::Error;
use super::document::BaseName;
use super::library::Library;
use super::search::{Passage, Question};
use super::shared::Shared;

/// Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub enum Finder {
    /// Indexes of this process, made of what is in a file.
    Library(Library),
    /// A database that several instances share.
    Shared(Shared),
}

/// How much one base holds, as far as it can be found.
#[derive(Debug, Clone)]
pub struct Held {
    pub base: BaseName,
    pub documents: usize,
    pub chunks: usize,
    /// Bytes that its index takes in this process.
    pub memory: usize,
}

/// Asks whichever finder it is. What waits for a database is boxed, as in the store.
macro_rules! each {
    ($self:expr, $finder:ident => $ask:expr) => {
        match $self {
            Finder::Library($finder) => $ask,
            Finder::Shared($finder) => async move { $ask }.boxed().await,
        }
    };
}

/// The same for what is known without waiting.
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

    /// The passages that answer a question best, best first.
    pub async fn find(&self, question: &Question, vector: Option<&[f32]>) -> Result<Vec<Passage>, Error> {
        each!(self, finder => finder.find(question, vector).await)
    }

    /// Takes in everything that is in the store by now.
    pub async fn catch_up(&self) -> Result<(), Error> {
        each!(self, finder => finder.catch_up().await)
    }

    /// How many documents of a base have vectors of another model than the one in use.
    pub async fn foreign(&self, base: &BaseName) -> Result<usize, Error> {
        each!(self, finder => finder.foreign(base).await)
    }

    /// How many documents all bases have together, without waiting.
    pub fn documents(&self) -> usize {
        each_now!(self, finder => finder.documents())
    }

    /// What each base holds, largest first, without waiting.
    pub fn held(&self) -> Vec<Held> {
        each_now!(self, finder => finder.held())
    }

    /// Keeps what was made, so that the next start is quicker.
    pub async fn save(&self) -> io::Result<()> {
        each!(self, finder => finder.save().await)
    }

    /// The indexes of this process, if it has any.
    pub fn library(&self) -> Option<&Library> {
        match self {
            Finder::Library(library) => Some(library),
            Finder::Shared(_) => None,
        }
    }
}
