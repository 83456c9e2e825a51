//! Inserts or replaces a document with all its data in one transaction.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::change_log::{self, ChangeKind};
use super::{Store, WriterContext, checksum, import_checkpoint, rows, scalar_quantization, task_completion, tasks};
use crate::document::{ChunkId, DocumentId, NewChunk, NewDocument, Origin, PutOutcome, WrittenDocument};
use crate::store::Error;
use crate::task::TaskLink;

impl Store {
    /// Writes a document, its pages, chunks and vectors, the change record and the end of its task in one transaction.
    /// A document that [replaces](NewDocument::replaces) another keeps the old ID and date; everything else is
    /// replaced.
    ///
    /// If another document conflicts, the call writes nothing and the task continues.
    pub async fn put_document(&self, new: NewDocument, work: TaskLink) -> Result<PutOutcome, Error> {
        // Vectors are encoded before the write lock is taken.
        let encoded = tokio::task::spawn_blocking(move || EncodedDocument::of(new)).await;
        let ready = encoded.map_err(|error| Error::Internal(error.to_string()))??;
        self.write(move |transaction, pen| upsert(transaction, pen, &ready, &work)).await
    }
}

/// A document with encoded vectors.
pub(super) struct EncodedDocument {
    pub(super) new: NewDocument,
    /// Public IDs of its chunks.
    pub(super) chunk_ids: Vec<ChunkId>,
    pub(super) vectors: Vec<scalar_quantization::EncodedVectors>,
    pub(super) metadata: String,
}

/// The document to replace.
struct ReplacedDocument {
    key: u64,
    id: DocumentId,
    origin: Origin,
}

impl EncodedDocument {
    pub(super) fn of(mut new: NewDocument) -> Result<EncodedDocument, Error> {
        let encode = |chunk: &mut NewChunk| scalar_quantization::encode(&std::mem::take(&mut chunk.vectors));
        let vectors = new.chunks.iter_mut().map(encode).collect::<Result<Vec<_>, _>>()?;
        let mut dimensions = vectors.iter().filter(|some| some.windows > 0).map(|some| some.dimensions);
        let first = dimensions.next();
        if dimensions.any(|other| Some(other) != first) {
            return Err(Error::Internal("vectors of a document differ in length".to_owned()));
        }
        let metadata = rows::to_json(&new.metadata)?;
        let ids = new.chunks.iter().map(|_| ChunkId::random()).collect();
        Ok(EncodedDocument { new, chunk_ids: ids, vectors, metadata })
    }
}

fn upsert(
    connection: &Connection,
    pen: &WriterContext,
    ready: &EncodedDocument,
    work: &TaskLink,
) -> Result<PutOutcome, Error> {
    tasks::check_active_task(connection, pen, work)?;
    let now = rows::now();
    let new = &ready.new;
    let known_base = rows::base_key(connection, &new.base)?;
    let before = match new.replaces {
        Some(id) => Some(find_replaced(connection, known_base, id)?.ok_or(Error::DocumentNotFound)?),
        None => None,
    };
    if before.is_none()
        && let Some(same) = find_by_content(connection, known_base, &new.sha256)?
    {
        return Ok(PutOutcome::DuplicateContent(same));
    }
    if let Some(other) = find_by_path(connection, known_base, new.path.as_deref(), before.as_ref())? {
        return Ok(PutOutcome::PathTaken(other));
    }
    let base = rows::touch_base(connection, &new.base, now)?;
    let id = before.as_ref().map_or(new.id, |before| before.id);
    let key = match &before {
        Some(before) => delete_content(connection, before.key)?,
        None => insert_row(connection, base, id, now)?,
    };
    // A document that a user added stays a user document when a watched folder provides its next version.
    let origin = match (&before, new.origin) {
        (Some(before), Origin::Watched) => before.origin,
        (_, origin) => origin,
    };
    update_row(connection, ready, key, origin, now)?;
    insert_pages(connection, key, ready)?;
    let chunks = insert_chunks(connection, key, ready)?;
    let sequence = change_log::append(connection, pen, base, Some(key), ChangeKind::Put)?;
    import_checkpoint::record(connection, work, id, before.is_some())?;
    if let Some(path) = &new.path {
        task_completion::hide_failures(connection, base, path, None)?;
    }
    task_completion::end_task_of_write(connection, pen, work, now)?;
    Ok(PutOutcome::Written(WrittenDocument { key, id, chunks, sequence }))
}

fn find_replaced(
    connection: &Connection,
    base: Option<i64>,
    id: DocumentId,
) -> Result<Option<ReplacedDocument>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT key, id, origin FROM documents WHERE base = ?1 AND id = ?2")?;
    let read = |row: &Row<'_>| Ok(ReplacedDocument { key: row.get(0)?, id: row.get(1)?, origin: row.get(2)? });
    let found = statement.query_row((base, id), read);
    Ok(found.optional()?)
}

fn find_by_content(connection: &Connection, base: Option<i64>, sha256: &[u8; 32]) -> Result<Option<DocumentId>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM documents WHERE base = ?1 AND sha256 = ?2 ORDER BY key LIMIT 1")?;
    Ok(statement.query_row((base, sha256), |row| row.get(0)).optional()?)
}

fn find_by_path(
    connection: &Connection,
    base: Option<i64>,
    path: Option<&str>,
    before: Option<&ReplacedDocument>,
) -> Result<Option<DocumentId>, Error> {
    let own = before.map(|before| before.key);
    let mut statement =
        connection.prepare_cached("SELECT id FROM documents WHERE base = ?1 AND path = ?2 AND key IS NOT ?3")?;
    Ok(statement.query_row((base, path, own), |row| row.get(0)).optional()?)
}

/// Deletes the content to replace.
fn delete_content(connection: &Connection, key: u64) -> Result<u64, Error> {
    connection.prepare_cached("DELETE FROM chunks WHERE document = ?1")?.execute([key])?;
    connection.prepare_cached("DELETE FROM pages WHERE document = ?1")?.execute([key])?;
    Ok(key)
}

/// Inserts a row with only the permanent columns set.
pub(super) fn insert_row(connection: &Connection, base: i64, id: DocumentId, now: i64) -> Result<u64, Error> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO documents (id, base, date_added, filename, origin, format, size_bytes, sha256, updated, status, method, \
         metadata, model, page_count, chunk_count, vector_count) \
         VALUES (?1, ?2, ?3, '', 'added', '', 0, x'', 0, 'partial', '', '{}', '', 0, 0, 0) RETURNING key",
    )?;
    Ok(statement.query_row((id, base, now), |row| row.get(0))?)
}

pub(super) fn update_row(
    connection: &Connection,
    ready: &EncodedDocument,
    key: u64,
    origin: Origin,
    now: i64,
) -> Result<(), Error> {
    let new = &ready.new;
    let vectors: u32 = ready.vectors.iter().map(|encoded| encoded.windows).sum();
    let mut statement = connection.prepare_cached(
        "UPDATE documents SET filename = ?2, path = ?3, origin = ?4, title = ?5, format = ?6, size_bytes = ?7, sha256 = ?8, \
         updated = ?9, status = ?10, method = ?11, metadata = ?12, model = ?13, page_count = ?14, chunk_count = ?15, \
         vector_count = ?16, warning = ?17 WHERE key = ?1",
    )?;
    statement.execute(params![
        key,
        new.filename,
        new.path,
        origin,
        new.title,
        new.format,
        new.size_bytes,
        new.sha256,
        now,
        new.status,
        new.method,
        ready.metadata,
        new.model,
        rows::to_u32(new.pages.len(), "pages")?,
        rows::to_u32(new.chunks.len(), "chunks")?,
        vectors,
        new.warning,
    ])?;
    checksum::record_document(connection, key)
}

pub(super) fn insert_pages(connection: &Connection, document: u64, ready: &EncodedDocument) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO pages (document, number, label, text, checksum) \
             VALUES (?1, ?2, ?3, ?4, row_checksum(?1, ?2, ?3, ?4))",
    )?;
    for page in &ready.new.pages {
        statement.execute(params![document, page.number, page.label, page.text])?;
    }
    Ok(())
}

/// Returns the keys of the inserted chunks. They are consecutive, because no other transaction inserts concurrently.
pub(super) fn insert_chunks(
    connection: &Connection,
    document: u64,
    ready: &EncodedDocument,
) -> Result<std::ops::Range<u64>, Error> {
    let mut chunks = connection.prepare_cached(
        "INSERT INTO chunks (id, document, ordinal, page_first, page_last, tokens, path, text, stretches, checksum) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, row_checksum(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9))",
    )?;
    let mut vectors = connection.prepare_cached(
        "INSERT INTO vectors (chunk, dimensions, windows, codes, checksum) \
         VALUES (?1, ?2, ?3, ?4, row_checksum(?2, ?3, ?4))",
    )?;
    let mut keys = 0..0;
    let all = ready.new.chunks.iter().zip(&ready.vectors).zip(&ready.chunk_ids);
    for (ordinal, ((chunk, encoded), id)) in all.enumerate() {
        let (first, last) = chunk.pages;
        let (path, stretches) = (rows::to_json(&chunk.headings)?, rows::to_json(&chunk.spans)?);
        let key =
            chunks.insert(params![id, document, ordinal, first, last, chunk.tokens, path, chunk.text, stretches])?;
        if encoded.windows > 0 {
            vectors.execute(params![key, encoded.dimensions, encoded.windows, encoded.codes])?;
        }
        let key = u64::try_from(key).map_err(|_| Error::unreadable("chunk key"))?;
        keys = if ordinal == 0 { key..key + 1 } else { keys.start..key + 1 };
    }
    Ok(keys)
}
