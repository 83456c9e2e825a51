//! Hybrid search in the database: posting lists and nearest neighbours, scored here with the rules of the index.
//!
//! A search reads one snapshot. It takes four round trips, and two more if a word may be misspelled: the corpus
//! statistics; posting lists and neighbours; the similarity of chunks that only the lexical search found; the chunks.

mod allowed;
mod held;
mod near;
mod words;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corbie_index::apart::{Asked, Hit};
use corbie_index::{Filter, Mode};
use pgvector::HalfVector;

use super::models::Model;
use super::session::Session;
use super::{Store, aside, chunks};
use crate::knowledge::document::{BaseName, FoundChunk};
use crate::knowledge::store::Error;
use allowed::Allowed;
use held::Held;

/// A search query.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'a> {
    pub text: &'a str,
    pub vector: Option<&'a [f32]>,
    pub filter: Option<&'a Filter>,
    /// Number of results.
    pub top: usize,
}

impl Store {
    /// The best chunks of a base with their relevance, best first; empty if the base is empty.
    pub async fn find(
        &self,
        base: &BaseName,
        model: Model,
        sought: Sought<'_>,
    ) -> Result<Vec<(FoundChunk, f32)>, Error> {
        let reading = self.searching().await?;
        let (reading, found) = match reading.in_time(find(reading.session(), base, model, sought)).await {
            Ok(found) => (reading, found),
            Err(error) => {
                let reading = self.instead(reading, error).await?;
                let found = find(reading.session(), base, model, sought).await?;
                (reading, found)
            }
        };
        reading.end().await;
        Ok(found)
    }

    /// Only the vector part of a search, with its duration, for benchmarks. Chunks are identified by content version
    /// and ordinal.
    #[doc(hidden)]
    pub async fn nearest_alone(
        &self,
        base: &BaseName,
        (name, dimensions): (&str, usize),
        vector: &[f32],
        filter: Option<&Filter>,
        top: usize,
    ) -> Result<(Vec<(i64, i32)>, Duration), Error> {
        let model = self.prepare_model(name, dimensions).await?;
        let session = self.reading().await?;
        let Some(held) = Held::of(&session, base, filter).await? else { return Ok(Default::default()) };
        let direction = HalfVector::from_f32_slice(vector);
        let began = Instant::now();
        let sought = Sought { text: "", vector: Some(vector), filter, top };
        let near = near::near(&session, &held, model, Some(&direction), sought).await?;
        let took = began.elapsed();
        session.leave().await?;
        Ok((near.iter().map(|near| chunks::parts(near.key)).collect(), took))
    }
}

/// Runs a search and loads the chunks of its hits.
async fn find(
    session: &Session,
    base: &BaseName,
    model: Model,
    sought: Sought<'_>,
) -> Result<Vec<(FoundChunk, f32)>, Error> {
    let hits = look(session, base, model, sought).await?.unwrap_or_default();
    let relevances: HashMap<u64, f32> = hits.iter().map(|hit| (hit.chunk, hit.relevance)).collect();
    let keys: Vec<u64> = hits.iter().map(|hit| hit.chunk).collect();
    let chunks = chunks::of(session, &keys).await?.into_iter();
    let found = chunks.map(|chunk| {
        let relevance = relevances.get(&chunk.key).copied().unwrap_or(0.0);
        (chunk, relevance)
    });
    Ok(found.collect())
}

async fn look(session: &Session, base: &BaseName, model: Model, sought: Sought<'_>) -> Result<Option<Vec<Hit>>, Error> {
    let Some(held) = Held::of(session, base, sought.filter).await?.map(Arc::new) else { return Ok(None) };
    if held.searched == 0 || sought.top == 0 {
        return Ok(Some(Vec::new()));
    }
    let mut asked = Asked::new(sought.text, Mode::Hybrid, &held.sums);
    let vector =
        sought.vector.filter(|vector| vector.len() == model.dimensions && vector.iter().any(|part| *part != 0.0));
    let direction = vector.map(HalfVector::from_f32_slice);
    let forms: Vec<String> = asked.forms().into_iter().map(str::to_owned).collect();
    let (lists, near) = tokio::try_join!(
        words::lists(session, held.base, &forms),
        near::near(session, &held, model, direction.as_ref(), sought)
    )?;
    let lists = words::mend(session, &held, &mut asked, lists).await?;
    let (top, of) = (sought.top, held.clone());
    let weigh = move || {
        let (is_live, is_allowed) = (|key| of.is_live(key), |key| of.allowed.allows(key));
        asked.weigh(&lists, is_live, is_allowed, &of.sums, of.searched, top)
    };
    let mut weighed = aside(weigh).await?.map_err(|_| Error::unreadable("list of words"))?;
    if let Allowed::Passing(condition) = &held.allowed {
        weighed = condition.sift(session, weighed, &near, top).await?;
    }
    let choose = move || {
        let candidates = weighed.candidates(&near);
        (weighed, candidates)
    };
    let (weighed, candidates) = aside(choose).await?;
    let similarities = near::similarities(session, model, direction.as_ref(), &candidates).await?;
    Ok(Some(weighed.hits(candidates, &similarities)))
}
