//! Import checkpoint: the documents that an unfinished import has stored.
//!
//! After a restart, an import starts from the beginning and finds the documents that it stored before. These rows
//! distinguish them from documents that existed before the import. They are deleted when the task ends.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::Store;
use crate::document::DocumentId;
use crate::store::Error;
use crate::task::{TaskId, TaskLink};

impl Store {
    /// The documents that an unfinished import has stored, and whether each replaced an existing document.
    pub async fn import_checkpoint(&self, task: TaskId) -> Result<HashMap<DocumentId, bool>, Error> {
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

/// Records a document that was stored as part of a task. The task makes progress, so its attempt counter is reset: it
/// is not a task that only crashes processes.
pub(super) fn record(
    connection: &Connection,
    work: &TaskLink,
    document: DocumentId,
    replaced: bool,
) -> Result<(), Error> {
    let TaskLink::PartOf(task) = work else { return Ok(()) };
    // A document that the same import stored twice keeps its first entry.
    connection
        .prepare_cached("INSERT OR IGNORE INTO imported SELECT key, ?2, ?3 FROM tasks WHERE id = ?1")?
        .execute(params![task, document, replaced])?;
    connection.prepare_cached("UPDATE tasks SET attempts = 0 WHERE id = ?1 AND attempts > 0")?.execute([task])?;
    Ok(())
}

/// Deletes the checkpoint of a task that has ended.
pub(super) fn delete(connection: &Connection, task: TaskId) -> Result<(), Error> {
    let sql = "DELETE FROM imported WHERE task = (SELECT key FROM tasks WHERE id = ?1)";
    connection.prepare_cached(sql)?.execute([task])?;
    Ok(())
}
