//! Persistent state of the files in watched folders.
//!
//! Several instances may watch the same folder while users remove documents and clear bases. Rows are therefore
//! changed by compare-and-swap: see [`Turn`].
//!
//! These rows are the last ones that a write locks, always in index order: `md5(path)`.

use std::collections::HashMap;

use tokio_postgres::Row;
use uuid::Uuid;

use super::session::{Given, Session};
use super::{Store, rows};
use crate::knowledge::document::{BaseName, DocumentId};
use crate::knowledge::store::{Error, Look, Place, Standing, Turn, Watched};
use crate::knowledge::task::TaskId;

/// Columns for [`read`], from `watched AS w`.
const WATCHED: &str = "w.path, w.modified, w.size_bytes, w.device, w.inode, w.changed, w.state, w.task, w.document";

impl Store {
    /// The stored files of watched folders of a base.
    pub async fn watched(&self, base: &BaseName) -> Result<Vec<Watched>, Error> {
        let sql = format!("SELECT {WATCHED} FROM watched AS w JOIN bases AS b ON b.key = w.base WHERE b.name = $1");
        self.ask(&sql, &[&base.as_str()]).await?.iter().map(read).collect()
    }

    /// Documents of watched folders without a stored file row, as after a repair or from an older version. They are
    /// returned as settled files. Their size and time are unknown, and so is the device, which is 0.
    pub async fn unremembered(&self, base: &BaseName) -> Result<Vec<Watched>, Error> {
        let sql = "SELECT d.path, d.size_bytes, d.id FROM documents AS d JOIN bases AS b ON b.key = d.base \
                   WHERE b.name = $1 AND d.origin = 'watched' AND d.path IS NOT NULL AND NOT EXISTS (SELECT 1 \
                   FROM watched AS w WHERE w.base = d.base AND md5(w.path) = md5(d.path) AND w.path = d.path)";
        let stray = |row: &Row| {
            Ok(Watched {
                path: rows::get(row, 0)?,
                look: Look { modified: None, size: rows::number(row, 1)? },
                device: 0,
                inode: 0,
                changed: None,
                standing: Standing::Settled(Some(DocumentId(rows::get(row, 2)?))),
            })
        };
        self.ask(sql, &[&base.as_str()]).await?.iter().map(stray).collect()
    }

    /// Updates rows and returns which updates applied. The rest were changed concurrently and are left unchanged.
    pub async fn turn_watched(&self, base: &BaseName, turns: Vec<Turn>) -> Result<Vec<bool>, Error> {
        let session = self.writing().await?;
        let base = rows::known_base(&session, base).await?;
        // Serializes inserts, because a row that does not exist yet cannot be locked.
        let alone = "SELECT pg_advisory_xact_lock(hashtextextended('corbie: watched', $1))";
        session.rows(alone, &[&base]).await?;
        let mut known = known(&session, base, &turns).await?;
        let mut changed = HashMap::new();
        let mut made = Vec::with_capacity(turns.len());
        for Turn { before, after } in &turns {
            let path = rows::text(&after.path);
            let is_as_before = known.get(&*path) == before.as_ref();
            if is_as_before {
                known.insert(path.clone().into_owned(), after.clone());
                changed.insert(path, after);
            }
            made.push(is_as_before);
        }
        write(&session, base, &changed.into_values().collect::<Vec<_>>()).await?;
        session.commit().await?;
        Ok(made)
    }

    /// Removes the rows of deleted files.
    pub async fn forget_watched(&self, base: &BaseName, paths: Vec<String>) -> Result<(), Error> {
        let sql = "WITH gone AS (SELECT w.base, w.path FROM bases AS b, unnest($2::text[]) AS p, watched AS w \
                   WHERE b.name = $1 AND w.base = b.key AND md5(w.path) = md5(p) AND w.path = p \
                   ORDER BY md5(w.path) FOR UPDATE OF w) \
                   DELETE FROM watched AS w USING gone WHERE w.base = gone.base AND md5(w.path) = md5(gone.path)";
        let paths: Vec<_> = paths.iter().map(|path| rows::text(path)).collect();
        self.ask(sql, &[&base.as_str(), &paths]).await?;
        Ok(())
    }

    /// Hides failed tasks from the document list because other tasks retry their files.
    pub async fn forget_attempts(&self, tasks: Vec<TaskId>) -> Result<(), Error> {
        let sql = "WITH failed AS (SELECT key FROM tasks WHERE id = ANY($1) AND state = 'failed' ORDER BY key FOR UPDATE) \
                   UPDATE tasks AS t SET document = NULL FROM failed WHERE t.key = failed.key";
        let tasks: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
        self.ask(sql, &[&tasks]).await?;
        Ok(())
    }

    /// Identity of the folder at a path when it last contained files.
    pub async fn watched_folder(&self, path: &str) -> Result<Option<Place>, Error> {
        let sql = "SELECT device, inode FROM watched_folders WHERE md5(path) = md5($1) AND path = $1";
        let place = |row: &Row| Ok(Place { device: unsigned(row, 0)?, inode: unsigned(row, 1)? });
        self.ask(sql, &[&rows::text(path)]).await?.first().map(place).transpose()
    }

    pub async fn note_watched_folder(&self, path: &str, place: Place) -> Result<(), Error> {
        let sql = "INSERT INTO watched_folders (path, device, inode) VALUES ($1, $2, $3) \
                   ON CONFLICT (md5(path)) DO UPDATE SET device = excluded.device, inode = excluded.inode";
        let (device, inode) = (place.device.cast_signed(), place.inode.cast_signed());
        self.ask(sql, &[&rows::text(path), &device, &inode]).await?;
        Ok(())
    }
}

/// The user cleared the base: pending files are not added before they change.
pub(super) async fn settle_base(session: &Session, base: i64) -> Result<(), Error> {
    settle(session, "w.base = $1", "state = 'settled', task = NULL, document = NULL", &[&base]).await
}

/// The user does not want the document of this task.
pub(super) async fn settle_task(session: &Session, task: TaskId) -> Result<(), Error> {
    settle(session, "w.task = $1", "state = 'settled', task = NULL, document = NULL", &[&task.0]).await
}

/// The document was removed: clears the reference in its files. This is not an inconsistency.
pub(super) async fn leave_document(session: &Session, document: DocumentId) -> Result<(), Error> {
    settle(session, "w.document = $1", "document = NULL", &[&document.0]).await
}

/// Updates the rows that match a condition, after locking them in index order.
async fn settle(session: &Session, condition: &str, change: &str, given: Given<'_>) -> Result<(), Error> {
    let sql = format!(
        "WITH meant AS (SELECT w.base, md5(w.path) AS path FROM watched AS w WHERE {condition} \
         ORDER BY md5(w.path) FOR UPDATE) \
         UPDATE watched AS w SET {change} FROM meant WHERE w.base = meant.base AND md5(w.path) = meant.path"
    );
    session.execute(&sql, given).await?;
    Ok(())
}

/// Locks and returns the rows to update, by path.
async fn known(session: &Session, base: i64, turns: &[Turn]) -> Result<HashMap<String, Watched>, Error> {
    let sql = format!(
        "SELECT {WATCHED} FROM watched AS w WHERE w.base = $1 \
         AND md5(w.path) = ANY(ARRAY(SELECT md5(p) FROM unnest($2::text[]) AS p)) ORDER BY md5(w.path) FOR UPDATE"
    );
    let paths: Vec<_> = turns.iter().map(|turn| rows::text(&turn.after.path)).collect();
    let rows = session.rows(&sql, &[&base, &paths]).await?;
    rows.iter().map(|row| read(row).map(|watched| (watched.path.clone(), watched))).collect()
}

/// Writes the new rows.
async fn write(session: &Session, base: i64, all: &[&Watched]) -> Result<(), Error> {
    let sql = "INSERT INTO watched (base, path, modified, size_bytes, device, inode, changed, state, task, document) \
               SELECT $1::bigint, n.* FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], \
               $7::bigint[], $8::text[], $9::uuid[], $10::uuid[]) AS n ON CONFLICT (base, md5(path)) DO UPDATE SET \
               modified = excluded.modified, size_bytes = excluded.size_bytes, device = excluded.device, \
               inode = excluded.inode, changed = excluded.changed, state = excluded.state, task = excluded.task, \
               document = excluded.document";
    let standing = |watched: &&Watched| match watched.standing {
        Standing::Waiting => ("waiting", None, None),
        Standing::Going(task) => ("going", Some(task.0), None),
        Standing::Settled(document) => ("settled", None, document.map(|document| document.0)),
    };
    let column = |of: fn(&Watched) -> i64| all.iter().map(|watched| of(watched)).collect::<Vec<i64>>();
    let given: Given<'_> = &[
        &base,
        &all.iter().map(|watched| rows::text(&watched.path)).collect::<Vec<_>>(),
        &all.iter().map(|watched| watched.look.modified).collect::<Vec<_>>(),
        &column(|watched| rows::signed(watched.look.size)),
        &column(|watched| watched.device.cast_signed()),
        &column(|watched| watched.inode.cast_signed()),
        &all.iter().map(|watched| watched.changed).collect::<Vec<_>>(),
        &all.iter().map(|watched| standing(watched).0).collect::<Vec<_>>(),
        &all.iter().map(|watched| standing(watched).1).collect::<Vec<_>>(),
        &all.iter().map(|watched| standing(watched).2).collect::<Vec<_>>(),
    ];
    session.execute(sql, given).await?;
    Ok(())
}

fn read(row: &Row) -> Result<Watched, Error> {
    let standing = match rows::get(row, 6)? {
        "waiting" => Standing::Waiting,
        "going" => Standing::Going(TaskId(rows::get(row, 7)?)),
        "settled" => Standing::Settled(rows::get::<Option<Uuid>>(row, 8)?.map(DocumentId)),
        other => return Err(Error::unreadable(other)),
    };
    Ok(Watched {
        path: rows::get(row, 0)?,
        look: Look { modified: rows::get(row, 1)?, size: rows::number(row, 2)? },
        device: unsigned(row, 3)?,
        inode: unsigned(row, 4)?,
        changed: rows::get(row, 5)?,
        standing,
    })
}

/// PostgreSQL has only signed integers, and these values use all 64 bits.
pub(super) fn unsigned(row: &Row, column: usize) -> Result<u64, Error> {
    rows::get::<i64>(row, column).map(i64::cast_unsigned)
}
