//! Empties a base.

use super::session::Session;
use super::{Store, contents, postings, rows, task_end, watched};
use crate::knowledge::document::BaseName;
use crate::knowledge::store::{Cleared, Error};

/// So many documents are removed at once.
const AT_ONCE: usize = 1000;

impl Store {
    /// The server gives the space back when it cleans up, so nothing is told to be freed.
    pub async fn clear(&self, base: &BaseName) -> Result<Cleared, Error> {
        let session = self.writing().await?;
        let Some(base) = rows::base(&session, base).await? else {
            session.leave().await?;
            return Ok(Cleared::default());
        };
        let cleared = clear(&session, base).await?;
        session.commit().await?;
        self.0.pulse.tell_documents();
        Ok(cleared)
    }
}

/// Tasks first, as all who write: what is being written for one is waited for and removed, and nothing is written after.
/// Then batches, so that nobody begins to join what is about to go, and documents in the order of their rows, so that two
/// who clear do not wait for each other; last what follows of them.
async fn clear(session: &Session, base: i64) -> Result<Cleared, Error> {
    let now = rows::now();
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
