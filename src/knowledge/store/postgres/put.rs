//! Inserts or replaces a document with all its data in one transaction.

use super::ready::Ready;
use super::session::Session;
use super::{KEYS, Store, aside, contents, imported, rows, taken, tasks, written};
use crate::knowledge::document::{DocumentId, NewDocument, Origin, Put, Written};
use crate::knowledge::store::Error;
use crate::knowledge::task::Work;

impl Store {
    pub async fn put_document(&self, new: NewDocument, work: Work) -> Result<Put, Error> {
        // Queried first, so that no document is prepared while the database is unavailable.
        let base = rows::known_base(&self.plain().await?, &new.base).await?;
        let ready = aside(move || Ready::of(new)).await??;
        let (now, ready, work) = (rows::now(), &ready, &work);
        let put =
            self.write_surely(|session, is_again| self.attempt(session, base, ready, work, now, is_again)).await?;
        if let Put::Written(_) = put {
            self.0.pulse.tell_documents();
        }
        Ok(put)
    }

    async fn attempt(
        &self,
        session: Session,
        base: i64,
        ready: &Ready,
        work: &Work,
        now: i64,
        is_again: bool,
    ) -> Result<Put, Error> {
        if is_again && let Some(written) = already(&session, base, &ready.new, Some(now)).await? {
            session.leave().await?;
            return Ok(Put::Written(written));
        }
        let put = self.put(&session, base, ready, work, now).await?;
        match put {
            Put::Written(_) => session.commit().await?,
            Put::Same(_) | Put::PathTaken(_) => session.leave().await?,
        }
        Ok(put)
    }

    async fn put(&self, session: &Session, base: i64, ready: &Ready, work: &Work, now: i64) -> Result<Put, Error> {
        let new = &ready.new;
        tasks::must_go_on(session, self.0.instance.id(), work).await?;
        taken::lock(session, base, Some(&new.sha256), new.path.as_deref()).await?;
        let before = match new.replaces {
            Some(id) => Some(taken::before(session, base, id).await?.ok_or(Error::DocumentGone)?),
            None => None,
        };
        if before.is_none()
            && let Some(same) = taken::same_content(session, base, &new.sha256).await?
        {
            // The ID is random, so an earlier attempt with a lost acknowledgement has written the document.
            let own = if same == new.id { already(session, base, new, None).await? } else { None };
            return Ok(own.map_or(Put::Same(same), Put::Written));
        }
        if let Some(path) = &new.path
            && let Some(other) =
                taken::at_path(session, base, path, before.as_ref().map_or(0, |before| before.key)).await?
        {
            return Ok(Put::PathTaken(other));
        }
        // A document that a user added stays a user document when a watched folder provides its next version.
        let origin = match (&before, new.origin) {
            (Some(before), Origin::Watched) => before.origin,
            (_, origin) => origin,
        };
        if let Some(before) = &before {
            contents::remove(session, base, &[before.writing], now).await?;
        }
        let (key, id, writing) = written::write(session, base, ready, &before, origin, now).await?;
        imported::note(session, work, id, before.is_some()).await?;
        tasks::end_with(session, self.0.instance.id(), work, now).await?;
        Ok(Put::Written(told(key, id, writing, new.chunks.len())))
    }
}

/// The document, if it exists with this content and, if `at` is given, was written at that time: by an attempt with a
/// lost acknowledgement.
async fn already(session: &Session, base: i64, new: &NewDocument, at: Option<i64>) -> Result<Option<Written>, Error> {
    let id = new.replaces.unwrap_or(new.id);
    let sql = "SELECT key, writing FROM documents WHERE base = $1 AND id = $2 AND sha256 = $3 \
               AND ($4::bigint IS NULL OR updated = $4)";
    let row = session.maybe(sql, &[&base, &id.0, &new.sha256.as_slice(), &at]).await?;
    row.map(|row| Ok(told(rows::get(&row, 0)?, id, rows::get(&row, 1)?, new.chunks.len()))).transpose()
}

fn told(key: i64, id: DocumentId, writing: i64, chunks: usize) -> Written {
    let first = (writing as u64) << KEYS;
    Written { key: key as u64, id, chunks: first..first + chunks as u64, sequence: writing as u64 }
}
