//! Hybrid search in the database: posting lists and nearest neighbours, scored here with the rules of the index.
//!
//! A search reads one snapshot. It takes four round trips, and two more if a word may be misspelled: the corpus
//! statistics; posting lists and neighbours; the similarity of chunks that only the lexical search found; the chunks. One
//! more fetches the similarity of the windows of chunks that extend across pages.

mod filter;
mod knn;
mod lexical;
mod scope;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corbie_index::external::{ExternalHit, ExternalQuery};
use corbie_index::{Filter, Mode};
use pgvector::HalfVector;

use super::models::ModelRow;
use super::session::Session;
use super::{Store, chunks, run_blocking};
use crate::document::{BaseName, FoundChunk};
use crate::page_match::has_several_pages;
use crate::store::Error;
use filter::AllowedVersions;
use scope::SearchScope;

/// A search query.
#[derive(Debug, Clone, Copy)]
pub struct SearchQuery<'a> {
    pub text: &'a str,
    pub vector: Option<&'a [f32]>,
    pub filter: Option<&'a Filter>,
    /// Number of results.
    pub top_k: usize,
}

/// A chunk that a search has found.
#[derive(Debug, Clone)]
pub struct SearchHit {
    pub chunk: FoundChunk,
    pub relevance: f32,
    /// Cosine of each window with the query, for a chunk with several pages; empty if there is no vector.
    pub window_similarities: Vec<f32>,
}

impl Store {
    /// The best chunks of a base, best first; empty if the base is empty.
    pub async fn search(
        &self,
        base: &BaseName,
        model: ModelRow,
        sought: SearchQuery<'_>,
    ) -> Result<Vec<SearchHit>, Error> {
        let reading = self.begin_search().await?;
        let (reading, found) = match reading.with_timeout(search_chunks(reading.session(), base, model, sought)).await {
            Ok(found) => (reading, found),
            Err(error) => {
                let reading = self.fall_back_to_primary(reading, error).await?;
                let found = search_chunks(reading.session(), base, model, sought).await?;
                (reading, found)
            }
        };
        reading.release().await;
        Ok(found)
    }

    /// Only the vector part of a search, with its duration, for benchmarks. Chunks are identified by content version
    /// and ordinal.
    #[doc(hidden)]
    pub async fn nearest_only(
        &self,
        base: &BaseName,
        (name, dimensions): (&str, usize),
        vector: &[f32],
        filter: Option<&Filter>,
        top: usize,
    ) -> Result<(Vec<(i64, i32)>, Duration), Error> {
        let model = self.prepare_model(name, dimensions).await?;
        let session = self.begin_read().await?;
        let Some(held) = SearchScope::of(&session, base, filter).await? else { return Ok(Default::default()) };
        let direction = HalfVector::from_f32_slice(vector);
        let began = Instant::now();
        let sought = SearchQuery { text: "", vector: Some(vector), filter, top_k: top };
        let near = knn::nearest_chunks(&session, &held, model, Some(&direction), sought).await?;
        let took = began.elapsed();
        session.rollback().await?;
        Ok((near.iter().map(|near| chunks::split_key(near.key)).collect(), took))
    }
}

/// Runs a search and loads the chunks of its hits.
async fn search_chunks(
    session: &Session,
    base: &BaseName,
    model: ModelRow,
    sought: SearchQuery<'_>,
) -> Result<Vec<SearchHit>, Error> {
    let hits = rank(session, base, model, sought).await?.unwrap_or_default();
    let relevances: HashMap<u64, f32> = hits.iter().map(|hit| (hit.chunk, hit.relevance)).collect();
    let keys: Vec<u64> = hits.iter().map(|hit| hit.chunk).collect();
    let chunks = chunks::load(session, &keys).await?;
    let several: Vec<u64> = chunks.iter().filter(|chunk| has_several_pages(chunk)).map(|chunk| chunk.key).collect();
    let direction = query_direction(model, sought);
    let mut windows = knn::window_similarities(session, model, direction.as_ref(), &several).await?;
    let found = chunks.into_iter().map(|chunk| SearchHit {
        relevance: relevances.get(&chunk.key).copied().unwrap_or(0.0),
        window_similarities: windows.remove(&chunk.key).unwrap_or_default(),
        chunk,
    });
    Ok(found.collect())
}

/// The query's vector, if it has the right dimension and a direction.
fn query_direction(model: ModelRow, sought: SearchQuery<'_>) -> Option<HalfVector> {
    let vector =
        sought.vector.filter(|vector| vector.len() == model.dimensions && vector.iter().any(|part| *part != 0.0));
    vector.map(HalfVector::from_f32_slice)
}

async fn rank(
    session: &Session,
    base: &BaseName,
    model: ModelRow,
    sought: SearchQuery<'_>,
) -> Result<Option<Vec<ExternalHit>>, Error> {
    let Some(held) = SearchScope::of(session, base, sought.filter).await?.map(Arc::new) else { return Ok(None) };
    if held.searchable_chunks == 0 || sought.top_k == 0 {
        return Ok(Some(Vec::new()));
    }
    let mut asked = ExternalQuery::new(sought.text, Mode::Hybrid, &held.stats);
    let direction = query_direction(model, sought);
    let forms: Vec<String> = asked.forms().into_iter().map(str::to_owned).collect();
    let (lists, near) = tokio::try_join!(
        lexical::posting_lists(session, held.base, &forms),
        knn::nearest_chunks(session, &held, model, direction.as_ref(), sought)
    )?;
    let lists = lexical::correct_spelling(session, &held, &mut asked, lists).await?;
    let (top, of) = (sought.top_k, held.clone());
    let weigh = move || {
        let (is_live, is_allowed) = (|key| of.is_live(key), |key| of.allowed.allows(key));
        asked.score(&lists, is_live, is_allowed, &of.stats, of.searchable_chunks, top)
    };
    let mut weighed = run_blocking(weigh).await?.map_err(|_| Error::unreadable("list of words"))?;
    if let AllowedVersions::Matching(condition) = &held.allowed {
        weighed = condition.filter_results(session, weighed, &near, top).await?;
    }
    let choose = move || {
        let candidates = weighed.candidates(&near);
        (weighed, candidates)
    };
    let (weighed, candidates) = run_blocking(choose).await?;
    let similarities = knn::similarities(session, model, direction.as_ref(), &candidates).await?;
    Ok(Some(weighed.hits(candidates, &similarities)))
}
