//! Merges of posting-list batches into larger ones, and purges of dead postings.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use corbie_index::external;
use tokio_postgres::Row;

use super::postings::{MAX_LEVEL, MERGE_FACTOR, insert, record_batch};
use super::session::{Session, SqlParams};
use super::{ORDINAL_BITS, Store, rows, run_blocking};
use crate::store::Error;

/// Batches from this level on are large: removed documents cause a rewrite only if it is worth the cost.
const MIN_LARGE_LEVEL: i16 = 3;
/// How long postings of removed documents may stay in small and in large batches, in milliseconds.
const PURGE_DELAY_MS: i64 = 10 * 60_000;
const LARGE_PURGE_DELAY_MS: i64 = 24 * 3_600_000;
/// If at least one in this many versions of a large batch is dead, it is purged as early as a small one.
const MIN_DEAD_RATIO: i64 = 10;
/// Number of postings that one statement may drop.
const MAX_DROPPED_POSTINGS: u64 = 1_000_000;
/// Timeout for reading the lists of a merge.
const MERGE_TIMEOUT: Duration = Duration::from_secs(120);

impl Store {
    /// Merges the batches of a crowded level. Returns whether more work may be left.
    pub(super) async fn merge_batches(&self) -> Result<bool, Error> {
        let session = self.begin_write().await?;
        let crowded = "SELECT base, level FROM batches WHERE level < $2 GROUP BY 1, 2 HAVING count(*) >= $1 \
             ORDER BY 2, random() LIMIT 1";
        let Some(row) = session.opt_row(crowded, &[&MERGE_FACTOR, &MAX_LEVEL]).await? else {
            session.rollback().await?;
            return Ok(false);
        };
        let (base, level): (i64, i16) = (rows::get(&row, 0)?, rows::get(&row, 1)?);
        // Small batches add little to what every merge rewrites anyway, so one merge takes many of them.
        let most = if level == 0 { MERGE_FACTOR * MERGE_FACTOR } else { MERGE_FACTOR };
        let take =
            "SELECT key FROM batches WHERE base = $1 AND level = $2 ORDER BY key LIMIT $3 FOR UPDATE SKIP LOCKED";
        let taken = session.rows(take, &[&base, &level, &most]).await?;
        let batches = taken.iter().map(|row| rows::get(row, 0)).collect::<Result<Vec<i64>, _>>()?;
        if (batches.len() as i64) < MERGE_FACTOR {
            session.rollback().await?;
            return Ok(false);
        }
        let left = rewrite_batches(&session, base, &batches).await?;
        session.commit().await?;
        self.0.dead_rows.add(left);
        Ok(true)
    }

    /// Rewrites a batch that contains postings of documents removed long ago. Returns whether more work may be left.
    pub(super) async fn purge_batch(&self) -> Result<bool, Error> {
        let session = self.begin_write().await?;
        let now = rows::now();
        let owing = "WITH owing AS (SELECT batch, count(*) AS dead, min(dead) AS since FROM writings \
                     WHERE dead IS NOT NULL GROUP BY batch) \
                     SELECT b.key, b.base FROM owing AS o JOIN batches AS b ON b.key = o.batch \
                     WHERE o.since < $1 AND (b.level < $3 OR o.since < $2 OR \
                     o.dead * $4 >= (SELECT count(*) FROM writings AS w WHERE w.batch = b.key)) ORDER BY random() LIMIT 1 \
                     FOR UPDATE OF b SKIP LOCKED";
        let given: SqlParams<'_> =
            &[&(now - PURGE_DELAY_MS), &(now - LARGE_PURGE_DELAY_MS), &MIN_LARGE_LEVEL, &MIN_DEAD_RATIO];
        let Some(row) = session.opt_row(owing, given).await? else {
            session.rollback().await?;
            return Ok(false);
        };
        let left = rewrite_batches(&session, rows::get(&row, 1)?, &[rows::get(&row, 0)?]).await?;
        session.commit().await?;
        self.0.dead_rows.add(left);
        Ok(true)
    }
}

/// Locks the batches of a base against merges until the end of the transaction. Batches that are being merged are
/// skipped.
pub(super) async fn lock_batches(session: &Session, base: i64) -> Result<Vec<i64>, Error> {
    let sql = "SELECT key FROM batches WHERE base = $1 ORDER BY key FOR UPDATE SKIP LOCKED";
    session.rows(sql, &[&base]).await?.iter().map(|row| rows::get(row, 0)).collect()
}

/// Drops the locked batches that have no live documents.
pub(super) async fn drop_dead_batches(session: &Session, held: &[i64]) -> Result<(), Error> {
    session.execute_batch(&format!("SET LOCAL statement_timeout = '{}s'", MERGE_TIMEOUT.as_secs())).await?;
    let dead = "SELECT key, postings FROM batches AS b WHERE key = ANY($1) \
                AND NOT EXISTS (SELECT 1 FROM writings AS w WHERE w.batch = b.key AND w.dead IS NULL) ORDER BY key";
    let (mut some, mut postings) = (Vec::new(), 0);
    let mut parts = Vec::new();
    for row in session.rows(dead, &[&held]).await? {
        some.push(rows::get::<i64>(&row, 0)?);
        postings += rows::get_u64(&row, 1)?;
        if postings >= MAX_DROPPED_POSTINGS {
            parts.push(std::mem::take(&mut some));
            postings = 0;
        }
    }
    parts.push(some);
    for batches in parts {
        for sql in [
            "DELETE FROM postings WHERE batch = ANY($1)",
            "DELETE FROM writings WHERE batch = ANY($1)",
            "DELETE FROM batches WHERE key = ANY($1)",
        ] {
            session.rows_with_timeout(sql, &[&batches], MERGE_TIMEOUT).await?;
        }
    }
    Ok(())
}

/// Replaces several batches by one without dead versions. Returns the number of dead rows left behind.
async fn rewrite_batches(session: &Session, base: i64, batches: &[i64]) -> Result<usize, Error> {
    // Transactions that remove documents lock the same rows in another order. This one has a short lock timeout, so it
    // aborts before the server's deadlock detection runs.
    let most = MERGE_TIMEOUT.as_secs();
    let settings = format!(
        "SET LOCAL statement_timeout = '{most}s'; SET LOCAL idle_in_transaction_session_timeout = '{most}s'; \
         SET LOCAL lock_timeout = '200ms'"
    );
    session.execute_batch(&settings).await?;
    let dead = session.rows("SELECT key FROM writings WHERE batch = ANY($1) AND dead IS NOT NULL", &[&batches]).await?;
    let dead = dead.iter().map(|row| rows::get(row, 0)).collect::<Result<HashSet<i64>, _>>()?;
    let taken = "DELETE FROM postings WHERE batch = ANY($1) RETURNING term, list";
    let taken = session.rows_with_timeout(taken, &[&batches], MERGE_TIMEOUT).await?;
    let left = taken.len();
    let gone: Vec<i64> = dead.iter().copied().collect();
    let (joined, count) = run_blocking(move || merge_lists(taken, &dead)).await??;
    session.execute("DELETE FROM batches WHERE key = ANY($1)", &[&batches]).await?;
    session.execute("DELETE FROM writings WHERE key = ANY($1)", &[&gone]).await?;
    let batch: i64 = rows::get(&session.row("SELECT nextval('writing')", &[]).await?, 0)?;
    session.execute("UPDATE writings SET batch = $1 WHERE batch = ANY($2)", &[&batch, &batches]).await?;
    insert(session, base, batch, joined).await?;
    record_batch(session, base, batch, count).await?;
    Ok(left)
}

/// A term and its encoded posting list.
type TermPostings = (String, Vec<u8>);

/// Merges the lists of each term and drops dead versions. Also returns the number of postings. CPU-bound: there may be
/// millions of postings.
fn merge_lists(taken: Vec<Row>, dead: &HashSet<i64>) -> Result<(Vec<TermPostings>, u64), Error> {
    let mut lists: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for row in taken {
        lists.entry(rows::get(&row, 0)?).or_default().push(rows::get(&row, 1)?);
    }
    let mut count = 0;
    let mut joined = Vec::with_capacity(lists.len());
    for (term, parts) in lists {
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let keep = |key: u64| !dead.contains(&((key >> ORDINAL_BITS) as i64));
        let list = external::merge_lists(&parts, keep).map_err(|_| Error::unreadable("list of words"))?;
        let mut here = 0;
        external::for_each_posting(&list, |_| here += 1).map_err(|_| Error::unreadable("list of words"))?;
        if here > 0 {
            count += here;
            joined.push((term, list));
        }
    }
    Ok((joined, count))
}
