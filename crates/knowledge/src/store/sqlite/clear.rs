//! Clears a base and returns space to the file system.

use std::time::Duration;

use rusqlite::{Connection, ToSql, Transaction};

use super::change_log::{self, ChangeKind};
use super::{Store, WriterContext, rows, task_completion, watched_files, writer};
use crate::document::BaseName;
use crate::store::{ClearSummary, Error};
use crate::task::TaskId;

/// How long a checkpoint waits for readers before it is postponed.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(1);

/// With fewer used pages than this, a full VACUUM is cheaper.
const MAX_FULL_VACUUM_PAGES: u64 = 2048;

impl Store {
    /// Removes all documents of a base and cancels its tasks in one transaction, then frees the space. Failed tasks
    /// are no longer listed among its documents, and files of watched folders are not added again until they change.
    pub async fn clear(&self, base: &BaseName) -> Result<ClearSummary, Error> {
        let (base, pen, files) = (base.clone(), self.writer_context(), self.0.files.clone());
        let patience = self.0.options.busy_timeout;
        let work = move |connection: &mut Connection| {
            // Recent writes are still in the WAL; the checkpoint makes the size before and after comparable.
            truncate_wal(connection, patience);
            let before = files.size();
            let unchecked = ForeignKeysDisabled::new(connection)?;
            let mut cleared = writer::transact(unchecked.0, |transaction| clear(transaction, &pen, &base))?;
            drop(unchecked);
            if cleared.documents > 0 {
                vacuum(connection);
                truncate_wal(connection, patience);
                cleared.freed_bytes = before.saturating_sub(files.size());
            }
            Ok(cleared)
        };
        self.0.writer.run(work).await
    }
}

/// A connection with foreign keys disabled. With them, a referenced table could only be emptied row by row.
struct ForeignKeysDisabled<'a>(&'a mut Connection);

impl ForeignKeysDisabled<'_> {
    fn new(connection: &mut Connection) -> Result<ForeignKeysDisabled<'_>, Error> {
        connection.pragma_update(None, "foreign_keys", "OFF")?;
        Ok(ForeignKeysDisabled(connection))
    }
}

impl Drop for ForeignKeysDisabled<'_> {
    fn drop(&mut self) {
        // Fails only inside a transaction, and that has ended.
        let _ = self.0.pragma_update(None, "foreign_keys", "ON");
    }
}

fn clear(transaction: &Transaction<'_>, pen: &WriterContext, base: &BaseName) -> Result<ClearSummary, Error> {
    let Some(key) = rows::base_key(transaction, base)? else { return Ok(ClearSummary::default()) };
    let now = rows::now();
    let request = task_completion::RETAINED_REQUEST;
    let mut cancel = transaction.prepare(&format!(
        "UPDATE tasks SET state = 'cancelled', ended = ?2, updated = ?2, request = {request} \
         WHERE base = ?1 AND state IN ('queued', 'running') RETURNING id"
    ))?;
    let cancelled_tasks = cancel.query_map((key, now), |row| row.get(0))?.collect::<Result<Vec<TaskId>, _>>()?;
    transaction.execute("DELETE FROM imported WHERE task IN (SELECT key FROM tasks WHERE base = ?1)", [key])?;
    transaction.execute("UPDATE tasks SET document = NULL WHERE base = ?1 AND state = 'failed'", [key])?;
    watched_files::mark_base_done(transaction, key)?;
    let counted =
        "SELECT count(*), ifnull(sum(chunk_count), 0), ifnull(sum(vector_count), 0) FROM documents WHERE base = ?1";
    let (documents, chunks, vectors) =
        transaction.query_row(counted, [key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if documents > 0 {
        rows::touch_base(transaction, base, now)?;
        // SQLite empties a whole table page by page; row by row, it would rewrite most of the file.
        let others = transaction.prepare("SELECT 1 FROM documents WHERE base <> ?1")?.exists([key])?;
        let theirs = if others { " WHERE document IN (SELECT key FROM documents WHERE base = ?1)" } else { "" };
        let vectors = if others { format!(" WHERE chunk IN (SELECT key FROM chunks{theirs})") } else { String::new() };
        for rows in [format!("vectors{vectors}"), format!("chunks{theirs}"), format!("pages{theirs}")] {
            let parameters: &[&dyn ToSql] = if others { &[&key] } else { &[] };
            transaction.execute(&format!("DELETE FROM {rows}"), parameters)?;
        }
        transaction.execute("DELETE FROM documents WHERE base = ?1", [key])?;
        change_log::append(transaction, pen, key, None, ChangeKind::Cleared)?;
    }
    Ok(ClearSummary { documents, chunks, vectors, freed_bytes: 0, cancelled_tasks })
}

/// Frees unused pages after a removal. The removal is already committed; on failure, later writes reuse the space.
pub(super) fn free_space(connection: &Connection, patience: Duration) {
    vacuum(connection);
    // Removed data stays in the WAL until it is truncated.
    try_shrink_log(connection, patience);
}

/// Checkpoints and truncates the WAL without waiting. If a reader prevents it, a later call or closing does it.
pub(super) fn try_shrink_log(connection: &Connection, patience: Duration) {
    let _ = connection.busy_timeout(Duration::ZERO);
    let _ = checkpoint(connection, "TRUNCATE");
    let _ = connection.busy_timeout(patience);
}

/// Truncates free pages at the end of the file. If few pages are in use, a full VACUUM rewrites them; otherwise pages
/// are moved one at a time.
fn vacuum(connection: &Connection) {
    let pages = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, u64>(0));
    let vacuum = || -> rusqlite::Result<()> {
        let (all, free) = (pages("page_count")?, pages("freelist_count")?);
        if all.saturating_sub(free) < MAX_FULL_VACUUM_PAGES.min(free) {
            return connection.execute_batch("VACUUM");
        }
        let mut statement = connection.prepare("PRAGMA incremental_vacuum")?;
        let mut steps = statement.query([])?;
        while steps.next()?.is_some() {}
        Ok(())
    };
    if let Err(error) = vacuum() {
        tracing::warn!(%error, "cannot release free space");
    }
}

/// Checkpoints and truncates the WAL, unless a reader blocks it for too long.
pub(super) fn truncate_wal(connection: &Connection, patience: Duration) {
    let shrink = || -> rusqlite::Result<()> {
        connection.busy_timeout(CHECKPOINT_TIMEOUT.min(patience))?;
        checkpoint(connection, "TRUNCATE")
    };
    let shrunk = shrink();
    let restored = connection.busy_timeout(patience);
    if let Err(error) = shrunk.and(restored) {
        tracing::warn!(%error, "cannot checkpoint the write-ahead log");
    }
}

fn checkpoint(connection: &Connection, how: &str) -> rusqlite::Result<()> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(()))
}
