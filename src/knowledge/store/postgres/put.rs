//! Puts a document with all that belongs to it, or nothing.

use super::ready::Ready;
use super::session::Session;
use super::{KEYS, Store, aside, contents, imported, rows, taken, tasks, written};
use crate::knowledge::document::{NewDocument, Origin, Put, Written};
use crate::knowledge::store::Error;
use crate::knowledge::task::Work;

impl Store {
    /// Writes a document, its pages, chunks, vectors and words, and the end of its task in one transaction. One that
    /// [replaces](NewDocument::replaces) another keeps that one's id and date; everything else is swapped.
    ///
    /// Where another document is in the way, nothing is written, and the task goes on.
    pub async fn put_document(&self, new: NewDocument, work: Work) -> Result<Put, Error> {
        // Asked first: while the database is away, nothing is made ready in vain.
        let base = rows::known_base(&self.plain().await?, &new.base).await?;
        // Words are read here, so that nobody waits for it in front of a lock.
        let ready = aside(move || Ready::of(new)).await??;
        let session = self.writing().await?;
        let put = self.put(&session, base, &ready, &work).await?;
        match &put {
            Put::Written(_) => {
                session.commit().await?;
                self.0.pulse.tell_documents();
            }
            Put::Same(_) | Put::PathTaken(_) => session.leave().await?,
        }
        Ok(put)
    }

    async fn put(&self, session: &Session, base: i64, ready: &Ready, work: &Work) -> Result<Put, Error> {
        let (new, now) = (&ready.new, rows::now());
        tasks::must_go_on(session, self.0.instance.id(), work).await?;
        taken::lock(session, base, Some(&new.sha256), new.path.as_deref()).await?;
        let before = match new.replaces {
            Some(id) => Some(taken::before(session, base, id).await?.ok_or(Error::DocumentGone)?),
            None => None,
        };
        if before.is_none()
            && let Some(same) = taken::same_content(session, base, &new.sha256).await?
        {
            return Ok(Put::Same(same));
        }
        if let Some(path) = &new.path
            && let Some(other) =
                taken::at_path(session, base, path, before.as_ref().map_or(0, |before| before.key)).await?
        {
            return Ok(Put::PathTaken(other));
        }
        // What a user has added stays the user's when a watched folder brings its next version.
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
        let first = (writing as u64) << KEYS;
        let chunks = first..first + new.chunks.len() as u64;
        Ok(Put::Written(Written { key: key as u64, id, chunks, sequence: writing as u64 }))
    }
}
