//! Deletes document content: pages, chunks, vectors, and their share of the corpus statistics.
//!
//! The postings of a content version stay in their lists, which also contain other versions. The version is marked
//! dead (a tombstone), and a merge drops its postings.

use super::rows;
use super::session::Session;
use crate::store::Error;

/// Number of deleted rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeletedCounts {
    pub(super) documents: u64,
    pub(super) chunks: u64,
    pub(super) vectors: u64,
}

/// Number of documents per statistics row.
const STATS_BATCH_SIZE: usize = 1000;
/// Number of versions per DELETE, so that no statement takes long.
const DELETE_BATCH_SIZE: usize = 100;

/// Deletes the content of these versions of a base.
///
/// The caller has locked their document rows and has not changed them yet: the statistics are computed from them.
/// Afterwards the caller deletes these rows or assigns them a new version.
pub(super) async fn remove(session: &Session, base: i64, writings: &[i64], now: i64) -> Result<DeletedCounts, Error> {
    let mut gone = DeletedCounts::default();
    for some in writings.chunks(STATS_BATCH_SIZE) {
        gone.add(subtract_stats(session, base, some, now).await?);
    }
    for some in writings.chunks(DELETE_BATCH_SIZE) {
        session.execute("DELETE FROM vectors WHERE writing = ANY($1)", &[&some]).await?;
        session.execute("DELETE FROM chunks WHERE writing = ANY($1)", &[&some]).await?;
        session.execute("DELETE FROM pages WHERE writing = ANY($1)", &[&some]).await?;
        let end = "UPDATE writings SET dead = $2 WHERE key = ANY($1) AND dead IS NULL";
        session.execute(end, &[&some, &now]).await?;
    }
    Ok(gone)
}

/// Adds a negative statistics row for these documents.
async fn subtract_stats(session: &Session, base: i64, writings: &[i64], now: i64) -> Result<DeletedCounts, Error> {
    let sql = "WITH gone AS MATERIALIZED (SELECT chunk_count, vector_count, size_bytes, length, languages FROM documents \
               WHERE base = $1 AND writing = ANY($2)), \
               spoken AS (SELECT l.key, sum(l.value::bigint) AS chunks FROM gone, jsonb_each_text(gone.languages) AS l \
               GROUP BY l.key) \
               INSERT INTO sums (base, documents, chunks, vectors, size_bytes, length, languages, updated) \
               SELECT $1, -count(*), -sum(chunk_count), -sum(vector_count), -sum(size_bytes), -sum(length), \
               coalesce((SELECT jsonb_object_agg(key, -chunks) FROM spoken), '{}'), $3 FROM gone HAVING count(*) > 0 \
               RETURNING -documents, -chunks, -vectors";
    let Some(row) = session.opt_row(sql, &[&base, &writings, &now]).await? else { return Ok(DeletedCounts::default()) };
    Ok(DeletedCounts {
        documents: rows::get_u64(&row, 0)?,
        chunks: rows::get_u64(&row, 1)?,
        vectors: rows::get_u64(&row, 2)?,
    })
}

impl DeletedCounts {
    fn add(&mut self, other: DeletedCounts) {
        self.documents += other.documents;
        self.chunks += other.chunks;
        self.vectors += other.vectors;
    }
}
