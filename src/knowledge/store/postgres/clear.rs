//! Clears a base.

use std::sync::Mutex;

use super::session::Session;
use super::{Store, contents, postings, rows, task_end, watched};
use crate::knowledge::document::BaseName;
use crate::knowledge::store::{Cleared, Error};
use crate::locked::locked;

/// Number of documents removed per statement.
const AT_ONCE: usize = 1000;

impl Store {
    /// Reports no freed bytes, because the server frees the space later, during VACUUM.
    pub async fn clear(&self, base: &BaseName) -> Result<Cleared, Error> {
        let (now, first) = (rows::now(), &Mutex::new(None));
        let cleared = self.write_surely(|session, _| attempt(session, base, now, first)).await?;
        self.0.pulse.tell_documents();
        Ok(cleared)
    }
}

/// If a retry finds nothing left to clear, it returns the result of the first attempt: that attempt committed and only
/// its acknowledgement was lost.
async fn attempt(
    session: Session,
    base: &BaseName,
    now: i64,
    first: &Mutex<Option<Cleared>>,
) -> Result<Cleared, Error> {
    let Some(base) = rows::base(&session, base).await? else {
        session.leave().await?;
        return Ok(Cleared::default());
    };
    let cleared = clear(&session, base, now).await?;
    let told = locked(first).get_or_insert_with(|| cleared.clone()).clone();
    session.commit().await?;
    let is_left = cleared.documents > 0 || !cleared.cancelled_tasks.is_empty();
    Ok(if is_left { cleared } else { told })
}

/// Tasks come first, as in every writer: the transaction waits for a task's current write and removes its document,
/// and later writes fail. Then it locks the batches, so that no merge starts on data about to be removed, and the
/// documents in key order, so that two concurrent clears do not deadlock. Derived data comes last.
async fn clear(session: &Session, base: i64, now: i64) -> Result<Cleared, Error> {
    let cancelled_tasks = task_end::cancel_all(session, base, now).await?;
    let mut cleared = Cleared { cancelled_tasks, ..Cleared::default() };
    let batches = postings::hold(session, base).await?;
    let keys = session.rows("SELECT key FROM documents WHERE base = $1 ORDER BY key", &[&base]).await?;
    let keys = keys.iter().map(|row| rows::get::<i64>(row, 0)).collect::<Result<Vec<_>, _>>()?;
    for some in keys.chunks(AT_ONCE) {
        let lock = "SELECT writing FROM documents WHERE key = ANY($1) ORDER BY key FOR UPDATE";
        let writings = session.rows(lock, &[&some]).await?;
        let writings = writings.iter().map(|row| rows::get::<i64>(row, 0)).collect::<Result<Vec<_>, _>>()?;
        let gone = contents::remove(session, base, &writings, now).await?;
        session.execute("DELETE FROM documents WHERE key = ANY($1)", &[&some]).await?;
        cleared.documents += gone.documents;
        cleared.chunks += gone.chunks;
        cleared.vectors += gone.vectors;
    }
    postings::drop_dead(session, &batches).await?;
    watched::settle_base(session, base).await?;
    Ok(cleared)
}
