//! Persistent state of the files in watched folders.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Store, rows};
use crate::document::{BaseName, DocumentId, Origin};
use crate::store::{Error, FileId, FileStamp, IngestState, RowUpdate, WatchedFile};
use crate::task::TaskId;

impl Store {
    /// The stored files of watched folders of a base.
    pub async fn watched_files(&self, base: &BaseName) -> Result<Vec<WatchedFile>, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached(&format!(
                "SELECT {WATCHED_COLUMNS} JOIN bases AS b ON b.key = w.base WHERE b.name = ?1"
            ))?;
            let rows = statement.query_map([base], read)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Documents of watched folders without a stored file row, as after a repair or from an older version. They are
    /// returned as settled files. Their size and time are unknown, and so is the device, which is 0.
    pub async fn untracked_documents(&self, base: &BaseName) -> Result<Vec<WatchedFile>, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached(
                "SELECT d.path, d.size_bytes, d.id FROM documents AS d JOIN bases AS b ON b.key = d.base \
                 WHERE b.name = ?1 AND d.origin = ?2 AND d.path IS NOT NULL \
                 AND NOT EXISTS (SELECT 1 FROM watched AS w WHERE w.base = d.base AND w.path = d.path)",
            )?;
            let rows = statement.query_map((base, Origin::Watched), |row| {
                Ok(WatchedFile {
                    path: row.get(0)?,
                    stamp: FileStamp { modified: None, size: row.get(1)? },
                    device: 0,
                    inode: 0,
                    ctime: None,
                    state: IngestState::Done(Some(row.get(2)?)),
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Updates rows and returns which updates applied. The rest were changed concurrently and are left unchanged.
    pub async fn update_watched_files(&self, base: &BaseName, turns: Vec<RowUpdate>) -> Result<Vec<bool>, Error> {
        let base = base.clone();
        self.write(move |transaction, _| {
            let base = rows::get_or_create_base(transaction, &base, rows::now())?;
            turns.iter().map(|one| compare_and_swap(transaction, base, one)).collect()
        })
        .await
    }

    /// Removes the rows of deleted files.
    pub async fn remove_watched_files(&self, base: &BaseName, paths: Vec<String>) -> Result<(), Error> {
        let base = base.clone();
        self.write(move |transaction, _| {
            let Some(base) = rows::base_key(transaction, &base)? else { return Ok(()) };
            let mut statement = transaction.prepare_cached("DELETE FROM watched WHERE base = ?1 AND path = ?2")?;
            for path in paths {
                statement.execute((base, path))?;
            }
            Ok(())
        })
        .await
    }

    /// Hides failed tasks from the document list because other tasks retry their files.
    pub async fn hide_failed_tasks(&self, tasks: Vec<TaskId>) -> Result<(), Error> {
        self.write(move |transaction, _| {
            let mut statement =
                transaction.prepare_cached("UPDATE tasks SET document = NULL WHERE id = ?1 AND state = 'failed'")?;
            for task in tasks {
                statement.execute([task])?;
            }
            Ok(())
        })
        .await
    }

    /// Identity of the folder at a path when it last contained files.
    pub async fn watched_folder(&self, path: &str) -> Result<Option<FileId>, Error> {
        let path = path.to_owned();
        self.read(move |transaction| {
            let mut statement =
                transaction.prepare_cached("SELECT device, inode FROM watched_folders WHERE path = ?1")?;
            let read = |row: &Row<'_>| Ok(FileId { device: get_unsigned(row, 0)?, inode: get_unsigned(row, 1)? });
            Ok(statement.query_row([path], read).optional()?)
        })
        .await
    }

    pub async fn record_watched_folder(&self, path: &str, place: FileId) -> Result<(), Error> {
        let path = path.to_owned();
        self.write(move |transaction, _| {
            let mut statement = transaction
                .prepare_cached("INSERT OR REPLACE INTO watched_folders (path, device, inode) VALUES (?1, ?2, ?3)")?;
            statement.execute((path, place.device.cast_signed(), place.inode.cast_signed()))?;
            Ok(())
        })
        .await
    }
}

/// The user cleared the base: pending files are not added before they change.
pub(super) fn mark_base_done(connection: &Connection, base: i64) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE watched SET state = 'settled', task = NULL, document = NULL WHERE base = ?1")?
        .execute([base])?;
    Ok(())
}

/// The user does not want the document of this task.
pub(super) fn mark_task_done(connection: &Connection, task: TaskId) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE watched SET state = 'settled', task = NULL, document = NULL WHERE task = ?1")?
        .execute([task])?;
    Ok(())
}

/// The document was removed: clears the reference in its files. This is not an inconsistency.
pub(super) fn clear_document(connection: &Connection, document: DocumentId) -> Result<(), Error> {
    connection.prepare_cached("UPDATE watched SET document = NULL WHERE document = ?1")?.execute([document])?;
    Ok(())
}

fn compare_and_swap(connection: &Connection, base: i64, turn: &RowUpdate) -> Result<bool, Error> {
    let RowUpdate { before, after } = turn;
    let mut statement =
        connection.prepare_cached(&format!("SELECT {WATCHED_COLUMNS} WHERE w.base = ?1 AND w.path = ?2"))?;
    let now = statement.query_row((base, &after.path), read).optional()?;
    if now != *before {
        return Ok(false);
    }
    let (state, task, document) = match after.state {
        IngestState::Pending => ("waiting", None, None),
        IngestState::InProgress(task) => ("going", Some(task), None),
        IngestState::Done(document) => ("settled", None, document),
    };
    let mut statement = connection.prepare_cached(
        "INSERT INTO watched (base, path, modified, size_bytes, device, inode, changed, state, task, document) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (base, path) DO UPDATE SET \
         modified = excluded.modified, size_bytes = excluded.size_bytes, device = excluded.device, inode = excluded.inode, \
         changed = excluded.changed, state = excluded.state, task = excluded.task, document = excluded.document",
    )?;
    let FileStamp { modified, size } = after.stamp;
    let (device, inode) = (after.device.cast_signed(), after.inode.cast_signed());
    statement.execute(params![base, after.path, modified, size, device, inode, after.ctime, state, task, document])?;
    Ok(true)
}

/// Columns and FROM clause for [`read`].
const WATCHED_COLUMNS: &str = "w.path, w.modified, w.size_bytes, w.device, w.inode, w.changed, w.state, w.task, w.document \
     FROM watched AS w";

fn read(row: &Row<'_>) -> rusqlite::Result<WatchedFile> {
    let standing = match row.get_ref(6)?.as_str()? {
        "waiting" => IngestState::Pending,
        "going" => IngestState::InProgress(row.get(7)?),
        "settled" => IngestState::Done(row.get(8)?),
        other => return Err(rusqlite::Error::InvalidColumnType(6, other.to_owned(), Type::Text)),
    };
    Ok(WatchedFile {
        path: row.get(0)?,
        stamp: FileStamp { modified: row.get(1)?, size: row.get(2)? },
        device: get_unsigned(row, 3)?,
        inode: get_unsigned(row, 4)?,
        ctime: row.get(5)?,
        state: standing,
    })
}

/// SQLite has only signed integers, and these values use all 64 bits.
pub(super) fn get_unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}
