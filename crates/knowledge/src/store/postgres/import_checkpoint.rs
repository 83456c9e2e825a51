//! Import checkpoint: the documents that an unfinished import has stored.
//!
//! After a restart, an import starts from the beginning and finds the documents that it stored before. These rows
//! distinguish them from documents that existed before the import. They are deleted when the task ends.

use std::collections::HashMap;

use super::session::Session;
use super::{Store, rows};
use crate::document::DocumentId;
use crate::store::Error;
use crate::task::{TaskId, TaskLink};

impl Store {
    /// The documents that an unfinished import has stored, and whether each replaced an existing document.
    pub async fn import_checkpoint(&self, task: TaskId) -> Result<HashMap<DocumentId, bool>, Error> {
        let sql = "SELECT i.document, i.replaced FROM imported AS i JOIN tasks AS t ON t.key = i.task WHERE t.id = $1";
        let rows = self.query_with_retry(sql, &[&task.0]).await?;
        rows.iter().map(|row| Ok((DocumentId(rows::get(row, 0)?), rows::get(row, 1)?))).collect()
    }
}

/// Records a document that was stored as part of a task. The task makes progress, so its attempt counter is reset: it
/// is not a task that only crashes processes. Its row is already locked.
pub(super) async fn record(
    session: &Session,
    work: &TaskLink,
    document: DocumentId,
    replaced: bool,
) -> Result<(), Error> {
    let TaskLink::PartOf(task) = work else { return Ok(()) };
    // A document that the same import stored twice keeps its first entry.
    let sql = "INSERT INTO imported (task, document, replaced) SELECT key, $2::uuid, $3::boolean FROM tasks WHERE id = $1 \
               ON CONFLICT (task, document) DO NOTHING";
    session.execute(sql, &[&task.0, &document.0, &replaced]).await?;
    session.execute("UPDATE tasks SET attempts = 0 WHERE id = $1 AND attempts > 0", &[&task.0]).await?;
    Ok(())
}

/// Deletes the checkpoints of tasks that have ended.
pub(super) async fn delete(session: &Session, tasks: &[i64]) -> Result<(), Error> {
    session.execute("DELETE FROM imported WHERE task = ANY($1)", &[&tasks]).await?;
    Ok(())
}
