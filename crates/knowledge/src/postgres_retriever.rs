//! PostgreSQL retriever: searches the database that several instances share.

use std::sync::{Arc, Mutex};

use super::Error;
use super::base_stats::BaseStats;
use super::document::BaseName;
use super::search::{Passage, SearchRequest};
use super::store::postgres::{ModelRow, SearchHit, SearchQuery, Store};
use corbie_util::lock::lock;

/// Clones share the same state.
#[derive(Debug, Clone)]
pub struct PostgresRetriever {
    store: Store,
    /// Embedding model whose vectors are searched.
    model_name: String,
    model: ModelRow,
    /// Statistics as of the last refresh.
    base_stats: Arc<Mutex<Vec<BaseStats>>>,
}

impl PostgresRetriever {
    pub(super) async fn open(store: Store, name: String, dimension: usize) -> Result<PostgresRetriever, Error> {
        let model = store.prepare_model(&name, dimension).await?;
        let shared = PostgresRetriever { store, model_name: name, model, base_stats: Arc::default() };
        shared.catch_up().await?;
        Ok(shared)
    }

    pub(super) async fn is_empty(&self, base: &BaseName) -> Result<bool, Error> {
        Ok(self.store.is_empty(base).await?)
    }

    pub(super) async fn search(&self, question: &SearchRequest, vector: Option<&[f32]>) -> Result<Vec<Passage>, Error> {
        let sought =
            SearchQuery { text: &question.query, vector, filter: question.filter.as_ref(), top_k: question.top_k };
        let found = self.store.search(&question.base, self.model, sought).await?.into_iter();
        let passage = |SearchHit { chunk, relevance, window_similarities }: SearchHit| {
            question.passage(chunk, relevance, &window_similarities)
        };
        Ok(found.filter_map(passage).collect())
    }

    /// Refreshes the statistics. There is no local index to update.
    pub(super) async fn catch_up(&self) -> Result<(), Error> {
        let held = self.store.base_sizes().await?.into_iter();
        let held = held.map(|(base, documents, chunks)| BaseStats { base, documents, chunks, memory_bytes: 0 });
        *lock(&self.base_stats) = held.collect();
        Ok(())
    }

    pub(super) async fn documents_of_other_models(&self, base: &BaseName) -> Result<usize, Error> {
        Ok(self.store.documents_of_other_models(base, &self.model_name).await?)
    }

    pub(super) fn documents(&self) -> usize {
        lock(&self.base_stats).iter().map(|held| held.documents).sum()
    }

    pub(super) fn base_stats(&self) -> Vec<BaseStats> {
        lock(&self.base_stats).clone()
    }

    /// No-op: the database is persistent.
    pub(super) async fn save(&self) -> std::io::Result<()> {
        Ok(())
    }
}
