//! Inserts the rows of a document.

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::conflicts::ReplacedDocument;
use super::copy_in::{self, CopyRow};
use super::encoded_document::EncodedDocument;
use super::rows::StoredEnum;
use super::session::Session;
use super::{corpus_stats, models, postings, rows};
use crate::knowledge::document::{DocumentId, Origin};
use crate::knowledge::store::Error;

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
