//! What an unfinished import has stored.
//!
//! After a restart an import begins again, and finds what it stored before as if it had always been there. These rows tell
//! it apart. They go with the end of the task.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::Store;
use crate::knowledge::document::DocumentId;
use crate::knowledge::store::Error;
use crate::knowledge::task::{TaskId, Work};

impl Store {
    /// The documents that an unfinished import has stored, and whether they took the place of others.
    pub async fn imported(&self, task: TaskId) -> Result<HashMap<DocumentId, bool>, Error> {
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached(
                "SELECT i.document, i.replaced FROM imported AS i JOIN tasks AS t ON t.key = i.task WHERE t.id = ?1",
            )?;
            let rows = statement.query_map([task], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Notes a document that was stored as a part of a task. The task gets further, so it is not one that only ends processes.
pub(super) fn note(connection: &Connection, work: &Work, document: DocumentId, replaced: bool) -> Result<(), Error> {
    let Work::PartOf(task) = work else { return Ok(()) };
    // What it brought and then brought anew was not there before.
    connection
        .prepare_cached("INSERT OR IGNORE INTO imported SELECT key, ?2, ?3 FROM tasks WHERE id = ?1")?
        .execute(params![task, document, replaced])?;
    connection.prepare_cached("UPDATE tasks SET attempts = 0 WHERE id = ?1 AND attempts > 0")?.execute([task])?;
    Ok(())
}

/// Forgets what a task has stored, as it has ended.
pub(super) fn forget(connection: &Connection, task: TaskId) -> Result<(), Error> {
    let sql = "DELETE FROM imported WHERE task = (SELECT key FROM tasks WHERE id = ?1)";
    connection.prepare_cached(sql)?.execute([task])?;
    Ok(())
}
