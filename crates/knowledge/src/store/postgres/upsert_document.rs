//! Inserts or replaces a document with all its data in one transaction.
//!
//! Before the uniqueness checks (another document with the same content, or at the same path) the transaction locks
//! content and path, so no conflicting document can appear after the check.

use sha2::{Digest, Sha256};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::copy_in::{self, CopyRow};
use super::encoded_document::EncodedDocument;
use super::rows::StoredEnum;
use super::session::Session;
use super::{
    ORDINAL_BITS, Store, corpus_stats, delete_content, import_checkpoint, models, postings, rows, run_blocking,
    task_completion, tasks,
};
use crate::document::{DocumentId, NewDocument, Origin, PutOutcome, WrittenDocument};
use crate::store::Error;
use crate::task::TaskLink;

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
        lock_content_and_path(session, base, Some(&new.sha256), new.path.as_deref()).await?;
        let before = match new.replaces {
            Some(id) => Some(lock_replaced(session, base, id).await?.ok_or(Error::DocumentNotFound)?),
            None => None,
        };
        if before.is_none()
            && let Some(same) = find_by_content(session, base, &new.sha256).await?
        {
            // The ID is random, so an earlier attempt with a lost acknowledgement has written the document.
            let own = if same == new.id { find_earlier_attempt(session, base, new, None).await? } else { None };
            return Ok(own.map_or(PutOutcome::DuplicateContent(same), PutOutcome::Written));
        }
        if let Some(path) = &new.path
            && let Some(other) =
                find_by_path(session, base, path, before.as_ref().map_or(0, |before| before.key)).await?
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
        let (key, id, writing) = insert_document(session, base, ready, &before, origin, now).await?;
        import_checkpoint::record(session, work, id, before.is_some()).await?;
        if let Some(path) = &new.path {
            task_completion::hide_failures(session, base, path, Some(&new.filename), 0).await?;
        }
        task_completion::end_task_of_write(session, self.0.instance.id(), work, now).await?;
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

/// The document to replace.
pub(super) struct ReplacedDocument {
    key: i64,
    origin: Origin,
    content_version: i64,
}

/// Locks content and path against concurrent writers (advisory locks), so the following checks stay valid.
pub(super) async fn lock_content_and_path(
    session: &Session,
    base: i64,
    sha256: Option<&[u8; 32]>,
    path: Option<&str>,
) -> Result<(), Error> {
    let number = |kind: u8, bytes: &[u8]| {
        let mut hash = Sha256::new();
        hash.update([kind]);
        hash.update(base.to_le_bytes());
        hash.update(bytes);
        rows::hash_prefix(&hash.finalize())
    };
    let content = sha256.map(|sha256| number(1, sha256));
    let place = path.map(|path| number(2, path.as_bytes()));
    let mut numbers: Vec<i64> = content.into_iter().chain(place).collect();
    numbers.sort_unstable();
    for number in numbers {
        session.rows("SELECT pg_advisory_xact_lock($1)", &[&number]).await?;
    }
    Ok(())
}

/// Loads and locks the document to replace.
async fn lock_replaced(session: &Session, base: i64, id: DocumentId) -> Result<Option<ReplacedDocument>, Error> {
    let sql = "SELECT key, origin, writing FROM documents WHERE base = $1 AND id = $2 FOR UPDATE";
    let row = session.opt_row(sql, &[&base, &id.0]).await?;
    let read = |row| {
        Ok(ReplacedDocument {
            key: rows::get(&row, 0)?,
            origin: rows::get_enum(&row, 1)?,
            content_version: rows::get(&row, 2)?,
        })
    };
    row.map(read).transpose()
}

/// The first document of the base with this content.
async fn find_by_content(session: &Session, base: i64, sha256: &[u8; 32]) -> Result<Option<DocumentId>, Error> {
    let sql = "SELECT id FROM documents WHERE base = $1 AND sha256 = $2 ORDER BY key LIMIT 1";
    let row = session.opt_row(sql, &[&base, &sha256.as_slice()]).await?;
    row.map(|row| Ok(DocumentId(rows::get(&row, 0)?))).transpose()
}

/// Another document of the base with this path.
pub(super) async fn find_by_path(
    session: &Session,
    base: i64,
    path: &str,
    own: i64,
) -> Result<Option<DocumentId>, Error> {
    let sql = "SELECT id FROM documents WHERE base = $1 AND md5(path) = md5($2) AND path = $2 AND key <> $3";
    let row = session.opt_row(sql, &[&base, &rows::without_nul(path), &own]).await?;
    row.map(|row| Ok(DocumentId(rows::get(&row, 0)?))).transpose()
}

/// Writes a document after the uniqueness checks. Returns its key, its ID and its content version.
pub(super) async fn insert_document(
    session: &Session,
    base: i64,
    ready: &EncodedDocument,
    before: &Option<ReplacedDocument>,
    origin: Origin,
    now: i64,
) -> Result<(i64, DocumentId, i64), Error> {
    let writing: i64 = rows::get(&session.row("SELECT nextval('writing')", &[]).await?, 0)?;
    let model = models::get_or_insert(session, &ready.new.model, ready.dimensions).await?;
    let (key, id) = insert_row(session, base, ready, before, origin, writing, model.key, now).await?;
    insert_pages(session, ready, writing).await?;
    insert_chunks(session, ready, writing).await?;
    insert_vectors(session, ready, base, writing, model.key).await?;
    postings::write_postings(session, base, writing, &ready.analysis).await?;
    corpus_stats::add(session, base, &ready.stats()?, now).await?;
    Ok((key, id, writing))
}

/// Writes the document row and returns its key and ID.
#[allow(clippy::too_many_arguments, reason = "each is a column")]
async fn insert_row(
    session: &Session,
    base: i64,
    ready: &EncodedDocument,
    before: &Option<ReplacedDocument>,
    origin: Origin,
    writing: i64,
    model: i32,
    now: i64,
) -> Result<(i64, DocumentId), Error> {
    const COLUMNS: &str = "filename, path, origin, title, format, size_bytes, sha256, updated, status, method, metadata, facets, \
         model, page_count, chunk_count, vector_count, length, languages, warning, writing";
    const VALUES: &str = "$2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21";
    let new = &ready.new;
    let path = new.path.as_deref().map(rows::without_nul);
    let title = new.title.as_deref().map(rows::without_nul);
    let warning = new.warning.as_deref().map(rows::without_nul);
    let (added, date_added) = (ready.stats()?, ready.date_added.unwrap_or(now));
    let (filename, format, method) =
        (rows::without_nul(&new.filename), rows::without_nul(&new.format), rows::without_nul(&new.method));
    let (pages, chunks) = (rows::to_i32(new.pages.len())?, rows::to_i32(new.chunks.len())?);
    let vectors = rows::to_i32(ready.vector_count())?;
    let (origin, status, sha256) = (origin.stored_name(), new.status.stored_name(), new.sha256.as_slice());
    let shared: [&(dyn ToSql + Sync); 20] = [
        &filename,
        &path,
        &origin,
        &title,
        &format,
        &added.size_bytes,
        &sha256,
        &now,
        &status,
        &method,
        &ready.metadata,
        &ready.facets,
        &model,
        &pages,
        &chunks,
        &vectors,
        &added.length,
        &added.languages,
        &warning,
        &writing,
    ];
    let row = match before {
        Some(before) => {
            let sql = format!("UPDATE documents SET ({COLUMNS}) = ROW ({VALUES}) WHERE key = $1 RETURNING key, id");
            let mut given: Vec<&(dyn ToSql + Sync)> = vec![&before.key];
            given.extend(shared);
            session.row(&sql, &given).await?
        }
        None => {
            let sql = format!(
                "INSERT INTO documents (id, {COLUMNS}, base, date_added) VALUES ($1, {VALUES}, $22, $23) RETURNING key, id"
            );
            let mut given: Vec<&(dyn ToSql + Sync)> = vec![&new.id.0];
            given.extend(shared);
            given.push(&base);
            given.push(&date_added);
            session.row(&sql, &given).await?
        }
    };
    Ok((rows::get(&row, 0)?, DocumentId(rows::get::<Uuid>(&row, 1)?)))
}

async fn insert_pages(session: &Session, ready: &EncodedDocument, writing: i64) -> Result<(), Error> {
    let columns = [("writing", Type::INT8), ("number", Type::INT4), ("label", Type::TEXT), ("text", Type::TEXT)];
    let lines = ready.new.pages.iter().map(|page| -> CopyRow<'_> {
        let label = page.label.as_deref().map(rows::without_nul);
        vec![
            Box::new(writing),
            Box::new(page.number.cast_signed()),
            Box::new(label),
            Box::new(rows::without_nul(&page.text)),
        ]
    });
    copy_in::copy_rows(session, "pages", &columns, lines.collect()).await
}

async fn insert_chunks(session: &Session, ready: &EncodedDocument, writing: i64) -> Result<(), Error> {
    let columns = [
        ("writing", Type::INT8),
        ("ordinal", Type::INT4),
        ("id", Type::UUID),
        ("page_first", Type::INT4),
        ("page_last", Type::INT4),
        ("tokens", Type::INT4),
        ("path", Type::TEXT),
        ("text", Type::TEXT),
        ("stretches", Type::TEXT),
    ];
    let json: Result<Vec<(String, String)>, Error> = ready
        .new
        .chunks
        .iter()
        .map(|chunk| Ok((rows::to_json(&chunk.headings)?, rows::to_json(&chunk.spans)?)))
        .collect();
    let lines = ready.new.chunks.iter().zip(&ready.chunk_ids).zip(json?).enumerate().map(
        |(ordinal, ((chunk, id), (path, stretches)))| -> CopyRow<'_> {
            let (first, last) = chunk.pages;
            vec![
                Box::new(writing),
                Box::new(ordinal as i32),
                Box::new(id.0),
                Box::new(first.cast_signed()),
                Box::new(last.cast_signed()),
                Box::new(chunk.tokens.cast_signed()),
                Box::new(path),
                Box::new(rows::without_nul(&chunk.text)),
                Box::new(stretches),
            ]
        },
    );
    copy_in::copy_rows(session, "chunks", &columns, lines.collect()).await
}

async fn insert_vectors(
    session: &Session,
    ready: &EncodedDocument,
    base: i64,
    writing: i64,
    model: i32,
) -> Result<(), Error> {
    if ready.dimensions == 0 {
        return Ok(());
    }
    // The OID of the type differs between databases.
    let direction = session.prepare("SELECT direction FROM vectors LIMIT 0").await?.columns()[0].type_().clone();
    let columns = [
        ("writing", Type::INT8),
        ("ordinal", Type::INT4),
        ("place", Type::INT4),
        ("base", Type::INT8),
        ("model", Type::INT4),
        ("direction", direction),
    ];
    let windows = ready.vectors.iter().enumerate();
    let windows =
        windows.flat_map(|(ordinal, windows)| windows.iter().enumerate().map(move |window| (ordinal, window)));
    let lines = windows.map(|(ordinal, (place, window))| -> CopyRow<'_> {
        vec![
            Box::new(writing),
            Box::new(ordinal as i32),
            Box::new(place as i32),
            Box::new(base),
            Box::new(model),
            Box::new(window.clone()),
        ]
    });
    copy_in::copy_rows(session, "vectors", &columns, lines.collect()).await
}
