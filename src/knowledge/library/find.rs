//! Searching an index.

use std::sync::Arc;

use corbie_index::{Mode, Query, Snapshot};

use super::Library;
use crate::knowledge::document::BaseName;
use crate::knowledge::search::Question;
use crate::knowledge::{Error, blocking};

/// More vectors than this are searched aside, so that nobody else waits.
const QUICK: usize = 20_000;

impl Library {
    pub async fn is_empty(&self, base: &BaseName) -> Result<bool, Error> {
        Ok(self.base(base).await?.is_none_or(|snapshot| snapshot.documents() == 0))
    }

    /// Keys of chunks with their relevance, best first.
    pub async fn find(&self, question: &Question, vector: Option<&[f32]>) -> Result<Vec<(u64, f32)>, Error> {
        let Some(snapshot) = self.base(&question.base).await? else { return Ok(Vec::new()) };
        if snapshot.vectors() <= QUICK {
            return Ok(search(&snapshot, question, vector));
        }
        let (question, vector) = (question.clone(), vector.map(<[f32]>::to_vec));
        blocking(move || search(&snapshot, &question, vector.as_deref())).await
    }
}

fn search(snapshot: &Arc<Snapshot>, question: &Question, vector: Option<&[f32]>) -> Vec<(u64, f32)> {
    let hits = snapshot.search(&Query {
        text: &question.query,
        vector,
        filter: question.filter.as_ref(),
        top: question.top,
        mode: Mode::Hybrid,
    });
    hits.into_iter().map(|hit| (hit.chunk, hit.relevance)).collect()
}
