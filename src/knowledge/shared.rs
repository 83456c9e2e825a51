//! PostgreSQL retriever: searches the database that several instances share.

use std::sync::{Arc, Mutex};

use super::Error;
use super::document::BaseName;
use super::finder::Held;
use super::search::{Passage, Question};
use super::store::postgres::{Model, Sought, Store};
use crate::locked::locked;

/// Clones share the same state.
#[derive(Debug, Clone)]
pub struct Shared {
    store: Store,
    /// Embedding model whose vectors are searched.
    name: String,
    model: Model,
    /// Statistics as of the last refresh.
    held: Arc<Mutex<Vec<Held>>>,
}

impl Shared {
    pub(super) async fn open(store: Store, name: String, dimension: usize) -> Result<Shared, Error> {
        let model = store.prepare_model(&name, dimension).await?;
        let shared = Shared { store, name, model, held: Arc::default() };
        shared.catch_up().await?;
        Ok(shared)
    }

    pub(super) async fn is_empty(&self, base: &BaseName) -> Result<bool, Error> {
        Ok(self.store.is_empty(base).await?)
    }

    pub(super) async fn find(&self, question: &Question, vector: Option<&[f32]>) -> Result<Vec<Passage>, Error> {
        let sought = Sought { text: &question.query, vector, filter: question.filter.as_ref(), top: question.top };
        let found = self.store.find(&question.base, self.model, sought).await?.into_iter();
        Ok(found.filter_map(|(chunk, relevance)| question.passage(chunk, relevance)).collect())
    }

    /// Refreshes the statistics. There is no local index to update.
    pub(super) async fn catch_up(&self) -> Result<(), Error> {
        let held = self.store.held().await?.into_iter();
        let held = held.map(|(base, documents, chunks)| Held { base, documents, chunks, memory: 0 });
        *locked(&self.held) = held.collect();
        Ok(())
    }

    pub(super) async fn foreign(&self, base: &BaseName) -> Result<usize, Error> {
        Ok(self.store.foreign(base, &self.name).await?)
    }

    pub(super) fn documents(&self) -> usize {
        locked(&self.held).iter().map(|held| held.documents).sum()
    }

    pub(super) fn held(&self) -> Vec<Held> {
        locked(&self.held).clone()
    }

    /// No-op: the database is persistent.
    pub(super) async fn save(&self) -> std::io::Result<()> {
        Ok(())
    }
}
