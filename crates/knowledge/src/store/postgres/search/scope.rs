//! Search scope: statistics of a base and its filter, loaded before the search starts.

use std::collections::HashSet;

use corbie_index::Filter;
use corbie_index::external::CorpusStats;
use tokio_postgres::types::ToSql;

use super::super::session::Session;
use super::super::{ORDINAL_BITS, corpus_stats, rows};
use super::filter::AllowedVersions;
use crate::document::BaseName;
use crate::store::Error;

/// Statistics of a base, and the part of it to search.
pub(super) struct SearchScope {
    pub(super) base: i64,
    pub(super) stats: CorpusStats,
    pub(super) vectors: u64,
    /// Estimated number of vectors in all bases.
    pub(super) total_vectors: u64,
    tombstones: HashSet<i64>,
    pub(super) allowed: AllowedVersions,
    /// Number of chunks that may be found.
    pub(super) searchable_chunks: u64,
}

impl SearchScope {
    pub(super) async fn of(
        session: &Session,
        base: &BaseName,
        filter: Option<&Filter>,
    ) -> Result<Option<SearchScope>, Error> {
        let Some(base) = rows::base_key(session, base).await? else { return Ok(None) };
        let dead = "SELECT array_agg(key) FROM writings WHERE base = $1 AND dead IS NOT NULL";
        let given: [&(dyn ToSql + Sync); 1] = [&base];
        let allowed = async {
            match filter {
                Some(filter) => AllowedVersions::of(session, base, filter).await.map(Some),
                None => Ok(None),
            }
        };
        let (sums, spoken, dead, stored, allowed) = tokio::try_join!(
            session.row(corpus_stats::STATS_SQL, &given),
            session.rows(corpus_stats::LANGUAGES_SQL, &given),
            session.row(dead, &given),
            rows::estimated_row_count(session, "vectors"),
            allowed,
        )?;
        let (chunks, vectors, documents) =
            (rows::get_u64(&sums, 0)?, rows::get_u64(&sums, 1)?, rows::get_u64(&sums, 3)?);
        if documents == 0 {
            return Ok(None);
        }
        let languages =
            spoken.iter().map(|row| Ok((rows::get_u32(row, 0)? as u8, rows::get::<i64>(row, 1)?.max(0) as u64)));
        let (allowed, searched) = match allowed {
            // A filter that every document passes is dropped.
            Some((allowed, passing, chunks)) if passing < documents => (allowed, chunks),
            _ => (AllowedVersions::All, chunks),
        };
        let dead: Option<Vec<i64>> = rows::get(&dead, 0)?;
        Ok(Some(SearchScope {
            base,
            stats: CorpusStats {
                chunks,
                length: rows::get_u64(&sums, 2)?,
                languages: languages.collect::<Result<_, Error>>()?,
            },
            vectors,
            total_vectors: stored.max(vectors),
            tombstones: dead.unwrap_or_default().into_iter().collect(),
            allowed,
            searchable_chunks: searched,
        }))
    }

    /// Whether a chunk has not been removed.
    pub(super) fn is_live(&self, key: u64) -> bool {
        !self.tombstones.contains(&((key >> ORDINAL_BITS) as i64))
    }
}
