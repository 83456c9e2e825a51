//! Deletes document content: pages, chunks, vectors, and their share of the corpus statistics.
//!
//! The postings of a content version stay in their lists, which also contain other versions. The version is marked
//! dead (a tombstone), and a merge drops its postings.

use super::rows;
use super::session::Session;
use crate::knowledge::store::Error;

/// Number of deleted rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) documents: u64,
    pub(super) chunks: u64,
    pub(super) vectors: u64,
}

/// Number of documents per statistics row.
const SUMMED: usize = 1000;
/// Number of versions per DELETE, so that no statement takes long.
const AT_ONCE: usize = 100;

/// Deletes the content of these versions of a base.
///
/// The caller has locked their document rows and has not changed them yet: the statistics are computed from them.
/// Afterwards the caller deletes these rows or assigns them a new version.
pub(super) async fn remove(session: &Session, base: i64, writings: &[i64], now: i64) -> Result<Gone, Error> {
    let mut gone = Gone::default();
    for some in writings.chunks(SUMMED) {
        gone.add(subtract(session, base, some, now).await?);
    }
    for some in writings.chunks(AT_ONCE) {
        session.execute("DELETE FROM vectors WHERE writing = ANY($1)", &[&some]).await?;
        session.execute("DELETE FROM chunks WHERE writing = ANY($1)", &[&some]).await?;
        session.execute("DELETE FROM pages WHERE writing = ANY($1)", &[&some]).await?;
        let end = "UPDATE writings SET dead = $2 WHERE key = ANY($1) AND dead IS NULL";
        session.execute(end, &[&some, &now]).await?;
    }
    Ok(gone)
}

/// Adds a negative statistics row for these documents.
async fn subtract(session: &Session, base: i64, writings: &[i64], now: i64) -> Result<Gone, Error> {
    let sql = "WITH gone AS MATERIALIZED (SELECT chunk_count, vector_count, size_bytes, length, languages FROM documents \
               WHERE base = $1 AND writing = ANY($2)), \
               spoken AS (SELECT l.key, sum(l.value::bigint) AS chunks FROM gone, jsonb_each_text(gone.languages) AS l \
               GROUP BY l.key) \
               INSERT INTO sums (base, documents, chunks, vectors, size_bytes, length, languages, updated) \
               SELECT $1, -count(*), -sum(chunk_count), -sum(vector_count), -sum(size_bytes), -sum(length), \
               coalesce((SELECT jsonb_object_agg(key, -chunks) FROM spoken), '{}'), $3 FROM gone HAVING count(*) > 0 \
               RETURNING -documents, -chunks, -vectors";
    let Some(row) = session.maybe(sql, &[&base, &writings, &now]).await? else { return Ok(Gone::default()) };
    Ok(Gone { documents: rows::number(&row, 0)?, chunks: rows::number(&row, 1)?, vectors: rows::number(&row, 2)? })
}

impl Gone {
    fn add(&mut self, other: Gone) {
        self.documents += other.documents;
        self.chunks += other.chunks;
        self.vectors += other.vectors;
    }
}
