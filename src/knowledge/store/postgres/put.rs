//! Writes a document with all that belongs to it, or nothing.

use corbie_index::{Chunk, apart};
use pgvector::HalfVector;
use sha2::{Digest, Sha256};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::copy::{self, Line};
use super::rows::Word;
use super::session::Session;
use super::sums::Added;
use super::{KEYS, Store, aside, contents, imported, models, postings, rows, sums, tasks};
use crate::knowledge::document::{ChunkId, DocumentId, NewChunk, NewDocument, Origin, Put, Written};
use crate::knowledge::filter;
use crate::knowledge::named::Named;
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
        lock(session, base, Some(&new.sha256), new.path.as_deref()).await?;
        let before = match new.replaces {
            Some(id) => Some(before(session, base, id).await?.ok_or(Error::DocumentGone)?),
            None => None,
        };
        if before.is_none()
            && let Some(same) = same_content(session, base, &new.sha256).await?
        {
            return Ok(Put::Same(same));
        }
        if let Some(path) = &new.path
            && let Some(other) = at_path(session, base, path, before.as_ref().map_or(0, |before| before.key)).await?
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
        let (key, id, writing) = write(session, base, ready, &before, origin, now).await?;
        imported::note(session, work, id, before.is_some()).await?;
        tasks::end_with(session, self.0.instance.id(), work, now).await?;
        let first = (writing as u64) << KEYS;
        let chunks = first..first + new.chunks.len() as u64;
        Ok(Put::Written(Written { key: key as u64, id, chunks, sequence: writing as u64 }))
    }
}

/// A document with its words and vectors as they are written.
pub(super) struct Ready {
    pub(super) new: NewDocument,
    /// What its chunks are known by.
    pub(super) ids: Vec<ChunkId>,
    /// When it was added, where that was not now.
    pub(super) date_added: Option<i64>,
    dimensions: usize,
    vectors: Vec<Vec<HalfVector>>,
    words: apart::Read,
    pub(super) metadata: String,
    facets: Vec<i64>,
}

/// The document that is replaced.
pub(super) struct Before {
    key: i64,
    origin: Origin,
    writing: i64,
}

impl Ready {
    pub(super) fn of(mut new: NewDocument) -> Result<Ready, Error> {
        if new.chunks.len() >= 1 << KEYS {
            return Err(Error::Internal(format!(
                "a document has {} chunks, and {} are kept at most",
                new.chunks.len(),
                1 << KEYS
            )));
        }
        let given: Vec<Vec<Vec<f32>>> = new.chunks.iter_mut().map(|chunk| std::mem::take(&mut chunk.vectors)).collect();
        let mut lengths = given.iter().flatten().map(Vec::len);
        let dimensions = lengths.next().unwrap_or(0);
        if lengths.any(|other| other != dimensions) {
            return Err(Error::Internal("vectors of a document differ in length".to_owned()));
        }
        if given.iter().flatten().flatten().any(|number| !number.is_finite()) {
            return Err(Error::Internal("a vector has a number that is none".to_owned()));
        }
        let vectors = given.iter().map(|windows| windows.iter().map(|window| halves(window)).collect()).collect();
        let words = read(&new.filename, new.title.as_deref(), &new.chunks);
        let facets = facets(&filter::facets(&new.format, &new.metadata));
        let metadata = rows::to_json(&new.metadata)?;
        let ids = new.chunks.iter().map(|_| ChunkId::random()).collect();
        Ok(Ready { new, ids, date_added: None, dimensions, vectors, words, metadata, facets })
    }

    fn vector_count(&self) -> usize {
        self.vectors.iter().map(Vec::len).sum()
    }

    fn added(&self) -> Result<Added, Error> {
        Ok(Added {
            chunks: self.new.chunks.len() as i64,
            vectors: self.vector_count() as i64,
            size_bytes: rows::signed(self.new.size_bytes),
            length: rows::signed(self.words.sums.length),
            languages: sums::languages(&self.words.sums),
        })
    }
}

/// A direction has no length, so that what a half cannot hold is none either.
fn halves(vector: &[f32]) -> HalfVector {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    let unit: Vec<f32> = vector.iter().map(|number| (f64::from(*number) * scale) as f32).collect();
    HalfVector::from_f32_slice(&unit)
}

/// The words of chunks that are to be written.
fn read(filename: &str, title: Option<&str>, chunks: &[NewChunk]) -> apart::Read {
    let named = Named::of(filename, title);
    let chunks = chunks.iter().enumerate().map(|(ordinal, chunk)| Chunk {
        key: ordinal as u64,
        text: chunk.text.clone(),
        context: named.context(&chunk.path),
        vectors: Vec::new(),
    });
    apart::words(&corbie_index::Document { key: 0, added: 0, facets: Vec::new(), chunks: chunks.collect() })
}

/// Facets as a column has them: a number for each.
pub(super) fn facets(facets: &[corbie_index::Facet]) -> Vec<i64> {
    let mut numbers: Vec<i64> = facets.iter().map(|facet| facet_number(&facet.key, &facet.value)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

pub(super) fn facet_number(key: &str, value: &str) -> i64 {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_le_bytes());
    hash.update(key);
    hash.update(value);
    first_number(&hash.finalize())
}

fn first_number(hash: &[u8]) -> i64 {
    hash.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

/// Has others wait who write the same, or to the same place: what is looked for next cannot come about meanwhile.
pub(super) async fn lock(
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
        first_number(&hash.finalize())
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

async fn before(session: &Session, base: i64, id: DocumentId) -> Result<Option<Before>, Error> {
    let sql = "SELECT key, origin, writing FROM documents WHERE base = $1 AND id = $2 FOR UPDATE";
    let row = session.maybe(sql, &[&base, &id.0]).await?;
    let read =
        |row| Ok(Before { key: rows::get(&row, 0)?, origin: rows::word(&row, 1)?, writing: rows::get(&row, 2)? });
    row.map(read).transpose()
}

async fn same_content(session: &Session, base: i64, sha256: &[u8; 32]) -> Result<Option<DocumentId>, Error> {
    let sql = "SELECT id FROM documents WHERE base = $1 AND sha256 = $2 ORDER BY key LIMIT 1";
    let row = session.maybe(sql, &[&base, &sha256.as_slice()]).await?;
    row.map(|row| Ok(DocumentId(rows::get(&row, 0)?))).transpose()
}

/// Another document of the base that has a path.
pub(super) async fn at_path(session: &Session, base: i64, path: &str, own: i64) -> Result<Option<DocumentId>, Error> {
    let sql = "SELECT id FROM documents WHERE base = $1 AND md5(path) = md5($2) AND path = $2 AND key <> $3";
    let row = session.maybe(sql, &[&base, &rows::text(path), &own]).await?;
    row.map(|row| Ok(DocumentId(rows::get(&row, 0)?))).transpose()
}

/// Writes a document that nothing is in the way of; its key, its id, and the number of what it says.
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

/// The row of the document itself; its key and its id.
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
    let shared: [&(dyn tokio_postgres::types::ToSql + Sync); 20] = [
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
            let mut given: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![&before.key];
            given.extend(shared);
            session.row(&sql, &given).await?
        }
        None => {
            let sql = format!(
                "INSERT INTO documents (id, {COLUMNS}, base, date_added) VALUES ($1, {VALUES}, $22, $23) RETURNING key, id"
            );
            let mut given: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![&new.id.0];
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
    // Which number the type has is not the same in every database.
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
