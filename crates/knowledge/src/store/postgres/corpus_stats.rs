//! Corpus statistics of a base.
//!
//! Each write appends a row with its changes. A single row per base would serialize all writers of the base.

use std::collections::BTreeMap;

use corbie_index::external;
use serde_json::Value;

use super::session::Session;
use super::{Store, rows};
use crate::document::{BaseName, Millis, Totals};
use crate::store::Error;

/// Number of rows per base that are not compacted.
const MAX_UNCOMPACTED_ROWS: i64 = 64;

/// The share of one document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DocumentStats {
    pub(super) chunks: i64,
    pub(super) vectors: i64,
    pub(super) size_bytes: i64,
    pub(super) length: i64,
    pub(super) languages: Value,
}

impl Store {
    pub async fn totals(&self, base: &BaseName) -> Result<Totals, Error> {
        let session = self.autocommit().await?;
        let sql = "SELECT coalesce(sum(s.documents), 0)::bigint, coalesce(sum(s.chunks), 0)::bigint, \
                   coalesce(sum(s.vectors), 0)::bigint, coalesce(sum(s.size_bytes), 0)::bigint, \
                   coalesce(max(s.updated), min(b.created), \
                   (SELECT value::bigint FROM meta WHERE name = 'created')) \
                   FROM bases AS b LEFT JOIN sums AS s ON b.key = s.base WHERE b.name = $1";
        let row = session.row(sql, &[&base.as_str()]).await?;
        Ok(Totals {
            documents: rows::get_u64(&row, 0)?,
            chunks: rows::get_u64(&row, 1)?,
            vectors: rows::get_u64(&row, 2)?,
            size_bytes: rows::get_u64(&row, 3)?,
            last_updated: rows::get(&row, 4)?,
        })
    }

    /// Whether a base has no documents, as seen by searches.
    pub async fn is_empty(&self, base: &BaseName) -> Result<bool, Error> {
        let reading = self.begin_search().await?;
        let told = reading.with_timeout(is_empty(reading.session(), base)).await;
        match told {
            // A replica may lag behind the primary.
            Ok(true) if reading.is_replica() => {
                reading.release().await;
                let told = async { is_empty(&self.autocommit().await?, base).await };
                told.await.or_else(|error| if error.is_transient() { Ok(true) } else { Err(error) })
            }
            Ok(told) => {
                reading.release().await;
                Ok(told)
            }
            Err(error) => {
                let reading = self.fall_back_to_primary(reading, error).await?;
                let told = is_empty(reading.session(), base).await?;
                reading.release().await;
                Ok(told)
            }
        }
    }

    pub async fn bases(&self) -> Result<Vec<BaseName>, Error> {
        let session = self.autocommit().await?;
        let rows = session.rows("SELECT name FROM bases ORDER BY name COLLATE \"C\"", &[]).await?;
        rows.iter().map(|row| rows::get_base_name(row, 0)).collect()
    }

    /// Number of documents and chunks per base, largest first; at most a thousand bases.
    pub(crate) async fn base_sizes(&self) -> Result<Vec<(BaseName, usize, usize)>, Error> {
        let sql = "SELECT b.name, sum(s.documents)::bigint, sum(s.chunks)::bigint FROM sums AS s JOIN bases AS b ON b.key = s.base \
                   GROUP BY b.name HAVING sum(s.documents) > 0 ORDER BY 3 DESC, 1 LIMIT 1000";
        let session = self.autocommit().await?;
        let held = session.rows(sql, &[]).await?;
        let held = held.iter().map(|row| {
            Ok((rows::get_base_name(row, 0)?, rows::get_u64(row, 1)? as usize, rows::get_u64(row, 2)? as usize))
        });
        held.collect()
    }

    /// Compacts the rows of bases with many rows.
    pub(super) async fn compact_stats(&self) -> Result<(), Error> {
        let session = self.begin_write().await?;
        let crowded = "SELECT base FROM sums GROUP BY base HAVING count(*) > $1 LIMIT 16";
        for row in session.rows(crowded, &[&MAX_UNCOMPACTED_ROWS]).await? {
            session.execute(COMPACT_SQL, &[&rows::get::<i64>(&row, 0)?]).await?;
        }
        session.commit().await
    }
}

const COMPACT_SQL: &str = "WITH gone AS (DELETE FROM sums WHERE ctid IN (SELECT ctid FROM sums WHERE base = $1 FOR UPDATE SKIP LOCKED) \
     RETURNING *), \
     spoken AS (SELECT l.key, sum(l.value::bigint) AS chunks FROM gone, jsonb_each_text(gone.languages) AS l GROUP BY 1) \
     INSERT INTO sums SELECT base, sum(documents), sum(chunks), sum(vectors), sum(size_bytes), sum(length), \
     (SELECT coalesce(jsonb_object_agg(key, chunks), '{}') FROM spoken WHERE chunks <> 0), max(updated), bit_xor(mark) \
     FROM gone GROUP BY base";

async fn is_empty(session: &Session, base: &BaseName) -> Result<bool, Error> {
    let sql =
        "SELECT coalesce(sum(s.documents), 0) = 0 FROM sums AS s JOIN bases AS b ON b.key = s.base WHERE b.name = $1";
    rows::get(&session.row(sql, &[&base.as_str()]).await?, 0)
}

/// Adds the share of a document.
pub(super) async fn add(session: &Session, base: i64, added: &DocumentStats, now: Millis) -> Result<(), Error> {
    let sql = "INSERT INTO sums (base, documents, chunks, vectors, size_bytes, length, languages, updated) \
               VALUES ($1, 1, $2, $3, $4, $5, $6, $7)";
    let DocumentStats { chunks, vectors, size_bytes, length, languages } = added;
    session.execute(sql, &[&base, chunks, vectors, size_bytes, length, languages, &now]).await?;
    Ok(())
}

/// Records that a base has changed without a change of its totals.
pub(super) async fn touch(session: &Session, base: i64, now: Millis) -> Result<(), Error> {
    let sql = "INSERT INTO sums (base, documents, chunks, vectors, size_bytes, length, languages, updated) \
               VALUES ($1, 0, 0, 0, 0, 0, '{}', $2)";
    session.execute(sql, &[&base, &now]).await?;
    Ok(())
}

/// Number of chunks per language, as stored.
pub(super) fn languages_json(sums: &external::CorpusStats) -> Value {
    let spoken: BTreeMap<String, u64> =
        sums.languages.iter().map(|(number, chunks)| (number.to_string(), *chunks)).collect();
    serde_json::to_value(spoken).unwrap_or_default()
}

/// Statistics that a search needs before it starts, and the number of vectors.
pub(super) const STATS_SQL: &str = "SELECT coalesce(sum(chunks), 0)::bigint, coalesce(sum(vectors), 0)::bigint, \
     coalesce(sum(length), 0)::bigint, coalesce(sum(documents), 0)::bigint FROM sums WHERE base = $1";
/// Number of chunks per language.
pub(super) const LANGUAGES_SQL: &str = "SELECT l.key::int, sum(l.value::bigint)::bigint FROM sums, jsonb_each_text(languages) AS l \
     WHERE base = $1 GROUP BY 1";
