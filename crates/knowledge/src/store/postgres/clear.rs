//! Clears a base.

use std::sync::Mutex;

use super::session::Session;
use super::{Store, delete_content, postings_merge, rows, task_completion, watched_files};
use crate::document::BaseName;
use crate::store::{ClearSummary, Error};
use corbie_util::lock::lock;

/// Number of documents removed per statement.
const DELETE_BATCH_SIZE: usize = 1000;

impl Store {
    /// Reports no freed bytes, because the server frees the space later, during VACUUM.
    pub async fn clear(&self, base: &BaseName) -> Result<ClearSummary, Error> {
        let (now, first) = (rows::now(), &Mutex::new(None));
        let cleared = self.write_with_retry(|session, _| attempt(session, base, now, first)).await?;
        self.0.heartbeat.changes().notify_documents_changed();
        Ok(cleared)
    }
}

/// If a retry finds nothing left to clear, it returns the result of the first attempt: that attempt committed and only
/// its acknowledgement was lost.
async fn attempt(
    session: Session,
    base: &BaseName,
    now: i64,
    first: &Mutex<Option<ClearSummary>>,
) -> Result<ClearSummary, Error> {
    let Some(base) = rows::base_key(&session, base).await? else {
        session.rollback().await?;
        return Ok(ClearSummary::default());
    };
    let cleared = clear(&session, base, now).await?;
    let told = lock(first).get_or_insert_with(|| cleared.clone()).clone();
    session.commit().await?;
    let is_left = cleared.documents > 0 || !cleared.cancelled_tasks.is_empty();
    Ok(if is_left { cleared } else { told })
}

/// Tasks come first, as in every writer: the transaction waits for a task's current write and removes its document,
/// and later writes fail. Then it locks the batches, so that no merge starts on data about to be removed, and the
/// documents in key order, so that two concurrent clears do not deadlock. Derived data comes last.
async fn clear(session: &Session, base: i64, now: i64) -> Result<ClearSummary, Error> {
    let cancelled_tasks = task_completion::cancel_all(session, base, now).await?;
    let mut cleared = ClearSummary { cancelled_tasks, ..ClearSummary::default() };
    let batches = postings_merge::lock_batches(session, base).await?;
    let keys = session.rows("SELECT key FROM documents WHERE base = $1 ORDER BY key", &[&base]).await?;
    let keys = keys.iter().map(|row| rows::get::<i64>(row, 0)).collect::<Result<Vec<_>, _>>()?;
    for some in keys.chunks(DELETE_BATCH_SIZE) {
        let lock = "SELECT writing FROM documents WHERE key = ANY($1) ORDER BY key FOR UPDATE";
        let writings = session.rows(lock, &[&some]).await?;
        let writings = writings.iter().map(|row| rows::get::<i64>(row, 0)).collect::<Result<Vec<_>, _>>()?;
        let gone = delete_content::remove(session, base, &writings, now).await?;
        session.execute("DELETE FROM documents WHERE key = ANY($1)", &[&some]).await?;
        cleared.documents += gone.documents;
        cleared.chunks += gone.chunks;
        cleared.vectors += gone.vectors;
    }
    postings_merge::drop_dead_batches(session, &batches).await?;
    watched_files::mark_base_done(session, base).await?;
    Ok(cleared)
}
