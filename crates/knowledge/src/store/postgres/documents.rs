//! Lookup, metadata update and removal of single documents.

use std::path::Path;
use std::sync::Mutex;

use serde_json::{Map, Value};
use tokio_postgres::types::ToSql;

use super::rows::StoredEnum;
use super::session::Session;
use super::{
    Store, chunks, corpus_stats, delete_content, rows, task_completion, tasks, upsert_document, watched_files,
};
use crate::document::{BaseName, Claim, DocumentId, DocumentRecord, Origin, RemovedDocument};
use crate::filter;
use crate::store::Error;
use crate::task::TaskLink;
use corbie_util::lock::lock;

impl Store {
    pub async fn document(&self, base: &BaseName, id: DocumentId) -> Result<Option<DocumentRecord>, Error> {
        self.find_one("d.id = $2", base, &id.0).await
    }

    pub async fn document_by_content(
        &self,
        base: &BaseName,
        sha256: [u8; 32],
    ) -> Result<Option<DocumentRecord>, Error> {
        self.find_one("d.sha256 = $2", base, &sha256.as_slice()).await
    }

    pub async fn document_by_path(&self, base: &BaseName, path: &str) -> Result<Option<DocumentRecord>, Error> {
        self.find_one("md5(d.path) = md5($2) AND d.path = $2", base, &rows::without_nul(path)).await
    }

    async fn find_one(
        &self,
        condition: &str,
        base: &BaseName,
        wanted: &(dyn ToSql + Sync),
    ) -> Result<Option<DocumentRecord>, Error> {
        let session = self.autocommit().await?;
        let sql = format!(
            "SELECT {} FROM {} WHERE b.name = $1 AND {condition} ORDER BY d.key LIMIT 1",
            rows::DOCUMENT_COLUMNS,
            rows::DOCUMENT_TABLES
        );
        let row = session.opt_row(&sql, &[&base.as_str(), wanted]).await?;
        row.map(|row| Ok(rows::read_document(&row)?.0)).transpose()
    }

    pub async fn update_metadata(
        &self,
        base: &BaseName,
        id: DocumentId,
        metadata: Map<String, Value>,
        path: Option<String>,
        work: TaskLink,
    ) -> Result<Option<DocumentRecord>, Error> {
        let (now, metadata, path, work) = (rows::now(), &metadata, path.as_deref(), &work);
        self.write_with_retry(|session, is_again| async move {
            if is_again && self.has_ended(&session, work, now).await? {
                return current_document(session, base, id).await;
            }
            tasks::lock_active_task(&session, self.0.instance.id(), work).await?;
            let Some(at) = LockedDocument::lock(&session, base, id, path).await? else {
                return roll_back_none(session).await;
            };
            let path = at.available_path(&session, path).await?;
            let filename = path.and_then(|path| Path::new(path).file_name()).map(|name| name.to_string_lossy());
            let said = DocumentDescription {
                metadata,
                origin: at.document.origin,
                path: path.or(at.document.path.as_deref()),
                filename: filename.as_deref().unwrap_or(&at.document.filename),
            };
            self.write_description(session, &at, said, work, now).await
        })
        .await
    }

    pub async fn claim_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        claim: Claim,
        work: TaskLink,
    ) -> Result<Option<DocumentRecord>, Error> {
        let (now, claim, work) = (rows::now(), &claim, &work);
        self.write_with_retry(|session, is_again| async move {
            if is_again && self.has_ended(&session, work, now).await? {
                return current_document(session, base, id).await;
            }
            tasks::lock_active_task(&session, self.0.instance.id(), work).await?;
            let Some(at) = LockedDocument::lock(&session, base, id, claim.path.as_deref()).await? else {
                return roll_back_none(session).await;
            };
            let path = at.available_path(&session, claim.path.as_deref()).await?;
            let Claim { origin, filename, metadata, .. } = claim;
            self.write_description(
                session,
                &at,
                DocumentDescription { metadata, origin: *origin, path, filename },
                work,
                now,
            )
            .await
        })
        .await
    }

    /// Whether the task that this write ends already ended at this timestamp, by an attempt with a lost
    /// acknowledgement.
    async fn has_ended(&self, session: &Session, work: &TaskLink, now: i64) -> Result<bool, Error> {
        match work {
            TaskLink::Ends(end) => task_completion::has_ended(session, end, now).await,
            TaskLink::Standalone | TaskLink::PartOf(_) => Ok(false),
        }
    }

    /// Updates the description of a document. The file name is part of the indexed text, so a new name requires new
    /// chunk keys.
    async fn write_description(
        &self,
        session: Session,
        at: &LockedDocument,
        said: DocumentDescription<'_>,
        work: &TaskLink,
        now: i64,
    ) -> Result<Option<DocumentRecord>, Error> {
        let facets = rows::facet_hashes(&filter::facets(&at.document.format, said.metadata));
        let (metadata, path) = (rows::to_json(said.metadata)?, said.path.map(rows::without_nul));
        let sql = "UPDATE documents SET metadata = $2, facets = $3, updated = $4, origin = $5, path = $6, filename = $7 WHERE key = $1";
        let (key, filename, origin) =
            (rows::to_i64(at.document.key), rows::without_nul(said.filename), said.origin.stored_name());
        session.execute(sql, &[&key, &metadata, &facets, &now, &origin, &path, &filename]).await?;
        if filename != at.document.filename {
            chunks::rekey(&session, at.base, key, at.content_version, &filename, at.document.title.as_deref()).await?;
        }
        corpus_stats::touch(&session, at.base, now).await?;
        task_completion::end_task_of_write(&session, self.0.instance.id(), work, now).await?;
        let sql = format!("SELECT {} FROM {} WHERE d.key = $1", rows::DOCUMENT_COLUMNS, rows::DOCUMENT_TABLES);
        let row = session.row(&sql, &[&key]).await?;
        let (document, _) = rows::read_document(&row)?;
        session.commit().await?;
        self.0.heartbeat.changes().notify_documents_changed();
        Ok(Some(document))
    }

    pub async fn remove_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<RemovedDocument>, Error> {
        self.remove_where(base, id, None).await
    }

    pub async fn remove_watched_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        path: &str,
    ) -> Result<Option<RemovedDocument>, Error> {
        self.remove_where(base, id, Some(path)).await
    }

    async fn remove_where(
        &self,
        base: &BaseName,
        id: DocumentId,
        path: Option<&str>,
    ) -> Result<Option<RemovedDocument>, Error> {
        let first = &Mutex::new(None);
        let removed =
            self.write_with_retry(|session, is_again| remove(session, base, id, path, is_again, first)).await?;
        if removed.is_some() {
            self.0.heartbeat.changes().notify_documents_changed();
        }
        Ok(removed)
    }
}

/// If a retry does not find the document, it returns the result of the first attempt: that attempt committed and only
/// its acknowledgement was lost.
async fn remove(
    session: Session,
    base: &BaseName,
    id: DocumentId,
    path: Option<&str>,
    is_again: bool,
    first: &Mutex<Option<RemovedDocument>>,
) -> Result<Option<RemovedDocument>, Error> {
    let Some(LockedDocument { base, document, content_version: writing }) =
        LockedDocument::lock(&session, base, id, None).await?
    else {
        session.rollback().await?;
        return Ok(lock(first).take().filter(|_| is_again));
    };
    let is_meant = path.is_none() || (document.path.as_deref() == path && document.origin == Origin::Watched);
    if !is_meant {
        session.rollback().await?;
        return Ok(None);
    }
    delete_content::remove(&session, base, &[writing], rows::now()).await?;
    session.execute("DELETE FROM documents WHERE key = $1", &[&rows::to_i64(document.key)]).await?;
    watched_files::clear_document(&session, id).await?;
    let removed = RemovedDocument {
        key: document.key,
        filename: document.filename,
        chunks: document.chunk_count.into(),
        vectors: document.vector_count.into(),
        sequence: writing as u64,
    };
    *lock(first) = Some(removed.clone());
    session.commit().await?;
    Ok(Some(removed))
}

/// Returns the document in its current state.
async fn current_document(session: Session, base: &BaseName, id: DocumentId) -> Result<Option<DocumentRecord>, Error> {
    let at = LockedDocument::lock(&session, base, id, None).await?;
    session.rollback().await?;
    Ok(at.map(|at| at.document))
}

async fn roll_back_none(session: Session) -> Result<Option<DocumentRecord>, Error> {
    session.rollback().await?;
    Ok(None)
}

/// A document row locked until the end of the transaction.
struct LockedDocument {
    base: i64,
    document: DocumentRecord,
    content_version: i64,
}

/// New description of a document.
struct DocumentDescription<'a> {
    metadata: &'a Map<String, Value>,
    origin: Origin,
    path: Option<&'a str>,
    filename: &'a str,
}

impl LockedDocument {
    /// Finds and locks the document, and locks the new path, if any.
    async fn lock(
        session: &Session,
        name: &BaseName,
        id: DocumentId,
        path: Option<&str>,
    ) -> Result<Option<LockedDocument>, Error> {
        let Some(base) = rows::base_key(session, name).await? else { return Ok(None) };
        if path.is_some() {
            upsert_document::lock_content_and_path(session, base, None, path).await?;
        }
        let sql = format!(
            "SELECT {} FROM {} WHERE d.base = $1 AND d.id = $2 FOR UPDATE OF d",
            rows::DOCUMENT_COLUMNS,
            rows::DOCUMENT_TABLES
        );
        let Some(row) = session.opt_row(&sql, &[&base, &id.0]).await? else { return Ok(None) };
        let (document, writing) = rows::read_document(&row)?;
        Ok(Some(LockedDocument { base, document, content_version: writing }))
    }

    /// Returns the path unless another document of the base has it.
    async fn available_path<'p>(&self, session: &Session, path: Option<&'p str>) -> Result<Option<&'p str>, Error> {
        let Some(path) = path else { return Ok(None) };
        let taken = upsert_document::find_by_path(session, self.base, path, rows::to_i64(self.document.key)).await?;
        Ok(Some(path).filter(|_| taken.is_none()))
    }
}
