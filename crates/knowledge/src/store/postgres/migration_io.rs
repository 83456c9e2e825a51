//! Migration I/O: reads and writes complete records with their public IDs.

use pgvector::HalfVector;
use tokio_postgres::Row;
use uuid::Uuid;

use super::encoded_document::EncodedDocument;
use super::rows::StoredEnum;
use super::session::{Session, SqlParams};
use super::{Store, corpus_stats, instance, rows, run_blocking, task_completion, upsert_document, watched_files};
use crate::document::{ChunkId, DocumentId, DocumentPage, NewChunk};
use crate::store::migration::{BaseRecord, FinishedTask, FolderRecord, FullChunk, FullDocument, MigratedDocument};
use crate::store::{Error, FileId};
use crate::task::TaskId;

/// Number of chunks per statement, so that none takes long.
const CHUNKS_PER_QUERY: i32 = 1000;

impl Store {
    /// Hosts of other live instances.
    pub(in crate::store) async fn other_hosts(&self) -> Result<Vec<String>, Error> {
        let lives = instance::DEAD_AFTER;
        let sql = format!("SELECT DISTINCT host FROM instances WHERE name <> $1 AND beat > now() - {lives} ORDER BY 1");
        self.query_with_retry(&sql, &[&self.instance_id()]).await?.iter().map(|row| rows::get(row, 0)).collect()
    }

    pub(in crate::store) async fn document_ids(&self) -> Result<Vec<DocumentId>, Error> {
        let rows = self.query_with_retry("SELECT id FROM documents ORDER BY key", &[]).await?;
        rows.iter().map(|row| rows::get(row, 0).map(DocumentId)).collect()
    }

    pub(in crate::store) async fn full_document(&self, id: DocumentId) -> Result<Option<FullDocument>, Error> {
        let session = self.begin_read().await?;
        let whole = full_document(&session, id).await?;
        session.rollback().await?;
        Ok(whole)
    }

    pub(in crate::store) async fn insert_migrated(&self, brought: MigratedDocument) -> Result<(), Error> {
        let MigratedDocument { new, chunk_ids: ids, metadata, duplicates: copies, date_added, updated } = brought;
        let ready = run_blocking(move || {
            let mut ready = EncodedDocument::of(new)?;
            (ready.chunk_ids, ready.metadata, ready.date_added) = (ids, metadata, Some(date_added));
            Ok::<_, Error>(ready)
        });
        let ready = ready.await??;
        let base = rows::get_or_create_base(&self.autocommit().await?, &ready.new.base).await?;
        let session = self.begin_write().await?;
        let (key, _, _) =
            upsert_document::insert_document(&session, base, &ready, &None, ready.new.origin, updated).await?;
        let sql = "INSERT INTO copies (document, path) SELECT $1::bigint, unnest($2::text[])";
        let copies: Vec<_> = copies.iter().map(|path| rows::without_nul(path)).collect();
        session.execute(sql, &[&key, &copies]).await?;
        session.commit().await?;
        self.0.heartbeat.changes().notify_documents_changed();
        Ok(())
    }

    pub(in crate::store) async fn base_records(&self) -> Result<Vec<BaseRecord>, Error> {
        let sql = "SELECT b.name, b.created, coalesce(max(s.updated), b.created) FROM bases AS b \
                   LEFT JOIN sums AS s ON s.base = b.key GROUP BY b.key ORDER BY b.key";
        let base = |row: &Row| {
            Ok(BaseRecord {
                name: rows::get_base_name(row, 0)?,
                created: rows::get(row, 1)?,
                updated: rows::get(row, 2)?,
            })
        };
        self.query_with_retry(sql, &[]).await?.iter().map(base).collect()
    }

    /// The statistics rows hold the time of the last change of a base.
    pub(in crate::store) async fn upsert_base(&self, base: BaseRecord) -> Result<(), Error> {
        let session = self.begin_write().await?;
        let make = "INSERT INTO bases (name, created) VALUES ($1, $2) \
                    ON CONFLICT (name) DO UPDATE SET created = excluded.created RETURNING key";
        let key: i64 = rows::get(&session.row(make, &[&base.name.as_str(), &base.created]).await?, 0)?;
        let last = session.row("SELECT coalesce(max(updated), 0) FROM sums WHERE base = $1", &[&key]).await?;
        if rows::get::<i64>(&last, 0)? < base.updated {
            corpus_stats::touch(&session, key, base.updated).await?;
        }
        session.commit().await
    }

    pub(in crate::store) async fn finished_tasks(&self, after: i64, most: u32) -> Result<Vec<FinishedTask>, Error> {
        let sql = "SELECT t.key, t.id, b.name, t.owner, t.kind, t.request, t.document, t.filename, t.format, t.size_bytes, \
                   t.state, t.created, t.started, t.ended, t.updated, t.attempts, t.result, t.error_code, t.error_message \
                   FROM tasks AS t JOIN bases AS b ON b.key = t.base \
                   WHERE t.key > $1 AND t.state NOT IN ('queued', 'running') ORDER BY t.key LIMIT $2";
        self.query_with_retry(sql, &[&after, &i64::from(most)]).await?.iter().map(read_finished_task).collect()
    }

    pub(in crate::store) async fn insert_finished_tasks(&self, tasks: Vec<FinishedTask>) -> Result<(), Error> {
        let session = self.begin_write().await?;
        for task in &tasks {
            insert_finished_task(&session, task).await?;
        }
        session.commit().await
    }

    pub(in crate::store) async fn watched_folders(&self) -> Result<Vec<FolderRecord>, Error> {
        let folder = |row: &Row| {
            let place =
                FileId { device: watched_files::get_unsigned(row, 1)?, inode: watched_files::get_unsigned(row, 2)? };
            Ok((rows::get(row, 0)?, place))
        };
        self.query_with_retry("SELECT path, device, inode FROM watched_folders", &[])
            .await?
            .iter()
            .map(folder)
            .collect()
    }
}

async fn full_document(session: &Session, id: DocumentId) -> Result<Option<FullDocument>, Error> {
    let sql = format!("SELECT {} FROM {} WHERE d.id = $1", rows::DOCUMENT_COLUMNS, rows::DOCUMENT_TABLES);
    let Some(row) = session.opt_row(&sql, &[&id.0]).await? else { return Ok(None) };
    let (document, writing) = rows::read_document(&row)?;
    // Column 14 is the metadata.
    let metadata = rows::get(&row, 14)?;
    let key = rows::to_i64(document.key);
    let sql = "SELECT path FROM copies WHERE document = $1 ORDER BY path COLLATE \"C\"";
    let copies = session.rows(sql, &[&key]).await?;
    let copies = copies.iter().map(|row| rows::get(row, 0)).collect::<Result<_, _>>()?;
    let sql = "SELECT number, label, text FROM pages WHERE writing = $1 ORDER BY number";
    let pages = session.rows(sql, &[&writing]).await?;
    let page = |row: &Row| {
        Ok(DocumentPage { number: rows::get_u32(row, 0)?, label: rows::get(row, 1)?, text: rows::get(row, 2)? })
    };
    let pages = pages.iter().map(page).collect::<Result<_, Error>>()?;
    let mut chunks = Vec::new();
    for first in (0..rows::to_i32(document.chunk_count as usize)?).step_by(CHUNKS_PER_QUERY as usize) {
        chunks.extend(chunk_range(session, writing, first).await?);
    }
    Ok(Some(FullDocument { document, metadata, duplicates: copies, pages, chunks }))
}

/// A range of chunks of a document, with their vectors.
async fn chunk_range(session: &Session, writing: i64, first: i32) -> Result<Vec<FullChunk>, Error> {
    let given: SqlParams<'_> = &[&writing, &first, &(first + CHUNKS_PER_QUERY)];
    let sql = "SELECT ordinal, id, page_first, page_last, tokens, path, text, stretches FROM chunks \
               WHERE writing = $1 AND ordinal >= $2 AND ordinal < $3 ORDER BY ordinal";
    let chunk = |row: &Row| {
        let chunk = NewChunk {
            pages: (rows::get_u32(row, 2)?, rows::get_u32(row, 3)?),
            tokens: rows::get_u32(row, 4)?,
            headings: rows::get_json(row, 5)?,
            text: rows::get(row, 6)?,
            spans: rows::get_json(row, 7)?,
            vectors: Vec::new(),
        };
        Ok((rows::get(row, 0)?, FullChunk { id: ChunkId(rows::get(row, 1)?), chunk }))
    };
    let chunks = session.rows(sql, given).await?;
    let mut chunks = chunks.iter().map(chunk).collect::<Result<Vec<(i32, FullChunk)>, Error>>()?;
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

fn read_finished_task(row: &Row) -> Result<FinishedTask, Error> {
    Ok(FinishedTask {
        key: rows::get(row, 0)?,
        id: TaskId(rows::get(row, 1)?),
        base: rows::get_base_name(row, 2)?,
        owner: rows::get(row, 3)?,
        kind: rows::get_enum(row, 4)?,
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

async fn insert_finished_task(session: &Session, task: &FinishedTask) -> Result<(), Error> {
    let base = rows::get_or_create_base(session, &task.base).await?;
    let sql = "INSERT INTO tasks (id, base, owner, kind, request, document, filename, format, size_bytes, state, created, \
               started, ended, updated, attempts, result, result_brief, error_code, error_message) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) \
               ON CONFLICT (id) DO NOTHING";
    let text = |text: &Option<String>| text.as_deref().map(|text| rows::without_nul(text).into_owned());
    let brief = task.result.as_deref().map(task_completion::brief_json).transpose()?;
    let given: SqlParams<'_> = &[
        &task.id.0,
        &base,
        &rows::without_nul(&task.owner),
        &task.kind.stored_name(),
        &rows::without_nul(&task.request),
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
