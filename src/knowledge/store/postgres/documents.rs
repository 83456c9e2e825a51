//! Lookup, metadata update and removal of single documents.

use std::path::Path;
use std::sync::Mutex;

use serde_json::{Map, Value};
use tokio_postgres::types::ToSql;

use super::facets::facets;
use super::rows::Word;
use super::session::Session;
use super::{Store, contents, renamed, rows, sums, taken, task_end, tasks, watched};
use crate::knowledge::document::{BaseName, Claim, Document, DocumentId, Origin, Removed};
use crate::knowledge::filter;
use crate::knowledge::store::Error;
use crate::knowledge::task::Work;
use crate::locked::locked;

impl Store {
    pub async fn document(&self, base: &BaseName, id: DocumentId) -> Result<Option<Document>, Error> {
        self.one("d.id = $2", base, &id.0).await
    }

    pub async fn document_by_content(&self, base: &BaseName, sha256: [u8; 32]) -> Result<Option<Document>, Error> {
        self.one("d.sha256 = $2", base, &sha256.as_slice()).await
    }

    pub async fn document_by_path(&self, base: &BaseName, path: &str) -> Result<Option<Document>, Error> {
        self.one("md5(d.path) = md5($2) AND d.path = $2", base, &rows::text(path)).await
    }

    async fn one(
        &self,
        condition: &str,
        base: &BaseName,
        wanted: &(dyn ToSql + Sync),
    ) -> Result<Option<Document>, Error> {
        let session = self.plain().await?;
        let sql = format!(
            "SELECT {} FROM {} WHERE b.name = $1 AND {condition} ORDER BY d.key LIMIT 1",
            rows::DOCUMENT,
            rows::DOCUMENTS
        );
        let row = session.maybe(&sql, &[&base.as_str(), wanted]).await?;
        row.map(|row| Ok(rows::document(&row)?.0)).transpose()
    }

    pub async fn describe_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        metadata: Map<String, Value>,
        path: Option<String>,
        work: Work,
    ) -> Result<Option<Document>, Error> {
        let (now, metadata, path, work) = (rows::now(), &metadata, path.as_deref(), &work);
        self.write_surely(|session, is_again| async move {
            if is_again && self.has_ended(&session, work, now).await? {
                return shown(session, base, id).await;
            }
            tasks::must_go_on(&session, self.0.instance.id(), work).await?;
            let Some(at) = At::find(&session, base, id, path).await? else { return left(session).await };
            let path = at.free(&session, path).await?;
            let filename = path.and_then(|path| Path::new(path).file_name()).map(|name| name.to_string_lossy());
            let said = Said {
                metadata,
                origin: at.document.origin,
                path: path.or(at.document.path.as_deref()),
                filename: filename.as_deref().unwrap_or(&at.document.filename),
            };
            self.say(session, &at, said, work, now).await
        })
        .await
    }

    pub async fn claim_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        claim: Claim,
        work: Work,
    ) -> Result<Option<Document>, Error> {
        let (now, claim, work) = (rows::now(), &claim, &work);
        self.write_surely(|session, is_again| async move {
            if is_again && self.has_ended(&session, work, now).await? {
                return shown(session, base, id).await;
            }
            tasks::must_go_on(&session, self.0.instance.id(), work).await?;
            let Some(at) = At::find(&session, base, id, claim.path.as_deref()).await? else {
                return left(session).await;
            };
            let path = at.free(&session, claim.path.as_deref()).await?;
            let Claim { origin, filename, metadata, .. } = claim;
            self.say(session, &at, Said { metadata, origin: *origin, path, filename }, work, now).await
        })
        .await
    }

    /// Whether the task that this write ends already ended at this timestamp, by an attempt with a lost
    /// acknowledgement.
    async fn has_ended(&self, session: &Session, work: &Work, now: i64) -> Result<bool, Error> {
        match work {
            Work::Ends(end) => task_end::has_ended(session, end, now).await,
            Work::Alone | Work::PartOf(_) => Ok(false),
        }
    }

    /// Updates the description of a document. The file name is part of the indexed text, so a new name requires new
    /// chunk keys.
    async fn say(
        &self,
        session: Session,
        at: &At,
        said: Said<'_>,
        work: &Work,
        now: i64,
    ) -> Result<Option<Document>, Error> {
        let facets = facets(&filter::facets(&at.document.format, said.metadata));
        let (metadata, path) = (rows::to_json(said.metadata)?, said.path.map(rows::text));
        let sql = "UPDATE documents SET metadata = $2, facets = $3, updated = $4, origin = $5, path = $6, filename = $7 WHERE key = $1";
        let (key, filename, origin) = (rows::signed(at.document.key), rows::text(said.filename), said.origin.word());
        session.execute(sql, &[&key, &metadata, &facets, &now, &origin, &path, &filename]).await?;
        if filename != at.document.filename {
            renamed::renew(&session, at.base, key, at.writing, &filename, at.document.title.as_deref()).await?;
        }
        sums::touch(&session, at.base, now).await?;
        tasks::end_with(&session, self.0.instance.id(), work, now).await?;
        let sql = format!("SELECT {} FROM {} WHERE d.key = $1", rows::DOCUMENT, rows::DOCUMENTS);
        let row = session.row(&sql, &[&key]).await?;
        let (document, _) = rows::document(&row)?;
        session.commit().await?;
        self.0.pulse.tell_documents();
        Ok(Some(document))
    }

    pub async fn remove_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<Removed>, Error> {
        self.remove_where(base, id, None).await
    }

    pub async fn remove_watched_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        path: &str,
    ) -> Result<Option<Removed>, Error> {
        self.remove_where(base, id, Some(path)).await
    }

    async fn remove_where(
        &self,
        base: &BaseName,
        id: DocumentId,
        path: Option<&str>,
    ) -> Result<Option<Removed>, Error> {
        let first = &Mutex::new(None);
        let removed = self.write_surely(|session, is_again| remove(session, base, id, path, is_again, first)).await?;
        if removed.is_some() {
            self.0.pulse.tell_documents();
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
    first: &Mutex<Option<Removed>>,
) -> Result<Option<Removed>, Error> {
    let Some(At { base, document, writing }) = At::find(&session, base, id, None).await? else {
        session.leave().await?;
        return Ok(locked(first).take().filter(|_| is_again));
    };
    let is_meant = path.is_none() || (document.path.as_deref() == path && document.origin == Origin::Watched);
    if !is_meant {
        session.leave().await?;
        return Ok(None);
    }
    contents::remove(&session, base, &[writing], rows::now()).await?;
    session.execute("DELETE FROM documents WHERE key = $1", &[&rows::signed(document.key)]).await?;
    watched::leave_document(&session, id).await?;
    let removed = Removed {
        key: document.key,
        filename: document.filename,
        chunks: document.chunk_count.into(),
        vectors: document.vector_count.into(),
        sequence: writing as u64,
    };
    *locked(first) = Some(removed.clone());
    session.commit().await?;
    Ok(Some(removed))
}

/// Returns the document in its current state.
async fn shown(session: Session, base: &BaseName, id: DocumentId) -> Result<Option<Document>, Error> {
    let at = At::find(&session, base, id, None).await?;
    session.leave().await?;
    Ok(at.map(|at| at.document))
}

async fn left(session: Session) -> Result<Option<Document>, Error> {
    session.leave().await?;
    Ok(None)
}

/// A document row locked until the end of the transaction.
struct At {
    base: i64,
    document: Document,
    writing: i64,
}

/// New description of a document.
struct Said<'a> {
    metadata: &'a Map<String, Value>,
    origin: Origin,
    path: Option<&'a str>,
    filename: &'a str,
}

impl At {
    /// Finds and locks the document, and locks the new path, if any.
    async fn find(session: &Session, name: &BaseName, id: DocumentId, path: Option<&str>) -> Result<Option<At>, Error> {
        let Some(base) = rows::base(session, name).await? else { return Ok(None) };
        if path.is_some() {
            taken::lock(session, base, None, path).await?;
        }
        let sql = format!(
            "SELECT {} FROM {} WHERE d.base = $1 AND d.id = $2 FOR UPDATE OF d",
            rows::DOCUMENT,
            rows::DOCUMENTS
        );
        let Some(row) = session.maybe(&sql, &[&base, &id.0]).await? else { return Ok(None) };
        let (document, writing) = rows::document(&row)?;
        Ok(Some(At { base, document, writing }))
    }

    /// Returns the path unless another document of the base has it.
    async fn free<'p>(&self, session: &Session, path: Option<&'p str>) -> Result<Option<&'p str>, Error> {
        let Some(path) = path else { return Ok(None) };
        let taken = taken::at_path(session, self.base, path, rows::signed(self.document.key)).await?;
        Ok(Some(path).filter(|_| taken.is_none()))
    }
}
