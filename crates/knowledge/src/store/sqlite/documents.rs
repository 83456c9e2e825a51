//! Lookup, metadata update and removal of single documents, and totals of a base.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Params, params};
use serde_json::{Map, Value};

use super::change_log::{self, ChangeKind};
use super::{Store, WriterContext, checksum, chunks, clear, rows, schema, task_completion, tasks, watched_files};
use crate::document::{BaseName, Claim, DocumentId, DocumentRecord, Origin, RemovedDocument, Status, Totals};
use crate::store::Error;
use crate::task::TaskLink;

impl Store {
    pub async fn document(&self, base: &BaseName, id: DocumentId) -> Result<Option<DocumentRecord>, Error> {
        let base = base.clone();
        self.read(move |transaction| find_document(transaction, "d.id = ?2", (base, id))).await
    }

    /// Returns the document with identical content (same SHA-256). Returns the first one if there are several. A damaged
    /// document has the status `partial`, so that the file is read again and replaces it.
    pub async fn document_by_content(
        &self,
        base: &BaseName,
        sha256: [u8; 32],
    ) -> Result<Option<DocumentRecord>, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let Some(mut document) = find_document(transaction, "d.sha256 = ?2 ORDER BY d.key", (base, sha256))? else {
                return Ok(None);
            };
            if !checksum::is_intact(transaction, document.key)? {
                document.status = Status::Partial;
            }
            Ok(Some(document))
        })
        .await
    }

    pub async fn document_by_path(&self, base: &BaseName, path: &str) -> Result<Option<DocumentRecord>, Error> {
        let (base, path) = (base.clone(), path.to_owned());
        self.read(move |transaction| find_document(transaction, "d.path = ?2", (base, path))).await
    }

    /// Updates the metadata of a document, and its path if there is a new one. Returns None if the document does not
    /// exist; the task then continues. A path that belongs to another document is not taken over.
    pub async fn update_metadata(
        &self,
        base: &BaseName,
        id: DocumentId,
        metadata: Map<String, Value>,
        path: Option<String>,
        work: TaskLink,
    ) -> Result<Option<DocumentRecord>, Error> {
        let base = base.clone();
        self.write(move |transaction, pen| {
            write_metadata(transaction, pen, &base, id, &metadata, path.as_deref(), &work)
        })
        .await
    }

    /// Turns a document of a watched folder into a user document because a user added the same file. It then survives
    /// the removal of the watched file. Returns None if the document does not exist; the task then continues. A path
    /// that belongs to another document is not taken over.
    pub async fn claim_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        claim: Claim,
        work: TaskLink,
    ) -> Result<Option<DocumentRecord>, Error> {
        let base = base.clone();
        self.write(move |transaction, pen| self::claim(transaction, pen, &base, id, &claim, &work)).await
    }

    /// Removes a document with all its data and frees the space. Returns None if it does not exist.
    pub async fn remove_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<RemovedDocument>, Error> {
        self.remove_where(base, id, None).await
    }

    /// Removes a document of a watched folder, but only if it is still at this path: the file may have been found
    /// elsewhere in the meantime, or a user may have added the document.
    pub async fn remove_watched_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        path: &str,
    ) -> Result<Option<RemovedDocument>, Error> {
        self.remove_where(base, id, Some(path.to_owned())).await
    }

    async fn remove_where(
        &self,
        base: &BaseName,
        id: DocumentId,
        path: Option<String>,
    ) -> Result<Option<RemovedDocument>, Error> {
        let (base, pen, patience) = (base.clone(), self.writer_context(), self.0.options.busy_timeout);
        let work = move |connection: &mut Connection| {
            let removed = super::writer::transact(connection, |transaction| {
                remove(transaction, &pen, &base, id, path.as_deref())
            })?;
            if removed.is_some() {
                clear::free_space(connection, patience);
            }
            Ok(removed)
        };
        self.0.writer.run(work).await
    }

    /// Totals of a base.
    pub async fn totals(&self, base: &BaseName) -> Result<Totals, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let Some(key) = rows::base_key(transaction, &base)? else {
                return Ok(Totals { last_updated: schema::created(transaction)?, ..Totals::default() });
            };
            let mut statement = transaction.prepare_cached(
                "SELECT count(*), ifnull(sum(chunk_count), 0), ifnull(sum(vector_count), 0), ifnull(sum(size_bytes), 0), \
                 (SELECT updated FROM bases WHERE key = ?1) FROM documents WHERE base = ?1",
            )?;
            let totals = statement.query_row([key], |row| {
                Ok(Totals {
                    documents: row.get(0)?,
                    chunks: row.get(1)?,
                    vectors: row.get(2)?,
                    size_bytes: row.get(3)?,
                    last_updated: row.get(4)?,
                })
            })?;
            Ok(totals)
        })
        .await
    }

    /// All bases that were ever written to, sorted by name.
    pub async fn bases(&self) -> Result<Vec<BaseName>, Error> {
        self.read(|transaction| {
            let mut statement = transaction.prepare_cached("SELECT name FROM bases ORDER BY name")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// The first document of the base `?1` that matches a condition.
pub(super) fn find_document(
    connection: &Connection,
    condition: &str,
    parameters: impl Params,
) -> Result<Option<DocumentRecord>, Error> {
    let columns = rows::DOCUMENT_COLUMNS;
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {columns} FROM documents AS d JOIN bases AS b ON b.key = d.base WHERE b.name = ?1 AND {condition} LIMIT 1"
    ))?;
    Ok(statement.query_row(parameters, rows::read_document).optional()?)
}

fn write_metadata(
    connection: &Connection,
    pen: &WriterContext,
    base: &BaseName,
    id: DocumentId,
    metadata: &Map<String, Value>,
    path: Option<&str>,
    work: &TaskLink,
) -> Result<Option<DocumentRecord>, Error> {
    tasks::check_active_task(connection, pen, work)?;
    let Some(before) = find_document(connection, "d.id = ?2", (base, id))? else { return Ok(None) };
    let now = rows::now();
    let base_key = rows::touch_base(connection, base, now)?;
    let mut statement = connection.prepare_cached(
        "UPDATE documents SET metadata = ?2, updated = ?3, path = ifnull(?4, path), filename = ifnull(?5, filename) \
         WHERE key = ?1",
    )?;
    let path = available_path(connection, base_key, before.key, path)?;
    let filename = path.and_then(|path| Path::new(path).file_name()).map(|name| name.to_string_lossy());
    statement.execute(params![before.key, rows::to_json(metadata)?, now, path, filename])?;
    checksum::record_document(connection, before.key)?;
    record_metadata_change(connection, pen, base_key, &before, filename.as_deref())?;
    task_completion::end_task_of_write(connection, pen, work, now)?;
    find_document(connection, "d.id = ?2", (base, id))
}

fn claim(
    connection: &Connection,
    pen: &WriterContext,
    base: &BaseName,
    id: DocumentId,
    claim: &Claim,
    work: &TaskLink,
) -> Result<Option<DocumentRecord>, Error> {
    tasks::check_active_task(connection, pen, work)?;
    let Some(before) = find_document(connection, "d.id = ?2", (base, id))? else { return Ok(None) };
    let now = rows::now();
    let base_key = rows::touch_base(connection, base, now)?;
    let path = available_path(connection, base_key, before.key, claim.path.as_deref())?;
    let mut statement = connection.prepare_cached(
        "UPDATE documents SET metadata = ?2, updated = ?3, origin = ?4, path = ?5, filename = ?6 WHERE key = ?1",
    )?;
    let metadata = rows::to_json(&claim.metadata)?;
    statement.execute(params![before.key, metadata, now, claim.origin, path, claim.filename])?;
    checksum::record_document(connection, before.key)?;
    record_metadata_change(connection, pen, base_key, &before, Some(&claim.filename))?;
    task_completion::end_task_of_write(connection, pen, work, now)?;
    find_document(connection, "d.id = ?2", (base, id))
}

/// Records a metadata change. The file name is part of the indexed text, so a new name requires new chunk keys.
fn record_metadata_change(
    connection: &Connection,
    pen: &WriterContext,
    base: i64,
    before: &DocumentRecord,
    filename: Option<&str>,
) -> Result<(), Error> {
    let kind = match filename.is_some_and(|filename| filename != before.filename) {
        true => {
            chunks::rekey(connection, before.key)?;
            ChangeKind::Put
        }
        false => ChangeKind::MetadataUpdated,
    };
    change_log::append(connection, pen, base, Some(before.key), kind)?;
    Ok(())
}

/// Returns the path unless another document of the base has it.
fn available_path<'p>(
    connection: &Connection,
    base: i64,
    own: u64,
    path: Option<&'p str>,
) -> Result<Option<&'p str>, Error> {
    let taken = "SELECT 1 FROM documents WHERE base = ?1 AND path = ?2 AND key <> ?3";
    let is_taken = connection.prepare_cached(taken)?.exists(params![base, path, own])?;
    Ok(path.filter(|_| !is_taken))
}

fn remove(
    connection: &Connection,
    pen: &WriterContext,
    base: &BaseName,
    id: DocumentId,
    path: Option<&str>,
) -> Result<Option<RemovedDocument>, Error> {
    let document = find_document(connection, "d.id = ?2", (base, id))?;
    let is_meant = |document: &DocumentRecord| {
        path.is_none() || (document.path.as_deref() == path && document.origin == Origin::Watched)
    };
    let Some(document) = document.filter(is_meant) else { return Ok(None) };
    let base = rows::touch_base(connection, base, rows::now())?;
    connection.prepare_cached("DELETE FROM documents WHERE key = ?1")?.execute([document.key])?;
    watched_files::clear_document(connection, id)?;
    let sequence = change_log::append(connection, pen, base, Some(document.key), ChangeKind::Removed)?;
    Ok(Some(RemovedDocument {
        key: document.key,
        filename: document.filename,
        chunks: document.chunk_count.into(),
        vectors: document.vector_count.into(),
        sequence,
    }))
}
