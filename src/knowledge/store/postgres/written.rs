//! Inserts the rows of a document.

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::copy::{self, Line};
use super::ready::Ready;
use super::rows::Word;
use super::session::Session;
use super::taken::Before;
use super::{models, postings, rows, sums};
use crate::knowledge::document::{DocumentId, Origin};
use crate::knowledge::store::Error;

/// Writes a document after the uniqueness checks. Returns its key, its ID and its content version.
pub(super) async fn write(
    session: &Session,
    base: i64,
    ready: &Ready,
    before: &Option<Before>,
    origin: Origin,
    now: i64,
) -> Result<(i64, DocumentId, i64), Error> {
    let writing: i64 = rows::get(&session.row("SELECT nextval('writing')", &[]).await?, 0)?;
    let model = models::known(session, &ready.new.model, ready.dimensions).await?;
    let (key, id) = write_row(session, base, ready, before, origin, writing, model.key, now).await?;
    write_pages(session, ready, writing).await?;
    write_chunks(session, ready, writing).await?;
    write_vectors(session, ready, base, writing, model.key).await?;
    postings::write(session, base, writing, &ready.words).await?;
    sums::add(session, base, &ready.added()?, now).await?;
    Ok((key, id, writing))
}

/// Writes the document row and returns its key and ID.
#[allow(clippy::too_many_arguments, reason = "each is a column")]
async fn write_row(
    session: &Session,
    base: i64,
    ready: &Ready,
    before: &Option<Before>,
    origin: Origin,
    writing: i64,
    model: i32,
    now: i64,
) -> Result<(i64, DocumentId), Error> {
    const COLUMNS: &str = "filename, path, origin, title, format, size_bytes, sha256, updated, status, method, metadata, facets, \
         model, page_count, chunk_count, vector_count, length, languages, warning, writing";
    const VALUES: &str = "$2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21";
    let new = &ready.new;
    let path = new.path.as_deref().map(rows::text);
    let title = new.title.as_deref().map(rows::text);
    let warning = new.warning.as_deref().map(rows::text);
    let (added, date_added) = (ready.added()?, ready.date_added.unwrap_or(now));
    let (filename, format, method) = (rows::text(&new.filename), rows::text(&new.format), rows::text(&new.method));
    let (pages, chunks) = (rows::count(new.pages.len())?, rows::count(new.chunks.len())?);
    let vectors = rows::count(ready.vector_count())?;
    let (origin, status, sha256) = (origin.word(), new.status.word(), new.sha256.as_slice());
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

async fn write_pages(session: &Session, ready: &Ready, writing: i64) -> Result<(), Error> {
    let columns = [("writing", Type::INT8), ("number", Type::INT4), ("label", Type::TEXT), ("text", Type::TEXT)];
    let lines = ready.new.pages.iter().map(|page| -> Line<'_> {
        let label = page.label.as_deref().map(rows::text);
        vec![Box::new(writing), Box::new(page.number.cast_signed()), Box::new(label), Box::new(rows::text(&page.text))]
    });
    copy::rows(session, "pages", &columns, lines.collect()).await
}

async fn write_chunks(session: &Session, ready: &Ready, writing: i64) -> Result<(), Error> {
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
        .map(|chunk| Ok((rows::to_json(&chunk.path)?, rows::to_json(&chunk.stretches)?)))
        .collect();
    let lines = ready.new.chunks.iter().zip(&ready.ids).zip(json?).enumerate().map(
        |(ordinal, ((chunk, id), (path, stretches)))| -> Line<'_> {
            let (first, last) = chunk.pages;
            vec![
                Box::new(writing),
                Box::new(ordinal as i32),
                Box::new(id.0),
                Box::new(first.cast_signed()),
                Box::new(last.cast_signed()),
                Box::new(chunk.tokens.cast_signed()),
                Box::new(path),
                Box::new(rows::text(&chunk.text)),
                Box::new(stretches),
            ]
        },
    );
    copy::rows(session, "chunks", &columns, lines.collect()).await
}

async fn write_vectors(session: &Session, ready: &Ready, base: i64, writing: i64, model: i32) -> Result<(), Error> {
    if ready.dimensions == 0 {
        return Ok(());
    }
    // The OID of the type differs between databases.
    let direction = session.prepared("SELECT direction FROM vectors LIMIT 0").await?.columns()[0].type_().clone();
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
    let lines = windows.map(|(ordinal, (place, window))| -> Line<'_> {
        vec![
            Box::new(writing),
            Box::new(ordinal as i32),
            Box::new(place as i32),
            Box::new(base),
            Box::new(model),
            Box::new(window.clone()),
        ]
    });
    copy::rows(session, "vectors", &columns, lines.collect()).await
}
