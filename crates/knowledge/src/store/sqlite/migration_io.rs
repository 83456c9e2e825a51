//! Migration I/O: reads and writes complete records with their public IDs.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::change_log::{self, ChangeKind};
use super::files::StoreFiles;
use super::upsert_document::{self, EncodedDocument};
use super::{Store, WriterContext, checksum, export_for_index, rows, watched_files};
use crate::document::{DocumentId, DocumentPage, NewChunk};
use crate::store::migration::{BaseRecord, FinishedTask, FolderRecord, FullChunk, FullDocument, MigratedDocument};
use crate::store::{Error, FileId, Options};

impl Store {
    /// Opens the store of a folder like [`Store::open`], but exclusively for as long as it is open. Fails if another
    /// process has it open.
    pub fn open_exclusive(folder: &Path, options: Options) -> Result<Store, Error> {
        let files = StoreFiles::of(folder);
        files.create_folders()?;
        let alone = files.lock_exclusive()?;
        Store::open_with(files, alone, options)
    }

    pub(in crate::store) async fn document_ids(&self) -> Result<Vec<DocumentId>, Error> {
        self.read(|transaction| {
            let mut statement = transaction.prepare_cached("SELECT id FROM documents ORDER BY key")?;
            let ids = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            Ok(ids)
        })
        .await
    }

    pub(in crate::store) async fn full_document(&self, id: DocumentId) -> Result<Option<FullDocument>, Error> {
        self.read(move |transaction| full_document(transaction, id)).await
    }

    pub(in crate::store) async fn insert_migrated(&self, brought: MigratedDocument) -> Result<(), Error> {
        let encoded = tokio::task::spawn_blocking(move || EncodedMigration::of(brought)).await;
        let moving = encoded.map_err(|error| Error::Internal(error.to_string()))??;
        self.write(move |transaction, pen| insert_migrated(transaction, pen, &moving)).await
    }

    pub(in crate::store) async fn base_records(&self) -> Result<Vec<BaseRecord>, Error> {
        self.read(|transaction| {
            let mut statement = transaction.prepare_cached(&format!(
                "SELECT name, created, updated, {} FROM bases ORDER BY key",
                checksum::BASES.intact("bases")
            ))?;
            let mut rows = statement.query([])?;
            let mut bases = Vec::new();
            while let Some(row) = rows.next()? {
                let base = BaseRecord { name: row.get(0)?, created: row.get(1)?, updated: row.get(2)? };
                if !row.get::<_, bool>(3)? {
                    return Err(Error::Corrupt(format!(
                        "the row of the base `{}` does not match its checksum",
                        base.name
                    )));
                }
                bases.push(base);
            }
            Ok(bases)
        })
        .await
    }

    pub(in crate::store) async fn upsert_base(&self, base: BaseRecord) -> Result<(), Error> {
        self.write(move |transaction, _| {
            let mut statement = transaction.prepare_cached(
                "INSERT INTO bases (name, created, updated, checksum) VALUES (?1, ?2, ?3, row_checksum(?1, ?2, ?3)) \
                 ON CONFLICT (name) DO UPDATE SET created = excluded.created, updated = excluded.updated, \
                 checksum = excluded.checksum",
            )?;
            statement.execute((base.name, base.created, base.updated))?;
            Ok(())
        })
        .await
    }

    pub(in crate::store) async fn finished_tasks(&self, after: i64, most: u32) -> Result<Vec<FinishedTask>, Error> {
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached(
                "SELECT t.key, t.id, b.name, t.owner, t.kind, t.request, t.document, t.filename, t.format, t.size_bytes, \
                 t.state, t.created, t.started, t.ended, t.updated, t.attempts, t.result, t.error_code, t.error_message \
                 FROM tasks AS t JOIN bases AS b ON b.key = t.base \
                 WHERE t.key > ?1 AND t.state NOT IN ('queued', 'running') ORDER BY t.key LIMIT ?2",
            )?;
            let tasks = statement.query_map((after, most), read_finished_task)?.collect::<Result<_, _>>()?;
            Ok(tasks)
        })
        .await
    }

    pub(in crate::store) async fn insert_finished_tasks(&self, tasks: Vec<FinishedTask>) -> Result<(), Error> {
        self.write(move |transaction, _| tasks.iter().try_for_each(|task| insert_finished_task(transaction, task)))
            .await
    }

    pub(in crate::store) async fn watched_folders(&self) -> Result<Vec<FolderRecord>, Error> {
        self.read(|transaction| {
            let mut statement =
                transaction.prepare_cached("SELECT path, device, inode FROM watched_folders ORDER BY path")?;
            let read = |row: &Row<'_>| {
                Ok((
                    row.get(0)?,
                    FileId {
                        device: watched_files::get_unsigned(row, 1)?,
                        inode: watched_files::get_unsigned(row, 2)?,
                    },
                ))
            };
            let folders = statement.query_map([], read)?.collect::<Result<_, _>>()?;
            Ok(folders)
        })
        .await
    }
}

/// A document with encoded vectors.
struct EncodedMigration {
    document: EncodedDocument,
    duplicates: Vec<String>,
    date_added: i64,
    updated: i64,
}

impl EncodedMigration {
    fn of(brought: MigratedDocument) -> Result<EncodedMigration, Error> {
        let MigratedDocument { new, chunk_ids: ids, metadata, duplicates: copies, date_added, updated } = brought;
        Ok(EncodedMigration {
            document: EncodedDocument { chunk_ids: ids, metadata, ..EncodedDocument::of(new)? },
            duplicates: copies,
            date_added,
            updated,
        })
    }
}

fn insert_migrated(connection: &Connection, pen: &WriterContext, moving: &EncodedMigration) -> Result<(), Error> {
    let new = &moving.document.new;
    let base = rows::get_or_create_base(connection, &new.base, rows::now())?;
    let key = upsert_document::insert_row(connection, base, new.id, moving.date_added)?;
    upsert_document::update_row(connection, &moving.document, key, new.origin, moving.updated)?;
    upsert_document::insert_pages(connection, key, &moving.document)?;
    upsert_document::insert_chunks(connection, key, &moving.document)?;
    let mut copies = connection.prepare_cached("INSERT INTO copies (document, path) VALUES (?1, ?2)")?;
    for path in &moving.duplicates {
        copies.execute((key, path))?;
    }
    change_log::append(connection, pen, base, Some(key), ChangeKind::Put)?;
    Ok(())
}

fn full_document(connection: &Connection, id: DocumentId) -> Result<Option<FullDocument>, Error> {
    let mut documents = connection.prepare_cached(&format!(
        "SELECT {} FROM documents AS d JOIN bases AS b ON b.key = d.base WHERE d.id = ?1",
        rows::DOCUMENT_COLUMNS
    ))?;
    // Column 14 is the metadata.
    let read = |row: &Row<'_>| Ok((rows::read_document(row)?, row.get(14)?));
    let Some((document, metadata)) = documents.query_row([id], read).optional()? else { return Ok(None) };
    if !checksum::is_intact(connection, document.key)? {
        return Err(Error::damaged(&document));
    }
    let copies = connection
        .prepare_cached("SELECT path FROM copies WHERE document = ?1 ORDER BY path")?
        .query_map([document.key], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let pages = connection
        .prepare_cached("SELECT number, label, text FROM pages WHERE document = ?1 ORDER BY number")?
        .query_map([document.key], |row| {
            Ok(DocumentPage { number: row.get(0)?, label: row.get(1)?, text: row.get(2)? })
        })?
        .collect::<Result<_, _>>()?;
    let mut statement = connection.prepare_cached(
        "SELECT c.id, c.page_first, c.page_last, c.tokens, c.path, c.text, c.stretches, v.dimensions, v.windows, v.codes \
         FROM chunks AS c LEFT JOIN vectors AS v ON v.chunk = c.key WHERE c.document = ?1 ORDER BY c.ordinal",
    )?;
    let mut rows = statement.query([document.key])?;
    let mut chunks = Vec::new();
    while let Some(row) = rows.next()? {
        chunks.push(read_full_chunk(row)?);
    }
    Ok(Some(FullDocument { document, metadata, duplicates: copies, pages, chunks }))
}

fn read_full_chunk(row: &Row<'_>) -> Result<FullChunk, Error> {
    Ok(FullChunk {
        id: row.get(0)?,
        chunk: NewChunk {
            pages: (row.get(1)?, row.get(2)?),
            tokens: row.get(3)?,
            headings: rows::get_json(row, 4)?,
            text: row.get(5)?,
            spans: rows::get_json(row, 6)?,
            vectors: export_for_index::vectors(row, 7)?,
        },
    })
}

fn read_finished_task(row: &Row<'_>) -> rusqlite::Result<FinishedTask> {
    Ok(FinishedTask {
        key: row.get(0)?,
        id: row.get(1)?,
        base: row.get(2)?,
        owner: row.get(3)?,
        kind: row.get(4)?,
        request: row.get(5)?,
        document: row.get(6)?,
        filename: row.get(7)?,
        format: row.get(8)?,
        size_bytes: row.get(9)?,
        state: row.get(10)?,
        created: row.get(11)?,
        started: row.get(12)?,
        ended: row.get(13)?,
        updated: row.get(14)?,
        attempts: row.get(15)?,
        result: row.get(16)?,
        error_code: row.get(17)?,
        error_message: row.get(18)?,
    })
}

fn insert_finished_task(connection: &Connection, task: &FinishedTask) -> Result<(), Error> {
    let base = rows::get_or_create_base(connection, &task.base, task.created)?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO tasks (id, base, owner, kind, request, document, filename, format, size_bytes, state, created, started, \
         ended, updated, attempts, result, error_code, error_message) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) ON CONFLICT (id) DO NOTHING",
    )?;
    statement.execute(params![
        task.id,
        base,
        task.owner,
        task.kind,
        task.request,
        task.document,
        task.filename,
        task.format,
        task.size_bytes,
        task.state,
        task.created,
        task.started,
        task.ended,
        task.updated,
        task.attempts,
        task.result,
        task.error_code,
        task.error_message,
    ])?;
    Ok(())
}
