//! Migration I/O: reads and writes complete records with their public IDs.

use pgvector::HalfVector;
use tokio_postgres::Row;
use uuid::Uuid;

use super::ready::Ready;
use super::rows::Word;
use super::session::{Given, Session};
use super::{Store, aside, instance, rows, sums, task_end, watched, written};
use crate::knowledge::document::{ChunkId, DocumentId, NewChunk, Page};
use crate::knowledge::store::moved::{Base, Brought, EndedTask, Folder, Whole, WholeChunk};
use crate::knowledge::store::{Error, Place};
use crate::knowledge::task::TaskId;

/// Number of chunks per statement, so that none takes long.
const PIECE: i32 = 1000;

impl Store {
    /// Hosts of other live instances.
    pub(in crate::knowledge::store) async fn others(&self) -> Result<Vec<String>, Error> {
        let lives = instance::LIVES;
        let sql = format!("SELECT DISTINCT host FROM instances WHERE name <> $1 AND beat > now() - {lives} ORDER BY 1");
        self.ask(&sql, &[&self.me()]).await?.iter().map(|row| rows::get(row, 0)).collect()
    }

    pub(in crate::knowledge::store) async fn document_ids(&self) -> Result<Vec<DocumentId>, Error> {
        let rows = self.ask("SELECT id FROM documents ORDER BY key", &[]).await?;
        rows.iter().map(|row| rows::get(row, 0).map(DocumentId)).collect()
    }

    pub(in crate::knowledge::store) async fn whole(&self, id: DocumentId) -> Result<Option<Whole>, Error> {
        let session = self.reading().await?;
        let whole = whole(&session, id).await?;
        session.leave().await?;
        Ok(whole)
    }

    pub(in crate::knowledge::store) async fn bring(&self, brought: Brought) -> Result<(), Error> {
        let Brought { new, ids, metadata, copies, date_added, updated } = brought;
        let ready = aside(move || {
            let mut ready = Ready::of(new)?;
            (ready.ids, ready.metadata, ready.date_added) = (ids, metadata, Some(date_added));
            Ok::<_, Error>(ready)
        });
        let ready = ready.await??;
        let base = rows::known_base(&self.plain().await?, &ready.new.base).await?;
        let session = self.writing().await?;
        let (key, _, _) = written::write(&session, base, &ready, &None, ready.new.origin, updated).await?;
        let sql = "INSERT INTO copies (document, path) SELECT $1::bigint, unnest($2::text[])";
        let copies: Vec<_> = copies.iter().map(|path| rows::text(path)).collect();
        session.execute(sql, &[&key, &copies]).await?;
        session.commit().await?;
        self.0.pulse.tell_documents();
        Ok(())
    }

    pub(in crate::knowledge::store) async fn told_bases(&self) -> Result<Vec<Base>, Error> {
        let sql = "SELECT b.name, b.created, coalesce(max(s.updated), b.created) FROM bases AS b \
                   LEFT JOIN sums AS s ON s.base = b.key GROUP BY b.key ORDER BY b.key";
        let base = |row: &Row| {
            Ok(Base { name: rows::base_name(row, 0)?, created: rows::get(row, 1)?, updated: rows::get(row, 2)? })
        };
        self.ask(sql, &[]).await?.iter().map(base).collect()
    }

    /// The statistics rows hold the time of the last change of a base.
    pub(in crate::knowledge::store) async fn bring_base(&self, base: Base) -> Result<(), Error> {
        let session = self.writing().await?;
        let make = "INSERT INTO bases (name, created) VALUES ($1, $2) \
                    ON CONFLICT (name) DO UPDATE SET created = excluded.created RETURNING key";
        let key: i64 = rows::get(&session.row(make, &[&base.name.as_str(), &base.created]).await?, 0)?;
        let last = session.row("SELECT coalesce(max(updated), 0) FROM sums WHERE base = $1", &[&key]).await?;
        if rows::get::<i64>(&last, 0)? < base.updated {
            sums::touch(&session, key, base.updated).await?;
        }
        session.commit().await
    }

    pub(in crate::knowledge::store) async fn ended_tasks(
        &self,
        after: i64,
        most: u32,
    ) -> Result<Vec<EndedTask>, Error> {
        let sql = "SELECT t.key, t.id, b.name, t.owner, t.kind, t.request, t.document, t.filename, t.format, t.size_bytes, \
                   t.state, t.created, t.started, t.ended, t.updated, t.attempts, t.result, t.error_code, t.error_message \
                   FROM tasks AS t JOIN bases AS b ON b.key = t.base \
                   WHERE t.key > $1 AND t.state NOT IN ('queued', 'running') ORDER BY t.key LIMIT $2";
        self.ask(sql, &[&after, &i64::from(most)]).await?.iter().map(task).collect()
    }

    pub(in crate::knowledge::store) async fn bring_tasks(&self, tasks: Vec<EndedTask>) -> Result<(), Error> {
        let session = self.writing().await?;
        for task in &tasks {
            bring_task(&session, task).await?;
        }
        session.commit().await
    }

    pub(in crate::knowledge::store) async fn watched_folders(&self) -> Result<Vec<Folder>, Error> {
        let folder = |row: &Row| {
            let place = Place { device: watched::unsigned(row, 1)?, inode: watched::unsigned(row, 2)? };
            Ok((rows::get(row, 0)?, place))
        };
        self.ask("SELECT path, device, inode FROM watched_folders", &[]).await?.iter().map(folder).collect()
    }
}

async fn whole(session: &Session, id: DocumentId) -> Result<Option<Whole>, Error> {
    let sql = format!("SELECT {} FROM {} WHERE d.id = $1", rows::DOCUMENT, rows::DOCUMENTS);
    let Some(row) = session.maybe(&sql, &[&id.0]).await? else { return Ok(None) };
    let (document, writing) = rows::document(&row)?;
    // Column 14 is the metadata.
    let metadata = rows::get(&row, 14)?;
    let key = rows::signed(document.key);
    let sql = "SELECT path FROM copies WHERE document = $1 ORDER BY path COLLATE \"C\"";
    let copies = session.rows(sql, &[&key]).await?;
    let copies = copies.iter().map(|row| rows::get(row, 0)).collect::<Result<_, _>>()?;
    let sql = "SELECT number, label, text FROM pages WHERE writing = $1 ORDER BY number";
    let pages = session.rows(sql, &[&writing]).await?;
    let page =
        |row: &Row| Ok(Page { number: rows::small(row, 0)?, label: rows::get(row, 1)?, text: rows::get(row, 2)? });
    let pages = pages.iter().map(page).collect::<Result<_, Error>>()?;
    let mut chunks = Vec::new();
    for first in (0..rows::count(document.chunk_count as usize)?).step_by(PIECE as usize) {
        chunks.extend(some_chunks(session, writing, first).await?);
    }
    Ok(Some(Whole { document, metadata, copies, pages, chunks }))
}

/// A range of chunks of a document, with their vectors.
async fn some_chunks(session: &Session, writing: i64, first: i32) -> Result<Vec<WholeChunk>, Error> {
    let given: Given<'_> = &[&writing, &first, &(first + PIECE)];
    let sql = "SELECT ordinal, id, page_first, page_last, tokens, path, text, stretches FROM chunks \
               WHERE writing = $1 AND ordinal >= $2 AND ordinal < $3 ORDER BY ordinal";
    let chunk = |row: &Row| {
        let chunk = NewChunk {
            pages: (rows::small(row, 2)?, rows::small(row, 3)?),
            tokens: rows::small(row, 4)?,
            path: rows::json(row, 5)?,
            text: rows::get(row, 6)?,
            stretches: rows::json(row, 7)?,
            vectors: Vec::new(),
        };
        Ok((rows::get(row, 0)?, WholeChunk { id: ChunkId(rows::get(row, 1)?), chunk }))
    };
    let chunks = session.rows(sql, given).await?;
    let mut chunks = chunks.iter().map(chunk).collect::<Result<Vec<(i32, WholeChunk)>, Error>>()?;
    let sql = "SELECT ordinal, direction FROM vectors WHERE writing = $1 AND ordinal >= $2 AND ordinal < $3 \
               ORDER BY ordinal, place";
    let mut places = chunks.iter_mut().peekable();
    for row in session.rows(sql, given).await? {
        let (ordinal, direction): (i32, HalfVector) = (rows::get(&row, 0)?, rows::get(&row, 1)?);
        while places.next_if(|(place, _)| *place < ordinal).is_some() {}
        let (_, whole) =
            places.peek_mut().filter(|(place, _)| *place == ordinal).ok_or_else(|| Error::unreadable("vectors"))?;
        whole.chunk.vectors.push(direction.as_slice().iter().map(|number| number.to_f32()).collect());
    }
    Ok(chunks.into_iter().map(|(_, whole)| whole).collect())
}

fn task(row: &Row) -> Result<EndedTask, Error> {
    Ok(EndedTask {
        key: rows::get(row, 0)?,
        id: TaskId(rows::get(row, 1)?),
        base: rows::base_name(row, 2)?,
        owner: rows::get(row, 3)?,
        kind: rows::word(row, 4)?,
        request: rows::get(row, 5)?,
        document: rows::get::<Option<Uuid>>(row, 6)?.map(DocumentId),
        filename: rows::get(row, 7)?,
        format: rows::get(row, 8)?,
        size_bytes: rows::get(row, 9)?,
        state: rows::get(row, 10)?,
        created: rows::get(row, 11)?,
        started: rows::get(row, 12)?,
        ended: rows::get(row, 13)?,
        updated: rows::get(row, 14)?,
        attempts: rows::get(row, 15)?,
        result: rows::get(row, 16)?,
        error_code: rows::get(row, 17)?,
        error_message: rows::get(row, 18)?,
    })
}

async fn bring_task(session: &Session, task: &EndedTask) -> Result<(), Error> {
    let base = rows::known_base(session, &task.base).await?;
    let sql = "INSERT INTO tasks (id, base, owner, kind, request, document, filename, format, size_bytes, state, created, \
               started, ended, updated, attempts, result, result_brief, error_code, error_message) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) \
               ON CONFLICT (id) DO NOTHING";
    let text = |text: &Option<String>| text.as_deref().map(|text| rows::text(text).into_owned());
    let brief = task.result.as_deref().map(task_end::brief_of).transpose()?;
    let given: Given<'_> = &[
        &task.id.0,
        &base,
        &rows::text(&task.owner),
        &task.kind.word(),
        &rows::text(&task.request),
        &task.document.map(|document| document.0),
        &text(&task.filename),
        &text(&task.format),
        &task.size_bytes,
        &task.state,
        &task.created,
        &task.started,
        &task.ended,
        &task.updated,
        &task.attempts,
        &text(&task.result),
        &brief,
        &text(&task.error_code),
        &text(&task.error_message),
    ];
    session.execute(sql, given).await?;
    Ok(())
}
