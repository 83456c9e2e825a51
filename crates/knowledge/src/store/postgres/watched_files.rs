//! Persistent state of the files in watched folders.
//!
//! Several instances may watch the same folder while users remove documents and clear bases. Rows are therefore
//! changed by compare-and-swap: see [`RowUpdate`].
//!
//! These rows are the last ones that a write locks, always in index order: `md5(path)`.

use std::collections::HashMap;

use tokio_postgres::Row;
use uuid::Uuid;

use super::session::{Session, SqlParams};
use super::{Store, rows};
use crate::document::{BaseName, DocumentId};
use crate::store::{Error, FileId, FileStamp, IngestState, RowUpdate, WatchedFile};
use crate::task::TaskId;

/// Columns for [`read`], from `watched AS w`.
const WATCHED_COLUMNS: &str =
    "w.path, w.modified, w.size_bytes, w.device, w.inode, w.changed, w.state, w.task, w.document";

impl Store {
    /// The stored files of watched folders of a base.
    pub async fn watched_files(&self, base: &BaseName) -> Result<Vec<WatchedFile>, Error> {
        let sql =
            format!("SELECT {WATCHED_COLUMNS} FROM watched AS w JOIN bases AS b ON b.key = w.base WHERE b.name = $1");
        self.query_with_retry(&sql, &[&base.as_str()]).await?.iter().map(read).collect()
    }

    /// Documents of watched folders without a stored file row, as after a repair or from an older version. They are
    /// returned as settled files. Their size and time are unknown, and so is the device, which is 0.
    pub async fn untracked_documents(&self, base: &BaseName) -> Result<Vec<WatchedFile>, Error> {
        let sql = "SELECT d.path, d.size_bytes, d.id FROM documents AS d JOIN bases AS b ON b.key = d.base \
                   WHERE b.name = $1 AND d.origin = 'watched' AND d.path IS NOT NULL AND NOT EXISTS (SELECT 1 \
                   FROM watched AS w WHERE w.base = d.base AND md5(w.path) = md5(d.path) AND w.path = d.path)";
        let stray = |row: &Row| {
            Ok(WatchedFile {
                path: rows::get(row, 0)?,
                stamp: FileStamp { modified: None, size: rows::get_u64(row, 1)? },
                device: 0,
                inode: 0,
                ctime: None,
                state: IngestState::Done(Some(DocumentId(rows::get(row, 2)?))),
            })
        };
        self.query_with_retry(sql, &[&base.as_str()]).await?.iter().map(stray).collect()
    }

    /// Updates rows and returns which updates applied. The rest were changed concurrently and are left unchanged.
    pub async fn update_watched_files(&self, base: &BaseName, turns: Vec<RowUpdate>) -> Result<Vec<bool>, Error> {
        let session = self.begin_write().await?;
        let base = rows::get_or_create_base(&session, base).await?;
        // Serializes inserts, because a row that does not exist yet cannot be locked.
        let alone = "SELECT pg_advisory_xact_lock(hashtextextended('corbie: watched', $1))";
        session.rows(alone, &[&base]).await?;
        let mut known = lock_rows(&session, base, &turns).await?;
        let mut changed = HashMap::new();
        let mut made = Vec::with_capacity(turns.len());
        for RowUpdate { before, after } in &turns {
            let path = rows::without_nul(&after.path);
            let is_as_before = known.get(&*path) == before.as_ref();
            if is_as_before {
                known.insert(path.clone().into_owned(), after.clone());
                changed.insert(path, after);
            }
            made.push(is_as_before);
        }
        write_rows(&session, base, &changed.into_values().collect::<Vec<_>>()).await?;
        session.commit().await?;
        Ok(made)
    }

    /// Removes the rows of deleted files.
    pub async fn remove_watched_files(&self, base: &BaseName, paths: Vec<String>) -> Result<(), Error> {
        let sql = "WITH gone AS (SELECT w.base, w.path FROM bases AS b, unnest($2::text[]) AS p, watched AS w \
                   WHERE b.name = $1 AND w.base = b.key AND md5(w.path) = md5(p) AND w.path = p \
                   ORDER BY md5(w.path) FOR UPDATE OF w) \
                   DELETE FROM watched AS w USING gone WHERE w.base = gone.base AND md5(w.path) = md5(gone.path)";
        let paths: Vec<_> = paths.iter().map(|path| rows::without_nul(path)).collect();
        self.query_with_retry(sql, &[&base.as_str(), &paths]).await?;
        Ok(())
    }

    /// Hides failed tasks from the document list because other tasks retry their files.
    pub async fn hide_failed_tasks(&self, tasks: Vec<TaskId>) -> Result<(), Error> {
        let sql = "WITH failed AS (SELECT key FROM tasks WHERE id = ANY($1) AND state = 'failed' ORDER BY key FOR UPDATE) \
                   UPDATE tasks AS t SET document = NULL FROM failed WHERE t.key = failed.key";
        let tasks: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
        self.query_with_retry(sql, &[&tasks]).await?;
        Ok(())
    }

    /// Identity of the folder at a path when it last contained files.
    pub async fn watched_folder(&self, path: &str) -> Result<Option<FileId>, Error> {
        let sql = "SELECT device, inode FROM watched_folders WHERE md5(path) = md5($1) AND path = $1";
        let place = |row: &Row| Ok(FileId { device: get_unsigned(row, 0)?, inode: get_unsigned(row, 1)? });
        self.query_with_retry(sql, &[&rows::without_nul(path)]).await?.first().map(place).transpose()
    }

    pub async fn record_watched_folder(&self, path: &str, place: FileId) -> Result<(), Error> {
        let sql = "INSERT INTO watched_folders (path, device, inode) VALUES ($1, $2, $3) \
                   ON CONFLICT (md5(path)) DO UPDATE SET device = excluded.device, inode = excluded.inode";
        let (device, inode) = (place.device.cast_signed(), place.inode.cast_signed());
        self.query_with_retry(sql, &[&rows::without_nul(path), &device, &inode]).await?;
        Ok(())
    }
}

/// The user cleared the base: pending files are not added before they change.
pub(super) async fn mark_base_done(session: &Session, base: i64) -> Result<(), Error> {
    update_locked(session, "w.base = $1", "state = 'settled', task = NULL, document = NULL", &[&base]).await
}

/// The user does not want the document of this task.
pub(super) async fn mark_task_done(session: &Session, task: TaskId) -> Result<(), Error> {
    update_locked(session, "w.task = $1", "state = 'settled', task = NULL, document = NULL", &[&task.0]).await
}

/// The document was removed: clears the reference in its files. This is not an inconsistency.
pub(super) async fn clear_document(session: &Session, document: DocumentId) -> Result<(), Error> {
    update_locked(session, "w.document = $1", "document = NULL", &[&document.0]).await
}

/// Updates the rows that match a condition, after locking them in index order.
async fn update_locked(session: &Session, condition: &str, change: &str, given: SqlParams<'_>) -> Result<(), Error> {
    let sql = format!(
        "WITH meant AS (SELECT w.base, md5(w.path) AS path FROM watched AS w WHERE {condition} \
         ORDER BY md5(w.path) FOR UPDATE) \
         UPDATE watched AS w SET {change} FROM meant WHERE w.base = meant.base AND md5(w.path) = meant.path"
    );
    session.execute(&sql, given).await?;
    Ok(())
}

/// Locks and returns the rows to update, by path.
async fn lock_rows(session: &Session, base: i64, turns: &[RowUpdate]) -> Result<HashMap<String, WatchedFile>, Error> {
    let sql = format!(
        "SELECT {WATCHED_COLUMNS} FROM watched AS w WHERE w.base = $1 \
         AND md5(w.path) = ANY(ARRAY(SELECT md5(p) FROM unnest($2::text[]) AS p)) ORDER BY md5(w.path) FOR UPDATE"
    );
    let paths: Vec<_> = turns.iter().map(|turn| rows::without_nul(&turn.after.path)).collect();
    let rows = session.rows(&sql, &[&base, &paths]).await?;
    rows.iter().map(|row| read(row).map(|watched| (watched.path.clone(), watched))).collect()
}

/// Writes the new rows.
async fn write_rows(session: &Session, base: i64, all: &[&WatchedFile]) -> Result<(), Error> {
    let sql = "INSERT INTO watched (base, path, modified, size_bytes, device, inode, changed, state, task, document) \
               SELECT $1::bigint, n.* FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], \
               $7::bigint[], $8::text[], $9::uuid[], $10::uuid[]) AS n ON CONFLICT (base, md5(path)) DO UPDATE SET \
               modified = excluded.modified, size_bytes = excluded.size_bytes, device = excluded.device, \
               inode = excluded.inode, changed = excluded.changed, state = excluded.state, task = excluded.task, \
               document = excluded.document";
    let standing = |watched: &&WatchedFile| match watched.state {
        IngestState::Pending => ("waiting", None, None),
        IngestState::InProgress(task) => ("going", Some(task.0), None),
        IngestState::Done(document) => ("settled", None, document.map(|document| document.0)),
    };
    let column = |of: fn(&WatchedFile) -> i64| all.iter().map(|watched| of(watched)).collect::<Vec<i64>>();
    let given: SqlParams<'_> = &[
        &base,
        &all.iter().map(|watched| rows::without_nul(&watched.path)).collect::<Vec<_>>(),
        &all.iter().map(|watched| watched.stamp.modified).collect::<Vec<_>>(),
        &column(|watched| rows::to_i64(watched.stamp.size)),
        &column(|watched| watched.device.cast_signed()),
        &column(|watched| watched.inode.cast_signed()),
        &all.iter().map(|watched| watched.ctime).collect::<Vec<_>>(),
        &all.iter().map(|watched| standing(watched).0).collect::<Vec<_>>(),
        &all.iter().map(|watched| standing(watched).1).collect::<Vec<_>>(),
        &all.iter().map(|watched| standing(watched).2).collect::<Vec<_>>(),
    ];
    session.execute(sql, given).await?;
    Ok(())
}

fn read(row: &Row) -> Result<WatchedFile, Error> {
    let standing = match rows::get(row, 6)? {
        "waiting" => IngestState::Pending,
        "going" => IngestState::InProgress(TaskId(rows::get(row, 7)?)),
        "settled" => IngestState::Done(rows::get::<Option<Uuid>>(row, 8)?.map(DocumentId)),
        other => return Err(Error::unreadable(other)),
    };
    Ok(WatchedFile {
        path: rows::get(row, 0)?,
        stamp: FileStamp { modified: rows::get(row, 1)?, size: rows::get_u64(row, 2)? },
        device: get_unsigned(row, 3)?,
        inode: get_unsigned(row, 4)?,
        ctime: rows::get(row, 5)?,
        state: standing,
    })
}

/// PostgreSQL has only signed integers, and these values use all 64 bits.
pub(super) fn get_unsigned(row: &Row, column: usize) -> Result<u64, Error> {
    rows::get::<i64>(row, column).map(i64::cast_unsigned)
}
