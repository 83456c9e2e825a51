//! Inserts or replaces a document with all its data in one transaction.

use super::encoded_document::EncodedDocument;
use super::session::Session;
use super::{
    ORDINAL_BITS, Store, conflicts, delete_content, import_checkpoint, insert_document, rows, run_blocking, tasks,
};
use crate::knowledge::document::{DocumentId, NewDocument, Origin, PutOutcome, WrittenDocument};
use crate::knowledge::store::Error;
use crate::knowledge::task::TaskLink;

impl Store {
    pub async fn put_document(&self, new: NewDocument, work: TaskLink) -> Result<PutOutcome, Error> {
        // Queried first, so that no document is prepared while the database is unavailable.
        let base = rows::get_or_create_base(&self.autocommit().await?, &new.base).await?;
        let ready = run_blocking(move || EncodedDocument::of(new)).await??;
        let (now, ready, work) = (rows::now(), &ready, &work);
        let put = self
            .write_with_retry(|session, is_again| self.attempt_upsert(session, base, ready, work, now, is_again))
            .await?;
        if let PutOutcome::Written(_) = put {
            self.0.heartbeat.changes().notify_documents_changed();
        }
        Ok(put)
    }

    async fn attempt_upsert(
        &self,
        session: Session,
        base: i64,
        ready: &EncodedDocument,
        work: &TaskLink,
        now: i64,
        is_again: bool,
    ) -> Result<PutOutcome, Error> {
        if is_again && let Some(written) = find_earlier_attempt(&session, base, &ready.new, Some(now)).await? {
            session.rollback().await?;
            return Ok(PutOutcome::Written(written));
        }
        let put = self.upsert(&session, base, ready, work, now).await?;
        match put {
            PutOutcome::Written(_) => session.commit().await?,
            PutOutcome::DuplicateContent(_) | PutOutcome::PathTaken(_) => session.rollback().await?,
        }
        Ok(put)
    }

    async fn upsert(
        &self,
        session: &Session,
        base: i64,
        ready: &EncodedDocument,
        work: &TaskLink,
        now: i64,
    ) -> Result<PutOutcome, Error> {
        let new = &ready.new;
        tasks::lock_active_task(session, self.0.instance.id(), work).await?;
        conflicts::lock_content_and_path(session, base, Some(&new.sha256), new.path.as_deref()).await?;
        let before = match new.replaces {
            Some(id) => Some(conflicts::lock_replaced(session, base, id).await?.ok_or(Error::DocumentNotFound)?),
            None => None,
        };
        if before.is_none()
            && let Some(same) = conflicts::find_by_content(session, base, &new.sha256).await?
        {
            // The ID is random, so an earlier attempt with a lost acknowledgement has written the document.
            let own = if same == new.id { find_earlier_attempt(session, base, new, None).await? } else { None };
            return Ok(own.map_or(PutOutcome::DuplicateContent(same), PutOutcome::Written));
        }
        if let Some(path) = &new.path
            && let Some(other) =
                conflicts::find_by_path(session, base, path, before.as_ref().map_or(0, |before| before.key)).await?
        {
            return Ok(PutOutcome::PathTaken(other));
        }
        // A document that a user added stays a user document when a watched folder provides its next version.
        let origin = match (&before, new.origin) {
            (Some(before), Origin::Watched) => before.origin,
            (_, origin) => origin,
        };
        if let Some(before) = &before {
            delete_content::remove(session, base, &[before.content_version], now).await?;
        }
        let (key, id, writing) = insert_document::insert_document(session, base, ready, &before, origin, now).await?;
        import_checkpoint::record(session, work, id, before.is_some()).await?;
        tasks::end_task_of_write(session, self.0.instance.id(), work, now).await?;
        Ok(PutOutcome::Written(written_document(key, id, writing, new.chunks.len())))
    }
}

/// The document, if it exists with this content and, if `at` is given, was written at that time: by an attempt with a
/// lost acknowledgement.
async fn find_earlier_attempt(
    session: &Session,
    base: i64,
    new: &NewDocument,
    at: Option<i64>,
) -> Result<Option<WrittenDocument>, Error> {
    let id = new.replaces.unwrap_or(new.id);
    let sql = "SELECT key, writing FROM documents WHERE base = $1 AND id = $2 AND sha256 = $3 \
               AND ($4::bigint IS NULL OR updated = $4)";
    let row = session.opt_row(sql, &[&base, &id.0, &new.sha256.as_slice(), &at]).await?;
    row.map(|row| Ok(written_document(rows::get(&row, 0)?, id, rows::get(&row, 1)?, new.chunks.len()))).transpose()
}

fn written_document(key: i64, id: DocumentId, writing: i64, chunks: usize) -> WrittenDocument {
    let first = (writing as u64) << ORDINAL_BITS;
    WrittenDocument { key: key as u64, id, chunks: first..first + chunks as u64, sequence: writing as u64 }
}
